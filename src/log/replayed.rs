//! The events of a log as a replay gets them, and as JSON lines have them.

use rustc_hash::FxHashSet;

use super::{LogEvent, RecordedSettings};
use crate::model::{AdminCommand, ServerUrl};

/// Leaves out ticks: a replay closes weeks by the times of the scans. Settings stand right before the event
/// that they apply to first, with its time: in a log they may have the time of a tick, and each segment
/// repeats them. A known server becomes commands, unless the log had it before.
#[derive(Clone, Debug, Default)]
pub struct ReplayedEvents {
    in_force: RecordedSettings,
    /// Settings that no event followed yet.
    pending: RecordedSettings,
    /// Servers that were known or added.
    servers: FxHashSet<ServerUrl>,
}

impl ReplayedEvents {
    /// Adds the next event of the log, and passes on what a replay gets.
    pub fn add(&mut self, event: LogEvent, each: &mut dyn FnMut(LogEvent)) {
        match event {
            LogEvent::Tick { .. } => {}
            LogEvent::Known { t_ms, server } => {
                if self.servers.insert(server.url.clone()) {
                    server
                        .commands()
                        .for_each(|command| self.add_with_settings(LogEvent::Command { t_ms, command }, each));
                }
            }
            LogEvent::Settings { settings, .. } => self.pending.update(settings),
            event => {
                if let LogEvent::Command { command: AdminCommand::Add { server, .. }, .. } = &event {
                    self.servers.insert(server.clone());
                }
                self.add_with_settings(event, each);
            }
        }
    }

    fn add_with_settings(&mut self, event: LogEvent, each: &mut dyn FnMut(LogEvent)) {
        // Settings before an event that sets time back would be earlier than the event before.
        if !self.pending.is_empty() && !event.sets_clock() {
            let settings = std::mem::take(&mut self.pending).changed_since(&self.in_force);
            if !settings.is_empty() {
                self.in_force.update(settings.clone());
                each(LogEvent::Settings { t_ms: event.t_ms(), settings });
            }
        }
        each(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::KnownServer;

    #[test]
    fn settings_stand_before_the_event_that_they_apply_to() {
        let settings = |t_ms, text| {
            let settings: RecordedSettings = serde_json::from_str(text).unwrap();
            LogEvent::Settings { t_ms, settings }
        };
        let drop_tag = |t_ms| LogEvent::Command { t_ms, command: AdminCommand::DropTag { tag: "a".to_owned() } };
        let mut replayed = ReplayedEvents::default();
        let mut found = Vec::new();
        for event in [
            settings(9, r#"{"elo.k":1}"#),
            LogEvent::Tick { t_ms: 9, close_until_ms: 9 },
            settings(9, r#"{"elo.start":2}"#),
            drop_tag(5),
            settings(6, r#"{"elo.k":1,"elo.start":2}"#),
            drop_tag(7),
            settings(7, r#"{"elo.k":3}"#),
            LogEvent::Command { t_ms: 2, command: AdminCommand::Clock {} },
            drop_tag(3),
            settings(4, r#"{"elo.k":4}"#),
        ] {
            replayed.add(event, &mut |event| {
                let settings = match &event {
                    LogEvent::Settings { settings, .. } => serde_json::to_string(settings).unwrap(),
                    _ => String::new(),
                };
                found.push((event.t_ms(), settings));
            });
        }
        let with = |t_ms, text: &str| (t_ms, text.to_owned());
        let want = [
            with(5, r#"{"elo.k":1,"elo.start":2}"#),
            with(5, ""),
            with(7, ""),
            with(2, ""),
            with(3, r#"{"elo.k":3}"#),
            with(3, ""),
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn known_servers_become_commands_once() {
        let url = |n| ServerUrl::parse(&format!("quake3://10.0.0.{n}:27960")).unwrap();
        let known = |n, greylist_reason: Option<&str>| LogEvent::Known {
            t_ms: 5,
            server: KnownServer {
                url: url(n),
                tags: vec!["ctf".to_owned()],
                exempt: Vec::new(),
                greylist_reason: greylist_reason.map(str::to_owned),
                budget: None,
                imported: false,
            },
        };
        let add = LogEvent::Command {
            t_ms: 5,
            command: AdminCommand::Add { server: url(2), tags: Vec::new(), import: false },
        };
        let mut replayed = ReplayedEvents::default();
        let mut found = Vec::new();
        for event in [known(1, Some("bots")), add, known(1, None), known(2, None)] {
            replayed.add(event, &mut |event| {
                let LogEvent::Command { command, .. } = event else { panic!("a command") };
                found.push(serde_json::to_string(&command).unwrap());
            });
        }
        let want = [
            r#"{"command":"add","server":"quake3://10.0.0.1:27960","tags":["ctf"]}"#,
            r#"{"command":"greylist","server":"quake3://10.0.0.1:27960","reason":"bots"}"#,
            r#"{"command":"add","server":"quake3://10.0.0.2:27960"}"#,
        ];
        assert_eq!(found, want);
    }
}
