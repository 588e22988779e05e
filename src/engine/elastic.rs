//! Plans the scans of servers with players, and reports the plans ([`crate::schedule::elastic`]).

use std::sync::PoisonError;

use super::snapshot::compare::{ListChange, best_points};
use super::{AdminError, Engine, ReadModel, ServerState};
use crate::model::{ScanBudget, ServerKey, ServerUrl};
use crate::schedule::InFlight;
use crate::schedule::elastic::{Basis, ListSeen, Moment, Pace};
use crate::view::{ElasticOff, ElasticView, RoundEndBasis};

/// Servers of this class are on the budget if they have enough players; those of class 1 always.
const CLASS_MAX: u8 = 2;

/// Missed scans up to which a server is on the budget.
const MISSED_MAX: u32 = 2;

impl ReadModel {
    /// How many scans a server with players may have. `None`: they are on the fixed grid.
    fn pace(&self, server_state: &ServerState) -> Option<Pace> {
        let settings = &self.global.settings;
        let budget = server_state.record.scan_budget.map_or(settings.scan_budget, ScanBudget::scans);
        let pace = Pace { budget, interval_ms: settings.intervals.classes_ms[0] };
        (pace.budget > 0.0).then_some(pace)
    }

    /// What `servers show` prints. `None`: a setting keeps scans on the fixed grid.
    pub(super) fn elastic_view(&self, server: ServerKey, server_state: &ServerState) -> Option<ElasticView> {
        let pace = self.pace(server_state)?;
        let off = self.elastic_off(server_state, self.scan_plan(server, server_state).boosted);
        let elastic = self.elastic_scans.read().unwrap_or_else(PoisonError::into_inner);
        let last = server_state.record.last_snapshot.as_ref();
        let known = last.and_then(|last| {
            let best = best_points(&last.entries);
            elastic.view(server, Moment { now_ms: self.now_ms(), list_ms: last.t_ms, best })
        });
        let end_ms = known.as_ref().and_then(|known| known.end_ms);
        let basis = known.as_ref().and_then(|known| known.basis).map(|basis| match basis {
            Basis::RoundLength { shortest_s, longest_s, rounds } => {
                RoundEndBasis::RoundLength { shortest_s, longest_s, rounds }
            }
            Basis::PointLimit { points, rounds } => RoundEndBasis::PointLimit { points, rounds },
        });
        Some(ElasticView {
            off,
            budget: pace.budget,
            has_own_budget: server_state.record.scan_budget.is_some(),
            earliest_end_ms: end_ms.map(|times| times[0]),
            expected_end_ms: end_ms.map(|times| times[1]),
            latest_end_ms: end_ms.map(|times| times[2]),
            basis,
            saved_scans: known.map_or(0.0, |known| known.saved),
        })
    }

    /// Why a server is scanned on the grid of its class, whatever the budget is.
    fn elastic_off(&self, server_state: &ServerState, boosted: bool) -> Option<ElasticOff> {
        let record = &server_state.record;
        let class = record.class.number();
        let enough = class == 1 || record.last_believed_count() >= self.global.settings.elastic_players_min;
        match () {
            () if record.greylist_reason.is_some() => Some(ElasticOff::Greylisted),
            () if class > CLASS_MAX || record.missed > MISSED_MAX => Some(ElasticOff::Missed),
            () if !enough => Some(ElasticOff::TooFewPlayers),
            () if record.last_snapshot.is_none() || record.recent.partial.is_some() => Some(ElasticOff::NoList),
            () if boosted => Some(ElasticOff::Boosted),
            () => None,
        }
    }
}

impl Engine {
    /// Learns from a scan that has ended, and moves the next scan of a server with players to when it tells most.
    pub(super) fn plan_elastic(&mut self, server: ServerKey, scan: InFlight, change: Option<ListChange>) {
        let Some(server_state) = self.model.servers.get(server) else { return };
        let Some(last) = server_state.record.last_snapshot.as_ref() else { return };
        let moment = Moment { now_ms: self.model.now_ms(), list_ms: last.t_ms, best: best_points(&last.entries) };
        let pace = self.model.pace(server_state).filter(|_| {
            let boosted = self.model.schedule.is_boosted(server, moment.now_ms);
            self.model.elastic_off(server_state, boosted).is_none()
        });
        let mut elastic = self.model.elastic_scans();
        if let Some(change) = change {
            elastic.observe(
                server,
                ListSeen {
                    t_ms: moment.list_ms,
                    previous_ms: change.previous_ms,
                    transition: change.transition,
                    best_before: change.best_before,
                    best: change.best,
                },
            );
        }
        let Some(pace) = pace else { return elastic.pause(server) };
        let next_ms = elastic.next_scan_ms(server, pace, moment, scan.requested);
        drop(elastic);
        self.model.schedule.schedule_elastic(server, next_ms);
    }

