//! How a browser signs in, what its session may do, and how it ends. The real binary and a real browser.

use crate::browser::Browser;
use crate::server_fixture::{Client, Served, airlock};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn fresh() -> (TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    (dir, served)
}

/// Runs a verb against a server's data directory. Returns its exit code, its output and its errors.
fn verb(served: &Served, words: &[&str]) -> (Option<i32>, String, String) {
    let output = airlock(words).arg("--data-dir").arg(&served.data_dir).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn printed(served: &Served, words: &[&str]) -> String {
    let (exit, stdout, stderr) = verb(served, words);
    assert_eq!(exit, Some(0), "{stderr}");
    stdout
}

/// The code in a link.
fn code(link: &str) -> String {
    link.split_once("#code=").unwrap().1.to_owned()
}

/// Signs in a tab without keys, and returns its client.
fn tab(served: &Served) -> Client {
    let code = code(&printed(served, &["sign-in"]));
    let body = json!({ "code": code }).to_string();
    let answer = served.client_with("").post("/api/sign-in", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    served.client_with(answer.json()["token"].as_str().unwrap())
}

/// Starts the server again at the same address.
fn restart(served: Served) -> Served {
    let (address, data_dir) =
        (served.url.strip_prefix("http://").unwrap().to_owned(), served.data_dir.clone());
    served.stop();
    Served::start(&data_dir, &["--listen", &address])
}

/// Calls an asynchronous function in the page and returns the value to which it resolves.
async fn call(browser: &Browser, body: &str) -> Value {
    let script = format!(
        "const done = arguments[arguments.length - 1]; (async () => {{ {body} }})().then(done, (e) => done('failed: ' + e));"
    );
    browser.client.execute_async(&script, vec![]).await.unwrap()
}

/// The headers with which the page would send a request.
async fn proof(browser: &Browser, method: &str, path: &str, body: &str) -> Vec<(String, String)> {
    let arguments = json!([method, path, body]);
    let script = format!("return (await import('/console/session.js')).proof(...{arguments})");
    let proof = call(browser, &script).await;
    let headers = proof.as_object().unwrap_or_else(|| panic!("{proof}"));
    headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().into())).collect()
}

/// Sends a request with these headers from outside the browser, and returns its status.
fn replay(
    served: &Served,
    method: &str,
    path: &str,
    proof: &[(String, String)],
    body: &str,
) -> u16 {
    let mut headers: Vec<_> = proof.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    if !body.is_empty() {
        headers.push(("Content-Type", "application/json"));
    }
    served.client_with("").send(method, path, &headers, body).status
}

