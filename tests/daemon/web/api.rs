//! The JSON API: its rows are those of the commands, without what visitors must not see.

use std::collections::BTreeSet;
use std::io::Write;

use clqd::fleet::FaultShares;
use clqd::model::search_text::fold;
use serde_json::Value;

use super::http::{encoded, next_event, watch};
use super::{Site, http};
use crate::sandbox::{fleet, wait_for, wait_until};

fn rows<'a>(answer: &'a Value, name: &str) -> &'a Vec<Value> {
    answer[name].as_array().unwrap_or_else(|| panic!("no {name} in {answer}"))
}

#[test]
fn status_is_that_of_the_command_without_files() {
    let site = Site::start("");
    let answer = site.get("/api/v1/status");
    let status = answer.json();
    assert_eq!((answer.status, &status["kind"]), (200, &"status".into()));
    assert_eq!(status["daemon"]["version"], env!("CARGO_PKG_VERSION"));
    let of_command = site.sandbox.status();
    for field in ["engine", "clock", "outbox_entries", "archive", "store", "log", "counters"] {
        assert!(status.get(field).is_some() && of_command.get(field).is_some(), "{field}");
    }
    assert!(!answer.text().contains(site.sandbox.state().to_str().expect("UTF-8")), "{status}");
    for field in ["pid", "state_dir", "config_file"] {
        assert!(status["daemon"].get(field).is_none() && of_command["daemon"].get(field).is_some(), "{field}");
    }
    site.daemon.stop();
}

