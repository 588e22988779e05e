//! What needs all weeks: maps over time, the best players of a server, merged names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{SCAN_LOG, Site, http};
use crate::sandbox::{Sandbox, WEB_WITHOUT_RATE_LIMIT, wait_until};

/// The weeks of the recorded scans, newest first.
const WEEKS: [&str; 2] = ["2025-W48", "2025-W47"];

pub(super) const SERVER: &str = "source://127.0.1.0:27960";

/// A site whose recorded weeks are closed. Commits are rare, so what is read beside the engine must have
/// the changes that the engine shows.
pub(super) fn closed() -> Site {
    let sandbox = Sandbox::new("");
    sandbox.ok(["replay".as_ref(), SCAN_LOG.as_ref(), "--state".as_ref(), sandbox.state().as_os_str()]);
    sandbox.configure(WEB_WITHOUT_RATE_LIMIT);
    let site = Site::of(sandbox);
    site.sandbox.ok(["clock", "accept"]);
    wait_until("the weeks are closed", || {
        let status = site.sandbox.status();
        let weeks = status["engine"]["weeks"].as_array().expect("weeks");
        let is_closed = |week: &str| weeks.iter().any(|state| state["week"] == week && state["phase"] == "closed");
        WEEKS.into_iter().all(is_closed)
    });
    site
}

#[test]
fn weeks_of_maps_are_the_sums_of_their_servers() {
    let sandbox = Sandbox::new("");
    sandbox.ok(["replay".as_ref(), SCAN_LOG.as_ref(), "--state".as_ref(), sandbox.state().as_os_str()]);
    // Servers, minutes, and player-minutes of each map.
    let mut maps: BTreeMap<String, (u64, f64, f64)> = BTreeMap::new();
    for server in sandbox.list(&[]) {
        let detail = sandbox.json(["servers", "show", server["url"].as_str().expect("a URL")]).remove(0);
        for map in detail["maps"].as_array().expect("maps") {
            let (servers, minutes, player_minutes) =
                maps.entry(map["map"].as_str().expect("a name").to_owned()).or_default();
            let of_map = map["minutes"].as_f64().expect("minutes");
            *servers += 1;
            *minutes += of_map;
            *player_minutes += of_map * map["average_players"].as_f64().expect("players");
        }
    }
    assert!(maps.len() > 2, "{maps:?}");
    let all: f64 = maps.values().map(|(.., player_minutes)| player_minutes).sum();
    let site = Site::start_in(sandbox);
    for (map, (servers, minutes, player_minutes)) in &maps {
        let path = format!("/api/v1/maps/{map}");
        wait_until("the weeks of the map are read", || {
            site.get(&path).json()["weeks"].as_array().is_some_and(|weeks| !weeks.is_empty())
        });
        let answer = site.get(&path).json();
        // The offline answer is for the week in which the log ends.
        let week = &answer["weeks"][0];
        assert_eq!((&week["week"], &week["servers"]), (&WEEKS[0].into(), &(*servers).into()), "{map}");
        for (field, want) in
            [("minutes", *minutes), ("average_players", player_minutes / minutes), ("share", player_minutes / all)]
        {
            let got = week[field].as_f64().expect("a number");
            assert!((got - want).abs() <= 1e-9 * want.abs(), "{map} {field}: {got} instead of {want}");
        }
        assert_eq!(site.sandbox.json(["map", map]), std::slice::from_ref(&answer));
        let page = site.get(&format!("/maps/{map}"));
        assert!(page.status == 200 && page.text().contains(&format!("title=\"{}\">", WEEKS[0])), "{}", page.text());
    }
    let totals = site.sandbox.json(["maps", "-n", "500"]);
    let share = |totals: &Value| totals["share"].as_f64().expect("a share");
    assert!(totals.is_sorted_by(|a, b| share(a) >= share(b)) && totals.len() >= maps.len(), "{totals:?}");
    assert!((totals.iter().map(share).sum::<f64>() - 1.0).abs() < 1e-9, "{totals:?}");
    let name = totals[0]["map"].as_str().expect("a name");
    assert_eq!(site.sandbox.json(["maps", &name.to_uppercase()])[0], totals[0]);
    let link = format!("<a href=\"/maps/{name}\">");
    for path in ["/maps".to_owned(), format!("/search?q={}", &name[1..])] {
        let page = site.get(&path);
        assert!(page.text().contains(&link), "{path}: {}", page.text());
    }
    let unknown = site.get("/api/v1/maps/q3dm5");
    unknown.assert_problem(404, "not_found");
    assert!(unknown.text().contains("did you mean"), "{}", unknown.text());
    // The same answers without the daemon.
    let commands = [vec!["maps", "-n", "500"], vec!["maps", &name[1..]], vec!["map", name]];
    let answers = |sandbox: &Sandbox| commands.clone().map(|args| sandbox.json(args));
    let with_daemon = answers(&site.sandbox);
    site.daemon.stop();
    assert_eq!(answers(&site.sandbox), with_daemon);
}

