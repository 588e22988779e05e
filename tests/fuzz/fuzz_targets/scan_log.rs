//! A line of a scan log with any text. Checking and parsing must agree, and a parsed line
//! that is written must parse to the same value.
#![no_main]

use clqd::engine::Outcome;
use clqd::model::ServerUrl;
use clqd::scan_log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parsed = scan_log::parse(text);
    let t_ms = scan_log::check_line(text).ok();
    assert_eq!(t_ms, parsed.as_ref().ok().map(|(_, outcome)| outcome.t_ms()));
    let Ok((url, outcome)) = parsed else { return };
    let line = encode(&url, &outcome);
    let (url_again, outcome_again) = scan_log::parse(line.trim_end()).expect("a written line");
    assert_eq!(encode(&url_again, &outcome_again), line);
});

fn encode(url: &ServerUrl, outcome: &Outcome) -> String {
    let mut line = Vec::new();
    scan_log::write(&mut line, url, outcome);
    String::from_utf8(line).expect("JSON")
}
