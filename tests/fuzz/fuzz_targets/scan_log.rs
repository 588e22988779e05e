//! A line of a scan log, as any text. It is checked and read alike, and what was read
//! is written as a line that reads the same.
#![no_main]

use clqd::scanlog;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = scanlog::parse(text);
    let moment = scanlog::check_line(text).ok();
    assert_eq!(moment, read.as_ref().ok().map(|(_, outcome)| outcome.t_ms()));
    let Ok((url, outcome)) = read else { return };
    let mut line = Vec::new();
    scanlog::write(&mut line, &url, &outcome);
    let again = scanlog::parse(std::str::from_utf8(&line).expect("JSON").trim_end());
    assert_eq!(again.expect("it was written by us"), (url, outcome));
});
