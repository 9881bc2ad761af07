//! Attempts to escape from a jail, by name. Each reports its outcome if it survives.

use libc::{c_long, c_void, syscall};
use std::ptr::{null, null_mut};

/// Makes the named attempt and returns `succeeded`, or `refused` with the kernel's error number.
pub(crate) fn outcome(name: &str) -> String {
    let Some((_, attempt)) = ATTEMPTS.iter().find(|(known, _)| *known == name) else {
        return "unknown".to_owned();
    };
    told(attempt())
}

/// Makes a system call by number, with zeros as arguments.
pub(crate) fn raw(number: c_long) -> String {
    // SAFETY: every call that reads or writes memory gets null pointers; its other effects on this
    // process are what the test observes.
    told(unsafe { syscall(number, 0, 0, 0, 0, 0, 0) })
}

fn told(answer: c_long) -> String {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if answer >= 0 { "succeeded".to_owned() } else { format!("refused {errno}") }
}

type Attempt = fn() -> c_long;

// SAFETY of all blocks below: pointers are to literals or to locals that outlive the call; what the calls do
// to this process does not matter: either the kernel kills it, or the attempt has exposed a hole in the jail.
const ATTEMPTS: &[(&str, Attempt)] = &[
    ("open a file", || path(libc::SYS_open, c"/etc/passwd", libc::O_RDONLY)),
    ("create a file", || path(libc::SYS_open, c"/tmp/escaped", libc::O_CREAT | libc::O_WRONLY)),
    ("stat a file", || path(libc::SYS_access, c"/etc/passwd", 0)),
    ("read own memory", || path(libc::SYS_open, c"/proc/self/mem", libc::O_RDWR)),
    ("read own environment", || path(libc::SYS_open, c"/proc/self/environ", 0)),
    ("list descriptors", || path(libc::SYS_open, c"/proc/self/fd", libc::O_DIRECTORY)),
    ("change root", || path(libc::SYS_chroot, c"/", 0)),
    ("connect by TCP", || internet(libc::SOCK_STREAM)),
    ("send by UDP", || internet(libc::SOCK_DGRAM)),
    // SAFETY: see above.
    ("fork", || unsafe { syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }),
    ("fork as the zygote does", || {
        let mut pidfd = -1;
        let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
        // SAFETY: see above.
        unsafe { syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) }
    }),
    ("start a thread", || {
        let flags = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
        // SAFETY: see above.
        unsafe { syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }
    }),
    // SAFETY: see above.
    ("clone3", || unsafe { syscall(libc::SYS_clone3, [0_u64; 11].as_ptr(), 88) }),
    ("exec", || {
        let arguments = [c"true".as_ptr(), null()];
        // SAFETY: see above.
        unsafe {
            syscall(libc::SYS_execve, c"/bin/true".as_ptr(), arguments.as_ptr(), null::<c_void>())
        }
    }),
    // SAFETY: see above.
    ("kill the parent", || unsafe { syscall(libc::SYS_kill, libc::getppid(), libc::SIGKILL) }),
    // SAFETY: see above.
    ("kill everybody", || unsafe { syscall(libc::SYS_kill, -1, libc::SIGKILL) }),
    ("signal the parent's thread", || {
        // SAFETY: see above.
        unsafe { syscall(libc::SYS_tgkill, libc::getppid(), libc::getppid(), libc::SIGKILL) }
    }),
    // SAFETY: see above.
    ("trace the parent", || unsafe {
        syscall(libc::SYS_ptrace, libc::PTRACE_ATTACH, libc::getppid(), 0, 0)
    }),
    ("map writable code", || map(4096, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)),
    ("map code", || map(4096, libc::PROT_READ | libc::PROT_EXEC)),
    ("make memory code", || {
        // SAFETY: see above.
        unsafe { syscall(libc::SYS_mprotect, map(4096, libc::PROT_READ), 4096, libc::PROT_EXEC) }
    }),
    ("map a gigabyte", || map(1 << 30, libc::PROT_READ | libc::PROT_WRITE)),
    // SAFETY: see above.
    ("io_uring", || unsafe { syscall(libc::SYS_io_uring_setup, 1, [0_u8; 256].as_mut_ptr()) }),
    // SAFETY: see above.
    ("bpf", || unsafe { syscall(libc::SYS_bpf, 0, null::<c_void>(), 0) }),
    // SAFETY: see above.
    ("unshare", || unsafe { syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) }),
    // SAFETY: see above.
    ("userfaultfd", || unsafe { syscall(libc::SYS_userfaultfd, 0) }),
    // SAFETY: see above.
    ("perf_event_open", || unsafe {
        syscall(libc::SYS_perf_event_open, [0_u8; 128].as_ptr(), 0, -1, -1, 0)
    }),
    // SAFETY: see above.
    ("keyctl", || unsafe { syscall(libc::SYS_keyctl, 0, -4, 0) }),
    // SAFETY: see above.
    ("become readable", || unsafe { syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }),
    // SAFETY: see above.
    ("outlive the zygote", || unsafe {
        syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, 0, 0, 0, 0)
    }),
    ("raise a limit", || {
        let limit = libc::rlimit { rlim_cur: 1 << 40, rlim_max: 1 << 40 };
        // SAFETY: see above.
        unsafe {
            syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_AS, &raw const limit, null_mut::<c_void>())
        }
    }),
    // SAFETY: see above.
    ("pass a descriptor", || unsafe { syscall(libc::SYS_sendmsg, 3, null::<c_void>(), 0) }),
    // SAFETY: see above.
    ("steal a descriptor", || unsafe { syscall(libc::SYS_pidfd_getfd, 3, 0, 0) }),
    // SAFETY: see above.
    ("a call of the x32 kind", || unsafe {
        syscall(0x4000_0000 | libc::SYS_open, c"/".as_ptr(), 0)
    }),
    #[cfg(target_arch = "x86_64")]
    ("a call of the i386 kind", || {
        let mut answer: c_long = 20;
        // SAFETY: getpid of the 32-bit table touches no memory.
        unsafe { std::arch::asm!("int 0x80", inout("rax") answer) };
        answer
    }),
];

fn path(call: c_long, path: &std::ffi::CStr, flags: i32) -> c_long {
    // SAFETY: the path is a literal that ends with a zero.
    unsafe { syscall(call, path.as_ptr(), flags, 0o600) }
}

fn map(bytes: usize, protection: i32) -> c_long {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice replaces no existing mapping.
    unsafe { syscall(libc::SYS_mmap, null::<c_void>(), bytes, protection, flags, -1, 0) }
}

fn internet(kind: i32) -> c_long {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 53_u16.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    // SAFETY: the address outlives the calls and has the length that they are given.
    unsafe {
        let socket = syscall(libc::SYS_socket, libc::AF_INET, kind, 0);
        if socket < 0 {
            return socket;
        }
        syscall(
            libc::SYS_sendto,
            socket,
            c"x".as_ptr(),
            1,
            0,
            &raw const address,
            size_of_val(&address),
        )
    }
}
