//! Rebuilt windows are imported in steps, while scans are applied between them, a player is
//! merged or forgotten, or the process restarts. The all-time window begins with the week, so
//! its rows must equal those of the week bit for bit.

use std::collections::BTreeMap;

use crate::scans;
use clqd::board::window::WindowTypes;
use clqd::daemon::window_rebuild::{RebuildPaths, Rebuilder, plan_window_types};
use clqd::engine::{EngineSettings, Event, Outcome, StateReader};
use clqd::log::{HistoryWriter, LogEvent, RecordedSettings, WriterSettings};
use clqd::model::calendar::{Calendar, DAY_MS};
use clqd::model::commit::WindowState;
use clqd::model::rebuild::RebuildStep;
use clqd::model::row::{PlayerRow, Rating};
use clqd::model::{AdminCommand, PlayerKey, ServerKey, ServerUrl, Snapshot, WindowKey, WindowType};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC
const SERVERS: u32 = 8;
const LIST: u32 = 40;
const ALL_TIME: WindowKey = WindowKey { kind: WindowType::ALL_TIME, index: 0 };

struct Fixture {
    dir: tempfile::TempDir,
    state: Option<State>,
    rebuilder: Option<Rebuilder>,
    /// The events so far.
    log: Vec<LogEvent>,
    step: u32,
}

/// Settings with these window types besides the week.
fn settings(windows: &[&str]) -> EngineSettings {
    let specs: Vec<_> = windows.iter().map(|text| text.parse().expect("a type")).collect();
    EngineSettings {
        windows: WindowTypes::new(Calendar::default(), specs).expect("types"),
        ..EngineSettings::default()
    }
}

fn url(server: u32) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.0.{}:27960", server + 1)).expect("canonical")
}

/// A list of 40 players, a sixth of whom are replaced with every scan; a round lasts five
/// scans. The first server has up to two guests more in the first five scans.
fn list(server: u32, step: u32) -> Vec<(String, i64)> {
    let name = |seat: u32| server * 10_000 + (step + seat) / 6 * LIST + seat;
    let points = |n: u32| i64::from(step % 5 * (n.wrapping_mul(2_654_435_761) >> 28));
    let mut list: Vec<_> = (0..LIST).map(|seat| (format!("p{}", name(seat)), points(name(seat)))).collect();
    let guests = [("Visor", 0..3), ("Klesk", 3..5), ("Bones", 0..5)];
    let present = guests.iter().filter(|(_, steps)| server == 0 && steps.contains(&step));
    list.extend(present.map(|(name, _)| ((*name).to_owned(), i64::from(step % 5 * 3))));
    list
}

impl Fixture {
    fn new(steps: u32) -> Fixture {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut fixture = Fixture { dir, state: None, rebuilder: None, log: Vec::new(), step: 0 };
        fixture.open(&[]);
        (0..steps).for_each(|_| fixture.play());
        fixture.state().commit().expect("a store");
        fixture
    }

    fn open(&mut self, windows: &[&str]) {
        drop(self.state.take());
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        self.state = Some(State::open(&self.dir.path().join("state"), store, settings(windows)).expect("a state"));
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it is open")
    }

    /// One scan of each server.
    fn play(&mut self) {
        for server in 0..SERVERS {
            let t_ms = FROM_MS + i64::from(self.step) * 120_000 + i64::from(server);
            let snapshot = scans::snapshot(t_ms, list(server, self.step));
            let outcome = Outcome::Snapshot(Snapshot { map: format!("m{}", self.step / 20), slots: 64, ..snapshot });
            self.log.push(LogEvent::Scan { server: url(server), outcome: outcome.clone() });
            if let Some(rebuilder) = &mut self.rebuilder {
                rebuilder.record(u64::MAX, &LogEvent::Scan { server: url(server), outcome: outcome.clone() });
            }
            self.state().handle(Event::Replayed { url: url(server), outcome }).expect("a store");
        }
        self.step += 1;
    }

