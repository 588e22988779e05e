//! A small state for one test: its scans are also recorded as a log for the oracle, the clock
//! advances, and settings can change.

use clqd::board::score_unit::display_score;
use clqd::board::window::{self, WindowTypes};
use clqd::engine::{EngineSettings, Event, StateReader, ViewError};
use clqd::model::ServerUrl;
use clqd::model::calendar::Calendar;
pub use clqd::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS};
use clqd::model::row::Ranking;
use clqd::scan_log;
use clqd::state::State;
use clqd::view::board::BoardAnswer;
use clqd::view::board::{BoardQuery, BoardSelector, WindowPhase};

use super::compare;
use crate::oracle::compare::open;
use crate::oracle::{Oracle, Settings};

/// Three servers of two games; the first two have a tag.
pub const A: &str = "quake3://127.0.0.1:27960";
pub const B: &str = "quake3://127.0.0.1:27961";
pub const C: &str = "source://127.0.0.1:27015";

pub struct Case {
    dir: tempfile::TempDir,
    state: Option<State>,
    pub settings: EngineSettings,
    log: String,
    tags: Vec<(String, Vec<String>)>,
}

impl Case {
    pub fn new(zone: &str, windows: &[&str]) -> Case {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let calendar = Calendar::new(zone).expect("a zone");
        let mut case = Case {
            dir,
            state: None,
            settings: EngineSettings {
                windows: WindowTypes::new(calendar, []).expect("weeks"),
                keep_weeks: 1_000,
                ..EngineSettings::default()
            },
            log: String::new(),
            tags: vec![("pair".to_owned(), vec![A.to_owned(), B.to_owned()]), ("alone".to_owned(), vec![C.to_owned()])],
        };
        case.set_windows(windows);
        case.state = Some(open(case.dir.path(), &case.settings));
        for (server, tag) in [(A, "pair"), (B, "pair"), (C, "alone")] {
            let url = ServerUrl::parse(server).expect("canonical");
            case.state().engine.add_server(url, vec![tag.to_owned()], 0).expect("a new server");
        }
        case
    }

    /// Sets the window types for the next reload or restart.
    pub fn set_windows(&mut self, windows: &[&str]) {
        let calendar = *self.settings.windows.calendar();
        let specs = windows.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}")));
        self.settings.windows = WindowTypes::new(calendar, specs.collect::<Vec<_>>()).expect("types");
    }

    pub fn set_low(&mut self, boards: &[&str]) {
        self.settings.low_is_better =
            boards.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect();
    }

    pub fn set_ties(&mut self, boards: &[&str]) {
        self.settings.tie_breakers = boards.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect();
    }

    pub fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("an open state")
    }

    pub fn take(&mut self) -> State {
        self.state.take().expect("an open state")
    }

    pub fn put_back(&mut self, state: State) {
        self.state = Some(state);
    }

    pub fn reload(&mut self) {
        let settings = self.settings.clone();
        self.state().engine.reload(settings);
    }

    pub fn restart(&mut self) {
        self.state().commit().expect("a store");
        drop(self.state.take());
        self.state = Some(open(self.dir.path(), &self.settings));
    }

    pub fn scan(&mut self, t_ms: i64, server: &str, players: &[(&str, i64)]) {
        let line = line(t_ms, server, players);
        let (url, outcome) = scan_log::parse_scan(&line).expect("a line");
        self.state().handle(Event::Replayed { url, outcome }).expect("a store");
        self.log += &line;
    }

    /// One tick and its commit, without a sweep.
    pub fn tick(&mut self, now_ms: i64) {
        self.state().handle(Event::Tick { now_ms }).expect("a store");
        self.state().commit().expect("a store");
    }

    /// Does all work that is due at this time.
    pub fn settle(&mut self, now_ms: i64) {
        self.state().close_due_weeks(now_ms).expect("a store");
    }

    /// Name, displayed score, and when it was reached; best first.
    pub fn board(&mut self, scope: &str, label: &str, ranking: Ranking) -> Vec<(String, f64, i64)> {
        self.state().commit_and_build_boards(window::parse_label(label).expect("a label")).expect("a store");
        self.cached_board(scope, label, ranking)
    }

    /// The same without a build.
    pub fn cached_board(&mut self, scope: &str, label: &str, ranking: Ranking) -> Vec<(String, f64, i64)> {
        let state = self.state();
        let selector = selector(scope, label, ranking, None);
        let (_, board) =
            state.engine.model().board(&state.store, &selector).unwrap_or_else(|e| panic!("{selector:?}: {e}"));
        let named = |entry: clqd::board::BoardEntry| {
            let record = state.store.player_record(entry.player).expect("a store").expect("a player");
            (record.name.into_string(), display_score(ranking, entry.score()), entry.at_ms)
        };
        board.iter().map(named).collect()
    }

    /// Name and points.
    pub fn points(&mut self, scope: &str, label: &str) -> Vec<(String, f64)> {
        let board = self.board(scope, label, Ranking::Points);
        board.into_iter().map(|(name, score, _)| (name, score)).collect()
    }

    pub fn query(&mut self, selector: &BoardSelector, query: &BoardQuery) -> Result<BoardAnswer, ViewError> {
        let state = self.state();
        state.engine.model().query_board(&state.store, selector, query)
    }

    /// Labels of the windows of a type in that phase, newest first.
    pub fn windows(&mut self, kind: &str, phase: WindowPhase) -> Vec<String> {
        let listed = self.state().engine.model().windows().into_iter();
        listed.filter(|l| l.kind == kind && l.phase == phase).map(|l| l.window.window).collect()
    }

    /// Compares all boards of all windows with the oracle.
    pub fn check(&mut self, context: &str) {
        self.state().commit().expect("a store");
        let settings = Settings { calendar: *self.settings.windows.calendar(), ..Settings::default() };
        let oracle = Oracle::new(&self.log, settings);
        let (settings, tags) = (self.settings.clone(), self.tags.clone());
        compare::check(self.state(), &oracle, &settings, &tags, context);
    }

    /// Number of stored records of windows. Closes the state and opens it again.
    pub fn records<'w>(&mut self, windows: impl IntoIterator<Item = &'w str>) -> u64 {
        self.state().commit().expect("a store");
        drop(self.state.take());
        self.state = Some(open(self.dir.path(), &self.settings));
        let reader = self.state().store.reader();
        let stored =
            |window| reader.stored_size(window::parse_label(window).expect("a label")).expect("a store").records;
        windows.into_iter().map(stored).sum()
    }
}

pub fn selector(scope: &str, window: &str, ranking: Ranking, at_ms: Option<i64>) -> BoardSelector {
    BoardSelector { scope: scope.parse().expect("a scope"), ranking, window: Some(window.to_owned()), at_ms }
}

pub fn ms(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text).unwrap_or_else(|e| panic!("{e}: {text}")).timestamp_millis()
}

/// A line of a scan log; all lines have the same map.
pub fn line(t_ms: i64, server: &str, players: &[(&str, i64)]) -> String {
    let game = if server.starts_with("source") { "cstrike" } else { "baseq3" };
    let player = |(name, points): &(&str, i64)| format!("{{\"name\":\"{name}\",\"points\":{points},\"ping\":30}}");
    let players: Vec<String> = players.iter().map(player).collect();
    let players = players.join(",");
    format!(
        "{{\"t\":{t_ms},\"server\":\"{server}\",\"game\":\"{game}\",\"map\":\"m\",\"slots\":16,\"players\":[{players}]}}\n"
    )
}
