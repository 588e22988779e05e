//! Faults of networks, servers and attackers, applied to correct replies. The seed gives
//! each server at most one fault, which never changes, so a test knows which replies can
//! be trusted.

use std::net::Ipv4Addr;
use std::str::FromStr;

use strum::{IntoStaticStr, VariantArray};

use super::address;
use super::protocol::Protocol;
use super::rng::{RngExt, SplitMix64, hash_parts, unit};
use super::shares::{ShareListError, Shares};
use super::wire::Datagrams;

/// The fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Fault {
    /// Never replies.
    Silent,
    /// Replies after 0.4 to 3 s: sometimes before the timeout, sometimes after it.
    Slow,
    /// Three of ten datagrams are lost, in both directions.
    Lossy,
    /// Sends everything twice, the second time within 300 ms.
    Duplicating,
    /// An attacker replies first, with absurd points ([`SPOOFED_NAME`]). The reply comes from
    /// another address, and the rest of it is correct. In protocols with a nonce of the client it
    /// may instead come from the correct address with a wrong nonce. The true reply follows.
    Spoofed,
    /// Every reply is malformed or nonsensical.
    Malformed,
    /// One reply in two is detectably incomplete: a fragment is missing, a line is truncated (Quake
    /// 3), or more players are announced than listed. It has no effect on QuakeWorld, Quake 2, Doom
    /// 3, Quake Wars, Bedrock and Mumble, because nothing that their replies announce could be missing.
    Partial,
}

/// The name in every spoofed list; no person of the population has it.
pub const SPOOFED_NAME: &str = "Spoofed";

/// Points of every player in a spoofed list.
pub const SPOOFED_POINTS: i64 = 1_000_000;

/// The share of the servers with each fault.
pub type FaultShares = Shares<Fault, { Fault::VARIANTS.len() }>;

impl Default for FaultShares {
    fn default() -> Self {
        FaultShares::new([0.03, 0.02, 0.03, 0.01, 0.01, 0.01, 0.01])
    }
}

impl FromStr for FaultShares {
    type Err = ShareListError;

    /// `none`, `default`, or `silent=0.03,slow=0.02,...`; omitted ones are 0.
    fn from_str(text: &str) -> Result<FaultShares, ShareListError> {
        match text {
            "none" => Ok(FaultShares::NONE),
            "default" => Ok(FaultShares::default()),
            _ => FaultShares::parse_list(text, "faults"),
        }
    }
}

impl FaultShares {
    /// The fault of a server, if it has one.
    pub fn fault(&self, seed: u64, server: u32) -> Option<Fault> {
        self.value_at(unit(hash_parts(&[seed, 0xFA17, u64::from(server)])))
    }
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    pub from: Ipv4Addr,
    pub bytes: Vec<u8>,
    /// Delay after the query, ms.
    pub delay_ms: u64,
}

/// A reply with a false source.
#[derive(Clone, Debug)]
pub struct SpoofedReply {
    pub from: Ipv4Addr,
    pub reply: Datagrams,
}

