//! A state directory that an earlier version wrote is migrated when it is opened; all
//! responses stay the same.
//!
//! `tests/fixtures/state-vN.tar.zst` contains two state directories of layout N (`state`,
//! written by `world`, and `replay`, the replay of `scan-log.jsonl`), and for each the
//! responses (`.jsonl`) of the version that wrote it. Before a layout changes, its last
//! version writes the fixture: `CLQD_FIXTURE=state-vN.tar.zst cargo test --test engine
//! -- --ignored write_fixture`.

mod world;

use std::path::Path;
use std::process::{Command, Stdio};

use clqd::engine::EngineSettings;
use clqd::state::State;
use clqd::store::StoreSettings;
use serde_json::Value;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("a command that is installed");
    assert!(status.success(), "{command:?}: {status}");
}

fn open_replayed(dir: &Path) -> State {
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: false }, EngineSettings::default())
        .expect("a state")
}

#[test]
#[ignore = "writes the fixture of the current layout; see the comment at the top of the file"]
fn write_fixture() {
    let name = std::env::var("CLQD_FIXTURE").expect("CLQD_FIXTURE names the file in tests/fixtures");
    let dir = tempfile::tempdir().unwrap();
    let (state, replay) = (dir.path().join("state"), dir.path().join("replay"));
    world::write(&state);
    let log = fixtures().join("scan-log.jsonl");
    run(Command::new(env!("CARGO_BIN_EXE_clqd")).arg("replay").arg(log).arg("--state").arg(&replay));
    for (path, opened) in [(&state, world::open(&state).expect("a state")), (&replay, open_replayed(&replay))] {
        let mut opened = opened;
        let lines = world::responses(&mut opened);
        world::write_lines(&lines, std::fs::File::create(path.with_extension("jsonl")).unwrap()).unwrap();
    }
    let tar = dir.path().join("fixture.tar");
    run(Command::new("tar")
        .arg("-C")
        .arg(dir.path())
        .arg("--sort=name")
        .arg("--mtime=2025-01-01 00:00Z")
        .arg("-cf")
        .arg(&tar)
        .args(["state", "state.jsonl", "replay", "replay.jsonl"]));
    let packed = zstd::encode_all(std::fs::File::open(&tar).unwrap(), 19).unwrap();
    std::fs::write(fixtures().join(name), packed).unwrap();
}

/// Unpacks a fixture.
fn unpack(fixture: &str, into: &Path) {
    let packed = std::fs::File::open(fixtures().join(fixture)).expect("a fixture");
    let mut tar =
        Command::new("tar").arg("-C").arg(into).arg("-x").stdin(Stdio::piped()).spawn().expect("tar is installed");
    zstd::stream::copy_decode(packed, tar.stdin.take().unwrap()).unwrap();
    assert!(tar.wait().unwrap().success());
}

/// A field in responses of layout 3, its current name, and the values with which it is renamed.
type RenamedField = (&'static str, &'static str, fn(&Value) -> bool);

/// Fields that were renamed since layout 3, with their current names. A field with several
/// meanings is renamed only if its value matches.
const FIELDS: [RenamedField; 13] = [
    ("ask", "query", any),
    ("due_ms", "next_scan_ms", any),
    ("from_ms", "start_ms", any),
    ("greylist", "greylist_reason", any),
    ("list", "players_listed", any),
    ("newest_slot_ms", "newest_ten_minutes_ms", any),
    ("place", "entry", any),
    ("player", "player_key", |value| !value.is_string()),
    ("raw", "raw_score", any),
    ("slots", "ten_minutes", Value::is_array),
    ("tie", "tie_breaker", any),
    ("to_ms", "end_ms", any),
    ("trusted", "exempt_checks", any),
];

fn any(_: &Value) -> bool {
    true
}

/// Values that were renamed since layout 3: field, value, current value.
const VALUES: [(&str, &str, &str); 3] =
    [("kind", "place", "entry"), ("phase", "next", "upcoming"), ("phase", "open", "running")];

/// A response of layout 3 with the current names of fields and values.
fn with_current_names(response: Value) -> Value {
    match response {
        Value::Object(fields) => fields.into_iter().map(|(field, value)| current_name(field, value)).collect(),
        Value::Array(items) => items.into_iter().map(with_current_names).collect(),
        other => other,
    }
}

fn current_name(field: String, value: Value) -> (String, Value) {
    if let Some((.., value)) = VALUES.iter().find(|(name, old, _)| *name == field && value == *old) {
        return (field, Value::from(*value));
    }
    let renamed = FIELDS.iter().find(|(old, _, matches)| *old == field && matches(&value));
    (renamed.map_or(field, |(_, new, _)| (*new).to_owned()), with_current_names(value))
}

