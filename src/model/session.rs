//! Sessions of players on servers (docs/rules.md section 16).

use serde::{Deserialize, Serialize};

use super::calendar::DAY_MS;
use super::keys::{MapKey, PlayerKey, ServerKey};
use super::window::{WindowKey, WindowType};

/// What is counted of one presence of a player on a server. Its end is in its [`SessionKey`]; the end of
/// an open session is the time of the last list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Time of the first list with the player, Unix ms.
    pub start_ms: i64,
    /// Points collected; `None`: the protocol has none.
    pub points: Option<i64>,
    /// The map of the last list. Not up to date while the session is open.
    pub map: MapKey,
    /// Lists with the player.
    pub seen: u32,
}

impl Session {
    /// A session that no list has been added to.
    pub fn begin(start_ms: i64, map: MapKey) -> Session {
        Session { start_ms, points: None, map, seen: 0 }
    }

    /// Adds a list with the player. `gain`: `None` if it shows no points.
    pub fn add_list(&mut self, gain: Option<i64>) {
        self.seen = self.seen.saturating_add(1);
        if let Some(gain) = gain {
            self.points = Some(self.points.unwrap_or(0).saturating_add(gain));
        }
    }
}

/// A complete session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    pub server: ServerKey,
    /// Time of the last list with the player, Unix ms.
    pub end_ms: i64,
    pub player: PlayerKey,
    /// The player as whom the session ended, before merges: two merged players may have been in the same
    /// last list.
    pub origin: PlayerKey,
}

impl SessionKey {
    /// The day of UTC on which it ended, as days are stored and deleted.
    pub fn day(&self) -> WindowKey {
        session_day(self.end_ms)
    }
}

/// The day of UTC that contains a time.
pub fn session_day(t_ms: i64) -> WindowKey {
    let index = t_ms.div_euclid(DAY_MS).clamp(0, u32::MAX.into());
    WindowKey { kind: WindowType::SESSIONS, index: index as u32 }
}

/// When a player was seen, without open sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Start of the first session, Unix ms; `None`: the player comes from an archive.
    pub first_ms: Option<i64>,
    /// Latest end of a session, Unix ms.
    pub last_ms: i64,
}

impl Seen {
    /// With a session more. A last time later than `now_ms` comes from a clock that was wrong.
    pub fn and(self, start_ms: i64, end_ms: i64, now_ms: i64) -> Seen {
        let last_ms = if self.last_ms > now_ms { end_ms } else { self.last_ms.max(end_ms) };
        Seen { first_ms: self.first_ms.map(|first_ms| first_ms.min(start_ms)), last_ms }
    }

    /// Of two players who were merged.
    pub fn merge(self, other: Seen) -> Seen {
        let first_ms = self.first_ms.zip(other.first_ms).map(|(a, b)| a.min(b));
        Seen { first_ms, last_ms: self.last_ms.max(other.last_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_absent_until_a_list_has_some() {
        let mut session = Session::begin(5, MapKey(1));
        session.add_list(None);
        assert_eq!((session.points, session.seen), (None, 1));
        session.add_list(Some(0));
        session.add_list(Some(i64::MAX));
        session.add_list(Some(7));
        assert_eq!((session.points, session.seen), (Some(i64::MAX), 4));
    }

    #[test]
    fn first_and_last_times() {
        let seen = Seen { first_ms: Some(100), last_ms: 200 };
        assert_eq!(seen.and(50, 150, 300), Seen { first_ms: Some(50), last_ms: 200 });
        assert_eq!(seen.and(150, 250, 300), Seen { first_ms: Some(100), last_ms: 250 });
        // The clock was set back.
        assert_eq!(seen.and(150, 160, 170), Seen { first_ms: Some(100), last_ms: 160 });
        let unknown = Seen { first_ms: None, last_ms: 900 };
        assert_eq!(seen.merge(unknown), Seen { first_ms: None, last_ms: 900 });
        assert_eq!(unknown.and(1, 2, 1_000), unknown);
    }

    #[test]
    fn days_of_all_times() {
        assert_eq!(session_day(DAY_MS - 1).index, 0);
        assert_eq!(session_day(DAY_MS).index, 1);
        assert_eq!((session_day(i64::MIN).index, session_day(i64::MAX).index), (0, u32::MAX));
    }
}
