//! Files of the server that no child may use by any means, and the visibility of other processes in a cage.

use crate::suite::{
    self, Heard, PIPED, PIPES, TERMINAL, cage, caged, gone, rule, said, shell, start, told,
};
use bytes::Bytes;
use processes::{
    EndMode, PathAccess, Process, ProcessSpawner, ProcessSpec, ProcessStreams, ProtectedPaths,
    ProtectionScope,
};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// The data directory, the key and the configuration file of a server.
struct ServerFiles {
    /// The directory is removed when this is dropped.
    _folder: tempfile::TempDir,
    data: PathBuf,
    key: PathBuf,
    config: PathBuf,
}

impl ServerFiles {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = root.join("data");
        std::fs::create_dir_all(data.join("tokens")).unwrap();
        std::fs::write(data.join("tokens/admin"), "secret of admin").unwrap();
        let (key, config) = (root.join("vault.key"), root.join("airlock.toml"));
        std::fs::write(&key, "secret of vault").unwrap();
        std::fs::write(&config, "as configured").unwrap();
        std::os::unix::fs::symlink(&data, root.join("link")).unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        Self { _folder: folder, data, key, config }
    }

    fn protected(&self, scope: ProtectionScope) -> ProtectedPaths {
        let hidden = vec![self.data.clone(), self.key.clone()];
        ProtectedPaths { hidden, read_only: vec![self.config.clone()], scope }
    }

    fn root(&self) -> &Path {
        self.data.parent().unwrap()
    }

    /// Returns a script with variables for the files and for the process id of the server, which is this process.
    fn script(&self, script: &str) -> String {
        let own = std::process::id();
        let root = self.root().display();
        format!(
            "R={root}; D=$R/data; K=$R/vault.key; C=$R/airlock.toml; S={own}; cd $R/work; {script}"
        )
    }
}

/// Attempts to read or to change the protected files. None of them may print a secret.
const WAYS: &[&str] = &[
    "cat $D/tokens/admin $K",
    "cat $R/link/tokens/admin; ls $D $R/link; cp -r $R $R/work/copy; cat $R/work/copy/data/tokens/admin",
    "cd $D && cat tokens/admin; cd $D/tokens && cat admin",
    "cat /proc/$S/root$D/tokens/admin /proc/1/root$D/tokens/admin /proc/$PPID/root$D/tokens/admin",
    "for p in /proc/[0-9]*; do cat $p/root$D/tokens/admin $p/cwd/data/tokens/admin; done",
    "for f in /proc/*/fd/*; do cat $f/tokens/admin $f/../vault.key; done",
    "umount $D; umount -l $D; umount $K; cat $D/tokens/admin $K",
    "unshare -m sh -c \"umount -l $D; umount -l $K; cat $D/tokens/admin $K\"",
    "unshare -Urm sh -c \"umount -l $D; umount -l $K; cat $D/tokens/admin $K\"",
    "unshare -Urm sh -c \"mount --bind $R /mnt; cat /mnt/data/tokens/admin; mount --rbind / /mnt; umount -l /mnt$D; cat /mnt$D/tokens/admin\"",
    "mount --bind $R /mnt; cat /mnt/data/tokens/admin",
    "unshare -Urm sh -c \"mount -t overlay -o lowerdir=$R none /mnt; cat /mnt/data/tokens/admin\"",
    "unshare -Urmpf --mount-proc sh -c \"cat /proc/*/root$D/tokens/admin\"",
    "nsenter -t $S -m cat $D/tokens/admin; nsenter -t 1 -m cat $D/tokens/admin",
    "nsenter -t $PPID -m cat $D/tokens/admin; nsenter -t $S -U -m cat $D/tokens/admin",
    "mv $D $R/moved; cat $R/moved/tokens/admin; ln $K $R/work/key; cat $R/work/key",
    "mv $R $R-moved; cat $R-moved/data/tokens/admin; mv $R-moved $R",
    "head -c 100000000 /proc/$S/mem; cat /proc/$S/environ | tr '\\0' '\\n' | grep SECRET",
];

async fn expect_hidden(
    house: &ProcessSpawner,
    files: &ServerFiles,
    spec: impl Fn(&str) -> ProcessSpec,
) {
    for way in WAYS {
        let (text, _) = told(house, &spec(&files.script(&format!("({way}) 2>&1")))).await;
        assert!(!text.contains("secret of"), "{way}: {text}");
        assert!(files.data.join("tokens/admin").exists(), "{way}: {text}");
    }
    let (text, code) = told(house, &spec(&files.script("cat $C"))).await;
    assert_eq!((text.as_str(), code), ("as configured", 0));
    for way in ["echo x > $C", "mv $C $C.old", "rm -f $C", "ln -f /etc/passwd $C"] {
        told(house, &spec(&files.script(&format!("({way}) 2>&1")))).await;
        assert_eq!(std::fs::read_to_string(&files.config).unwrap(), "as configured", "{way}");
    }
    let script = files.script("echo fine > own; cat own");
    let (text, code) = told(house, &spec(&script)).await;
    assert_eq!((text.trim_end(), code), ("fine", 0));
}

