//! Minecraft: Bedrock Edition: RakNet's unconnected ping. The reply has counts and no players.

use bytes::Buf;

use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields;
use super::nonce::Nonce;
use super::text::short_text;
use crate::model::{Completeness, Snapshot};

const PING: u8 = 0x01;
const PONG: u8 = 0x1c;
/// The bytes that mark a message of RakNet outside a connection.
const MAGIC: [u8; 16] =
    [0x00, 0xff, 0xff, 0x00, 0xfe, 0xfe, 0xfe, 0xfe, 0xfd, 0xfd, 0xfd, 0xfd, 0x12, 0x34, 0x56, 0x78];

/// One ping, one reply.
#[derive(Clone, Debug)]
pub struct PingQuery {
    nonce: Nonce,
}

impl PingQuery {
    pub fn new(nonce: Nonce) -> Self {
        PingQuery { nonce }
    }
}

impl Exchange for PingQuery {
    fn request(&self) -> Vec<u8> {
        // The time is echoed; any value is valid. The last eight bytes are our id.
        [&[PING][..], &self.nonce.0.to_be_bytes(), &MAGIC, &[0; 8]].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.nonce).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }
}

/// Decodes a pong: `MCPE;host name;protocol;version;players;slots;id;world;mode`.
///
/// Errors: another kind of datagram; another nonce; no count of players.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: Nonce) -> Result<Snapshot, IgnoreReason> {
    let mut rest = datagram.strip_prefix(&[PONG]).ok_or(IgnoreReason::NotAReply)?;
    if rest.try_get_u64()? != nonce.0 {
        return Err(IgnoreReason::WrongNonce);
    }
    let _server_id = rest.try_get_u64()?;
    let mut rest = rest.strip_prefix(&MAGIC).ok_or(IgnoreReason::NotAReply)?;
    let length = rest.try_get_u16()?;
    let text = rest.get(..length.into()).ok_or(IgnoreReason::Malformed)?;
    let mut fields = split(text);
    let edition = fields.next().unwrap_or_default();
    if edition[..] != *b"MCPE" && edition[..] != *b"MCEE" {
        return Err(IgnoreReason::Malformed);
    }
    let hostname = short_text(&fields.next().unwrap_or_default());
    let (_protocol, _version) = (fields.next(), fields.next());
    let players = count(fields.next()).ok_or(IgnoreReason::Malformed)?;
    let slots = count(fields.next()).unwrap_or(0);
    let _id = fields.next();
    let map = short_text(&fields.next().unwrap_or_default());
    Ok(Snapshot {
        t_ms,
        game: "minecraft".to_owned(),
        map,
        hostname,
        slots,
        players: Vec::new(),
        // The list is not sent; only the count is known.
        completeness: Completeness::Partial,
        count: Some(players),
        bots: None,
    })
}

/// The fields of a text. Some servers write a semicolon of their name after a backslash.
fn split(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (mut field, mut bytes) = (Vec::new(), rest.take()?.iter());
        while let Some(&byte) = bytes.next() {
            match (byte, bytes.as_slice()) {
                (b'\\', [b';', ..]) => field.extend(bytes.next()),
                (b';', after) => {
                    rest = Some(after);
                    break;
                }
                _ => field.push(byte),
            }
        }
        Some(field)
    })
}

/// A number of players or slots.
fn count(text: Option<Vec<u8>>) -> Option<u32> {
    fields::number(&text?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pong(text: &[u8]) -> Vec<u8> {
        let length = (text.len() as u16).to_be_bytes();
        [&[PONG][..], &7_u64.to_be_bytes(), &[0; 8], &MAGIC, &length, text].concat()
    }

    #[test]
    fn semicolons_of_a_name_are_behind_a_backslash() {
        let decode = |text: &[u8]| decode(0, &pong(text), Nonce(7));
        let snapshot = decode(b"MCPE;Fun\\; PvP\\;;671;1.20.80;5;100;1;the world;Survival").expect("a pong");
        assert_eq!((&*snapshot.hostname, snapshot.count, snapshot.slots), ("Fun; PvP;", Some(5), 100));
        assert_eq!(snapshot.map, "the world");
        let snapshot = decode(b"MCPE;a\\b\\;1;2;3").expect_err("the name goes on, so the count is missing");
        assert_eq!(snapshot, IgnoreReason::Malformed);
        assert_eq!(decode(b"MCPE;a\\b;1;2;3").expect("a pong").hostname, "a\\b");
        assert_eq!(decode(b"MCPE;a;1"), Err(IgnoreReason::Malformed));
    }
}
