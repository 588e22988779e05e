//! A configuration file. Every problem has a line, and a valid file gives settings.
#![no_main]

use clqd::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Config::parse(text) {
        Ok(config) => {
            config.scan_settings().check().expect("settings that were checked");
        }
        Err(problems) => assert!(problems.iter().all(|problem| problem.line <= text.lines().count() + 1)),
    }
});
