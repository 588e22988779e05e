//! Applies changed settings.

use super::{Engine, EngineSettings};
use crate::model::ServerKey;
use crate::model::server::Class;
use crate::schedule::class_of;

impl Engine {
    /// Applies settings that a reload may change; the time zone is not one of them.
    pub fn reload(&mut self, settings: EngineSettings) {
        let outbox_full = self.global.settings.outbox_full;
        let reclass = settings.class1_players_min != self.global.settings.class1_players_min;
        let replan = reclass || settings.intervals != self.global.settings.intervals;
        if settings.order_overrides() != self.global.settings.order_overrides() {
            self.restart_server_close();
        }
        self.global.settings = EngineSettings { outbox_full, ..settings };
        self.apply_window_settings();
        self.global.update_board_orders();
        self.archive_changed_orders();
        if reclass {
            self.reclassify_servers();
        }
        if replan {
            self.schedule.set_intervals(self.global.settings.intervals);
            self.reschedule_all(self.global.meta.now_ms);
        }
    }

    /// Assigns each server the class that follows from its player counts.
    fn reclassify_servers(&mut self) {
        for (index, server_state) in self.servers.iter_mut().enumerate() {
            let Some(server_state) = server_state.as_mut().filter(|server_state| !server_state.record.removed) else {
                continue;
            };
            if server_state.record.class >= Class::UNKNOWN {
                continue;
            }
            let class = class_of(server_state.record.missed, self.global.is_populated(server_state));
            if server_state.record.class != class {
                server_state.record.class = class;
                self.global.server_changed(ServerKey(index as u32));
            }
        }
    }

    /// Reschedules every server from `now_ms`: after a pause the scans are spread over their
    /// intervals instead of all being due at once.
    pub fn reschedule_all(&mut self, now_ms: i64) {
        for (index, server_state) in self.servers.iter().enumerate() {
            let Some(server_state) = server_state
                .as_ref()
                .filter(|server_state| !server_state.record.removed && !server_state.scan_requested)
            else {
                continue;
            };
            self.schedule.schedule_next(ServerKey(index as u32), server_state.record.class, now_ms);
        }
    }
}
