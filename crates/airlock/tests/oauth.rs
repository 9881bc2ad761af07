//! OAuth 2 against a real OpenID Connect server: programs, people and attackers, under the real binary.

use crate::echo::Echo;
use crate::issuer::{self, Browser};
use crate::oauth_fixture::{House, agreed, link, parameter, result};
use crate::server_fixture::{good, wait_for};
use crate::traces::unseen;
use serde_json::{Value, json};

const CALL: &str = "return (await tools.things.org.main.t.list({})).ok";
const CHANGE: &str = "return (await tools.things.org.main.t.change({})).ok";

#[test]
fn a_missing_grant_becomes_a_link_and_no_thief_gets_anything() {
    let house = House::new(3_600, json!({ "scopes": ["openid", "offline_access", "read"] }));
    let agent = house.served.client("run");
    let paused = agent.execute(CALL);
    let url = link(&paused);
    assert_eq!(parameter(&url, "code_challenge_method"), "S256");
    let back = house.agree(&url);

    // A wrong state, another server's name, and a code that was stolen from another visit.
    let (state, code) = (parameter(&back, "state"), parameter(&back, "code"));
    assert_eq!(house.come_back(&back.replace(&state, "wrong")).status, 404);
    assert_eq!(
        house.come_back(&format!("{}/api/oauth/callback?code={code}", house.served.url)).status,
        404
    );
    let spec =
        json!({ "slug": "other", "spec": { "kind": "blob", "value": house.api.description() } });
    good(house.admin().post("/api/openapi/specs", &spec.to_string()));
    house.connect("other", json!({ "scopes": ["openid", "read"] }));
    let thief = agent.execute("return (await tools.other.org.main.t.list({})).ok");
    let theirs = house.agree(&link(&thief));
    let stolen = theirs.replace(&parameter(&theirs, "code"), &code);
    assert_eq!(
        house.come_back(&stolen).status,
        400,
        "a code without its verifier is worth nothing"
    );
    assert_eq!(house.come_back(&stolen).status, 404, "and its state is used up");
    let body = json!({ "integration": "other", "name": "main" }).to_string();
    let url =
        good(house.admin().post("/api/oauth/start", &body))["url"].as_str().unwrap().to_owned();
    let evil = house.agree(&url).replace("iss=", "iss=http%3A%2F%2Fevil.example&was=");
    assert_eq!(house.come_back(&evil).status, 400, "another server answered than was asked");
    let health = good(house.admin().post("/api/connections/org/other/main/health", "{}"));
    assert_eq!(health["code"], "oauth_connection_missing");

    assert_eq!(house.come_back(&back).status, 200, "the person's own visit is as good as before");
    assert_eq!(result(&agent, &paused.execution()), true);
    assert_eq!(house.come_back(&back).status, 404, "a state is good once");
    let journal = agent.get(&format!("/api/executions/{}/journal", paused.execution())).body;
    unseen(journal.as_bytes(), &house.issuer.secrets(), "the journal");
    house.told_nobody();
}

#[test]
fn a_browser_that_comes_back_after_a_restart_is_expected() {
    let house = House::new(3_600, json!({ "scopes": ["openid", "read"] }));
    let agent = house.served.client("run");
    // Not read-only: it asks first, and must not be in doubt after the crash.
    let asked = agent.execute(CHANGE);
    let paused = agent.resume(&asked.question(), "accept");
    let url = link(&paused);
    let execution = asked.execution();
    let house = house.again();
    let back = house.agree(&url);
    assert_eq!(parameter(&back, "iss"), house.issuer.url.replace(':', "%3A").replace('/', "%2F"));
    assert_eq!(house.come_back(&back).status, 200);
    assert_eq!(result(&house.served.client("run"), &execution), true);
    assert_eq!(house.api.heard().matches("POST /things").count(), 1, "the call was made once");
}

