//! The page on which a person decides, in a real browser.

use crate::browser::Browser;
use crate::echo::Echo;
use crate::server_fixture::{Answer, Served, airlock};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fresh() -> (TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    (dir, served)
}

/// A link that signs a browser in and opens the inbox or one question.
fn link(served: &Served, id: Option<&str>) -> String {
    let mut command = airlock(&["open", "--print", "--data-dir"]);
    command.arg(&served.data_dir).args(id);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a program without waiting for it, and returns its `run_…` id.
fn start(served: &Served, code: &str) -> String {
    let body = json!({ "code": code }).to_string();
    let answer = served.client("run").post("/api/executions?wait=0", &body);
    answer.header("airlock-execution").unwrap().to_owned()
}

/// Waits for the end of an execution.
fn end(served: &Served, execution: &str) -> Answer {
    let client = served.client("run");
    loop {
        let answer = client.get(&format!("/api/executions/{execution}?wait=60000"));
        if answer.json()["status"] == json!("completed") {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn appended(served: &Served) -> String {
    std::fs::read_to_string(served.data_dir.join("demo-append.txt")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_in_the_browser_and_the_program_goes_on() {
    let (_dir, served) = fresh();
    let question = served
        .client("run")
        .execute("const line: string = 'hello'\n\nreturn await tools.demo.append({ line })")
        .question();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&question))).await;
    browser.sees("tools.demo.append").await;
    browser.sees("hello").await;
    browser.sees("return await tools.demo.append").await;
    let marked = browser.find(".lines mark").await;
    assert_eq!(marked.text().await.unwrap().trim(), "return await tools.demo.append({ line })");
    let said = marked.attr("aria-label").await.unwrap();
    assert_eq!(said.unwrap(), "line 3 waits: return await tools.demo.append({ line })");
    let address = browser.client.current_url().await.unwrap();
    assert!(address.fragment().is_none(), "the code stays in no history: {address}");
    browser.click("button.yes").await;
    browser.sees("It completed.").await;
    browser.sees("Approved by admin").await;
    assert_eq!(appended(&served), "hello\n");

    // A later visitor sees who decided.
    browser.goto(&format!("{}/resume/{question}", served.url)).await;
    browser.sees("Approved by admin").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_changed_where_the_policy_allows_it_and_the_change_is_marked() {
    let (_dir, served) = fresh();
    let rule = json!({ "owner": "org", "pattern": "demo.append", "action": "require_approval",
                       "editable": true });
    assert_eq!(served.client("admin").post("/api/policies", &rule.to_string()).status, 200);
    let execution = start(&served, "return await tools.demo.append({ line: 'hello' })");
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&execution))).await;
    browser.click("details.editor summary").await;
    let text = "document.querySelector('textarea[name=arguments]')";
    let change = |to: &str| {
        format!("{text}.value = {}; {text}.dispatchEvent(new Event('input'))", json!(to))
    };
    let mark = "return document.querySelector('p.changed').textContent";
    browser.run(&change("{\"line\":  \"hello\"}")).await;
    assert_eq!(browser.run(mark).await, json!(""), "other spaces are no change");
    browser.run(&change("[1]")).await;
    browser.click("button.yes").await;
    browser.sees("The arguments must be a JSON object.").await;
    browser.run(&change("{\"line\": 7}")).await;
    browser.sees("Changed: the tool will get these arguments").await;
    let may_remember = "return !document.querySelector('input[name=remember]').disabled";
    assert_eq!(browser.run(may_remember).await, json!(false));
    browser.click("button.yes").await;
    browser.sees("The answer does not fit the question").await;
    assert_eq!(appended(&served), "", "the question is open and nothing has run");
    browser.run(&change("{\"line\": \"goodbye\"}")).await;
    browser.click("button.yes").await;
    browser.sees("It completed.").await;
    browser.sees(", with other arguments:").await;
    browser.sees("goodbye").await;
    assert_eq!(appended(&served), "goodbye\n");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_declines_or_cancels_and_the_program_hears_of_it() {
    let (_dir, served) = fresh();
    let code = "const say = async () => { try { await tools.demo.append({ line: 'x' }) } catch (e) { return e.message } };\n\
                return [await say(), await say()]";
    let execution = start(&served, code);
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&execution))).await;
    browser.click("button.no").await;
    browser.sees("Declined by admin").await;
    browser.click("button.no ~ button").await;
    browser.sees("Cancelled by admin").await;
    let heard = end(&served, &execution).json()["structured"]["result"].clone();
    let heard: Vec<&str> = heard.as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert!(heard[0].contains("declined") && heard[1].contains("cancelled"), "{heard:?}");
    assert_eq!(appended(&served), "");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_field_is_filled_and_a_mismatch_is_told() {
    let (_dir, served) = fresh();
    // The fields are in the page's order, which is the order of the text.
    let schema = r#"{
        "type": "object",
        "required": ["name", "mail", "level", "tags", "count"],
        "properties": {
            "name": { "type": "string", "title": "Your name", "minLength": 2 },
            "mail": { "type": "string", "format": "email" },
            "site": { "type": "string", "format": "uri" },
            "day": { "type": "string", "format": "date" },
            "ratio": { "type": "number", "minimum": 0, "maximum": 1 },
            "count": { "type": "integer", "default": 3 },
            "sure": { "type": "boolean", "default": true },
            "level": { "type": "string", "enum": ["low", "high"] },
            "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] }, "minItems": 1 },
            "note": { "type": "string", "description": "may stay empty" }
        }
    }"#;
    let code =
        format!("return await tools.demo.form({{ message: 'Fill this in', schema: {schema} }})");
    let execution = start(&served, &code);
    let browser = Browser::open(1200, 1400).await;
    browser.goto(&link(&served, Some(&execution))).await;
    browser.sees("Fill this in").await;
    // The fields describe the input. The schema with which the tool was called is folded below them.
    let titles =
        "return [...document.querySelectorAll('article.card h3')].map((it) => it.textContent)";
    assert_eq!(browser.run(titles).await, json!([]));
    let order = "const [form, call] = ['article form', 'article > details'].map((it) => document.querySelector(it));\
                 return !call.open && Boolean(form.compareDocumentPosition(call) & Node.DOCUMENT_POSITION_FOLLOWING)";
    assert_eq!(browser.run(order).await, json!(true));
    let indented = "document.querySelector('article > details').open = true;\
                    const lists = document.querySelectorAll('article > details ul.tree');\
                    return lists[1].getBoundingClientRect().left + parseFloat(getComputedStyle(lists[1]).paddingLeft)\
                        > lists[0].getBoundingClientRect().left + parseFloat(getComputedStyle(lists[0]).paddingLeft)";
    assert_eq!(browser.run(indented).await, json!(true), "what is nested is laid out");

    browser.click("button.yes").await;
    browser.sees("Your name:").await; // required and empty: told here, nothing was sent
    browser.fill("input[name=name]", "Ann").await;
    browser.fill("input[name=mail]", "not an address").await;
    browser.click("button.yes").await;
    browser.sees("mail:").await;
    browser.fill("input[name=mail]", "ann@example.org").await;
    browser.fill("input[name=site]", "https://example.org/").await;
    browser.run("document.querySelector('input[name=day]').value = '2026-11-16'").await;
    browser.fill("input[name=ratio]", "0.5").await;
    let select = browser.find("select[name=level]").await;
    select.select_by_label("high").await.unwrap();
    browser.find("select[name=colour]").await.select_by_label("Green").await.unwrap();
    browser.click("button.yes").await;
    browser.sees("choose at least 1").await;
    browser.click("input[name=tags]").await;
    browser.click("label:nth-of-type(3) input[name=tags]").await;
    browser.click("button.yes").await;
    browser.sees("It completed.").await;

    let result = end(&served, &execution).json()["structured"]["result"].clone();
    let expected = json!({
        "name": "Ann", "mail": "ann@example.org", "site": "https://example.org/", "day": "2026-11-16",
        "ratio": 0.5, "count": 3, "sure": true, "level": "high", "colour": "g", "tags": ["a", "c"],
    });
    assert_eq!(result, expected);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_parallel_questions_and_a_later_one_are_followed_without_a_reload() {
    let (_dir, served) = fresh();
    let code = "const lines = await Promise.all(['a', 'b', 'c'].map((line) => tools.demo.append({ line })));\n\
                await tools.demo.append({ line: 'd' });\nreturn lines.length";
    let execution = start(&served, code);
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&execution))).await;
    browser
        .until("return document.querySelectorAll('button.yes').length === 3", "three questions")
        .await;
    browser.run("window.stayed = true").await;
    for left in [2, 1] {
        browser.click("button.yes").await;
        let script = format!("return document.querySelectorAll('button.yes').length === {left}");
        browser.until(&script, "one question less").await;
    }
    browser.click("button.yes").await;
    browser.until(
        "return document.querySelectorAll('button.yes').length === 1 && document.body.innerText.includes('\"d\"')",
        "the next question",
    )
    .await;
    browser.click("button.yes").await;
    browser.sees("It completed.").await;
    assert_eq!(browser.run("return window.stayed").await, json!(true));
    let mut lines: Vec<_> = appended(&served).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a", "b", "c", "d"]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_changes_by_itself_and_needs_a_token_that_may_answer() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&served.url).await;
    browser.sees("Sign in").await;
    let run = std::fs::read_to_string(served.data_dir.join("tokens/run")).unwrap();
    browser.fill("#token", run.trim()).await;
    browser.click("button.yes").await;
    browser.sees("may not answer questions").await;
    browser.fill("#token", "alk_made-up").await;
    browser.click("button.yes").await;
    browser.sees("Sign in").await;

    let once = link(&served, None);
    browser.goto(&once).await;
    browser.sees("Nothing waits for you.").await;
    let question =
        served.client("run").execute("await tools.demo.ask({ text: 'now?' })").question();
    browser.find(&format!("a[href='/resume/{question}']")).await;
    let body = r#"{"action":"decline"}"#;
    served.client("admin").post(&format!("/api/executions/{question}/resume"), body);
    browser.sees("Nothing waits for you.").await;

    // The link signs in one browser, once.
    browser.goto("about:blank").await;
    browser.goto(&once).await;
    browser.sees("This link has been used").await;
    browser.sees("airlock sign-in").await;
    browser.sees("This browser is signed in already.").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ages_are_by_the_clock_of_the_server() {
    let (_dir, served) = fresh();
    served.client("run").execute("await tools.demo.ask({ text: 'now?' })");
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, None)).await;
    browser.find("time").await;
    // From here on the browser's clock is two days ahead.
    let script = "const real = Date.now;\
                  Date.now = () => real() + 2 * 86400000;\
                  return Promise.all([import('/console/session.js'), import('/console/dom.js')])\
                      .then(async ([session, dom]) => {\
                          session.forgetServer();\
                          await session.learnServerTime();\
                          return [dom.time(real()).textContent, dom.time(real() - 7380000).textContent,\
                                  dom.time(real() + 90060000).textContent];\
                      })";
    let ages = browser.run(script).await;
    assert_eq!(ages, json!(["just now", "2 hours ago", "in 1 day"]));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_told_in_our_words_and_forgotten_when_it_is_back() {
    let (dir, served) = fresh();
    let question =
        served.client("run").execute("return await tools.demo.ask({ text: 'x' })").question();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&question))).await;
    browser.find("button.yes").await;
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let data_dir = dir.path().join("data");
    assert_eq!(served.stop(), Some(0));
    browser.sees("Not connected. Trying again").await;
    browser.click("button.yes").await;
    browser.sees("The server was not reached, and your answer may not have arrived.").await;
    let shown = "return document.body.innerText";
    let text = browser.run(shown).await;
    assert!(!text.as_str().unwrap().contains("Failed to fetch"), "{text}");
    let served = Served::start(&data_dir, &["--listen", &format!("127.0.0.1:{port}")]);
    let gone = "return !document.body.innerText.includes('was not reached')\
                && !document.body.innerText.includes('Not connected')";
    browser.until(gone, "the words about the lost connection are gone").await;
    browser.click("button.yes").await;
    browser.sees("Approved by admin").await;
    drop(served);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_and_long_scripts_are_text_and_nothing_else() {
    let (_dir, served) = fresh();
    let mut code = String::from(
        "// </script><img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>\n",
    );
    for at in 0..10_000 {
        code.push_str(&format!("// line {at}\n"));
    }
    let args = "{ text: '</script><script>window.broken=1</script>' }";
    code.push_str(&format!(
        "console.log('<img src=x onerror=window.broken=1>');\nawait tools.demo.ask({args});\n"
    ));
    let execution = start(&served, &code);
    let browser = Browser::open(1200, 900).await;
    browser.goto(&link(&served, Some(&execution))).await;
    browser.sees("tools.demo.ask").await;
    browser.find("button.yes").await;
    let seen = "const lines = document.querySelector('.lines').textContent; \
                return lines.includes('</script><img') && lines.includes('// line 9999')";
    browser.until(seen, "the whole script").await;
    assert_eq!(browser.run("return window.broken ?? null").await, Value::Null);
    assert_eq!(
        browser.run("return document.querySelectorAll('main img, main script').length").await,
        json!(0)
    );
    browser.close().await;
}

