//! A state directory that an earlier version wrote is migrated when it is opened: all
//! answers stay as that version gave them.
//!
//! `tests/fixtures/state-vN.tar.zst` holds two state directories of layout N (`state`,
//! made by `world`, and `replay`, the replay of `scan-log.jsonl`), and beside each the
//! answers (`.jsonl`) that the version gave which wrote it. Before a layout changes, its
//! last version writes the fixture: `CLQD_FIXTURE=state-vN.tar.zst cargo test --test
//! migration -- --ignored write_the_fixture`.

#[path = "migration/world.rs"]
mod world;

mod scans;

use std::path::Path;
use std::process::{Command, Stdio};

use clqd::engine::EngineSettings;
use clqd::hot::Hot;
use clqd::store::StoreSettings;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("it is installed");
    assert!(status.success(), "{command:?}: {status}");
}

fn open_replayed(dir: &Path) -> Hot {
    Hot::open(dir, StoreSettings { cache_bytes: 16 << 20, create: false }, EngineSettings::default()).expect("a state")
}

#[test]
#[ignore = "writes the fixture of the present layout; see the head of the file"]
fn write_the_fixture() {
    let name = std::env::var("CLQD_FIXTURE").expect("CLQD_FIXTURE names the file in tests/fixtures");
    let place = tempfile::tempdir().unwrap();
    let (state, replay) = (place.path().join("state"), place.path().join("replay"));
    world::write(&state);
    let log = fixtures().join("scan-log.jsonl");
    run(Command::new(env!("CARGO_BIN_EXE_clqd")).arg("replay").arg(log).arg("--state").arg(&replay));
    for (dir, hot) in [(&state, world::open(&state).expect("a state")), (&replay, open_replayed(&replay))] {
        let mut hot = hot;
        let lines = world::answers(&mut hot);
        world::write_lines(&lines, std::fs::File::create(dir.with_extension("jsonl")).unwrap()).unwrap();
    }
    let tar = place.path().join("fixture.tar");
    run(Command::new("tar")
        .arg("-C")
        .arg(place.path())
        .arg("--sort=name")
        .arg("--mtime=2025-01-01 00:00Z")
        .arg("-cf")
        .arg(&tar)
        .args(["state", "state.jsonl", "replay", "replay.jsonl"]));
    let packed = zstd::encode_all(std::fs::File::open(&tar).unwrap(), 19).unwrap();
    std::fs::write(fixtures().join(name), packed).unwrap();
}
