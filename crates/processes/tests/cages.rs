//! Programs in cages: what they can still do, and the ways in which they try to do what they cannot.

use crate::suite::{self, Heard, PIPED, PIPES, TERMINAL, cage, rule, said, shell, start, told};
use processes::{NetworkAccess, PathAccess, ProcessCage, ProcessSpec};
use std::path::Path;

#[tokio::test]
async fn a_caged_program_reads_all_writes_its_folder_and_has_the_usual_devices() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let script = format!(
        "cd {path} && echo kept > file && chmod 600 file && mv file other && cat other && mkdir -p a/b && \
         rm -r a && echo x > /dev/null && head -c 2 /dev/urandom | wc -c && cat /etc/hostname > /dev/null && \
         echo shm > /dev/shm/x && id -u"
    );
    let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    assert_eq!(said(&house, &cage(folder.path()), &script).await, (format!("kept\n2\n{own}\n"), 0));
    assert_eq!(std::fs::read_to_string(folder.path().join("other")).unwrap(), "kept\n");
    assert!(!Path::new("/dev/shm/x").exists());
    let terminal = ProcessSpec {
        cage: Some(cage(folder.path())),
        ..shell(TERMINAL, "test -t 0 && stty size && echo on a terminal > /dev/tty")
    };
    assert_eq!(told(&house, &terminal).await, ("24 80\r\non a terminal\r\n".into(), 0));
    house.shutdown().await;
}

/// Attempts to change something outside the cage, by name; each must fail.
const WRITES: &[(&str, &str)] = &[
    ("write a file", "echo x > OUT/file"),
    ("create a file", "echo x > OUT/new"),
    ("append to a file", "echo x >> OUT/file"),
    ("truncate a file", "truncate -s 0 OUT/file"),
    ("delete a file", "rm -f OUT/file"),
    ("rename a file out of the folder", "echo x > IN/x; mv IN/x OUT/x"),
    ("rename a file into the folder", "mv OUT/file IN/file"),
    ("link a file into the folder", "ln OUT/file IN/hard && echo x > IN/hard"),
    ("write through a symbolic link", "ln -s OUT/file IN/soft; echo x > IN/soft"),
    ("make a folder", "mkdir OUT/folder"),
    ("change a mode", "chmod 777 OUT/file"),
    ("change a time", "touch OUT/file"),
    ("change an owner", "chown 12345 OUT/file"),
    ("write through /proc/self/root", "echo x > /proc/self/root/OUT/file"),
    ("write through a path upwards", "cd IN; echo x > ../../../../../../../..OUT/file"),
    ("make a device", "mknod IN/disk b 8 0"),
    ("remount the root", "mount -o remount,rw /"),
    ("unmount a wall", "umount OUT; umount IN; echo x > OUT/file"),
    ("mount something over it", "mount -t tmpfs none OUT"),
    (
        "become somebody in a namespace",
        "unshare -r -m sh -c 'mount -o remount,rw /; echo x > OUT/file'",
    ),
    ("enter the server's namespaces", "nsenter -t 1 -m -- sh -c 'echo x > OUT/file'"),
    ("change root", "chroot / sh -c 'echo x > OUT/file'"),
    ("use a program that gives privileges", "su root -c 'echo x > OUT/file' </dev/null"),
    ("set a variable of the kernel", "echo 1 > /proc/sys/kernel/panic"),
    ("read a disk", "cat /dev/sda /dev/vda | head -c 1 | grep -q ."),
    ("raise a limit", "ulimit -c unlimited"),
];

#[tokio::test]
async fn every_named_way_to_change_something_outside_fails() {
    let house = start();
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = outside.path().join("file");
    for (name, script) in WRITES {
        std::fs::write(&file, "untouched").unwrap();
        let before = std::fs::metadata(&file).unwrap();
        let script = script.replace("/OUT", outside.path().to_str().unwrap());
        let script = script.replace("OUT", outside.path().to_str().unwrap());
        let script = script.replace("IN", inside.path().to_str().unwrap());
        let (_, code) = said(&house, &cage(inside.path()), &script).await;
        assert_ne!((name, code), (name, 0));
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "untouched", "{name}");
        assert_eq!(before.permissions(), after.permissions(), "{name}");
        assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "{name}");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{name}");
    }
    house.shutdown().await;
}

