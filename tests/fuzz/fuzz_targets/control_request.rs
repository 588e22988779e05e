//! The body of a request on the control socket. It is a request, or an error that names the reason.
#![no_main]

use clqd::api::REQUESTS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [request, body @ ..] = input else { return };
    if let Err(error) = (REQUESTS[usize::from(*request) % REQUESTS.len()].check)(body) {
        assert!(!error.message.is_empty());
    }
});