#[tokio::test(flavor = "multi_thread")]
async fn one_link_signs_all_tabs_in_across_reloads_and_restarts_and_no_other_port() {
    let (_dir, served) = fresh();
    let question =
        served.client("run").execute("await tools.demo.ask({ text: 'now?' })").question();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&printed(&served, &["sign-in"])).await;
    browser.find(&format!("a[href='/resume/{question}']")).await;
    browser.client.refresh().await.unwrap();
    browser.find(&format!("a[href='/resume/{question}']")).await;

    let first = browser.client.window().await.unwrap();
    let second = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(second).await.unwrap();
    browser.goto(&format!("{}/resume/{question}", served.url)).await;
    browser.find("button.yes").await;
    browser.client.refresh().await.unwrap();
    browser.find("button.yes").await;
    browser.sees("signed in as admin").await;

    // Another port of the same host is another origin: it finds neither a key nor a cookie.
    let (_other_dir, other) = fresh();
    browser.goto(&other.url).await;
    browser.sees("prints a link that signs this browser in").await;
    let left = "const d = await indexedDB.databases(); return [d.length, document.cookie, localStorage.length, sessionStorage.length]";
    let left = call(&browser, left).await;
    assert_eq!(left.as_array().unwrap()[1..], [json!(""), json!(0), json!(0)], "{left}");
    let headers = proof(&browser, "GET", "/api/session", "").await;
    assert_eq!(headers, [], "nothing to prove anything with");

    let served = restart(served);
    browser.client.switch_to_window(first).await.unwrap();
    browser.sees("Open questions").await;
    browser.find(&format!("a[href='/resume/{question}']")).await;
    let answered = call(
        &browser,
        "return (await (await import('/console/api.js')).get('/api/session')).body.name",
    );
    assert_eq!(answered.await, json!("admin"), "a tab goes on after a restart");
    browser.goto(&format!("{}/resume/{question}", served.url)).await;
    browser.click("button.yes").await;
    browser.sees("Approved by admin").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_cannot_be_read_out_and_nothing_that_is_stored_works_elsewhere() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&printed(&served, &["open", "--print"])).await;
    browser.sees("Nothing waits for you.").await;
    let stored = "\
        const database = await new Promise((resolve) => { const r = indexedDB.open('airlock', 1); r.onsuccess = () => resolve(r.result); });\
        const read = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });\
        const store = () => database.transaction('session').objectStore('session');\
        const [all, keys] = [await read(store().getAll()), await read(store().getAllKeys())];\
        const key = all[0].key;\
        const exported = [];\
        for (const format of ['raw', 'jwk', 'pkcs8', 'spki']) {\
          exported.push(await crypto.subtle.exportKey(format, key).then(() => 'exported', () => 'refused'));\
        }\
        return { keys, members: Object.keys(all[0]).sort(), text: JSON.stringify(all[0]), extractable: key.extractable, type: key.type,\
          usages: key.usages, exported, local: localStorage.length, session: sessionStorage.length, cookie: document.cookie }";
    let stored = call(&browser, stored).await;
    assert_eq!(stored["keys"], json!(["current"]), "{stored}");
    assert_eq!(stored["members"], json!(["expires", "id", "key", "name"]));
    assert_eq!(
        (&stored["extractable"], &stored["type"], &stored["usages"]),
        (&json!(false), &json!("private"), &json!(["sign"]))
    );
    assert_eq!(stored["exported"], json!(["refused", "refused", "refused", "refused"]));
    let outside = json!([stored["local"], stored["session"], stored["cookie"]]);
    assert_eq!(outside, json!([0, 0, ""]));
    let stored: Value = serde_json::from_str(stored["text"].as_str().unwrap()).unwrap();
    for text in [stored["id"].as_str().unwrap(), stored["name"].as_str().unwrap()] {
        assert_eq!(served.client_with(text).get("/api/session").status, 401, "{text}");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_request_counts_once_as_it_was_and_not_after_a_restart() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&printed(&served, &["sign-in"])).await;
    browser.sees("Nothing waits for you.").await;
    let captured = proof(&browser, "GET", "/api/session", "").await;
    assert_eq!(replay(&served, "GET", "/api/session", &captured, ""), 200);
    assert_eq!(replay(&served, "GET", "/api/session", &captured, ""), 401, "the second time");
    let captured = proof(&browser, "GET", "/api/session", "").await;
    assert_eq!(replay(&served, "GET", "/api/sessions", &captured, ""), 401, "another path");
    assert_eq!(replay(&served, "DELETE", "/api/session", &captured, ""), 401, "another method");
    assert_eq!(replay(&served, "GET", "/api/session?x=1", &captured, ""), 401, "another query");
    let (body, other) = (r#"{"path":"/api/questions"}"#, r#"{"path":"/api/executions"}"#);
    let captured = proof(&browser, "POST", "/api/tickets", body).await;
    assert_eq!(replay(&served, "POST", "/api/tickets", &captured, other), 400, "another body");
    let captured = proof(&browser, "POST", "/api/tickets", body).await;
    assert_eq!(replay(&served, "POST", "/api/tickets", &captured, body), 201);

    let captured = proof(&browser, "GET", "/api/session", "").await;
    let served = restart(served);
    assert_eq!(replay(&served, "GET", "/api/session", &captured, ""), 401, "another run");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_does_not_work_says_why_and_how_to_get_another() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    let once = printed(&served, &["sign-in"]);
    let body = json!({ "code": code(&once) }).to_string();
    assert_eq!(served.client_with("").post("/api/sign-in", &body).status, 200);
    let used = (once, "This link has been used already");
    let wrong = (format!("{}/#code=made-up", served.url), "This link is not one of this server's");
    for (link, why) in [used, wrong] {
        browser.goto("about:blank").await;
        browser.goto(&link).await;
        browser.sees(why).await;
        browser
            .sees("`airlock open` or `airlock sign-in` on the server's machine prints another")
            .await;
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_ended_on_the_page_and_by_command() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    let other = tab(&served);
    browser.goto(&printed(&served, &["sign-in"])).await;
    browser.sees("Nothing waits for you.").await;
    browser.click("#who a").await;
    browser.sees("Signed-in browsers").await;
    browser.until("return document.querySelectorAll('li[data-session]').length === 2", "two").await;
    browser.sees("This browser.").await;
    browser.click("li[data-session]:nth-child(2) button").await;
    browser.until("return document.querySelectorAll('li[data-session]').length === 1", "one").await;
    assert_eq!(other.get("/api/session").status, 401, "ended on the page");

    let listed = printed(&served, &["sessions", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["name"], &listed["kind"]), (&json!("admin"), &json!("browser")));
    let id = listed["id"].as_str().unwrap();
    assert!(printed(&served, &["sessions"]).starts_with(&format!("{id}\tadmin\t")));
    browser.goto(&served.url).await;
    browser.sees("Nothing waits for you.").await;
    assert_eq!(printed(&served, &["sessions", "end", id]), format!("{id} is signed out"));
    browser.sees("The session of this browser has ended.").await;
    let (exit, _, stderr) = verb(&served, &["sessions", "end", id]);
    assert_eq!(exit, Some(1));
    assert!(stderr.contains("There is no such browser session"), "{stderr}");

    // Sign-out ends the session on the server and in the page, and deletes the key.
    browser.goto("about:blank").await;
    browser.goto(&printed(&served, &["sign-in"])).await;
    browser.sees("Nothing waits for you.").await;
    let captured = proof(&browser, "GET", "/api/session", "").await;
    browser.click("#sign-out").await;
    browser.sees("This browser is signed out.").await;
    assert_eq!(replay(&served, "GET", "/api/session", &captured, ""), 401);
    assert_eq!(proof(&browser, "GET", "/api/session", "").await, []);
    assert_eq!(printed(&served, &["sessions"]), "");
    browser.client.refresh().await.unwrap();
    browser.sees("prints a link that signs this browser in").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_admin_asks_for_a_code_that_raises_one_tab() {
    let (_dir, served) = fresh();
    let browser = Browser::open(1200, 900).await;
    browser.goto(&printed(&served, &["sign-in"])).await;
    browser.sees("Nothing waits for you.").await;
    let block = "\
        const [{ post }, { withElevation }] = await Promise.all([import('/console/api.js'), import('/console/elevation.js')]);\
        const place = document.createElement('form'); document.querySelector('main').append(place);\
        const rule = { owner: 'org', pattern: 'demo.PATTERN', action: 'block' };\
        window.blocked = null;\
        withElevation(place, () => post('/api/policies', rule)).then((is) => { window.blocked = is; }, (e) => { window.blocked = String(e); });";
    browser.run(&format!("(async () => {{ {} }})()", block.replace("PATTERN", "one"))).await;
    browser.sees("This needs the scope admin").await;
    browser.fill("input[name=elevation]", "made up").await;
    browser.click("fieldset button.yes").await;
    browser.sees("This code is not one of this server's. `airlock sign-in --admin`").await;
    browser.fill("input[name=elevation]", &printed(&served, &["sign-in", "--admin"])).await;
    browser.click("fieldset button.yes").await;
    browser.until("return window.blocked === true", "it was done").await;
    let rules = served.client("admin").get("/api/policies").body;
    assert!(rules.contains("demo.one"), "{rules}");

    // The same tab is elevated, and still cannot create codes for itself.
    let refused = "const { post } = await import('/console/api.js'); return post('/api/sign-in/codes', { admin: true }).then(() => 'made', (e) => e.status)";
    assert_eq!(call(&browser, refused).await, json!(403));
    let raised =
        "return (await (await import('/console/api.js')).get('/api/session')).body.elevated";
    assert_eq!(call(&browser, raised).await, json!(true));
    // The elevation exists only in the memory of this tab.
    browser.client.refresh().await.unwrap();
    browser.sees("Nothing waits for you.").await;
    assert_eq!(call(&browser, raised).await, json!(false));
    browser.run(&format!("(async () => {{ {} }})()", block.replace("PATTERN", "two"))).await;
    browser.sees("This needs the scope admin").await;
    // The token itself elevates too, and is not stored.
    let admin = std::fs::read_to_string(served.data_dir.join("tokens/admin")).unwrap();
    browser.fill("input[name=elevation]", admin.trim()).await;
    browser.click("fieldset button.yes").await;
    browser.until("return window.blocked === true", "it was done").await;
    browser.close().await;
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_a_session_lives_in_one_tab() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let (listen, url) = (format!("127.0.0.1:{port}"), format!("http://airlock.test:{port}"));
    let words = ["--listen", listen.as_str(), "--public-url", url.as_str()];
    let served = Served::start(&dir.path().join("data"), &words);
    let browser = Browser::open(1200, 900).await;
    let code = code(&printed(&served, &["sign-in"]));
    browser.goto(&format!("{url}/#code={code}")).await;
    browser.sees("Nothing waits for you.").await;
    let has_keys = "return isSecureContext || Boolean(crypto.subtle)";
    assert_eq!(browser.run(has_keys).await, json!(false));
    browser.client.refresh().await.unwrap();
    browser.sees("Nothing waits for you.").await;
    let listed: Value = serde_json::from_str(&printed(&served, &["sessions", "--json"])).unwrap();
    assert_eq!(listed["kind"], json!("tab"));
    let second = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(second).await.unwrap();
    browser.goto(&url).await;
    browser.sees("prints a link that signs this browser in").await;
    browser.close().await;
}

#[test]
fn a_session_reads_and_answers_and_makes_no_codes() {
    let (_dir, served) = fresh();
    let tab = tab(&served);
    let me = tab.get("/api/session").json();
    assert_eq!((&me["name"], &me["scopes"]), (&json!("admin"), &json!(["answer"])));
    let question =
        served.client("run").execute("return await tools.demo.ask({ text: 'x' })").question();
    assert_eq!(tab.get(&format!("/api/executions/{question}")).status, 200);
    for body in ["", "{}", r#"{"admin":true}"#] {
        let refused = tab.post("/api/sign-in/codes", body);
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.body.contains("cannot make codes"), "{refused:?}");
    }
    let refused = tab.post("/api/executions", r#"{"code":"1"}"#);
    assert_eq!((refused.status, &refused.json()["scope"]), (403, &json!("run")));
    let refused = tab.get("/api/tokens");
    assert_eq!((refused.status, &refused.json()["scope"]), (403, &json!("admin")));
    assert_eq!(tab.resume(&question, "accept").status, 200);
}

#[test]
fn a_token_that_is_minted_again_under_its_name_revives_neither_sessions_nor_links() {
    let (_dir, served) = fresh();
    let mint = || printed(&served, &["token", "add", "ann", "--scope", "answer"]);
    let link = |secret: &str| {
        let made = served.client_with(secret).post("/api/sign-in/codes", "");
        made.json()["code"].as_str().unwrap().to_owned()
    };
    let sign_in = |code: &str| {
        let body = json!({ "code": code }).to_string();
        served.client_with("").post("/api/sign-in", &body)
    };
    let secret = mint();
    let session = sign_in(&link(&secret)).json()["token"].as_str().unwrap().to_owned();
    let unused = link(&secret);
    assert_eq!(served.client_with(&session).get("/api/session").status, 200);
    printed(&served, &["token", "remove", "ann"]);
    assert_eq!(served.client_with(&session).get("/api/session").status, 401);
    let secret = mint();
    assert_eq!(served.client_with(&session).get("/api/session").status, 401);
    let refused = sign_in(&unused);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("a token that was removed"), "{refused:?}");
    assert_eq!(sign_in(&link(&secret)).status, 200);
}

#[test]
fn a_ticket_opens_one_path_once() {
    let (_dir, served) = fresh();
    let (tab, bare) = (tab(&served), served.client_with(""));
    let ticket = || {
        let made = tab.post("/api/tickets", r#"{"path":"/api/questions"}"#);
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["ticket"].as_str().unwrap().to_owned()
    };
    let with = |path: &str, ticket: &str| {
        bare.send("GET", &format!("{path}?ticket={ticket}"), &[("Authorization", "")], "").status
    };
    let once = ticket();
    assert_eq!(with("/api/questions", &once), 200);
    assert_eq!(with("/api/questions", &once), 401, "used");
    let other = ticket();
    assert_eq!(with("/api/sessions", &other), 401, "another path");
    assert_eq!(with("/api/questions", &other), 401, "it was used up there");
    let path = format!("/api/sign-in/codes?ticket={}", ticket());
    assert_eq!(bare.send("POST", &path, &[("Authorization", "")], "").status, 401, "streams only");
    for bad in ["api", "/x?y", "", &format!("/{}", "x".repeat(2_000))] {
        let body = json!({ "path": bad }).to_string();
        assert_eq!(tab.post("/api/tickets", &body).status, 400, "{bad}");
    }
}

#[test]
fn the_servers_account_signs_in_without_a_token() {
    let (_dir, served) = fresh();
    let file = served.data_dir.join("sign-in.key");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    std::fs::remove_dir_all(served.data_dir.join("tokens")).unwrap();
    assert_eq!(tab(&served).get("/api/session").json()["name"], json!("admin"));
    assert!(printed(&served, &["sign-in", "--admin"]).len() > 40);
    assert!(printed(&served, &["open", "--print"]).contains("#code="));
    // The key is valid for nothing else.
    for path in ["/api/session", "/api/sessions", "/api/questions", "/api/tokens", "/metrics"] {
        assert_eq!(served.client_with(&key).get(path).status, 401, "{path}");
    }
    assert_eq!(served.client_with(&key).execute("1").status, 401);

    let served = restart(served);
    assert_ne!(std::fs::read_to_string(&file).unwrap().trim(), key, "each run has its own");
    assert_eq!(served.client_with(&key).post("/api/sign-in/codes", "").status, 401);
    assert!(printed(&served, &["sign-in"]).contains("#code="));
    // If the given token may not answer, the verb does not fall back to the key.
    let (exit, _, stderr) = verb(&served, &["sign-in", "--token", "alk_made-up"]);
    assert_eq!(exit, Some(1), "{stderr}");
}

#[test]
fn a_browser_at_an_unknown_address_sees_a_page_and_a_program_json() {
    let (_dir, served) = fresh();
    let client = served.client_with("");
    let page = client.send("GET", "/nowhere", &[("Accept", "text/html,*/*")], "");
    assert_eq!(page.status, 404);
    assert!(page.body.contains("There is no such page"), "{page:?}");
    assert!(page.header("content-security-policy").is_some());
    let json = client.get("/nowhere").json();
    assert_eq!(json["_tag"], json!("NotFoundError"));
}