#[test]
fn expiry_is_refreshed_once_for_everybody_and_revocation_asks_again() {
    let house = House::new(4, json!({ "scopes": ["openid", "offline_access", "read"] }));
    let (agent, admin) = (house.served.client("run"), house.admin());
    let health =
        || good(admin.post("/api/connections/org/things/main/health", "{}"))["healthy"].clone();
    assert_eq!(health(), false);
    let body = json!({ "integration": "things", "name": "main" }).to_string();
    let url = good(admin.post("/api/oauth/start", &body))["url"].as_str().unwrap().to_owned();
    assert_eq!(house.come_back(&house.agree(&url)).status, 200);
    assert_eq!(health(), true);
    let until_over = || {
        let given = house.issuer.secrets();
        let is_valid = |token: &String| issuer::is_valid(house.issuer.port, token);
        wait_for(|| (!given.iter().any(is_valid)).then_some(()));
    };
    until_over();
    let before = house.issuer.n_refreshes();
    let both: Vec<_> = (0..2)
        .map(|_| {
            let agent = agent.clone();
            std::thread::spawn(move || agent.execute(CALL).json()["structured"]["result"].clone())
        })
        .collect();
    for one in both {
        assert_eq!(one.join().unwrap(), true);
    }
    assert_eq!(house.issuer.n_refreshes(), before + 1, "two executions, one refresh");

    // A server that temporarily cannot refresh a token has not revoked it: the refresh happens later, without a
    // question.
    until_over();
    house.issuer.is_troubled(true);
    let code = "const said = await tools.things.org.main.t.list({}); return said.error.code";
    assert_eq!(agent.execute(code).result(), "oauth_refresh_failed");
    house.issuer.is_troubled(false);
    assert_eq!(agent.execute(CALL).result(), true);

    // If the server has forgotten the client's registration, the client registers again.
    until_over();
    house.issuer.forget_clients();
    let asked = agent.execute(CALL);
    assert_eq!(house.come_back(&house.agree(&link(&asked))).status, 200);
    assert_eq!(result(&agent, &asked.execution()), true);

    // The token expires, and is then revoked, in mid-execution: the second call of the program refreshes it or asks,
    // and continues.
    let code = "const a = await tools.things.org.main.t.list({}); await tools.demo.ask({ text: 'x' }); \
                const b = await tools.things.org.main.t.list({}); return [a.ok, b.ok]";
    let paused = agent.execute(code);
    until_over();
    let n_before = house.issuer.n_refreshes();
    let resumed = agent.resume(&paused.question(), "accept");
    assert_eq!(
        resumed.result(),
        json!([true, true]),
        "one that is over is renewed, and nobody is asked"
    );
    assert_eq!(house.issuer.n_refreshes(), n_before + 1);
    let paused = agent.execute(code);
    house.issuer.revoke_all();
    let asked = agent.resume(&paused.question(), "accept");
    assert_eq!(house.come_back(&house.agree(&link(&asked))).status, 200);
    assert_eq!(result(&agent, &paused.execution()), json!([true, true]));

    // If the person refuses consent, the program receives the refusal.
    house.issuer.revoke_all();
    house.issuer.refuses(true);
    let asked = agent.execute(CALL);
    assert_eq!(house.come_back(&house.agree(&link(&asked))).status, 200);
    let shown = wait_for(|| {
        let shown = agent.get(&format!("/api/executions/{}/result", asked.execution()));
        (shown.status == 200).then_some(shown.body)
    });
    assert!(shown.contains("declined"), "{shown}");
    house.told_nobody();
}

#[test]
fn a_machine_gets_tokens_for_itself_and_a_device_for_its_person() {
    let secret = "canary-ClientSecret/4Xk+Wd9";
    let machine = json!({ "flow": "client_credentials", "client_id": "machine", "client_secret": secret, "scopes": ["read"] });
    let house = House::new(3_600, machine);
    let agent = house.served.client("run");
    assert_eq!(agent.execute(CALL).json()["structured"]["result"], true);
    let device = json!({ "flow": "device", "scopes": ["openid", "read"] });
    house.connect("things", device);
    let body = json!({ "integration": "things", "owner": "user", "name": "device", "oauth": { "flow": "device", "scopes": ["openid", "read"] } });
    good(house.admin().post("/api/connections", &body.to_string()));
    let paused = agent.execute("return (await tools.things.user.device.t.list({})).ok");
    Browser::default().visit(&link(&paused), &house.served.url);
    assert_eq!(result(&agent, &paused.execution()), true);
    let log = std::fs::read(house.dir.path().join("log.txt")).unwrap();
    unseen(&log, &[secret.to_owned()], "the log");
    house.told_nobody();
}

#[test]
fn an_mcp_server_that_wants_a_token_is_added_authorized_and_called() {
    let house = House::new(3_600, json!({}));
    let admin = house.admin();
    let added =
        json!({ "slug": "remote", "endpoint": format!("{}/mcp", house.api.url), "connect": false });
    let answer = admin.post("/api/mcp/servers", &added.to_string());
    assert_eq!(answer.status, 200, "one that wants a token is kept: {answer:?}");
    house.connect("remote", json!({ "scopes": ["openid", "offline_access", "read"] }));
    let body = json!({ "integration": "remote", "name": "main" }).to_string();
    let url = good(admin.post("/api/oauth/start", &body))["url"].as_str().unwrap().to_owned();
    assert_eq!(house.come_back(&house.agree(&url)).status, 200);
    let agent = house.served.client("run");
    let call = "return (await tools.remote.org.main.repeat({ text: 'hi' })).data.content[0].text";
    let said = wait_for(|| {
        let result = agent.execute(call).json()["structured"]["result"].clone();
        (result == "hi").then_some(result)
    });
    assert_eq!(said, "hi");
    house.issuer.revoke_all();
    let asked = agent.execute(call);
    assert_eq!(house.come_back(&house.agree(&link(&asked))).status, 200);
    assert_eq!(result(&agent, &asked.execution()), "hi");
    house.told_nobody();
}

