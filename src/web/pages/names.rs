//! Names of players and servers, with the colours of their codes. All names come from strangers:
//! markup is escaped, characters that control the direction of text are removed, and each name is
//! isolated from the text around it.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::model::name::{ColourCodes, code_len, is_control_or_format, normalise};

/// Longest name that is shown, characters.
const NAME_CHARS_MAX: usize = 80;

/// Shown for a player whose name is empty.
const NO_NAME: &str = "(no name)";

/// Characters of a path that need no encoding.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'/');

/// Characters of a value in a query that need no encoding.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Text as a part of the path of a URL; slashes are kept.
pub(super) fn path(text: &str) -> String {
    // A segment of dots would be resolved by the browser.
    utf8_percent_encode(text, PATH).to_string().replace("/.", "/%2E")
}

/// Text as a value in the query of a URL.
pub(super) fn value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// Text of a stranger without codes, such as a map.
pub(super) fn plain(text: &str) -> Markup {
    let shown = shown(text.chars());
    html! { bdi { (shown) } }
}

/// A player's name as written. `name` is its normalised form, which tells which codes the game
/// has.
pub(super) fn player(display: &str, name: &str) -> Markup {
    let codes = [ColourCodes::DarkPlaces, ColourCodes::Quake3];
    let codes = codes.into_iter().find(|&codes| display.contains('^') && normalise(display, codes) == name);
    html! { bdi { @if is_named(name) { (coloured(display, codes.unwrap_or(ColourCodes::None))) } @else { (NO_NAME) } } }
}

/// The name of a player without codes, for titles; `name` is normalised.
pub(in crate::web) fn plain_player(name: &str) -> String {
    if is_named(name) { shown(name.chars()) } else { NO_NAME.to_owned() }
}

fn is_named(player: &str) -> bool {
    player.chars().any(|c| !c.is_whitespace())
}

/// The host name of a server.
pub(super) fn hostname(hostname: &str, url: &str) -> Markup {
    let codes = ColourCodes::of_url(url);
    let is_named = !normalise(hostname, codes).is_empty();
    html! { bdi { @if is_named { (coloured(hostname, codes)) } @else { (url) } } }
}

/// The name of a server without codes, for titles.
pub(in crate::web) fn plain_hostname(hostname: &str, url: &str) -> String {
    let plain = normalise(hostname, ColourCodes::of_url(url));
    if plain.is_empty() { url.to_owned() } else { shown(plain.chars()) }
}

fn shown(chars: impl Iterator<Item = char>) -> String {
    chars.filter(|&c| !is_control_or_format(c)).take(NAME_CHARS_MAX).collect()
}

/// Splits a name at its colour codes.
fn coloured(name: &str, codes: ColourCodes) -> Markup {
    let mut parts: Vec<(Option<u8>, String)> = vec![(None, String::new())];
    let mut rest = name;
    let mut chars = 0;
    while let Some(c) = rest.chars().next() {
        let len = if c == '^' { code_len(rest.as_bytes(), codes) } else { 0 };
        if len > 0 {
            parts.push((colour(&rest.as_bytes()[1..len]), String::new()));
            rest = &rest[len..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if is_control_or_format(c) || chars == NAME_CHARS_MAX {
            continue;
        }
        chars += 1;
        parts.last_mut().expect("one part at least").1.push(c);
    }
    html! {
        @for (colour, text) in parts.iter().filter(|(_, text)| !text.is_empty()) {
            @match colour {
                Some(colour) => span class={ "q" (colour) } { (text) },
                None => (text),
            }
        }
    }
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
        // As the engine of Quake 3: the last three bits of the character.
        [code] => match code.wrapping_sub(b'0') & 7 {
            7 => None,
            colour => Some(colour),
        },
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
        check("^9a", "a", r#"<span class="q1">a</span>"#);
        check("", "", "(no name)");
    }

    #[test]
    fn names_cannot_leave_their_place() {
        check("<script>\"&'", "<script>\"&'", "&lt;script&gt;&quot;&amp;'");
        check("a\u{202E}b\u{7}c", "abc", "abc");
        check(&"ñ".repeat(9_000), &"ñ".repeat(9_000), &"ñ".repeat(NAME_CHARS_MAX));
        assert_eq!(path("quake3://[::1]:1/../<"), "quake3://%5B::1%5D:1/%2E./%3C");
        assert_eq!(value("a b&c=/ñ"), "a%20b%26c%3D%2F%C3%B1");
    }
}
