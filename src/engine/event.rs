//! The input and output of the engine: events in, probes and notices out.

use crate::model::name::Name;
use crate::model::server::Class;
use crate::model::{ForgottenPlaceholder, ServerKey, ServerUrl, Snapshot};

/// Input of the engine, except requests of an admin.
#[derive(Clone, Debug)]
pub enum Event {
    /// A scan that the engine requested has ended.
    Scanned { server: ServerKey, id: u64, sent_ms: Option<i64>, outcome: Outcome },
    /// A scan from a log, in order of time. An unknown server is added. Scans of removed servers
    /// do not belong here: see [`State::replay_scan`](crate::state::State::replay_scan).
    Replayed { url: ServerUrl, outcome: Outcome },
    /// Time passes. Sent once in every [`Engine::tick_interval_ms`](super::Engine::tick_interval_ms).
    Tick { now_ms: i64 },
}

/// How a scan ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    Snapshot(Snapshot),
    Miss { t_ms: i64, reason: String },
}

impl Outcome {
    pub fn t_ms(&self) -> i64 {
        match self {
            Outcome::Snapshot(snapshot) => snapshot.t_ms,
            Outcome::Miss { t_ms, .. } => *t_ms,
        }
    }

    /// Makes the outcome earlier.
    pub fn rewind(&mut self, by_ms: i64) {
        match self {
            Outcome::Snapshot(snapshot) => snapshot.t_ms -= by_ms,
            Outcome::Miss { t_ms, .. } => *t_ms -= by_ms,
        }
    }

    /// Blanks these names, which are given as the server wrote them. The entries remain.
    pub fn with_blanked_names(mut self, names: &[Name]) -> Outcome {
        if let (Outcome::Snapshot(snapshot), false) = (&mut self, names.is_empty()) {
            snapshot.players.iter_mut().filter(|it| names.contains(&it.name)).for_each(|it| it.name.clear());
        }
        self
    }

    /// Marks names that look like the placeholder of a forgotten player, for the log. A
    /// replay normalises them to the same names.
    pub fn with_marked_names(mut self) -> Outcome {
        if let Outcome::Snapshot(snapshot) = &mut self {
            snapshot.players.iter_mut().for_each(|player| ForgottenPlaceholder::mark_ordinary(&mut player.name));
        }
        self
    }

    /// Clamps the time of the outcome to `least_ms..=most_ms`. Outcomes arrive over several
    /// sockets, and one that timed out has the time of its last datagram, but a log must
    /// be in order of time. After the clock was set back, outcomes in flight may have future
    /// times.
    pub fn clamped_to(mut self, least_ms: i64, most_ms: i64) -> Outcome {
        let (Outcome::Snapshot(Snapshot { t_ms, .. }) | Outcome::Miss { t_ms, .. }) = &mut self;
        *t_ms = least_ms.max(most_ms.min(*t_ms));
        self
    }
}

/// A scan to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub id: u64,
    pub server: ServerKey,
    pub url: ServerUrl,
    /// Class 7, and class 6 if the scan was not requested: three times the timeout and retries, every
    /// protocol.
    pub exception_mode: bool,
    pub due_ms: i64,
    /// Its time is not on the grid of its class ([`crate::schedule::elastic`]).
    pub elastic: bool,
    /// The settings that the server publishes are old, or not known.
    pub wants_settings: bool,
}

/// A scan has ended. Tasks that wait for the scan of this server are notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub server: ServerKey,
    pub t_ms: i64,
    pub requested: bool,
    /// It replied, but the list was not complete.
    pub partial: bool,
    pub class_before: Class,
    pub class: Class,
    /// First packet minus due time, ms.
    pub lag_ms: Option<i64>,
    /// Why there was no reply; `None`: the server replied.
    pub missed: Option<String>,
}
