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
    let mut fields = text.split(|&b| b == b';');
    let edition = fields.next().unwrap_or_default();
    if edition != b"MCPE" && edition != b"MCEE" {
        return Err(IgnoreReason::Malformed);
    }
    let hostname = short_text(fields.next().unwrap_or_default());
    let (_protocol, _version) = (fields.next(), fields.next());
    let players = count(fields.next()).ok_or(IgnoreReason::Malformed)?;
    let slots = count(fields.next()).unwrap_or(0);
    let _id = fields.next();
    let map = short_text(fields.next().unwrap_or_default());
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

/// A number of players or slots.
fn count(text: Option<&[u8]>) -> Option<u32> {
    fields::number(text?)
}
