//! Explains why a port is not available: which process listens there, as far as this account can see.

use crate::exit::UsageError;
use server::ServerStartError;
use std::net::SocketAddr;
use std::path::Path;

/// The number of processes that are searched; a machine has fewer.
const PROCESSES_MAX: usize = 100_000;

/// The error for a person: the owner of the port, and the flag that chooses another.
pub(super) fn explain(error: ServerStartError) -> anyhow::Error {
    let ServerStartError::Bind(address, cause) = &error else { return error.into() };
    if cause.kind() != std::io::ErrorKind::AddrInUse {
        let text = format!(
            "could not listen on {address}: {cause}; choose another address with --listen IP:PORT"
        );
        return UsageError(text).into();
    }
    let owner = listening_process(*address).map_or_else(
        || "another process, which this account cannot see".to_owned(),
        |(pid, name)| format!("{name} (process {pid})"),
    );
    anyhow::anyhow!(
        "could not listen on {address}: {owner} listens there; stop it, or choose another port with --listen {}:0",
        address.ip()
    )
}

/// Pid and name of the process that listens on this port.
fn listening_process(address: SocketAddr) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let inode = tables.iter().flatten().find_map(|table| listening_inode(table, address.port()))?;
    let socket = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find_map(|pid: u32| {
        let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let is_it = |entry: std::fs::DirEntry| {
            std::fs::read_link(entry.path()).is_ok_and(|link| link == Path::new(&socket))
        };
        open.any(is_it).then(|| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            (pid, name.trim().to_owned())
        })
    })
}

/// The inode of the socket that listens on a port, in the format of /proc/net/tcp.
fn listening_inode(table: &str, port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let local = fields.get(1)?.rsplit(':').next()?;
        let is_it = fields.get(3) == Some(&LISTEN) && u16::from_str_radix(local, 16) == Ok(port);
        if is_it { fields.get(9)?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_listens_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (pid, _) = listening_process(address).unwrap();
        assert_eq!(pid, std::process::id());
        let table = "  sl  local_address rem_address   st\n\
                     0: 0100007F:12B4 00000000:0000 0A 0:0 00:0 0 0 0 77 1\n\
                     1: 0100007F:12B5 00000000:0000 01 0:0 00:0 0 0 0 78 1\n";
        assert_eq!(listening_inode(table, 0x12B4), Some(77));
        assert_eq!(listening_inode(table, 0x12B5), None);
    }
}
