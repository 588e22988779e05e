//! A complete A2S exchange with a server that sends anything.
#![no_main]

mod common;

use clqd::proto::{Dialogue, Step, a2s};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut query = a2s::Query::new();
    for datagram in common::datagrams(input) {
        if let Step::Done(snapshot) = query.on_datagram(0, datagram) {
            return common::check(&snapshot);
        }
        assert!(query.packet().len() <= 29);
    }
    if let Some(snapshot) = query.give_up() {
        common::check(&snapshot);
    }
});
