//! Reads the sources and holds them against the invariants of the crate doc:
//! which floor imports which, who may name a runtime, a database, a clock.
//!
//! It reads text, not Rust: comments and test modules are cut away, names are
//! looked for in what is left. That finds every honest slip; somebody who
//! wants to get past it can.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Room and floor. The roof is 4; `clock` is below it, since the edges ask it too.
const ROOMS: &[(&str, u8)] = &[
    ("limits", 0),
    ("model", 0),
    ("nearest", 0),
    ("proto", 1),
    ("schedule", 1),
    ("rank", 1),
    ("board", 1),
    ("series", 1),
    ("engine", 2),
    ("scan", 3),
    ("store", 3),
    ("archive", 3),
    ("control", 3),
    ("scanlog", 3),
    ("config", 4),
    ("hot", 4),
    ("answer", 4),
    ("daemon", 4),
    ("cli", 4),
    ("fleet", 4),
];

/// What may be named only by some rooms, with why.
const NAMES: &[(&[&str], &[&str], &str)] = &[
    (&["sled::"], &["store"], "the database is behind the store"),
    (&["mysql_async", "mysql_common"], &["archive"], "MySQL is behind the archive"),
    (&["Utc::now", "Local::now", "SystemTime"], &["clock"], "only the clock asks what time it is"),
    (
        &["Instant::now"],
        &[
            // The monotonic clock that the others are held against.
            "clock", // Round trips and send pacing; never a snapshot's time.
            "scan",  // Progress shown to people.
            "cli",   // The simulated world's own time.
            "fleet",
        ],
        "only the clock asks what time it is; an Instant may measure how long something takes",
    ),
    (&["Commit {", "Commit::default()"], &["engine", "model"], "only the engine makes a commit"),
];

/// What floors 0 to 2 do not know.
const NOT_BELOW_THE_EDGES: &[&str] = &[
    "tokio",
    "serde_json",
    "governor",
    "std::fs",
    "std::env",
    "std::thread",
    "UdpSocket",
    "TcpStream",
    "UnixStream",
    "Instant",
    "RandomState",
    "collections::HashMap",
    "collections::HashSet",
    "thread_rng",
];

struct Source {
    /// Below `src/`.
    path: String,
    room: String,
    /// How many modules deep the file is; a room's own file is 1, `lib.rs` 0.
    depth: usize,
    /// Without comments and test modules.
    code: String,
    whole: String,
}

impl Source {
    fn new(path: &str, whole: &str) -> Source {
        let modules: Vec<&str> =
            path.trim_end_matches(".rs").split('/').filter(|name| !matches!(*name, "mod" | "lib" | "main")).collect();
        Source {
            path: path.to_owned(),
            room: modules.first().copied().unwrap_or_default().to_owned(),
            depth: modules.len(),
            code: code_of(whole),
            whole: whole.to_owned(),
        }
    }

    fn floor(&self) -> u8 {
        floor_of(&self.room).unwrap_or(4)
    }
}

