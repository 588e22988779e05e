//! What a reply contains beyond the snapshot: shown by `clqd query`, not used by the ranking.

use serde::Serialize;

use super::text::{short_name, short_text};
use crate::model::name::Name;

/// Most settings that are read; servers of the Quake 3 family send about 60.
const RULES_MAX: usize = 1_000;

/// How much of the details is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailLevel {
    /// All but [`Details::rules`].
    Summary,
    /// All settings too.
    Rules,
}

/// `None` and empty: the reply does not contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A password is needed to join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<bool>,
    /// Protected against cheats: VAC, PunkBuster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The team of each player, in the order of the snapshot's players, as the server names or
    /// numbers it; empty for a player without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub player_teams: Vec<String>,
    /// All settings in the order of the reply, by the names of the game. Empty for
    /// [`DetailLevel::Summary`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<(Name, Name)>,
}

const GAME_TYPE_KEYS: &[&str] = &["gametype", "g_gametype", "si_gametype", "gamemode", "mode", "gamevariant"];
const VERSION_KEYS: &[&str] = &["shortversion", "version", "*version", "gamever", "gameversion", "si_version"];
const PASSWORD_KEYS: &[&str] = &["g_needpass", "needpass", "password", "pswrd", "si_usepass"];
const SECURE_KEYS: &[&str] = &["sv_punkbuster", "punkbuster", "sv_pure_secure", "net_serverpunkbusterenabled"];

impl Details {
    /// From keys and values as the server sent them.
    pub(super) fn from_pairs<'a>(
        pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        level: DetailLevel,
    ) -> Details {
        let pairs = pairs.take(RULES_MAX);
        let first = |keys: &[&str]| {
            keys.iter().find_map(|key| {
                let named =
                    |(name, value): &(&[u8], &[u8])| name.eq_ignore_ascii_case(key.as_bytes()) && !value.is_empty();
                pairs.clone().find(named).map(|(_, value)| short_text(value))
            })
        };
        let rules = match level {
            DetailLevel::Summary => Vec::new(),
            DetailLevel::Rules => pairs.clone().map(|(key, value)| (short_name(key), short_name(value))).collect(),
        };
        Details {
            game_type: first(GAME_TYPE_KEYS),
            version: first(VERSION_KEYS),
            password: first(PASSWORD_KEYS).as_deref().and_then(flag),
            secure: first(SECURE_KEYS).as_deref().and_then(flag),
            tags: Vec::new(),
            player_teams: Vec::new(),
            rules,
        }
    }

    /// The settings of a reply. Some protocols have no list of all, but say the most important ones.
    pub fn published(&self) -> impl Iterator<Item = (&str, &str)> {
        let yes_or_no = |is: bool| if is { "yes" } else { "no" };
        let rules = self.rules.iter().map(|(name, value)| (&**name, &**value));
        let summary = [
            ("game type", self.game_type.as_deref()),
            ("version", self.version.as_deref()),
            ("password", self.password.map(yes_or_no)),
            ("secure", self.secure.map(yes_or_no)),
        ];
        let has_rules = !self.rules.is_empty();
        let summary = summary.into_iter().filter(move |_| !has_rules);
        rules
            .chain(summary.filter_map(|(name, value)| Some((name, value?))))
            .chain(self.tags.iter().filter(move |_| !has_rules).map(|tag| (&**tag, "yes")))
    }

    /// Adds the teams of the players. If no player has one, the game has none.
    pub(super) fn with_player_teams(mut self, teams: Vec<String>) -> Details {
        if teams.iter().any(|team| !team.is_empty()) {
            self.player_teams = teams;
        }
        self
    }
}

/// A setting that is on or off. `None`: it is neither.
fn flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_settings_are_found_by_the_names_of_the_games() {
        let pairs = [("Version", "ioq3 1.36"), ("g_gametype", "4"), ("g_needpass", "0"), ("sv_punkbuster", "1")];
        let bytes = pairs.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        let details = Details::from_pairs(bytes.clone(), DetailLevel::Rules);
        assert_eq!((details.version.as_deref(), details.game_type.as_deref()), (Some("ioq3 1.36"), Some("4")));
        assert_eq!((details.password, details.secure, details.rules.len()), (Some(false), Some(true), 4));
        let summary = Details { rules: Vec::new(), ..details };
        assert_eq!(Details::from_pairs(bytes, DetailLevel::Summary), summary);
        let details = Details::from_pairs([(&b"password"[..], &b"maybe"[..])].into_iter(), DetailLevel::Rules);
        assert_eq!((details.password, details.version), (None, None));
    }

    #[test]
    fn replies_without_a_list_have_their_summary() {
        let details = Details {
            version: Some("1.2".into()),
            password: Some(false),
            tags: vec!["alltalk".into()],
            ..Details::default()
        };
        let summary: Vec<_> = details.published().collect();
        assert_eq!(summary, [("version", "1.2"), ("password", "no"), ("alltalk", "yes")]);
        let details = Details { rules: vec![(Name::from("a"), Name::from("b"))], ..details };
        assert_eq!(details.published().collect::<Vec<_>>(), [("a", "b")]);
    }
}
