//! Misbehaviour: what networks, broken servers and forgers make of good
//! replies. Each server has one fault or none for its whole life, fixed by the
//! seed, so that a test can say what may be believed of which server.

use std::net::Ipv4Addr;
use std::str::FromStr;

use super::address;
use super::games::Family;
use super::rng::{Rng, unit};
use super::wire::Datagrams;

/// How a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Never answers.
    Silent,
    /// Answers after 0.4 to 3 s: sometimes in time, sometimes not.
    Slow,
    /// Three of ten datagrams are lost, each way.
    Lossy,
    /// Sends everything twice, the second within 300 ms.
    Duplicating,
    /// Someone else answers first, with absurd points ([`FORGED_NAME`]): from
    /// another address with everything else right, or (Quake 3) from the right
    /// one with a wrong challenge. The true reply follows.
    Spoofed,
    /// Never sends a reply that is whole and sane.
    Malformed,
    /// One reply in two is incomplete in a way that shows: a fragment is
    /// missing, a line is cut, more players are announced than listed.
    Partial,
}

/// Stands in every forged list; nobody of the population is called so.
pub const FORGED_NAME: &str = "Forged";

/// Points of everyone in a forged list.
pub const FORGED_POINTS: i64 = 1_000_000;

/// Which part of the servers has which fault, each 0 to 1. Together at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultShares {
    pub silent: f64,
    pub slow: f64,
    pub lossy: f64,
    pub duplicating: f64,
    pub spoofed: f64,
    pub malformed: f64,
    pub partial: f64,
}

impl Default for FaultShares {
    fn default() -> Self {
        FaultShares {
            silent: 0.03,
            slow: 0.02,
            lossy: 0.03,
            duplicating: 0.01,
            spoofed: 0.01,
            malformed: 0.01,
            partial: 0.01,
        }
    }
}

/// What was wrong with a list of shares.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareListError {
    #[error("{text:?}: {kind} are \"none\", \"default\", or a list such as \"{example}=0.03\"")]
    Form { text: String, kind: &'static str, example: &'static str },
    #[error("{kind}: {name:?} is unknown; there are {known}")]
    Name { name: String, kind: &'static str, known: String },
    #[error("{0:?}: a share is a number from 0 to 1, and all together at most 1")]
    Share(String),
}

/// Reads `NAME=SHARE,NAME=SHARE,...`, in the order of `names`; what is not named
/// is 0. `kind` is what the names are called in errors.
pub(super) fn parse_shares<const N: usize>(
    text: &str,
    kind: &'static str,
    names: [&'static str; N],
) -> Result<[f64; N], ShareListError> {
    let mut shares = [0.0; N];
    for item in text.split(',') {
        let form = || ShareListError::Form { text: item.to_owned(), kind, example: names[0] };
        let (name, share) = item.split_once('=').ok_or_else(form)?;
        let unknown = || ShareListError::Name { name: name.to_owned(), kind, known: names.join(", ") };
        let at = names.iter().position(|known| *known == name.trim()).ok_or_else(unknown)?;
        let share: f64 = share.trim().parse().map_err(|_| ShareListError::Share(item.to_owned()))?;
        if !(0.0..=1.0).contains(&share) {
            return Err(ShareListError::Share(item.to_owned()));
        }
        shares[at] = share;
    }
    // Sums of decimal fractions may come out a hair above.
    if shares.iter().sum::<f64>() > 1.000_001 {
        return Err(ShareListError::Share(text.to_owned()));
    }
    Ok(shares)
}

impl FromStr for FaultShares {
    type Err = ShareListError;

    /// `none`, `default`, or `silent=0.03,slow=0.02,...`; what is not named is 0.
    fn from_str(text: &str) -> Result<FaultShares, ShareListError> {
        match text {
            "none" => return Ok(FaultShares::NONE),
            "default" => return Ok(FaultShares::default()),
            _ => {}
        }
        let names = ["silent", "slow", "lossy", "duplicating", "spoofed", "malformed", "partial"];
        let [silent, slow, lossy, duplicating, spoofed, malformed, partial] = parse_shares(text, "faults", names)?;
        Ok(FaultShares { silent, slow, lossy, duplicating, spoofed, malformed, partial })
    }
}

impl FaultShares {
    /// Nobody misbehaves.
    pub const NONE: FaultShares = FaultShares {
        silent: 0.0,
        slow: 0.0,
        lossy: 0.0,
        duplicating: 0.0,
        spoofed: 0.0,
        malformed: 0.0,
        partial: 0.0,
    };

    fn all(&self) -> [(f64, Fault); 7] {
        [
            (self.silent, Fault::Silent),
            (self.slow, Fault::Slow),
            (self.lossy, Fault::Lossy),
            (self.duplicating, Fault::Duplicating),
            (self.spoofed, Fault::Spoofed),
            (self.malformed, Fault::Malformed),
            (self.partial, Fault::Partial),
        ]
    }

    /// The fault of a server, if it has one.
    pub fn fault(&self, seed: u64, server: u32) -> Option<Fault> {
        let mut left = unit(super::rng::hash_parts(&[seed, 0xFA17, u64::from(server)]));
        for (share, fault) in self.all() {
            left -= share;
            if left < 0.0 {
                return Some(fault);
            }
        }
        None
    }
}

/// A datagram on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    pub from: Ipv4Addr,
    pub bytes: Vec<u8>,
    /// After the query, ms.
    pub delay_ms: u64,
}

