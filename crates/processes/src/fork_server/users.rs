//! Creates user namespaces in which users have the same numbers as outside.

use nix::unistd::{ForkResult, fork};
use std::io::{self, Read as _, Write as _};

/// Creates a user namespace and those of `flags`. If this process may, it maps every user to its number;
/// otherwise only its own user is mapped, and files of others seem to belong to `nobody`.
pub(super) fn take_user_namespace(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: it always succeeds and takes no arguments.
    if unsafe { libc::geteuid() } == 0 && take_with_all_users(flags).is_ok() {
        return Ok(());
    }
    take_with_own_user(flags)
}

/// Creates the namespaces; only the own user and group are mapped, to the same numbers.
pub(super) fn take_with_own_user(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: both always succeed and take no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER | flags)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// A process outside the new namespace writes the tables, which requires the right to change users there.
fn take_with_all_users(flags: libc::c_int) -> io::Result<()> {
    let known = |table: &str| std::fs::read_to_string(table).map(|table| same_numbers(&table));
    let (users, groups) = (known("/proc/self/uid_map")?, known("/proc/self/gid_map")?);
    let ((mut taken, take), (mut done, finish)) = (io::pipe()?, io::pipe()?);
    let own = std::process::id();
    // SAFETY: this process has one thread.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop((take, done));
            let is_taken = taken.read_exact(&mut [0]).is_ok();
            let write =
                |name: &str, table: &str| std::fs::write(format!("/proc/{own}/{name}"), table);
            if is_taken && write("uid_map", &users).is_ok() && write("gid_map", &groups).is_ok() {
                let _ = (&finish).write_all(&[1]);
            }
            crate::helper_process::end_process(0)
        }
        ForkResult::Parent { child } => {
            drop((taken, finish));
            let answer = unshare(libc::CLONE_NEWUSER | flags);
            if answer.is_ok() {
                (&take).write_all(&[1])?;
            }
            drop(take);
            let is_done = done.read_exact(&mut [0]);
            let _ = nix::sys::wait::waitpid(child, None);
            answer.and(is_done)
        }
    }
}

/// A table that maps every known number to itself.
fn same_numbers(table: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [inside, _, n_users] => Some(format!("{inside} {inside} {n_users}\n")),
            _ => None,
        }
    };
    table.lines().filter_map(line).collect()
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: it takes no pointers; the process has one thread.
    if unsafe { libc::unshare(flags) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_who_is_known_keeps_the_number() {
        let table = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(same_numbers(table), "0 0 1\n1 1 65536\n");
    }
}
