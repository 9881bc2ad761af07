//! Client identities at authorization servers: stored by name, registered dynamically, or published by the server
//! itself.

use crate::issuer::Browser;
use crate::oauth_fixture::{self, House, agreed, link, parameter};
use crate::server_fixture::{Client, good};
use serde_json::{Value, json};

const CALL: &str = "return (await tools.things.org.main.t.list({})).ok";
const SECRET: &str = "canary-KnownSecret/7Rt+Qe1";

fn start(admin: &Client, client: &str) -> Value {
    let body = json!({ "client": client, "clientOwner": "org", "owner": "org", "name": "main",
        "integration": "things", "template": "oauth", "scopes": ["openid", "offline_access", "read"] });
    good(admin.post("/api/oauth/start", &body.to_string()))
}

#[test]
fn a_client_is_kept_by_name_used_and_forgotten_and_its_secret_is_never_shown() {
    let house = House::open(3_600, &[]);
    let (admin, agent, at) = (house.admin(), house.served.client("run"), house.issuer.url.clone());
    let probed = good(admin.post("/api/oauth/probe", &json!({ "url": house.api.url }).to_string()));
    assert_eq!(probed["issuer"], at, "{probed}");
    assert_eq!(probed["tokenUrl"], format!("{at}/token"));
    let itself = good(admin.post("/api/oauth/probe", &json!({ "url": at }).to_string()));
    assert_eq!(itself["registrationEndpoint"], format!("{at}/reg"), "{itself}");
    let nobody =
        admin.post("/api/oauth/probe", &json!({ "url": "http://127.0.0.1:1" }).to_string());
    assert_eq!((nobody.status, &nobody.json()["_tag"]), (400, &json!("OAuthProbeError")));

    let app = json!({ "owner": "org", "slug": "ours", "grant": "authorization_code", "clientId": "known",
        "clientSecret": SECRET, "authorizationUrl": format!("{at}/auth"), "tokenUrl": format!("{at}/token") });
    assert_eq!(
        good(admin.post("/api/oauth/clients", &app.to_string())),
        json!({ "client": "ours" })
    );
    let listed = admin.get("/api/oauth/clients");
    assert!(!listed.body.contains(SECRET), "{listed:?}");
    let kept = json!([{ "owner": "org", "slug": "ours", "grant": "authorization_code", "clientId": "known",
        "authorizationUrl": format!("{at}/auth"), "tokenUrl": format!("{at}/token"), "resource": null,
        "origin": { "kind": "manual" } }]);
    assert_eq!(listed.json(), kept);
    assert_eq!(house.served.client("run").get("/api/oauth/clients").status, 403);
    let mut odd = app.clone();
    odd["slug"] = "a b!".into();
    assert_eq!(admin.post("/api/oauth/clients", &odd.to_string()).status, 400);

    let begun = start(&admin, "ours");
    assert_eq!(begun["status"], "redirect", "{begun}");
    let (url, state) =
        (begun["authorizationUrl"].as_str().unwrap(), begun["state"].as_str().unwrap());
    assert_eq!(parameter(url, "client_id"), "known");
    let awaited = || good(admin.get(&format!("/api/oauth/await/{state}")));
    assert_eq!(awaited(), Value::Null, "it goes on");
    let back = house.agree(url);
    // The person's browser returned to another address: a client can pass on its parameters.
    let issuer = at.clone();
    let brought =
        json!({ "state": state, "code": parameter(&back, "code"), "iss": issuer }).to_string();
    let done = good(admin.post("/api/oauth/complete", &brought));
    assert_eq!(done["address"], "tools.things.org.main", "{done}");
    assert_eq!(admin.post("/api/oauth/complete", &brought).status, 404, "once");
    assert_eq!(
        awaited(),
        json!({ "type": "executor:oauth-result", "ok": true, "sessionId": state })
    );
    assert_eq!(awaited(), Value::Null, "once");
    assert_eq!(agent.execute(CALL).result(), true);

    let begun = start(&admin, "ours");
    let body = json!({ "state": begun["state"] }).to_string();
    assert_eq!(good(admin.post("/api/oauth/cancel", &body)), json!({ "cancelled": true }));
    assert_eq!(good(admin.post("/api/oauth/cancel", &body)), json!({ "cancelled": false }));
    let mut machine = app;
    (machine["grant"], machine["slug"]) = ("client_credentials".into(), "robot".into());
    (machine["clientId"], machine["clientSecret"]) =
        ("machine".into(), "canary-ClientSecret/4Xk+Wd9".into());
    machine.as_object_mut().unwrap().remove("authorizationUrl");
    good(admin.post("/api/oauth/clients", &machine.to_string()));
    assert_eq!(start(&admin, "robot")["status"], "connected", "nobody has to agree");
    let kind = ("Content-Type", "application/json");
    let removed = admin.send("DELETE", "/api/oauth/clients/ours", &[kind], "{\"owner\":\"org\"}");
    assert_eq!(good(removed), json!({ "removed": true }));
    let gone = admin.post(
        "/api/oauth/start",
        &json!({ "client": "ours", "integration": "things", "name": "main" }).to_string(),
    );
    assert_eq!((gone.status, &gone.json()["_tag"]), (400, &json!("OAuthStartError")), "{gone:?}");
    house.told_nobody();
}

