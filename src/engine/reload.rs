//! Applies changed settings.

use std::sync::Arc;

use super::{Engine, EngineSettings};
use crate::model::server::Class;
use crate::schedule::class_of;

impl Engine {
    /// Applies settings that a reload may change; the time zone is not one of them.
    pub fn reload(&mut self, settings: EngineSettings) {
        let outbox_full = self.model.global.settings.outbox_full;
        let reclass = settings.class1_players_min != self.model.global.settings.class1_players_min;
        let fixed_grid = settings.scan_budget == 0.0 && self.model.global.settings.scan_budget != 0.0;
        let replan = reclass || fixed_grid || settings.intervals != self.model.global.settings.intervals;
        if settings.order_overrides() != self.model.global.settings.order_overrides() {
            self.restart_server_close();
        }
        self.model.global.settings = Arc::new(EngineSettings { outbox_full, ..settings });
        if fixed_grid {
            self.model.elastic_scans().clear();
        }
        self.apply_window_settings();
        self.model.global.update_board_orders();
        self.archive_changed_orders();
        if reclass {
            self.reclassify_servers();
        }
        if replan {
            self.model.schedule.set_intervals(self.model.global.settings.intervals);
            self.reschedule_all(self.model.global.meta.now_ms);
        }
    }

    /// Assigns each server the class that follows from its player counts.
    fn reclassify_servers(&mut self) {
        for (server, server_state) in self.model.servers.iter_mut() {
            if server_state.record.removed || server_state.record.class >= Class::UNKNOWN {
                continue;
            }
            let class = class_of(server_state.record.missed, self.model.global.is_populated(server_state));
            if server_state.record.class != class {
                server_state.record.class = class;
                self.model.global.server_changed(server);
            }
        }
    }

    /// Reschedules every server from `now_ms`: after a pause the scans are spread over their
    /// intervals instead of all being due at once.
    pub fn reschedule_all(&mut self, now_ms: i64) {
        let planned = self.model.servers.iter().filter(|(_, it)| !it.record.removed && !it.scan_requested);
        planned.for_each(|(server, it)| self.model.schedule.schedule_next(server, it.record.class, now_ms));
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::{Completeness, Player, ServerUrl, Snapshot};
    use crate::state::State;
    use crate::store::StoreSettings;

    #[test]
    fn reload_changes_class1_players_min() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let settings = |class1_players_min| EngineSettings { class1_players_min, ..EngineSettings::default() };
        let mut state = State::open(dir.path(), store, settings(3)).unwrap();
        let player = |name: &str| Player { name: name.into(), points: Some(1), ping: Some(40), ..Player::default() };
        for (server, players) in [("quake3://one:1", &["a"][..]), ("quake3://three:1", &["a", "b", "c"])] {
            let snapshot = Snapshot {
                t_ms: 1_763_942_400_000,
                game: "baseq3".into(),
                map: "q3dm17".into(),
                hostname: String::new(),
                slots: 16,
                players: players.iter().map(|name| player(name)).collect(),
                completeness: Completeness::Full,
                count: None,
                bots: None,
            };
            let url = ServerUrl::parse(server).unwrap();
            state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
        }
        let classes =
            |state: &State| state.engine.model.servers().map(|server| server.public.class).collect::<Vec<_>>();
        assert_eq!(classes(&state), [2, 1]);
        for (players_min, want) in [(1, [1, 1]), (4, [2, 2]), (3, [2, 1])] {
            state.engine.reload(settings(players_min));
            assert_eq!(classes(&state), want, "from {players_min} players on");
        }
        state.engine.reload(settings(1));
        state.commit().unwrap();
        drop(state);
        let state = State::open(dir.path(), store, settings(1)).unwrap();
        assert_eq!(classes(&state), [1, 1], "the new class must be stored");
    }
}
