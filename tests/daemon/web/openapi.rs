//! The description of the API: every answer is as described, with no other fields.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::http::{self, encoded, next_event, watch};
use super::{Site, history};
use crate::sandbox::{Sandbox, wait_until};

/// The description of a site, and what was compared with it.
struct Description {
    document: Value,
    address: String,
    /// Paths and statuses.
    checked: BTreeSet<(String, u16)>,
}

impl Description {
    fn of(address: &str) -> Description {
        let mut document = http::get(address, "/api/v1/openapi.json").json();
        forbid_other_fields(&mut document["components"]["schemas"]);
        Description { document, address: address.to_owned(), checked: BTreeSet::new() }
    }

    /// The faults of an answer, or of the data of an event.
    #[track_caller]
    fn faults(&self, path: &str, status: u16, content_type: &str, body: &Value) -> Vec<String> {
        let response = &self.document["paths"][path]["get"]["responses"][status.to_string()];
        let schema = &response["content"][content_type]["schema"];
        assert!(schema.is_object(), "{path} has no answer {status} of {content_type}: {response}");
        let schema = json!({ "allOf": [schema], "components": self.document["components"] });
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// Requests the described path with the given end, and returns the answer.
    #[track_caller]
    fn check(&mut self, path: &str, end: &str, status: u16) -> Value {
        let request = format!("/api/v1{}{end}", path.split('{').next().unwrap_or_default());
        let answer = http::get(&self.address, &request);
        assert_eq!(answer.status, status, "{request}: {}", answer.text());
        let (body, path) = (answer.json(), format!("/api/v1{path}"));
        let faults = self.faults(&path, status, answer.header("content-type").unwrap_or_default(), &body);
        assert!(faults.is_empty(), "{request}: {faults:#?}");
        self.checked.insert((path, status));
        body
    }
}

/// Makes fields that are not described errors.
fn forbid_other_fields(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("properties").is_some_and(Value::is_object) && !object.contains_key("additionalProperties") {
                object.insert("additionalProperties".to_owned(), false.into());
            }
            object.values_mut().for_each(forbid_other_fields);
        }
        Value::Array(parts) => parts.iter_mut().for_each(forbid_other_fields),
        _ => (),
    }
}