    /// A command of an admin, as the daemon applies and records it.
    fn command(&mut self, command: AdminCommand) {
        let t_ms = FROM_MS + i64::from(self.step) * 120_000;
        let event = LogEvent::Command { t_ms, command: command.clone() };
        self.rebuilder.iter_mut().for_each(|rebuilder| rebuilder.record(u64::MAX, &event));
        self.log.push(event);
        assert!(self.state().apply_command(t_ms, &command).expect("a store"));
    }

    /// A scan of the first server; `is_recorded`: the log has it.
    fn scan(&mut self, t_ms: i64, names: impl Iterator<Item = String>, is_recorded: bool) {
        let outcome = Outcome::Snapshot(scans::snapshot(t_ms, names.map(|name| (name, 1))));
        if is_recorded {
            self.log.push(LogEvent::Scan { server: url(0), outcome: outcome.clone() });
        }
        self.state().handle(Event::Replayed { url: url(0), outcome }).expect("a store");
    }

    /// Starts a rebuild, like the daemon after a change of the windows or at its start.
    fn begin(&mut self) {
        let log = clqd::state::log_dir(&self.dir.path().join("state"));
        // The log of the rebuild before.
        _ = std::fs::remove_dir_all(&log);
        let mut writer = HistoryWriter::open(&WriterSettings::new(log), 1, FROM_MS).expect("a log");
        self.log.iter().for_each(|event| writer.append(event).expect("a log"));
        let position = writer.finish().expect("a log");
        let paths = RebuildPaths {
            state_dir: self.dir.path().join("state"),
            log: clqd::state::log_dir(&self.dir.path().join("state")),
            log_lock: Default::default(),
            cache_bytes: 16 << 20,
            disk_free_bytes_min: 0,
        };
        // Without, running windows are recomputed.
        if let Some((step, _)) = plan_window_types(&self.state().engine, &paths.log).expect("a log") {
            self.state().apply_rebuild(&step).expect("a store");
        }
        let mut rebuilder = Rebuilder::new(&paths);
        rebuilder.begin(self.state(), &paths, position);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        while !rebuilder.is_ready() {
            let event = runtime.block_on(rebuilder.next_event());
            if let Some(send) = rebuilder.handle_event(event, position) {
                send();
            }
        }
        self.rebuilder = Some(rebuilder);
    }

    /// One step of the import, with scans, a commit and a sweep like on the engine thread.
    /// Returns whether it was the last.
    fn step(&mut self) -> bool {
        self.step_with(&mut |_| ())
    }

    /// `log` gets what the step writes into the log.
    fn step_with(&mut self, log: &mut dyn FnMut(&RebuildStep)) -> bool {
        self.play();
        let (state, rebuilder) = (self.state.as_mut().expect("open"), self.rebuilder.as_mut().expect("begun"));
        state.commit().expect("a store");
        state.sweep().expect("a store");
        rebuilder.import_step(state, log).expect("a step")
    }

    /// Whether the first player of a list has a row in the window of all time.
    fn has_row(&self, server: u32, step: u32) -> bool {
        let (name, _) = list(server, step).swap_remove(0);
        let store = &self.state.as_ref().expect("it is open").store;
        let named = |player| store.player_record(player).expect("a store").expect("a player").name.as_str() == name;
        store.rows(ALL_TIME, ServerKey(server + 1)).expect("a store").into_iter().any(|(player, _)| named(player))
    }

    #[track_caller]
    fn check(&mut self) {
        self.check_window(ALL_TIME);
    }

