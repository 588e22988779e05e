//! A log that never changes, and what the rules made of it. If a change of the code changes a result, this
//! fails unless `RULES_NUMBER` was raised: then a daemon would apply a part of a log by the old rules and
//! the rest by the new ones, and a replay would give other rankings.
//!
//! `tests/fixtures/golden/log.jsonl.zst` has random scans with screened servers, commands and settings.
//! `export-N.jsonl.zst` is the export of all its weeks by rules N. After RULES_NUMBER was raised, write the
//! export of the new rules: `CLQD_WRITE_GOLDEN=1 cargo test --test rules golden`.

use std::fs;
use std::path::{Path, PathBuf};

use clqd::cli::replay::Replay;
use clqd::config::Config;
use clqd::model::calendar::week_label;
use clqd::rank::{RULES_NUMBER, RULES_NUMBER_MIN};
use clqd::scan_log::{self, LossyReader};
use clqd::state::State;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden").join(name)
}

/// The export of all weeks, by rules of a number.
fn export(number: u32) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = Config::default();
    config.rules.number = number;
    config.store.keep_weeks = 52;
    let mut state = State::open_configured(&config, dir.path(), true).expect("a state");
    let mut replay = Replay::new(&mut state, 64 << 20).with_config(config);
    let mut events = LossyReader::new(scan_log::open(&fixture("log.jsonl.zst")).expect("a log"));
    events.try_for_each(|event| replay.apply(event?)).expect("a replay");
    replay.finish().expect("a replay");
    let mut out = Vec::new();
    for week in state.engine.model().weeks() {
        clqd::cli::export::write(&state, &week_label(week.week), &mut out).expect("an export");
    }
    String::from_utf8(out).expect("text")
}

#[test]
fn golden_log_gives_the_same_results_by_the_same_rules() {
    for number in RULES_NUMBER_MIN..=RULES_NUMBER {
        let (got, path) = (export(number), fixture(&format!("export-{number}.jsonl.zst")));
        if std::env::var_os("CLQD_WRITE_GOLDEN").is_some() && !path.exists() {
            fs::write(&path, zstd::encode_all(got.as_bytes(), 19).expect("compressed")).expect("a file");
        }
        let packed = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let want = String::from_utf8(zstd::decode_all(packed).expect("zstd")).expect("text");
        let difference = got.lines().zip(want.lines()).find(|(got, want)| got != want);
        assert!(
            got == want,
            "results of rules {number} have changed: {} rows, {} before; the first difference:\n   got {}\nbefore {}\n\
             If that is intended, raise RULES_NUMBER (src/rank/mod.rs).",
            got.lines().count(),
            want.lines().count(),
            difference.map_or("", |it| it.0),
            difference.map_or("", |it| it.1),
        );
        assert!(want.lines().count() > 500, "the log has many rows");
    }
}
