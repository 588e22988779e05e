//! Screening of lists from a server (docs/rules.md sections 4.2 and 14): which players are
//! ranked, what is counted, and which reasons are reported. One case a test; the rankings of
//! whole logs are compared with an independent implementation in `tests/rules`.

use clqd::engine::{EngineSettings, Event};
use clqd::model::calendar::HOUR_MS;
use clqd::model::server::ScreenReason;
use clqd::model::{Ranking, ServerUrl};
use clqd::scan_log;
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;
use clqd::view::{PublicServerDetail, ServerDetail};
use serde_json::{Value, json};

const START_MS: i64 = 1_763_683_200_000; // 2025-11-21 00:00 UTC

struct Fixture {
    state: State,
    url: ServerUrl,
    /// Fields of each snapshot.
    fields: Value,
    _dir: tempfile::TempDir,
}

impl Fixture {
    fn new(url: &str, fields: Value) -> Fixture {
        Fixture::with(url, fields, EngineSettings::default())
    }

    fn with(url: &str, fields: Value, settings: EngineSettings) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let state = State::open(dir.path(), store, settings).unwrap();
        Fixture { state, url: ServerUrl::parse(url).unwrap(), fields, _dir: dir }
    }

    /// Applies a snapshot at this minute, given as a line of a scan log.
    fn scan(&mut self, minute: i64, fields: Value, players: Value) {
        let mut line = json!({"t": START_MS + minute * 60_000, "server": self.url.as_str(), "players": players});
        for (name, value) in self.fields.as_object().unwrap().iter().chain(fields.as_object().unwrap()) {
            line[name] = value.clone();
        }
        let (url, outcome) = scan_log::parse_scan(&line.to_string()).unwrap();
        self.state.handle(Event::Replayed { url, outcome }).unwrap();
        self.state.commit().unwrap();
    }

    fn detail(&self) -> ServerDetail {
        self.state.engine.model().server_detail(&self.state.store, &self.url).unwrap()
    }

    fn reasons(&self) -> Vec<&'static str> {
        self.detail().public.server.screened.iter().map(|screened| screened.reason.name()).collect()
    }

    /// Names and scores on the server's board, best first.
    fn board(&self, ranking: Ranking) -> Vec<(String, f64)> {
        let top = self.state.engine.model().top(&self.state.store, &self.url, ranking, None, 1_000).unwrap();
        top.rows.into_iter().map(|row| (row.name, row.score)).collect()
    }

    fn names(&self, ranking: Ranking) -> Vec<String> {
        let mut names: Vec<String> = self.board(ranking).into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }
}

fn xonotic() -> Value {
    json!({"game": "Xonotic", "map": "dance", "slots": 16})
}

fn cstrike() -> Value {
    json!({"game": "cstrike", "map": "de_dust2", "slots": 16})
}

fn players(list: &[(&str, i64)]) -> Value {
    list.iter().map(|&(name, points)| json!({"name": name, "points": points, "ping": 30})).collect()
}

#[test]
fn spectator_is_counted_and_listed_but_not_ranked() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:26000", xonotic());
    fixture.scan(0, json!({}), players(&[("a", 9), ("b", 3), ("watcher", -666)]));
    fixture.scan(2, json!({}), players(&[("a", 15), ("b", 7), ("watcher", -666)]));
    fixture.scan(4, json!({}), players(&[("a", 0), ("b", 0), ("watcher", -666)]));
    for ranking in Ranking::ALL.into_iter().filter(|ranking| *ranking != Ranking::Clq1) {
        let names = fixture.names(ranking);
        assert!(names == ["a", "b"] || ranking == Ranking::Clq2, "{ranking:?}: {names:?}");
        assert!(!names.contains(&"watcher".to_owned()));
    }
    let detail = fixture.detail();
    assert_eq!((detail.public.server.players, detail.public.total_points), (3, 0));
    let listed: Vec<_> =
        detail.public.players_listed.iter().map(|player| (player.name.as_str(), player.spectator)).collect();
    assert_eq!(listed, [("a", false), ("b", false), ("watcher", true)]);
    assert_eq!(fixture.state.engine.model().status().players_known, 2, "a spectator has no key");
    // With screening disabled, the marker of a spectator is an ordinary number of points.
    let mut settings = EngineSettings::default();
    settings.rules.screen.enabled = false;
    let mut fixture = Fixture::with("quake3://10.0.0.1:26000", xonotic(), settings);
    fixture.scan(0, json!({}), players(&[("a", 9), ("watcher", -666)]));
    assert_eq!(fixture.names(Ranking::Time), ["a", "watcher"]);
}

