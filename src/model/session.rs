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

/// A complete session. The oldest is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Time of the last list with the player, Unix ms.
    pub end_ms: i64,
    pub server: ServerKey,
    pub player: PlayerKey,
    /// The player's key when the session ended, before merges. It tells apart sessions of two merged players
    /// that ended with the same list.
    pub origin: PlayerKey,
    /// Of its day.
    pub generation: u8,
}

impl SessionKey {
    /// Where it is stored.
    pub fn day(&self) -> SessionDay {
        SessionDay { generation: self.generation, ..SessionDay::of(self.end_ms) }
    }
}

/// The sessions that ended on a day of UTC, which are stored and deleted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionDay {
    /// Days since 1970.
    pub day: u32,
    /// Days that were deleted, and that come again because the clock was set back, have another number: records
    /// of a deleted day are removed later.
    pub generation: u8,
}

impl SessionDay {
    const DAYS_MAX: u32 = u32::MAX >> 8;

    pub const FIRST: SessionDay = SessionDay { day: 0, generation: 0 };

    /// The day that contains a time, in its first generation.
    pub fn of(t_ms: i64) -> SessionDay {
        let day = t_ms.div_euclid(DAY_MS).clamp(0, SessionDay::DAYS_MAX.into());
        SessionDay { day: day as u32, generation: 0 }
    }

    pub fn start_ms(self) -> i64 {
        i64::from(self.day) * DAY_MS
    }

    /// Exclusive.
    pub fn end_ms(self) -> i64 {
        self.start_ms() + DAY_MS
    }

    pub fn contains(self, t_ms: i64) -> bool {
        SessionDay::of(t_ms).day == self.day
    }

    /// The first day after this one, in the order of days.
    pub fn next(self) -> SessionDay {
        match self.generation.checked_add(1) {
            Some(generation) => SessionDay { generation, ..self },
            None => SessionDay { day: self.day + 1, generation: 0 },
        }
    }
}

impl From<SessionDay> for WindowKey {
    fn from(SessionDay { day, generation }: SessionDay) -> WindowKey {
        WindowKey { kind: WindowType::SESSIONS, index: day << 8 | u32::from(generation) }
    }
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
        assert_eq!(SessionDay::of(DAY_MS - 1), SessionDay::FIRST);
        let next = SessionDay::of(DAY_MS);
        assert_eq!((next.start_ms(), next.end_ms()), (DAY_MS, 2 * DAY_MS));
        assert!(next.contains(DAY_MS) && !next.contains(DAY_MS - 1) && !next.contains(2 * DAY_MS));
        assert_eq!((SessionDay::of(i64::MIN), SessionDay::of(i64::MAX).day), (SessionDay::FIRST, SessionDay::DAYS_MAX));
        let last = SessionDay { day: 0, generation: u8::MAX };
        assert_eq!(last.next(), next);
        let windows = [SessionDay::FIRST, SessionDay::FIRST.next(), last, next].map(WindowKey::from);
        assert!(windows.is_sorted() && windows[1].index == 1 && windows[3].index == 256);
    }
}
