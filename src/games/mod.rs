//! The table of games (`config/games.toml`, a part of the program): names of games, where their servers
//! answer queries, and how replies show which game it is. - [`label`]: how people write games.

mod label;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

pub use self::label::{Colour, Label, OwnGames, label, set_own, unknown};

/// A game. The file explains each field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Game {
    pub id: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub name: String,
    /// As people shorten it; `None`: by the first letters of its words.
    short: Option<String>,
    /// Scheme of the protocol.
    pub protocol: String,
    pub port: u16,
    #[serde(default)]
    pub query: QueryPort,
    /// Values of `game` in lists.
    #[serde(default, rename = "game")]
    pub values: Vec<String>,
    pub app: Option<u32>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    pub lists: Lists,
    /// A link that starts the game, with placeholders.
    join: Option<String>,
    pub source: FactSource,
}

/// Where a server answers queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryPort {
    /// On the port of the game.
    #[default]
    Same,
    /// So many ports above it, or below.
    Offset(i32),
    /// On this port. A URL with another port than the game's usual one names the query port.
    Fixed(u16),
}

/// What lists of players have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lists {
    #[default]
    Points,
    /// Names, but no points.
    Times,
    /// There is no list.
    Count,
}

/// Where the ports and the protocol of a game are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactSource {
    Gamedig,
    Clqd,
}

impl Game {
    /// The port that answers the queries of a server that players connect to on this port. `None`: there is no
    /// such port.
    pub fn query_port(&self, port: u16) -> Option<u16> {
        match self.query {
            QueryPort::Same => Some(port),
            QueryPort::Offset(offset) => u16::try_from(i32::from(port) + offset).ok().filter(|port| *port > 0),
            QueryPort::Fixed(query_port) => Some(query_port),
        }
    }

    /// The port that players connect to, of a server that answers queries on this port.
    pub fn join_port(&self, query_port: u16) -> u16 {
        match self.query {
            QueryPort::Same => query_port,
            QueryPort::Offset(offset) => u16::try_from(i32::from(query_port) - offset).unwrap_or(query_port),
            QueryPort::Fixed(fixed) if fixed == query_port => self.port,
            QueryPort::Fixed(_) => query_port,
        }
    }

    /// A link that starts the game and joins a server, if there is one. `host` as in a URL.
    pub fn join_link(&self, host: &str, query_port: u16) -> Option<String> {
        if self.protocol == "source" {
            return Some(steam_link(host, query_port));
        }
        let address = format!("{host}:{}", self.join_port(query_port));
        Some(self.join.as_ref()?.replace("{address}", &address).replace("{host}", host))
    }

    /// Whether lists call the game so.
    fn is_called(&self, value: &str) -> bool {
        self.id == value || self.values.iter().any(|other| other.eq_ignore_ascii_case(value))
    }

    /// Whether a name in a URL means this game.
    fn is_named(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.id) || self.aliases.iter().any(|alias| name.eq_ignore_ascii_case(alias))
    }
}

/// The link by which Steam joins a server. Steam asks the server for the port of the game.
pub fn steam_link(host: &str, query_port: u16) -> String {
    format!("steam://connect/{host}:{query_port}")
}

impl<'de> Deserialize<'de> for QueryPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueryPort, D::Error> {
        let text = String::deserialize(deserializer)?;
        let port = match text.strip_prefix('=') {
            Some(port) => port.parse().ok().map(QueryPort::Fixed),
            None => text.strip_prefix('+').unwrap_or(&text).parse().ok().map(QueryPort::Offset),
        };
        port.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is neither +N, -N nor =PORT")))
    }
}

static GAMES: LazyLock<Vec<Game>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        game: Vec<Game>,
    }
    let table: Table = toml::from_str(include_str!("../../config/games.toml")).expect("a test reads the table");
    table.game
});

/// The games by what lists may call them, in lower case. A page names the games of a hundred rows.
static BY_VALUE: LazyLock<HashMap<String, Vec<&'static Game>>> = LazyLock::new(|| {
    let mut by_value: HashMap<String, Vec<&Game>> = HashMap::new();
    for game in all() {
        let values: BTreeSet<String> =
            game.values.iter().chain([&game.id]).map(|value| value.to_ascii_lowercase()).collect();
        values.into_iter().for_each(|value| by_value.entry(value).or_default().push(game));
    }
    by_value
});

/// The games that lists call so.
fn called(value: &str) -> impl Iterator<Item = &'static Game> {
    let games = BY_VALUE.get(&value.to_ascii_lowercase());
    games.into_iter().flatten().copied().filter(move |game| game.is_called(value))
}

/// All games, those of one protocol together.
pub fn all() -> &'static [Game] {
    &GAMES
}

/// The game that a name in a URL means.
pub fn by_name(name: &str) -> Option<&'static Game> {
    GAMES.iter().find(|game| game.is_named(name))
}

/// The most common game that answers queries on a port.
pub fn by_query_port(protocol: &str, port: u16) -> Option<&'static Game> {
    GAMES.iter().find(|game| game.protocol == protocol && game.query_port(game.port) == Some(port))
}