/// Stores a screenshot for the documentation if `AIRLOCK_PICTURES` names a folder.
async fn picture(browser: &Browser, name: &str) {
    let png = browser.client.screenshot().await.unwrap();
    assert!(png.len() > 5_000, "a page that shows something");
    if let Some(folder) = std::env::var_os("AIRLOCK_PICTURES").map(PathBuf::from) {
        std::fs::write(folder.join(name), png).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_and_screen_readers_are_served() {
    let (_dir, served) = fresh();
    let code = "const order = { item: 'Widget', count: 3, note: 'deliver before noon' };\n\
                console.log('placing an order for', order.item);\n\
                const stock = await tools.demo.add({ a: 40, b: 2 });\n\
                await tools.demo.append({ line: JSON.stringify(order) });\nreturn stock";
    let execution = start(&served, code);
    for (width, height, name) in
        [(400, 860, "console-phone.png"), (1200, 900, "console-desktop.png")]
    {
        let browser = Browser::open(width, height).await;
        browser.goto(&link(&served, Some(&execution))).await;
        browser.find("button.yes").await;
        browser.sees("placing an order").await;
        // A marked line has the same height as the others, and does not shift those below it.
        let heights = "const [numbers, lines] = ['.numbers', '.lines'].map((name) => document.querySelector(name).clientHeight); \
                       return Math.abs(numbers - lines) <= 1";
        browser.until(heights, "lines beside their numbers").await;
        let overflow = "return document.documentElement.scrollWidth <= window.innerWidth";
        assert_eq!(
            browser.run(overflow).await,
            json!(true),
            "nothing sticks out at {width} pixels"
        );
        picture(&browser, name).await;
        assert_eq!(violations(&browser).await, json!([]), "at {width} pixels");
        browser.goto(&link(&served, None)).await;
        browser.find("main a[href^='/resume/']").await;
        assert_eq!(violations(&browser).await, json!([]), "the inbox at {width} pixels");
        browser.close().await;
    }
}

/// The accessibility problems of the page that a browser shows.
async fn violations(browser: &Browser) -> Value {
    let axe = std::fs::read_to_string(axe()).expect("axe-core is installed by cargo xtask test");
    browser.client.execute(&axe, vec![]).await.unwrap();
    let check = "const done = arguments[arguments.length - 1]; \
                 axe.run().then((found) => done(found.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html).join())));";
    browser.client.execute_async(check, vec![]).await.unwrap()
}

/// The path at which `cargo xtask test` installs the accessibility checker.
fn axe() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("target/npm/node_modules/axe-core/axe.min.js")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_enters_a_secret_that_no_agent_sees() {
    let (secret, user) = ("canary-Entered/5Kw+Zq9", "ann");
    let ((_dir, served), api) = (fresh(), Echo::start());
    let (admin, agent) = (served.client("admin"), served.client("run"));
    let spec = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    assert_eq!(admin.post("/api/openapi/specs", &spec.to_string()).status, 200);
    let wanted =
        json!({ "integration": "things", "name": "main", "template": "basic", "handoff": true });
    assert_eq!(admin.post("/api/connections", &wanted.to_string()).status, 200);
    let paused = agent.execute(
        "const said = await tools.things.org.main.t.list({}); console.log(said); return said",
    );
    // The link contains the code that completes it, so the agent receives only the page on which a person decides.
    let link =
        |shown: &Value| shown["structured"]["interaction"]["url"].as_str().map(str::to_owned);
    assert_eq!(link(&paused.json()).filter(|url| url.contains("#")), None, "{paused:?}");
    let asked = admin.get(&format!("/api/executions/{}", paused.question())).json();
    let url = link(&asked).unwrap();
    let page = agent.get("/connect");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), Some("DENY"));

    let browser = Browser::open(400, 860).await;
    // Another site cannot embed the page in a frame and capture what is typed.
    browser
        .goto(&format!(
            "data:text/html,<title>t</title><iframe src=\"{}/connect\"></iframe>",
            served.url
        ))
        .await;
    browser.client.clone().enter_frame(0).await.unwrap();
    let shown = browser.run("return document.documentElement.innerText").await;
    assert!(!shown.as_str().unwrap_or_default().contains("Enter a secret"), "{shown}");

    browser.goto(&url).await;
    browser.sees("the connection things.org.main").await;
    let host = api.url.strip_prefix("http://").unwrap();
    browser.sees(&format!("at {host}:")).await;
    browser.sees(&format!("sent to {host} with calls of this connection")).await;
    browser.sees("what waits for the secret then goes on").await;
    let address = browser.client.current_url().await.unwrap();
    assert!(address.fragment().is_none(), "the code stays in no history: {address}");
    assert_eq!(violations(&browser).await, json!([]));
    let kind = "return document.querySelector('input[name=password]').type";
    assert_eq!(browser.run(kind).await, json!("password"), "nobody reads it over a shoulder");
    browser.fill("input[name=user]", user).await;
    browser.fill("input[name=password]", secret).await;
    browser.click("form button").await;
    browser.sees("The secret is stored.").await;
    browser.sees("What waited for this secret goes on by itself. You can close this page.").await;
    assert_eq!(browser.run("return document.querySelectorAll('input').length").await, json!(0));

    let ended = end(&served, &paused.execution());
    assert_eq!(ended.json()["structured"]["result"]["ok"], json!(true), "{ended:?}");
    let sent = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        format!("{user}:{secret}"),
    );
    assert!(api.heard().contains(&format!("authorization: Basic {sent}")), "it arrived");
    let journal = agent.get(&format!("/api/executions/{}/journal", paused.execution()));
    for told in [paused, ended, journal] {
        assert!(!told.body.contains(secret) && !told.body.contains(&sent), "{told:?}");
    }
    // The link is valid once.
    browser.goto("about:blank").await;
    browser.goto(&url).await;
    browser.sees("Nobody waits for a secret here any more.").await;
    browser.close().await;
}
