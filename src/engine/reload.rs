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
        for (index, slot) in self.servers.iter_mut().enumerate() {
            let Some(slot) = slot.as_mut().filter(|slot| !slot.record.removed) else { continue };
            if slot.record.class >= Class::UNKNOWN {
                continue;
            }
            let class = class_of(slot.record.missed, self.global.is_populated(slot));
            if slot.record.class != class {
                slot.record.class = class;
                self.global.server_changed(ServerKey(index as u32));
            }
        }
    }

    /// Reschedules every server from `now_ms`: after a pause the scans are spread over their
    /// intervals instead of all being due at once.
    pub fn reschedule_all(&mut self, now_ms: i64) {
        for (index, slot) in self.servers.iter().enumerate() {
            let Some(slot) = slot.as_ref().filter(|slot| !slot.record.removed && !slot.scan_requested) else {
                continue;
            };
            self.schedule.schedule_next(ServerKey(index as u32), slot.record.class, now_ms);
        }
    }
}