#[test]
fn a_call_that_may_too_little_asks_for_more_and_goes_on_and_nobody_asks_for_ever() {
    let house = House::new(3_600, json!({ "scopes": ["openid", "offline_access", "read"] }));
    let (agent, admin, port) = (house.served.client("run"), house.admin(), house.issuer.port);
    let may_write =
        move |token: &str| issuer::scopes(port, token).iter().any(|scope| scope == "write");
    house.api.wants(move |said, token| {
        let writes = said.starts_with("POST /things") || said.contains("tools/call");
        (writes && !may_write(token)).then(|| "write".to_owned())
    });
    let begin = |integration: &str| {
        let body = json!({ "integration": integration, "name": "main" }).to_string();
        let url = good(admin.post("/api/oauth/start", &body))["url"].as_str().unwrap().to_owned();
        assert_eq!(house.come_back(&house.agree(&url)).status, 200);
    };
    begin("things");
    assert_eq!(agent.execute(CALL).result(), true, "who only reads is not asked");
    let asked = agent.execute(CHANGE);
    let paused = agent.resume(&asked.question(), "accept");
    let scope = parameter(&link(&paused), "scope");
    assert_eq!(scope, "openid+offline_access+read+write", "what was asked for before, and the new");
    let told = paused.json()["structured"]["interaction"]["message"].to_string();
    assert!(told.contains("for more (write)"), "{told}");
    assert_eq!(agreed(&house, &agent, &asked.execution()), (json!(true), 1));
    assert_eq!(house.api.heard().matches("POST /things").count(), 2, "refused, and then done");

    // An MCP server reports it in the same way.
    let added =
        json!({ "slug": "remote", "endpoint": format!("{}/mcp", house.api.url), "connect": false });
    good(admin.post("/api/mcp/servers", &added.to_string()));
    house.connect("remote", json!({ "scopes": ["openid", "offline_access", "read"] }));
    begin("remote");
    let call = "return (await tools.remote.org.main.repeat({ text: 'hi' })).data.content[0].text";
    let paused = wait_for(|| Some(agent.execute(call)).filter(|said| said.body.contains("paused")));
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!("hi"), 1));

    // If a server reports missing scopes although they were granted, the person is asked once, and then the call fails.
    let refused = "const told = await tools.things.org.main.t.list({}); return [told.error.code, told.error.status]";
    house.api.wants(|_, _| Some("read everything".into()));
    let paused = agent.execute(refused);
    let no = json!(["connection_rejected", 403]);
    assert_eq!(agreed(&house, &agent, &paused.execution()), (no.clone(), 1));
    assert_eq!(agent.execute(refused).result(), no, "nobody is asked again");
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    house.api.wants(move |_, _| {
        Some(format!("more{}", n_asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed)))
    });
    let paused = agent.execute(refused);
    assert_eq!(
        agreed(&house, &agent, &paused.execution()),
        (no, 2),
        "a wish a time, and not for ever"
    );
    house.told_nobody();
}

/// Describes three flows that obtain tokens at `at`.
fn describe(api: &Echo, at: &str) {
    let scopes = json!({ "openid": "", "offline_access": "", "read": "" });
    let flow = |more: Value| {
        let mut flow = json!({ "tokenUrl": format!("{at}/token"), "refreshUrl": format!("{at}/token?renewing=1"),
            "scopes": scopes.clone() });
        flow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        flow
    };
    let login = json!({ "type": "oauth2", "flows": {
        "authorizationCode": flow(json!({ "authorizationUrl": format!("{at}/auth") })),
        "clientCredentials": flow(json!({})),
    } });
    api.describes("login", login);
    let device = flow(json!({ "deviceAuthorizationUrl": format!("{at}/device/auth") }));
    api.describes(
        "gadget",
        json!({ "type": "oauth2", "flows": { "deviceAuthorization": device } }),
    );
    let document = format!("{at}/.well-known/openid-configuration");
    api.describes("person", json!({ "type": "openIdConnect", "openIdConnectUrl": document }));
}

