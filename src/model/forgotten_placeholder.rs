//! The name that stands for a forgotten player in scans that were recorded before the request:
//! `forgotten-1763683200000-1`. It contains the time of the request, Unix ms, and the number of
//! the name among those forgotten at that time.
//!
//! An empty name would not be enough, because until the request the player affected the ratings of
//! the others. With a placeholder a replay computes the same ratings. It forgets the placeholder at
//! the time of the request, as the daemon forgot the player.

use std::fmt;

use super::name::Name;

const PREFIX: &str = "forgotten-";

/// A format character. Normalisation removes it.
const MARK: char = '\u{2060}';

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForgottenPlaceholder {
    /// Time of the request, Unix ms.
    pub forgotten_ms: i64,
    /// From 1.
    pub number: u32,
}

impl fmt::Display for ForgottenPlaceholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}-{}", self.forgotten_ms, self.number)
    }
}

impl ForgottenPlaceholder {
    /// Parses a name of a scan log. `None`: it is an ordinary name.
    pub fn parse(name: &str) -> Option<ForgottenPlaceholder> {
        let (forgotten_ms, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let parsed = ForgottenPlaceholder { forgotten_ms: forgotten_ms.parse().ok()?, number: number.parse().ok()? };
        (parsed.to_string() == name).then_some(parsed)
    }

    /// The string to record for a name that a server sent. A player may have a name that looks like
    /// a placeholder. Such a name gets a character that normalisation removes.
    pub fn mark_ordinary(name: &mut Name) {
        if ForgottenPlaceholder::parse(name).is_some() {
            name.insert(0, MARK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::name::{ColourCodes, normalise};

    #[test]
    fn placeholder_round_trips_and_is_its_own_normalised_name() {
        let placeholder = ForgottenPlaceholder { forgotten_ms: 1_763_683_200_000, number: 2 };
        let text = placeholder.to_string();
        assert_eq!(ForgottenPlaceholder::parse(&text), Some(placeholder));
        for codes in [ColourCodes::None, ColourCodes::Quake3, ColourCodes::DarkPlaces] {
            assert_eq!(normalise(&text, codes), text);
        }
        for other in ["", "forgotten", "forgotten-", "forgotten-1", "forgotten-01-1", "forgotten-1-x", " forgotten-1-1"]
        {
            assert_eq!(ForgottenPlaceholder::parse(other), None, "{other}");
        }
    }

    #[test]
    fn ordinary_name_like_a_placeholder_is_marked_and_normalises_to_the_same_name() {
        let mut name = Name::from("forgotten-1-1");
        ForgottenPlaceholder::mark_ordinary(&mut name);
        assert_eq!(ForgottenPlaceholder::parse(&name), None);
        assert_eq!(normalise(&name, ColourCodes::Quake3), "forgotten-1-1");
        let mut other = Name::from("Visor");
        ForgottenPlaceholder::mark_ordinary(&mut other);
        assert_eq!(other, "Visor");
    }
}
