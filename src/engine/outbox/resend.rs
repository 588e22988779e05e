//! Archives kept weeks again, because an admin requests it: after rows were lost or changed in the
//! database.
//!
//! Weeks are added to the outbox, some servers in each step, so many servers do not delay the
//! engine. Queued weeks survive a restart. A request for everything starts a resync, whose position
//! survives a restart, too.

use super::{Engine, StateReader};
use crate::model::archive::ResendStep;
use crate::model::calendar::week_label;
use crate::model::{OutboxKey, ServerKey, WeekKey};

/// Why weeks cannot be archived again or verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeekRangeError {
    #[error("no archive is configured: set archive.url")]
    NoArchive,
    #[error("the first week, {}, is after the last, {}", week_label(*first), week_label(*last))]
    Reversed { first: WeekKey, last: WeekKey },
    #[error("the state does not keep {}; it keeps {}", range_text(*first, *last), kept_text(*kept))]
    NotKept { first: WeekKey, last: WeekKey, kept: Option<(WeekKey, WeekKey)> },
}

fn range_text(first: WeekKey, last: WeekKey) -> String {
    match first == last {
        true => week_label(first),
        false => format!("{} to {}", week_label(first), week_label(last)),
    }
}

fn kept_text(kept: Option<(WeekKey, WeekKey)>) -> String {
    kept.map_or("no week yet".to_owned(), |(first, last)| range_text(first, last))
}

impl Engine {
    /// The kept weeks from `first` through `last`, or all, in order. A week without any scan
    /// between two kept ones is omitted.
    pub fn archived_weeks(&self, range: Option<(WeekKey, WeekKey)>) -> Result<Vec<WeekKey>, WeekRangeError> {
        if !self.global.settings.archive_enabled {
            return Err(WeekRangeError::NoArchive);
        }
        let kept = || self.global.meta.weeks.iter().map(|state| state.week);
        let Some((first, last)) = range else { return Ok(kept().collect()) };
        if first > last {
            return Err(WeekRangeError::Reversed { first, last });
        }
        let bounds = kept().next().zip(kept().next_back());
        let not_kept = |first, last| Err(WeekRangeError::NotKept { first, last, kept: bounds });
        match bounds {
            Some((oldest, _)) if first < oldest => return not_kept(first, last.min(WeekKey(oldest.0 - 1))),
            Some((_, newest)) if last > newest => return not_kept(first.max(WeekKey(newest.0 + 1)), last),
            _ => {}
        }
        let weeks: Vec<WeekKey> = kept().filter(|week| (first..=last).contains(week)).collect();
        if weeks.is_empty() { not_kept(first, last) } else { Ok(weeks) }
    }

    /// Adds the weeks of at most `servers_max` servers from a key on to the outbox, with all their
    /// rows. Changes should be committed before, so that the length of the outbox is known.
    pub fn resend_week<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        from: ServerKey,
        servers_max: u32,
    ) -> ResendStep {
        let settings = &self.global.settings;
        if settings.outbox_full || source.outbox_len() > settings.outbox_entries_max / 2 {
            return ResendStep::OutboxTooLong;
        }
        if !self.global.is_kept(week.into()) {
            return ResendStep::Queued { servers: 0, next: None };
        }
        let end = self.global.meta.next_server;
        let until = from.0.saturating_add(servers_max).min(end);
        let keys: Vec<ServerKey> =
            (from.0..until).map(ServerKey).filter(|key| self.server_state(*key).is_some()).collect();
        for &server in &keys {
            self.global.enqueue(OutboxKey::Week { week, server });
        }
        let next = Some(ServerKey(until)).filter(|_| until < end);
        if next.is_none() {
            self.global.enqueue(OutboxKey::MapTotals(week));
        }
        ResendStep::Queued { servers: keys.len() as u64, next }
    }

    /// Begins a resync, or repeats the one in progress. Returns the number of weeks of servers that
    /// it writes.
    pub fn resend_all(&mut self) -> u64 {
        self.global.require_resync();
        let weeks: Vec<WeekKey> = self.global.meta.weeks.iter().map(|state| state.week).collect();
        for &week in &weeks {
            self.global.enqueue(OutboxKey::MapTotals(week));
        }
        (weeks.len() * self.servers.iter().flatten().count()) as u64
    }
}