fn floor_of(room: &str) -> Option<u8> {
    ROOMS.iter().find(|(name, _)| *name == room).map(|&(_, floor)| floor)
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of src") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(&root).expect("below src").display().to_string();
                found.push(Source::new(&name, &std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    assert!(found.len() > 20, "the sources were found");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The text without comments and without what follows `#[cfg(test)]`: tests
/// stand last in a file.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let end = line
            .match_indices("//")
            .map(|(at, _)| at)
            // `://` stands in URLs, which stand in texts.
            .find(|&at| at == 0 || line.as_bytes()[at - 1] != b':')
            .unwrap_or(line.len());
        code.push_str(&line[..end]);
        code.push('\n');
    }
    code
}

/// The rooms that the code names through `crate::` or enough `super::`.
fn rooms_named(source: &Source) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    let from_root = |rest: &str, rooms: &mut BTreeSet<String>| {
        let ident =
            |text: &str| text.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned);
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut from = 0;
            for (at, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => (),
                }
                if depth == 0 || (depth == 1 && c == ',') {
                    rooms.extend(ident(&group[from..at]));
                    from = at + 1;
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            rooms.extend(ident(rest));
        }
    };
    let whole_word = |at: usize| !source.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    for (at, path) in source.code.match_indices("crate::") {
        if whole_word(at) {
            from_root(&source.code[at + path.len()..], &mut rooms);
        }
    }
    for (at, _) in source.code.match_indices("super::") {
        if !whole_word(at) {
            continue;
        }
        let mut rest = &source.code[at..];
        let mut steps = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            (rest, steps) = (after, steps + 1);
        }
        if steps >= source.depth {
            from_root(rest, &mut rooms);
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// What is wrong with a source, one sentence each.
fn faults(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |text: String| faults.push(format!("src/{}: {text}", source.path));
    if !source.whole.starts_with("//!") {
        fault("does not open by saying what it is for".to_owned());
    }
    if source.code.contains("unsafe ") && !source.code.contains("forbid(unsafe_code)") {
        fault("names unsafe".to_owned());
    }
    if is_test_file(&source.path) || source.room.is_empty() {
        return faults;
    }
    let floor = source.floor();
    for room in rooms_named(source) {
        if room == source.room {
            continue;
        }
        if room == "clock" {
            if floor < 3 {
                fault(format!("floor {floor} asks the clock; time is an argument"));
            }
            continue;
        }
        let Some(other) = floor_of(&room) else {
            // An item of the crate's root; there are none but rooms.
            fault(format!("names crate::{room}, which is no room; is it in tests/house.rs?"));
            continue;
        };
        if room == "daemon" && source.room != "cli" {
            fault("imports daemon".to_owned());
        } else if other > floor {
            fault(format!("floor {floor} imports {room}, which is on floor {other}"));
        } else if other == floor && matches!(floor, 1 | 3) {
            fault(format!("imports its neighbour {room}"));
        }
    }
    for (names, rooms, why) in NAMES {
        for name in *names {
            if source.code.contains(name) && !rooms.contains(&source.room.as_str()) {
                fault(format!("names {name}: {why}"));
            }
        }
    }
    if floor <= 2 {
        for name in NOT_BELOW_THE_EDGES {
            if source.code.contains(name) {
                fault(format!(
                    "floor {floor} names {name}; floors 0 to 2 know no runtime, file, socket, clock or chance"
                ));
            }
        }
    }
    faults
}

#[test]
fn the_house_is_in_order() {
    let faults: Vec<String> = sources().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_module_has_a_floor_and_every_listed_module_exists() {
    let there: BTreeSet<String> =
        sources().into_iter().map(|source| source.room).filter(|room| !room.is_empty()).collect();
    let with_floor: BTreeSet<String> = ROOMS.iter().map(|(name, _)| (*name).to_owned()).collect();
    // The clock is on no floor: see `ROOMS`.
    let listed: BTreeSet<String> = with_floor.iter().cloned().chain(["clock".to_owned()]).collect();
    let missing: Vec<_> = there.symmetric_difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?} are in src/ or in tests/house.rs, and not in both");
    let allowed: BTreeSet<String> =
        NAMES.iter().flat_map(|(_, rooms, _)| rooms.iter().map(|room| (*room).to_owned())).collect();
    let unknown: Vec<_> = allowed.difference(&there).collect();
    assert!(unknown.is_empty(), "{unknown:?} are allowed names in tests/house.rs, and are not in src/");
}

/// The table is told apart from the file's comments: a row begins with key,
/// default, range and what a change needs.
#[test]
fn every_setting_is_in_the_readme() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("README.md");
    let mut section = "";
    let mut before = "";
    let mut rows = 0;
    for line in clqd::config::DEFAULTS.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((name, default)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            let key = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
            let range = before.trim_start_matches("# ");
            let row = format!("\n| `{key}` | `{default}` | {range} | ");
            assert!(readme.contains(&row), "README.md has no row that begins with{row}");
            rows += 1;
        }
        before = line;
    }
    assert_eq!(rows, clqd::config::keys::KEYS.len());
}

#[test]
fn each_rule_finds_its_fault() {
    #[track_caller]
    fn found(path: &str, code: &str, want: &str) {
        let faults = faults(&Source::new(path, &format!("//! A file.\n{code}\n")));
        match want {
            "" => assert!(faults.is_empty(), "{faults:?}"),
            want => assert!(faults.len() == 1 && faults[0].contains(want), "{want}: {faults:?}"),
        }
    }
    found("rank/mod.rs", "use crate::model::row::WeekRow;", "");
    found("rank/mod.rs", "use crate::board::Board;", "neighbour board");
    found("rank/elo.rs", "use crate::{model::row, series::{self, Ring}};", "neighbour series");
    found("rank/mod.rs", "fn f() { super::board::g() }", "neighbour board");
    found("rank/elo.rs", "fn f() { super::super::board::g() }", "neighbour board");
    found("rank/elo.rs", "use super::round::f;", "");
    found("rank/mod.rs", "use crate::engine::Event;", "floor 1 imports engine");
    found("model/row.rs", "use crate::clock;", "asks the clock");
    found("store/mod.rs", "use crate::archive::Job;", "neighbour archive");
    found("store/mod.rs", "use crate::config::Config;", "floor 3 imports config");
    found("fleet/mod.rs", "use crate::daemon::run;", "imports daemon");
    found("cli/run.rs", "use crate::daemon::run;", "");
    found("engine/mod.rs", "use tokio::sync::mpsc;", "names tokio");
    found("engine/mod.rs", "use std::collections::HashMap;", "names collections::HashMap");
    found("scan/mod.rs", "let db = sled::open(path);", "names sled::");
    found("daemon.rs", "use mysql_async::Pool;", "names mysql_async");
    found("store/mod.rs", "let now = Utc::now();", "names Utc::now");
    found("store/mod.rs", "let now = Instant::now();", "names Instant::now");
    found("store/mod.rs", "let c = Commit::default();", "only the engine");
    found("store/mod.rs", "unsafe { x() }", "unsafe");
    found("store/mod.rs", "// sled, tokio: see crate::daemon\nlet url = \"x://y\"; // crate::archive", "");
    found("store/mod.rs", "#[cfg(test)]\nmod tests { use crate::archive::Job; }", "");
    found("store/mod.rs", "use crate::nonsense::x;", "no room");
    let silent = faults(&Source::new("store/mod.rs", "use std::io;\n"));
    assert!(silent.len() == 1 && silent[0].contains("what it is for"));
}