    /// Empties the servers, then compares every row and rating of a window with that of the week.
    #[track_caller]
    fn check_window(&mut self, window: WindowKey) {
        for server in 0..SERVERS {
            let t_ms = FROM_MS + i64::from(self.step) * 120_000 + i64::from(server);
            scans::apply_snapshot(self.state(), url(server).as_str(), scans::snapshot::<&str>(t_ms, []));
        }
        self.state().commit().expect("a store");
        let store = &self.state().store;
        let week = WindowKey::from(Calendar::default().week(FROM_MS));
        let mut rows = 0;
        for server in (1..=SERVERS).map(ServerKey) {
            let (want, got) = (store.rows(week, server).unwrap(), store.rows(window, server).unwrap());
            assert_eq!(got.len(), want.len(), "{server:?}");
            want.iter().zip(&got).for_each(|(want, got)| assert_eq!(got, want, "{server:?}"));
            rows += want.len();
        }
        assert!(rows > 2_000, "{rows}: more than one step imports");
        for player in (1..=rows as u32 + 9).map(PlayerKey) {
            let want = store.player_window(week, player).unwrap();
            assert_eq!(store.player_window(window, player).unwrap(), want, "{player:?}");
        }
    }
}

#[test]
fn import_includes_scans_between_its_steps() {
    let mut fixture = Fixture::new(60);
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    // The log grows by more than one round of the replay.
    (0..80).for_each(|_| fixture.play());
    let steps = (1..1_000).find(|_| fixture.step()).expect("an end");
    assert!(steps > 6, "{steps}");
    (0..9).for_each(|_| fixture.play());
    fixture.check();
}

#[test]
fn scans_after_a_clock_reset_are_in_rebuilt_windows() {
    let mut fixture = Fixture::new(30);
    // The clock is two hours ahead for some scans, twice.
    for is_rebuilding in [false, true] {
        fixture.step += 60;
        (0..10).for_each(|_| fixture.play());
        fixture.step -= 68;
        fixture.command(AdminCommand::Clock {});
        (0..30).for_each(|_| fixture.play());
        if !is_rebuilding {
            fixture.state().commit().expect("a store");
            fixture.state().engine.reload(settings(&["all-time"]));
            fixture.begin();
        }
    }
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
}

#[test]
fn merge_or_forget_restarts_import() {
    let mut fixture = Fixture::new(60);
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    let named = |name: &str| PlayerSelector::Name(name.to_owned());
    let mut steps = 0;
    while !fixture.step() {
        steps += 1;
        fixture.state().commit().expect("a store");
        let State { engine, store } = fixture.state();
        match steps {
            4 => _ = engine.merge_players(store, "baseq3", &named("Klesk"), &named("Visor")).expect("both are known"),
            9 => _ = engine.forget_player(store, "baseq3", &named("Bones"), 0).expect("known"),
            _ => {}
        }
        assert!(steps < 1_000);
    }
    assert!(steps > 14, "{steps}");
    fixture.check();
}

#[test]
fn restart_during_import_begins_it_again() {
    let mut fixture = Fixture::new(60);
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    (0..5).for_each(|_| assert!(!fixture.step()));
    fixture.state().commit().expect("a store");
    let imported =
        (1..=SERVERS).any(|server| !fixture.state().store.rows(ALL_TIME, ServerKey(server)).unwrap().is_empty());
    assert!(imported, "some rows were imported");
    fixture.rebuilder = None;
    fixture.open(&["all-time"]);
    fixture.begin();
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
}

/// The process was killed, and the config has another type when the rest of the log is applied.
#[test]
fn type_added_before_the_log_is_applied_is_complete() {
    let mut fixture = Fixture::new(60);
    fixture.open(&["all-time"]);
    (0..10).for_each(|_| fixture.play());
    let now_ms = FROM_MS + i64::from(fixture.step) * 120_000;
    fixture.state().tick(now_ms, now_ms).expect("a store");
    fixture.state().commit().expect("a store");
    fixture.begin();
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
}

/// The log has the whole rebuild of one type, and the config has another one, too.
#[test]
fn type_added_before_the_end_of_a_rebuild_is_applied_is_still_rebuilt() {
    let mut fixture = Fixture::new(60);
    fixture.open(&["all-time", "month"]);
    let span = settings(&["all-time"]).windows.span(ALL_TIME).expect("it is configured");
    let windows = vec![WindowState { window: ALL_TIME, start_ms: span.start, end_ms: span.end }];
    for step in [RebuildStep::Begin { windows }, RebuildStep::End {}] {
        fixture.state().apply_rebuild(&step).expect("a store");
    }
    assert_eq!(fixture.state().engine.model().types_to_rebuild(), [WindowType::MONTH]);
}

