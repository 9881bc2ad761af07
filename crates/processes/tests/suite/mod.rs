//! Helpers for the tests: a process spawner, and functions that check what it leaves behind.

use processes::{
    CageLimits, Config, NetworkAccess, OutputSeq, OutputStream, PathAccess, PathRule, PipeInput,
    Process, ProcessCage, ProcessEvent, ProcessSpawner, ProcessSpec, ProcessStreams,
    ProtectedPaths, PtySize, SelfProgram,
};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// A test that waits longer than this waits for an event that never happens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const PIPES: ProcessStreams = ProcessStreams::Pipes(PipeInput::Null);
pub(crate) const PIPED: ProcessStreams = ProcessStreams::Pipes(PipeInput::Pipe);
pub(crate) const TERMINAL: ProcessStreams =
    ProcessStreams::Terminal(PtySize { rows: 24, columns: 80 });

pub(crate) fn start() -> ProcessSpawner {
    start_with(ProtectedPaths::default())
}

pub(crate) fn start_with(protected: ProtectedPaths) -> ProcessSpawner {
    let program = SelfProgram::At(env!("CARGO_BIN_EXE_fork-server-for-tests").into());
    ProcessSpawner::start(&Config { program, protected }).unwrap()
}

/// Fills the pool of waiting subreapers.
pub(crate) async fn fill(house: &ProcessSpawner) {
    let mut all = vec![];
    for _ in 0..processes::SPARES_MAX {
        all.push(house.spawn(&spec(PIPED, &["cat"])).await.unwrap());
    }
    for process in all {
        process.close_input().unwrap();
        Heard::new(&process).end().await;
        process.gone().await;
    }
}

/// Returns the name of a test in this binary, for a test that runs itself again in another namespace or as another user.
pub(crate) fn test_name(module: &str, test: &str) -> String {
    let (_, below) = module.split_once("::").expect("tests are in modules of the binary");
    format!("{below}::{test}")
}

pub(crate) fn spec(streams: ProcessStreams, argv: &[&str]) -> ProcessSpec {
    ProcessSpec {
        argv: argv.iter().map(OsString::from).collect(),
        arg0: None,
        cwd: "/tmp".into(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        streams,
        cage: None,
    }
}

pub(crate) fn shell(streams: ProcessStreams, script: &str) -> ProcessSpec {
    spec(streams, &["/bin/sh", "-c", script])
}

/// Collects the output of a process in order, and releases each chunk after reading it.
pub(crate) struct Heard {
    pub(crate) process: Process,
    changes: processes::OutputChanges,
    after: OutputSeq,
    pub(crate) text: String,
}

impl Heard {
    pub(crate) fn new(process: &Process) -> Self {
        let changes = process.output().changes();
        Self { process: process.clone(), changes, after: 0, text: String::new() }
    }

    pub(crate) async fn next(&mut self) -> ProcessEvent {
        let next = async {
            loop {
                if let Some(event) = self.process.output().next_after(self.after) {
                    return event;
                }
                self.changes.next().await;
            }
        };
        let event = tokio::time::timeout(PATIENCE, next).await.expect("something happens in time");
        assert_eq!(event.seq(), self.after + 1, "numbers have no holes");
        self.after = event.seq();
        self.process.output().release(self.after);
        if let ProcessEvent::Output(chunk) = &event {
            self.text += &String::from_utf8_lossy(&chunk.bytes);
        }
        event
    }

    /// Reads output until it contains `text`.
    pub(crate) async fn until(&mut self, text: &str) {
        while !self.text.contains(text) {
            self.next().await;
        }
    }

    /// Returns the number after `name=` in the output, once its line is complete.
    pub(crate) async fn number(&mut self, name: &str) -> i32 {
        loop {
            let behind = self.text.split_once(&format!("{name}=")).map(|(_, rest)| rest);
            if let Some((number, _)) = behind.and_then(|rest| rest.split_once('\n')) {
                return number.trim().parse().unwrap();
            }
            self.next().await;
        }
    }

    /// Reads all output. Returns the exit code and an abbreviated order of the events.
    pub(crate) async fn end(&mut self) -> (i32, String) {
        let (mut code, mut order) = (None, String::new());
        loop {
            match self.next().await {
                ProcessEvent::Output(chunk) => order.push(match chunk.stream {
                    OutputStream::Stdout => 'o',
                    OutputStream::Stderr => 'e',
                    OutputStream::Terminal => 't',
                }),
                ProcessEvent::Exited { code: seen, .. } => {
                    code = Some(seen);
                    order.push('X');
                }
                ProcessEvent::Closed { .. } => {
                    return (code.expect("the exit comes first"), order + "C");
                }
            }
        }
    }
}

/// Starts a process and reads its output to the end.
pub(crate) async fn told(house: &ProcessSpawner, spec: &ProcessSpec) -> (String, i32) {
    let process = house.spawn(spec).await.unwrap();
    let mut heard = Heard::new(&process);
    let (code, _) = heard.end().await;
    (heard.text, code)
}

/// Waits until a process is gone: neither alive nor a zombie of this process.
pub(crate) async fn gone(pid: i32) {
    let wait = async {
        while Path::new(&format!("/proc/{pid}")).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{pid} is still there"));
}

pub(crate) fn rule(path: impl AsRef<Path>, access: PathAccess) -> PathRule {
    PathRule { path: path.as_ref().to_owned(), access }
}

/// Returns a cage that may read everything, write this folder, and use no network.
pub(crate) fn cage(folder: &Path) -> ProcessCage {
    let rules = vec![rule("/", PathAccess::Read), rule(folder, PathAccess::Write)];
    ProcessCage { rules, network: NetworkAccess::None, limits: CageLimits::default() }
}

pub(crate) fn caged(cage: &ProcessCage, script: &str) -> ProcessSpec {
    ProcessSpec { cage: Some(cage.clone()), ..shell(PIPES, script) }
}

pub(crate) async fn said(
    house: &ProcessSpawner,
    cage: &ProcessCage,
    script: &str,
) -> (String, i32) {
    told(house, &caged(cage, script)).await
}
