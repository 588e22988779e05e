//! Applies the outcome of a scan: presence, points, rounds, maps, series, class (docs/rules.md sections
//! 2 to 7, 9, 10).

pub(in crate::engine) mod compare;
mod estimate;
mod forgotten_names;
mod map_time;
mod partial;
mod presence;
mod rounds;
mod screening;

use self::compare::{ListChange, RoundEnd};
use self::screening::ScreeningResult;
use super::{Engine, GlobalState, Notice, Outcome, ReadError, ReadModel, ServerState, StoreReader};
use crate::model::server::Class;
use crate::model::snapshot::{Completeness, Snapshot};
use crate::model::{GameKey, MapKey, ServerKey};
use crate::rank::{INVISIBLE_GAP_MS, player_list};
use crate::schedule::{InFlight, class_of};
use crate::series::{self, slots};

/// A scan whose first packet is later than this after its due time is counted as late.
const LATE_SCAN_MS: i64 = 2_000;

/// Pause before a first scan is repeated after a local failure.
const FIRST_SCAN_RETRY_MS: i64 = 60_000;

impl ReadModel {
    /// Whether an outcome is that of a scan of an earlier process, and comes too late: the server was scanned or added since
    /// (the other process may have had another server under the key, or may have applied this outcome), or the newest
    /// outcome is much newer.
    pub fn is_late(&self, server: ServerKey, id: u64, t_ms: i64, newest_ms: i64) -> bool {
        let since_ms = self.servers.get(server).map_or(i64::MAX, |server_state| {
            let record = &server_state.record;
            record.last_scan_ms.unwrap_or(i64::MIN).max(record.added_ms)
        });
        self.schedule.is_late(id, t_ms, since_ms, newest_ms)
    }

    /// Whether a server answered one of its last three scans.
    pub fn answered_lately(&self, server: ServerKey) -> bool {
        let record = self.servers.record(server);
        record.is_some_and(|record| record.missed <= 2 && record.last_seen_ms.is_some())
    }

    /// An answer to a scan of an earlier process.
    fn earlier_scan(&self, server: ServerKey, id: u64, outcome: &Outcome) -> Option<InFlight> {
        let Outcome::Snapshot(snapshot) = outcome else { return None };
        let class = self.servers.get(server)?.record.class;
        let scan = InFlight { id, due_ms: snapshot.t_ms, class, requested: false, elastic: false };
        self.schedule.is_earlier(id).then_some(scan)
    }
}