#[test]
fn type_added_during_recomputation_is_complete() {
    let mut fixture = Fixture::new(60);
    let windows = fixture.state().engine.model().recomputable_windows(i64::MIN);
    fixture.state().apply_rebuild(&RebuildStep::Begin { windows }).expect("a store");
    fixture.begin();
    (0..5).for_each(|_| assert!(!fixture.step()));
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
}

#[test]
fn type_is_complete_though_a_recomputation_is_given_up() {
    let mut fixture = Fixture::new(60);
    let windows = fixture.state().engine.model().recomputable_windows(i64::MIN);
    let week = windows.iter().map(|state| state.window).collect();
    fixture.state().apply_rebuild(&RebuildStep::Begin { windows }).expect("a store");
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.state().engine.start_rebuild(i64::MIN);
    fixture.state().apply_rebuild(&RebuildStep::GiveUp { windows: week }).expect("a store");
    assert_eq!(fixture.state().engine.model().types_to_rebuild(), [WindowType::ALL_TIME]);
    assert!(fixture.state().engine.model().recomputed_windows().is_empty());
    fixture.begin();
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
}

#[test]
fn type_added_during_import_is_complete() {
    let mut fixture = Fixture::new(60);
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    (0..5).for_each(|_| assert!(!fixture.step()));
    let with_month = settings(&["all-time", "month"]);
    let month = with_month.windows.windows_at(FROM_MS).into_iter().find(|window| window.kind == WindowType::MONTH);
    fixture.state().engine.reload(with_month);
    fixture.begin();
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
    fixture.check_window(month.expect("it is configured"));
}

#[test]
fn tags_changed_during_rebuild_keep_their_ratings() {
    let tag = |server, add: &[&str], remove: &[&str]| {
        let [add, remove] = [add, remove].map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect());
        AdminCommand::Tag { server: url(server), add, remove }
    };
    let mut fixture = Fixture::new(0);
    (0..3)
        .for_each(|server| fixture.command(AdminCommand::Add { server: url(server), tags: Vec::new(), import: false }));
    (0..2).for_each(|server| fixture.command(tag(server, &["old"], &[])));
    (0..60).for_each(|_| fixture.play());
    fixture.state().commit().expect("a store");
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    (0..8).for_each(|_| fixture.play());
    fixture.command(tag(0, &["new"], &["old"]));
    let with_tags = AdminCommand::Add { server: url(3), tags: vec!["new".to_owned()], import: false };
    fixture.command(with_tags);
    (0..30).for_each(|_| fixture.play());
    (0..4).for_each(|_| assert!(!fixture.step()));
    fixture.command(tag(2, &["newest"], &[]));
    (0..30).for_each(|_| fixture.play());
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.check();
    let week = WindowKey::from(Calendar::default().week(FROM_MS));
    let ratings = |tag: u32| {
        let windows = (1..20_000)
            .filter_map(|player| fixture.state.as_ref()?.store.player_window(week, PlayerKey(player)).unwrap());
        windows.filter(|it| it.tag_ratings.iter().any(|(of, _)| of.0 == tag)).count()
    };
    assert!([1, 2, 3].into_iter().all(|tag| ratings(tag) > 20), "{:?}", [1, 2, 3].map(ratings));
}

