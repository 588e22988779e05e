//! Archives positions again when the order of boards changes, in all weeks that are kept (docs/rules.md
//! sections 8 and 12).
//!
//! The state stores the orders by which positions were last archived. So a changed config has the
//! same effect whether the daemon was running or stopped. The stored orders change in the commit
//! that adds the weeks to the outbox. After a crash before that commit, the next start does both.
//! Best positions of closed weeks do not change.

use crate::board::order::Orders;
use crate::engine::Engine;
use crate::model::{OutboxKey, Scope, ServerKey, WeekKey};

impl Engine {
    /// Compares the orders of the settings with the archived ones. Without an archive there is
    /// nothing to compare; the next archive triggers the comparison.
    pub(in crate::engine) fn archive_changed_orders(&mut self) {
        let settings = &self.model.global.settings;
        if !settings.archive_enabled {
            return;
        }
        let orders = settings.order_overrides();
        // If nothing was ever archived, this is part of the first commit with outbox entries
        // and is no reason for a commit by itself.
        let Some(before) = self.model.global.meta.archived_orders.replace(orders.clone()) else { return };
        if before == orders {
            return;
        }
        self.model.global.pending.meta = true;
        // It has positions in the previous order.
        self.drop_large_weeks();
        let differ = |scope: Option<&Scope>| {
            Orders::for_scope(&before.low_is_better, &before.tie_breakers, scope)
                != Orders::for_scope(&orders.low_is_better, &orders.tie_breakers, scope)
        };
        if differ(None) {
            return self.resync_weeks();
        }
        let named: Vec<&Scope> = before.scopes().chain(orders.scopes()).filter(|scope| differ(Some(scope))).collect();
        let key = |scope: &&Scope| match scope {
            Scope::Server(url) => self.model.servers.find(url),
            Scope::Game(_) | Scope::Tag(_) => None,
        };
        let has_groups = named.iter().any(|scope| !matches!(scope, Scope::Server(_)));
        let servers: Vec<ServerKey> = named.iter().filter_map(key).collect();
        self.model.global.enqueue_boards_of_ended(|_| has_groups);
        let weeks: Vec<WeekKey> = self.model.global.meta.weeks.iter().map(|state| state.week).collect();
        for (server, &week) in servers.iter().flat_map(|server| weeks.iter().map(move |week| (server, week))) {
            self.model.global.enqueue(OutboxKey::Week { week, server: *server });
        }
    }
}
