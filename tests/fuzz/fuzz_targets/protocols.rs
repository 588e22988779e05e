//! A scan of any protocol with a server that sends anything. Each datagram may begin with the
//! opening of a valid reply, with the right nonce, so that the fuzzer need not find it.
//! `CLQD_FUZZ_SCHEME=cube2` looks at one protocol only; the fallback of one is `minecraft+`.
#![no_main]

mod common;

use std::sync::LazyLock;

use clqd::proto::{DetailLevel, Nonce, PROTOCOLS, Protocol, Step, Transport, WireFormat};
use libfuzzer_sys::fuzz_target;

const NONCE: Nonce = Nonce(7);

static TRIED: LazyLock<Vec<&Protocol>> = LazyLock::new(|| {
    let scheme = std::env::var("CLQD_FUZZ_SCHEME").ok();
    let all = PROTOCOLS.iter().chain(PROTOCOLS.iter().filter_map(|own| own.fallback));
    let name = |protocol: &Protocol| format!("{}{}", protocol.scheme, if protocol.is_fallback { "+" } else { "" });
    let tried: Vec<_> = all.filter(|one| scheme.as_ref().is_none_or(|scheme| *scheme == name(one))).collect();
    assert!(!tried.is_empty(), "CLQD_FUZZ_SCHEME: there is no {scheme:?}");
    tried
});

fn openings(format: WireFormat) -> &'static [&'static [u8]] {
    match format {
        WireFormat::Quake3 => &[b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000007\\"],
        WireFormat::QuakeWorld => &[b"\xff\xff\xff\xffn\\", b"\xff\xff\xff\xffn"],
        WireFormat::Quake2 => &[b"\xff\xff\xff\xffprint\n\\"],
        WireFormat::Source => &[b"\xff\xff\xff\xffI", b"\xff\xff\xff\xffD", b"\xff\xff\xff\xffA", b"\xfe\xff\xff\xff"],
        WireFormat::GameSpy1 => &[b"\\", b"\\queryid\\1.1\\"],
        WireFormat::GameSpy2 => &[b"\x00\x00\x00\x00\x07"],
        WireFormat::GameSpy3 => &[b"\x09\x00\x00\x00\x07", b"\x00\x00\x00\x00\x07splitnum\0"],
        WireFormat::Unreal2 => &[b"\x80\0\0\0\0", b"\x80\0\0\0\x02"],
        WireFormat::AllSeeingEye => &[b"EYE1"],
        WireFormat::Samp => {
            &[b"SAMP\x0a\0\0\x01\x61\x1ep\0\0\0\x07", b"SAMP\x0a\0\0\x01\x61\x1ei", b"SAMP\x0a\0\0\x01\x61\x1ec"]
        }
        WireFormat::Doom3 => &[b"\xff\xffinfoResponse\0\0\0\0\x07"],
        WireFormat::QuakeWars => &[b"\xff\xffinfoExResponse\0\0\0\0\x07"],
        WireFormat::Teeworlds => &[
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffinf37\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiext7\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiex+7\0",
        ],
        WireFormat::Teeworlds7 => &[b"\x04\0\0\0\0\0\x07\x05", b"\x21\0\0\0\x07abcd\xff\xff\xff\xffinf3\x07"],
        WireFormat::MinecraftStatus => &[b"\x80\x10\0\xfd\x0f{", b"\x10\0\x0e{"],
        WireFormat::FiveM => &[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"clients\":1}",
            b"HTTP/1.1 200 OK\r\n\r\n[",
        ],
        WireFormat::Frostbite => &[
            b"\x01\0\0\x40\x26\0\0\0\x03\0\0\0\x02\0\0\0OK\0\x03\0\0\0BF4\0\x06\0\0\x00157186\0",
            b"\x02\0\0\x40\x40\0\0\0\x04\0\0\0\x02\0\0\0OK\0",
            b"\x03\0\0\x40\x40\0\0\0\x04\0\0\0\x02\0\0\0OK\0",
        ],
        WireFormat::Bzflag => &[b"BZFS0221\0", b"\0\x04qp\0\x08\0\x02", b"\x00\xa7ap"],
        WireFormat::Sauerbraten => &[
            b"\xff\xff\x01\0\0\0\0\0\0\0\0\x07",
            b"\x01\0\0\0\0\0\0\0\0\x07",
            b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0",
        ],
        WireFormat::AssaultCube => {
            &[b"\x01\0\0\0\0\0\0\0\0\x07\x80\xb3\x04\0", b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0"]
        }
        WireFormat::RedEclipse => {
            &[b"\x01\0\0\0\0\0\0\0\0\x07", b"\x01\0\0\0\0\0\0\0\0\x07\x02\x08\x80\xdc\0\x02\0\x0a\x10\x04\0\0e\0h\0"]
        }
        WireFormat::Zandronum => &[b"\xff\x77\x5d\x56\x00\x07\0\0\0", b"\x04"],
        WireFormat::Odamex => &[b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0\x07\0\0\0\x07\0\0\x0011.0.0\0"],
        WireFormat::Armagetron => &[b"\0\x33\0\0"],
        WireFormat::Mumble => &[b"\0\x01\x03\x04\0\0\0\0\0\0\0\x07"],
        WireFormat::Bedrock => &[b"\x1c\0\0\0\0\0\0\0\x07"],
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else { return };
    let protocol = TRIED[usize::from(choice) % TRIED.len()];
    let openings = openings(protocol.wire_format);
    let mut exchange = protocol.start(NONCE, "10.0.0.1:7777".parse().expect("an address"));
    for (t_ms, datagram) in (0..).zip(common::datagrams(input)) {
        let Some((&choice, rest)) = datagram.split_first() else { continue };
        // The last choice is a datagram without an opening.
        let opening = openings.get(usize::from(choice) % (openings.len() + 1)).copied().unwrap_or_default();
        let datagram = [opening, rest].concat();
        match exchange.handle_datagram(t_ms * 1_000, &datagram) {
            Step::Done(snapshot) => {
                common::check(&snapshot);
                let _ = exchange.details(&datagram, DetailLevel::Rules);
                return;
            }
            Step::Fail(_) => break,
            _ => {}
        }
        assert!(exchange.request().len() <= 1_024);
    }
    if protocol.transport == Transport::Tcp {
        let _ = exchange.handle_end(1_000_000);
    }
    if let Some(snapshot) = exchange.partial_snapshot() {
        common::check(&snapshot);
    }
    let _ = exchange.details(b"", DetailLevel::Rules);
});
