//! The exit code of every command: 0 success, 1 failure, 2 usage error; and with `--json`
//! every line of standard output is an object with a `kind`, also after an error.
//!
//! The effects of the commands are tested in `commands`.

use crate::sandbox::{CommandOutput, Sandbox, fleet, rows, silent_socket};
use clqd::fleet::FaultShares;
use nix::sys::signal::Signal;

/// Runs a command without and with `--json`; both must exit with this code. The output of the
/// first contains `expected`; so does the error of a usage error with `--json`.
#[track_caller]
fn check(sandbox: &Sandbox, line: &str, code: i32, expected: &str) {
    let args: Vec<&str> = line.split(' ').collect();
    let plain = sandbox.run(&args);
    assert_eq!(plain.status.code(), Some(code), "{line}: {}{}", plain.out, plain.err);
    assert!((plain.out.clone() + &plain.err).contains(expected), "{line}: {}{}", plain.out, plain.err);
    let json = sandbox.run([&["--json"], &args[..]].concat());
    assert_eq!(json.status.code(), Some(code), "--json {line}: {}{}", json.out, json.err);
    check_kinds(line, &json);
    if code == 2 {
        let lines = rows(&json.out);
        assert_eq!(lines.len(), 1, "{line}: {}", json.out);
        assert_eq!(lines[0]["kind"], "error", "{line}: {}", json.out);
        assert!(lines[0]["code"] == "usage" || lines[0]["code"] == "bad_request", "{line}: {}", json.out);
        let message = lines[0]["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{line}: {message}");
        assert_eq!(plain.out, "", "{line}: a usage error prints nothing to standard output");
    }
}

#[track_caller]
fn check_kinds(line: &str, json: &CommandOutput) {
    for row in rows(&json.out) {
        assert!(row["kind"].is_string(), "--json {line}: {row}");
    }
}

/// Errors that are detected before a daemon is contacted.
const USAGE_ERRORS: &[(&str, &str)] = &[
    ("", "Usage"),
    ("statsu", "status"),
    ("status --timeout 0", "--timeout"),
    ("servers add nonsense", "is no server URL"),
    ("servers add quake3://a:1 nonsense", "is no server URL"),
    ("servers add xonotik://a:26000", "did you mean xonotic"),
    ("servers remove nonsense", "is no server URL"),
    ("servers show nonsense", "is no server URL"),
    ("servers tag nonsense --add ctf", "is no server URL"),
    ("servers tag --drop ctf", "--yes"),
    ("servers list --class 8", "expected 1 to 7"),
    ("rescan nonsense", "is no server URL"),
    ("rescan", "<URL|--all-unknown>"),
    ("top nonsense", "is no server URL"),
    ("board page --server nonsense", "is no server URL"),
    ("board at 0 --game g", "not in 1.."),
    ("board delete-before 1763683200000", "--yes"),
    ("archive resend --weeks 2026W47", "ISO week label"),
    ("archive resend --weeks 2026-W47..", "ISO week label"),
    ("archive resend --weeks 2026-W47..2026-W45", "after the last"),
    ("player forget Visor --game baseq3", "--yes"),
    ("player allow abc", "64 hexadecimal digits"),
    ("greylist nonsense --lift", "is no server URL"),
    ("query nonsense", "is no server URL"),
    ("query xonotik://127.0.0.1:26000", "scheme \"xonotik\" is not known"),
    ("query xonotik://127.0.0.1", "scheme \"xonotik\" is not known"),
    ("query --timeout-ms 5 quake3://a", "100..=30000"),
    ("export --state /no/state --week 2026W47", "ISO week label"),
    ("export", "--week"),
    ("fleet --speed 0", "expected a number above 0"),
    ("fleet --source-share 2", "expected a number from 0 to 1"),
    ("fleet --activity -1", ""),
    ("fleet --faults x", "--faults"),
    ("servers import --master dpmaster://h", "is not a protocol number"),
    ("servers import --master quake3://h/68", "quake3"),
    ("demo --days 71", "--days"),
];

#[test]
fn usage_error_exits_2_without_daemon() {
    let sandbox = Sandbox::new("");
    for (line, expected) in USAGE_ERRORS {
        match line.is_empty() {
            true => assert_eq!(sandbox.run([] as [&str; 0]).status.code(), Some(2)),
            false => check(&sandbox, line, 2, expected),
        }
    }
    for line in ["--json fleet", "--json demo"] {
        let done = sandbox.run(line.split(' '));
        assert_eq!(done.status.code(), Some(2), "{line}: {}", done.out);
        check_kinds(line, &done);
    }
}