#[test]
fn spectator_that_joins_again_has_no_start_and_no_gain() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:26000", xonotic());
    fixture.scan(0, json!({}), players(&[("a", 9), ("b", 5)]));
    fixture.scan(2, json!({}), players(&[("a", 10), ("b", -666)]));
    fixture.scan(4, json!({}), players(&[("a", 11), ("b", 25)]));
    fixture.scan(6, json!({}), players(&[("a", 12), ("b", 27)]));
    // b: two measured minutes at the end and 60 s for one start; 2 points.
    assert_eq!(fixture.board(Ranking::Time)[1], ("b".to_owned(), 180.0));
    assert_eq!(fixture.board(Ranking::Points), [("a".to_owned(), 3.0), ("b".to_owned(), 2.0)]);
}

#[test]
fn bots_without_flag_on_source_server_are_not_ranked() {
    let mut fixture = Fixture::new("source://10.0.0.1:27015", cstrike());
    let all = json!({"count": 3, "bots": 3});
    fixture.scan(0, all.clone(), players(&[("Ivan", 3), ("Boris", 4), ("Max", 1)]));
    assert_eq!(fixture.detail().public.server.players, 0);
    fixture.scan(2, json!({"count": 4, "bots": 3}), players(&[("Ivan", 5), ("human", 0), ("Boris", 4), ("Jan", 1)]));
    fixture.scan(4, json!({"count": 4, "bots": 3}), players(&[("Ivan", 9), ("human", 6), ("Boris", 8), ("Jan", 2)]));
    assert_eq!(fixture.names(Ranking::Points), ["Jan", "human"]);
    let detail = fixture.detail();
    assert_eq!((detail.public.server.players, detail.public.bots_unidentified), (1, 1));
    // The server reports no bots: these names are no longer remembered as bots.
    fixture.scan(6, json!({"count": 2, "bots": 0}), players(&[("Ivan", 9), ("human", 6)]));
    fixture.scan(8, json!({"count": 2, "bots": 1}), players(&[("Ivan", 9), ("human", 7)]));
    assert_eq!(fixture.names(Ranking::Points), ["Ivan", "Jan", "human"]);
}

#[test]
fn list_of_170_players_on_8_slots_is_not_ranked() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "map": "q3dm17", "slots": 8}));
    fixture.scan(0, json!({}), players(&[("a", 1), ("b", 2)]));
    let crowd: Value = (0..170).map(|n| json!({"name": format!("p{n}"), "points": n, "ping": 9})).collect();
    fixture.scan(2, json!({}), crowd.clone());
    fixture.scan(4, json!({}), players(&[("a", 3), ("b", 4)]));
    assert_eq!(fixture.names(Ranking::Time), ["a", "b"]);
    assert_eq!(fixture.board(Ranking::Time)[0].1, 300.0, "the gap spans the unused list");
    assert_eq!(fixture.reasons(), ["more_players_than_slots"]);
    assert_eq!(
        (fixture.detail().public.server.missed, fixture.state.engine.model().counts().implausible_snapshots),
        (0, 1)
    );
    // An exempt server's list is used.
    let url = fixture.url.clone();
    let reason = [ScreenReason::MorePlayersThanSlots];
    assert!(fixture.state.engine.trust_server(&url, &reason, &[]).unwrap());
    assert!(!fixture.state.engine.trust_server(&url, &reason, &[]).unwrap(), "nothing has changed");
    fixture.scan(6, json!({}), crowd);
    assert_eq!(fixture.names(Ranking::Time).len(), 172);
    // A reason is reported for 7 days.
    fixture.scan(7 * 24 * 60 + 3, json!({}), json!([]));
    assert!(fixture.reasons().is_empty());
}

