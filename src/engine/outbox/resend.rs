//! Archives kept weeks again, because an admin requests it: after rows were lost or changed in the
//! database.
//!
//! Weeks are added to the outbox, some servers in each step, so many servers do not delay the
//! engine. A request for everything starts a resync. Each step is an event, so it survives a crash.

use super::{Engine, ReadModel, StoreReader};
use crate::model::archive::ResendStep;
use crate::model::calendar::week_label;
use crate::model::outbox::ArchiveStep;
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

impl ReadModel {
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

    /// The event that adds the weeks of at most `servers_max` servers from a key on to the outbox, with all their
    /// rows. Changes should be committed before, so that the length of the outbox is known.
    pub fn plan_resend(
        &self,
        source: &dyn StoreReader,
        week: WeekKey,
        from: ServerKey,
        servers_max: u32,
    ) -> (ResendStep, Option<ArchiveStep>) {
        let settings = &self.global.settings;
        if settings.outbox_full || source.outbox_len() > settings.outbox_entries_max / 2 {
            return (ResendStep::OutboxTooLong, None);
        }
        if !self.global.is_kept(week.into()) {
            return (ResendStep::Queued { servers: 0, next: None }, None);
        }
        let servers = self.resent_servers(from, servers_max).count() as u64;
        let next = ServerKey(from.0.saturating_add(servers_max));
        let next = Some(next).filter(|next| next.0 < self.global.meta.next_server);
        (ResendStep::Queued { servers, next }, Some(ArchiveStep::Resend { week, from, servers: servers_max }))
    }

    fn resent_servers(&self, from: ServerKey, servers_max: u32) -> impl Iterator<Item = ServerKey> {
        let until = from.0.saturating_add(servers_max).min(self.global.meta.next_server);
        (from.0..until).map(ServerKey).filter(|key| self.servers.get(*key).is_some())
    }

    /// The number of weeks of servers that the state keeps.
    pub fn server_weeks(&self) -> u64 {
        (self.global.meta.weeks.len() * self.servers.iter().count()) as u64
    }
}

impl Engine {
    /// Applies what [`ReadModel::plan_resend`] has planned.
    pub(super) fn resend_week(&mut self, week: WeekKey, from: ServerKey, servers_max: u32) {
        if !self.model.global.is_kept(week.into()) {
            return;
        }
        let servers: Vec<ServerKey> = self.model.resent_servers(from, servers_max).collect();
        for server in servers {
            self.model.global.enqueue(OutboxKey::Week { week, server });
        }
        if from.0.saturating_add(servers_max) >= self.model.global.meta.next_server {
            self.model.global.enqueue(OutboxKey::WeekTotals(week));
            self.model.global.enqueue(OutboxKey::TopBoards(week.into()));
        }
    }

    /// Begins a resync, or repeats the one in progress.
    pub(super) fn resend_all(&mut self, repairs: bool) {
        self.model.global.require_resync();
        self.model.global.meta.resync_state.repairs = repairs;
        let weeks: Vec<WeekKey> = self.model.global.meta.weeks.iter().map(|state| state.week).collect();
        for &week in &weeks {
            self.model.global.enqueue(OutboxKey::WeekTotals(week));
        }
    }
}