/// Applies a fault to a server's correct reply. For `Fault::Partial` the announced count is
/// already falsified; this function only drops fragments and truncates lines.
pub fn apply_fault(
    fault: Fault,
    protocol: Protocol,
    server: u32,
    reply: &Datagrams,
    spoofed_reply: Option<&SpoofedReply>,
    rng: &mut SplitMix64,
) -> Vec<OutgoingDatagram> {
    let own = address::address_of(server);
    let at_once = |from, bytes: &[u8]| OutgoingDatagram { from, bytes: bytes.to_vec(), delay_ms: 0 };
    let mut datagrams: Vec<OutgoingDatagram> = reply.iter().map(|bytes| at_once(own, bytes)).collect();
    match fault {
        Fault::Silent => datagrams.clear(),
        Fault::Slow => {
            let delay_ms = 400 + rng.below(2_600) as u64;
            datagrams.iter_mut().for_each(|datagram| datagram.delay_ms = delay_ms);
        }
        Fault::Lossy => datagrams.retain(|_| !loses_datagram(rng)),
        Fault::Duplicating => {
            let copies = datagrams.clone().into_iter();
            let late = copies.map(|datagram| OutgoingDatagram { delay_ms: rng.below(300) as u64, ..datagram });
            datagrams = datagrams.iter().cloned().chain(late.collect::<Vec<_>>()).collect();
        }
        Fault::Spoofed => {
            let spoofed = spoofed_reply
                .into_iter()
                .flat_map(|spoofed| spoofed.reply.iter().map(move |bytes| at_once(spoofed.from, bytes)));
            datagrams = spoofed.chain(datagrams).collect();
        }
        Fault::Malformed => datagrams.iter_mut().for_each(|datagram| corrupt(&mut datagram.bytes, protocol, rng)),
        Fault::Partial => {
            // QuakeWorld does not number its datagrams.
            if datagrams.len() > 1 && protocol != Protocol::QuakeWorld && rng.bool(0.5) {
                datagrams.remove(rng.below(datagrams.len()));
            } else if protocol == Protocol::Quake3 && rng.bool(0.5) {
                cut_last_line(&mut datagrams[0].bytes, rng);
            }
        }
    }
    datagrams
}

/// Whether a lossy network drops a datagram.
pub fn loses_datagram(rng: &mut SplitMix64) -> bool {
    rng.bool(0.3)
}

/// Truncates the last player's line, if there is one.
fn cut_last_line(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let Some(body) = bytes.strip_suffix(b"\n") else { return };
    let line = body.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    if body[line..].starts_with(b"\\") {
        return; // no player is listed
    }
    let within = 1 + rng.below(body.len() - line - 1);
    bytes.truncate(line + within);
}

