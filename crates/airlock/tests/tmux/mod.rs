//! A real tmux, with its own server and socket. It is the reference for the contents of a terminal, and runs the verbs
//! that need a terminal.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest wait for output. It is reached only if the output never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether these programs are installed; a skipped check must not look like a passed one.
#[expect(clippy::print_stderr, reason = "whoever reads the tests must know")]
pub(crate) fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &&&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    match programs.iter().find(|name| !is_there(name)) {
        None => true,
        Some(missing) => {
            eprintln!(
                "SKIPPED, NOT PASSED: this check needs {missing}: cargo xtask test installs it"
            );
            false
        }
    }
}

/// The contents of a terminal, as far as two emulators can agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) rows: Vec<String>,
    /// The row and the column of the cursor.
    pub(crate) cursor: (u16, u16),
    pub(crate) is_alternate: bool,
}

/// A tmux with one window. Dropping it ends tmux and the programs that run in it.
pub(crate) struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// Runs a script in a window of this size, with only `PATH` in its environment.
    pub(crate) fn start(rows: u16, columns: u16, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // An empty configuration.
        std::fs::write(
            folder.path().join("tmux.conf"),
            "set -g status off\nset -g escape-time 0\n",
        )
        .unwrap();
        let tmux = Self { folder };
        let (rows, columns) = (rows.to_string(), columns.to_string());
        tmux.tell(&["new-session", "-d", "-s", "t", "-x", &columns, "-y", &rows, script]);
        tmux
    }

    /// Shows these bytes on a terminal of this size.
    pub(crate) fn shows(rows: u16, columns: u16, bytes: &[u8]) -> Shown {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let path = file.path().display();
        let script =
            format!("stty raw -echo; cat {path}; printf '\\033]2;all-was-shown\\007'; sleep 1000");
        let tmux = Self::start(rows, columns, &script);
        tmux.until(|tmux| tmux.ask("#{pane_title}") == "all-was-shown");
        tmux.shown()
    }

    /// The contents of the window.
    pub(crate) fn shown(&self) -> Shown {
        let cursor = self.ask("#{cursor_y} #{cursor_x} #{alternate_on} #{pane_width}");
        let numbers: Vec<u16> = cursor.split(' ').map(|number| number.parse().unwrap()).collect();
        // Without -e, tmux prints line-drawing characters as the letters that encode them.
        let rows = self.tell(&["capture-pane", "-e", "-p", "-t", "t"]);
        Shown {
            rows: plain(&rows).lines().map(|row| row.trim_end().to_owned()).collect(),
            // After the last column, tmux reports a position beyond it; the cursor waits on that column.
            cursor: (numbers[0], numbers[1].min(numbers[3] - 1)),
            is_alternate: numbers[2] == 1,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.tell(&["capture-pane", "-p", "-t", "t"])
    }

    /// Sends keys, by tmux's names for them.
    pub(crate) fn types(&self, keys: &[&str]) {
        self.tell(&[&["send-keys", "-t", "t"], keys].concat());
    }

    /// Pastes a text as a terminal does.
    pub(crate) fn pastes(&self, text: &str) {
        self.tell(&["set-buffer", "-b", "b", text]);
        self.tell(&["paste-buffer", "-p", "-b", "b", "-t", "t"]);
    }

    pub(crate) fn resizes(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.to_string(), columns.to_string());
        self.tell(&["resize-window", "-t", "t", "-x", &columns, "-y", &rows]);
    }

    /// Waits until the window shows this text.
    pub(crate) fn sees(&self, text: &str) {
        self.until(|tmux| tmux.text().contains(text));
    }

    pub(crate) fn ask(&self, format: &str) -> String {
        self.tell(&["display-message", "-p", "-t", "t", format]).trim_end().to_owned()
    }

    /// tmux sends no notification of changes, so this polls.
    pub(crate) fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "in vain: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn tell(&self, words: &[&str]) -> String {
        let output = self.command(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "it ends at once; its server ends with us")]
    fn command(&self, words: &[&str]) -> Output {
        let at = |name: &str| self.folder.path().join(name);
        Command::new("tmux")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .arg("-S")
            .arg(at("socket"))
            .arg("-f")
            .arg(at("tmux.conf"))
            .args(words)
            .current_dir(Path::new("/"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// The captured text without colours and links, and with line-drawing characters.
fn plain(captured: &str) -> String {
    const LETTERS: &str = "jklmnqtuvwx";
    const LINES: &str = "┘┐┌└┼─├┤┴┬│";
    let (mut text, mut is_drawn, mut rest) = (String::new(), false, captured.chars());
    while let Some(c) = rest.next() {
        match c {
            '\x0e' => is_drawn = true,
            '\x0f' => is_drawn = false,
            '\x1b' => match rest.next() {
                Some('[') => while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
                Some(']') => while rest.next().is_some_and(|c| c != '\\') {},
                _ => {}
            },
            c => {
                let line =
                    LETTERS.find(c).filter(|_| is_drawn).and_then(|at| LINES.chars().nth(at));
                text.push(line.unwrap_or(c));
            }
        }
    }
    text
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}