#[test]
fn bots_of_a_greylisted_server_are_not_counted_on_an_unknown_map_either() {
    let mut server = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "slots": 16}));
    let list = json!([{"name": "Sarge", "points": 3, "ping": 0}, {"name": "Visor", "points": 3, "ping": 40}]);
    server.scan(0, json!({"map": "q3dm17"}), list.clone());
    server.state.engine.greylist(&server.state.store, &server.url, Some("fake".to_owned())).unwrap();
    for (minute, map) in [(2, "q3dm17"), (4, "unknown")] {
        server.scan(minute, json!({"map": map}), list.clone());
        assert_eq!(server.detail().public.server.players, 1, "{map}");
    }
}

#[test]
fn frozen_list_shows_no_players_until_it_changes() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "map": "q3dm17", "slots": 8}));
    let list = [("a", 1), ("b", 2), ("c", 3), ("d", 4)];
    for minute in (0..6 * 60).step_by(10) {
        fixture.scan(minute, json!({}), players(&list));
    }
    let time = fixture.board(Ranking::Time)[0].1;
    assert_eq!(fixture.detail().public.server.players, 4);
    fixture.scan(6 * 60, json!({}), players(&list));
    let reversed: Vec<_> = list.into_iter().rev().collect();
    fixture.scan(6 * 60 + 2, json!({}), players(&reversed));
    let detail = fixture.detail();
    assert_eq!(
        (detail.public.server.players, detail.public.server.assumed_players, detail.public.server.class),
        (0, 0, 2)
    );
    assert_eq!((fixture.reasons(), fixture.board(Ranking::Time)[0].1), (vec!["frozen_list"], time));
    fixture.scan(6 * 60 + 4, json!({}), players(&[("a", 1), ("b", 2), ("c", 3), ("d", 5)]));
    assert_eq!(fixture.detail().public.server.players, 4);
}

#[test]
fn new_games_maps_and_names_of_server_are_limited() {
    let mut settings = EngineSettings::default();
    let screen = &mut settings.rules.screen;
    (screen.new_games_per_day_max, screen.new_maps_per_day_max, screen.new_names_per_day_max) = (2, 2, 3);
    let mut fixture = Fixture::with("quake3://10.0.0.1:27960", json!({"slots": 8}), settings);
    for (minute, game) in [(0, "g1"), (2, "g2"), (4, "g3")] {
        fixture.scan(minute, json!({"game": game, "map": "m1"}), players(&[("a", minute)]));
    }
    // Names are counted by game: a in g1, a in g2, and one more.
    assert_eq!(
        (fixture.state.engine.model().counts().implausible_snapshots, fixture.reasons()),
        (1, vec!["too_many_new_games"])
    );
    fixture.scan(6, json!({"game": "g1", "map": "m2"}), players(&[("b", 0), ("a", 0)]));
    fixture.scan(8, json!({"game": "g1", "map": "m3"}), players(&[("b", 1), ("a", 0), ("c", 0)]));
    fixture.scan(10, json!({"game": "g1", "map": "m4"}), players(&[("b", 5), ("a", 9), ("c", 0)]));
    assert_eq!(fixture.reasons(), ["too_many_new_games", "too_many_new_maps", "too_many_new_names"]);
    assert_eq!(fixture.names(Ranking::Time), ["a", "a", "b"]);
    let detail = fixture.detail();
    assert_eq!(detail.public.server.map.as_deref(), Some("(other)"));
    assert!(
        detail.public.players_listed.iter().any(|listed| listed.name == "c" && listed.player_key.is_none()),
        "c is listed without a key"
    );
    assert_eq!(fixture.names(Ranking::Elo), ["a", "b"], "m3 and m4 are different maps: the round has ended");
    // The next day.
    fixture.scan(24 * 60, json!({"game": "g3", "map": "m5"}), players(&[("c", 0)]));
    assert_eq!(fixture.detail().public.server.map.as_deref(), Some("m5"));
    assert_eq!(fixture.names(Ranking::Time), ["a", "a", "b", "c"]);
}

#[test]
fn impossible_gain_counts_as_zero() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "map": "q3dm17", "slots": 8}));
    fixture.scan(0, json!({}), players(&[("a", 1), ("b", 1)]));
    fixture.scan(2, json!({}), players(&[("a", 1_000_002), ("b", 1_000_001), ("c", 1_000_001)]));
    assert_eq!(fixture.board(Ranking::Points)[0], ("b".to_owned(), 1_000_000.0));
    assert_eq!(fixture.board(Ranking::Points)[1].1, 0.0);
    assert_eq!(fixture.reasons(), ["impossible_gain"]);
}