#[test]
fn a_description_says_where_tokens_come_from_and_nothing_is_found_out() {
    let house = House::new(4, json!({}));
    let (agent, at) = (house.served.client("run"), house.issuer.url.clone());
    describe(&house.api, &at);
    let spec =
        json!({ "slug": "told", "spec": { "kind": "blob", "value": house.api.description() } });
    good(house.admin().post("/api/openapi/specs", &spec.to_string()));
    let ways = good(house.admin().get("/api/integrations/told"))["authMethods"].clone();
    let way = ways
        .as_array()
        .unwrap()
        .iter()
        .find(|way| way["template"] == "oauth-login")
        .unwrap()
        .clone();
    assert_eq!(way["oauth"]["flows"][0]["authorizationUrl"], format!("{at}/auth"), "{way}");

    let connect = |name: &str, template: &str, oauth: Value| {
        let body =
            json!({ "integration": "told", "name": name, "template": template, "oauth": oauth });
        good(house.admin().post("/api/connections", &body.to_string()));
        format!("return (await tools.told.org.{name}.t.list({{}})).ok")
    };
    let known = json!({ "client_id": "known", "client_secret": "canary-KnownSecret/7Rt+Qe1" });
    let (before, first) =
        (house.api.heard().lines().count(), connect("first", "oauth-login", known.clone()));
    let paused = agent.execute(&first);
    let url = link(&paused);
    assert!(url.starts_with(&format!("{at}/auth?")), "{url}");
    assert_eq!(parameter(&url, "scope"), "offline_access+openid+read");
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!(true), 1));
    let machine = json!({ "flow": "client_credentials", "client_id": "machine",
        "client_secret": "canary-ClientSecret/4Xk+Wd9", "scopes": ["read"] });
    assert_eq!(agent.execute(&connect("machine", "oauth-login", machine)).result(), true);
    let paused = agent.execute(&connect("gadget", "oauth-gadget", known));
    Browser::default().visit(&link(&paused), &house.served.url);
    assert_eq!(result(&agent, &paused.execution()), true);
    let heard = house.api.heard();
    let asked: Vec<_> =
        heard.lines().skip(before).filter(|line| line.contains(".well-known")).collect();
    assert_eq!(asked, [""; 0], "the source is not asked who guards it");

    // An expired token is refreshed at the described address.
    wait_for(|| {
        let all = house.issuer.secrets();
        (!all.iter().any(|token| issuer::is_valid(house.issuer.port, token))).then_some(())
    });
    let n_before = house.issuer.n_refreshes();
    assert_eq!(agent.execute(&first).result(), true);
    assert_eq!(house.issuer.n_refreshes(), n_before + 1);
    assert!(house.issuer.heard("/token?renewing=1"), "at its own address");

    // Without a configured client, the named authorization server may register one.
    let person = connect("person", "oauth-person", json!({ "scopes": ["openid", "read"] }));
    let paused = agent.execute(&person);
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!(true), 1));
    let anybody = connect("anybody", "oauth-login", json!({}));
    let paused = agent.execute(&anybody);
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!(true), 1));
    house.told_nobody();
}

#[test]
fn a_token_goes_to_nobody_but_whom_it_is_for() {
    let house = House::new(3_600, json!({ "scopes": ["openid", "offline_access", "read"] }));
    let (agent, admin, other) = (house.served.client("run"), house.admin(), Echo::start());
    let paused = agent.execute(CALL);
    // A browser is redirected only to the exact address that was registered.
    let elsewhere = link(&paused).replace("oauth%2Fcallback", "oauth%2Felsewhere");
    assert_ne!(elsewhere, link(&paused));
    assert_eq!(Browser::default().visit(&elsewhere, &house.served.url), None);
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!(true), 1));
    // If a source moves to another server, that server receives no tokens of it.
    other.names(&house.issuer.url);
    let moved = json!({ "mode": "merge", "baseUrl": other.url }).to_string();
    good(admin.post("/api/openapi/integrations/things/config", &moved));
    let asked = agent.execute(CALL);
    assert!(asked.body.contains("needs your permission"), "{asked:?}");
    assert!(!other.heard().contains("authorization"), "{}", other.heard());
    // A token that was issued for another API is not sent to this one.
    let spec =
        json!({ "slug": "same", "spec": { "kind": "blob", "value": house.api.description() } });
    good(admin.post("/api/openapi/specs", &spec.to_string()));
    house.connect(
        "same",
        json!({ "flow": "client_credentials", "client_id": "machine", "client_secret": "canary-ClientSecret/4Xk+Wd9",
            "scopes": ["read"], "resource": other.url, "issuer": house.issuer.url }),
    );
    let before = house.api.heard();
    let told = agent.execute("return (await tools.same.org.main.t.list({})).error.code").result();
    assert_eq!(told, "connection_audience_refused");
    assert_eq!(house.api.heard(), before);
    house.told_nobody();
}