/// The name of the game of a reply that names no game: of the most common game that answers queries on the port,
/// else of the protocol.
pub fn id_by_port(protocol: &'static str, port: u16) -> &'static str {
    by_query_port(protocol, port).map_or(protocol, |game| &game.id)
}

/// The game whose types of games begin like this one; of several the one with the longest beginning.
pub fn by_type(protocol: &str, game_type: &str) -> Option<&'static Game> {
    let begins =
        |prefix: &&String| game_type.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let longest = |game: &Game| game.types.iter().filter(begins).map(String::len).max();
    let games = GAMES.iter().filter(|game| game.protocol == protocol);
    games.filter_map(|game| Some((longest(game)?, game))).max_by_key(|(length, _)| *length).map(|(_, game)| game)
}

/// The game that has a setting which no other one has.
pub fn by_setting(protocol: &str, has_setting: impl Fn(&str) -> bool) -> Option<&'static Game> {
    GAMES.iter().find(|game| game.protocol == protocol && game.keys.iter().any(|key| has_setting(key)))
}

/// The game of a Steam application.
pub fn by_app(app: u32) -> Option<&'static Game> {
    GAMES.iter().find(|game| game.app == Some(app))
}

/// The game of a server, whose lists have this value of `game`. `None`: none is known, or several.
pub fn of_server(protocol: &str, value: &str) -> Option<&'static Game> {
    let mut games = called(value).filter(|game| game.protocol == protocol);
    games.next().filter(|_| games.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_no_contradictions() {
        assert!(all().len() >= 280, "{}", all().len());
        let mut names = BTreeSet::new();
        let mut apps = BTreeSet::new();
        for game in all() {
            for name in [&game.id].into_iter().chain(&game.aliases) {
                let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                assert!(is_plain && !name.is_empty() && names.insert(name), "{name}");
            }
            assert!(game.query_port(game.port).is_some() && game.port > 0, "{game:?}");
            assert!(game.app.is_none_or(|app| app > 0 && game.protocol == "source" && apps.insert(app)), "{game:?}");
            assert!(!game.name.trim().is_empty() && game.name.len() <= 50, "{game:?}");
            assert!(game.lists != Lists::Points || game.protocol != "minecraft", "{game:?}");
        }
    }

    #[test]
    fn games_are_found_by_what_replies_show() {
        let id = |game: Option<&'static Game>| game.map(|game| &game.id[..]);
        assert_eq!(id(by_name("UT2004")), Some("ut2004"));
        assert_eq!(id(by_name("mtasa")), Some("mta"));
        assert_eq!(id(by_type("unreal2", "kfgametype")), Some("killingfloor"));
        assert_eq!(id(by_type("unreal2", "xVehicleCTFGame")), Some("ut2004"));
        assert_eq!(id(by_type("unreal2", "XMPGame")), Some("unreal2xmp"));
        assert_eq!(id(by_type("unreal2", "K")), None);
        assert_eq!(id(by_setting("gamespy2", |key| key == "game_classic")), Some("halo"));
        assert_eq!(id(by_query_port("unreal2", 7708)), Some("killingfloor"));
        assert_eq!((id_by_port("unreal2", 7_778), id_by_port("gamespy1", 7_778)), ("ut2004", "ut99"));
        assert_eq!((id_by_port("gamespy2", 2_302), id_by_port("gamespy2", 9)), ("halo", "gamespy2"));
        assert_eq!(id(by_app(440)), Some("tf2"));
        let name = |protocol, value| label(protocol, value).map(|label| label.name);
        assert_eq!(name(None, "baseOA").as_deref(), Some("OpenArena"));
        assert_eq!(name(None, "halo").as_deref(), Some("Halo: Combat Evolved"));
        assert_eq!(name(None, "cstrike").as_deref(), Some("Counter-Strike 1.6 / Counter-Strike: Source"));
        assert_eq!(name(Some("source"), "baseq3").as_deref(), Some("Quake Live"));
        assert_eq!(by_name("ut3").and_then(|game| game.query_port(7_777)), Some(6_500));
        assert_eq!(by_name("kingpin").and_then(|game| game.query_port(31_510)), Some(31_500));
        assert_eq!(by_name("kingpin").and_then(|game| game.query_port(5)), None);
        let mta = of_server("ase", "mta").unwrap();
        assert_eq!(mta.join_link("192.0.2.1", 22_126).as_deref(), Some("mtasa://192.0.2.1:22003"));
        let samp = of_server("samp", "samp").unwrap();
        assert_eq!(samp.join_link("h", 7_777).as_deref(), Some("samp://h:7777"));
        let bedrock = of_server("bedrock", "minecraft").unwrap();
        assert_eq!(bedrock.join_link("h", 1).as_deref(), Some("minecraft://?addExternalServer=h|h:1"));
        assert_eq!(by_name("bf2").map(|game| (game.join_port(29_900), game.join_port(29_901))), Some((16_567, 29_901)));
        assert_eq!(by_name("rust").unwrap().join_link("[::1]", 5).as_deref(), Some("steam://connect/[::1]:5"));
        assert!(of_server("source", "cstrike").is_none() && of_server("quake3", "mta").is_none());
    }
}
