//! Searches for the datagram of each protocol that costs the scan thread most:
//! `cargo bench --bench datagrams`.
//!
//! Short valid replies bring the scan into each of its states. Then datagrams of 1,400 and of
//! 60,000 bytes are made of a valid opening and a short random pattern, repeated; the pattern that costs
//! most is mutated again. The scan gets each datagram twenty times, as from a server that floods it: the
//! figure is the mean of these. A datagram that ends the scan costs once a scan; those that do not, as often
//! as the server sends them: both are shown.
//!
//! `CLQD_TRIES` (600) sets the number of patterns for each state and size. A pattern is timed twice, and the
//! shorter time counts, because other processes disturb it.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant;

use clqd::proto::{Exchange, Nonce, PROTOCOLS, Protocol, Step, WireFormat};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const NONCE: Nonce = Nonce(7);
const SIZES: [usize; 2] = [1_400, 60_000];
const REPEATS: usize = 20;

/// Valid replies before the datagram, and the opening of the datagram.
struct Opening(&'static [&'static [u8]], &'static [u8]);

fn openings(format: WireFormat) -> Vec<Opening> {
    const UNREAL2_DETAILS: &[u8] = b"\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02a\0\x02b\0\x02c\0\x40\0\0\0\x40\0\0\0";
    const SOURCE_INFO: &[u8] = b"\xff\xff\xff\xffI\x11a\0b\0c\0d\0\x0a\0\x20\x40\0dl\0\x011\0\0";
    const SAMP_PING: &[u8] = b"SAMP\x0a\0\0\x01\x61\x1ep\0\0\0\x07";
    const SAMP_INFORMATION: &[u8] = b"SAMP\x0a\0\0\x01\x61\x1ei\0\x40\0\x40\0\x01\0\0\0a\x01\0\0\0b\x01\0\0\0c";
    const GAMESPY3_CHALLENGE: &[u8] = b"\x09\0\0\0\x070\0";
    const FIVEM_COUNTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"clients\":1}";
    const FROSTBITE_VERSION: &[u8] =
        b"\x01\0\0\x40\x26\0\0\0\x03\0\0\0\x02\0\0\0OK\0\x03\0\0\0BF4\0\x06\0\0\x00157186\0";
    const BZFLAG_COUNTS: &[u8] = b"BZFS0221\0\0\x04qp\0\x08\0\xff";
    const SAUERBRATEN_INFORMATION: &[u8] =
        b"\xff\xff\x01\0\0\0\0\0\0\0\0\x07\x40\x05\x80\x04\x01\0\x80\x56\x02\x80\xff\0\0m\0h\0";
    let list: &[(&'static [&'static [u8]], &'static [u8])] = match format {
        WireFormat::Quake3 => &[
            (&[], b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000007\\"),
            (&[], b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000007\n"),
        ],
        WireFormat::QuakeWorld => &[(&[], b"\xff\xff\xff\xffn\\"), (&[], b"\xff\xff\xff\xffn\\a\\b\n")],
        WireFormat::Quake2 => &[(&[], b"\xff\xff\xff\xffprint\n\\"), (&[], b"\xff\xff\xff\xffprint\n\\a\\b\n")],
        WireFormat::Source => &[
            (&[], b"\xff\xff\xff\xffI"),
            (&[SOURCE_INFO], b"\xff\xff\xff\xffD\xff"),
            (&[SOURCE_INFO], b"\xfe\xff\xff\xff"),
            (&[SOURCE_INFO], b"\xfe\xff\xff\xff\x09\0\0\0\x02\0"),
            (&[SOURCE_INFO], b"\xfe\xff\xff\xff\x09\0\0\x80\x01\0\0\0\x01\0\0\0\0\0BZh91AY&SY"),
        ],
        WireFormat::GameSpy1 => &[(&[], b"\\"), (&[], b"\\queryid\\1.1\\"), (&[], b"\\final\\\\queryid\\1.2\\")],
        WireFormat::GameSpy2 => &[(&[], b"\0\0\0\0\x07"), (&[], b"\0\0\0\0\x07a\0b\0\0\0\0\xffplayer_\0score_\0\0")],
        WireFormat::GameSpy3 => &[
            (&[GAMESPY3_CHALLENGE], b"\0\0\0\0\x07splitnum\0\0"),
            (&[GAMESPY3_CHALLENGE], b"\0\0\0\0\x07splitnum\0\x80\0a\0b\0\0\x01player_\0\0"),
        ],
        WireFormat::MinecraftStatus => &[(&[], b"\xff\xff\x03\0\xfc\xff\x03{\"description\":[")],
        WireFormat::FiveM => &[
            (&[], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (&[FIVEM_COUNTS], b"HTTP/1.1 200 OK\r\n\r\n["),
        ],
        WireFormat::Frostbite => &[
            (&[], b"\x01\0\0\x40\x00\x40\0\0\xff\0\0\0\x02\0\0\0OK\0"),
            (
                &[FROSTBITE_VERSION],
                b"\x03\0\0\x40\x00\x40\0\0\xff\x03\0\0\x02\0\0\0OK\0\x01\0\0\x001\0\x04\0\0\0name\0",
            ),
        ],
        WireFormat::Bzflag => &[(&[], b"BZFS0221\0"), (&[BZFLAG_COUNTS], b"\x00\xabap")],
        WireFormat::Sauerbraten => &[
            (&[], b"\xff\xff\x01\0\0\0\0\0\0\0\0\x07"),
            (&[SAUERBRATEN_INFORMATION], b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0\xf6"),
            (&[SAUERBRATEN_INFORMATION], b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0\xf5\0\x25"),
        ],
        WireFormat::AssaultCube => &[(&[], b"\x01\0\0\0\0\0\0\0\0\x07\x80\xb3\x04\0\x40\x07")],
        WireFormat::RedEclipse => &[
            (&[], b"\x01\0\0\0\0\0\0\0\0\x07\x40\x0f"),
            (&[], b"\x01\0\0\0\0\0\0\0\0\x07\x40\x08\x80\xdc\0\x02\0\x0a\x10\x04\0\0e\0h\0"),
        ],
        WireFormat::Zandronum => &[(&[], b"\x00"), (&[], b"\xff\x77\x5d\x56\x00\x07\0\0\0v\0\0\x00\x18\0\xff")],
        WireFormat::Odamex => &[(&[], b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0\x07\0\0\0\x07\0\0\x0011.0.0\0")],
        WireFormat::Armagetron => &[(&[], b"\0\x33\0\0")],
        WireFormat::Mumble => &[(&[], b"\0\x01\x03\x04\0\0\0\0\0\0\0\x07")],
        WireFormat::Unreal2 => &[(&[], b"\x80\0\0\0\0"), (&[UNREAL2_DETAILS], b"\x80\0\0\0\x02")],
        WireFormat::AllSeeingEye => &[(&[], b"EYE1"), (&[], b"EYE1\x02a\x02b\x02c\x02d\x02e\x02f\x02g\x02h\x02i\x01")],
        WireFormat::Samp => &[
            (&[SAMP_PING], b"SAMP\x0a\0\0\x01\x61\x1ei"),
            (&[SAMP_PING, SAMP_INFORMATION], b"SAMP\x0a\0\0\x01\x61\x1ed\xff\xff"),
        ],
        WireFormat::Doom3 => &[(&[], b"\xff\xffinfoResponse\0\0\0\0\x07")],
        WireFormat::QuakeWars => &[(&[], b"\xff\xffinfoExResponse\0\0\0\0\x07")],
        WireFormat::Teeworlds => &[
            (&[], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffinf37\0"),
            (&[], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiext7\0"),
            (&[], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiex+7\0"),
        ],
        WireFormat::Teeworlds7 => {
            &[(&[], b"\x04\0\0\0\0\0\x07\x05"), (&[], b"\x21\0\0\0\x07abcd\xff\xff\xff\xffinf3\x07")]
        }
        WireFormat::Bedrock => &[(&[], b"\x1c\0\0\0\0\0\0\0\x07")],
    };
    list.iter().map(|&(before, opening)| Opening(before, opening)).collect()
}

/// Bytes that mean something in some protocol.
const BYTES: &[u8] = b"\0\0\0\x01\x02\x07\x1b\x40\x41\x80\xff\xff\\\\\n\"\" 01-9^ax_player_score_\xc2\xa7\xe9";

struct Search {
    random: SplitMix64,
    server: SocketAddr,
}

impl Search {
    fn below(&mut self, end: usize) -> usize {
        (self.random.next_u64() % end as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => self.random.next_u64() as u8,
            _ => BYTES[self.below(BYTES.len())],
        }
    }

    fn mutated(&mut self, pattern: &[u8]) -> Vec<u8> {
        let mut pattern = pattern.to_vec();
        for _ in 0..1 + self.below(3) {
            let (at, byte) = (self.below(pattern.len() + 1), self.byte());
            match self.below(3) {
                0 if pattern.len() > 1 && at < pattern.len() => drop(pattern.remove(at)),
                1 if at < pattern.len() => pattern[at] = byte,
                _ => pattern.insert(at, byte),
            }
        }
        pattern
    }

    /// Seconds of one datagram, and whether it ends the scan.
    fn cost(&self, protocol: &Protocol, before: &[&[u8]], datagram: &[u8]) -> (f64, bool) {
        let mut exchange: Box<dyn Exchange> = protocol.start(NONCE, self.server);
        before.iter().for_each(|valid| drop(exchange.handle_datagram(0, valid)));
        let began = Instant::now();
        let mut handled = 0;
        let mut ends = false;
        while handled < REPEATS && !ends {
            handled += 1;
            let step = black_box(exchange.handle_datagram(0, black_box(datagram)));
            ends = matches!(step, Step::Done(_) | Step::Fail(_));
        }
        (began.elapsed().as_secs_f64() / handled as f64, ends)
    }
}

fn main() -> anyhow::Result<()> {
    let tries = std::env::var("CLQD_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(600);
    let mut search = Search { random: SplitMix64::seed_from_u64(1), server: "10.0.0.1:7777".parse()? };
    println!("{:15} {:>6} {:7} {:>10} {:>10}  opening and pattern", "protocol", "bytes", "", "us", "ns a byte");
    let mut done = Vec::new();
    for protocol in PROTOCOLS.iter().chain(PROTOCOLS.iter().filter_map(|protocol| protocol.fallback)) {
        if done.contains(&protocol.wire_format) {
            continue;
        }
        done.push(protocol.wire_format);
        for (size, ends) in SIZES.into_iter().flat_map(|size| [(size, true), (size, false)]) {
            let (mut most, mut at) = (0.0, String::new());
            for Opening(before, opening) in openings(protocol.wire_format) {
                let (mut best, mut pattern) = (0.0, vec![0]);
                for _ in 0..tries {
                    let tried = search.mutated(&pattern);
                    let body = tried.iter().copied().cycle().take(size - opening.len());
                    let datagram: Vec<u8> = opening.iter().copied().chain(body).collect();
                    let cost = || search.cost(protocol, before, &datagram);
                    let ((first, ended), (second, _)) = (cost(), cost());
                    if ended == ends && first.min(second) > best {
                        (best, pattern) = (first.min(second), tried);
                    }
                }
                if best > most {
                    (most, at) = (best, format!("{} + {}", opening.escape_ascii(), pattern.escape_ascii()));
                }
            }
            let how = if ends { "once" } else { "always" };
            let (us, ns_a_byte) = (most * 1e6, most * 1e9 / size as f64);
            let format = format!("{:?}", protocol.wire_format).to_lowercase();
            println!("{format:15} {size:6} {how:7} {us:10.1} {ns_a_byte:10.1}  {at}");
        }
    }
    Ok(())
}
