//! Applies the outcomes of scans, and reports them to the clients of a rescan.

use super::EngineThread;
use super::durability::Unsynced;
use super::silence::{Outage, Silence};
use crate::api::requests::{ScanResult, ScanRow};
use crate::engine::{Event, Notice, Outcome};
use crate::log::LogEvent;
use crate::model::{AdminCommand, ServerKey, ServerUrl};
use crate::scan::{MissReason, ScanOutcome, is_public};
use crate::store::StoreError;
use crate::view::PublicServer;

/// What a scanner on another machine has handed in.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct HandedIn {
    pub session: u64,
    /// Its outcomes with smaller numbers have arrived.
    pub received: u64,
}

impl EngineThread {
    /// Applies an outcome of the own scanner, unless another region is asked first.
    pub(super) fn apply_outcome(&mut self, scan: ScanOutcome, now_ms: i64) -> Result<(), StoreError> {
        match self.scanners.judge_own(scan) {
            Some(scan) => self.apply_judged(scan, now_ms),
            None => Ok(()),
        }
    }

    /// Applies outcomes of a scanner on another machine, which learns when they are in the log.
    pub(in crate::daemon) fn apply_remote_outcomes(
        &mut self,
        outcomes: Vec<ScanOutcome>,
        scanner: String,
        handed_in: HandedIn,
    ) -> anyhow::Result<()> {
        let now_ms = self.clock.now_ms();
        for scan in outcomes {
            let t_ms = scan.result.as_ref().map_or_else(|miss| miss.t_ms, |snapshot| snapshot.t_ms);
            // Times are only moved forward, so a late answer could look newer than what was scanned since.
            if !self.state.engine.model().is_late(scan.server, scan.id, t_ms, self.last_outcome_ms) {
                self.apply_judged(scan, now_ms)?;
            }
        }
        self.handed_in.insert((self.log.last_seq(), scanner), handed_in);
        self.changed_ms.get_or_insert(now_ms);
        Ok(())
    }

    fn apply_judged(&mut self, scan: ScanOutcome, now_ms: i64) -> Result<(), StoreError> {
        self.record_capture(&scan, now_ms);
        let url = self.state.engine.model().url_of(scan.server);
        let elsewhere = url.and_then(|url| Some((url, scan.answers_at(url)?)));
        let is_elsewhere = elsewhere.is_some();
        if let Some((url, found)) = elsewhere {
            // The same URL would be found and logged at every daily retry.
            if self.rescans.is_waiting(scan.server) {
                tracing::info!(%url, %found, "the host does not answer under this URL, but under another one");
                self.answers_at.insert(scan.server, found);
            }
        }
        if let Some(grade) = scan.authentication.filter(|_| !is_elsewhere) {
            self.state.engine.set_authentication(scan.server, grade);
        }
        if let (Some(details), Ok(snapshot)) = (scan.details.as_ref().filter(|_| !is_elsewhere), &scan.result) {
            self.state.engine.set_published(scan.server, snapshot.t_ms, details);
        }
        if scan.result.as_ref().err().is_none_or(|miss| miss.reason.is_reply()) {
            self.end_outage(scan.server, now_ms);
        }
        // If there were several attempts, the result is that of the intended one.
        let first_miss = scan.first_miss();
        let outcome = match scan.result {
            // It may be another server of the same host, whose players must not be credited to this
            // server.
            Ok(snapshot) if is_elsewhere => {
                let reason = first_miss.unwrap_or(MissReason::Timeout);
                Outcome::Miss { t_ms: snapshot.t_ms, reason: reason.name().to_owned() }
            }
            Ok(snapshot) => Outcome::Snapshot(snapshot),
            // A local fault says nothing about the server.
            Err(miss) if miss.reason.is_local_fault() => {
                if matches!(miss.reason, MissReason::LookupFailed | MissReason::SendFailed) {
                    self.is_outage(scan.server, miss.t_ms, now_ms);
                }
                self.state.engine.handle_local_scan_failure(scan.server, scan.id, miss.t_ms, miss.reason.name());
                return Ok(());
            }
            Err(miss) => {
                let reason = first_miss.unwrap_or(miss.reason);
                if reason.is_silence() && self.is_outage(scan.server, miss.t_ms, now_ms) {
                    let reason = "discarded: no server answers";
                    self.state.engine.handle_local_scan_failure(scan.server, scan.id, miss.t_ms, reason);
                    return Ok(());
                }
                Outcome::Miss { t_ms: miss.t_ms, reason: reason.name().to_owned() }
            }
        };
        let discarded = match self.disk.discards_scan(self.state.engine.model().pending_records()) {
            true => Some("discarded: the disk is nearly full"),
            false => self.is_disk_behind().then_some("discarded: the disk is too slow"),
        };
        if let Some(reason) = discarded {
            self.state.engine.handle_local_scan_failure(scan.server, scan.id, outcome.t_ms(), reason);
            return Ok(());
        }
        let outcome = outcome.clamped_to(self.last_outcome_ms, now_ms);
        self.last_outcome_ms = outcome.t_ms();
        let event = Event::Scanned { server: scan.server, id: scan.id, sent_ms: scan.sent_ms, outcome };
        if let Some(recorded) = self.state.handle_and_record(scan.server, event)? {
            self.record(&recorded);
        }
        Ok(())
    }