/// Corrupts a datagram in a random way. The result is never a reply with the true list.
fn corrupt(bytes: &mut Vec<u8>, protocol: Protocol, rng: &mut SplitMix64) {
    let header = bytes.len().min(5);
    match rng.below(8) {
        0 => {
            // Noise.
            let length = rng.below(1_400);
            *bytes = (0..length).map(|_| rng.bits() as u8).collect();
        }
        1 => bytes.truncate(rng.below(header + 1)),
        2 => bytes.clear(),
        // Teeworlds begins with ten equal bytes.
        3 => {
            let rotated = bytes.len().min(16);
            bytes[..rotated].rotate_left(rotated.min(1));
        }
        // A fragment shorter than its own header: a naive decoder computes a negative length.
        4 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\0\x02\0\xFF"[..8 + rng.below(4)].to_vec(),
        // A fragment with a total of zero.
        5 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\0\0\0\x04\0abcd".to_vec(),
        // A compressed reply that announces a huge size.
        6 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\x80\x01\0\xFF\xFF\xFF\xFF\0\0\0\0BZh91AY&SY".to_vec(),
        // Values out of range, and a very long list.
        _ if !matches!(protocol, Protocol::Quake3 | Protocol::Source) => {
            bytes.truncate(12);
            bytes.resize(1_200, b'9');
        }
        _ => {
            *bytes = match bytes.get(4) {
                Some(b's') => {
                    let line: &[u8] = b"999999999999999999999 -99999999999 \"\n";
                    [b"\xFF\xFF\xFF\xFFstatusResponse\n\\sv_maxclients\\-1\\\\\\\n", &line.repeat(400)[..]].concat()
                }
                Some(b'I') => b"\xFF\xFF\xFF\xFFI\x11no zero terminates this".to_vec(),
                _ => b"\xFF\xFF\xFF\xFFD\xFF\0x\0\0\0\0\x80\0\0\xC0\x7F".to_vec(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::wire;

    fn reply(parts: usize) -> Datagrams {
        let mut out = Datagrams::default();
        wire::split(&vec![7; parts * 100], wire::SplitFormat::Source, 100, 1, &mut out);
        assert_eq!(out.len(), parts);
        out
    }

    #[test]
    fn fault_shares_are_parsed_and_drawn() {
        let shares: FaultShares = "silent=0.25, slow=0.5".parse().unwrap();
        assert_eq!(shares, FaultShares::NONE.with(Fault::Silent, 0.25).with(Fault::Slow, 0.5));
        assert_eq!("none".parse(), Ok(FaultShares::NONE));
        assert_eq!("default".parse(), Ok(FaultShares::default()));
        for bad in ["", "silent", "noisy=1", "silent=2", "silent=-1", "silent=x", "silent=0.6,slow=0.6", "silent=NaN"] {
            assert!(bad.parse::<FaultShares>().is_err(), "{bad:?}");
        }
        let count = |fault| (0..10_000).filter(|&server| shares.fault(1, server) == fault).count();
        assert!((2_300..2_700).contains(&count(Some(Fault::Silent))));
        assert!((4_800..5_200).contains(&count(Some(Fault::Slow))));
        assert_eq!(count(Some(Fault::Lossy)), 0);
        assert_eq!((0..10_000).filter_map(|server| FaultShares::NONE.fault(1, server)).count(), 0);
    }

    #[test]
    fn each_fault_changes_the_reply_as_documented() {
        let rng = &mut SplitMix64::from_parts(&[3]);
        let none = None;
        let spoofed_reply = SpoofedReply { from: address::spoofing_address(9), reply: reply(1) };
        let mut faulty = |fault, parts: usize, spoofed: Option<&SpoofedReply>| {
            apply_fault(fault, Protocol::Source, 9, &reply(parts), spoofed, rng)
        };
        assert!(faulty(Fault::Silent, 1, none).is_empty());
        assert!((400..3_000).contains(&faulty(Fault::Slow, 1, none)[0].delay_ms));
        assert!((1_300..1_500).contains(&(0..1_000).map(|_| faulty(Fault::Lossy, 2, none).len()).sum::<usize>()));
        let twice = faulty(Fault::Duplicating, 2, none);
        assert_eq!((twice.len(), &twice[0].bytes), (4, &twice[2].bytes));
        let spoofed = faulty(Fault::Spoofed, 1, Some(&spoofed_reply));
        assert_eq!(
            spoofed.iter().map(|s| s.from).collect::<Vec<_>>(),
            [address::spoofing_address(9), address::address_of(9)]
        );
        let partial: Vec<usize> = (0..100).map(|_| faulty(Fault::Partial, 3, none).len()).collect();
        assert!(partial.contains(&2) && partial.contains(&3));
    }

    #[test]
    fn corrupted_reply_differs_from_the_original() {
        let rng = &mut SplitMix64::from_parts(&[4]);
        for (protocol, good) in [
            (Protocol::Quake3, &b"\xFF\xFF\xFF\xFFstatusResponse\n\\a\\b\n1 2 \"x\"\n"[..]),
            (Protocol::Teeworlds, b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFinf342\x000.6.5\0h\0"),
        ] {
            for _ in 0..2_000 {
                let mut bytes = good.to_vec();
                corrupt(&mut bytes, protocol, rng);
                assert_ne!(bytes, good);
            }
        }
        for short in [&b""[..], b"\xFF", b"\xFF\xFF\xFF\xFFI"] {
            for _ in 0..100 {
                corrupt(&mut short.to_vec(), Protocol::Source, rng);
            }
        }
    }

    #[test]
    fn last_player_line_is_truncated_inside() {
        let rng = &mut SplitMix64::from_parts(&[5]);
        let head = b"\xFF\xFF\xFF\xFFstatusResponse\n\\a\\b\n";
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut bytes = [&head[..], b"1 2 \"x\"\n"].concat();
            cut_last_line(&mut bytes, rng);
            lengths.insert(bytes.len() - head.len());
            let mut empty = head.to_vec();
            cut_last_line(&mut empty, rng);
            assert_eq!(empty, head);
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }
}
