//! A line of a scan log with any text. A parsed line that is written must parse to the same value.
#![no_main]

use clqd::log::LogEvent;
use clqd::scan_log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(event) = scan_log::parse(text) else { return };
    let line = encode(&event);
    let again = scan_log::parse(line.trim_end()).expect("a written line");
    assert_eq!(encode(&again), line);
});

fn encode(event: &LogEvent) -> String {
    let mut line = Vec::new();
    scan_log::write_event(&mut line, event);
    String::from_utf8(line).expect("JSON")
}
