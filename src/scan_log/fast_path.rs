//! Fast path for scan log lines. It parses exactly the format that the recorder
//! writes: fixed field order, no white space.
//!
//! Any other line is parsed by serde_json, which also produces all error messages.
//! Both parsers return the same value for every line that this one accepts.
//!
//! A line of 12 players (940 bytes) takes 0.8 us to check and 1.6 us to convert to a
//! snapshot, including file read and UTF-8 check. With serde_json each takes 3.4 us
//! (`cargo bench --bench replay`). Parsing alone takes a third of the time of serde_json,
//! simd-json or sonic-rs (docs/benchmarks.md).

use std::borrow::Cow;

use super::raw_line::{RawLine, RawPlayer};
use crate::limits::PLAYERS_MAX;

/// An integer of up to this many digits fits every integer field of a line.
const DIGITS_MAX: usize = 18;

/// Parses a line. `None` if it does not have the recorder's format, or if `take`
/// rejects a player; `take` gets the player's index in the list.
pub(super) fn read<'a, P>(text: &'a str, take: impl Fn(usize, RawPlayer<'a>) -> Option<P>) -> Option<RawLine<'a, P>> {
    let mut rest = LineParser { text };
    rest.skip("{\"t\":")?;
    let t = rest.integer()?;
    rest.skip(",\"server\":\"")?;
    let server = rest.string()?;
    let mut line = RawLine {
        t,
        server,
        miss: false,
        reason: None,
        game: None,
        map: None,
        hostname: None,
        slots: None,
        partial: false,
        count: None,
        bots: None,
        players: None,
    };
    if rest.skip_if(",\"miss\":true") {
        line.miss = true;
        if rest.skip_if(",\"reason\":\"") {
            line.reason = Some(rest.string()?);
        }
    } else {
        rest.skip(",\"game\":\"")?;
        line.game = Some(rest.string()?);
        rest.skip(",\"map\":\"")?;
        line.map = Some(rest.string()?);
        rest.skip(",\"hostname\":\"")?;
        line.hostname = Some(rest.string()?);
        rest.skip(",\"slots\":")?;
        line.slots = Some(rest.integer()?.try_into().ok()?);
        line.partial = rest.skip_if(",\"partial\":true");
        if rest.skip_if(",\"count\":") {
            line.count = Some(rest.integer()?.try_into().ok()?);
        }
        if rest.skip_if(",\"bots\":") {
            line.bots = Some(rest.integer()?.try_into().ok()?);
        }
        rest.skip(",\"players\":[")?;
        line.players = Some(rest.players(take)?);
    }
    rest.skip("}")?;
    rest.text.is_empty().then_some(line)
}

/// The unparsed rest of the line.
struct LineParser<'a> {
    text: &'a str,
}

impl<'a> LineParser<'a> {
    #[inline(always)] // comparing with a constant is a load or two
    fn skip_if(&mut self, literal: &str) -> bool {
        match self.text.strip_prefix(literal) {
            Some(rest) => {
                self.text = rest;
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    fn skip(&mut self, literal: &str) -> Option<()> {
        self.skip_if(literal).then_some(())
    }

    /// Parses from after the opening bracket to after the closing one. At most as many
    /// players as a snapshot may have: serde_json then counts them for the error.
    fn players<P>(&mut self, take: impl Fn(usize, RawPlayer<'a>) -> Option<P>) -> Option<Vec<P>> {
        if self.skip_if("]") {
            return Some(Vec::new());
        }
        // The number of players, unless names contain braces.
        let braces = memchr::memchr_iter(b'{', self.text.as_bytes()).count();
        let mut players = Vec::with_capacity(braces.min(PLAYERS_MAX));
        while players.len() < PLAYERS_MAX {
            let player = self.player()?;
            players.push(take(players.len(), player)?);
            if !self.skip_if(",") {
                return self.skip_if("]").then_some(players);
            }
        }
        None
    }

    fn player(&mut self) -> Option<RawPlayer<'a>> {
        self.skip("{\"name\":\"")?;
        let name = self.string()?;
        let points = if self.skip_if(",\"points\":") { Some(self.integer()?) } else { None };
        let ping = if self.skip_if(",\"ping\":") { Some(self.integer()?) } else { None };
        let connected_ms =
            if self.skip_if(",\"connected_ms\":") { Some(self.integer()?.try_into().ok()?) } else { None };
        self.skip(",\"bot\":")?;
        let bot = self.skip_if("true");
        if !bot {
            self.skip("false")?;
        }
        let spectator = self.skip_if(",\"spectator\":true");
        self.skip("}")?;
        Some(RawPlayer { name, points, ping, connected_ms, bot, spectator })
    }

    /// Parses from after the opening quote to after the closing one.
    #[inline]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let len = unescaped_len(self.text.as_bytes());
        if self.text.as_bytes().get(len) == Some(&b'"') {
            let (string, rest) = self.text.split_at(len);
            self.text = &rest[1..];
            return Some(Cow::Borrowed(string));
        }
        self.escaped_string(len)
    }

    /// The same for a string with escapes; its first `from` bytes have none.
    #[cold]
    fn escaped_string(&mut self, from: usize) -> Option<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while *bytes.get(at)? != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        // The opening quote is already consumed, so it is added again.
        let string = serde_json::from_str(&format!("\"{}", &self.text[..=at])).ok()?;
        self.text = &self.text[at + 1..];
        Some(Cow::Owned(string))
    }

    /// A JSON integer of at most [`DIGITS_MAX`] digits. The caller checks what follows
    /// it by matching the next literal.
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        let bytes = self.text.as_bytes();
        let minus = usize::from(bytes.first() == Some(&b'-'));
        let (digits, value) = parse_short_integer(&bytes[minus..]).or_else(|| digits(&bytes[minus..]))?;
        // JSON has no leading zeros, and serde_json reads -0 as a float.
        if bytes[minus] == b'0' && minus + digits > 1 {
            return None;
        }
        self.text = &self.text[minus + digits..];
        Some(if minus == 1 { -value } else { value })
    }
}

