//! A line of a scan log with any text. Checking and parsing must agree, and a parsed line
//! that is written must parse to the same value.
#![no_main]

use clqd::log::LogEvent;
use clqd::scan_log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parsed = scan_log::parse(text);
    let t_ms = scan_log::check_line(text).ok();
    assert_eq!(t_ms, parsed.as_ref().ok().map(LogEvent::t_ms));
    let Ok(event) = parsed else { return };
    let line = encode(&event);
    let again = scan_log::parse(line.trim_end()).expect("a written line");
    assert_eq!(encode(&again), line);
});

fn encode(event: &LogEvent) -> String {
    let mut line = Vec::new();
    scan_log::write_event(&mut line, event);
    String::from_utf8(line).expect("JSON")
}
