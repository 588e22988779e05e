//! Corrections during a week: immediately after each, the boards of servers, games and tags
//! equal the sums of the exported rows, cached boards equal rebuilt ones, and the archive's
//! jobs equal both. The ratings of other players do not change by a bit. All of this holds
//! after the state is closed and opened again.
//!
//! No database is used (see `tests/archive`) and no daemon (see `tests/daemon/corrections.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::scans;
use clqd::board::window::{Shape, WindowSpec, WindowTypes};
use clqd::engine::{
    CorrectionError, EngineSettings, Event, Outcome, RebuiltState, RemovedPlayer, StateReader, ViewError,
};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::limits::TAGS_MAX;
use clqd::model::archive::WeekArchive;
use clqd::model::calendar::{Calendar, MINUTE_MS, week_label};
use clqd::model::rebuild::RebuildStep;
use clqd::model::row::{PlayerRow, Ranking};
use clqd::model::{
    ArchiveJob, Completeness, NameHash, OutboxKey, Player, PlayerKey, Scope, ServerUrl, Snapshot, WeekKey, WindowKey,
    WindowType,
};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::Top;
use clqd::view::board::{BoardQuery, BoardRow, BoardSelector, PlayerSelector};

const FROM_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC
const GAME: &str = "baseq3";
const WINDOWS: [&str; 3] = ["week", "day", "all-time"];

/// Rows with their positions, by server and name.
type Exported = BTreeMap<(String, String), (PlayerRow, [Option<u32>; 5])>;

/// Three servers, scanned every two minutes; the map changes every twenty minutes.
struct Fixture {
    dir: tempfile::TempDir,
    state: Option<State>,
    minute: i64,
    /// The players of each server, with points a minute.
    lists: BTreeMap<&'static str, Vec<(&'static str, i64)>>,
    greylisted: BTreeSet<&'static str>,
    tagged: BTreeSet<&'static str>,
}

fn settings() -> EngineSettings {
    let spec = |kind, shape| WindowSpec { kind, shape, keep: 5 };
    let all_time = WindowSpec { kind: WindowType::ALL_TIME, shape: Shape::AllTime, keep: 0 };
    let windows = WindowTypes::new(Calendar::default(), [spec(WindowType::DAY, Shape::Day), all_time]).unwrap();
    EngineSettings { archive_enabled: true, windows, ..EngineSettings::default() }
}

fn url(server: &str) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://{server}:27960")).unwrap()
}

impl Fixture {
    /// The servers after an hour of play.
    fn new() -> Fixture {
        let lists = BTreeMap::from([
            ("a", vec![("Visor", 3), ("Klesk", 2), ("^1Sarge", 1)]),
            ("b", vec![("Visor", 1), ("Bones", 4)]),
            ("c", vec![("Klesk", 5), ("Alt", 7), ("Bones", 2)]),
        ]);
        let tagged = BTreeSet::from(["a", "c"]);
        let dir = tempfile::tempdir().unwrap();
        let mut fixture = Fixture { dir, state: None, minute: 0, lists, greylisted: BTreeSet::new(), tagged };
        fixture.open();
        for (server, tags) in [("a", vec!["ctf".to_owned()]), ("b", vec![]), ("c", vec!["ctf".to_owned()])] {
            fixture.state().engine.add_server(url(server), tags, FROM_MS).unwrap();
        }
        fixture.play(60);
        fixture
    }

    fn open(&mut self) {
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        self.state = Some(State::open(self.dir.path(), store, settings()).unwrap());
    }

    /// Opens the state again as after a crash: uncommitted data are lost.
    fn reopen(&mut self) {
        self.state = None;
        self.open();
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().unwrap()
    }

    fn now_ms(&self) -> i64 {
        FROM_MS + self.minute * MINUTE_MS
    }

    fn week(&self) -> WeekKey {
        Calendar::default().week(self.now_ms())
    }

    fn play(&mut self, minutes: i64) {
        for _ in 0..minutes / 2 {
            self.minute += 2;
            let (t_ms, minute) = (self.now_ms(), self.minute);
            for (server, list) in self.lists.clone() {
                let player = |(name, rate): (&str, i64)| Player {
                    name: name.into(),
                    points: Some(rate * (minute % 20)),
                    ping: Some(40),
                    ..Player::default()
                };
                let snapshot = Snapshot {
                    t_ms,
                    game: GAME.to_owned(),
                    map: format!("map{}", minute / 20 % 3),
                    hostname: server.to_owned(),
                    slots: 16,
                    players: list.into_iter().map(player).collect(),
                    completeness: Completeness::Full,
                    count: None,
                    bots: None,
                };
                let outcome = Outcome::Snapshot(snapshot);
                self.state().handle(Event::Replayed { url: url(server), outcome }).unwrap();
            }
            self.state().handle(Event::Tick { now_ms: t_ms }).unwrap();
            self.state().commit().unwrap();
        }
    }

    fn greylist(&mut self, server: &'static str, reason: Option<&str>) {
        let state = self.state();
        state.engine.greylist(&state.store, &url(server), reason.map(str::to_owned)).unwrap();
        self.state().commit().unwrap();
        match reason {
            Some(_) => _ = self.greylisted.insert(server),
            None => _ = self.greylisted.remove(server),
        }
    }

    fn tag(&mut self, server: &'static str, add: &[&str], remove: &[&str]) -> bool {
        let owned = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>();
        let changed = self.state().engine.tag_server(&url(server), &owned(add), &owned(remove)).unwrap();
        self.state().commit().unwrap();
        if add.contains(&"ctf") {
            self.tagged.insert(server);
        } else if remove.contains(&"ctf") {
            self.tagged.remove(server);
        }
        changed
    }

