//! Names of players and servers, with the colours of their codes. All names come from strangers:
//! markup is escaped, only characters that can be seen are shown, and each name is isolated from the
//! text around it.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::games::{self, Colour, Label};
use crate::geo;
use crate::model::name::{ColourCodes, code_len, normalise, strip_colours};
use crate::model::shown_text::{NO_NAME, ShownChars, shown, shown_name};
use crate::web::segment::Segment;
use crate::web::texts::language::Chosen;

/// Longest name that is shown, characters.
const NAME_CHARS_MAX: usize = 80;

/// Characters of a path that need no encoding.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'/');

/// Characters of a value in a query that need no encoding.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Text as a part of the path of a URL; slashes are kept.
pub(super) fn path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// A name as a segment of the path of a URL; [`Segment`] reads it.
pub(super) fn segment(name: &str) -> String {
    value(&Segment::text_of(name))
}

/// Text as a value in the query of a URL.
pub(super) fn value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// A name without codes, such as that of a map.
pub(super) fn plain(name: &str) -> Markup {
    html! { bdi { (truncated(shown_name(name))) } }
}

/// A game as people write it, if it is known. What lists call it is shown when one points at it.
pub(super) fn game(game: &str) -> Markup {
    html! { bdi title=(shown_name(game)) { (plain_game(game, None)) } }
}

/// The game of a server.
pub(super) fn server_game(game: &str, url: &str) -> Markup {
    html! { bdi title=(shown_name(game)) { (plain_game(game, Some(url))) } }
}

/// A game as people write it, if it is known, of any servers or of the one with this URL.
pub fn plain_game(game: &str, url: Option<&str>) -> String {
    truncated(label(game, url).name)
}

fn label(game: &str, url: Option<&str>) -> Label {
    let protocol = url.and_then(|url| url.split_once("://")).map(|(scheme, _)| scheme);
    games::label(protocol, game).unwrap_or_else(|| games::unknown(shown_name(game)))
}

/// The short name of a game in its colour, of any servers or of the one with this URL.
pub(super) fn game_badge(game: &str, url: Option<&str>) -> Markup {
    let Label { name, short, colour } = label(game, url);
    html! { span .game .{ "q" (colour_class(colour)) } title={ (name) " (" (shown_name(game)) ")" } { bdi { (short) } } }
}

fn colour_class(colour: Colour) -> u8 {
    match colour {
        Colour::Grey => 0,
        Colour::Red => 1,
        Colour::Green => 2,
        Colour::Brown => 3,
        Colour::Blue => 4,
        Colour::Teal => 5,
        Colour::Purple => 6,
    }
}

/// The name of a country in the language of the page. `name`: in English.
pub(super) fn country(code: &str, name: &str) -> String {
    let in_language = geo::name_in(code, Chosen::of_visitor().language.code());
    shown_name(&in_language.unwrap_or_else(|| name.to_owned())).to_owned()
}

/// A player's name as written. `name` is its normalised form, from which the colour codes of the
/// game are inferred.
pub(super) fn player(display: &str, name: &str) -> Markup {
    html! { bdi { (coloured(display, codes_of(display, name)).unwrap_or_else(|| html! { (NO_NAME) })) } }
}

/// The name of a player without codes, for titles.
pub(in crate::web) fn plain_player(display: &str, name: &str) -> String {
    truncated(shown_name(&strip_colours(display, codes_of(display, name))))
}

/// The codes in a player's name, which is `name` without them.
fn codes_of(display: &str, name: &str) -> ColourCodes {
    let codes = [ColourCodes::DarkPlaces, ColourCodes::Quake3, ColourCodes::Minecraft].into_iter();
    let has_codes = |codes: ColourCodes| codes.mark().is_some_and(|mark| display.contains(mark));
    let codes = codes.into_iter().find(|&codes| has_codes(codes) && normalise(display, codes) == name);
    codes.unwrap_or(ColourCodes::None)
}

/// The host name of a server.
pub(super) fn hostname(hostname: &str, url: &str) -> Markup {
    html! { bdi { (coloured(hostname, ColourCodes::of_url(url)).unwrap_or_else(|| html! { (url) })) } }
}

/// The name of a server without codes, for titles.
pub fn plain_hostname(hostname: &str, url: &str) -> String {
    let plain = shown(&strip_colours(hostname, ColourCodes::of_url(url)));
    if plain.is_empty() { url.to_owned() } else { truncated(plain) }
}

