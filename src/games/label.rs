//! How people write games: a name, a short name and a colour, from the table and from the operator's own file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::Game;

/// Longest name and short name, characters.
const NAME_CHARS_MAX: usize = 50;
const SHORT_CHARS_MAX: usize = 8;

/// A colour of the website, which is readable on light and on dark ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    Grey,
    Red,
    Green,
    Brown,
    Blue,
    Teal,
    Purple,
}

impl Colour {
    const OF_GAMES: [Colour; 6] =
        [Colour::Red, Colour::Green, Colour::Brown, Colour::Blue, Colour::Teal, Colour::Purple];

    /// Always the same for a name.
    fn of(name: &str) -> Colour {
        // FNV-1a.
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Colour::OF_GAMES[hash as usize % Colour::OF_GAMES.len()]
    }
}

/// How a game is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// At most [`SHORT_CHARS_MAX`] characters.
    pub short: String,
    pub colour: Colour,
}

/// A game in the operator's file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnGame {
    /// Values of `game` in lists.
    game: Vec<String>,
    name: String,
    short: Option<String>,
    colour: Option<Colour>,
}

/// Games that the operator names, by the values of `game` in lists, in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OwnGames(BTreeMap<String, Label>);

static OWN: OnceLock<OwnGames> = OnceLock::new();

/// The operator's names are used from now on. Only the first call has an effect.
pub fn set_own(games: OwnGames) {
    _ = OWN.set(games);
}

impl OwnGames {
    /// Reads the operator's file.
    pub fn parse(text: &str) -> Result<OwnGames, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            game: Vec<OwnGame>,
        }
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut labels = BTreeMap::new();
        for OwnGame { game, name, short, colour } in file.game {
            let name = checked("name", &name, NAME_CHARS_MAX)?;
            let short = match &short {
                Some(short) => checked("short", short, SHORT_CHARS_MAX)?,
                None => abbreviation(&name),
            };
            if game.is_empty() {
                return Err(format!(
                    "{name}: `game` is empty; expected the values of `game` in the lists of its servers"
                ));
            }
            let label = Label { colour: colour.unwrap_or_else(|| Colour::of(&name)), name, short };
            for value in game {
                if labels.insert(value.to_lowercase(), label.clone()).is_some() {
                    return Err(format!("{value:?} is the value of two games"));
                }
            }
        }
        Ok(OwnGames(labels))
    }
}

fn checked(key: &str, text: &str, chars_max: usize) -> Result<String, String> {
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > chars_max || text.contains(char::is_control) {
        return Err(format!("{key} = {text:?}: expected 1 to {chars_max} characters, without control characters"));
    }
    Ok(text.to_owned())
}

/// How people write a game that lists call so; those of several games that share the name. Only games of a protocol, if
/// one is given and has any. `None`: no game is called so.
pub fn label(protocol: Option<&str>, value: &str) -> Option<Label> {
    if let Some(label) = OWN.get().and_then(|own| own.0.get(&value.to_lowercase())) {
        return Some(label.clone());
    }
    let of_protocol = super::called(value).filter(|game| Some(&game.protocol[..]) == protocol);
    [of_protocol.collect(), super::called(value).collect()]
        .into_iter()
        .find(|games: &Vec<&Game>| !games.is_empty())
        .map(of_games)
}

/// A game that is not in the table.
pub fn unknown(name: String) -> Label {
    let short = name.chars().take(SHORT_CHARS_MAX).collect();
    Label { name, short, colour: Colour::Grey }
}

fn of_games(games: Vec<&Game>) -> Label {
    let first = games[0];
    Label {
        name: games.iter().map(|game| &game.name[..]).collect::<Vec<_>>().join(" / "),
        short: first.short.clone().unwrap_or_else(|| abbreviation(&first.name)),
        colour: Colour::of(&first.name),
    }
}

/// The first letters of the words, and numbers as they are; of a single word its beginning.
fn abbreviation(name: &str) -> String {
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || matches!(c, 'I' | 'V' | 'X'));
    let short: String = match words[..] {
        [word] => word.chars().take(6).collect(),
        _ => words.iter().map(|word| if is_number(word) { word } else { first_char(word) }).collect(),
    };
    short.chars().take(SHORT_CHARS_MAX).collect()
}

fn first_char(word: &str) -> &str {
    &word[..word.chars().next().map_or(0, char::len_utf8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_have_names_short_names_and_colours() {
        let label = |protocol, value| label(protocol, value).unwrap();
        assert_eq!(label(None, "q3ut4").name, "Urban Terror");
        assert_eq!(label(Some("quake3"), "baseq3").name, "Quake III Arena");
        assert_eq!(label(None, "baseq3").name, "Quake III Arena / Quake Live");
        assert_eq!(label(Some("teeworlds"), "BASEQ3").name, "Quake III Arena / Quake Live");
        assert_eq!((&*label(None, "tf").short, &*label(None, "baseq3").short), ("TF2", "Q3A"));
        assert!(super::label(None, "no such game").is_none());
        assert_eq!(unknown("a_long_name".into()).short, "a_long_n");
        for (name, short) in [
            ("Team Fortress 2", "TF2"),
            ("Quake III: Team Arena", "QIIITA"),
            ("Rust", "Rust"),
            ("Barotrauma", "Barotr"),
            ("Ärger im Ü", "ÄiÜ"),
            ("Medal of Honor: Allied Assault Spearhead", "MoHAAS"),
        ] {
            assert_eq!(abbreviation(name), short);
        }
        for game in super::super::all() {
            let label = of_games(vec![game]);
            assert!((2..=SHORT_CHARS_MAX).contains(&label.short.chars().count()), "{label:?}");
        }
    }

    #[test]
    fn operators_name_games_of_their_own() {
        let text = "[[game]]\ngame = [\"Mod\", \"mod2\"]\nname = \"My Mod\"\nshort = \"MM\"\ncolour = \"teal\"\n";
        let own = OwnGames::parse(text).unwrap();
        assert_eq!(own.0["mod"], Label { name: "My Mod".into(), short: "MM".into(), colour: Colour::Teal });
        assert_eq!(own.0["mod2"], own.0["mod"]);
        assert_eq!(OwnGames::parse("# none\n").unwrap(), OwnGames::default());
        for (text, message) in [
            ("[[game]]\ngame = []\nname = \"A\"\n", "`game` is empty"),
            ("[[game]]\ngame = [\"a\"]\nname = \"\"\n", "expected 1 to 50 characters"),
            ("[[game]]\ngame = [\"a\"]\nname = \"A\"\nshort = \"123456789\"\n", "short = \"123456789\""),
            ("[[game]]\ngame = [\"a\", \"A\"]\nname = \"A\"\n", "\"A\" is the value of two games"),
            ("[[game]]\ngame = [\"a\"]\nname = \"A\"\ncolour = \"pink\"\n", "unknown variant `pink`"),
            ("[[game]]\ngame = [\"a\"]\nname = \"A\"\nport = 1\n", "unknown field `port`"),
            ("game = 1", "line 1"),
        ] {
            let error = OwnGames::parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
