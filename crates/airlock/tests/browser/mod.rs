//! A real browser, driven through WebDriver. Debian's chromium and chromium-driver; `cargo xtask test`
//! installs them.

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The longest wait for something to appear. It is reached only if the thing never appears.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser window. Close it with [`Browser::close`]; dropping it ends the driver and the browser.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Driver,
}

struct Driver {
    child: Child,
    _profile: tempfile::TempDir,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The browser is in the driver's process group.
        kill_group(self.child.id());
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn kill_group(leader: u32) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{leader}")]).status();
}

impl Browser {
    /// Opens a window of the given size.
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
    pub(crate) async fn open(width: u32, height: u32) -> Self {
        use std::os::unix::process::CommandExt as _;
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver is installed by cargo xtask test");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let driver = Driver { child, _profile: profile };
        let port = lines
            .find_map(|line| {
                let line = line.unwrap();
                let port = line.split("successfully on port ").nth(1)?;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("the driver says its port");
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--force-device-scale-factor=1",
            // A name for this machine that is not a secure context, as another machine's address would be.
            "--host-resolver-rules=MAP airlock.test 127.0.0.1",
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", driver._profile.path().display()),
        ]);
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".into(), json!({ "args": arguments }));
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        client.set_window_size(width, height).await.unwrap();
        Self { client, driver }
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// Waits for an element and returns it.
    pub(crate) async fn find(&self, css: &str) -> fantoccini::elements::Element {
        let waiting = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css));
        waiting.await.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    pub(crate) async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap();
    }

    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let input = self.find(css).await;
        input.clear().await.unwrap();
        input.send_keys(text).await.unwrap();
    }

    /// Waits until the page shows the text.
    pub(crate) async fn sees(&self, text: &str) {
        let quoted = serde_json::to_string(text).unwrap();
        let script = format!("return document.body.innerText.includes({quoted})");
        self.until(&script, text).await;
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, script: &str, what: &str) {
        let began = std::time::Instant::now();
        while self.run(script).await != Value::Bool(true) {
            let page = self.run("return document.body.innerText").await;
            assert!(began.elapsed() < PATIENCE, "{what} never appeared: {page}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, vec![]).await.unwrap()
    }

    /// Closes the window and ends the driver.
    pub(crate) async fn close(self) {
        self.client.close().await.unwrap();
        drop(self.driver);
    }
}
