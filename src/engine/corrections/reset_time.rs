//! Sets the recorded time back after the clock was wrong: a correction by an admin.
//!
//! Recorded time never runs backwards by itself, and data recorded under a wrong clock has
//! future times. An outcome must be later than the last one of its server, and gaps between
//! snapshots are never negative, so all future times are moved to the new time. Rows stay in
//! the windows that they were credited to.

use crate::engine::{Engine, ReadError, StoreReader, windows};
use crate::model::{OutboxKey, ServerKey, WeekKey};
use crate::series::slots;

/// The effect of setting the time back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeReset {
    /// The latest recorded time before, Unix ms.
    pub previous_ms: i64,
    pub now_ms: i64,
    /// Servers whose last scan was later than `now_ms`.
    pub servers: u64,
    /// Closed weeks that have not ended; they are being reopened.
    pub reopened: Vec<WeekKey>,
    /// The running week, if its rows were deleted already: nothing is credited to it.
    pub uncredited_week: Option<WeekKey>,
}

impl Engine {
    /// Sets the time back to `now_ms`; no effect if the recorded time is not later. Presences
    /// seen later end, and the next snapshot counts as after an invisible time. All scans are
    /// rescheduled.
    pub fn reset_time(&mut self, source: &dyn StoreReader, now_ms: i64) -> Result<TimeReset, ReadError> {
        let previous_ms = self.model.global.meta.now_ms;
        let mut reset = TimeReset { previous_ms, now_ms, ..TimeReset::default() };
        if previous_ms <= now_ms {
            return Ok(reset);
        }
        for server in self.model.servers.keys() {
            reset.servers += u64::from(self.rewind_server(source, server, now_ms)?);
        }
        self.model.global.meta.now_ms = now_ms;
        self.model.global.pending.meta = true;
        // Windows that expired by the wrong clock may open again.
        self.drop_rows_of_deleted_windows();
        self.model.global.forget_early_ends();
        self.model.global.current_windows = windows::current::CurrentWindows::default();
        self.model.global.begin_session_generation();
        // Their deadlines were times of the wrong clock.
        (self.online, self.invisible) = Default::default();
        for server in self.model.servers.keys() {
            self.queue_expiry(server);
            self.queue_invisible(server);
        }
        self.reschedule_all(now_ms);
        let requested = self.model.servers.iter().filter(|(_, it)| it.scan_requested && !it.record.removed);
        self.model.schedule.forget_turns();
        requested.for_each(|(server, _)| self.model.schedule.schedule_in_turn(server, now_ms));
        self.model.global.enqueue(OutboxKey::LaterRows);
        let (weeks, calendar) = (self.model.global.meta.weeks.clone(), self.model.global.calendar);
        for state in weeks.iter().filter(|state| calendar.week_end_ms(state.week) > now_ms) {
            if !state.phase.is_open() {
                self.begin_reopening(state.week);
                reset.reopened.push(state.week);
            }
        }
        let running = calendar.week(now_ms);
        reset.uncredited_week = weeks.first().filter(|first| running < first.week).map(|_| running);
        Ok(reset)
    }

    /// Moves later times of a server to `now_ms`. Returns whether there were any.
    fn rewind_server(&mut self, source: &dyn StoreReader, server: ServerKey, now_ms: i64) -> Result<bool, ReadError> {
        let calendar = self.model.global.calendar;
        let Some(server_state) = self.model.servers.get(server) else { return Ok(false) };
        let record = &server_state.record;
        let is_later = |t_ms: Option<i64>| t_ms.is_some_and(|t_ms| t_ms > now_ms);
        let seen_ms = record.last_snapshot.as_ref().map(|last| last.t_ms);
        let counted_ms = record.recent.partial.map(|partial| partial.t_ms);
        let was_seen_later = is_later(seen_ms);
        let slot_ms = record.sums.slot.saturating_mul(slots::SLOT_MS);
        let later = [record.last_scan_ms, record.last_seen_ms, counted_ms, Some(record.added_ms), Some(slot_ms)];
        if !was_seen_later && !later.into_iter().any(is_later) {
            return Ok(false);
        }
        if was_seen_later {
            self.complete_sessions(source, server, now_ms)?;
            self.end_presences(source, server)?;
        }
        let global = &mut self.model.global;
        let server_state = self.model.servers.get_mut(server).expect("checked above");
        let record = &mut *server_state.record;
        record.last_scan_ms = record.last_scan_ms.map(|t_ms| t_ms.min(now_ms));
        record.last_seen_ms = record.last_seen_ms.map(|t_ms| t_ms.min(now_ms));
        record.added_ms = record.added_ms.min(now_ms);
        // Its players are not compared, so no presence ends. The time before it was counted.
        record.recent.partial.iter_mut().for_each(|partial| partial.t_ms = partial.t_ms.min(now_ms));
        if let Some(screening) = &mut record.screening {
            screening.unchanged.iter_mut().for_each(|list| list.since_ms = list.since_ms.min(now_ms));
            screening.reasons_applied.iter_mut().for_each(|(_, applied_ms)| *applied_ms = now_ms.min(*applied_ms));
        }
        if let Some(series) = &mut server_state.series {
            series.change(|series| {
                slots::rewind(&mut record.sums, series, &calendar, now_ms);
                true
            });
            global.pending.series.insert(server);
        }
        global.server_changed(server);
        let week = calendar.week(now_ms);
        if global.is_kept(week.into()) {
            global.enqueue(OutboxKey::Week { week, server });
        }
        Ok(true)
    }
}
