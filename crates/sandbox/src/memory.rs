//! Determines the available memory: of the machine, or of our cgroup.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// The memory that we could still use, in bytes; `None` if it is unknown. `root` is `/`.
pub(crate) fn left_bytes(root: &Path) -> Option<u64> {
    let meminfo = read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let machine = bytes_after("MemAvailable:", &meminfo);
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let groups = groups.lines().filter_map(|line| MemoryCgroup::from_line(line)?.left_bytes(root));
    machine.into_iter().chain(groups).min()
}

/// The files in which our cgroups count out-of-memory kills.
pub(crate) fn oom_kill_files(root: &Path) -> Vec<PathBuf> {
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| MemoryCgroup::from_line(line)?.oom_kill_file(root)).collect()
}

/// The size after a name, in the format of /proc.
pub(crate) fn bytes_after(name: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A cgroup whose memory the kernel accounts together, such as a container.
struct MemoryCgroup<'l> {
    dialect: &'static CgroupVersion,
    /// Relative to the root of the cgroup hierarchy.
    path: &'l str,
}

/// The file names of a cgroup, which differ between the two versions.
struct CgroupVersion {
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Has the line `oom_kill` with the number of processes killed for lack of memory.
    kills: &'static str,
    /// The line of `memory.stat` that counts reclaimable cache.
    idle: &'static str,
}

const FIRST: CgroupVersion = CgroupVersion {
    folder: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    kills: "memory.oom_control",
    idle: "total_inactive_file ",
};

const SECOND: CgroupVersion = CgroupVersion {
    folder: "sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    kills: "memory.events",
    idle: "inactive_file ",
};

impl<'l> MemoryCgroup<'l> {
    /// Parses a line of `/proc/self/cgroup`: a number, the controllers, the path.
    fn from_line(line: &'l str) -> Option<Self> {
        let (number, rest) = line.split_once(':')?;
        let (counted, path) = rest.split_once(':')?;
        let dialect = match (number, counted) {
            ("0", "") => &SECOND,
            _ if counted.split(',').any(|counted| counted == "memory") => &FIRST,
            _ => return None,
        };
        Some(Self { dialect, path: path.trim_start_matches('/') })
    }

    /// As in [`Self::left_bytes`], the path may name a folder that cannot be seen from here.
    fn oom_kill_file(&self, root: &Path) -> Option<PathBuf> {
        let top = root.join(self.dialect.folder);
        let own = [top.join(self.path), top];
        own.into_iter().map(|folder| folder.join(self.dialect.kills)).find(|file| file.is_file())
    }

    /// What the tightest of the enclosing cgroups has left. Within a container the path may name folders
    /// that are only visible outside; the cgroup itself is then mounted at the top.
    fn left_bytes(&self, root: &Path) -> Option<u64> {
        let top = root.join(self.dialect.folder);
        let folder = top.join(self.path);
        let around = folder.ancestors().take_while(|folder| folder.starts_with(&top));
        around.filter_map(|folder| self.dialect.left_bytes(folder)).min()
    }
}

impl CgroupVersion {
    fn left_bytes(&self, folder: &Path) -> Option<u64> {
        let number = |name| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        // "max" is not a number: there is no limit.
        let limit = number(self.limit)?;
        let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let idle = stat.lines().find_map(|line| line.strip_prefix(self.idle)?.parse().ok());
        let used = number(self.used)?.saturating_sub(idle.unwrap_or(0));
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A machine with 2 GiB available, and these additional files.
    fn machine(files: &[(&str, String)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let meminfo = ("proc/meminfo", "MemFree: 1 kB\nMemAvailable:   2097152 kB\n".to_owned());
        for (path, text) in files.iter().chain([&meminfo]) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[track_caller]
    fn check(files: &[(&str, String)], expected_mib: u64) {
        assert_eq!(left_bytes(machine(files).path()), Some(expected_mib * MIB));
    }

    fn bytes(mib: u64) -> String {
        format!("{}\n", mib * MIB)
    }

    #[test]
    fn a_size_is_read_as_the_kernel_writes_it() {
        let available = |text| bytes_after("MemAvailable:", text);
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemAvailable: lots\n"), None);
        assert_eq!(available(""), None);
    }

    #[test]
    fn without_a_group_it_is_what_the_machine_has_left() {
        check(&[], 2048);
        let unlimited =
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712".to_owned());
        check(&[("proc/self/cgroup", "4:memory:/\n".into()), unlimited], 2048);
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(left_bytes(nowhere.path()), None);
    }

    #[test]
    fn a_container_has_what_its_group_has_left_and_idle_files_count_as_room() {
        check(
            &[
                ("proc/self/cgroup", "0::/\n".into()),
                ("sys/fs/cgroup/memory.max", bytes(512)),
                ("sys/fs/cgroup/memory.current", bytes(200)),
                (
                    "sys/fs/cgroup/memory.stat",
                    format!("anon 1\ninactive_file {}\nactive_file 7\n", 100 * MIB),
                ),
            ],
            412,
        );
    }

    #[test]
    fn the_tightest_of_the_groups_around_us_counts() {
        check(
            &[
                ("proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n".into()),
                ("sys/fs/cgroup/a/memory.max", bytes(300)),
                ("sys/fs/cgroup/a/memory.current", bytes(100)),
                ("sys/fs/cgroup/a/b/memory.max", "max\n".into()),
                ("sys/fs/cgroup/a/b/memory.current", bytes(90)),
            ],
            200,
        );
    }

    #[test]
    fn the_first_version_of_groups_is_understood_also_where_its_path_is_not_to_be_seen() {
        check(
            &[
                ("proc/self/cgroup", "7:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n".into()),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", bytes(256)),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", bytes(300)),
                (
                    "sys/fs/cgroup/memory/memory.stat",
                    format!("inactive_file 5\ntotal_inactive_file {}\n", 60 * MIB),
                ),
            ],
            16,
        );
    }
}