/// A reply that someone else sends in a server's name.
#[derive(Clone, Debug)]
pub struct SpoofedReply {
    pub from: Ipv4Addr,
    pub reply: Datagrams,
}

/// What becomes of a server's good reply. A partial server's count is made
/// false before the reply is made; here it only loses fragments and ends of
/// lines.
pub fn apply_fault(
    fault: Fault,
    family: Family,
    server: u32,
    reply: &Datagrams,
    forgery: Option<&SpoofedReply>,
    rng: &mut Rng,
) -> Vec<OutgoingDatagram> {
    let own = address::address_of(server);
    let at_once = |bytes: &[u8]| OutgoingDatagram { from: own, bytes: bytes.to_vec(), delay_ms: 0 };
    let mut sendings: Vec<OutgoingDatagram> = reply.iter().map(at_once).collect();
    match fault {
        Fault::Silent => sendings.clear(),
        Fault::Slow => {
            let delay_ms = 400 + rng.below(2_600) as u64;
            sendings.iter_mut().for_each(|sending| sending.delay_ms = delay_ms);
        }
        Fault::Lossy => sendings.retain(|_| !loses_datagram(rng)),
        Fault::Duplicating => {
            let twice = sendings.clone().into_iter();
            let late = twice.map(|sending| OutgoingDatagram { delay_ms: rng.below(300) as u64, ..sending });
            sendings = sendings.iter().cloned().chain(late.collect::<Vec<_>>()).collect();
        }
        Fault::Spoofed => {
            let lies = forgery.into_iter().flat_map(|forgery| {
                let sending =
                    |bytes: &[u8]| OutgoingDatagram { from: forgery.from, bytes: bytes.to_vec(), delay_ms: 0 };
                forgery.reply.iter().map(sending).collect::<Vec<_>>()
            });
            sendings = lies.chain(sendings).collect();
        }
        Fault::Malformed => sendings.iter_mut().for_each(|sending| corrupt(&mut sending.bytes, rng)),
        Fault::Partial => {
            if sendings.len() > 1 && rng.bool(0.5) {
                sendings.remove(rng.below(sendings.len()));
            } else if family == Family::Quake3 && rng.bool(0.5) {
                cut_last_line(&mut sendings[0].bytes, rng);
            }
        }
    }
    sendings
}

/// Whether a lossy path loses a datagram.
pub fn loses_datagram(rng: &mut Rng) -> bool {
    rng.bool(0.3)
}

/// Cuts within the last player's line, where there is one.
fn cut_last_line(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let Some(body) = bytes.strip_suffix(b"\n") else { return };
    let line = body.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    if body[line..].starts_with(b"\\") {
        return; // nobody is listed
    }
    let within = 1 + rng.below(body.len() - line - 1);
    bytes.truncate(line + within);
}

