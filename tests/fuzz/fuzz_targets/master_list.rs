//! A query of a master that sends anything: the first byte chooses the protocol.
#![no_main]

mod common;

use clqd::limits::MASTER_ADDRESSES_MAX;
use clqd::proto::Nonce;
use clqd::proto::master::{MasterQuery, MasterStep, MasterUrl};
use libfuzzer_sys::fuzz_target;

/// URLs, and what replies begin with, so that the fuzzer need not find it.
const MASTERS: [(&str, &[u8]); 9] = [
    ("dpmaster://h/68", b"\xff\xff\xff\xffgetserversResponse"),
    ("dpmaster://h/game/3", b"\xff\xff\xff\xffgetserversExtResponse"),
    ("quakeworldmaster://h", b"\xff\xff\xff\xffd\n"),
    ("quake2master://h", b"\xff\xff\xff\xffservers "),
    ("steammaster://h", b"\xff\xff\xff\xfff\n"),
    ("teeworldsmaster://h", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfflis2"),
    ("odamexmaster://h", b"\xa3\xdb\x0b\0"),
    ("zandronummaster://h", b"\xff\x06\0\0\0\0\x08"),
    ("teeworlds7master://h", b"\x21\0\0\0\x07MSTR\xff\xff\xff\xfflis2"),
];

/// The token of a Teeworlds 0.7 master, without which no list is accepted. Others ignore it.
const TOKEN: &[u8] = b"\x04\0\0\0\0\0\x07\x05MSTR";

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let (url, head) = MASTERS[usize::from(*choice) % MASTERS.len()];
    let url: MasterUrl = url.parse().expect("a URL");
    let mut query = MasterQuery::new(url.kind().clone(), std::net::Ipv4Addr::LOCALHOST.into(), Nonce(7));
    // Half of the inputs begin without it.
    if input.len() % 2 == 0 {
        query.handle(TOKEN);
    }
    for (number, datagram) in common::datagrams(input).enumerate() {
        let with_head = if number % 4 == 3 { datagram.to_vec() } else { [head, datagram].concat() };
        if query.handle(&with_head) == MasterStep::End && !query.is_unordered() {
            break;
        }
        assert!(query.request().len() <= 600);
    }
    assert!(query.finish().addresses.len() <= MASTER_ADDRESSES_MAX);
});