/// The servers of the log are not online.
#[test]
fn search_finds_servers_that_are_offline() {
    let site = Site::with_history();
    let servers = site.sandbox.list(&[]);
    let server = servers.iter().find(|server| server["online"] == false).expect("its scans are old");
    let url = server["url"].as_str().expect("a URL");
    let hostname = server["hostname"].as_str().expect("a name").to_uppercase();
    let link = format!("<a href=\"/servers/{url}\">");
    for text in [url, &url[3..], &hostname] {
        let path = format!("/search?q={}", http::encoded(text));
        wait_until("the server is found", || site.get(&path).text().contains(&link));
        let found = site.sandbox.list(&[text]);
        assert!(found.iter().any(|found| found["url"] == server["url"]), "{text}: {found:?}");
    }
    let removed = site.sandbox.json(["servers", "remove", url]);
    assert_eq!(removed[0]["outcome"], "removed");
    assert!(!site.get(&format!("/search?q={}", http::encoded(url))).text().contains(&link));
    site.daemon.stop();
}

#[test]
fn best_players_have_the_best_positions_of_all_closed_weeks() {
    let site = closed();
    let path = format!("/api/v1/best?server={SERVER}");
    let best = || site.get(&path).json();
    let answer = best();
    let rankings = answer["rankings"].as_array().expect("rankings");
    assert_eq!(rankings.iter().map(|of| &of["ranking"]).collect::<Vec<_>>(), ["clq1", "clq2", "elo"]);
    for of in rankings {
        let ranking = of["ranking"].as_str().expect("a name");
        // Each player's positions and weeks on the boards, the best first.
        let mut on_boards: BTreeMap<u64, Vec<(u64, &str)>> = BTreeMap::new();
        for week in WEEKS {
            let args = ["board", "page", "--server", SERVER, "--window", week, "--ranking", ranking, "-n", "500"];
            for entry in &site.sandbox.json(args)[1..] {
                let positions = on_boards.entry(entry["player_key"].as_u64().expect("a key")).or_default();
                positions.push((entry["position"].as_u64().expect("a position"), week));
                positions.sort_unstable();
            }
        }
        let mut want: Vec<(u64, Vec<(u64, &str)>)> = on_boards.into_iter().collect();
        let position = |places: &[(u64, &str)], n: usize| places.get(n).map_or(u64::MAX, |(position, _)| *position);
        want.sort_by_key(|(key, places)| {
            (position(places, 0), position(places, 1), places.iter().map(|(_, week)| *week).collect::<Vec<_>>(), *key)
        });
        want.truncate(10);
        let players = of["players"].as_array().expect("players");
        let got: Vec<(u64, Vec<(u64, &str)>)> = players
            .iter()
            .map(|player| {
                let places = player["positions"].as_array().expect("positions").iter();
                let place = |of: &'_ Value| {
                    (of["position"].as_u64().expect("a position"), of["week"].as_str().expect("a week").to_owned())
                };
                let places: Vec<(u64, String)> = places.map(place).collect();
                let known = |(position, week): (u64, String)| {
                    (position, WEEKS.into_iter().find(|known| *known == week).expect("a recorded week"))
                };
                (player["player_key"].as_u64().expect("a key"), places.into_iter().map(known).collect())
            })
            .collect();
        assert_eq!(got, want, "{ranking}");
    }
    assert_eq!(site.sandbox.json(["servers", "best", SERVER]), std::slice::from_ref(&answer));
    let page = site.get(&format!("/servers/{SERVER}")).text().to_owned();
    assert!(page.contains("All-time best") && page.contains(&format!("1 in {}", WEEKS[1])), "{page}");
    site.get("/api/v1/best?server=quake3://192.0.2.1:1").assert_problem(404, "not_found");

    // Who is merged into another player or forgotten is not listed any more.
    let players = rankings[0]["players"].as_array().expect("players");
    let game = site.get(&format!("/api/v1/players/{}", players[0]["player_key"])).json()["game"].clone();
    let game = game.as_str().expect("a game");
    let key = |player: &Value| format!("#{}", player["player_key"]);
    let (first, second, third) = (key(&players[0]), key(&players[1]), key(&players[2]));
    site.sandbox.ok(["player", "merge", &second, &first, "--game", game]);
    site.sandbox.ok(["player", "forget", &third, "--game", game, "--yes"]);
    let now: Vec<Value> = best()["rankings"][0]["players"].as_array().expect("players").to_vec();
    assert_eq!(key(&now[0]), first);
    assert!(now.iter().all(|player| key(player) != second && key(player) != third), "{now:?}");

    let merged = site.get(&format!("/api/v1/players/{}", players[0]["player_key"])).json();
    assert_eq!(merged["aliases"], serde_json::json!([players[1]["name"]]));
    let page = site.get(&format!("/players/{}", players[0]["player_key"]));
    assert!(page.text().contains("Merged with: "), "{}", page.text());
    // The same answers without the daemon.
    let name = players[0]["name"].as_str().expect("a name");
    let answers =
        |sandbox: &Sandbox| [["servers", "best", SERVER], ["player", "search", name]].map(|args| sandbox.json(args));
    wait_until("the names are read", || !answers(&site.sandbox)[1].is_empty());
    let with_daemon = answers(&site.sandbox);
    site.daemon.stop();
    assert_eq!(answers(&site.sandbox), with_daemon);
}
