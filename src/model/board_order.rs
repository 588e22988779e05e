//! The settings for the order of boards. By default the highest score is best, and the earlier
//! time breaks ties. `points`, `points game:baseq3` or `time tag:race` select boards on which
//! the lowest score is best. `points time` or `clq2 points game:baseq3` select boards on which
//! another ranking breaks ties.
//!
//! [`board::order`](crate::board::order) applies these settings.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::row::Ranking;
use super::scope::{Scope, ScopeError};
use crate::nearest::nearest;

/// All settings for the order of boards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOverrides {
    pub low_is_better: Vec<LowIsBetter>,
    pub tie_breakers: Vec<TieBreaker>,
}

impl OrderOverrides {
    /// The scopes in the settings, some more than once.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let ties = self.tie_breakers.iter().filter_map(|tie| tie.scope.as_ref());
        self.low_is_better.iter().filter_map(|low| low.scope.as_ref()).chain(ties)
    }
}

/// Boards of one ranking on which the lowest score is best.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LowIsBetter {
    pub ranking: Ranking,
    /// `None`: in every scope.
    pub scope: Option<Scope>,
}

impl LowIsBetter {
    /// Whether this applies to the board of a ranking in a scope; without a scope, to a scope
    /// that no setting names.
    pub fn applies_to<'s>(&self, ranking: Ranking, scope: impl Into<Option<&'s Scope>>) -> bool {
        self.ranking == ranking && (self.scope.is_none() || self.scope.as_ref() == scope.into())
    }
}

/// Boards of one ranking on which another ranking breaks ties.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TieBreaker {
    pub ranking: Ranking,
    pub by: Ranking,
    /// `None`: in every scope without a setting.
    pub scope: Option<Scope>,
}

impl TieBreaker {
    /// The ranking that breaks ties on the board of a ranking in a scope; without a scope, in
    /// scopes that no setting names. A setting with a scope takes precedence; of several, the
    /// last applies.
    pub fn find(tie_breakers: &[TieBreaker], ranking: Ranking, scope: Option<&Scope>) -> Option<Ranking> {
        let in_scope = |scope: Option<&Scope>| {
            tie_breakers
                .iter()
                .rev()
                .find(|tie| tie.ranking == ranking && tie.scope.as_ref() == scope)
                .map(|tie| tie.by)
        };
        scope.and_then(|_| in_scope(scope)).or_else(|| in_scope(None))
    }
}

/// Why a string is not a valid order setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderParseError {
    #[error("{text:?}: {word:?} is not a ranking; {advice}")]
    Ranking { text: String, word: String, advice: String },
    #[error("{text:?}: {error}; expected {expected}")]
    Scope { text: String, error: ScopeError, expected: &'static str },
    #[error("{0:?}: the scope has no name after its colon")]
    EmptyScope(String),
    #[error("{0:?}: a ranking cannot break its own ties; expected another ranking")]
    SameRanking(String),
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

impl FromStr for TieBreaker {
    type Err = OrderParseError;

    fn from_str(text: &str) -> Result<TieBreaker, OrderParseError> {
        let mut words = Parser { text, rest: text };
        let (ranking, by) = (words.ranking()?, words.ranking()?);
        if ranking == by {
            return Err(OrderParseError::SameRanking(words.shown()));
        }
        let scope = words.scope("two rankings, alone or with one scope, such as \"points time game:baseq3\"")?;
        Ok(TieBreaker { ranking, by, scope })
    }
}

/// A string that is parsed word by word.
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

    /// The rest of the string, because names of games and tags may contain spaces.
    fn scope(&self, expected: &'static str) -> Result<Option<Scope>, OrderParseError> {
        let rest = self.rest.trim();
        if rest.is_empty() {
            return Ok(None);
        }
        let scope: Scope =
            rest.parse().map_err(|error| OrderParseError::Scope { text: self.shown(), error, expected })?;
        if scope.name().is_empty() {
            return Err(OrderParseError::EmptyScope(self.shown()));
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
            ("points tag:", "\"points tag:\": the scope has no name after its colon"),
        ] {
            assert_eq!(text.parse::<LowIsBetter>().unwrap_err().to_string(), want);
        }
        assert!("points server:nowhere".parse::<LowIsBetter>().is_err());
        for (text, want) in [
            ("points", "\"points\": \"\" is not a ranking; the rankings are clq1, clq2, elo, points, time"),
            ("points tine game:x", "\"points tine game:x\": \"tine\" is not a ranking; did you mean \"time\"?"),
            ("elo elo", "\"elo elo\": a ranking cannot break its own ties; expected another ranking"),
            (
                "points time elo",
                "\"points time elo\": scope \"elo\" is not of the form server:URL, game:NAME or tag:NAME; \
                 expected two rankings, alone or with one scope, such as \"points time game:baseq3\"",
            ),
            ("points time tag: ", "\"points time tag: \": the scope has no name after its colon"),
        ] {
            assert_eq!(text.parse::<TieBreaker>().unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn scoped_tie_break_wins_then_the_last_one() {
        let texts =
            ["points clq1", "points time", "points clq2 tag:the race", " points  elo  tag:the race ", "elo time"];
        let ties = texts.map(|text| text.parse::<TieBreaker>().unwrap());
        let (quake, race) = (Scope::Game("baseq3".to_owned()), Scope::Tag("the race".to_owned()));
        assert_eq!(TieBreaker::find(&ties, Ranking::Points, None), Some(Ranking::Time));
        assert_eq!(TieBreaker::find(&ties, Ranking::Points, Some(&quake)), Some(Ranking::Time));
        assert_eq!(TieBreaker::find(&ties, Ranking::Points, Some(&race)), Some(Ranking::Elo));
        assert_eq!(TieBreaker::find(&ties, Ranking::Elo, Some(&race)), Some(Ranking::Time));
        assert_eq!(TieBreaker::find(&ties[2..], Ranking::Points, None), None);
        assert_eq!(TieBreaker::find(&ties[2..], Ranking::Points, Some(&quake)), None);
    }
}