/// Checks that a response contains all fields of an earlier one, with the same values. It may
/// have more fields.
fn contains_response(now: &Value, before: &Value) -> Result<(), String> {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => before.iter().try_for_each(|(field, before)| {
            let now = now.get(field).ok_or_else(|| format!("{field} is missing"))?;
            contains_response(now, before).map_err(|why| format!("{field}: {why}"))
        }),
        (Value::Array(now), Value::Array(before)) if now.len() == before.len() => {
            now.iter().zip(before).try_for_each(|(now, before)| contains_response(now, before))
        }
        _ if now == before => Ok(()),
        _ => Err(format!("{now} was {before}")),
    }
}

/// Removes the players of servers that missed scans. Layout 3 returned their last list; now it
/// is empty.
fn without_players_of_silent_servers(response: &mut Value) {
    match response {
        Value::Object(fields) if fields.contains_key("missed") => {
            fields.retain(|field, _| !matches!(field.as_str(), "players" | "players_listed"));
        }
        Value::Object(fields) => fields.values_mut().for_each(without_players_of_silent_servers),
        Value::Array(items) => items.iter_mut().for_each(without_players_of_silent_servers),
        _ => {}
    }
}

/// Removes the next scan of servers of classes 6 and 7, for which layout 3 planned none.
fn without_retries(response: &mut Value) {
    match response {
        Value::Object(fields) => {
            if fields.get("class").and_then(Value::as_u64) >= Some(6) {
                fields.remove("next_scan_ms");
            }
            fields.values_mut().for_each(without_retries);
        }
        Value::Array(items) => items.iter_mut().for_each(without_retries),
        _ => {}
    }
}

/// Sorts best positions: layout 3 had them in another order.
fn sort_best_positions(response: &mut Value) {
    match response {
        Value::Object(fields) => {
            if let Some(Value::Array(best)) = fields.get_mut("best") {
                best.sort_by_key(Value::to_string);
            }
            fields.values_mut().for_each(sort_best_positions);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_best_positions),
        _ => {}
    }
}

fn check_responses(opened: &mut State, expected: &Path) {
    let expected = std::fs::read_to_string(expected).unwrap();
    let mut lines = world::responses(opened);
    lines.iter_mut().for_each(sort_best_positions);
    assert_eq!(lines.len(), expected.lines().count());
    for (now, before) in lines.iter().zip(expected.lines()) {
        let before: Value = serde_json::from_str(before).unwrap();
        let mut before = with_current_names(before);
        without_players_of_silent_servers(&mut before);
        without_retries(&mut before);
        sort_best_positions(&mut before);
        let request = before.get("request").or(before.get("export"));
        let errors = now["rows"].is_string() && before["rows"].is_string(); // texts of errors may differ
        if before["request"]["cmd"] != "status" && !errors {
            contains_response(now, &before).unwrap_or_else(|why| panic!("{request:?}: {why}"));
        }
    }
}

#[test]
fn migrated_layout_3_state_gives_same_responses() {
    let dir = tempfile::tempdir().unwrap();
    unpack("state-v3.tar.zst", dir.path());
    let (state, replay) = (dir.path().join("state"), dir.path().join("replay"));
    // The second time the state is already migrated.
    for _ in 0..2 {
        check_responses(&mut world::open(&state).unwrap(), &dir.path().join("state.jsonl"));
        check_responses(&mut open_replayed(&replay), &dir.path().join("replay.jsonl"));
    }
    // More scans have the same result as on a state that this version wrote.
    let fresh = dir.path().join("fresh");
    world::write(&fresh);
    let [migrated, fresh] =
        [state, fresh].map(|dir| world::responses(&mut world::continue_play(world::open(&dir).unwrap())));
    assert!(migrated.len() > 400);
    for (migrated, fresh) in migrated.into_iter().zip(fresh) {
        assert_eq!(without_estimates(migrated), without_estimates(fresh));
    }
}

/// Removes estimates: those of migrated rows start with the counted values. And what old states do not have: the last week of
/// best positions, and tasks of the archive for windows that have ended.
fn without_estimates(mut response: Value) -> Value {
    match &mut response {
        Value::Object(fields) => {
            fields.retain(|field, _| {
                !matches!(field.as_str(), "time_est_ms" | "points_est" | "last_week" | "outbox_entries")
            });
            fields.values_mut().for_each(|value| *value = without_estimates(value.take()));
        }
        Value::Array(items) => {
            items.retain(|item| item.as_str().is_none_or(|item| !item.starts_with("TopBoards(")));
            items.iter_mut().for_each(|item| *item = without_estimates(item.take()));
        }
        _ => {}
    }
    response
}