#[test]
fn tag_deleted_and_added_again_during_rebuild_is_another_one() {
    let mut fixture = Fixture::new(0);
    let add = AdminCommand::Add { server: url(0), tags: vec!["tag".to_owned()], import: false };
    fixture.command(add.clone());
    (0..60).for_each(|_| fixture.play());
    fixture.state().commit().expect("a store");
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    fixture.command(AdminCommand::DropTag { tag: "tag".to_owned() });
    fixture.play();
    fixture.command(add);
    (0..30).for_each(|_| fixture.play());
    (1..1_000).find(|_| fixture.step()).expect("an end");
    fixture.state().commit().expect("a store");
    let [all_time, week] = [ALL_TIME, WindowKey::from(Calendar::default().week(FROM_MS))].map(|window| {
        let players = (1..20_000).map(PlayerKey);
        let windows = players.filter_map(|player| fixture.state.as_ref()?.store.player_window(window, player).unwrap());
        let rating = |tag| windows.clone().filter(|it| it.tag_ratings.iter().any(|(of, _)| of.0 == tag)).count();
        rating(2)
    });
    assert!(week > 20);
    assert_eq!(all_time, week);
}

/// It was known before the log begins, and has no scan in it before it is greylisted.
#[test]
fn scans_of_a_server_that_was_greylisted_are_not_in_rebuilt_windows() {
    let mut fixture = Fixture::new(30);
    fixture.log.clear();
    fixture.command(AdminCommand::Greylist { server: url(0), reason: "copies lists".to_owned() });
    (0..20).for_each(|_| fixture.play());
    fixture.command(AdminCommand::Lift { server: url(0) });
    (0..20).for_each(|_| fixture.play());
    fixture.state().commit().expect("a store");
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    while !fixture.step() {}
    fixture.state().commit().expect("a store");
    let has_rows = |step| [0, 1].map(|server| fixture.has_row(server, step));
    assert_eq!([36, 54].map(has_rows), [[false, true], [true, true]]);
}

/// It was greylisted before the log begins, and then for another reason.
#[test]
fn server_with_another_reason_was_greylisted_before() {
    let mut fixture = Fixture::new(0);
    let greylist = |reason: &str| AdminCommand::Greylist { server: url(0), reason: reason.to_owned() };
    fixture.command(AdminCommand::Add { server: url(0), tags: Vec::new(), import: false });
    fixture.command(greylist("copies lists"));
    let known = fixture.state().engine.model().servers_for_log(ServerKey(1), 1).next().expect("a server");
    fixture.log = vec![
        LogEvent::Settings { t_ms: FROM_MS, settings: RecordedSettings::default() },
        LogEvent::Known { t_ms: FROM_MS, server: known },
    ];
    (0..20).for_each(|_| fixture.play());
    fixture.command(greylist("invents players"));
    (0..20).for_each(|_| fixture.play());
    fixture.command(AdminCommand::Lift { server: url(0) });
    (0..20).for_each(|_| fixture.play());
    fixture.state().commit().expect("a store");
    fixture.state().engine.reload(settings(&["all-time"]));
    fixture.begin();
    while !fixture.step() {}
    fixture.state().commit().expect("a store");
    assert_eq!([6, 30, 54].map(|step| fixture.has_row(0, step)), [false, false, true]);
}

/// A server introduces at most four names a day. On three days before the log begins it has introduced ten.
#[test]
fn names_known_before_the_log_spend_no_quota() {
    let with_quota = |windows: &[&str]| {
        let mut settings = settings(windows);
        settings.rules.screen.new_names_per_day_max = 4;
        settings
    };
    let mut fixture = Fixture::new(0);
    fixture.state().engine.reload(with_quota(&[]));
    let known = |n: usize| (0..n).map(|n| format!("known {n}"));
    for (day, names) in [(0, 4), (1, 8), (2, 10)] {
        let t_ms = FROM_MS + day * DAY_MS;
        fixture.scan(t_ms, known(names), false);
        fixture.scan(t_ms + 120_000, known(0), false);
    }
    let t_ms = FROM_MS + 9 * DAY_MS / 2;
    fixture.scan(t_ms, known(10).chain((0..6).map(|n| format!("new {n}"))), true);
    fixture.scan(t_ms + 120_000, known(0), true);
    fixture.state().commit().expect("a store");
    fixture.state().engine.reload(with_quota(&["all-time"]));
    fixture.begin();
    while !fixture.step() {}
    fixture.state().commit().expect("a store");
    let mut rows = fixture.state().store.rows(ALL_TIME, ServerKey(1)).expect("a store");
    let store = &fixture.state().store;
    let name = |player| store.player_record(player).expect("a store").expect("a player").name.to_string();
    let mut names: Vec<String> =
        rows.drain(..).map(|(player, _)| name(player)).filter(|name| !name.starts_with('p')).collect();
    names.sort_unstable();
    let want: Vec<String> = known(10).chain((0..4).map(|n| format!("new {n}"))).collect();
    assert_eq!(names, want, "the first ten, and four new ones");
}

