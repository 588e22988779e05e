//! Plans extra scans at the ends of rounds, and reports them ([`crate::schedule::round_end`]).

use std::sync::PoisonError;

use super::snapshot::compare::{ListChange, best_points};
use super::{Engine, ServerState};
use crate::model::ServerKey;
use crate::model::server::{PlayerEntry, ServerRecord};
use crate::model::view::{RoundEndBasis, RoundEndOff, RoundEndView};
use crate::schedule::InFlight;
use crate::schedule::round_end::{Basis, ListSeen, Off, PLAYERS_MIN, ScanTimes};

/// Extra scans are made in classes 1 and 2 only: other servers do not answer.
const CLASS_MAX: u8 = 2;

impl Engine {
    /// Learns from a scan that has ended, and makes the server due once more before its next
    /// regular scan, if that is worth it.
    pub(super) fn plan_round_end(&mut self, server: ServerKey, scan: InFlight, change: Option<ListChange>) {
        let share = self.global.settings.round_end_share;
        if share == 0.0 {
            return;
        }
        let Some(record) = self.server_state(server).map(|server_state| &server_state.record) else { return };
        let off = record_off(record);
        let Some(last) = record.last_snapshot.as_ref() else { return };
        let (list_ms, players) = (last.t_ms, playing(&last.entries));
        if let Some(change) = change {
            let seen = ListSeen {
                t_ms: list_ms,
                previous_ms: change.previous_ms,
                transition: change.transition,
                best_before: change.best_before,
                best: change.best,
            };
            let was_last = self.rounds().observe(server, seen, players, scan.at_round_end, change.changed);
            self.counts.round_end_lists += u64::from(was_last);
        }
        if !scan.at_round_end && !scan.requested {
            self.rounds().earn(server, share);
        }
        // After a miss or a partial list, the last list is too old to expect anything from it.
        if off.is_some() || change.is_none() {
            return;
        }
        let Some(times) = self.scan_times(server) else { return };
        let extra_ms = self.rounds().extra_scan_ms(server, times);
        if let Some(at_ms) = extra_ms {
            self.schedule.schedule_extra(server, at_ms);
        }
    }

    fn scan_times(&self, server: ServerKey) -> Option<ScanTimes> {
        let server_state = self.server_state(server)?;
        let (plan, last) = (self.scan_plan(server, server_state), server_state.record.last_snapshot.as_ref()?);
        Some(ScanTimes {
            list_ms: last.t_ms,
            best: best_points(&last.entries),
            now_ms: self.now_ms(),
            due_ms: plan.due_ms?,
            interval_ms: plan.interval_ms?,
        })
    }

    /// What `servers show` prints. `None`: extra scans are turned off by the setting.
    pub(super) fn round_end_view(&self, server: ServerKey, server_state: &ServerState) -> Option<RoundEndView> {
        if self.global.settings.round_end_share == 0.0 {
            return None;
        }
        let view = self
            .scan_times(server)
            .map(|times| self.round_ends.read().unwrap_or_else(PoisonError::into_inner).view(server, times));
        let of_model = view.as_ref().map_or(Some(Off::Learning), |view| view.off);
        let (off, off_until_ms) = match (record_off(&server_state.record), of_model) {
            (Some(off), _) => (Some(off), None),
            (None, Some(Off::Learning)) => (Some(RoundEndOff::Learning), None),
            (None, Some(Off::RoundsTooShort)) => (Some(RoundEndOff::RoundsTooShort), None),
            (None, Some(Off::NoBenefit { until_ms })) => (Some(RoundEndOff::NoBenefit), Some(until_ms)),
            (None, None) => (None, None),
        };
        let end_ms = view.as_ref().and_then(|view| view.end_ms);
        let basis = view.as_ref().and_then(|view| view.basis).map(|basis| match basis {
            Basis::RoundLength { shortest_s, longest_s, rounds } => {
                RoundEndBasis::RoundLength { shortest_s, longest_s, rounds }
            }
            Basis::PointLimit { points, rounds } => RoundEndBasis::PointLimit { points, rounds },
        });
        Some(RoundEndView {
            off,
            off_until_ms,
            earliest_end_ms: end_ms.map(|times| times[0]),
            expected_end_ms: end_ms.map(|times| times[1]),
            latest_end_ms: end_ms.map(|times| times[2]),
            basis,
            saved_scans: view.map_or(0.0, |view| view.saved),
            next_scan_is_extra: self.scan_plan(server, server_state).is_extra,
        })
    }
}