#[tokio::test]
async fn longer_paths_count_more_and_what_is_denied_cannot_be_seen() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let (git, secret) = (folder.path().join(".git"), folder.path().join("secret"));
    for path in [&git, &secret] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("x"), "text").unwrap();
    }
    let key = folder.path().join("key");
    std::fs::write(&key, "hidden").unwrap();
    let mut cage = cage(folder.path());
    cage.rules.extend([
        rule(&git, PathAccess::Read),
        rule(&secret, PathAccess::Deny),
        rule(&key, PathAccess::Deny),
    ]);
    let path = folder.path().display();
    let script = format!(
        "exec 2>/dev/null; cd {path}; echo ok > file && cat .git/x; echo no > .git/x || echo kept; \
         cat secret/x || echo unseen; cat key; ls secret || echo closed"
    );
    let (text, _) = said(&house, &cage, &script).await;
    assert_eq!(text, "textkept\nunseen\nclosed\n");
    let nothing = ProcessCage {
        rules: vec![
            rule("/usr", PathAccess::Read),
            rule("/bin", PathAccess::Read),
            rule("/lib", PathAccess::Read),
            rule("/lib64", PathAccess::Read),
        ],
        ..cage
    };
    let (text, code) = said(&house, &nothing, &format!("cat {path}/file || cat /etc/passwd")).await;
    assert!(code != 0 && text.contains("Permission denied"), "{text}");
    house.shutdown().await;
}

#[tokio::test]
async fn a_hidden_folder_stays_hidden_when_what_is_inside_is_replaced() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let (secret, key) = (folder.path().join("secret"), folder.path().join("key"));
    std::fs::create_dir(&secret).unwrap();
    for path in [&secret.join("key"), &key] {
        std::fs::write(path, "old").unwrap();
    }
    let mut cage = cage(Path::new("/dev/null"));
    cage.rules.extend([rule(&secret, PathAccess::Deny), rule(&key, PathAccess::Deny)]);
    let path = folder.path().display();
    let script = format!("cd {path}; echo ready; read x; cat secret/key 2>/dev/null || cat key");
    let spec = ProcessSpec { cage: Some(cage), ..shell(PIPED, &script) };
    let process = house.spawn(&spec).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    for path in [&secret.join("key"), &key] {
        std::fs::write(path.with_extension("new"), "new").unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }
    process.close_input().unwrap();
    heard.end().await;
    // A known limit: a file that replaces a hidden file is not hidden.
    assert_eq!(heard.text, "ready\nnew");
    house.shutdown().await;
}

/// Names the folder of the mounts to the child of the next test, which runs in its own mount namespace.
const MOUNTS: &str = "AIRLOCK_TEST_MOUNTS";

#[tokio::test]
async fn mounts_below_a_writable_folder_are_as_writable_as_they_were() {
    let house = start();
    let Some(folder) = std::env::var_os(MOUNTS) else {
        // A user who may not mount here may do so in a separate namespace.
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let name = suite::test_name(
            module_path!(),
            "mounts_below_a_writable_folder_are_as_writable_as_they_were",
        );
        let script = format!(
            "cd {} && mkdir 'a b' read only proc && mount -t tmpfs none 'a b' && mount -t tmpfs none read && \
             mount -t tmpfs -o ro none only && mount --rbind /proc proc && {MOUNTS}=$PWD exec {} --exact {name}",
            folder.path().display(),
            own.display()
        );
        let (text, code) =
            told(&house, &suite::spec(PIPES, &["unshare", "-rm", "sh", "-c", &script])).await;
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("1 passed"), "{text}");
        return house.shutdown().await;
    };
    let folder = Path::new(&folder);
    let mut cage = cage(folder);
    cage.rules.push(rule(folder.join("read"), PathAccess::Read));
    let script = format!(
        "exec 2>/dev/null; cd {}; for place in . 'a b' read only; do touch \"$place/x\" && echo $place; done; \
         echo x > proc/self/comm && echo proc",
        folder.display()
    );
    assert_eq!(said(&house, &cage, &script).await.0, ".\na b\n");
    house.shutdown().await;
}

/// Attempts to reach another process or host, as Python expressions.
const CALLS: &[(&str, &str)] = &[
    ("connect by TCP", "s.socket(s.AF_INET).connect(('127.0.0.1', PORT))"),
    ("connect by TCP of version 6", "s.socket(s.AF_INET6).connect(('::1', PORT))"),
    ("send by UDP", "s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))"),
    ("connect to a socket with a name", "s.socket(s.AF_UNIX).connect('PATH')"),
    ("connect to an abstract socket", "s.socket(s.AF_UNIX).connect('\\0airlock-abstract-PORT')"),
    (
        "send to a socket with a name",
        "s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b'x', 'PATH.datagrams')",
    ),
    (
        "send to a socket with a name from one of a pair",
        "s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'x', 'PATH.datagrams')",
    ),
    (
        "connect one of a pair to a socket with a name",
        "s.socketpair(s.AF_UNIX, s.SOCK_RAW)[0].connect('PATH.datagrams')",
    ),
    (
        "connect one of a pair of streams anew",
        "s.socketpair(s.AF_UNIX, s.SOCK_STREAM)[0].connect('PATH')",
    ),
    (
        "connect one of a pair of packets anew",
        "s.socketpair(s.AF_UNIX, s.SOCK_SEQPACKET)[0].connect('PATH.packets')",
    ),
    ("ask the kernel about networks", "s.socket(s.AF_NETLINK, s.SOCK_RAW, 0).bind((0, 0))"),
    ("see all packets", "s.socket(s.AF_PACKET, s.SOCK_RAW)"),
];