async fn check_every_kind_of_child() {
    let files = ServerFiles::new();
    let house = suite::start_with(files.protected(ProtectionScope::EveryProgram));
    // Programs with pipes, programs with terminals, and caged programs with full access to files.
    for streams in [PIPES, TERMINAL] {
        expect_hidden(&house, &files, |script| shell(streams, script)).await;
    }
    let mut open = cage(files.root());
    open.rules = vec![
        rule("/", PathAccess::Write),
        rule(&files.data, PathAccess::Write),
        rule(files.data.join("tokens"), PathAccess::Write),
        rule(&files.key, PathAccess::Read),
        rule(&files.config, PathAccess::Write),
    ];
    expect_hidden(&house, &files, |script| caged(&open, script)).await;
    expect_hidden(&house, &files, |script| caged(&cage(files.root()), script)).await;
    house.shutdown().await;
}

#[tokio::test]
async fn no_kind_of_child_can_read_or_change_what_is_protected() {
    check_every_kind_of_child().await;
}

/// The same for a server that is not root, which uses a user namespace. Root runs this test again as another user.
#[test]
fn no_child_of_a_server_that_is_not_root_can_either() {
    const AGAIN: &str = "AIRLOCK_TEST_AS_NOBODY";
    const NOBODY: u32 = 65_534;
    if std::env::var_os(AGAIN).is_some() || !nix_is_root() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(check_every_kind_of_child());
    }
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let test = suite::test_name(module_path!(), "no_child_of_a_server_that_is_not_root_can_either");
    let output =
        command.args(["--exact", &test, "--nocapture"]).env(AGAIN, "1").env("TMPDIR", "/tmp");
    let output = output.uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
}

fn nix_is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[tokio::test]
async fn programs_without_a_cage_use_them_only_where_the_scope_says_so() {
    let files = ServerFiles::new();
    let house = suite::start_with(files.protected(ProtectionScope::CagedPrograms));
    let (text, _) = told(&house, &shell(PIPES, &files.script("cat $D/tokens/admin"))).await;
    assert_eq!(text, "secret of admin");
    expect_hidden(&house, &files, |script| caged(&cage(files.root()), script)).await;
    house.shutdown().await;
}

#[tokio::test]
async fn what_appears_or_is_replaced_later_is_hidden_from_the_next_program() {
    let files = ServerFiles::new();
    std::fs::rename(&files.data, files.root().join("elsewhere")).unwrap();
    let house = suite::start_with(files.protected(ProtectionScope::EveryProgram));
    let both = files.script("cat $D/tokens/admin $K 2>&1");
    assert!(!told(&house, &shell(PIPES, &both)).await.0.contains("secret of"));
    std::fs::rename(files.root().join("elsewhere"), &files.data).unwrap();
    let fresh = files.root().join("fresh.key");
    std::fs::write(&fresh, "secret of another key").unwrap();
    std::fs::rename(&fresh, &files.key).unwrap();
    for _ in 0..3 {
        let (text, _) = told(&house, &shell(PIPES, &both)).await;
        assert!(!text.contains("secret of"), "{text}");
    }
    // Mounts that hide the files do not accumulate.
    let script = files.script("grep -c $R/ /proc/self/mountinfo");
    assert_eq!(told(&house, &shell(PIPES, &script)).await.0.trim(), "3");
    house.shutdown().await;
}

#[tokio::test]
async fn a_directory_that_is_mounted_twice_is_hidden_in_both_places() {
    let files = ServerFiles::new();
    let second = files.root().join("second");
    std::fs::create_dir(&second).unwrap();
    // If mounting is not permitted, the files have no second path.
    let mounted =
        run("mount", &["--bind", files.root().to_str().unwrap(), second.to_str().unwrap()]);
    let house = suite::start_with(files.protected(ProtectionScope::EveryProgram));
    let (text, _) =
        told(&house, &shell(PIPES, &files.script("cat $R/second/data/tokens/admin"))).await;
    if mounted {
        assert!(run("umount", &[second.to_str().unwrap()]));
    }
    assert!(!text.contains("secret of"), "{text}");
    house.shutdown().await;
}

#[expect(clippy::disallowed_methods, reason = "it is waited for")]
fn run(program: &str, words: &[&str]) -> bool {
    std::process::Command::new(program).args(words).status().is_ok_and(|status| status.success())
}