#[test]
fn players_with_same_generic_name_end_no_round() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "map": "q3dm17", "slots": 8}));
    for minute in 0..30 {
        let minute = 2 * minute;
        fixture.scan(minute, json!({}), players(&[("UnnamedPlayer", minute), ("UnnamedPlayer", 3)]));
    }
    assert_eq!(fixture.state.engine.model().counts().rounds, 0);
    // A player leaves; two players with the same generic name are present before and after.
    fixture.scan(60, json!({}), players(&[("UnnamedPlayer", 60), ("UnnamedPlayer", 3), ("a", 0)]));
    fixture.scan(62, json!({}), players(&[("UnnamedPlayer", 61), ("UnnamedPlayer", 3)]));
    assert_eq!((fixture.state.engine.model().counts().rounds, fixture.board(Ranking::Elo)), (0, vec![]));
}

#[test]
fn player_without_points_is_on_time_board_only() {
    let mut fixture = Fixture::new("source://10.0.0.1:27015", cstrike());
    for minute in [0, 2, 4] {
        let map = if minute < 4 { "m1" } else { "m2" };
        let list = json!([{"name": "a", "points": 5 * minute}, {"name": "b"}, {"name": "c", "points": 1}]);
        fixture.scan(minute, json!({"map": map}), list);
    }
    assert_eq!(fixture.names(Ranking::Time), ["a", "b", "c"]);
    for ranking in [Ranking::Points, Ranking::Elo] {
        assert_eq!(fixture.names(ranking), ["a", "c"], "{ranking:?}");
    }
}

#[test]
fn estimated_time_covers_half_of_unseen_gaps() {
    let mut fixture = Fixture::new("quake3://10.0.0.1:27960", json!({"game": "baseq3", "map": "q3dm17", "slots": 8}));
    fixture.scan(0, json!({}), players(&[("a", 0)]));
    fixture.scan(2, json!({}), players(&[("a", 0), ("b", 0)]));
    fixture.scan(6, json!({}), players(&[("b", 0)]));
    fixture.scan(20, json!({}), players(&[("b", 0)]));
    let estimates = |name: &str| {
        let player = fixture.state.engine.model().players(&fixture.state.store, name).unwrap().remove(0);
        (player.weeks[0].time_ms, player.weeks[0].estimates.time_est_ms)
    };
    // 60 s for the start, 2 minutes of presence, and half of the 4 minutes in which a left.
    assert_eq!(estimates("a"), (180_000, 60_000 + 120_000 + 120_000));
    // Half of 2 minutes, 4 minutes, and the start after a gap of 14 minutes, for which no end
    // of the earlier presence is estimated.
    assert_eq!(estimates("b"), (120_000 + 240_000, 60_000 + 240_000 + 60_000));
}

#[test]
fn screening_state_survives_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let open = || State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let line = |t_ms: i64, bots: u32, names: &[&str]| {
        let players: Value = names.iter().map(|name| json!({"name": name, "points": 3})).collect();
        json!({"t": t_ms, "server": "source://10.0.0.1:27015", "game": "cstrike", "map": "m", "slots": 16,
               "count": names.len(), "bots": bots, "players": players})
    };
    let handle = |state: &mut State, line: Value| {
        let (url, outcome) = scan_log::parse_scan(&line.to_string()).unwrap();
        state.handle(Event::Replayed { url, outcome }).unwrap();
        state.commit().unwrap();
    };
    let mut state = open();
    handle(&mut state, line(START_MS, 4, &["b1", "b2", "b3", "b4"]));
    let crowd: Vec<String> = (0..60).map(|n| format!("p{n}")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    handle(&mut state, line(START_MS + 60_000, 0, &crowd));
    let players = ["p1", "p2", "p3", "p4", "b1"];
    for hour in 0..6 {
        handle(&mut state, line(START_MS + 120_000 + hour * HOUR_MS, 1, &players));
        drop(state);
        state = open();
    }
    let url = ServerUrl::parse("source://10.0.0.1:27015").unwrap();
    let detail = state.engine.model().server_detail(&state.store, &url).unwrap();
    assert_eq!(detail.public.server.players, 4, "b1 is remembered as a bot");
    handle(&mut state, line(START_MS + 120_000 + 6 * HOUR_MS, 1, &players));
    let detail = state.engine.model().server_detail(&state.store, &url).unwrap();
    let reasons: Vec<_> = detail.public.server.screened.iter().map(|screened| screened.reason).collect();
    assert_eq!(reasons, [ScreenReason::MorePlayersThanSlots, ScreenReason::FrozenList]);
    assert_eq!(detail.public.server.players, 0);
}

