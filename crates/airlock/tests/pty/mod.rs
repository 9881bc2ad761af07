//! The real binary in a real terminal: a test types, and reads what a person would see.

use bytes::Bytes;
use processes::{
    Config, OutputSeq, Process, ProcessEvent, ProcessSpawner, ProcessSpec, ProcessStreams, PtySize,
    SelfProgram,
};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The longest wait for output. It is reached only if the output never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process spawner for terminals.
pub(crate) fn house() -> ProcessSpawner {
    let program = SelfProgram::At(env!("CARGO_BIN_EXE_airlock").into());
    ProcessSpawner::start(&Config { program, ..Default::default() }).unwrap()
}

/// A verb that runs in a terminal.
pub(crate) struct Terminal {
    process: Process,
    changes: processes::OutputChanges,
    after: OutputSeq,
    code: Option<i32>,
    pub(crate) text: String,
}

impl Terminal {
    /// Starts the binary in a terminal of this many columns, with only these variables in its environment.
    pub(crate) async fn open(
        house: &ProcessSpawner,
        columns: u16,
        env: &[(&str, &Path)],
        words: &[&str],
    ) -> Self {
        Self::open_in(house, Path::new("/"), columns, env, words).await
    }

    /// The same, with this working directory.
    pub(crate) async fn open_in(
        house: &ProcessSpawner,
        folder: &Path,
        columns: u16,
        env: &[(&str, &Path)],
        words: &[&str],
    ) -> Self {
        let program = OsString::from(env!("CARGO_BIN_EXE_airlock"));
        let variable =
            |(name, value): &(&str, &Path)| (OsString::from(name), OsString::from(value));
        let spec = ProcessSpec {
            argv: std::iter::once(program).chain(words.iter().map(OsString::from)).collect(),
            arg0: None,
            cwd: folder.into(),
            env: env.iter().map(variable).collect(),
            streams: ProcessStreams::Terminal(PtySize { rows: 24, columns }),
            cage: None,
        };
        let process = house.spawn(&spec).await.unwrap();
        let changes = process.output().changes();
        Self { process, changes, after: 0, code: None, text: String::new() }
    }

    /// Reads until the terminal has shown this text, and discards the output up to its end.
    pub(crate) async fn sees(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            assert!(self.next().await, "it ended without {wanted:?}: {:?}", self.text);
        }
        let (_, rest) = self.text.split_once(wanted).unwrap();
        self.text = rest.to_owned();
    }

    /// Types a text.
    pub(crate) async fn types(&self, text: &str) {
        let room = self.process.input_room(text.len()).await;
        self.process.write(Bytes::copy_from_slice(text.as_bytes()), room).unwrap();
    }

    /// Reads to the end, and returns the exit code.
    pub(crate) async fn ends(&mut self) -> i32 {
        while self.next().await {}
        self.code.expect("the exit comes before the end")
    }

    async fn next(&mut self) -> bool {
        let next = async {
            loop {
                if let Some(event) = self.process.output().next_after(self.after) {
                    return event;
                }
                self.changes.next().await;
            }
        };
        let event = tokio::time::timeout(PATIENCE, next).await;
        let event = event.unwrap_or_else(|_| panic!("nothing more came after {:?}", self.text));
        self.after = event.seq();
        self.process.output().release(self.after);
        match event {
            ProcessEvent::Output(chunk) => self.text += &String::from_utf8_lossy(&chunk.bytes),
            ProcessEvent::Exited { code, .. } => self.code = Some(code),
            ProcessEvent::Closed { .. } => return false,
        }
        true
    }
}
