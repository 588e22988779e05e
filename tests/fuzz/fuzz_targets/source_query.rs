//! A complete A2S exchange with a server that sends anything.
#![no_main]

mod common;

use clqd::proto::{Exchange, Step, a2s};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut query = a2s::A2sQuery::new();
    for datagram in common::datagrams(input) {
        if let Step::Done(snapshot) = query.handle_datagram(0, datagram) {
            return common::check(&snapshot);
        }
        assert!(query.request().len() <= 29);
    }
    if let Some(snapshot) = query.partial_snapshot() {
        common::check(&snapshot);
    }
});
