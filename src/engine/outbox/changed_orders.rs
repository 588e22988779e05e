//! Boards that are ordered otherwise than they were: positions in the archive
//! follow, in all weeks that are kept (RULES sections 8 and 12).
//!
//! By which orders something was last archived is in the state, so it is the same
//! whether the config changed while the daemon ran or while it was stopped. What
//! is remembered changes in the commit that puts the rows into the outbox: a crash
//! before it leaves both to the next start. Best positions of closed weeks are
//! history, and stay.

use crate::board::order::Orders;
use crate::engine::Engine;
use crate::model::{OutboxKey, Scope, ServerKey, WeekKey};

impl Engine {
    /// Compares the orders of the settings with those that were archived by.
    /// Without an archive there is nothing to compare: whoever archives next does.
    pub(in crate::engine) fn archive_changed_orders(&mut self) {
        let settings = &self.global.settings;
        if !settings.archive_enabled {
            return;
        }
        let now = settings.order_overrides();
        // Where nothing was ever archived this goes with the commit that begins to,
        // and is in itself no reason for one.
        let Some(before) = self.global.meta.archived_orders.replace(now.clone()) else { return };
        if before == now {
            return;
        }
        self.global.pending.meta = true;
        // Its positions are those of before.
        self.large_week = None;
        let differ = |scope: Option<&Scope>| {
            Orders::for_scope(&before.low_is_better, &before.ties, scope)
                != Orders::for_scope(&now.low_is_better, &now.ties, scope)
        };
        if differ(None) {
            return self.resync_weeks();
        }
        let named = before.scopes().chain(now.scopes()).filter(|scope| differ(Some(scope)));
        let key = |scope: &Scope| match scope {
            Scope::Server(url) => self.by_url.get(url).copied(),
            Scope::Game(_) | Scope::Tag(_) => None,
        };
        let servers: Vec<ServerKey> = named.filter_map(key).collect();
        let weeks: Vec<WeekKey> = self.global.meta.weeks.iter().map(|state| state.week).collect();
        for (server, &week) in servers.iter().flat_map(|server| weeks.iter().map(move |week| (server, week))) {
            self.global.archive(OutboxKey::Week { week, server: *server });
        }
    }
}