#[test]
fn a_connection_that_cannot_be_made_leaves_the_one_that_was_there() {
    let house = House::open(3_600, &[]);
    let admin = house.admin();
    let place = "/api/connections/org/things/main";
    let made = |body: Value| {
        let mut whole = json!({ "integration": "things", "name": "main" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        admin.post("/api/connections", &whole.to_string())
    };
    good(made(json!({ "template": "bearer", "value": SECRET })));
    let before = good(admin.get(place));
    let sealed = || good(admin.get("/api/vault"))["secrets"].clone();
    let n_sealed = sealed();
    let body = json!({ "integration": "things", "name": "main", "client": "nobody" }).to_string();
    let refused = admin.post("/api/oauth/start", &body);
    assert_eq!(refused.json()["_tag"], "OAuthStartError", "{refused:?}");
    for wrong in [
        json!({ "template": "oauth", "handoff": true }),
        json!({ "template": "oauth", "value": "a secret too much" }),
        json!({ "template": "bearer", "value": "two of them", "handoff": true }),
        json!({ "template": "bearer", "oauth": { "flow": "code" } }),
        json!({ "template": "bearer", "value": "" }),
        json!({ "template": "bearer", "from": { "provider": "env", "id": "" } }),
        json!({ "template": "bearer", "value": "q".repeat((64 << 10) + 1) }),
    ] {
        let refused = made(wrong.clone());
        assert_eq!(refused.status, 400, "{wrong} {refused:?}");
    }
    let misspelt =
        made(json!({ "template": "oauth", "oauth": { "flo": "code", "client_secret": SECRET } }));
    assert!(misspelt.body.contains("`flo`") && !misspelt.body.contains(SECRET), "{misspelt:?}");
    assert_eq!((good(admin.get(place)), sealed()), (before, n_sealed));
    // A value of the permitted length blocks nothing, also if it repeats itself.
    good(made(json!({ "template": "bearer", "value": "q".repeat(64 << 10) })));
    assert_eq!(good(admin.get(place))["template"], "bearer");
    let body = json!({ "integration": "things", "name": "new", "client": "nobody" }).to_string();
    assert_eq!(admin.post("/api/oauth/start", &body).status, 400);
    assert_eq!(admin.get("/api/connections/org/things/new").status, 404, "and none was made");
}

#[test]
fn a_server_that_reads_documents_reads_ours_and_others_are_introduced() {
    let house = House::open(3_600, &["--public-url", "https://airlock.example"]);
    let (admin, agent) = (house.admin(), house.served.client("run"));
    let nobody = Client { secret: String::new(), ..admin.clone() };
    let id = "https://airlock.example/api/oauth/client-id-metadata.json";
    let about = good(nobody.get("/api/oauth/client-id-metadata.json"));
    assert_eq!(about["client_id"], id);
    assert_eq!(about["redirect_uris"], json!(["https://airlock.example/api/oauth/callback"]));
    // The authorization server resolves this server's name.
    house.issuer.finds("https://airlock.example", &house.served.url);
    house.connect("things", json!({ "scopes": ["openid", "offline_access", "read"] }));
    let paused = agent.execute(CALL);
    let url = link(&paused);
    assert_eq!(parameter(&url, "client_id"), id.replace(':', "%3A").replace('/', "%2F"));
    let back = Browser::default().visit(&url, "https://airlock.example").unwrap();
    assert_eq!(nobody.get(back.strip_prefix("https://airlock.example").unwrap()).status, 200);
    assert_eq!(oauth_fixture::result(&agent, &paused.execution()), true);

    let at = &house.issuer.url;
    let app = json!({ "owner": "org", "slug": "met", "registrationEndpoint": format!("{at}/reg"), "scopes": [],
        "authorizationUrl": format!("{at}/auth"), "tokenUrl": format!("{at}/token") });
    good(admin.post("/api/oauth/clients/register-dynamic", &app.to_string()));
    let listed = good(admin.get("/api/oauth/clients"));
    assert_eq!(listed[0]["origin"], json!({ "kind": "dynamic_client_registration" }), "{listed}");
    let begun = start(&admin, "met");
    let url = begun["url"].as_str().unwrap();
    assert_eq!(parameter(url, "client_id"), listed[0]["clientId"].as_str().unwrap());
    house.told_nobody();
}

#[test]
fn where_nobody_could_read_our_document_we_introduce_ourselves() {
    let house = House::open(3_600, &[]);
    let agent = house.served.client("run");
    house.connect("things", json!({ "scopes": ["openid", "read"] }));
    let paused = agent.execute(CALL);
    assert!(!parameter(&link(&paused), "client_id").contains("metadata"), "{}", link(&paused));
    assert_eq!(agreed(&house, &agent, &paused.execution()), (json!(true), 1));
}