    fn merge(&mut self, from: &str, into: &str) -> Result<(PlayerKey, PlayerKey), CorrectionError> {
        self.state().commit().unwrap();
        let State { engine, store } = self.state();
        let merged = engine.merge_players(store, GAME, &name(from), &name(into))?;
        self.state().commit().unwrap();
        Ok((merged.from, merged.into))
    }

    fn forget(&mut self, player: &str) -> PlayerKey {
        self.state().commit().unwrap();
        let now_ms = self.now_ms();
        let State { engine, store } = self.state();
        let forgotten = engine.forget_player(store, GAME, &name(player), now_ms).unwrap();
        self.state().commit().unwrap();
        forgotten.player
    }

    fn key(&mut self, player: &str) -> Option<PlayerKey> {
        self.state().store.players_named(player).unwrap().first().map(|(_, player)| *player)
    }

    fn top(&mut self, week: WeekKey, server: &str) -> Top {
        let State { engine, store } = self.state();
        engine.model().top(store, &url(server), Ranking::Time, Some(&week_label(week)), 9).unwrap()
    }

    /// Rows of the current week as exported, by server and name.
    fn exported(&mut self) -> Exported {
        let label = week_label(self.week());
        let State { engine, store } = self.state();
        let mut rows = BTreeMap::new();
        engine
            .model()
            .export(store, &label, |url, _, name, row, positions| {
                let server = url.trim_start_matches("quake3://").trim_end_matches(":27960");
                rows.insert((server.to_owned(), name.to_owned()), (row.clone(), positions));
                Ok::<_, ViewError>(())
            })
            .unwrap();
        rows
    }

    /// Whether a name occurs in any key or value of the store.
    fn stored(&mut self, name: &str) -> bool {
        self.state().store.contains_bytes(name.as_bytes()).unwrap()
    }

    /// Every entry of every board: player, score, time.
    fn boards(&mut self) -> BTreeMap<String, Vec<(u32, i64, i64)>> {
        let now = self.now_ms();
        for window in WindowTypes::windows_at(&settings().windows, now) {
            self.state().commit_and_build_boards(window).unwrap();
        }
        let cached = self.read_boards();
        for window in WindowTypes::windows_at(&settings().windows, now) {
            let State { engine, store } = self.state();
            let built = clqd::state::build_boards(&engine.plan_boards(window), &store.reader()).unwrap();
            engine.install_boards(built);
            while engine.refresh_boards(store, None, 3).unwrap() {}
        }
        assert_eq!(self.read_boards(), cached, "rebuilt boards equal cached ones");
        self.check_sums(&cached);
        cached
    }

    /// Players and scores on the board of a tag in the week, best first.
    fn tag_board(&mut self, tag: &str, ranking: Ranking) -> Result<Vec<(u32, i64)>, ViewError> {
        let week = week_label(self.week());
        let scope = Scope::Tag(tag.to_owned());
        let board = BoardSelector { scope, ranking, window: Some(week), at_ms: None };
        let State { engine, store } = self.state();
        let response = engine.model().query_board(store, &board, &BoardQuery::Top { count: 100 })?;
        let positions = response.rows.into_iter().map(|row| match row {
            BoardRow::Entry(place) => (place.player_key, place.at.raw_score),
            other => panic!("{other:?}"),
        });
        Ok(positions.collect())
    }

    fn read_boards(&mut self) -> BTreeMap<String, Vec<(u32, i64, i64)>> {
        let mut boards = BTreeMap::new();
        let groups = [Scope::Game(GAME.to_owned()), Scope::Tag("ctf".to_owned())];
        let scopes: Vec<Scope> = ["a", "b", "c"].map(|s| Scope::Server(url(s))).into_iter().chain(groups).collect();
        let State { engine, store } = self.state();
        for scope in &scopes {
            for (window, ranking) in WINDOWS.into_iter().flat_map(|w| Ranking::ALL.map(|r| (w, r))) {
                let board =
                    BoardSelector { scope: scope.clone(), ranking, window: Some(window.to_owned()), at_ms: None };
                let response = engine.model().query_board(store, &board, &BoardQuery::Top { count: 100 }).unwrap();
                let positions = response.rows.into_iter().map(|row| match row {
                    BoardRow::Entry(place) => (place.player_key, place.at.raw_score, place.at.reached_ms),
                    other => panic!("{other:?}"),
                });
                boards.insert(format!("{scope} {window} {}", ranking.name()), positions.collect());
            }
        }
        boards
    }

    /// Compares points and time on the boards of the week with the sums of the exported rows.
    fn check_sums(&mut self, boards: &BTreeMap<String, Vec<(u32, i64, i64)>>) {
        let rows = self.exported();
        assert!(rows.keys().all(|(server, _)| !self.greylisted.contains(server.as_str())));
        for (scope, counts) in [
            ("game:baseq3", BTreeSet::from(["a", "b", "c"])),
            ("tag:ctf", self.tagged.clone()),
            ("server:quake3://b:27960", BTreeSet::from(["b"])),
        ] {
            let mut sums: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
            for ((server, name), (row, _)) in rows.iter().filter(|((server, _), _)| counts.contains(server.as_str())) {
                let player = self.key(name).unwrap_or_else(|| panic!("{name} on {server} is known"));
                let sum = sums.entry(player.0).or_default();
                (sum.0, sum.1) = (sum.0 + row.points, sum.1 + row.time_ms() as i64);
            }
            let of = |ranking| &boards[&format!("{scope} week {ranking}")];
            let got = |ranking| of(ranking).iter().map(|&(player, raw, _)| (player, raw)).collect::<BTreeMap<_, _>>();
            assert_eq!(got("points"), sums.iter().map(|(p, s)| (*p, s.0)).collect(), "{scope}");
            assert_eq!(got("time"), sums.iter().map(|(p, s)| (*p, s.1)).collect(), "{scope}");
        }
    }

