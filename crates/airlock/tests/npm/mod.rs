//! Third-party servers, which `cargo xtask packages` installs under `target/`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The path of a file of an installed package.
pub(crate) fn file(path: &str) -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/node_modules");
    let file = modules.join(path);
    assert!(file.is_file(), "{path} is missing; `cargo xtask packages` installs it");
    file
}

/// A server over HTTP. Dropping it ends it.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
}

/// Starts the everything server over streamable HTTP on a free port.
#[expect(clippy::disallowed_methods, reason = "dropping the server ends this child")]
pub(crate) fn http_server(script: &Path) -> HttpServer {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new("node");
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The server announces on stderr when it listens. Its stderr must be read as long as it runs.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        if line.contains("listening") {
            break;
        }
    }
    std::thread::spawn(move || lines.for_each(drop));
    HttpServer { child, url: format!("http://127.0.0.1:{port}/mcp") }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
