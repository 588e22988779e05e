//! The events of a log as a replay gets them, and as JSON lines have them.

use super::{LogEvent, RecordedSettings};

/// Leaves out ticks: a replay closes weeks by the times of the scans. Settings stand right before the event
/// that they apply to first, with its time: in a log they may have the time of a tick, and each segment
/// repeats them.
#[derive(Clone, Debug, Default)]
pub struct ReplayedEvents {
    in_force: RecordedSettings,
    /// Settings that no event followed yet.
    pending: RecordedSettings,
}

impl ReplayedEvents {
    /// Adds the next event of the log, and passes on what a replay gets.
    pub fn add(&mut self, event: LogEvent, each: &mut dyn FnMut(LogEvent)) {
        match event {
            LogEvent::Tick { .. } => {}
            LogEvent::Settings { settings, .. } => self.pending.update(settings),
            event => {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AdminCommand;

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
}
