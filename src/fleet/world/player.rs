//! A player who is on a server.

use super::settings::TICK_MS;
use crate::fleet::population::Person;
use crate::fleet::profile::ServerProfile;
use crate::fleet::truth::PlayerTruth;

#[derive(Clone, Debug)]
pub(super) struct ActivePlayer {
    pub(super) person: Person,
    pub(super) points: i32,
    /// From the last tick to the next.
    pub(super) spectating: bool,
    pub(super) scores_per_tick: f32,
    pub(super) ping_ms: i32,
    pub(super) joined_ms: i64,
    pub(super) leave_ms: i64,
    /// Start of the time whose sums below are not yet recorded.
    pub(super) since_ms: i64,
    pub(super) points_gained: i32,
    pub(super) points_lost: i32,
    pub(super) spectated_ms: i64,
    pub(super) starts: u32,
}

impl ActivePlayer {
    /// A player who scores by `skill`, 1 on average. Their time is recorded from `seen_ms`
    /// on, the tick at which they are on the server for the first time.
    pub(super) fn new(profile: &ServerProfile, person: Person, skill: f64, seen_ms: i64) -> ActivePlayer {
        let scores_per_tick = profile.game.scores_per_minute * skill * TICK_MS as f64 / 60_000.0;
        ActivePlayer {
            person,
            points: 0,
            spectating: false,
            scores_per_tick: scores_per_tick as f32,
            ping_ms: 0,
            joined_ms: seen_ms,
            leave_ms: i64::MAX / 4,
            since_ms: seen_ms,
            points_gained: 0,
            points_lost: 0,
            spectated_ms: 0,
            starts: 1,
        }
    }

    /// What is not yet recorded, up to `until_ms`.
    pub(super) fn unrecorded(&self, until_ms: i64) -> PlayerTruth {
        PlayerTruth {
            points_gained: i64::from(self.points_gained),
            points_lost: i64::from(self.points_lost),
            present_ms: until_ms - self.since_ms,
            spectated_ms: self.spectated_ms,
            starts: self.starts,
            ..PlayerTruth::default()
        }
    }

    /// Sets the sums to zero: everything before `since_ms` is recorded, or must not be recorded.
    pub(super) fn clear_unrecorded(&mut self, since_ms: i64) {
        self.since_ms = since_ms;
        (self.points_gained, self.points_lost, self.spectated_ms, self.starts) = (0, 0, 0, 0);
    }
}
