//! Quake 2: `status` and its reply, a `print` of the infostring and the player lines. The reply
//! has no nonce.

use super::details::Details;
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::infostring::{Infostring, split_at_line_end, without_final_zeros};
use super::player_lines::PlayerLines;
use super::quake_text::quake_name;
use crate::model::{Completeness, Snapshot};

const HEADER: &[u8] = b"\xff\xff\xff\xffprint\n";

/// A server builds the reply in 1,400 bytes less a margin of 16, and drops the player lines that
/// do not fit. A reply that ends closer to it than the longest line may have lost one.
const REPLY_BYTES_MAX: usize = 1_384;
const PLAYER_LINE_BYTES_MAX: usize = 40;

/// One `status` request, one reply.
#[derive(Clone, Debug, Default)]
pub struct StatusQuery {
    /// The settings of the reply.
    infostring: Vec<u8>,
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        b"\xff\xff\xff\xffstatus\n".to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        match decode(t_ms, bytes) {
            Ok(snapshot) => {
                self.infostring = split_at_line_end(&bytes[HEADER.len()..]).0.to_vec();
                Step::Done(Box::new(snapshot))
            }
            Err(reason) => Step::Ignore(reason),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self) -> Details {
        Details::from_pairs(Infostring::read(&self.infostring).pairs())
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        None
    }
}

/// Decodes a complete reply.
///
/// Errors: another kind of datagram; a `print` without an infostring.
pub fn decode(t_ms: i64, datagram: &[u8]) -> Result<Snapshot, IgnoreReason> {
    let Some(body) = datagram.strip_prefix(HEADER) else {
        return Err(match datagram.starts_with(b"\xff\xff\xff\xff") {
            true => IgnoreReason::UnexpectedMessage,
            false => IgnoreReason::NotAReply,
        });
    };
    if !body.starts_with(b"\\") {
        return Err(IgnoreReason::UnexpectedMessage);
    }
    let (infostring, lines) = split_at_line_end(without_final_zeros(body));
    let info = Infostring::read(infostring);
    let list = PlayerLines::read(lines.unwrap_or_default(), quake_name);
    let may_be_cut = (REPLY_BYTES_MAX - PLAYER_LINE_BYTES_MAX..=REPLY_BYTES_MAX).contains(&datagram.len());
    let is_full = lines.is_some() && !list.is_truncated && list.unparsed == 0 && !may_be_cut;
    Ok(Snapshot {
        t_ms,
        game: info.game(&["gamename", "game", "gamedir"], "baseq2"),
        map: info.text(&["mapname", "map"]),
        hostname: info.text(&["hostname"]),
        slots: info.number(&["maxclients"]).unwrap_or(0),
        players: list.players,
        completeness: Completeness::full_if(is_full),
        count: None,
        bots: None,
    })
}