#[test]
fn answers_are_as_described() {
    let site = history::closed();
    let (server, url) = (history::SERVER, encoded(history::SERVER));
    let mut api = Description::of(&site.address);

    assert_eq!(api.document["openapi"], "3.1.0");
    assert_eq!(api.document["info"]["version"], env!("CARGO_PKG_VERSION"));
    api.check("/openapi.json", "", 200);
    api.check("/status", "", 200);
    api.check("/overview", "", 200);
    api.check("/overview", "?x=1", 400);
    api.check("/series", "", 200);
    api.check("/series", "?game=no-such-game", 404);

    let page = api.check("/servers", "?limit=1&recent=true", 200);
    let next = encoded(page["next"].as_str().expect("a second page"));
    api.check("/servers", &format!("?limit=500&after={next}"), 200);
    for order in ["added", "players", "rank", "name"] {
        api.check("/servers", &format!("?order={order}"), 200);
    }
    api.check("/servers", "?limit=501", 400);
    let mut detail = api.check("/servers/{url}", &url, 200);
    api.check("/servers/{url}", server, 200);
    api.check("/servers/{url}", "quake3%3A%2F%2F192.0.2.1%3A1", 404);
    api.check("/servers/{url}", "nonsense", 400);
    detail["series"]["x"] = 1.into();
    let faults = api.faults("/api/v1/servers/{url}", 200, "application/json", &detail);
    assert_eq!(faults.len(), 1, "another field is a fault: {faults:?}");
    api.check("/best", &format!("?server={url}"), 200);
    api.check("/best", "", 400);
    api.check("/best", "?server=quake3://192.0.2.1:1", 404);

    api.check("/windows", "", 200);
    let of_server = format!("?server={url}&window=2025-W47");
    for ranking in ["clq1", "clq2", "elo", "points", "time"] {
        api.check("/boards", &format!("{of_server}&ranking={ranking}&count=500"), 200);
    }
    let board = api.check("/boards", &format!("{of_server}&start=2&count=2"), 200);
    for cursor in ["after", "before"] {
        let of_page = encoded(board["head"]["page"][cursor].as_str().expect("a cursor"));
        api.check("/boards", &format!("{of_server}&{cursor}={of_page}"), 200);
    }
    let player = &board["rows"][0];
    let (name, key) = (encoded(player["name"].as_str().expect("a name")), player["player_key"].to_string());
    let around = api.check("/boards", &format!("{of_server}&player_key={key}"), 200);
    assert!(around["head"].get("page").is_none(), "{around}");
    api.check("/boards", &format!("{of_server}&player={name}"), 200);
    api.check("/boards", "?game=no-such-game", 404);
    api.check("/boards", "", 400);

    api.check("/players", &format!("?name={name}"), 200);
    api.check("/players", "?name=nobody-has-this-name", 404);
    api.check("/players", "", 400);
    api.check("/players", &format!("?name={}", "x".repeat(20_000)), 414);
    let shown = api.check("/players/{key}", &key, 200);
    assert!(shown["weeks"].as_array().is_some_and(|weeks| !weeks.is_empty()), "{shown}");
    api.check("/players/{key}", "999999999", 404);
    api.check("/players/{key}", "x", 400);
    wait_until("the player is found", || {
        let found = api.check("/search", &format!("?text={name}&limit=500"), 200);
        found["players"].as_array().is_some_and(|players| !players.is_empty())
    });
    api.check("/search", "", 400);

    let servers = site.sandbox.list(&[]);
    let map = servers.iter().find_map(|server| server["map"].as_str()).expect("a map");
    wait_until("the weeks of the map are read", || {
        let map = api.check("/maps/{name}", &encoded(map), 200);
        map["weeks"].as_array().is_some_and(|weeks| !weeks.is_empty())
    });
    api.check("/maps/{name}", "no-such-map", 404);
    let maps = api.check("/maps", "?limit=500", 200);
    assert_eq!(maps["maps"], json!(site.sandbox.json(["maps", "-n", "500"])));
    api.check("/maps", &format!("?text={}", encoded(map)), 200);
    api.check("/maps", "?limit=0", 400);
    api.check("/live", "?server=quake3://192.0.2.1:1", 404);

    let etag = site.get("/api/v1/openapi.json").header("etag").expect("an ETag").to_owned();
    let headers = format!("if-none-match: {etag}\r\n");
    assert_eq!(http::request(&site.address, "GET", "/api/v1/openapi.json", &headers).status, 304);

    let paths = api.document["paths"].as_object().expect("paths").keys();
    let unchecked: Vec<_> = paths.filter(|path| !api.checked.contains(&((*path).clone(), 200))).collect();
    assert_eq!(unchecked, ["/api/v1/live"], "its events are compared in another test");
    site.daemon.stop();
}

#[test]
fn servers_and_events_are_as_described() {
    let (site, fleet) = Site::with_fleet(5, 77);
    let mut api = Description::of(&site.address);
    site.sandbox.ok(["servers", "tag", "--add", "ctf", &fleet.urls()[0]]);
    api.check("/status", "", 200);
    api.check("/overview", "", 200);
    api.check("/servers", "?recent=true&online=true&order=players", 200);
    for url in fleet.urls() {
        api.check("/servers/{url}", &encoded(&url), 200);
    }
    let event = |query: &str, want: &str| {
        let (name, data) = next_event(&mut watch(&site.address, &format!("/api/v1/live{query}")));
        assert_eq!(name, want);
        let faults = api.faults("/api/v1/live", 200, "text/event-stream", &data);
        assert!(faults.is_empty(), "{query}: {faults:#?}");
    };
    event("", "overview");
    event(&format!("?server={}", encoded(&fleet.urls()[0])), "server");
    site.daemon.stop();
}

#[test]
fn refusals_are_as_described() {
    let sandbox = Sandbox::new("");
    sandbox.configure(
        "[web]\nlisten = \"127.0.0.1:0\"\nsearch_memory_bytes = 0\nclient_requests_per_second_max = 1\n\
         client_burst_requests = 2\n",
    );
    let daemon = sandbox.start();
    let mut api = Description::of(sandbox.status()["daemon"]["web"].as_str().expect("an address"));
    api.check("/search", "?text=a", 409);
    wait_until("the client is over its rate", || http::get(&api.address, "/api/v1/search?text=a").status == 429);
    daemon.stop();
}
