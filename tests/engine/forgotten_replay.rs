//! A log in which a placeholder stands for a forgotten player: a replay of it gives the state of
//! the engine that forgot the player, bit for bit. A week is closed before the request, and the
//! next one after it.

use crate::scans;
use clqd::cli::replay::Replay;
use clqd::engine::{EngineSettings, Outcome, StateReader};
use clqd::log::LogEvent;
use clqd::model::calendar::{Calendar, MINUTE_MS, WEEK_MS};
use clqd::model::row::BestPositions;
use clqd::model::row::PlayerRow;
use clqd::model::{ForgottenPlaceholder, PlayerKey, ServerKey, ServerUrl, Snapshot, WindowKey};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

/// Sunday 2025-11-30 22:00 UTC.
const FROM_MS: i64 = 1_764_540_000_000;
/// Two minutes past midnight: the replay has not checked for the end of the week yet.
const FORGOTTEN_MS: i64 = FROM_MS + 122 * MINUTE_MS;
const MEMORY: u64 = 64 << 20;
const NAMES: [&str; 4] = ["Visor", "Klesk", "Sarge", "Bones"];

/// The scans of the times in minutes. `named` is the name of the forgotten player.
fn scans(minutes: std::ops::Range<i64>, named: &str) -> Vec<(ServerUrl, Outcome)> {
    let scan = |minute: i64, server: i64| {
        let players = NAMES.iter().zip(1..).map(|(&name, number)| {
            let name = if name == "Visor" { named } else { name };
            // Every player wins sometimes.
            (name, minute % 20 * ((number + minute / 20 + server) % 4 + 1))
        });
        let mut snapshot = scans::snapshot(FROM_MS + minute * MINUTE_MS, players);
        snapshot.map = format!("map {}", minute / 20 % 2);
        (ServerUrl::parse(&format!("quake3://10.0.0.{server}:27960")).unwrap(), Outcome::Snapshot(snapshot))
    };
    minutes.step_by(2).flat_map(|minute| (1..=2).map(move |server| (minute, server))).map(|(m, s)| scan(m, s)).collect()
}

struct Fixture {
    _dir: tempfile::TempDir,
    state: State,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        Fixture { _dir: dir, state }
    }

    /// Everybody leaves, so that all rows are in the store.
    fn empty_servers(&mut self) {
        self.replay(scans(402..403, "").into_iter().map(|(url, outcome)| match outcome {
            Outcome::Snapshot(snapshot) => (url, Outcome::Snapshot(Snapshot { players: Vec::new(), ..snapshot })),
            miss => (url, miss),
        }));
    }

    fn replay(&mut self, scans: impl IntoIterator<Item = (ServerUrl, Outcome)>) {
        let mut replay = Replay::new(&mut self.state, MEMORY);
        scans.into_iter().for_each(|(server, outcome)| replay.apply(LogEvent::Scan { server, outcome }).unwrap());
        replay.finish().unwrap();
    }

    /// Rows of the weeks and best positions, by server.
    #[expect(clippy::type_complexity, reason = "one test uses it")]
    fn rows(&self) -> Vec<(Vec<(PlayerKey, PlayerRow)>, Vec<Option<BestPositions>>)> {
        let calendar = Calendar::default();
        let mut all = Vec::new();
        for (window, server) in [0, 1].iter().flat_map(|n| [1, 2].map(|server| (FROM_MS + n * WEEK_MS, server))) {
            let (window, server) = (WindowKey::from(calendar.week(window)), ServerKey(server));
            let rows = self.state.store.rows(window, server).unwrap();
            all.push((rows, (1..9).map(|key| self.state.store.best(server, PlayerKey(key)).unwrap()).collect()));
        }
        all
    }
}

#[test]
fn replay_forgets_a_placeholder_at_the_time_of_the_request() {
    let mut live = Fixture::new();
    live.replay(scans(0..124, "Visor"));
    live.state.close_due_weeks(FORGOTTEN_MS).unwrap();
    let State { engine, store } = &mut live.state;
    engine.forget_player(store, "baseq3", &PlayerSelector::Name("Visor".into()), FORGOTTEN_MS).unwrap();
    // The next scans come from the recorder, which blanks the name.
    live.replay(scans(124..400, ""));

    let placeholder = ForgottenPlaceholder { forgotten_ms: FORGOTTEN_MS, number: 1 }.to_string();
    let mut replayed = Fixture::new();
    replayed.replay(scans(0..124, &placeholder).into_iter().chain(scans(124..400, "")));

    live.empty_servers();
    replayed.empty_servers();
    let rows = live.rows();
    assert!(rows.iter().all(|(rows, _)| rows.len() == 3 || rows.is_empty()), "{rows:?}");
    assert!(rows[0].1.iter().flatten().count() == 3 && rows[2].0.len() == 3);
    assert_eq!(rows, replayed.rows());
    assert_eq!(live.state.engine.model().weeks(), replayed.state.engine.model().weeks());
    // Nothing of it remains, and its name is not a forgotten one.
    assert!(!replayed.state.store.contains_bytes(b"forgotten-").unwrap());
    assert!(replayed.state.engine.model().forgotten().is_empty());

    // A log that ends before the request.
    let mut replayed = Fixture::new();
    replayed.replay(scans(0..124, &placeholder));
    assert!(!replayed.state.store.contains_bytes(b"forgotten-").unwrap());
    assert_eq!(replayed.state.engine.model().now_ms(), FORGOTTEN_MS);
}

/// Without the placeholder the ratings of the others would differ.
#[test]
fn blank_name_instead_of_a_placeholder_changes_other_ratings() {
    let mut live = Fixture::new();
    live.replay(scans(0..100, "Visor"));
    let mut blank = Fixture::new();
    blank.replay(scans(0..100, ""));
    live.empty_servers();
    blank.empty_servers();
    let ratings = |fixture: &Fixture| fixture.rows()[0].0.iter().map(|(_, row)| row.elo).collect::<Vec<_>>();
    assert_ne!(ratings(&live)[1..], ratings(&blank)[..]);
}

#[test]
fn ordinary_name_like_a_placeholder_is_ranked_under_that_name() {
    let mut fixture = Fixture::new();
    // As the recorder writes it.
    fixture.replay(scans(0..100, "\u{2060}forgotten-1763683200000-1"));
    fixture.empty_servers();
    assert_eq!(fixture.rows()[0].0.len(), 4);
    assert!(fixture.state.store.contains_bytes(b"forgotten-1763683200000-1").unwrap());
}
