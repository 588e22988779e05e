//! Cursors, and their text form for clients that page over a stateless connection.
//!
//! The text form is a token. It is opaque, URL-safe (base64url without padding, never a
//! leading dash) and at most 67 characters. It has a version byte, the board's generation
//! and version, the edge, and a CRC-32 over all of it. The CRC detects truncated or mistyped
//! tokens; it is not a signature, and a forged token can only name some position of a board.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{BoardEntry, Score};
use crate::model::PlayerKey;

/// First byte of a token. Its value makes the first character a letter.
const VERSION: u8 = 2;

/// Version, generation, the board's version, and the kind of edge.
const HEAD_BYTES: usize = 1 + 8 + 8 + 1;
/// Score, tie, time, player.
const ENTRY_BYTES: usize = 8 + 8 + 8 + 4;
const CRC_BYTES: usize = 4;

/// A position between two entries, identified by a neighbouring entry instead of a number.
/// A client that pages by cursor therefore sees every entry that does not move exactly
/// once, whatever other entries do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Generation of the board; a board of another generation rejects the cursor.
    pub generation: u64,
    /// Version of the board when the cursor was created.
    pub version: u64,
    pub edge: CursorEdge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorEdge {
    Start,
    Before(BoardEntry),
    After(BoardEntry),
    End,
}

/// A cursor of another board than the queried one: of an earlier window, or of this board
/// before it was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor belongs to another board (generation {cursor}, now {board}): start again from the first page")]
pub struct StaleCursor {
    pub cursor: u64,
    pub board: u64,
}

/// A string that is not a valid cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// The string does not have the form of a cursor.
    #[error("cursor {0:?} is damaged: use a cursor exactly as it was returned, or start again from the first page")]
    Form(String),
    #[error("cursor {0:?} is damaged: use a cursor exactly as it was returned, or start again from the first page")]
    Damaged(String),
    #[error("cursor {text:?} has version {version}, expected version {VERSION}: start again from the first page")]
    Version { text: String, version: u8 },
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + ENTRY_BYTES + CRC_BYTES);
        bytes.push(VERSION);
        bytes.extend(self.generation.to_be_bytes());
        bytes.extend(self.version.to_be_bytes());
        let (edge, entry) = match self.edge {
            CursorEdge::Start => (0, None),
            CursorEdge::Before(entry) => (1, Some(entry)),
            CursorEdge::After(entry) => (2, Some(entry)),
            CursorEdge::End => (3, None),
        };
        bytes.push(edge);
        if let Some(entry) = entry {
            bytes.extend(entry.score().0.to_be_bytes());
            bytes.extend(entry.tie.to_be_bytes());
            bytes.extend(entry.at_ms.to_be_bytes());
            bytes.extend(entry.player.0.to_be_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend(crc.to_be_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Cursor, BadCursor> {
        let shown = || text.chars().take(80).collect::<String>();
        let damaged = || BadCursor::Damaged(shown());
        let lens = [0, ENTRY_BYTES].map(|entry| (4 * (HEAD_BYTES + entry + CRC_BYTES)).div_ceil(3));
        let is_of_token = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !lens.contains(&text.len()) || !text.bytes().all(is_of_token) {
            return Err(BadCursor::Form(shown()));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| damaged())?;
        let (bytes, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or_else(damaged)?;
        if crc32fast::hash(bytes) != u32::from_be_bytes(*crc) {
            return Err(damaged());
        }
        let mut rest = bytes;
        let [version] = take(&mut rest).ok_or_else(damaged)?;
        if version != VERSION {
            return Err(BadCursor::Version { text: shown(), version });
        }
        let cursor = read(&mut rest).ok_or_else(damaged)?;
        if rest.is_empty() { Ok(cursor) } else { Err(damaged()) }
    }
}

fn read(rest: &mut &[u8]) -> Option<Cursor> {
    let generation = u64::from_be_bytes(take(rest)?);
    let version = u64::from_be_bytes(take(rest)?);
    let edge = match take(rest)? {
        [0] => CursorEdge::Start,
        [1] => CursorEdge::Before(read_entry(rest)?),
        [2] => CursorEdge::After(read_entry(rest)?),
        [3] => CursorEdge::End,
        [_] => return None,
    };
    Some(Cursor { generation, version, edge })
}

fn read_entry(rest: &mut &[u8]) -> Option<BoardEntry> {
    let score = Score(i64::from_be_bytes(take(rest)?));
    let tie = u64::from_be_bytes(take(rest)?);
    let at_ms = i64::from_be_bytes(take(rest)?);
    Some(BoardEntry::new(score, at_ms, PlayerKey(u32::from_be_bytes(take(rest)?))).with_tie_break(tie))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edges() -> impl Strategy<Value = CursorEdge> {
        let entry = (any::<i64>(), any::<u64>(), any::<i64>(), any::<u32>()).prop_map(|(score, tie, at_ms, player)| {
            BoardEntry::new(Score(score), at_ms, PlayerKey(player)).with_tie_break(tie)
        });
        (0..4, entry).prop_map(|(edge, entry)| match edge {
            0 => CursorEdge::Start,
            1 => CursorEdge::Before(entry),
            2 => CursorEdge::After(entry),
            _ => CursorEdge::End,
        })
    }

    proptest! {
        #[test]
        fn cursor_text_round_trips(generation: u64, version: u64, edge in edges()) {
            let cursor = Cursor { generation, version, edge };
            let text = cursor.to_string();
            prop_assert!(text.len() <= 67 && text.starts_with('A'), "{}", text);
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(text.parse(), Ok(cursor));
        }

        #[test]
        fn altered_or_truncated_cursor_is_rejected(version: u64, edge in edges(), at in 0_usize..67, with in "[A-Za-z0-9_=. -]") {
            let text = Cursor { generation: 7, version, edge }.to_string();
            let at = at % text.len();
            prop_assert!(text[..at].parse::<Cursor>().is_err());
            let changed = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            prop_assert!(changed == text || changed.parse::<Cursor>().is_err(), "{}", changed);
        }

        #[test]
        fn arbitrary_text_is_rejected(text in "\\PC{0,80}") {
            prop_assert!(text.parse::<Cursor>().is_err());
        }
    }

    #[test]
    fn cursor_error_messages_name_the_remedy() {
        let message = |text: &str| text.parse::<Cursor>().unwrap_err().to_string();
        assert!(message("").contains("damaged"));
        assert!(message(&"x".repeat(100_000)).len() < 200);
        let mut bytes = vec![9; HEAD_BYTES];
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        assert!(message(&URL_SAFE_NO_PAD.encode(bytes)).contains("has version 9, expected version 2"));
        // Well formed, but the entry is missing.
        let mut bytes = [vec![VERSION], vec![0; 16], vec![1]].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        assert!(message(&URL_SAFE_NO_PAD.encode(bytes)).contains("damaged"));
    }
}
