//! How the config writes which boards are ordered in their own way. On which the
//! lowest score is best: `points`, `points game:baseq3`, `time tag:race`; on all
//! others the highest is. And on which another ranking parts equal scores: `points
//! time`, `clq2 points game:baseq3`; on all others the earlier moment does.
//!
//! Who stands before whom by them is said by [`board::order`](crate::board::order).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::row::Ranking;
use super::scope::{Scope, ScopeError};
use crate::nearest::nearest;

/// All that a config says about the order of boards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOverrides {
    pub low_is_better: Vec<LowIsBetter>,
    pub ties: Vec<TieBreak>,
}

impl OrderOverrides {
    /// The scopes that it names, some more than once.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let ties = self.ties.iter().filter_map(|tie| tie.scope.as_ref());
        self.low_is_better.iter().filter_map(|low| low.scope.as_ref()).chain(ties)
    }
}

/// Boards of one ranking that the lowest score leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LowIsBetter {
    pub ranking: Ranking,
    /// `None`: in every scope.
    pub scope: Option<Scope>,
}

impl LowIsBetter {
    /// Whether the boards of this ranking in this scope are among them; without
    /// one, those of a scope that is named nowhere.
    pub fn applies_to<'s>(&self, ranking: Ranking, scope: impl Into<Option<&'s Scope>>) -> bool {
        self.ranking == ranking && (self.scope.is_none() || self.scope.as_ref() == scope.into())
    }
}

/// Boards of one ranking on which equal scores are parted by another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TieBreak {
    pub ranking: Ranking,
    pub by: Ranking,
    /// `None`: in every scope that has none of its own.
    pub scope: Option<Scope>,
}

impl TieBreak {
    /// What parts equal scores on the boards of a ranking in a scope; without one,
    /// in scopes that are named nowhere. Of several the one that names the scope
    /// holds, of those the last.
    pub fn of(ties: &[TieBreak], ranking: Ranking, scope: Option<&Scope>) -> Option<Ranking> {
        let of_scope = |scope: Option<&Scope>| {
            ties.iter().rev().find(|tie| tie.ranking == ranking && tie.scope.as_ref() == scope).map(|tie| tie.by)
        };
        scope.and_then(|_| of_scope(scope)).or_else(|| of_scope(None))
    }
}

/// Why a text names no boards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderParseError {
    #[error("{text:?}: {word:?} is not a ranking; {advice}")]
    Ranking { text: String, word: String, advice: String },
    #[error("{text:?}: {error}; expected {expected}")]
    Scope { text: String, error: ScopeError, expected: &'static str },
    #[error("{0:?}: the scope names nothing after its colon")]
    Nothing(String),
    #[error("{0:?}: equal scores are not parted by themselves; expected another ranking")]
    Itself(String),
}

impl FromStr for LowIsBetter {
    type Err = OrderParseError;

    fn from_str(text: &str) -> Result<LowIsBetter, OrderParseError> {
        let mut words = Parser { text, rest: text };
        let ranking = words.ranking()?;
        let scope = words.scope("a ranking, alone or with one scope, such as \"points game:baseq3\"")?;
        Ok(LowIsBetter { ranking, scope })
    }
}

impl FromStr for TieBreak {
    type Err = OrderParseError;

    fn from_str(text: &str) -> Result<TieBreak, OrderParseError> {
        let mut words = Parser { text, rest: text };
        let (ranking, by) = (words.ranking()?, words.ranking()?);
        if ranking == by {
            return Err(OrderParseError::Itself(words.shown()));
        }
        let scope = words.scope("two rankings, alone or with one scope, such as \"points time game:baseq3\"")?;
        Ok(TieBreak { ranking, by, scope })
    }
}