    /// Bits of all ratings, of servers and of groups, by player.
    fn ratings(&mut self) -> BTreeMap<(u32, String), (u64, u32)> {
        let windows = WindowTypes::windows_at(&settings().windows, self.now_ms());
        let mut ratings = BTreeMap::new();
        for ((server, name), (row, _)) in self.exported() {
            let player = self.key(&name).unwrap().0;
            ratings.insert((player, server), (row.elo.to_bits(), row.elo_rounds));
        }
        let store = &self.state().store;
        let was_assigned = |key: &u32| {
            let player = PlayerKey(*key);
            store.player_record(player).unwrap().is_some() || store.removed_player(player).unwrap().is_some()
        };
        let known = (1..).take_while(was_assigned).last().unwrap_or(0);
        for (window, player) in windows.into_iter().flat_map(|w| (1..=known).map(move |p| (w, p))) {
            let Some(of_player) = self.state().store.player_window(window, PlayerKey(player)).unwrap() else {
                continue;
            };
            let tags = of_player.tag_ratings.iter().map(|(tag, rating)| (Some(*tag), *rating));
            for (tag, rating) in of_player.game_rating.into_iter().map(|rating| (None, rating)).chain(tags) {
                ratings.insert((player, format!("{window:?} {tag:?}")), (rating.elo.to_bits(), rating.rounds));
            }
        }
        ratings
    }

