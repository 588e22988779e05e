//! Only fragments of split replies, so that the fuzzer covers reassembly better.
#![no_main]

mod common;

use clqd::limits::REPLY_BYTES_MAX;
use clqd::proto::a2s::fragments::{Reassembler, Reassembly};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut fragments = Reassembler::default();
    for datagram in common::datagrams(input) {
        if let Ok(Reassembly::Complete(whole)) = fragments.add(datagram) {
            assert!(whole.len() <= REPLY_BYTES_MAX);
        }
    }
});