/// A text that is read word by word.
struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl Parser<'_> {
    fn shown(&self) -> String {
        self.text.chars().take(120).collect()
    }

    fn ranking(&mut self) -> Result<Ranking, OrderParseError> {
        let rest = self.rest.trim();
        let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        self.rest = rest;
        Ranking::from_name(word).ok_or_else(|| {
            let names = Ranking::ALL.map(Ranking::name);
            let advice = match nearest(word, names) {
                Some(right) => format!("did you mean {right:?}?"),
                None => format!("the rankings are {}", names.join(", ")),
            };
            OrderParseError::Ranking { text: self.shown(), word: word.chars().take(40).collect(), advice }
        })
    }

    /// All that is left: names of games and tags may hold spaces.
    fn scope(&self, expected: &'static str) -> Result<Option<Scope>, OrderParseError> {
        let rest = self.rest.trim();
        if rest.is_empty() {
            return Ok(None);
        }
        let scope: Scope =
            rest.parse().map_err(|error| OrderParseError::Scope { text: self.shown(), error, expected })?;
        if scope.name().is_empty() {
            return Err(OrderParseError::Nothing(self.shown()));
        }
        Ok(Some(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_is_better_applies_everywhere_or_in_its_scope() {
        let (quake, race) = (Scope::Game("baseq3".to_owned()), Scope::Tag("the race".to_owned()));
        let holds = |text: &str, ranking, scope| text.parse::<LowIsBetter>().unwrap().applies_to(ranking, scope);
        assert!(holds("points", Ranking::Points, &quake) && holds("points", Ranking::Points, &race));
        assert!(!holds("points", Ranking::Time, &quake));
        assert!(holds("time tag:the race", Ranking::Time, &race));
        assert!(!holds("time tag:the race", Ranking::Time, &quake));
        assert!(!holds("time game:the race", Ranking::Time, &race));
        assert!(holds(" elo  game:baseq3 ", Ranking::Elo, &quake));
        let server = "server:quake3://h:27960".parse().unwrap();
        assert!(holds("clq1 server:QUAKE3://H", Ranking::Clq1, &server));
    }

    #[test]
    fn invalid_order_text_names_fault_and_expected_form() {
        for (text, want) in [
            ("", "\"\": \"\" is not a ranking; the rankings are clq1, clq2, elo, points, time"),
            ("point game:x", "\"point game:x\": \"point\" is not a ranking; did you mean \"points\"?"),
            (
                "points baseq3",
                "\"points baseq3\": scope \"baseq3\" is not of the form server:URL, game:NAME or tag:NAME; \
                 expected a ranking, alone or with one scope, such as \"points game:baseq3\"",
            ),
            ("points tag:", "\"points tag:\": the scope names nothing after its colon"),
        ] {
            assert_eq!(text.parse::<LowIsBetter>().unwrap_err().to_string(), want);
        }
        assert!("points server:nowhere".parse::<LowIsBetter>().is_err());
        for (text, want) in [
            ("points", "\"points\": \"\" is not a ranking; the rankings are clq1, clq2, elo, points, time"),
            ("points tine game:x", "\"points tine game:x\": \"tine\" is not a ranking; did you mean \"time\"?"),
            ("elo elo", "\"elo elo\": equal scores are not parted by themselves; expected another ranking"),
            (
                "points time elo",
                "\"points time elo\": scope \"elo\" is not of the form server:URL, game:NAME or tag:NAME; \
                 expected two rankings, alone or with one scope, such as \"points time game:baseq3\"",
            ),
            ("points time tag: ", "\"points time tag: \": the scope names nothing after its colon"),
        ] {
            assert_eq!(text.parse::<TieBreak>().unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn scoped_tie_break_wins_then_the_last_one() {
        let texts =
            ["points clq1", "points time", "points clq2 tag:the race", " points  elo  tag:the race ", "elo time"];
        let ties = texts.map(|text| text.parse::<TieBreak>().unwrap());
        let (quake, race) = (Scope::Game("baseq3".to_owned()), Scope::Tag("the race".to_owned()));
        assert_eq!(TieBreak::of(&ties, Ranking::Points, None), Some(Ranking::Time));
        assert_eq!(TieBreak::of(&ties, Ranking::Points, Some(&quake)), Some(Ranking::Time));
        assert_eq!(TieBreak::of(&ties, Ranking::Points, Some(&race)), Some(Ranking::Elo));
        assert_eq!(TieBreak::of(&ties, Ranking::Elo, Some(&race)), Some(Ranking::Time));
        assert_eq!(TieBreak::of(&ties[2..], Ranking::Points, None), None);
        assert_eq!(TieBreak::of(&ties[2..], Ranking::Points, Some(&quake)), None);
    }
}
