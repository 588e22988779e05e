//! One datagram as the reply to a `getstatus`. A prefix with the right nonce is added, so
//! that the fuzzer need not find it.
#![no_main]

mod common;

use clqd::proto::{Nonce, quake3};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let nonce = Nonce(7);
    if let Ok(snapshot) = quake3::decode(0, input, nonce) {
        common::check(&snapshot);
    }
    let datagram = [b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000007\\", input].concat();
    if let Ok(snapshot) = quake3::decode(0, &datagram, nonce) {
        common::check(&snapshot);
    }
});