/// Settings whose rules ignore some names.
fn ignoring(names: &[&str]) -> EngineSettings {
    let mut settings = settings(&[]);
    settings.rules.names.ignore = names.iter().map(|name| (*name).to_owned()).collect();
    settings
}

/// A row, the rating in the game, and all servers of the player.
type NamedRow = (PlayerRow, Option<Rating>, Vec<ServerKey>);

/// All rows of the week, by server and name.
fn named_rows(fixture: &mut Fixture) -> BTreeMap<(ServerKey, String), NamedRow> {
    fixture.state().commit().expect("a store");
    let week = WindowKey::from(Calendar::default().week(FROM_MS));
    let store = &fixture.state().store;
    let mut rows = BTreeMap::new();
    for server in (1..=SERVERS).map(ServerKey) {
        for (player, row) in store.rows(week, server).expect("a store") {
            let name = store.player_record(player).expect("a store").expect("a player").name.to_string();
            let of_player = store.player_window(week, player).expect("a store").expect("a player with rows");
            rows.insert((server, name), (row, of_player.game_rating, of_player.servers.to_vec()));
        }
    }
    rows
}

#[test]
fn recomputed_week_equals_a_replay_with_other_rules() {
    let mut fixture = Fixture::new(0);
    fixture.state().engine.reload(ignoring(&["Klesk", "p3", "p10003"]));
    (0..60).for_each(|_| fixture.play());
    fixture.state().commit().expect("a store");
    let other_rules = ignoring(&["Visor", "Bones", "p4", "p10004"]);
    fixture.state().engine.reload(other_rules.clone());
    let windows = fixture.state().engine.model().recomputable_windows(i64::MIN);
    assert_eq!(windows.len(), 1);
    let mut steps = vec![RebuildStep::Begin { windows }];
    fixture.state().apply_rebuild(&steps[0]).expect("a store");
    fixture.begin();
    while !fixture.step_with(&mut |step| steps.push(step.clone())) {
        assert!(steps.len() < 1_000);
    }
    (0..9).for_each(|_| fixture.play());
    let empty_lists = |fixture: &mut Fixture| {
        for server in 0..SERVERS {
            let t_ms = FROM_MS + 100 * 120_000 + i64::from(server);
            scans::apply_snapshot(fixture.state(), url(server).as_str(), scans::snapshot::<&str>(t_ms, []));
        }
    };
    let mut replayed = Fixture::new(0);
    replayed.state().engine.reload(other_rules);
    for event in fixture.log.clone() {
        let LogEvent::Scan { server, outcome } = event else { continue };
        replayed.state().handle(Event::Replayed { url: server, outcome }).expect("a store");
    }
    [&mut fixture, &mut replayed].into_iter().for_each(empty_lists);
    let (rows, want) = (named_rows(&mut fixture), named_rows(&mut replayed));
    assert_eq!(rows.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
    rows.iter().zip(&want).for_each(|(got, want)| assert_eq!(got, want));
    let has = |name: &str| rows.keys().any(|(_, of)| of == name);
    assert_eq!(["Klesk", "p3", "p10003", "Visor", "Bones", "p4"].map(has), [true, true, true, false, false, false]);
    let removed = |step: &RebuildStep| matches!(step, RebuildStep::Server(of_server) if !of_server.removed.is_empty());
    assert_eq!(steps.iter().filter(|step| removed(step)).count(), 2);
}