    /// Sets how often a server is scanned while it has players. Returns whether that changed.
    pub fn set_scan_budget(&mut self, url: &ServerUrl, budget: Option<ScanBudget>) -> Result<bool, AdminError> {
        let key = self.model.find_key(url)?;
        let server_state = self.model.servers.get_mut(key).expect("found");
        if server_state.record.scan_budget == budget {
            return Ok(false);
        }
        server_state.record.scan_budget = budget;
        let (class, now_ms) = (server_state.record.class, self.model.now_ms());
        self.model.global.server_changed(key);
        self.model.elastic_scans().pause(key);
        // A server that is due now, or whose first scan is requested, stays so.
        if self.model.schedule.due_ms(key).is_some_and(|due_ms| due_ms > now_ms) {
            self.model.schedule.schedule_next(key, class, now_ms);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::{Completeness, Player, ScanBudget, ServerUrl, Snapshot};
    use crate::state::State;
    use crate::store::StoreSettings;
    use crate::view::{ElasticOff, ElasticView, RoundEndBasis};

    const START_MS: i64 = 1_763_942_400_000;
    const ROUND_MS: i64 = 700_000;
    const INTERMISSION_MS: i64 = 15_000;

    struct Live {
        state: State,
        url: ServerUrl,
        players: usize,
        _dir: tempfile::TempDir,
    }

    impl Live {
        fn new(scan_budget: f64, players: usize) -> Live {
            let dir = tempfile::tempdir().unwrap();
            let store = StoreSettings { cache_bytes: 16 << 20, create: true };
            let settings = EngineSettings { scan_budget, class1_players_min: 2, ..EngineSettings::default() };
            let mut state = State::open(&dir.path().join("state"), store, settings).unwrap();
            let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
            state.engine.add_server(url.clone(), Vec::new(), START_MS).unwrap();
            Live { state, url, players, _dir: dir }
        }

        /// Scans a server with a time limit until then.
        fn run_to(&mut self, end_ms: i64) {
            loop {
                let now_ms = self.state.engine.next_due_ms().unwrap();
                if now_ms >= end_ms {
                    return;
                }
                let probe = self.state.engine.poll_probe(now_ms).unwrap();
                let (round, age_ms) = ((now_ms - START_MS) / ROUND_MS, (now_ms - START_MS) % ROUND_MS);
                let points = age_ms.min(ROUND_MS - INTERMISSION_MS) / [6_000, 9_000, 13_000, 8_000][round as usize % 4];
                let player = |n: usize| Player {
                    name: format!("p{n}").into(),
                    points: Some(points / (1 + n as i64)),
                    ping: Some(40),
                    ..Player::default()
                };
                let snapshot = Snapshot {
                    t_ms: now_ms,
                    game: "baseq3".into(),
                    map: "q3dm17".into(),
                    hostname: String::new(),
                    slots: 16,
                    players: (0..self.players).map(player).collect(),
                    completeness: Completeness::Full,
                    count: None,
                    bots: None,
                };
                let outcome = Outcome::Snapshot(snapshot);
                let sent_ms = Some(now_ms);
                self.state.handle(Event::Scanned { server: probe.server, id: probe.id, sent_ms, outcome }).unwrap();
            }
        }

        fn view(&self) -> Option<ElasticView> {
            self.state.engine.model.server_detail(&self.state.store, &self.url).unwrap().public.elastic
        }
    }

    #[test]
    fn budget_is_kept_and_scans_are_the_last_lists_of_rounds() {
        let mut live = Live::new(1.15, 3);
        assert_eq!(live.view().unwrap().off, Some(ElasticOff::Missed), "not scanned yet");
        live.run_to(START_MS + 60 * ROUND_MS);
        let counts = live.state.engine.model.counts().clone();
        let intervals = (60 * ROUND_MS / 120_000) as f64;
        assert!((counts.elastic_scans as f64 / intervals - 1.15).abs() < 0.05, "{counts:?}");
        let view = live.view().unwrap();
        assert_eq!((view.off, view.budget), (None, 1.15));
        let last_ms = live.state.engine.model.now_ms();
        let end_ms = START_MS + ((last_ms - START_MS) / ROUND_MS + 1) * ROUND_MS;
        let late_ms = view.expected_end_ms.unwrap() - end_ms;
        assert!(counts.rounds >= 59, "{counts:?}");
        assert!(late_ms.abs() <= 60_000, "{late_ms} {view:?}");
        assert!(matches!(view.basis, Some(RoundEndBasis::RoundLength { shortest_s: ..=700, longest_s: 700.., .. })));
    }

    #[test]
    fn grid_is_kept_without_budget_or_players() {
        for (budget, players, off) in [(0.0, 3, None), (1.15, 0, Some(ElasticOff::TooFewPlayers))] {
            let mut live = Live::new(budget, players);
            live.run_to(START_MS + 20 * ROUND_MS);
            assert_eq!(live.state.engine.model.counts().elastic_scans, 0);
            assert_eq!(live.view().and_then(|view| view.off), off);
            assert_eq!(live.view().is_some(), budget > 0.0);
        }
    }

    #[test]
    fn reason_for_the_grid_is_the_one_that_applies() {
        let mut live = Live::new(1.15, 3);
        live.run_to(START_MS + 20 * ROUND_MS);
        assert_eq!(live.view().unwrap().off, None);
        live.state.engine.greylist(&live.state.store, &live.url.clone(), Some("fake".to_owned())).unwrap();
        assert_eq!(live.view().unwrap().off, Some(ElasticOff::Greylisted));
        live.state.engine.greylist(&live.state.store, &live.url.clone(), None).unwrap();
        live.run_to(START_MS + 21 * ROUND_MS);
        let now_ms = live.state.engine.model.now_ms();
        live.state.engine.boost(&live.url.clone(), 60, now_ms).unwrap();
        assert_eq!(live.view().unwrap().off, Some(ElasticOff::Boosted));
        live.state.engine.boost(&live.url.clone(), 0, now_ms).unwrap();
        let mut miss = |times: usize| {
            for _ in 0..times {
                let outcome =
                    Outcome::Miss { t_ms: live.state.engine.model.now_ms() + 1, reason: "timeout".to_owned() };
                live.state.handle(Event::Replayed { url: live.url.clone(), outcome }).unwrap();
            }
            live.view().unwrap().off
        };
        assert_eq!(miss(2), None);
        assert_eq!(miss(1), Some(ElasticOff::Missed));
    }

    #[test]
    fn server_has_its_own_budget() {
        for scan_budget in [0.0, 1.15] {
            let mut live = Live::new(scan_budget, 3);
            let budget = |scans: f64| Some(ScanBudget::try_from(scans).unwrap());
            live.run_to(START_MS + 5 * ROUND_MS);
            let of_rounds = |live: &mut Live, budget: Option<ScanBudget>| {
                assert!(live.state.engine.set_scan_budget(&live.url, budget).unwrap());
                assert!(!live.state.engine.set_scan_budget(&live.url, budget).unwrap());
                let from_ms = live.state.engine.model.now_ms();
                let before = live.state.engine.model.counts().clone();
                live.run_to(from_ms + 30 * ROUND_MS);
                let after = live.state.engine.model.counts();
                let intervals = (30 * ROUND_MS / 120_000) as f64;
                (after.snapshots - before.snapshots) as f64 / intervals
            };
            let most = of_rounds(&mut live, budget(4.0));
            assert!((most - 4.0).abs() < 0.15, "{most}");
            assert_eq!(live.view().unwrap().budget, 4.0);
            let grid = of_rounds(&mut live, budget(0.0));
            assert!((grid - 1.0).abs() < 0.05, "{grid}");
            assert_eq!(live.view(), None);
            let usual = of_rounds(&mut live, None);
            assert!((usual - if scan_budget == 0.0 { 1.0 } else { 1.15 }).abs() < 0.07, "{usual}");
        }
    }

    #[test]
    fn reload_to_zero_returns_to_the_grid() {
        let mut live = Live::new(3.0, 3);
        live.run_to(START_MS + 20 * ROUND_MS);
        let made = live.state.engine.model.counts().elastic_scans;
        assert!(made > 0);
        let settings = EngineSettings { scan_budget: 0.0, class1_players_min: 2, ..EngineSettings::default() };
        live.state.engine.reload(settings);
        live.run_to(START_MS + 40 * ROUND_MS);
        assert_eq!(live.state.engine.model.counts().elastic_scans, made);
    }
}
