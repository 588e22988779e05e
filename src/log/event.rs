//! What a log records. The binary log ([`crate::log`]) and the JSON lines ([`crate::scan_log`])
//! have the same events.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::Outcome;
use crate::model::outbox::ArchiveStep;
use crate::model::rebuild::RebuildStep;
use crate::model::{AdminCommand, KnownServer, ServerUrl};

/// One event of a log, in the order in which the engine applied it.
#[derive(Clone, Debug)]
pub enum LogEvent {
    Scan {
        server: ServerUrl,
        outcome: Outcome,
    },
    Command {
        t_ms: i64,
        command: AdminCommand,
    },
    Settings {
        t_ms: i64,
        settings: RecordedSettings,
    },
    /// What is known of a server. Each day's first segment has all servers, so that a replay can begin there.
    /// It changes nothing in a state that has the events before it.
    Known {
        t_ms: i64,
        server: KnownServer,
    },
    /// A step of a rebuild of windows. The rows of a rebuild are in the log, because a replay that begins later
    /// does not have the events that they follow from.
    Rebuild {
        t_ms: i64,
        step: RebuildStep,
    },
    /// A change of what is to be archived, and where. The JSON lines have none: a replay has no archive.
    Archive {
        t_ms: i64,
        step: ArchiveStep,
    },
    /// Time passes: windows begin, weeks that end until `close_until_ms` are closed, in steps. The JSON
    /// lines have none: their reader closes weeks by the times of the scans.
    Tick {
        t_ms: i64,
        close_until_ms: i64,
    },
}

impl LogEvent {
    /// Unix ms.
    pub fn t_ms(&self) -> i64 {
        match self {
            LogEvent::Scan { outcome, .. } => outcome.t_ms(),
            LogEvent::Command { t_ms, .. }
            | LogEvent::Settings { t_ms, .. }
            | LogEvent::Known { t_ms, .. }
            | LogEvent::Rebuild { t_ms, .. }
            | LogEvent::Archive { t_ms, .. }
            | LogEvent::Tick { t_ms, .. } => *t_ms,
        }
    }

    /// Makes the event earlier.
    pub fn rewind(&mut self, by_ms: i64) {
        match self {
            LogEvent::Scan { outcome, .. } => outcome.rewind(by_ms),
            LogEvent::Command { t_ms, .. }
            | LogEvent::Settings { t_ms, .. }
            | LogEvent::Known { t_ms, .. }
            | LogEvent::Rebuild { t_ms, .. }
            | LogEvent::Archive { t_ms, .. } => *t_ms -= by_ms,
            LogEvent::Tick { t_ms, close_until_ms } => {
                *t_ms -= by_ms;
                *close_until_ms = close_until_ms.saturating_sub(by_ms);
            }
        }
    }

    /// Whether the event sets recorded time back, so that it may be earlier than the event before.
    pub fn sets_clock(&self) -> bool {
        matches!(self, LogEvent::Command { command: AdminCommand::Clock {}, .. })
    }
}

/// Passes on all events of a source, in the order in which they were applied.
pub type EachEvent<'e> = &'e dyn Fn(&mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()>;

/// Settings that change a result, by their keys in the config file, such as `elo.k`. They hold from
/// this event on; the other settings do not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedSettings(pub Map<String, Value>);

impl RecordedSettings {
    /// The settings that differ from earlier ones, or are new.
    pub fn changed_since(&self, earlier: &RecordedSettings) -> RecordedSettings {
        let is_changed = |(key, value): &(&String, &Value)| earlier.0.get(*key) != Some(*value);
        let changed = self.0.iter().filter(is_changed);
        RecordedSettings(changed.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Adds later settings.
    pub fn update(&mut self, later: RecordedSettings) {
        self.0.extend(later.0);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