#[test]
fn failure_exits_1_without_daemon() {
    let sandbox = Sandbox::new("");
    let list = sandbox.path("list");
    std::fs::write(&list, "quake3://127.0.0.1:1\n").unwrap();
    let (_socket, silent) = silent_socket();
    for (line, expected) in [
        ("servers add quake3://127.0.0.1:1".to_owned(), "not running"),
        ("servers remove quake3://127.0.0.1:1".to_owned(), "not running"),
        (format!("servers import {}", list.display()), "not running"),
        ("servers import /no/list".to_owned(), "/no/list"),
        ("rescan --all-unknown".to_owned(), "not running"),
        ("greylist quake3://127.0.0.1:1 --lift".to_owned(), "not running"),
        ("reload".to_owned(), "not running"),
        ("archive resend --weeks 2026-W47".to_owned(), "not running"),
        ("archive verify".to_owned(), "not running"),
        ("player forgotten".to_owned(), "not running"),
        ("check-config /no/config".to_owned(), "/no/config"),
        ("query --file /no/list".to_owned(), "/no/list"),
        (format!("query {silent} --timeout-ms 100 --retries 0"), ""),
        ("replay /no/log --state /no/state".to_owned(), "/no/log"),
        ("export --state /no/state --week 2026-W47".to_owned(), "/no/state"),
    ] {
        check(&sandbox, &line, 1, expected);
    }
    let missing = sandbox.run(["--json", "reload"]);
    let line = &rows(&missing.out)[0];
    assert_eq!((&line["kind"], &line["code"]), (&"error".into(), &"not_running".into()), "{line}");
    assert_eq!(missing.err, "");
    for line in ["--help", "--version", "servers --help", "--json --version"] {
        assert_eq!(sandbox.run(line.split(' ')).status.code(), Some(0), "{line}");
    }
    check(&sandbox, &format!("check-config {}", sandbox.config().display()), 0, "");
    check(&sandbox, "migrate --print", 0, "CREATE TABLE");
}

#[test]
fn commands_exit_0_1_or_2_with_daemon() {
    let fleet = fleet(2, 12, 1.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let (one, two) = (fleet.url(0), fleet.url(1));
    let unknown = "quake3://127.9.9.9:1";
    for (line, code, expected) in [
        (format!("servers add {one} {two} --tag ctf"), 0, ""),
        (format!("servers add {one} --tag duel"), 0, "tags changed"),
        ("servers list".to_owned(), 0, ""),
        ("servers list --tag nothing".to_owned(), 0, "no server matches"),
        (format!("servers show {one}"), 0, ""),
        (format!("servers show {unknown}"), 1, unknown),
        (format!("servers remove {unknown}"), 1, "not found"),
        (format!("servers tag {one} --add mine"), 0, ""),
        ("servers tag --drop nothing --yes".to_owned(), 1, "nothing"),
        (format!("rescan {one}"), 0, "scanning 1 server"),
        (format!("rescan {unknown}"), 1, unknown),
        ("rescan --all-unknown".to_owned(), 0, "no server is of class 6 or 7"),
        (format!("top {unknown}"), 1, unknown),
        (format!("top {one} --window nonsense"), 2, "nonsense"),
        (format!("board page --server {one} --after nonsense"), 2, "cursor"),
        (format!("board page --server {one} --time -1"), 2, ""),
        (format!("board at 999999 --server {one}"), 1, "no player at position 999999"),
        ("board delete-before 1763683200000 --yes".to_owned(), 0, ""),
        ("player nobody-has-this-name".to_owned(), 1, "nobody-has-this-name"),
        (format!("greylist {unknown} --lift"), 1, unknown),
        ("reload".to_owned(), 0, "nothing has changed"),
        ("status".to_owned(), 0, ""),
        (format!("query {one}"), 0, ""),
    ] {
        check(&sandbox, &line, code, expected);
    }
    assert_eq!(sandbox.ok(["board", "delete-before", "1763683200000", "--yes"]), "0 windows deleted\n");
    let tags = &sandbox.json(["servers", "show", &one])[0]["tags"];
    assert_eq!(tags.to_string(), r#"["ctf","duel","mine"]"#, "tags are added");
    let at = sandbox.run(["board", "at", "999999", "--server", &one]);
    assert_eq!(at.out, "", "no header without a row");
    let reload = &sandbox.json(["reload"])[0];
    assert_eq!(reload["kind"], "notes");
    assert_eq!(reload["notes"][0], "nothing has changed");
    daemon.stop();
}

#[test]
fn unresponsive_daemon_causes_timeout_error_with_pid() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    daemon.signal(Signal::SIGSTOP);
    for line in ["--timeout 1 status", "--timeout 1 servers add quake3://127.0.0.1:1", "--timeout 1 reload"] {
        check(&sandbox, line, 1, "the daemon does not respond");
    }
    let done = sandbox.run(["--timeout", "1", "--json", "status"]);
    let line = &rows(&done.out)[0];
    assert_eq!(line["code"], "timeout", "{line}");
    let message = line["message"].as_str().expect("a message");
    assert!(message.contains(&format!("process {}", daemon.pid())) && message.contains("kill -CONT"), "{message}");
    daemon.signal(Signal::SIGCONT);
    assert!(sandbox.ok(["status"]).contains("daemon"));
    daemon.stop();
}
