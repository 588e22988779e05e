//! Checks the layers and invariants of docs/architecture.md: which layer may import which, and
//! which modules may use a runtime, a database or a clock.
//!
//! The test reads text, not Rust: it removes comments and test code, and searches the rest
//! for names. It finds mistakes, not deliberate evasion.

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/picture.rs"]
mod picture;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every top-level module and its layer. `clock` has none: layers 3 and up may use it.
const MODULES: &[(&str, u8)] = &[
    ("games", 0),
    ("geo", 0),
    ("limits", 0),
    ("model", 0),
    ("nearest", 0),
    ("proto", 1),
    ("schedule", 1),
    ("rank", 1),
    ("board", 1),
    ("series", 1),
    ("view", 1),
    ("engine", 2),
    ("scan", 4),
    ("store", 4),
    ("archive", 4),
    ("api", 3),
    ("client", 4),
    ("scan_log", 4),
    ("log", 3),
    ("lines", 4),
    ("web", 4),
    ("capture", 5),
    ("config", 5),
    ("state", 5),
    ("truth", 5),
    ("logging", 5),
    ("master", 5),
    ("shutdown", 5),
    ("daemon", 5),
    ("cli", 5),
    ("fleet", 5),
];

/// Names that only some modules may use, with the reason.
const RESTRICTED_NAMES: &[(&[&str], &[&str], &str)] = &[
    (&["sled::"], &["store"], "the database is behind the store"),
    (&["utoipa"], &["view", "api", "web"], "schemas are of what readers get"),
    (&["mysql_async", "mysql_common"], &["archive"], "MySQL is behind the archive"),
    (
        &["ureq::"],
        &["master", "daemon"],
        "requests over HTTP are behind the lists of servers, and the webhooks of the daemon",
    ),
    (&["axum"], &["web"], "the HTTP server is behind the web interface"),
    (&["hyper"], &["web", "client"], "HTTP is behind the web interface and the client of the control socket"),
    (&["Commit {", "Commit::default()"], &["engine", "model"], "only the engine creates a commit"),
];

/// Names that layers 0 to 2 must not use.
const NOT_IN_PURE_LAYERS: &[&str] = &[
    "tokio",
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

/// Names that the scan engine without IO must not use.
const NOT_IN_SCAN_CORE: &[&str] =
    &["tokio", "nix::", "std::fs", "std::thread", "UdpSocket", "Instant::", "SystemTime", "getrandom"];

struct Source {
    /// Below `src/`.
    path: String,
    module: String,
    /// Depth of the module in the module tree: 1 for a top-level module, 0 for `lib.rs`.
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
            module: modules.first().copied().unwrap_or_default().to_owned(),
            depth: modules.len(),
            code: code_of(whole),
            whole: whole.to_owned(),
        }
    }

    fn layer(&self) -> u8 {
        layer_of(&self.module).unwrap_or(5)
    }
}