#[test]
fn servers_are_listed_in_pages_filtered_and_shown() {
    let (site, fleet) = Site::with_fleet(7, 73);
    let urls = fleet.urls();
    site.sandbox.ok(["servers", "tag", "--add", "ctf", &urls[0], &urls[3]]);
    let mut listed = Vec::new();
    let mut path = "/api/v1/servers?limit=3".to_owned();
    let mut pages = 0;
    loop {
        let page = site.get(&path).json();
        let servers = rows(&page, "servers");
        assert!(servers.len() <= 3);
        listed.extend(servers.iter().map(|server| server["url"].as_str().expect("a URL").to_owned()));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/servers?limit=3&after={}", encoded(next));
    }
    assert_eq!((&listed, pages), (&urls, 3), "the order in which they were added");
    let of_command = site.sandbox.list(&[]);
    let all = site.get("/api/v1/servers").json();
    for server in rows(&all, "servers") {
        let same = of_command.iter().find(|row| row["url"] == server["url"]).expect("listed");
        for field in ["kind", "key", "hostname", "game", "slots", "added_ms", "tags"] {
            assert_eq!(server[field], same[field], "{field}");
        }
        assert_eq!(server["greylisted"], false);
    }
    let found = |query: &str| {
        let page = site.get(&format!("/api/v1/servers?{query}")).json();
        rows(&page, "servers")
            .iter()
            .map(|server| server["url"].as_str().expect("a URL").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("tag=ctf"), [urls[0].clone(), urls[3].clone()]);
    assert_eq!(found("tag=nothing"), [""; 0]);
    let game = of_command[0]["game"].as_str().expect("a game");
    let of_game: BTreeSet<_> = of_command
        .iter()
        .filter(|row| row["game"] == game)
        .map(|row| row["url"].as_str().expect("a URL").to_owned())
        .collect();
    assert_eq!(found(&format!("game={}", encoded(game))).into_iter().collect::<BTreeSet<_>>(), of_game);
    assert_eq!(found(&format!("text={}", encoded(&urls[2]))), [urls[2].clone()]);
    assert_eq!(found("map=no-such-map"), [""; 0]);

    for path in [encoded(&urls[1]), urls[1].clone()] {
        let shown = site.get(&format!("/api/v1/servers/{path}")).json();
        assert_eq!((&shown["kind"], shown["url"].as_str()), (&"server_detail".into(), Some(urls[1].as_str())));
        assert!(shown["players_listed"].is_array() && shown["series"].is_object(), "{shown}");
    }
    site.daemon.stop();
}

/// What an admin wrote about a server, and what checks it is exempt from, is not for visitors.
#[test]
fn greylisting_is_shown_without_its_reason() {
    let (site, fleet) = Site::with_fleet(2, 74);
    let url = &fleet.urls()[0];
    site.sandbox.ok(["greylist", url, "--reason", "suspected-of-cheating"]);
    site.sandbox.ok(["servers", "trust", url, "--except", "frozen_list"]);
    let of_command = site.sandbox.json(["servers", "show", url]).remove(0);
    assert_eq!(of_command["greylist_reason"], "suspected-of-cheating");
    for path in [format!("/api/v1/servers/{}", encoded(url)), "/api/v1/servers".to_owned(), "/metrics".to_owned()] {
        let answer = site.get(&path);
        assert_eq!(answer.status, 200);
        let text = answer.text();
        assert!(!text.contains("suspected") && !text.contains("greylist_reason") && !text.contains("exempt"), "{text}");
    }
    assert_eq!(site.get(&format!("/api/v1/servers/{}", encoded(url))).json()["greylisted"], true);
    site.daemon.stop();
}

#[test]
fn boards_and_players_are_those_of_the_commands() {
    let Site { sandbox, daemon, address } = Site::with_history();
    let server = "source://127.0.1.0:27960".to_owned();
    let of_server = format!("/api/v1/boards?server={}&window=2025-W47", encoded(&server));
    let args = ["--server", &server, "--window", "2025-W47"];
    for ranking in ["clq1", "points"] {
        let answer = http::get(&address, &format!("{of_server}&ranking={ranking}&count=5"));
        let board = answer.json();
        let want = sandbox.json([&["board", "page", "--ranking", ranking, "-n", "5"], &args[..]].concat());
        assert_eq!(rows(&board, "rows"), &want[1..], "{ranking}");
        assert!(!rows(&board, "rows").is_empty(), "{board}");
        for field in ["kind", "scope", "window", "ranking", "size", "closed"] {
            assert_eq!(board["head"][field], want[0][field], "{ranking} {field}");
        }
        let after = board["head"]["page"]["after"].as_str().expect("a cursor");
        let next =
            http::get(&address, &format!("{of_server}&ranking={ranking}&count=5&after={}", encoded(after))).json();
        let page = http::get(&address, &format!("{of_server}&ranking={ranking}&count=5&start=6")).json();
        assert_eq!(next["rows"], page["rows"]);
    }
    let top = http::get(&address, &format!("{of_server}&count=3")).json();
    let (name, key) = (top["rows"][1]["name"].as_str().expect("a name"), &top["rows"][1]["player_key"]);
    let around = http::get(&address, &format!("{of_server}&count=3&player={}", encoded(name))).json();
    assert_eq!(around["rows"], top["rows"], "the second of three");
    let by_key = http::get(&address, &format!("{of_server}&count=3&player_key={key}")).json();
    assert_eq!(by_key["rows"], around["rows"]);

    let found = http::get(&address, &format!("/api/v1/players?name={}", encoded(name))).json();
    assert_eq!(rows(&found, "players"), &sandbox.json(["player", name]));
    let missing = http::get(&address, "/api/v1/players?name=nobody-has-this-name");
    missing.assert_problem(404, "not_found");
    http::get(&address, "/api/v1/boards?game=no-such-game").assert_problem(404, "not_found");
    http::get(&address, &format!("{of_server}5")).assert_problem(400, "bad_request");
    daemon.stop();
}

#[test]
fn answers_are_cached_by_etag_and_compressed() {
    let fleet = fleet(3, 75, 60.0, FaultShares::NONE);
    let site = Site::start("");
    site.sandbox.add_servers(&fleet);
    // Until it is scanned, a server has class 7. Afterwards the list stays empty.
    wait_until("every server is seen", || site.sandbox.list(&["--online"]).len() == 3);
    let path = "/api/v1/servers?class=7";
    let first = site.get(path);
    let etag = first.header("etag").expect("an ETag").to_owned();
    assert_eq!(first.header("cache-control"), Some("public, max-age=10"));
    assert_eq!(first.header("access-control-allow-origin"), Some("*"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let again = http::request(&site.address, "GET", path, &format!("if-none-match: {etag}\r\n"));
    assert_eq!((again.status, again.header("etag"), again.body.len()), (304, Some(etag.as_str()), 0));
    let other = http::request(&site.address, "GET", path, "if-none-match: \"other\"\r\n");
    assert_eq!((other.status, &other.body), (200, &first.body));

    let gzip = "accept-encoding: gzip\r\n";
    // The rows of servers change with each scan.
    let plain = site.get("/api/v1/openapi.json");
    let compressed = http::request(&site.address, "GET", "/api/v1/openapi.json", gzip);
    assert!(plain.header("content-encoding").is_none() && !plain.body.is_empty());
    assert!(plain.body == compressed.body, "the body without its encoding");
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")));
    let head = http::request(&site.address, "HEAD", path, "");
    assert_eq!((head.status, head.body.len(), head.header("etag")), (200, 0, Some(etag.as_str())));
    site.daemon.stop();
}

#[test]
fn players_are_found_by_parts_of_their_names() {
    let Site { sandbox, daemon, address } = Site::with_history();
    let board =
        sandbox.json(["board", "page", "--server", "source://127.0.1.0:27960", "--window", "2025-W47", "-n", "1"]);
    let (name, key) = (board[1]["name"].as_str().expect("a name"), board[1]["player_key"].as_u64().expect("a key"));
    let find = |text: &str, limit: u32| -> Vec<(u64, String)> {
        let found = http::get(&address, &format!("/api/v1/search?text={}&limit={limit}", encoded(text))).json();
        let player = |row: &Value| {
            (row["player_key"].as_u64().expect("a key"), row["name"].as_str().expect("a name").to_owned())
        };
        rows(&found, "players").iter().map(player).collect()
    };
    // The names are read after the start.
    wait_for("the player is found", || find(name, 500).iter().find(|(found, _)| *found == key).cloned());
    let upper: String = fold(name).to_uppercase();
    let inside: String = upper.chars().skip(1).collect();
    assert!(inside.chars().count() >= 3, "{name}");
    for text in [upper.as_str(), inside.as_str(), &upper[..upper.chars().next().expect("a character").len_utf8()]] {
        let found = find(text, 500);
        assert!(found.iter().any(|(found, _)| *found == key), "{text} in {found:?}");
        let folded = fold(text);
        assert!(found.iter().all(|(_, name)| fold(name).contains(&folded)), "{text}: {found:?}");
        assert!(found.is_sorted_by_key(|(_, name)| !fold(name).starts_with(&folded)), "{found:?}");
        assert_eq!(find(text, 1).len(), 1);
        let of_command = sandbox.json(["player", "search", "-n", "500", text]);
        assert_eq!(of_command.len(), found.len(), "{text}");
    }
    assert_eq!(find("no player has this name", 5), []);
    let by_key = http::get(&address, &format!("/api/v1/players/{key}")).json();
    assert_eq!((&by_key["kind"], by_key["name"].as_str()), (&"player".into(), Some(name)));
    http::get(&address, "/api/v1/players/999999999").assert_problem(404, "not_found");
    http::get(&address, "/api/v1/players/x").assert_problem(400, "bad_request");
    http::get(&address, "/api/v1/search").assert_problem(400, "bad_request");
    // A forgotten player is not found, although the name is still in memory.
    sandbox.ok(["player", "forget", &format!("#{key}"), "--game", by_key["game"].as_str().expect("a game"), "--yes"]);
    assert!(find(name, 500).iter().all(|(found, _)| *found != key));
    let overview = http::get(&address, "/api/v1/overview").json();
    assert_eq!((&overview["kind"], &overview["servers_online"]), (&"overview".into(), &0.into()));
    let known = overview["players_known"].as_u64().expect("a number");
    let windows = http::get(&address, "/api/v1/windows").json();
    assert_eq!(rows(&windows, "windows"), &sandbox.json(["board", "windows"]));
    assert_eq!(sandbox.json(["overview"])[0]["players_known"].as_u64(), Some(known));
    let series = http::get(&address, "/api/v1/series").json();
    assert!(series["series"].is_null() || series["series"]["hours"]["players"].is_array(), "{series}");
    http::get(&address, "/api/v1/series?game=no-such-game").assert_problem(404, "not_found");
    http::get(&address, "/api/v1/series?game=a&tag=b").assert_problem(400, "bad_request");
    daemon.stop();
}

/// Errors of the API are problems with words for people, whatever the request.
#[test]
fn bad_paths_queries_and_heads_are_problems() {
    let site = Site::start("");
    for path in ["/api/v1/maps/%ff", "/api/v1/players/%ff", "/api/v1/servers/%ff", "/api/v1/%ff"] {
        site.get(path).assert_problem(400, "bad_request");
    }
    for (query, want) in [
        ("servers?class=300", "class is \"300\"; expected 1 to 7"),
        ("servers?limit=99999999999", "limit is \"99999999999\"; expected 1 to 500"),
        ("servers?online=1", "online is \"1\"; expected true or false"),
        ("servers?orde=rank", "there is no parameter \"orde\"; did you mean order?"),
        ("boards?game=a&at_ms=-1", "at_ms is \"-1\"; expected 0 to "),
        ("boards?game=a&game=b", "the parameter game is there twice"),
        ("search", "the parameter text is missing"),
        ("players/99999999999", "the key of a player is a number"),
    ] {
        let answer = site.get(&format!("/api/v1/{query}"));
        answer.assert_problem(400, "bad_request");
        let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.starts_with(want), "{query}: {detail}");
    }
    for (head, status) in [
        ("GET /api/v1/overview HTTP/1.1\r\nconnection: close\r\n\r\n", 400),
        ("GET /api/v1/overview HTTP/1.1\r\nhost: a\r\nhost: a\r\nconnection: close\r\n\r\n", 400),
        ("GET /api/v1/overview HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        ("GET /api/v1/overview HTTP/1.0\r\n\r\n", 200),
    ] {
        let mut stream = http::connect(&site.address);
        stream.write_all(head.as_bytes()).expect("sent");
        let answer = http::read_answer(&mut stream);
        assert_eq!(answer.status, status, "{head}");
        if status == 400 {
            answer.assert_problem(400, "bad_request");
        }
    }
    site.daemon.stop();
}

#[test]
fn searches_can_be_turned_off() {
    let site = Site::start("search_memory_bytes = 0\n");
    site.get("/api/v1/search?text=vis").assert_problem(409, "refused");
    assert_eq!(site.get("/search?q=vis").status, 200);
    site.daemon.stop();
}

#[test]
fn changes_are_streamed() {
    let (site, fleet) = Site::with_fleet(2, 76);
    let url = fleet.urls()[0].clone();
    site.get("/api/v1/live?server=quake3://192.0.2.1:27960").assert_problem(404, "not_found");
    site.get("/api/v1/live?x=1").assert_problem(400, "bad_request");
    let mut home = watch(&site.address, "/api/v1/live");
    let (name, overview) = next_event(&mut home);
    assert_eq!((name.as_str(), &overview["servers"]), ("overview", &2.into()));
    let mut server = watch(&site.address, &format!("/api/v1/live?server={}", encoded(&url)));
    let (name, detail) = next_event(&mut server);
    assert_eq!(
        (name.as_str(), detail["url"].as_str(), &detail["greylisted"]),
        ("server", Some(url.as_str()), &false.into())
    );
    assert!(detail["players_listed"].is_array() && detail.get("series").is_none(), "{detail}");
    site.sandbox.ok(["greylist", &url, "--reason", "suspected-of-cheating"]);
    loop {
        let (_, detail) = next_event(&mut server);
        assert!(!detail.to_string().contains("suspected"), "{detail}");
        if detail["greylisted"] == true {
            break;
        }
    }
    site.sandbox.ok(["servers", "remove", &fleet.urls()[1]]);
    while next_event(&mut home).1["servers"] != 1 {}
    site.daemon.stop();
}
