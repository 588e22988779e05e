//! Quake 2: `status` and its reply, a `print` of the infostring and the player lines. The reply
//! has no nonce.

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::infostring::{Infostring, split_at_line_end, without_final_zeros};
use super::player_lines::{Family, PlayerLines, player_teams};
use crate::model::{Completeness, Snapshot};

const HEADER: &[u8] = b"\xff\xff\xff\xffprint\n";

/// A server builds infostring and list in 1,384 bytes (Q2PRO: the whole datagram in 1,400), and
/// drops the player lines that do not fit. If less than the longest line remains free, a line may
/// have been dropped.
const STATUS_BYTES_MIN: usize = 1_384;
const STATUS_BYTES_MAX: usize = 1_400 - HEADER.len();
const PLAYER_LINE_BYTES_MAX: usize = 40;

/// The game whose bots have a ping of 0.
const ALIEN_ARENA: &str = "arena";

/// One `status` request, one reply.
#[derive(Clone, Debug, Default)]
pub struct StatusQuery;

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        b"\xff\xff\xff\xffstatus\n".to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let body = last_datagram.strip_prefix(HEADER).unwrap_or_default();
        let (infostring, lines) = split_at_line_end(without_final_zeros(body));
        let teams = player_teams(lines.unwrap_or_default());
        Details::from_pairs(Infostring::read(infostring).pairs(), level).with_player_teams(teams)
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
    let mut list = PlayerLines::read(lines.unwrap_or_default(), Family::Quake2);
    let game = info.game(&["gamename", "game", "gamedir"], "baseq2");
    if game.eq_ignore_ascii_case(ALIEN_ARENA) {
        list.players.iter_mut().for_each(|player| player.bot = player.ping == Some(0));
    }
    let may_be_cut = (STATUS_BYTES_MIN - PLAYER_LINE_BYTES_MAX..=STATUS_BYTES_MAX).contains(&body.len());
    let is_full = lines.is_some() && !list.is_truncated && list.unparsed == 0 && !may_be_cut;
    Ok(Snapshot {
        t_ms,
        game,
        map: info.text(&["mapname", "map"]),
        hostname: info.text(&["hostname"]),
        slots: info.number(&["maxclients"]).unwrap_or(0),
        players: list.players,
        completeness: Completeness::full_if(is_full),
        count: None,
        bots: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alien_arena_has_an_address_after_the_name_and_bots() {
        for (game, has_bots) in [("arena", true), ("baseq2", false)] {
            let lines = "7 48 \"Ann\" \"127.0.0.1\" 1\n3 0 \"Cyborg\" \"127.0.0.1\" 2\n";
            let s = decode(0, &[HEADER, format!("\\gamename\\{game}\n{lines}").as_bytes()].concat()).unwrap();
            let players: Vec<_> = s.players.iter().map(|p| (p.name.as_str(), p.points, p.ping, p.bot)).collect();
            assert_eq!(players, [("Ann", Some(7), Some(48), false), ("Cyborg", Some(3), Some(0), has_bots)]);
            assert_eq!(s.completeness, Completeness::Full);
        }
    }

    #[test]
    fn list_that_may_be_cut_is_partial() {
        let line = b"100 100 \"fifteen letters\"\n";
        let reply = |status_bytes: usize| {
            let mut bytes = [HEADER, b"\\mapname\\q2dm1\\hostname\\"].concat();
            let lines = (status_bytes - 60) / line.len();
            bytes.resize(HEADER.len() + status_bytes - lines * line.len() - 1, b'h');
            [&bytes[..], b"\n", &line.repeat(lines)].concat()
        };
        for (status_bytes, want) in [
            (1_300, Completeness::Full),
            (1_343, Completeness::Full),
            // The last line that fits may end 40 bytes before the end, or at it.
            (1_344, Completeness::Partial),
            (1_383, Completeness::Partial),
            (1_389, Completeness::Partial),
        ] {
            let bytes = reply(status_bytes);
            assert_eq!(bytes.len(), status_bytes + 10);
            assert_eq!(decode(0, &bytes).unwrap().completeness, want, "{status_bytes}");
        }
    }
}
