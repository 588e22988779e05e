//! A line of a client of the control socket. It is a request, or an error that names the reason.
#![no_main]

use clqd::api::protocol::decode_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Err((_, error)) = decode_request(input) {
        assert!(!error.message.is_empty());
    }
});