    /// Whether a silent server says nothing about itself, because the own network is down.
    fn is_outage(&mut self, server: ServerKey, t_ms: i64, now_ms: i64) -> bool {
        let answered = self.state.engine.model().answered_lately(server);
        let Some(url) = self.state.engine.model().url_of(server) else { return false };
        let silence = &mut self.silences[usize::from(is_near(url))];
        let was_down = silence.since_ms().is_some();
        let is_outage = silence.note(url.host(), answered, t_ms);
        if !was_down && silence.since_ms().is_some() {
            tracing::warn!(
                "no server answers any more: the network seems to be down, and misses do not count until one does"
            );
            self.changed_ms.get_or_insert(now_ms);
        }
        is_outage
    }

    /// A server has sent something, so its network works.
    fn end_outage(&mut self, server: ServerKey, now_ms: i64) {
        // Nearly always.
        if self.silences.iter().all(Silence::is_empty) {
            return;
        }
        let Some(url) = self.state.engine.model().url_of(server) else { return };
        if let Some(Outage { since_ms, discarded }) = self.silences[usize::from(is_near(url))].end() {
            let duration_s = (now_ms - since_ms) / 1_000;
            tracing::info!(duration_s, scans_discarded = discarded, "servers answer again");
            self.changed_ms.get_or_insert(now_ms);
        }
    }

    /// The time of a command of an admin. It is later than every event before it, so that a replay can
    /// determine which commands a state contains.
    pub(super) fn begin_command(&mut self, now_ms: i64) -> i64 {
        self.last_outcome_ms = self.state.engine.begin_command(now_ms.max(self.last_outcome_ms));
        self.last_outcome_ms
    }

    /// Records a command that changed something.
    pub(super) fn record_command(&mut self, t_ms: i64, command: AdminCommand) {
        self.record(&LogEvent::Command { t_ms, command });
    }

    pub(super) fn record(&mut self, event: &LogEvent) {
        self.log.append(event);
        self.rebuilder.record(self.log.last_seq(), event);
    }

    /// Writes the capture of a scan, if it has one. While the disk is nearly full, captures are
    /// dropped.
    fn record_capture(&mut self, scan: &ScanOutcome, now_ms: i64) {
        let (Some(files), Some(capture)) = (&mut self.captures, &scan.capture) else { return };
        let engine = &self.state.engine;
        let Some(url) = engine.model().url_of(scan.server) else { return };
        let lists_forgotten = |snapshot| engine.model().lists_forgotten_name(scan.server, snapshot);
        if self.disk.is_paused() || scan.result.as_ref().is_ok_and(lists_forgotten) {
            files.count_dropped();
        } else {
            files.append(url, capture, now_ms);
        }
    }

    /// The results of scans since the last call, for the rescans that wait for them now: a rescan that
    /// begins later waits for a later scan.
    pub(super) fn take_scan_results(&mut self) -> Vec<Unsynced> {
        let mut results = Vec::new();
        while let Some(notice) = self.state.engine.poll_notice() {
            let answers_at = self.answers_at.remove(&notice.server);
            let Some(rescans) = self.rescans.take(notice.server) else { continue };
            if let Some(server) = self.state.engine.model().public_server_of(notice.server) {
                let row = scan_row(notice, server, answers_at);
                results.push(Box::new(move || rescans.send(&row)) as Unsynced);
            }
        }
        results
    }
}

/// Whether a server is on this machine or in its network: it answers though the way to all others is down.
fn is_near(url: &ServerUrl) -> bool {
    url.ip().is_some_and(|ip| !is_public(ip))
}

fn scan_row(notice: Notice, server: PublicServer, answers_at: Option<ServerUrl>) -> ScanRow {
    let answered = notice.missed.is_none();
    ScanRow {
        url: server.url,
        t_ms: notice.t_ms,
        result: match (answered, notice.partial) {
            (true, false) => ScanResult::Snapshot,
            (true, true) => ScanResult::Partial,
            (false, _) => ScanResult::Miss,
        },
        class: server.class,
        hostname: answered.then_some(server.hostname),
        game: server.game.filter(|_| answered),
        map: server.map.filter(|_| answered),
        players: answered.then_some(server.players),
        slots: answered.then_some(server.slots),
        answers_at: answers_at.map(String::from),
        reason: notice.missed,
    }
}
