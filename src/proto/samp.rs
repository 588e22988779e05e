//! SA-MP and open.mp: `SAMP`, the server's address and port, and an opcode; the reply begins with
//! the same eleven bytes. Requests: information, then the player list, which servers withhold
//! above 100 players. A ping with four bytes that the server repeats authenticates it.
//!
//! open.mp does not answer the opcode of the detailed list, `d`, which adds only ids and pings.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields::take;
use super::nonce::Nonce;
use super::text::{player_name, points, short_text};
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

const PING: u8 = b'p';
const INFORMATION: u8 = b'i';
const PLAYERS: u8 = b'c';

/// Servers send no list if more players are present.
const LISTED_PLAYERS_MAX: u32 = 100;

/// A ping, an information and a player request.
#[derive(Clone, Debug)]
pub struct SampQuery {
    nonce: [u8; 4],
    header: [u8; 10],
    is_authenticated: bool,
    information: Option<Information>,
    last_received_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Information {
    hostname: String,
    mode: String,
    players: u32,
    slots: u32,
    password: bool,
    language: String,
}

impl SampQuery {
    /// `address`: the one that is queried. The protocol has no form for IPv6.
    pub fn new(nonce: Nonce, address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let mut header = [0; 10];
        header[..4].copy_from_slice(b"SAMP");
        header[4..8].copy_from_slice(&ip.octets());
        header[8..].copy_from_slice(&address.port().to_le_bytes());
        SampQuery { nonce: nonce.bytes4(), header, is_authenticated: false, information: None, last_received_ms: 0 }
    }

    fn snapshot(&self, information: &Information, players: Option<Vec<Player>>) -> Snapshot {
        let is_full = players.as_ref().is_some_and(|players| has_enough_entries(players.len(), information.players));
        Snapshot {
            t_ms: self.last_received_ms,
            game: "samp".to_owned(),
            map: information.mode.clone(),
            hostname: information.hostname.clone(),
            slots: information.slots,
            players: players.unwrap_or_default(),
            completeness: Completeness::full_if(is_full),
            count: Some(information.players).filter(|_| !is_full),
            bots: None,
        }
    }
}

impl Exchange for SampQuery {
    fn request(&self) -> Vec<u8> {
        match (self.is_authenticated, &self.information) {
            (false, _) => [&self.header[..], &[PING], &self.nonce].concat(),
            (true, None) => [&self.header[..], &[INFORMATION]].concat(),
            (true, Some(_)) => [&self.header[..], &[PLAYERS]].concat(),
        }
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let Some((opcode, body)) = bytes.strip_prefix(&self.header).and_then(|rest| rest.split_first()) else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        match (*opcode, self.is_authenticated, &self.information) {
            (PING, false, _) if body == self.nonce => {
                self.is_authenticated = true;
                Step::Send
            }
            (PING, false, _) => Step::Ignore(IgnoreReason::WrongNonce),
            (INFORMATION, true, None) => match information(body) {
                Ok(information) => {
                    let (empty, withheld) = (information.players == 0, information.players > LISTED_PLAYERS_MAX);
                    self.last_received_ms = t_ms;
                    let done = (empty || withheld).then(|| self.snapshot(&information, empty.then(Vec::new)));
                    self.information = Some(information);
                    done.map_or(Step::Send, |snapshot| Step::Done(Box::new(snapshot)))
                }
                Err(reason) => Step::Ignore(reason),
            },
            (PLAYERS, true, Some(information)) => match players(body) {
                Ok(players) => {
                    self.last_received_ms = t_ms;
                    Step::Done(Box::new(self.snapshot(information, Some(players))))
                }
                Err(reason) => Step::Ignore(reason),
            },
            (PING | INFORMATION | PLAYERS | b'r' | b'd', ..) => Step::Ignore(IgnoreReason::UnexpectedMessage),
            _ => Step::Ignore(IgnoreReason::NotAReply),
        }
    }

