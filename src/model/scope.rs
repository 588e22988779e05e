//! Scopes: the servers whose players are on one board (docs/rules.md section 8).
//!
//! A scope is written as a word, a colon and a name: `server:quake3://host:27960`,
//! `game:baseq3`, `tag:pro`. This module does not know which servers belong to a game or have a
//! tag.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::url::{ServerUrl, UrlError};
use crate::nearest::nearest;

/// One scope. Names of games and tags are unchanged as the server or admin wrote them: they are
/// case-sensitive and may contain spaces. The text form can always be parsed again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    Server(ServerUrl),
    /// All servers of a game.
    Game(String),
    /// The servers to which an admin assigned a tag.
    Tag(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("scope {0:?} is not of the form {FORMS}")]
    Form(String),
    #[error("scope {0:?} is not of the form {FORMS}; did you mean {1}:?")]
    Kind(String, &'static str),
    #[error("scope {0:?}: {1}")]
    Url(String, #[source] UrlError),
}

const FORMS: &str = "server:URL, game:NAME or tag:NAME";

/// The maximum length of an invalid string in an error, characters.
const SHOWN_MAX: usize = 80;

impl Scope {
    /// The word before the colon.
    pub fn kind(&self) -> &'static str {
        match self {
            Scope::Server(_) => "server",
            Scope::Game(_) => "game",
            Scope::Tag(_) => "tag",
        }
    }

    /// The part after the colon.
    pub fn name(&self) -> &str {
        match self {
            Scope::Server(url) => url.as_str(),
            Scope::Game(name) | Scope::Tag(name) => name,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Scope, ScopeError> {
        let shown = || text.chars().take(SHOWN_MAX).collect::<String>();
        let (kind, name) = text.split_once(':').ok_or_else(|| ScopeError::Form(shown()))?;
        match kind {
            "server" => ServerUrl::parse(name).map(Scope::Server).map_err(|error| ScopeError::Url(shown(), error)),
            "game" => Ok(Scope::Game(name.to_owned())),
            "tag" => Ok(Scope::Tag(name.to_owned())),
            // A bare URL is the most likely mistake, and its scheme is not similar to any of
            // the words.
            _ if name.starts_with("//") => Err(ScopeError::Kind(shown(), "server")),
            _ => Err(match nearest(kind, ["server", "game", "tag"]) {
                Some(right) => ScopeError::Kind(shown(), right),
                None => ScopeError::Form(shown()),
            }),
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = ScopeError;
    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_names_round_trip() {
        for text in ["server:quake3://h:27960", "game:baseq3", "tag:pro", "tag:a:b c ", "game:"] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
            let json = serde_json::to_string(&scope).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Scope>(&json).unwrap(), scope);
        }
        assert_eq!("server:QUAKE3://H".parse::<Scope>().unwrap().name(), "quake3://h:27960");
    }

    #[test]
    fn invalid_scope_error_names_the_fault() {
        for (text, want) in [
            ("", "scope \"\" is not of the form server:URL, game:NAME or tag:NAME"),
            ("baseq3", "scope \"baseq3\" is not of the form server:URL, game:NAME or tag:NAME"),
            ("gmae:x", "scope \"gmae:x\" is not of the form server:URL, game:NAME or tag:NAME; did you mean game:?"),
            (
                "quake3://h:1",
                "scope \"quake3://h:1\" is not of the form server:URL, game:NAME or tag:NAME; did you mean server:?",
            ),
            ("server:h:1", "scope \"server:h:1\": server URL \"h:1\" is not of the form scheme://host:port"),
        ] {
            assert_eq!(text.parse::<Scope>().unwrap_err().to_string(), want);
        }
        assert!("x".repeat(10_000).parse::<Scope>().unwrap_err().to_string().len() < 200);
    }
}
