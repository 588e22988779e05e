//! How the config writes on which boards the lowest score is best: `points`,
//! `points game:baseq3`, `time tag:race`. On all others the highest is.

use std::str::FromStr;

use crate::model::row::Ranking;
use crate::model::scope::{ScopeError, ScopeName};
use crate::nearest::nearest;

/// Boards of one ranking that the lowest score leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LowIsBetter {
    pub ranking: Ranking,
    /// `None`: in every scope.
    pub scope: Option<ScopeName>,
}

impl LowIsBetter {
    /// Whether the boards of this ranking in this scope are among them; without
    /// one, those of a scope that is named nowhere.
    pub fn holds<'s>(&self, ranking: Ranking, scope: impl Into<Option<&'s ScopeName>>) -> bool {
        self.ranking == ranking && (self.scope.is_none() || self.scope.as_ref() == scope.into())
    }
}

/// Why a text names no boards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBoards {
    #[error("{text:?}: {word:?} is not a ranking; {advice}")]
    Ranking { text: String, word: String, advice: String },
    #[error("{text:?}: {error}; expected a ranking, alone or with one scope, such as \"points game:baseq3\"")]
    Scope { text: String, error: ScopeError },
    #[error("{0:?}: the scope names nothing after its colon")]
    Nothing(String),
}

impl FromStr for LowIsBetter {
    type Err = BadBoards;

    fn from_str(text: &str) -> Result<LowIsBetter, BadBoards> {
        let shown = || text.chars().take(120).collect::<String>();
        // Names of games and tags may hold spaces.
        let (word, scope) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let ranking = Ranking::from_name(word).ok_or_else(|| {
            let names = Ranking::ALL.map(Ranking::name);
            let advice = match nearest(word, names) {
                Some(right) => format!("did you mean {right:?}?"),
                None => format!("the rankings are {}", names.join(", ")),
            };
            BadBoards::Ranking { text: shown(), word: word.chars().take(40).collect(), advice }
        })?;
        let scope = match scope.trim_start() {
            "" => None,
            scope => Some(scope.parse::<ScopeName>().map_err(|error| BadBoards::Scope { text: shown(), error })?),
        };
        if scope.as_ref().is_some_and(|scope| scope.name().is_empty()) {
            return Err(BadBoards::Nothing(shown()));
        }
        Ok(LowIsBetter { ranking, scope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_everywhere_or_in_one_scope() {
        let (quake, race) = (ScopeName::Game("baseq3".to_owned()), ScopeName::Tag("the race".to_owned()));
        let holds = |text: &str, ranking, scope| text.parse::<LowIsBetter>().unwrap().holds(ranking, scope);
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
    fn refusals_name_what_is_wrong_and_what_was_expected() {
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
    }
}