#[tokio::test]
async fn every_named_way_to_reach_somebody_fails_and_a_loopback_of_its_own_works() {
    use std::os::linux::net::SocketAddrExt as _;
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let path = folder.path().join("socket");
    let _named = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let datagrams =
        std::os::unix::net::UnixDatagram::bind(path.with_extension("datagrams")).unwrap();
    let _packets = packets(&path.with_extension("packets"));
    let name = format!("airlock-abstract-{port}");
    let name = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&name).unwrap();
    for network in [NetworkAccess::None, NetworkAccess::Loopback] {
        let cage = ProcessCage { network, ..cage(folder.path()) };
        for (name, call) in CALLS {
            // A datagram to the cage's own loopback is sent without an error, but no socket receives it.
            if network == NetworkAccess::Loopback && *name == "send by UDP" {
                continue;
            }
            let call = call.replace("PORT", &port).replace("PATH", path.to_str().unwrap());
            let (text, code) =
                said(&house, &cage, &format!("python3 -c \"import socket as s; {call}\"")).await;
            assert_eq!(
                (name, code, text.contains("Error")),
                (name, 1, true),
                "{network:?}: {text}"
            );
        }
    }
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0]).is_err(), "nothing came");
    let own = "python3 -c \"import socket as s; l = s.create_server(('127.0.0.1', 0)); \
               c = s.create_connection(l.getsockname()); l.accept()[0].send(b'hi'); print(c.recv(2))\"";
    let loopback = ProcessCage { network: NetworkAccess::Loopback, ..cage(folder.path()) };
    assert_eq!(said(&house, &loopback, own).await, ("b'hi'\n".into(), 0));
    assert_ne!(said(&house, &cage(folder.path()), own).await.1, 0);
    let open = ProcessCage { network: NetworkAccess::All, ..cage(folder.path()) };
    let call =
        format!("python3 -c \"import socket as s; s.create_connection(('127.0.0.1', {port}))\"");
    assert_eq!(said(&house, &open, &call).await, (String::new(), 0));
    house.shutdown().await;
}

/// Opens a named SOCK_SEQPACKET socket that accepts connections.
fn packets(path: &Path) -> std::os::fd::OwnedFd {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr};
    use std::os::fd::AsRawFd as _;
    let kind = SockType::SeqPacket;
    let socket =
        nix::sys::socket::socket(AddressFamily::Unix, kind, SockFlag::empty(), None).unwrap();
    nix::sys::socket::bind(socket.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    nix::sys::socket::listen(&socket, Backlog::new(1).unwrap()).unwrap();
    socket
}

#[tokio::test]
async fn pairs_of_sockets_work_where_they_lead_nowhere_else() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets");
    let _packets = packets(&path);
    let script = format!(
        "python3 -c \"
import errno, socket as s
for kind in s.SOCK_STREAM, s.SOCK_SEQPACKET:
    one, other = s.socketpair(s.AF_UNIX, kind | s.SOCK_CLOEXEC)
    one.send(b'hi')
    print(other.recv(2))
try: one.connect('{}')
except OSError as error: print(errno.errorcode[error.errno])\"",
        path.display()
    );
    for network in [NetworkAccess::None, NetworkAccess::Loopback] {
        let cage = ProcessCage { network, ..cage(folder.path()) };
        assert_eq!(said(&house, &cage, &script).await, ("b'hi'\nb'hi'\nEISCONN\n".into(), 0));
    }
    house.shutdown().await;
}

