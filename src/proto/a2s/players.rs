//! A2S_PLAYER replies: `D`, a count, and that many entries, unless truncated.

use bytes::Buf;

use crate::limits::PLAYERS_MAX;
use crate::proto::exchange::IgnoreReason;
use crate::proto::fields::c_str;

/// The player list as sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayerReply<'a> {
    /// Number of players that the header announces. 255: these or more.
    pub announced: u8,
    pub entries: Vec<PlayerEntry<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlayerEntry<'a> {
    pub name: &'a [u8],
    pub score: i32,
    /// Time since connecting, seconds. May be any float.
    pub seconds: f32,
}

/// Decodes the body after `D`. Entries that a limit of the server or the network has
/// truncated are omitted: then there are fewer than announced. Data after the last
/// entry (The Ship's deaths and money) are not decoded. Rust cannot announce more than
/// 255 players, but lists them.
///
/// Error: the count is missing.
pub fn decode(body: &[u8]) -> Result<PlayerReply<'_>, IgnoreReason> {
    let mut rest = body;
    let announced = rest.try_get_u8()?;
    let mut entries = Vec::with_capacity(announced.into());
    let entries_max = if announced == u8::MAX { PLAYERS_MAX } else { announced.into() };
    for _ in 0..entries_max {
        match entry(&mut rest) {
            Ok(entry) => entries.push(entry),
            Err(_) => break,
        }
    }
    Ok(PlayerReply { announced, entries })
}

fn entry<'a>(rest: &mut &'a [u8]) -> Result<PlayerEntry<'a>, IgnoreReason> {
    let _index = rest.try_get_u8()?;
    Ok(PlayerEntry { name: c_str(rest)?, score: rest.try_get_i32_le()?, seconds: rest.try_get_f32_le()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_entries_are_omitted() {
        let mut body = vec![2];
        for (name, score, seconds) in [("one", 5_i32, 1.5_f32), ("", -1, f32::NAN)] {
            body.push(0);
            body.extend_from_slice(name.as_bytes());
            body.push(0);
            body.extend_from_slice(&score.to_le_bytes());
            body.extend_from_slice(&seconds.to_le_bytes());
        }
        let roster = decode(&body).unwrap();
        assert_eq!((roster.announced, roster.entries.len()), (2, 2));
        assert_eq!(roster.entries[0], PlayerEntry { name: b"one", score: 5, seconds: 1.5 });
        assert_eq!(roster.entries[1].score, -1);
        for cut in 1..body.len() {
            assert_eq!(decode(&body[..cut]).unwrap().entries.len(), usize::from(cut >= 14), "{cut}");
        }
        assert!(decode(b"").is_err());
        let ship = [&body[..], &[7; 16]].concat();
        assert_eq!(decode(&ship).unwrap().entries.len(), 2);
    }
}