/// Makes nonsense of a datagram, one way or another. What comes out is never a
/// reply that shows the true list.
fn corrupt(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let header = bytes.len().min(5);
    match rng.below(8) {
        0 => {
            // Noise.
            let length = rng.below(1_400);
            *bytes = (0..length).map(|_| rng.next_u64() as u8).collect();
        }
        1 => bytes.truncate(rng.below(header + 1)),
        2 => bytes.clear(),
        3 => bytes[..header].rotate_left(header.min(1)),
        // A fragment shorter than its own header: a negative length to the careless.
        4 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\0\x02\0\xFF"[..8 + rng.below(4)].to_vec(),
        // A fragment of none.
        5 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\0\0\0\x04\0abcd".to_vec(),
        // A packed reply that says it is huge.
        6 => *bytes = b"\xFE\xFF\xFF\xFF\x01\0\0\x80\x01\0\xFF\xFF\xFF\xFF\0\0\0\0BZh91AY&SY".to_vec(),
        // Numbers that fit nothing, and a list that goes on and on.
        _ => {
            *bytes = match bytes.get(4) {
                Some(b's') => {
                    let line: &[u8] = b"999999999999999999999 -99999999999 \"\n";
                    [b"\xFF\xFF\xFF\xFFstatusResponse\n\\sv_maxclients\\-1\\\\\\\n", &line.repeat(400)[..]].concat()
                }
                Some(b'I') => b"\xFF\xFF\xFF\xFFI\x11no zero ever ends this".to_vec(),
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
        assert_eq!(shares, FaultShares { silent: 0.25, slow: 0.5, ..FaultShares::NONE });
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
        let rng = &mut Rng::new(&[3]);
        let none = None;
        let lie = SpoofedReply { from: address::spoofing_address(9), reply: reply(1) };
        let mut made = |fault, parts: usize, forged: Option<&SpoofedReply>| {
            apply_fault(fault, Family::Source, 9, &reply(parts), forged, rng)
        };
        assert!(made(Fault::Silent, 1, none).is_empty());
        assert!((400..3_000).contains(&made(Fault::Slow, 1, none)[0].delay_ms));
        assert!((1_300..1_500).contains(&(0..1_000).map(|_| made(Fault::Lossy, 2, none).len()).sum::<usize>()));
        let twice = made(Fault::Duplicating, 2, none);
        assert_eq!((twice.len(), &twice[0].bytes), (4, &twice[2].bytes));
        let spoofed = made(Fault::Spoofed, 1, Some(&lie));
        assert_eq!(
            spoofed.iter().map(|s| s.from).collect::<Vec<_>>(),
            [address::spoofing_address(9), address::address_of(9)]
        );
        let partial: Vec<usize> = (0..100).map(|_| made(Fault::Partial, 3, none).len()).collect();
        assert!(partial.contains(&2) && partial.contains(&3));
    }

    #[test]
    fn corrupted_reply_differs_from_the_original() {
        let rng = &mut Rng::new(&[4]);
        let good = b"\xFF\xFF\xFF\xFFstatusResponse\n\\a\\b\n1 2 \"x\"\n";
        for _ in 0..2_000 {
            let mut bytes = good.to_vec();
            corrupt(&mut bytes, rng);
            assert_ne!(bytes, good);
        }
        for short in [&b""[..], b"\xFF", b"\xFF\xFF\xFF\xFFI"] {
            for _ in 0..100 {
                corrupt(&mut short.to_vec(), rng);
            }
        }
    }

    #[test]
    fn last_player_line_is_cut_inside() {
        let rng = &mut Rng::new(&[5]);
        let head = b"\xFF\xFF\xFF\xFFstatusResponse\n\\a\\b\n";
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut bytes = [&head[..], b"1 2 \"x\"\n"].concat();
            cut_last_line(&mut bytes, rng);
            lengths.insert(bytes.len() - head.len());
            let mut nobody = head.to_vec();
            cut_last_line(&mut nobody, rng);
            assert_eq!(nobody, head);
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }
}