#[test]
fn forgotten_name_is_not_remembered_as_bot() {
    let mut fixture = Fixture::new("source://10.0.0.1:27015", cstrike());
    fixture.scan(0, json!({"count": 1, "bots": 0}), players(&[("Ivan the Bot", 3)]));
    fixture.scan(2, json!({"count": 1, "bots": 1}), players(&[("Ivan the Bot", 3)]));
    fixture.scan(4, json!({"count": 0, "bots": 0}), json!([]));
    assert!(fixture.state.store.contains_bytes(b"Ivan the Bot").unwrap());
    let name = PlayerSelector::Name("Ivan the Bot".to_owned());
    let State { engine, store } = &mut fixture.state;
    engine.forget_player(store, "cstrike", &name, START_MS + HOUR_MS).unwrap();
    fixture.state.commit().unwrap();
    assert!(!fixture.state.store.contains_bytes(b"Ivan the Bot").unwrap());
}

/// Servers such as Minecraft Bedrock never send a list: they have a game, a map and a history by counts.
#[test]
fn server_without_lists_has_game_map_and_series() {
    let mut fixture = Fixture::new(
        "bedrock://10.0.0.1:19132",
        json!({"game": "MinecraftBedrock", "map": "world", "slots": 20, "partial": true, "count": 7}),
    );
    for minute in (0..=20).step_by(2) {
        fixture.scan(minute, json!({}), json!([]));
    }
    let summary = fixture.detail().public.server;
    assert_eq!((summary.game.as_deref(), summary.map.as_deref()), (Some("MinecraftBedrock"), Some("world")));
    assert_eq!((summary.players, summary.assumed_players, summary.class), (7, 7, 1));
    assert!(!summary.players_unverified && summary.screened.is_empty());
    let PublicServerDetail { series, maps, .. } = fixture.detail().public;
    let slots: Vec<f64> = series.unwrap().ten_minutes.into_iter().flatten().map(f64::round).collect();
    assert_eq!(slots, [7.0, 7.0]);
    assert_eq!(maps.len(), 1, "{maps:?}");
}

/// It says nothing, so the class follows the last count that is believed: that of the third list, not the median.
#[test]
fn count_that_cannot_be_true_does_not_change_the_class() {
    let mut fixture = Fixture::new("source://10.0.0.1:27015", cstrike());
    fixture.scan(0, json!({}), players(&[("a", 1)]));
    fixture.scan(1, json!({}), players(&[("a", 1)]));
    fixture.scan(2, json!({}), players(&[("a", 1), ("b", 1), ("c", 1)]));
    fixture.fields["partial"] = true.into();
    fixture.fields["count"] = 1_001.into();
    fixture.scan(3, json!({}), json!([]));
    let summary = fixture.detail().public.server;
    assert_eq!((summary.players_unverified, summary.assumed_players, summary.class), (true, 1, 1));
}

#[test]
fn count_that_cannot_be_true_is_only_shown() {
    let mut fixture =
        Fixture::new("source://10.0.0.1:27015", json!({"game": "cstrike", "map": "de_dust2", "slots": 32}));
    let partial = |count: u32| json!({"partial": true, "count": count});
    fixture.scan(0, partial(3), json!([]));
    for (minute, count) in [(2, 33), (4, 65_000)] {
        fixture.fields["partial"] = true.into();
        fixture.fields["count"] = count.into();
        fixture.scan(minute, json!({}), json!([]));
        let summary = fixture.detail().public.server;
        assert_eq!((summary.players, summary.players_unverified, summary.believed_players()), (count, true, 0));
        assert_eq!(fixture.reasons(), ["unverified_count"]);
        assert_eq!(fixture.state.engine.model().status().players_online, 0);
    }
    fixture.state.engine.trust_server(&fixture.url, &[ScreenReason::UnverifiedCount], &[]).unwrap();
    fixture.scan(6, json!({}), json!([]));
    let summary = fixture.detail().public.server;
    assert_eq!((summary.players, summary.players_unverified, summary.class), (65_000, false, 1));
}
