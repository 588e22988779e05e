//! Every command of README.md and docs/operations.md runs as it is written there, with the names of this test in place of
//! those that stand for the reader's. Each line of a block of shell either runs or is in [`NOT_RUN`].

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clqd::fleet::FaultShares;

use crate::sandbox::{Sandbox, fleet, wait_until};

/// Commands that this test does not run, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("clqd migrate", "it needs a database: tests/archive"),
    ("clqd scan --join", "it runs until it is stopped: tests/daemon/scanners.rs"),
    ("clqd cluster", "it needs a cluster: tests/daemon/cluster.rs"),
    ("--may replicate", "it only adds a section: tests/daemon/cluster.rs"),
    ("--master", "it needs the internet; tests/fleet imports from a simulated master"),
    ("clqd clock reset", "it is refused while the time is right: tests/daemon/clock.rs"),
    ("cargo run --release -- demo", "it runs until it is stopped: tests/cluster/demo.rs"),
    ("cargo build --release", "it builds the program, as the tests do"),
    ("cargo install cargo-deb", "it installs a program: tests/run --package"),
    ("bash systemd/package", "it takes minutes: tests/package"),
    ("apt-get install", "it installs a package: tests/package"),
    ("sudoedit", "it opens an editor"),
    ("systemctl", "it needs systemd: tests/package"),
    ("journalctl", "it needs systemd, and runs until it is stopped"),
    ("useradd", "it changes the system"),
    ("install -m ", "it changes the system"),
    ("install -d ", "it changes the system"),
    ("sed 's|/usr/bin/clqd|", "it changes the system; tests/daemon/systemd.rs tests the unit"),
];

/// Commands that read the state of a stopped daemon.
const WITHOUT_DAEMON: &[&str] = &["clqd log check", "clqd log export"];

/// The commands of a page: all lines of its `sh` blocks, and commands of `clqd` in its text and in other blocks; without `sudo`
/// and the path of the program.
fn commands_of(page: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{}/{page}", env!("CARGO_MANIFEST_DIR"))).expect("a page");
    let (mut lines, mut found, mut fence) = (Vec::new(), Vec::new(), None);
    let bare = |command: &str| {
        let command = command.strip_prefix("sudo ").unwrap_or(command);
        command.strip_prefix("target/release/").unwrap_or(command).to_owned()
    };
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), fence) {
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) => lines.extend(line.split(" #").next().map(|line| bare(line.trim()))),
            (None, Some(_)) => found.extend(line.strip_prefix("$ ").map(bare)),
            (None, None) => found.extend(line.split('`').skip(1).step_by(2).map(bare)),
        }
    }
    found.retain(|command| command.starts_with("clqd "));
    lines.extend(found);
    lines.retain(|line| !line.is_empty());
    lines
}

#[test]
fn every_command_of_the_readme_and_of_operations_runs() {
    let fleet = fleet(4, 61, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let first = &fleet.urls()[0];
    let (servers, dir) = (sandbox.path("servers.txt"), sandbox.path("documented").display().to_string());
    fs::write(&servers, format!("{first} ctf europe\n{} dm\n", fleet.urls()[1])).expect("written");
    let servers = servers.display().to_string();
    sandbox.replay(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl")), &sandbox.state());
    let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
    for page in ["README.md", "docs/operations.md"] {
        for command in commands_of(page) {
            match WITHOUT_DAEMON.contains(&&*command) {
                true => without.insert(command),
                false => with.insert(command),
            };
        }
    }
    assert!(with.len() > 20 && without.len() == 2, "{with:?} {without:?}");
    let run = |command: &str| {
        if !command.starts_with("clqd ") {
            return Some(format!("{command}: it is not run; add it to NOT_RUN, with the reason"));
        }
        let words = command.split(' ').skip(1).map(|word| match word {
            "URL" | "quake3://HOST:27960" | "quake3://127.1.0.3:37286" => first.clone(),
            "source://HOST:27015" => fleet.urls()[1].clone(),
            "FILE" | "servers.txt" => servers.clone(),
            "/etc/clqd/clqd.toml" => sandbox.config().display().to_string(),
            "2026-W47" => "2025-W47".to_owned(),
            // Each command has a directory of its own.
            "DIR" => format!("{dir}-{}", command.replace(' ', "-")),
            "NAME" => "Orbb".to_owned(),
            word => word.to_owned(),
        });
        let done = sandbox.run(words);
        (!done.status.success()).then(|| format!("{command}: {}{}", done.out, done.err))
    };
    let daemon = sandbox.start();
    // Most commands of these pages are for somebody who has added servers.
    assert_eq!(run("clqd servers add quake3://HOST:27960"), None);
    wait_until("the server is seen", || {
        sandbox.list(&[]).iter().any(|server| server["url"] == **first && server["online"] == true)
    });
    let is_run = |command: &&String| !NOT_RUN.iter().any(|(part, _)| command.contains(part));
    let mut failed: Vec<String> = with.iter().filter(is_run).filter_map(|command| run(command)).collect();
    let unused: Vec<_> =
        NOT_RUN.iter().filter(|(part, _)| !with.iter().any(|command| command.contains(part))).collect();
    assert!(unused.is_empty(), "{unused:?}");
    daemon.stop();
    failed.extend(without.iter().filter_map(|command| run(command)));
    assert!(failed.is_empty(), "{failed:#?}");
}