#[tokio::test]
async fn what_root_can_do_besides_it_still_can() {
    if !nix_is_root() {
        return;
    }
    let files = ServerFiles::new();
    let house = suite::start_with(files.protected(ProtectionScope::EveryProgram));
    let script = files.script(
        "set -e; touch own; chown 65534:65534 own; stat -c %u own; stat -c %u /etc/passwd; \\
         cat /etc/shadow >/dev/null; python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 0)); \\
         socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print(\"raw\")'; su nobody -s /bin/sh -c 'id -u'",
    );
    assert_eq!(told(&house, &shell(PIPES, &script)).await, ("65534\n0\nraw\n65534\n".into(), 0));
    house.shutdown().await;
}

#[tokio::test]
async fn a_cage_shows_its_own_processes_only_and_clients_see_the_usual_numbers() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let neighbour = house.spawn(&shell(PIPES, "sleep 1000; : --token=very-secret")).await.unwrap();
    let script =
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; ls -d /proc/[0-9]*; ps ax 2>/dev/null";
    let (text, _) = said(&house, &cage(folder.path()), script).await;
    assert!(!text.contains("very-secret"), "{text}");
    assert!(!text.contains(&format!("/proc/{}\n", neighbour.pid())), "{text}");
    // The process id that a client receives is the one outside the cage.
    let spec = ProcessSpec {
        streams: PIPED,
        ..caged(&cage(folder.path()), "echo self=$$; read x; exit 5")
    };
    let process = house.spawn(&spec).await.unwrap();
    let mut heard = Heard::new(&process);
    let inside = heard.number("self").await;
    assert_ne!(inside, process.pid());
    let outside = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let numbers = outside.lines().find(|line| line.starts_with("NSpid:")).unwrap().to_owned();
    assert!(numbers.ends_with(&format!("{}\t{inside}", process.pid())), "{numbers}");
    let room = process.input_room(1).await;
    process.write(Bytes::from_static(b"\n"), room).unwrap();
    assert_eq!(heard.end().await.0, 5);
    process.gone().await;
    neighbour.end_with(EndMode::Kill);
    neighbour.gone().await;
    house.shutdown().await;
}

async fn typed(process: &Process, text: &'static str) {
    let room = process.input_room(text.len()).await;
    process.write(Bytes::from_static(text.as_bytes()), room).unwrap();
}

async fn check_job_control(house: &ProcessSpawner, spec: &ProcessSpec) {
    let process = house.spawn(spec).await.unwrap();
    let mut heard = Heard::new(&process);
    typed(&process, "stty -echo; sh -c \"echo sta''rted; exec sleep 1000\"\n").await;
    heard.until("started").await;
    for (keys, answer) in [
        ("\x1a", "Stopped"),
        ("bg; echo in''-background\n", "in-background"),
        ("kill -TERM %1; wait %1; echo status=$?\n", "status=143"),
        ("tty; echo end''ed\n", "ended"),
    ] {
        typed(&process, keys).await;
        heard.until(answer).await;
    }
    typed(&process, "exit 7\n").await;
    assert_eq!(heard.end().await.0, 7);
    process.gone().await;
}

#[tokio::test]
async fn jobs_can_be_stopped_and_continued_in_every_kind_of_child() {
    let files = ServerFiles::new();
    let house = suite::start_with(files.protected(ProtectionScope::EveryProgram));
    let shell = suite::spec(TERMINAL, &["bash", "--norc", "--noprofile", "-i"]);
    check_job_control(&house, &shell).await;
    let in_cage = ProcessSpec { cage: Some(cage(files.root())), ..shell };
    check_job_control(&house, &in_cage).await;
    house.shutdown().await;
}

#[tokio::test]
async fn a_family_in_a_cage_ends_with_its_program_its_subreaper_and_its_server() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let daemon = "setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 & echo ready";
    let spawn = async |script: &str, streams: ProcessStreams| {
        let spec = ProcessSpec { streams, ..caged(&cage(folder.path()), script) };
        let process = house.spawn(&spec).await.unwrap();
        let mut heard = Heard::new(&process);
        heard.until("ready").await;
        (process, heard)
    };
    // A program that exits leaves its children running until the process is ended.
    let (process, mut heard) = spawn(&format!("{daemon}; exit 4"), PIPES).await;
    assert_eq!(heard.end().await.0, 4);
    assert!(!process.is_gone());
    process.end_with(EndMode::Kill);
    process.gone().await;
    // When orphans exit by themselves, the process is gone.
    let (process, mut heard) = spawn("(sleep 0.1 &); echo ready; exit 6", PIPES).await;
    assert_eq!(heard.end().await.0, 6);
    process.gone().await;
    // Killing the subreaper kills all its processes.
    let (process, _) = spawn(&format!("{daemon}; sleep 1000"), PIPES).await;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
    let subreaper = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
    assert!(run("kill", &["-9", &subreaper]));
    gone(process.pid()).await;
    process.gone().await;
    // The shutdown of the spawner does the same.
    let (process, _) = spawn(&format!("{daemon}; sleep 1000"), PIPES).await;
    house.shutdown().await;
    gone(process.pid()).await;
}