fn layer_of(module: &str) -> Option<u8> {
    MODULES.iter().find(|(name, _)| *name == module).map(|&(_, layer)| layer)
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory of src") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
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

/// The text without comments and without items under `#[cfg(test)]`.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    // Open braces of the test item that is being skipped.
    let mut skipped: Option<i32> = None;
    for line in text.lines() {
        let end = line
            .match_indices("//")
            .map(|(at, _)| at)
            // A URL in a string contains `://`.
            .find(|&at| at == 0 || line.as_bytes()[at - 1] != b':')
            .unwrap_or(line.len());
        let line = &line[..end];
        if let Some(depth) = &mut skipped {
            *depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            if *depth == 0 && line.trim_end().ends_with([';', '}', ',']) {
                skipped = None;
            }
        } else if line.trim_start().starts_with("#[cfg(test)]") {
            skipped = Some(0);
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The modules that the code names through `crate::` or enough `super::`.
fn modules_named(source: &Source) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    let from_root = |rest: &str, modules: &mut BTreeSet<String>| {
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
                    modules.extend(ident(&group[from..at]));
                    from = at + 1;
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            modules.extend(ident(rest));
        }
    };
    let whole_word = |at: usize| !source.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    for (at, path) in source.code.match_indices("crate::") {
        if whole_word(at) {
            from_root(&source.code[at + path.len()..], &mut modules);
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
            from_root(rest, &mut modules);
        }
    }
    modules.retain(|module| !module.is_empty());
    modules
}

/// The violations in a source, one sentence each.
fn violations(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    let mut report = |text: String| violations.push(format!("src/{}: {text}", source.path));
    if !source.whole.starts_with("//!") {
        report("has no module documentation".to_owned());
    }
    if source.code.contains("unsafe ") && !source.code.contains("forbid(unsafe_code)") {
        report("names unsafe".to_owned());
    }
    if is_test_file(&source.path) || source.module.is_empty() {
        return violations;
    }
    let layer = source.layer();
    for module in modules_named(source) {
        if module == source.module {
            continue;
        }
        if module == "clock" {
            if layer < 3 {
                report(format!("layer {layer} uses the clock; pass time as an argument"));
            }
            continue;
        }
        let Some(other) = layer_of(&module) else {
            // The crate root contains only modules.
            report(format!("names crate::{module}, which is not a module; is it in tests/architecture.rs?"));
            continue;
        };
        if module == "daemon" && source.module != "cli" {
            report("imports daemon".to_owned());
        } else if other > layer {
            report(format!("layer {layer} imports {module}, which is on layer {other}"));
        } else if other == layer && matches!(layer, 1 | 4) {
            report(format!("imports its sibling {module}"));
        }
    }
    for (names, modules, why) in RESTRICTED_NAMES {
        for name in *names {
            if source.code.contains(name) && !modules.contains(&source.module.as_str()) {
                report(format!("names {name}: {why}"));
            }
        }
    }
    if layer <= 2 {
        for name in NOT_IN_PURE_LAYERS {
            if source.code.contains(name) {
                report(format!(
                    "layer {layer} names {name}; layers 0 to 2 use no runtime, file, socket, clock or randomness"
                ));
            }
        }
    }
    if layer <= 2 && source.module != "proto" && source.code.contains("serde_json") {
        report(format!("layer {layer} names serde_json; only replies of game servers are JSON there"));
    }
    let read_model = source.code.split("impl ReadModel {").skip(1).filter_map(|code| code.split("\n}\n").next());
    if read_model.into_iter().any(|methods| methods.contains("&mut self")) {
        report("a method of ReadModel changes it; readers have one that is shared".to_owned());
    }
    if source.path.starts_with("scan/core/") {
        let used = NOT_IN_SCAN_CORE.iter().filter(|name| source.code.contains(**name));
        used.for_each(|name| report(format!("the scan engine without IO names {name}")));
    }
    violations
}

#[test]
fn modules_import_only_lower_layers() {
    let violations: Vec<String> = sources().iter().flat_map(violations).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn no_files_need_each_other() {
    let circles = circles::circles(&sources());
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn modules_and_listed_layers_match() {
    let found: BTreeSet<String> =
        sources().into_iter().map(|source| source.module).filter(|module| !module.is_empty()).collect();
    let with_layer: BTreeSet<String> = MODULES.iter().map(|(name, _)| (*name).to_owned()).collect();
    // `clock` has no layer: see `MODULES`.
    let listed: BTreeSet<String> = with_layer.iter().cloned().chain(["clock".to_owned()]).collect();
    let missing: Vec<_> = found.symmetric_difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?} are only in one of src/ and tests/architecture.rs");
    let allowed: BTreeSet<String> =
        RESTRICTED_NAMES.iter().flat_map(|(_, modules, _)| modules.iter().map(|module| (*module).to_owned())).collect();
    let unknown: Vec<_> = allowed.difference(&found).collect();
    assert!(unknown.is_empty(), "{unknown:?} are allowed names in tests/architecture.rs but not in src/");
}

#[test]
fn each_rule_reports_violation() {
    #[track_caller]
    fn check(path: &str, code: &str, want: &str) {
        let violations = violations(&Source::new(path, &format!("//! A file.\n{code}\n")));
        match want {
            "" => assert!(violations.is_empty(), "{violations:?}"),
            want => assert!(violations.len() == 1 && violations[0].contains(want), "{want}: {violations:?}"),
        }
    }
    check("rank/mod.rs", "use crate::model::row::WeekRow;", "");
    check("rank/mod.rs", "use crate::board::Board;", "sibling board");
    check("rank/elo.rs", "use crate::{model::row, series::{self, Ring}};", "sibling series");
    check("rank/mod.rs", "fn f() { super::board::g() }", "sibling board");
    check("rank/elo.rs", "fn f() { super::super::board::g() }", "sibling board");
    check("rank/elo.rs", "use super::round::f;", "");
    check("rank/mod.rs", "use crate::engine::Event;", "layer 1 imports engine");
    check("model/row.rs", "use crate::clock;", "uses the clock");
    check("store/mod.rs", "use crate::archive::Job;", "sibling archive");
    check("store/mod.rs", "use crate::config::Config;", "layer 4 imports config");
    check("fleet/mod.rs", "use crate::daemon::run;", "imports daemon");
    check("cli/run.rs", "use crate::daemon::run;", "");
    check("engine/mod.rs", "use tokio::sync::mpsc;", "names tokio");
    check("engine/mod.rs", "use std::collections::HashMap;", "names collections::HashMap");
    check("engine/a.rs", "impl Engine {\n    fn f(&mut self) {}\n}\n\nimpl ReadModel {\n    fn g(&self) {}\n}", "");
    check("engine/a.rs", "impl ReadModel {\n    fn f(&mut self) {}\n}", "a method of ReadModel changes it");
    check("scan/mod.rs", "let db = sled::open(path);", "names sled::");
    check("daemon.rs", "use mysql_async::Pool;", "names mysql_async");
    check("store/mod.rs", "let c = Commit::default();", "only the engine");
    check("store/mod.rs", "unsafe { x() }", "unsafe");
    check("store/mod.rs", "// sled, tokio: see crate::daemon\nlet url = \"x://y\"; // crate::archive", "");
    check("store/mod.rs", "#[cfg(test)]\nmod tests { use crate::archive::Job; }", "");
    check("store/mod.rs", "use crate::nonsense::x;", "not a module");
    let undocumented = violations(&Source::new("store/mod.rs", "use std::io;\n"));
    assert!(undocumented.len() == 1 && undocumented[0].contains("module documentation"));
}
