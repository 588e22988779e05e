//! The body of a request on the control socket. It is a request, or an error that names the reason.
#![no_main]

use clqd::api::{COMMANDS, decode_request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [command, body @ ..] = input else { return };
    if let Err(error) = decode_request(COMMANDS[usize::from(*command) % COMMANDS.len()], body) {
        assert!(!error.message.is_empty());
    }
});