/// Why no extra scans are made on a server, whatever is known about its rounds.
fn record_off(record: &ServerRecord) -> Option<RoundEndOff> {
    if record.greylist_reason.is_some() {
        return Some(RoundEndOff::Greylisted);
    }
    if record.class.number() > CLASS_MAX {
        return Some(RoundEndOff::ScannedRarely);
    }
    if record.missed > 0 {
        return Some(RoundEndOff::Missed);
    }
    let entries = record.last_snapshot.as_ref().map_or(&[][..], |last| &last.entries);
    if playing(entries) >= PLAYERS_MIN {
        return None;
    }
    let listed = entries.iter().filter(|entry| !entry.spectator).count();
    Some(if listed >= PLAYERS_MIN as usize { RoundEndOff::NoPoints } else { RoundEndOff::TooFewPlayers })
}

/// Players with points.
fn playing(entries: &[PlayerEntry]) -> u32 {
    entries.iter().filter(|entry| entry.playing_points().is_some()).count() as u32
}

#[cfg(test)]
mod tests {
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::view::{RoundEndBasis, RoundEndOff, RoundEndView};
    use crate::model::{Completeness, Player, ServerUrl, Snapshot};
    use crate::state::State;
    use crate::store::StoreSettings;

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
        fn new(round_end_share: f64, players: usize) -> Live {
            let dir = tempfile::tempdir().unwrap();
            let store = StoreSettings { cache_bytes: 16 << 20, create: true };
            let settings = EngineSettings { round_end_share, class1_players_min: 2, ..EngineSettings::default() };
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
                    connected_ms: None,
                    bot: false,
                    spectator: false,
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

        fn view(&self) -> Option<RoundEndView> {
            self.state.engine.server_detail(&self.state.store, &self.url).unwrap().public.round_end
        }
    }

    #[test]
    fn extra_scans_are_the_last_lists_of_rounds() {
        let mut live = Live::new(0.15, 3);
        assert_eq!(live.view().unwrap().off, Some(RoundEndOff::ScannedRarely), "not scanned yet");
        live.run_to(START_MS + 60 * ROUND_MS);
        let counts = live.state.engine.counts().clone();
        let regular = counts.snapshots - counts.round_end_scans;
        assert!(counts.round_end_scans as f64 <= 0.15 * regular as f64, "{counts:?}");
        assert!(counts.round_end_lists >= 20, "of 60 rounds: {counts:?}");
        let view = live.view().unwrap();
        assert_eq!((view.off, view.off_until_ms), (None, None));
        let last_ms = live.state.engine.now_ms();
        let end_ms = START_MS + ((last_ms - START_MS) / ROUND_MS + 1) * ROUND_MS;
        let late_ms = view.expected_end_ms.unwrap() - end_ms;
        assert!(counts.rounds >= 59, "{counts:?}");
        assert!(late_ms.abs() <= 60_000, "{late_ms} {view:?}");
        assert!(matches!(view.basis, Some(RoundEndBasis::RoundLength { shortest_s: ..=700, longest_s: 700.., .. })));
    }

    #[test]
    fn none_are_made_without_share_or_players() {
        for (share, players, off) in [(0.0, 3, None), (0.15, 1, Some(RoundEndOff::TooFewPlayers))] {
            let mut live = Live::new(share, players);
            live.run_to(START_MS + 20 * ROUND_MS);
            assert_eq!(live.state.engine.counts().round_end_scans, 0);
            assert_eq!(live.view().and_then(|view| view.off), off);
            assert_eq!(live.view().is_some(), share > 0.0);
        }
    }

    #[test]
    fn reason_for_no_extra_scans_is_the_one_that_applies() {
        let mut live = Live::new(0.15, 3);
        live.run_to(START_MS + 20 * ROUND_MS);
        assert_eq!(live.view().unwrap().off, None);
        live.state.engine.greylist(&live.url.clone(), Some("fake".to_owned())).unwrap();
        assert_eq!(live.view().unwrap().off, Some(RoundEndOff::Greylisted));
        live.state.engine.greylist(&live.url.clone(), None).unwrap();
        let mut miss = |times: usize| {
            for _ in 0..times {
                let outcome = Outcome::Miss { t_ms: live.state.engine.now_ms() + 1, reason: "timeout".to_owned() };
                live.state.handle(Event::Replayed { url: live.url.clone(), outcome }).unwrap();
            }
            live.view().unwrap().off
        };
        assert_eq!(miss(1), Some(RoundEndOff::Missed));
        assert_eq!(miss(10), Some(RoundEndOff::ScannedRarely));
    }

    #[test]
    fn reload_turns_extra_scans_off() {
        let mut live = Live::new(1.0, 3);
        live.run_to(START_MS + 20 * ROUND_MS);
        let made = live.state.engine.counts().round_end_scans;
        assert!(made > 0);
        let settings = EngineSettings { round_end_share: 0.0, class1_players_min: 2, ..EngineSettings::default() };
        live.state.engine.reload(settings);
        live.run_to(START_MS + 40 * ROUND_MS);
        assert_eq!(live.state.engine.counts().round_end_scans, made);
    }
}