/// Attempts to change or inspect another process, as Python expressions.
const MEDDLING: &[(&str, &str)] = &[
    ("change its limits", "resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))"),
    ("change its priority", "os.setpriority(os.PRIO_PROCESS, pid, 19)"),
    ("change the priority of its group", "os.setpriority(os.PRIO_PGRP, pid, 19)"),
    ("change the priority of a user", "os.setpriority(os.PRIO_USER, 54321, 19)"),
    ("change its priority on disks", "call(SYS_ioprio_set, 1, pid, 3 << 13)"),
    ("change a user's priority on disks", "call(SYS_ioprio_set, 3, 54321, 3 << 13)"),
    ("choose its processors", "os.sched_setaffinity(pid, os.sched_getaffinity(0))"),
    ("choose its scheduler", "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))"),
    ("signal it", "os.kill(pid, 9)"),
    ("signal a thread of it", "call(SYS_tgkill, pid, pid, 9)"),
    ("signal it by a descriptor", "signal.pidfd_send_signal(os.pidfd_open(pid), 9)"),
    ("queue a signal", "call(SYS_rt_sigqueueinfo, pid, 9, ctypes.create_string_buffer(128))"),
    ("take a descriptor of it", "call(SYS_pidfd_getfd, os.pidfd_open(pid), 0, 0)"),
    ("compare it", "call(SYS_kcmp, pid, os.getpid(), 1, 0, 0)"),
    ("move its memory", "call(SYS_migrate_pages, pid, 8, place, place)"),
    ("read its memory", "call(SYS_process_vm_readv, pid, place, 1, place, 1, 0)"),
    ("watch it", "call(SYS_perf_event_open, 0, pid, -1, -1, 0)"),
    ("make a ring for calls", "call(SYS_io_uring_setup, 1, ctypes.create_string_buffer(120))"),
    ("use the numbers of x32", "call(0x40000000 + 39)"),
];

/// The Python prelude of these expressions.
const TOOLS: &str = "
import ctypes, os, resource, signal, sys
pid, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
place = (ctypes.c_size_t * 2)(1 << 12, 8)
def call(*arguments):
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if libc.syscall(*wide) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
";

#[tokio::test]
async fn every_named_way_to_meddle_with_another_process_fails() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let neighbour = house.spawn(&shell(PIPES, "sleep 1000")).await.unwrap();
    let pid = neighbour.pid();
    let limits = || std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let before = limits();
    let mut numbers = String::new();
    for (name, number) in [
        ("ioprio_set", libc::SYS_ioprio_set),
        ("tgkill", libc::SYS_tgkill),
        ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("kcmp", libc::SYS_kcmp),
        ("migrate_pages", libc::SYS_migrate_pages),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("io_uring_setup", libc::SYS_io_uring_setup),
    ] {
        numbers += &format!("SYS_{name} = {number}\n");
    }
    let tried = async |call: &str| {
        let script = format!("{TOOLS}{numbers}{call}");
        let spec = suite::spec(PIPES, &["python3", "-c", &script, &pid.to_string()]);
        told(&house, &ProcessSpec { cage: Some(cage(folder.path())), ..spec }).await
    };
    for (name, call) in MEDDLING {
        if cfg!(not(target_arch = "x86_64")) && name.contains("x32") {
            continue;
        }
        let (text, code) = tried(call).await;
        let is_refused = ["PermissionError", "ProcessLookupError"].iter().any(|e| text.contains(e));
        assert_eq!((name, code, is_refused), (name, 1, true), "{text}");
    }
    assert_eq!(limits(), before);
    assert!(neighbour.output().exit_code().is_none());
    let own = "
import threading
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
os.sched_setaffinity(0, os.sched_getaffinity(0))
def choose(number):
    os.sched_setaffinity(number, {min(os.sched_getaffinity(0))})
worker = threading.Thread(target=lambda: choose(threading.get_native_id()))
worker.start(); worker.join()
choose(os.getpid())
os.setpriority(os.PRIO_PROCESS, 0, 5)
print(os.nice(1))";
    assert_eq!(tried(own).await, ("6\n".into(), 0));
    neighbour.end_with(processes::EndMode::Kill);
    neighbour.gone().await;
    house.shutdown().await;
}

#[tokio::test]
async fn nobody_outside_can_be_signalled_traced_or_read() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let neighbour = house.spawn(&shell(PIPES, "sleep 1000")).await.unwrap();
    let pid = neighbour.pid();
    let trace =
        "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) != 0)";
    for (name, script) in [
        ("signal a neighbour", format!("kill -9 {pid}")),
        ("signal the keeper", "kill -9 $PPID".to_owned()),
        ("trace a neighbour", format!("python3 -c '{trace}' {pid}")),
        ("read a neighbour's environment", format!("cat /proc/{pid}/environ")),
        ("read a neighbour's memory", format!("head -c 1 /proc/{pid}/mem")),
        ("see a neighbour's files", format!("ls /proc/{pid}/root/")),
    ] {
        let (text, code) = said(&house, &cage(folder.path()), &script).await;
        assert_ne!((name, code), (name, 0), "{text}");
    }
    assert!(neighbour.output().exit_code().is_none());
    neighbour.end_with(processes::EndMode::Kill);
    neighbour.gone().await;
    house.shutdown().await;
}
