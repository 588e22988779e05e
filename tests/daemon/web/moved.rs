//! Addresses that others have linked: of players who were merged, and of servers that were removed.

use super::Site;
use super::http::encoded;
use crate::sandbox::wait_until;

const SERVER: &str = "source://127.0.1.0:27960";

#[track_caller]
fn assert_moved(site: &Site, path: &str, target: &str) {
    let answer = site.get(path);
    assert_eq!((answer.status, answer.header("location")), (301, Some(target)), "{path}: {}", answer.text());
    assert_eq!(site.get(target).status, 200, "{target}");
}

#[test]
fn addresses_of_merged_players_lead_to_their_target() {
    let site = Site::with_history();
    let board = format!("/api/v1/boards?server={}&window=2025-W47&ranking=points", encoded(SERVER));
    let top = site.get(&board).json();
    let key = |n: usize| top["rows"][n]["player_key"].as_u64().expect("a key");
    let [first, second, third] = [key(0), key(1), key(2)];
    let game = site.get(&format!("/api/v1/players/{first}")).json()["game"].clone();
    let merge = |from: u64, into: u64| {
        let game = game.as_str().expect("a game");
        site.sandbox.ok(["player", "merge", &format!("#{from}"), &format!("#{into}"), "--game", game]);
    };
    let check = |from: u64, into: u64| {
        assert_moved(&site, &format!("/players/{from}"), &format!("/players/{into}"));
        assert_moved(&site, &format!("/players/{from}?utm_source=x"), &format!("/players/{into}"));
        assert_moved(&site, &format!("/api/v1/players/{from}"), &format!("/api/v1/players/{into}"));
        for file in ["wide/players/KEY.svg", "small/players/KEY.png"] {
            let path = |key: u64| format!("/banners/{}", file.replace("KEY", &key.to_string()));
            assert_moved(&site, &path(from), &path(into));
        }
        let around = |key: u64| site.get(&format!("{board}&count=3&player_key={key}")).json();
        assert_eq!(around(from)["rows"], around(into)["rows"]);
        assert!(around(into)["rows"].as_array().is_some_and(|rows| !rows.is_empty()));
    };
    let [_, name, oldest] = [0, 1, 2].map(|n| top["rows"][n]["name"].as_str().expect("a name").to_owned());
    let finds = |name: &str, want: u64| {
        wait_until("the name finds the player", || {
            let found = site.get(&format!("/api/v1/search?text={}", encoded(name))).json();
            let players = found["players"].as_array().expect("players");
            players.iter().filter(|player| player["player_key"] == want).count() == 1
        });
    };
    merge(third, second);
    check(third, second);
    finds(&oldest, second);
    // Merged again.
    merge(second, first);
    check(third, first);
    check(second, first);
    finds(&oldest, first);
    finds(&name, first);
    // A forgotten player leads nowhere.
    let game = game.as_str().expect("a game");
    site.sandbox.ok(["player", "forget", &format!("#{first}"), "--game", game, "--yes"]);
    for key in [first, second, third] {
        site.get(&format!("/api/v1/players/{key}")).assert_problem(404, "not_found");
        let page = site.get(&format!("/players/{key}"));
        assert!(page.status == 404 && page.text().contains("This site knows no such player."), "{}", page.text());
    }
    site.daemon.stop();
}

#[test]
fn addresses_of_removed_servers_say_so() {
    let site = Site::with_history();
    site.sandbox.ok(["servers", "remove", SERVER]);
    for path in [
        format!("/servers/{SERVER}"),
        format!("/series/{SERVER}?series=hours"),
        format!("/banners/wide/servers/{SERVER}.svg"),
        format!("/banners/wide/servers/{SERVER}.png"),
    ] {
        let page = site.get(&path);
        assert_eq!(page.status, 410, "{path}: {}", page.text());
        assert!(page.text().contains("was removed"), "{path}: {}", page.text());
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    }
    for path in ["/api/v1/servers/", "/api/v1/best?server=", "/api/v1/live?server="] {
        let problem = site.get(&format!("{path}{}", encoded(SERVER)));
        problem.assert_problem(410, "removed");
    }
    let meaning = site.get("/problems/removed");
    assert!(meaning.status == 200 && meaning.text().contains("<h1>Removed</h1>"), "{}", meaning.text());
    assert_eq!(site.get("/servers/quake3://192.0.2.1:27960").status, 404, "this one was never known");
    site.sandbox.ok(["servers", "add", SERVER]);
    assert_eq!(site.get(&format!("/servers/{SERVER}")).status, 200);
    site.daemon.stop();
}