    /// Acknowledges the jobs of a resync, if one is due, and all pending ones, and returns them.
    fn archived(&mut self) -> BTreeMap<OutboxKey, ArchiveJob> {
        let mut all: BTreeMap<_, _> = scans::resync(self.state()).into_iter().map(|job| (job.key(), job)).collect();
        loop {
            let now_ms = self.now_ms();
            self.state().handle(Event::Tick { now_ms }).unwrap();
            self.state().commit().unwrap();
            let State { engine, store } = self.state();
            let jobs = engine.archive_jobs(store, None, None, 1_000, 100_000).unwrap();
            if jobs.is_empty() {
                return all;
            }
            engine.acknowledge_archived(&jobs.iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
            jobs.into_iter().filter_map(|(_, job)| job).for_each(|job| scans::write(&mut all, job));
        }
    }

    fn archived_week(&mut self, jobs: &BTreeMap<OutboxKey, ArchiveJob>, server: &str) -> WeekArchive {
        let (week, list) = (self.week(), self.state().engine.model().servers().collect::<Vec<_>>());
        let key = list.iter().find(|it| it.public.url == url(server).as_str()).unwrap().public.key;
        match &jobs[&OutboxKey::Week { week, server: clqd::model::ServerKey(key) }] {
            ArchiveJob::Week(job) => (**job).clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn name(name: &str) -> PlayerSelector {
    PlayerSelector::Name(name.to_owned())
}

fn of_others<T: Clone>(values: &BTreeMap<(u32, String), T>, without: &[PlayerKey]) -> BTreeMap<(u32, String), T> {
    values
        .iter()
        .filter(|((player, _), _)| !without.contains(&PlayerKey(*player)))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

// Greylist and tags ------------------------------------------------------

#[test]
fn greylisted_server_is_on_no_board_until_removed_from_greylist() {
    let mut fixture = Fixture::new();
    let (before, ratings) = (fixture.boards(), fixture.ratings());
    assert!(before["tag:ctf week points"].len() == 5 && before["game:baseq3 week elo"].len() == 5);
    fixture.archived();

    fixture.greylist("c", Some("fake"));
    for _ in 0..2 {
        let greylisted = fixture.boards();
        assert!(greylisted.iter().all(|(board, positions)| !board.contains("//c:") || positions.is_empty()));
        assert_eq!(greylisted["server:quake3://a:27960 week elo"], before["server:quake3://a:27960 week elo"]);
        let alt = fixture.key("Alt").unwrap();
        for board in ["game:baseq3", "tag:ctf"].into_iter().flat_map(|of| WINDOWS.map(|w| format!("{of} {w} time"))) {
            assert!(!greylisted[&board].iter().any(|position| position.0 == alt.0), "Alt is only on c: {board}");
        }
        fixture.reopen();
    }
    let jobs = fixture.archived();
    assert!(fixture.archived_week(&jobs, "c").rows.is_empty());
    let week = fixture.week();
    assert_eq!(fixture.top(week, "c").size, 0);

    fixture.greylist("c", None);
    assert_eq!((fixture.boards(), fixture.ratings()), (before, ratings), "the greylist left no trace");
    let jobs = fixture.archived();
    assert_eq!(fixture.archived_week(&jobs, "c").rows.len(), 3);
}

#[test]
fn greylist_does_not_change_closed_weeks() {
    const WEEK: i64 = 7 * 24 * 60;
    let mut fixture = Fixture::new();
    let first = fixture.week();
    fixture.minute = WEEK;
    fixture.play(2); // and the first week is closed
    let closed = fixture.top(first, "c");
    assert!(closed.closed && closed.size == 3);
    fixture.greylist("c", Some("fake"));
    assert_eq!(fixture.top(first, "c"), closed);
    let State { engine, store } = fixture.state();
    assert!(engine.archive_jobs(store, None, None, 1_000, 100_000).unwrap().iter().any(|(_, job)| {
        matches!(job, Some(ArchiveJob::Week(job)) if job.week == first && job.rows.len() == 3 && job.closed)
    }));

    // The second week ends while the server is greylisted: it is closed without its rows.
    let second = fixture.week();
    fixture.minute = 2 * WEEK;
    fixture.play(2);
    fixture.greylist("c", None);
    fixture.reopen();
    assert_eq!(fixture.top(first, "c"), closed);
    let greylisted = fixture.top(second, "c");
    assert_eq!((greylisted.closed, greylisted.size), (true, 0));
    assert!(fixture.state().store.rows(second.into(), clqd::model::ServerKey(3)).unwrap().is_empty());
    let alt = fixture.key("Alt").unwrap();
    let best = fixture.state().store.best(clqd::model::ServerKey(3), alt).unwrap().unwrap();
    assert!(best.top_three().iter().flatten().all(|(_, week)| *week == first));
    for week in [first, second] {
        let State { engine, store } = fixture.state();
        let built = clqd::state::build_boards(&engine.plan_boards(WindowKey::from(week)), &store.reader()).unwrap();
        engine.install_boards(built);
        let players = engine.model().boards(week.into()).unwrap().players();
        assert_eq!(players, if week == first { 5 } else { 4 }, "{week}");
    }
}

#[test]
fn tag_change_updates_boards_and_keeps_ratings() {
    let mut fixture = Fixture::new();
    let (before, ratings) = (fixture.boards(), fixture.ratings());
    assert!(!fixture.tag("c", &["ctf"], &["other"]), "nothing to change");
    assert!(fixture.tag("c", &[], &["ctf"]));
    let without = fixture.boards();
    assert_eq!(without["tag:ctf week time"].len(), 3);
    assert_eq!(without["game:baseq3 week elo"], before["game:baseq3 week elo"]);
    assert!(fixture.tag("c", &["ctf", "new"], &[]));
    assert_eq!((fixture.boards(), fixture.ratings()), (before, ratings));
    // Adding a known address adds its tags.
    fixture.state().engine.add_server(url("b"), vec!["ctf".to_owned()], FROM_MS).unwrap();
    fixture.tagged.insert("b");
    fixture.boards();
    assert!(fixture.state().engine.tag_server(&url("nowhere"), &[], &[]).is_err());
}

// Merge ------------------------------------------------------------------

#[test]
fn merged_names_share_rows_boards_and_best_positions() {
    let mut fixture = Fixture::new();
    let (ratings, rows) = (fixture.ratings(), fixture.exported());
    fixture.archived();
    let (klesk, visor) = fixture.merge("Klesk", "Visor").unwrap();
    assert_eq!(of_others(&fixture.ratings(), &[klesk, visor]), of_others(&ratings, &[klesk, visor]));
    for _ in 0..2 {
        let boards = fixture.boards();
        assert!(boards.values().flatten().all(|position| position.0 != klesk.0));
        let merged = fixture.exported();
        let row = |rows: &BTreeMap<_, (PlayerRow, _)>, server: &str, name: &str| {
            rows.get(&(server.to_owned(), name.to_owned())).map(|(row, _)| row.clone())
        };
        let (of_visor, of_klesk) = (row(&rows, "a", "Visor").unwrap(), row(&rows, "a", "Klesk").unwrap());
        let got = row(&merged, "a", "Visor").unwrap();
        assert_eq!((got.points, got.starts), (of_visor.points + of_klesk.points, of_visor.starts + of_klesk.starts));
        assert_eq!(
            (got.elo.to_bits(), got.elo_rounds),
            (of_visor.elo.to_bits(), of_visor.elo_rounds),
            "a tie keeps the target's rating"
        );
        assert_eq!(row(&merged, "c", "Visor"), row(&rows, "c", "Klesk"), "a server that only Klesk was on");
        assert!(merged.keys().all(|(_, name)| name != "Klesk"));
        assert_eq!((fixture.key("Klesk"), fixture.key("Visor")), (Some(visor), Some(visor)));
        fixture.reopen();
    }
    assert_eq!(fixture.state().store.removed_player(klesk).unwrap(), Some(RemovedPlayer { into: Some(visor) }));
    let jobs = fixture.archived();
    assert_eq!(jobs[&OutboxKey::Player(klesk)], ArchiveJob::PlayerRemoved { key: klesk, into: Some(visor) });
    assert_eq!(fixture.archived_week(&jobs, "c").rows.iter().filter(|row| row.player == visor).count(), 1);
    assert!(fixture.archived_week(&jobs, "a").rows.iter().all(|row| row.player != klesk));

    // Both names stay in the list of one server: one presence, that of the first.
    fixture.play(60);
    fixture.boards();
    let after = fixture.exported();
    let row = &after[&("a".to_owned(), "Visor".to_owned())].0;
    assert_eq!(row.starts, 2, "no player entered");
    assert_eq!(row.measured_ms, 2 * 58 * MINUTE_MS as u64 + 60 * MINUTE_MS as u64);
    let State { engine, store } = fixture.state();
    let list = engine.model().server_detail(store, &url("a")).unwrap().public.players_listed;
    let keys: Vec<_> = list.iter().map(|entry| (entry.name.as_str(), entry.player_key)).collect();
    assert_eq!(keys[..2], [("Visor", Some(visor.0)), ("Klesk", None)]);

    // The player returns with the other name alone; of both names the first listed counts.
    fixture.lists.insert("a", vec![("Klesk", 2), ("^1Sarge", 1)]);
    fixture.play(2);
    assert_eq!(fixture.exported()[&("a".to_owned(), "Visor".to_owned())].0.starts, 3);
    fixture.lists.insert("b", vec![("Bones", 4)]);
    fixture.play(2);
    fixture.lists.insert("b", vec![("Klesk", 1), ("Visor", 9), ("Bones", 4)]);
    fixture.play(2);
    let State { engine, store } = fixture.state();
    let list = engine.model().server_detail(store, &url("b")).unwrap().public.players_listed;
    assert_eq!([list[0].player_key, list[1].player_key], [Some(visor.0), None]);
    fixture.boards();

    // A second merge: all names and pending archive jobs refer to the last player.
    let (_, bones) = fixture.merge("Klesk", "Bones").unwrap();
    assert_eq!([fixture.key("Klesk"), fixture.key("Visor")], [Some(bones); 2]);
    scans::claim_archive(fixture.state(), None, 1);
    let jobs = fixture.archived();
    for gone in [klesk, visor] {
        assert_eq!(jobs[&OutboxKey::Player(gone)], ArchiveJob::PlayerRemoved { key: gone, into: Some(bones) });
    }
    let online: Vec<_> = jobs
        .values()
        .filter_map(|job| match job {
            ArchiveJob::Server(server) => Some(&server.list),
            _ => None,
        })
        .flatten()
        .filter_map(|entry| entry.player)
        .collect();
    assert!(online.contains(&bones) && !online.contains(&visor) && !online.contains(&klesk));
    fixture.reopen();
    fixture.boards();
}

#[test]
fn merge_keeps_rating_with_more_rounds() {
    let mut fixture = Fixture::new();
    let rounds =
        |fixture: &mut Fixture, name: &str| fixture.exported()[&("c".to_owned(), name.to_owned())].0.elo_rounds;
    fixture.lists.insert("c", vec![("Klesk", 5), ("New", 7), ("Bones", 2)]);
    fixture.play(90);
    assert!(rounds(&mut fixture, "New") != rounds(&mut fixture, "Alt"));
    let more = if rounds(&mut fixture, "New") > rounds(&mut fixture, "Alt") { "New" } else { "Alt" };
    let expected = fixture.exported()[&("c".to_owned(), more.to_owned())].0.clone();
    fixture.merge("New", "Alt").unwrap();
    let row = fixture.exported()[&("c".to_owned(), "Alt".to_owned())].0.clone();
    assert_eq!(
        (row.elo.to_bits(), row.elo_rounds, row.elo_at_ms),
        (expected.elo.to_bits(), expected.elo_rounds, expected.elo_at_ms)
    );
    fixture.boards();
}

#[test]
fn invalid_merge_is_refused_with_reason() {
    let mut fixture = Fixture::new();
    let visor = fixture.key("Visor").unwrap();
    for (from, into, expected) in [
        ("Visor", "Visor", "both names belong to player"),
        ("Nobody", "Visor", "is named \"Nobody\""),
        ("Visor", "visor", "case-sensitive"),
    ] {
        let error = fixture.merge(from, into).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let State { engine, store } = fixture.state();
    let error = engine.merge_players(store, "baseq4", &name("a"), &name("b")).unwrap_err().to_string();
    assert!(error.contains("did you mean \"baseq3\""), "{error}");
    let error = engine.merge_players(store, GAME, &PlayerSelector::Key(77), &name("Visor")).unwrap_err().to_string();
    assert!(error.contains("77"), "{error}");
    assert!(!fixture.state().engine.model().has_changes());
    let State { engine, store } = fixture.state();
    let merged = engine.merge_players(store, GAME, &PlayerSelector::Key(visor.0), &name("Bones")).unwrap();
    assert_eq!(merged.from, visor);
}

#[test]
fn merge_changes_kept_closed_weeks() {
    let mut fixture = Fixture::new();
    let closed = fixture.week();
    fixture.minute = 7 * 24 * 60;
    fixture.play(2);
    fixture.archived();
    let (server, ranking) = (clqd::model::ServerKey(1), 0);
    let best = |fixture: &mut Fixture, player| fixture.state().store.best(server, player).unwrap();
    let (klesk, visor) = (fixture.key("Klesk").unwrap(), fixture.key("Visor").unwrap());
    let of_klesk = best(&mut fixture, klesk).unwrap().top_three()[ranking][0];
    let of_visor = best(&mut fixture, visor).unwrap().top_three()[ranking][0];
    assert!(of_klesk != of_visor && of_klesk.1 == closed);
    fixture.merge("Visor", "Klesk").unwrap();
    assert_eq!(best(&mut fixture, visor), None);
    assert_eq!(best(&mut fixture, klesk).unwrap().top_three()[ranking].as_slice(), [of_klesk.min(of_visor)]);
    let jobs = fixture.archived();
    let week = OutboxKey::Week { week: closed, server };
    let ArchiveJob::Week(job) = &jobs[&week] else { panic!("{jobs:?}") };
    assert!(job.closed && job.rows.len() == 2 && job.best.len() == 2);
    assert!(job.rows.iter().any(|row| row.player == klesk) && job.rows.iter().all(|row| row.player != visor));
    fixture.boards();
}

/// Any corrections in any order: boards agree, other ratings do not change, and the jobs
/// that were archived step by step equal those of a resync.
#[test]
fn random_corrections_keep_boards_and_archive_consistent() {
    const NAMES: [&str; 6] = ["Visor", "Klesk", "^1Sarge", "Bones", "Alt", "New"];
    for seed in 1..=6 {
        let mut rng = SplitMix64::from_parts(&[seed]);
        let mut fixture = Fixture::new();
        let mut archived_jobs = fixture.archived();
        for step in 0..14 {
            let server = ["a", "b", "c"][rng.below(3)];
            let other = NAMES[rng.below(6)].trim_start_matches("^1");
            let player = NAMES[rng.below(6)].trim_start_matches("^1");
            let (before, touched) = (fixture.ratings(), [fixture.key(player), fixture.key(other)]);
            let action = rng.below(8);
            match action {
                0 => fixture.greylist(server, Some("fake")),
                1 => fixture.greylist(server, None),
                2 => _ = fixture.tag(server, &["ctf"], &[]),
                3 => _ = fixture.tag(server, &[], &["ctf"]),
                4 => _ = fixture.merge(player, other),
                5 if fixture.key(player).is_some() && step % 3 == 0 => _ = fixture.forget(player),
                6 => {
                    let list = NAMES.into_iter().zip(1..).filter(|_| rng.below(2) == 0).collect();
                    fixture.lists.insert(server, list);
                }
                _ => fixture.reopen(),
            }
            let touched: Vec<PlayerKey> = touched.into_iter().flatten().collect();
            // Rows of greylisted servers are not exported.
            if !matches!(action, 0 | 1) {
                assert_eq!(
                    of_others(&fixture.ratings(), &touched),
                    of_others(&before, &touched),
                    "seed {seed}, {step}: {action}"
                );
            }
            fixture.boards();
            fixture.archived().into_values().for_each(|job| scans::write(&mut archived_jobs, job));
            fixture.play(2 * rng.below(20) as i64);
            fixture.boards();
            fixture.archived().into_values().for_each(|job| scans::write(&mut archived_jobs, job));
        }
        scans::claim_archive(fixture.state(), None, 1);
        let resynced = fixture.archived();
        let players = |jobs: &BTreeMap<OutboxKey, ArchiveJob>| {
            jobs.values().filter(|it| matches!(it, ArchiveJob::Player { .. })).count()
        };
        assert_eq!(
            players(&archived_jobs),
            fixture.state().engine.model().status().players_known as usize,
            "seed {seed}"
        );
        for (key, job) in resynced {
            let (archived, job) = (&scans::complete(archived_jobs[&key].clone()), scans::complete(job));
            // The target of the merge may have been removed since; that was archived then.
            let both_removed = [archived, &job].iter().all(|job| matches!(job, ArchiveJob::PlayerRemoved { .. }));
            assert!(both_removed || *archived == job, "seed {seed}: {archived:?}, then {job:?}");
        }
    }
}

// Tags -------------------------------------------------------------------

#[test]
fn deleted_tag_disappears_and_leaves_other_tags() {
    let mut fixture = Fixture::new();
    assert!(fixture.tag("a", &["duel"], &[]) && fixture.tag("b", &["duel"], &[]));
    fixture.play(60);
    let (boards, ratings) = (fixture.boards(), fixture.ratings());
    for ranking in Ranking::ALL {
        assert!(!fixture.tag_board("duel", ranking).unwrap().is_empty(), "{}", ranking.name());
    }
    fixture.archived();
    // Boards that are built concurrently do not restore it.
    let week = WindowKey::from(fixture.week());
    let State { engine, store } = fixture.state();
    let built = clqd::state::build_boards(&engine.plan_boards(week), &store.reader()).unwrap();
    assert_eq!(engine.delete_tag("duel").unwrap(), 2);
    fixture.state().commit().unwrap();
    fixture.state().engine.install_boards(built);

    let assert_deleted = |fixture: &mut Fixture| {
        assert_eq!(fixture.boards(), boards);
        assert_eq!(fixture.ratings(), ratings);
        let error = fixture.tag_board("duel", Ranking::Points).unwrap_err();
        assert!(matches!(error, ViewError::UnknownTag { .. }), "{error}");
        let error = fixture.state().engine.delete_tag("duel").unwrap_err();
        assert_eq!(error.to_string(), "no server has the tag \"duel\"");
        let tags: Vec<_> = fixture.state().engine.model().servers().map(|server| server.public.tags).collect();
        assert_eq!(tags, [vec!["ctf".to_owned()], vec![], vec!["ctf".to_owned()]]);
    };
    assert_deleted(&mut fixture);
    let archived_jobs = fixture.archived();
    assert_eq!(archived_jobs.keys().filter(|key| matches!(key, OutboxKey::Server(_))).count(), 2);
    fixture.reopen();
    assert_deleted(&mut fixture);

    // A new tag with the same name starts again, with the current rows and without ratings.
    fixture.tag("b", &["duel"], &[]);
    fixture.boards();
    let of_b = fixture.exported().into_iter().filter(|((server, _), _)| server == "b").map(|(_, (row, _))| row.points);
    let points: Vec<i64> =
        fixture.tag_board("duel", Ranking::Points).unwrap().into_iter().map(|(_, raw)| raw).collect();
    assert_eq!(points.iter().copied().collect::<BTreeSet<_>>(), of_b.collect());
    assert!(fixture.tag_board("duel", Ranking::Elo).unwrap().is_empty());
}

/// The tag is removed from all responses immediately. The servers are written in batches, also
/// across restarts, and no server is written twice.
#[test]
fn tag_of_many_servers_is_deleted_in_steps() {
    const SERVERS: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        State::open(dir.path(), store, EngineSettings { week_steps_per_tick: 60, ..settings() }).unwrap()
    };
    let mut state = open();
    let urls: Vec<ServerUrl> = (0..SERVERS).map(|n| url(&format!("10.0.{}.{}", n / 100, n % 100))).collect();
    for (n, url) in urls.iter().enumerate() {
        let tags = if n % 2 == 0 { ["all", "even"].as_slice() } else { &["all"] };
        state.engine.add_server(url.clone(), tags.iter().map(|&tag| tag.to_owned()).collect(), FROM_MS).unwrap();
    }
    let archive_all = |state: &mut State| {
        let jobs = state.engine.archive_jobs(&state.store, None, None, 10_000, 10_000).unwrap();
        state.engine.acknowledge_archived(&jobs.iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
        state.commit().unwrap();
        jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, job?))).collect::<Vec<_>>()
    };
    state.commit().unwrap();
    archive_all(&mut state);
    let tags_of = |state: &State, n: usize| state.engine.model().servers().nth(n).unwrap().public.tags;
    let want = |n: usize| if n.is_multiple_of(2) { vec!["even".to_owned()] } else { vec![] };

    assert_eq!(state.engine.delete_tag("all").unwrap(), SERVERS);
    assert!(state.engine.delete_tag("all").is_err());
    assert!((0..SERVERS).all(|n| tags_of(&state, n) == want(n)));
    state.commit().unwrap();
    // The servers of a step without a commit are written after the restart.
    let (mut commits, mut ticks, mut tagged_again) = (0, 0, None);
    let mut written = Vec::new();
    loop {
        ticks += 1;
        state.handle(Event::Tick { now_ms: FROM_MS + ticks }).unwrap();
        if ticks % 7 == 0 {
            drop(state);
            state = open();
            continue;
        }
        let commit = state.engine.take_commit();
        if commit.servers.is_empty() {
            break;
        }
        commits += 1;
        assert!(commit.servers.len() <= 11 && commit.outbox.len() <= 11, "{commit:?}");
        written.extend(commit.servers.iter().map(|(key, _)| key.0));
        state.store.apply(&commit).unwrap();
        if commits == 15 {
            // A server that is not written yet gets a new tag with the same name.
            let last_url = &urls[SERVERS - 1];
            assert!(state.engine.tag_server(last_url, &["all".to_owned()], &[]).unwrap());
            tagged_again = Some(last_url.as_str().to_owned());
        }
    }
    let last = SERVERS as u32;
    assert!(commits >= 30 && ticks > commits, "{commits} commits, {ticks} ticks");
    written.retain(|key| *key != last);
    assert!(written.iter().copied().eq(1..last), "each server is written once: {written:?}");
    let tagged: Vec<_> =
        state.engine.model().servers().filter(|server| server.public.tags.contains(&"all".to_owned())).collect();
    assert_eq!(tagged.into_iter().map(|server| Some(server.public.url)).collect::<Vec<_>>(), [tagged_again]);

    // The store and the archive contain the result, and it does not change.
    drop(state);
    let mut state = open();
    assert!(!state.engine.model().has_changes());
    let archived_jobs = archive_all(&mut state);
    assert_eq!(archived_jobs.len(), SERVERS);
    for ((key, job), n) in archived_jobs.into_iter().zip(0..) {
        let ArchiveJob::Server(server) = job else { panic!("{key:?}") };
        let mut want = want(n);
        want.extend((n == SERVERS - 1).then(|| "all".to_owned()));
        assert_eq!((server.tags, tags_of(&state, n)), (want.clone(), want), "{key:?}");
    }
    state.handle(Event::Tick { now_ms: FROM_MS + 10_000 }).unwrap();
    assert!(!state.engine.model().has_changes());
    drop(state);
    std::thread::sleep(Duration::from_millis(200));
    let store = StoreSettings { cache_bytes: 16 << 20, create: false };
    let loaded = clqd::store::Store::open(dir.path(), store).unwrap().load().unwrap();
    let known: BTreeSet<_> = loaded.tags.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(loaded.tags.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["even", "all"]);
    assert!(loaded.servers.iter().flat_map(|(_, record, _)| &record.tags).all(|tag| known.contains(tag)));
}

/// Windows are rebuilt from the log with the tags that servers had at the start of the rebuild, and are imported by
/// name. The second engine applies later changes of tags, too.
#[test]
fn import_skips_ratings_of_tag_deleted_during_rebuild() {
    for (deleted, rated) in [(false, 5), (true, 0)] {
        let (mut fixture, mut rebuilt) = (Fixture::new(), Fixture::new());
        fixture.state().engine.reload(EngineSettings { archive_enabled: true, ..EngineSettings::default() });
        fixture.state().engine.reload(settings());
        fixture.state().engine.start_rebuild(i64::MIN);
        assert_eq!(fixture.state().engine.model().rebuilt_servers().len(), 3, "all are known");
        fixture.state().commit().unwrap();
        while fixture.state().sweep().unwrap() {}
        for engine in [&mut fixture, &mut rebuilt].into_iter().filter(|_| deleted) {
            engine.state().engine.delete_tag("ctf").unwrap();
            engine.tag("a", &["ctf"], &[]);
            engine.state().commit().unwrap();
        }
        let State { engine, store } = fixture.state();
        let from = rebuilt.state();
        let windows =
            RebuiltState { model: from.engine.model(), reader: &from.store, window_reader: &from.store.reader() };
        let begin = engine.model().importable_windows(store, &from.engine).expect("all old rows are swept");
        assert_eq!(begin.len(), 2);
        engine.apply_rebuild(store, &RebuildStep::Begin { windows: begin }).unwrap();
        let mut import = engine.model().begin_import();
        while let Some(steps) = engine.next_import_steps(&mut import, store, &windows).unwrap() {
            steps.iter().for_each(|step| engine.apply_rebuild(store, step).unwrap());
        }
        engine.apply_rebuild(store, &RebuildStep::End {}).unwrap();
        fixture.state().commit().unwrap();
        let day =
            settings().windows.windows_at(fixture.now_ms()).into_iter().find(|window| window.kind == WindowType::DAY);
        let of_day =
            |player| fixture.state.as_ref().unwrap().store.player_window(day.unwrap(), PlayerKey(player)).unwrap();
        let of_day: Vec<_> = (1..=5).filter_map(of_day).collect();
        assert!(of_day.iter().all(|of_player| of_player.game_rating.is_some()));
        let by_tag = of_day.iter().filter(|of_player| !of_player.tag_ratings.is_empty()).count();
        assert_eq!((of_day.len(), by_tag), (5, rated), "deleted: {deleted}");
    }
}

#[test]
fn server_accepts_at_most_16_tags() {
    let mut fixture = Fixture::new();
    let tags = |n: usize| (0..n).map(|n| format!("tag{n}")).collect::<Vec<_>>();
    // The server has one tag already; removing it permits one more.
    let engine = &mut fixture.state().engine;
    let error = engine.tag_server(&url("a"), &tags(TAGS_MAX), &[]).unwrap_err();
    assert_eq!(error.to_string(), "server quake3://a:27960 would have 17 tags; the maximum is 16");
    assert!(engine.tag_server(&url("a"), &tags(TAGS_MAX), &["ctf".to_owned()]).unwrap());
    assert!(!engine.tag_server(&url("a"), &["tag3".to_owned()], &[]).unwrap());
    let one_more = vec!["tag2".to_owned(), "more".to_owned()];
    assert!(engine.add_server(url("a"), one_more, FROM_MS).is_err());
    assert!(engine.add_server(url("new"), tags(TAGS_MAX + 1), FROM_MS).is_err());
    assert!(engine.add_server(url("new"), [tags(TAGS_MAX), tags(2)].concat(), FROM_MS).is_ok());
    let tags_max = engine.model().servers().map(|server| server.public.tags.len()).max();
    assert_eq!(tags_max, Some(TAGS_MAX));
}

// Forget -----------------------------------------------------------------

#[test]
fn forgotten_player_is_deleted_and_not_ranked_again() {
    let mut fixture = Fixture::new();
    fixture.merge("Klesk", "Visor").unwrap();
    let ratings = fixture.ratings();
    fixture.archived();
    assert!(fixture.stored("Visor") && fixture.stored("Klesk"));
    let visor = fixture.forget("Klesk");
    let hashes = BTreeSet::from(["Visor", "Klesk"].map(|name| NameHash::of(GAME, name)));
    let assert_forgotten = |fixture: &mut Fixture| {
        assert_eq!(
            fixture.state().engine.model().forgotten().into_iter().map(|(hash, _)| hash).collect::<BTreeSet<_>>(),
            hashes
        );
        assert_eq!([fixture.key("Visor"), fixture.key("Klesk")], [None; 2]);
        assert!(fixture.boards().values().flatten().all(|position| position.0 != visor.0));
        assert_eq!(["Visor", "Klesk", "Sarge"].map(|name| fixture.stored(name)), [false, false, true]);
    };
    assert_forgotten(&mut fixture);
    assert_eq!(of_others(&fixture.ratings(), &[visor]), of_others(&ratings, &[visor]));
    fixture.reopen();
    assert_forgotten(&mut fixture);
    let jobs = fixture.archived();
    assert_eq!(jobs[&OutboxKey::Player(visor)], ArchiveJob::PlayerRemoved { key: visor, into: None });

    // The player continues to play: they are counted and listed without a name, also if listed
    // twice, as a bot, or on a greylisted server.
    fixture.greylist("b", Some("fake"));
    fixture.lists.insert("c", vec![("^3Kle^4sk", 5), ("Alt", 7), ("Visor", 2), ("Visor", 3)]);
    fixture.play(60);
    assert_forgotten(&mut fixture);
    let State { engine, store } = fixture.state();
    let list = engine.model().server_detail(store, &url("a")).unwrap().public.players_listed;
    let shown: Vec<_> =
        list.iter().map(|it| (it.name.as_str(), it.display.as_str(), it.player_key.is_some())).collect();
    assert_eq!(shown, [("", "", false), ("", "", false), ("Sarge", "^1Sarge", true)]);
    let known = fixture.state().engine.model().status().players_known;
    fixture.reopen();
    assert_forgotten(&mut fixture);
    assert_eq!(fixture.state().engine.model().status().players_known, known);

    // After `allow_name` the name is a new player.
    let State { engine, .. } = fixture.state();
    engine.allow_name(NameHash::of(GAME, "Visor")).unwrap();
    assert!(engine.allow_name(NameHash::of(GAME, "Nobody")).is_err());
    fixture.state().commit().unwrap();
    fixture.reopen();
    fixture.play(20);
    let new_key = fixture.key("Visor").unwrap();
    assert!(new_key > visor && fixture.key("Klesk").is_none());
    assert_eq!(fixture.exported()[&("a".to_owned(), "Visor".to_owned())].0.starts, 1);
}

/// A forgotten player must affect the end of a round like a player with an unusable name.
#[test]
fn forgotten_player_is_rated_like_unusable_name() {
    let mut results = Vec::new();
    for (player, forget) in [("Bones", true), ("UnnamedPlayer", false)] {
        let mut fixture = Fixture::new();
        if forget {
            fixture.forget("Bones");
        }
        fixture.lists.insert("b", vec![("Visor", 1), (player, 4)]);
        fixture.lists.insert("c", vec![("Klesk", 5), ("Alt", 7), (player, 2)]);
        fixture.play(30);
        fixture.lists.insert("b", vec![(player, 4)]);
        fixture.play(60);
        let rows = fixture.exported().into_iter().filter(|((_, name), _)| name != "Bones");
        results.push(rows.map(|(of, (row, _))| (of, row)).collect::<BTreeMap<_, _>>());
    }
    assert_eq!(results[0], results[1]);
}

#[test]
fn names_of_forgotten_players_are_blanked_for_scan_log() {
    let mut fixture = Fixture::new();
    fixture.forget("Visor");
    let player =
        |name: &str, bot| Player { name: name.into(), points: Some(1), ping: Some(9), bot, ..Player::default() };
    let mut snapshot = Snapshot {
        t_ms: fixture.now_ms() + 1,
        game: GAME.to_owned(),
        map: "m".to_owned(),
        hostname: String::new(),
        slots: 8,
        players: vec![player("^1Visor", false), player("Alt", false), player("Visor", true)],
        completeness: Completeness::Full,
        count: None,
        bots: None,
    };
    for completeness in [Completeness::Full, Completeness::Partial] {
        snapshot.t_ms += 1_000;
        snapshot.completeness = completeness;
        let outcome = Outcome::Snapshot(snapshot.clone());
        fixture.state().handle(Event::Replayed { url: url("a"), outcome: outcome.clone() }).unwrap();
        let Outcome::Snapshot(blanked) = outcome.with_blanked_names(fixture.state().engine.model().blanked_names())
        else {
            unreachable!()
        };
        let names: Vec<_> = blanked.players.iter().map(|player| player.name.as_str()).collect();
        assert_eq!(names, ["", "Alt", ""], "{completeness:?}");
    }
    let miss = Outcome::Miss { t_ms: snapshot.t_ms + 1, reason: "timeout".to_owned() };
    fixture.state().handle(Event::Replayed { url: url("a"), outcome: miss }).unwrap();
    assert!(fixture.state().engine.model().blanked_names().is_empty());
}