    fn authentication(&self) -> Authentication {
        // Only the ping repeats the nonce.
        Authentication::Challenge
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let Some(information) = &self.information else { return Details::default() };
        let rules = match level {
            DetailLevel::Summary => Vec::new(),
            DetailLevel::Rules => vec![("language".into(), information.language.as_str().into())],
        };
        Details {
            game_type: Some(information.mode.clone()),
            password: Some(information.password),
            rules,
            ..Details::default()
        }
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.information.as_ref().map(|information| self.snapshot(information, None))
    }
}

fn information(mut rest: &[u8]) -> Result<Information, IgnoreReason> {
    let password = rest.try_get_u8()? != 0;
    let players = rest.try_get_u16_le()?.into();
    let slots = rest.try_get_u16_le()?.into();
    let hostname = short_text(long_string(&mut rest)?);
    let mode = short_text(long_string(&mut rest)?);
    let language = short_text(long_string(&mut rest)?);
    Ok(Information { hostname, mode, players, slots, password, language })
}

fn players(mut rest: &[u8]) -> Result<Vec<Player>, IgnoreReason> {
    let announced = rest.try_get_u16_le()?;
    let mut players = Vec::new();
    for _ in 0..usize::from(announced).min(PLAYERS_MAX) {
        let length = rest.try_get_u8()?;
        let name = player_name(take(&mut rest, length.into())?);
        let score = rest.try_get_i32_le()?;
        players.push(Player { name, points: Some(points(score.into())), ..Player::default() });
    }
    Ok(players)
}

fn long_string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], IgnoreReason> {
    let length = rest.try_get_u32_le()?;
    take(rest, usize::try_from(length).map_err(|_| IgnoreReason::Malformed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"\x02\0\x03One\x07\0\0\0\x03Two\xfe\xff\xff\xff";

    fn query() -> SampQuery {
        SampQuery::new(Nonce(u64::from(u32::from_be_bytes(*b"wxyz"))), SocketAddr::from(([10, 0, 0, 1], 7_777)))
    }

    fn message(opcode: u8, body: &[u8]) -> Vec<u8> {
        [b"SAMP\x0a\x00\x00\x01\x61\x1e", &[opcode][..], body].concat()
    }

    fn information_body(players: u16) -> Vec<u8> {
        let mut body = vec![0];
        body.extend_from_slice(&players.to_le_bytes());
        body.extend_from_slice(&500_u16.to_le_bytes());
        for text in ["A host", "Roleplay", "English"] {
            body.extend_from_slice(&(text.len() as u32).to_le_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        body
    }

    fn authenticated() -> SampQuery {
        let mut query = query();
        assert_eq!(query.request(), message(PING, b"wxyz"));
        assert_eq!(query.handle_datagram(1, &message(PING, b"wxyz")), Step::Send);
        assert_eq!(query.request(), message(INFORMATION, b""));
        query
    }

    #[test]
    fn ping_information_and_players_give_a_full_snapshot() {
        let mut query = authenticated();
        assert_eq!(query.handle_datagram(2, &message(INFORMATION, &information_body(2))), Step::Send);
        assert_eq!(query.request(), message(b'c', b""));
        let listed = message(b'c', LIST);
        let Step::Done(snapshot) = query.handle_datagram(3, &listed) else { panic!() };
        assert_eq!((snapshot.hostname.as_str(), snapshot.map.as_str(), snapshot.slots), ("A host", "Roleplay", 500));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("One", Some(7), None), ("Two", Some(-2), None)]);
        assert_eq!((snapshot.completeness, snapshot.t_ms), (Completeness::Full, 3));
    }

    #[test]
    fn withheld_list_is_partial_with_a_count() {
        let Step::Done(snapshot) = authenticated().handle_datagram(2, &message(INFORMATION, &information_body(101)))
        else {
            panic!()
        };
        assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(101)));
        let mut query = authenticated();
        assert_eq!(query.handle_datagram(2, &message(INFORMATION, &information_body(3))), Step::Send);
        assert_eq!(query.partial_snapshot().map(|snapshot| snapshot.count), Some(Some(3)));
    }

    #[test]
    fn other_servers_wrong_nonces_and_cut_messages_are_ignored() {
        let mut query = query();
        for (bytes, reason) in [
            (message(PING, b"wxyZ"), IgnoreReason::WrongNonce),
            (message(INFORMATION, &information_body(1)), IgnoreReason::UnexpectedMessage),
            (b"SAMP\x0a\x00\x00\x02\x61\x1epwxyz".to_vec(), IgnoreReason::NotAReply),
            (vec![], IgnoreReason::NotAReply),
        ] {
            assert_eq!(query.handle_datagram(0, &bytes), Step::Ignore(reason));
        }
        let mut query = authenticated();
        let body = information_body(1);
        for cut in 0..body.len() {
            assert_eq!(
                query.handle_datagram(0, &message(INFORMATION, &body[..cut])),
                Step::Ignore(IgnoreReason::Malformed)
            );
        }
        assert_eq!(query.handle_datagram(0, &message(INFORMATION, &body)), Step::Send);
        for cut in 0..LIST.len() {
            let step = query.handle_datagram(0, &message(PLAYERS, &LIST[..cut]));
            assert_eq!(step, Step::Ignore(IgnoreReason::Malformed), "{cut}");
        }
    }
}