fn truncated(name: String) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Splits a name at its colour codes. `None`: it has no visible character.
fn coloured(name: &str, codes: ColourCodes) -> Option<Markup> {
    let mut parts: Vec<(Option<u8>, String)> = vec![(None, String::new())];
    let mut shown_chars = ShownChars::default();
    let mut rest = name;
    let mut chars = 0;
    while let Some(c) = rest.chars().next() {
        let len = if Some(c) == codes.mark() { code_len(rest.as_bytes(), codes) } else { 0 };
        if len > 0 {
            let code = &rest[c.len_utf8()..len];
            let colour = if codes == ColourCodes::Minecraft { minecraft_colour(code) } else { colour(code.as_bytes()) };
            parts.push((colour, String::new()));
            rest = &rest[len..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if chars == NAME_CHARS_MAX {
            break;
        }
        let Some(c) = shown_chars.show(c, rest.chars().next()) else { continue };
        chars += 1;
        parts.last_mut().expect("one part at least").1.push(c);
    }
    parts.iter().any(|(_, text)| text.contains(|c| c != ' ')).then(|| {
        html! {
            @for (colour, text) in parts.iter().filter(|(_, text)| !text.is_empty()) {
                @match colour {
                    Some(colour) => span class={ "q" (colour) } { (text) },
                    None => (text),
                }
            }
        }
    })
}

/// The class of a colour code, after its `^`; `None`: the colour of text. Colours are the nearest
/// of six that are readable on the page.
fn colour(code: &[u8]) -> Option<u8> {
    match code {
        [b'x', rgb @ ..] if rgb.len() == 3 => {
            let bright = |digit: &u8| char::from(*digit).to_digit(16).is_some_and(|value| value >= 8);
            let [r, g, b] = [bright(&rgb[0]), bright(&rgb[1]), bright(&rgb[2])];
            match (r, g, b) {
                (true, false, false) => Some(1),
                (false, true, false) => Some(2),
                (true, true, false) => Some(3),
                (false, false, true) => Some(4),
                (false, true, true) => Some(5),
                (true, false, true) => Some(6),
                (true, true, true) => None,
                (false, false, false) => Some(0),
            }
        }
        // The engine of Quake 3 uses the last three bits of the character.
        [code] => match code.wrapping_sub(b'0') & 7 {
            7 => None,
            colour => Some(colour),
        },
        _ => None,
    }
}

/// The class of a colour of Minecraft. Other codes, such as that for bold text, end a colour.
fn minecraft_colour(code: &str) -> Option<u8> {
    match code {
        "4" | "c" => Some(1),
        "2" | "a" => Some(2),
        "6" | "e" => Some(3),
        "1" | "9" => Some(4),
        "3" | "b" => Some(5),
        "5" | "d" => Some(6),
        "0" | "7" | "8" => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(display: &str, name: &str, want: &str) {
        assert_eq!(player(display, name).into_string(), format!("<bdi>{want}</bdi>"), "{display:?}");
    }

    #[test]
    fn colours_follow_the_codes_of_the_game() {
        check("Visor", "Visor", "Visor");
        check("^1Vi^7sor", "Visor", r#"<span class="q1">Vi</span>sor"#);
        check("^xf00Vi^x0F0sor", "Visor", r#"<span class="q1">Vi</span><span class="q2">sor</span>"#);
        check("^1Visor", "^1Visor", "^1Visor");
        check("^x", "^x", "^x");
        check("§4Ad§lmin", "Admin", r#"<span class="q1">Ad</span>min"#);
        check("^9a", "a", r#"<span class="q1">a</span>"#);
        check("", "", "(no name)");
        check("^1", "", "(no name)");
        check("\u{200B} ", "", "(no name)");
        check("^1\u{3164}^2\u{3164}", "\u{3164}\u{3164}", r#"<span class="q1">␣</span><span class="q2">␣</span>"#);
        assert_eq!(plain("\u{200B}").into_string(), "<bdi>(no name)</bdi>");
        assert_eq!(plain_player("^1\u{3164}👨\u{200D}👩", "\u{3164}👨👩"), "␣👨\u{200D}👩");
    }

    #[test]
    fn names_cannot_leave_their_place() {
        check("<script>\"&'", "<script>\"&'", "&lt;script&gt;&quot;&amp;'");
        check("a\u{202E}b\u{7}c", "abc", "abc");
        check(&format!("a{}b", "\u{301}".repeat(200)), "", "a\u{301}\u{301}b");
        check(&"ñ".repeat(9_000), &"ñ".repeat(9_000), &"ñ".repeat(NAME_CHARS_MAX));
        assert_eq!(path("quake3://[::1]:1/<"), "quake3://%5B::1%5D:1/%3C");
        assert_eq!(value("a b&c=/ñ"), "a%20b%26c%3D%2F%C3%B1");
    }
}
