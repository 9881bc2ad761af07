//! A web server of a few pages, some of them malformed, that runs as long as the test holds it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The content of an address.
#[derive(Clone)]
pub(crate) enum Page {
    /// A content type and a text.
    Text(&'static str, String),
    /// A gigabyte of blanks with the content type of JSON.
    Flood,
    /// Never sends a response.
    Silence,
}

/// The pages by their paths. The server ends with the process: it holds nothing but a port.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) url: String,
    pages: Arc<Mutex<HashMap<String, Page>>>,
}

impl Web {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let web = Self { url, pages: Arc::default() };
        let pages = Arc::clone(&web.pages);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let pages = Arc::clone(&pages);
                // Some of these pages are for clients that disconnect in the middle.
                thread::spawn(move || drop(answer(stream, &pages)));
            }
        });
        web
    }

    /// Adds a page and returns its address.
    pub(crate) fn put(&self, path: &str, page: Page) -> String {
        self.pages.lock().unwrap().insert(path.to_owned(), page);
        format!("{}{path}", self.url)
    }
}

fn answer(stream: TcpStream, pages: &Mutex<HashMap<String, Page>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let is_get = head.starts_with("GET ");
    let page = pages.lock().unwrap().get(&path).cloned().filter(|_| is_get);
    let stream = reader.get_mut();
    let head = |status: &str, label: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {label}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    match page {
        None => stream.write_all(head("404 Not Found", "text/plain", 0).as_bytes()),
        Some(Page::Text(label, text)) => {
            stream.write_all(head("200 OK", label, text.len()).as_bytes())?;
            stream.write_all(text.as_bytes())
        }
        Some(Page::Flood) => {
            // Chunked: the client does not know the length in advance.
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let blanks = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
            (0..1_024).try_for_each(|_| stream.write_all(blanks.as_bytes()))
        }
        Some(Page::Silence) => {
            let mut rest = String::new();
            reader.read_line(&mut rest).map(drop)
        }
    }
}