/// Length and value of the leading digits.
fn digits(bytes: &[u8]) -> Option<(usize, i64)> {
    let len = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = bytes[..len.min(DIGITS_MAX)].iter().fold(0, |value, b| value * 10 + i64::from(b - b'0'));
    (1..=DIGITS_MAX).contains(&len).then_some((len, value))
}

/// The same for one to seven digits followed by another byte, without a branch for
/// each digit: such branches are mispredicted half of the time.
#[inline]
fn parse_short_integer(bytes: &[u8]) -> Option<(usize, i64)> {
    let eight = u64::from_le_bytes(*bytes.first_chunk::<8>()?) ^ (ONES * u64::from(b'0'));
    // The high bit of each byte above 9.
    let others = (((eight & !HIGHS) + ONES * (0x7F - 9)) | eight) & HIGHS;
    let len = (others.trailing_zeros() / 8) as usize;
    if !(1..8).contains(&len) {
        return None;
    }
    // Shift the last digit to the last byte, with zeros before: eight digits in all.
    // Then combine digits to pairs, pairs to fours, and fours to the value.
    let eight = eight << (64 - 8 * len);
    let pairs = (eight * 10 + (eight >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    let all = (fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF;
    Some((len, all.cast_signed()))
}

const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Number of bytes before the first quote, backslash or control character, the
/// bytes that need no unescaping. Eight at a time; names are short, so the cost of a
/// library call would be measurable.
fn unescaped_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = bytes.get(at..at + 8) {
        let eight = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        // The high bit of a byte is set if the byte is below n. Exact for the lowest such
        // byte; its borrow may set wrong bits above it.
        let below = |x: u64, n: u8| x.wrapping_sub(ONES * u64::from(n)) & !x;
        let same = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
        let found = (below(eight, 0x20) | same(b'"') | same(b'\\')) & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let end = bytes[at..].iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\');
    end.map_or(bytes.len(), |n| at + n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Outcome;
    use crate::limits::POINTS_ABS_MAX;
    use crate::model::{Completeness, Player, ServerUrl, Snapshot};
    use crate::scan_log::line::{check, parse, parse_scan, write};

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[ -~]{0,20}", 1 => "[\\\\\"/u0-9a-f\u{0}-\u{ff}]{0,12}", 1 => any::<String>()]
    }

    fn player() -> impl Strategy<Value = Player> {
        let points = prop_oneof![-99..9_999_i64, -POINTS_ABS_MAX..=POINTS_ABS_MAX];
        let points = proptest::option::weighted(0.9, points);
        (text(), points, any::<Option<i32>>(), any::<Option<u64>>(), any::<bool>(), any::<bool>()).prop_map(
            |(name, points, ping, connected_ms, bot, spectator)| Player {
                name: name.into(),
                points,
                ping,
                connected_ms,
                bot,
                spectator,
            },
        )
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        let completeness = prop_oneof![3 => Just(Completeness::Full), 1 => Just(Completeness::Partial)];
        let announced = any::<(Option<u32>, Option<u32>)>();
        let players = proptest::collection::vec(player(), 0..20);
        let snapshot = (0..1_i64 << 45, text(), text(), text(), any::<u32>(), players, completeness, announced)
            .prop_map(|(t_ms, game, map, hostname, slots, players, completeness, (count, bots))| {
                Outcome::Snapshot(Snapshot { t_ms, game, map, hostname, slots, players, completeness, count, bots })
            });
        let miss = (0..1_i64 << 45, text()).prop_map(|(t_ms, reason)| Outcome::Miss { t_ms, reason });
        prop_oneof![4 => snapshot, 1 => miss]
    }

    fn written(outcome: &Outcome) -> String {
        let mut out = Vec::new();
        write(&mut out, &ServerUrl::parse("quake3://127.0.0.1:27960").unwrap(), outcome);
        let text = String::from_utf8(out).unwrap();
        text.trim_end().to_owned()
    }

    /// Asserts that serde_json returns the same for every line that the fast path
    /// accepts, and that `check` returns the same as `parse`.
    fn agrees(text: &str) {
        if let Some(line) = read(text, |_, player| Some(player)) {
            let other: RawLine = serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(line, other, "{text}");
        }
        let t_ms = parse(text).map(|event| event.t_ms());
        assert_eq!(format!("{:?}", check(text)), format!("{t_ms:?}"), "{text}");
    }

    proptest! {
        #[test]
        fn recorded_lines_take_the_fast_path(outcome in outcome()) {
            let text = written(&outcome);
            let wide = |p: &Player| p.connected_ms.is_some_and(|ms| ms >= 1_000_000_000_000_000_000);
            if !matches!(&outcome, Outcome::Snapshot(s) if s.players.iter().any(wide)) {
                prop_assert!(read(&text, |_, _| Some(())).is_some(), "{}", text);
            }
            agrees(&text);
            prop_assert_eq!(format!("{:?}", parse_scan(&text).unwrap().1), format!("{outcome:?}"));
        }

        #[test]
        fn fast_path_agrees_with_serde_json_on_mangled_lines(
            outcome in outcome(),
            edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..4, any::<prop::sample::Index>()), 1..4),
        ) {
            const SCRAPS: &[&str] = &[
                "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "0", "-", "9", ".", "e", "\u{1}", "\u{e9}", "\\u00", "\\ud800",
                "null", "true", "false", "\"t\":1,", ",\"miss\":true", ",\"count\":3", ",\"partial\":true",
                "99999999999999999999",
            ];
            let mut text = written(&outcome);
            for (position, kind, scrap) in edits {
                let positions: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                let Some(&at) = positions.get(position.index(positions.len().max(1))) else { break };
                match kind {
                    0 => drop(text.remove(at)),
                    1 => text.insert_str(at, SCRAPS[scrap.index(SCRAPS.len())]),
                    2 => text.truncate(at),
                    _ => {
                        text.remove(at);
                        text.insert_str(at, SCRAPS[scrap.index(SCRAPS.len())]);
                    }
                }
            }
            agrees(&text);
        }

        #[test]
        fn short_integer_parser_equals_bytewise_parser(text in "[0-9]{0,9}[:-~!-/].{8}") {
            let few = parse_short_integer(text.as_bytes());
            let all = digits(text.as_bytes());
            prop_assert_eq!(few, all.filter(|&(len, _)| len < 8));
        }

        #[test]
        fn unescaped_len_equals_bytewise_search(bytes in proptest::collection::vec(
            prop_oneof![8 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => 0x1f_u8..0x24], 0..40,
        )) {
            let one = bytes.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(bytes.len());
            prop_assert_eq!(unescaped_len(&bytes), one);
        }
    }

    #[test]
    fn fast_path_leaves_unusual_numbers_to_serde_json() {
        let line = |points: &str, slots: &str| {
            format!(
                r#"{{"t":1,"server":"quake3://h:1","game":"g","map":"m","hostname":"","slots":{slots},"players":[{{"name":"a","points":{points},"bot":false}}]}}"#
            )
        };
        for (points, slots, is_fast) in [
            ("0", "0", true),
            ("-1", "4294967295", true),
            ("-0", "1", false),
            ("01", "1", false),
            ("1.0", "1", false),
            ("1e3", "1", false),
            ("-", "1", false),
            ("+1", "1", false),
            ("1", "4294967296", false),
            ("1", "-1", false),
            ("999999999999999999", "1", true),
            ("1000000000000000000", "1", false),
        ] {
            let text = line(points, slots);
            assert_eq!(read(&text, |_, _| Some(())).is_some(), is_fast, "{text}");
            agrees(&text);
        }
    }
}