impl Engine {
    pub(super) fn handle_scanned(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        id: u64,
        sent_ms: Option<i64>,
        outcome: Outcome,
    ) -> Result<(), ReadError> {
        let t_ms = outcome.t_ms();
        let Some(scan) =
            self.model.schedule.complete(server, id).or_else(|| self.model.earlier_scan(server, id, &outcome))
        else {
            return Ok(()); // cancelled, or missed before a restart
        };
        self.advance_time(t_ms);
        let is_in_flight = self.model.schedule.is_in_flight(server);
        let Some(server_state) = self.model.servers.get_mut(server) else { return Ok(()) };
        server_state.scan_requested &= is_in_flight;
        if server_state.record.removed {
            return Ok(());
        }
        let class_before = server_state.record.class;
        let missed = match &outcome {
            Outcome::Snapshot(_) => None,
            Outcome::Miss { reason, .. } => Some(reason.clone()),
        };
        let change = self.apply_outcome(source, server, outcome)?;
        let full = change.is_some();
        self.plan_elastic(server, scan, change);
        let partial = missed.is_none() && !full;
        let lag_ms = sent_ms.map(|sent| sent - scan.due_ms);
        // A requested scan is due at once, and many of them may wait for the scanner's budgets.
        // So the lag is counted for scheduled scans only.
        if let Some(lag_ms) = lag_ms.filter(|_| !scan.requested) {
            self.model.lag_histogram.add(lag_ms);
            self.model.counts.late_scans += u64::from(lag_ms > LATE_SCAN_MS);
        }
        let by_class = match (full, partial) {
            (true, _) => &mut self.model.counts.snapshots_by_class,
            (false, true) => &mut self.model.counts.partial_snapshots_by_class,
            (false, false) => &mut self.model.counts.misses_by_class,
        };
        by_class[usize::from(scan.class.number()) - 1] += 1;
        let class = self.model.servers.get(server).expect("checked above").record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            requested: scan.requested,
            partial,
            class_before,
            class,
            lag_ms,
            missed,
        });
        Ok(())
    }

    /// Handles a scan that failed for a local reason. This says nothing about the server, so
    /// the scan is scheduled again. A server that was never scanned has no interval, so its
    /// first scan is repeated after a pause.
    pub fn handle_local_scan_failure(&mut self, server: ServerKey, id: u64, t_ms: i64, reason: &str) {
        let Some(scan) = self.model.schedule.complete(server, id) else { return };
        self.advance_time(t_ms);
        let now_ms = self.model.now_ms();
        let Some(server_state) = self.model.servers.get_mut(server) else { return };
        if server_state.record.removed {
            return;
        }
        let awaits_first_scan = server_state.record.awaits_first_scan();
        server_state.scan_requested = awaits_first_scan;
        let class = server_state.record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            requested: scan.requested,
            partial: false,
            class_before: class,
            class,
            lag_ms: None,
            missed: Some(reason.to_owned()),
        });
        match awaits_first_scan {
            true => self.model.schedule.schedule_now(server, now_ms + FIRST_SCAN_RETRY_MS),
            false => self.model.schedule.schedule_next(server, class, now_ms),
        }
    }

    /// Credits an outcome and schedules the next scan. Returns how its list differs from the
    /// previous one; `None`: it was not complete and credible, and so was not compared.
    pub(super) fn apply_outcome(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        outcome: Outcome,
    ) -> Result<Option<ListChange>, ReadError> {
        let t_ms = outcome.t_ms();
        self.model.global.blanked_names.clear();
        let server_state = self.model.servers.get_mut(server).expect("outcomes are of known servers");
        let latest = server_state.record.last_scan_ms.unwrap_or(i64::MIN);
        if t_ms <= latest {
            self.model.counts.out_of_order += 1;
            self.model.schedule.schedule_next(server, server_state.record.class, self.model.global.meta.now_ms);
            return Ok(None);
        }
        let global = &mut self.model.global;
        let mut compared = None;
        match outcome {
            Outcome::Miss { .. } => {
                self.model.counts.misses += 1;
                global.apply_miss(server_state);
            }
            Outcome::Snapshot(mut snapshot) => {
                let family = global.name_family(server_state, &snapshot.game);
                global.blank_forgotten_names(
                    &mut snapshot.players,
                    family,
                    &snapshot.game,
                    server_state.record.last_snapshot.as_ref(),
                );
                if snapshot.completeness == Completeness::Partial {
                    self.model.counts.partial_snapshots += 1;
                    global.apply_partial(source, server, server_state, &snapshot)?;
                } else {
                    let week = global.calendar.week(t_ms);
                    global.update_current_windows(source, t_ms);
                    global.open_session_day(t_ms);
                    if !global.week_phase(week).is_open() {
                        // Too late for the statistics of the week, but the server is alive.
                        self.model.counts.out_of_order += 1;
                        global.apply_alive(server, server_state, &snapshot, true, None);
                    } else {
                        match global.screen(server_state, &mut snapshot, family) {
                            ScreeningResult::Implausible { players } => {
                                self.model.counts.implausible_snapshots += 1;
                                // A greylisted server has no keys of its own, and its list may be as good as others.
                                let with_map = server_state.record.greylist_reason.is_some();
                                global.apply_alive(server, server_state, &snapshot, with_map, players);
                            }
                            ScreeningResult::Credible(credible) => {
                                self.model.counts.snapshots += 1;
                                let change =
                                    global.apply_snapshot(source, server, server_state, snapshot, credible, week)?;
                                if let RoundEnd::Rated { unseen_ms_max } = change.round {
                                    self.model.counts.rounds += 1;
                                    self.model.counts.rounds_sure += u64::from(change.round.is_sure());
                                    // An outage says nothing about the scans.
                                    let unseen_ms = unseen_ms_max.clamp(0, INVISIBLE_GAP_MS);
                                    self.model.counts.rounds_unseen_ms_max += unseen_ms.unsigned_abs();
                                }
                                compared = Some(change);
                            }
                        }
                    }
                }
            }
        }
        server_state.record.last_scan_ms = Some(t_ms);
        if let Some(series) = &mut server_state.series {
            // A full snapshot has advanced it already, before adding its sample.
            if slots::is_slot_over(&server_state.record.sums, t_ms)
                && series.change(|series| slots::advance(&mut server_state.record.sums, series, &global.calendar, t_ms))
            {
                global.pending.series.insert(server);
            }
        }
        global.server_changed(server);
        self.model.schedule.schedule_next(server, server_state.record.class, t_ms.max(global.meta.now_ms));
        self.queue_expiry(server);
        self.queue_invisible(server);
        Ok(compared)
    }
}

impl GlobalState {
    fn apply_miss(&mut self, server_state: &mut ServerState) {
        let record = &mut *server_state.record;
        record.missed = record.missed.saturating_add(1);
        server_state.record.class = match record.class {
            Class::UNKNOWN | Class::FAILED => Class::FAILED,
            _ => class_of(record.missed, self.is_populated(server_state)),
        };
    }

    /// Applies the fields that every reply contains, complete or not.
    fn update_server_info(
        &mut self,
        server: ServerKey,
        server_state: &mut ServerState,
        snapshot: &Snapshot,
        game: Option<GameKey>,
        map: Option<MapKey>,
    ) {
        let record = &mut *server_state.record;
        record.missed = 0;
        record.last_seen_ms = Some(snapshot.t_ms);
        record.game = game;
        if let Some(map) = map.filter(|_| map != record.map) {
            self.published.note_map(server, snapshot.t_ms, record.map, map);
        }
        record.map = map;
        record.slots = snapshot.slots;
        if record.hostname != snapshot.hostname {
            record.hostname.clone_from(&snapshot.hostname);
            self.server_name_changed(server);
        }
    }

    /// The class of a server that has answered.
    fn class_of_answer(&self, server_state: &ServerState) -> Class {
        class_of(0, self.is_populated(server_state))
    }

    /// Whether a server that answers is of class 1.
    pub(super) fn is_populated(&self, server_state: &ServerState) -> bool {
        let players_min = self.settings.class1_players_min;
        server_state.record.last_believed_count() >= players_min
            || series::assumed_players(&server_state.record) >= players_min
    }

    pub(in crate::engine) fn name_family(&self, server_state: &ServerState, game: &str) -> player_list::NameFamily {
        let (url, rules) = (&server_state.record.url, &self.settings.rules);
        rules.names.family(&rules.screen, url.scheme(), url.is_quake3_family(), game)
    }
}
