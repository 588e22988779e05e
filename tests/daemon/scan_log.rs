//! How `clqd replay` handles damaged scan logs, and what the log records.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::sandbox::{CommandOutput, Sandbox, fleet, wait_for, wait_until};
use clqd::fleet::FaultShares;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const START_MS: i64 = 1_764_064_800_000;
const WEEK: &str = "2025-W48";

fn line(minute: i64) -> String {
    let (t_ms, points) = (START_MS + minute * 60_000, minute % 40);
    format!(
        "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"baseq3\",\"map\":\"m\",\"hostname\":\"h\",\
         \"slots\":8,\"players\":[{{\"name\":\"ann\",\"points\":{points},\"ping\":9,\"bot\":false}}]}}\n"
    )
}

fn lines(minutes: std::ops::Range<i64>) -> String {
    minutes.step_by(2).map(line).collect()
}

fn zst(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).expect("compressed")
}

/// Replays logs, each time into a new state directory.
struct ReplayRunner {
    sandbox: Sandbox,
    count: u32,
}

impl ReplayRunner {
    fn new() -> ReplayRunner {
        ReplayRunner { sandbox: Sandbox::new(""), count: 0 }
    }

    fn log(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.sandbox.path(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    fn replay(&mut self, logs: &[&Path], options: &[&str]) -> (CommandOutput, PathBuf) {
        self.count += 1;
        let state = self.sandbox.path(&format!("state-{}", self.count));
        let mut args = vec!["replay".into(), "--state".into(), state.clone().into_os_string()];
        args.extend(options.iter().map(Into::into));
        args.extend(logs.iter().map(|log| log.as_os_str().to_owned()));
        (self.sandbox.run(&args), state)
    }

    /// Runs a replay that must succeed. Returns the exported rows and the messages.
    #[track_caller]
    fn rows(&mut self, logs: &[&Path], options: &[&str]) -> (String, String) {
        let (done, state) = self.replay(logs, options);
        assert!(done.status.success(), "{}: {}", done.status, done.err);
        let dir = self.sandbox.path("").display().to_string();
        (self.sandbox.export(&state, WEEK), done.err.replace(&dir, ""))
    }

    /// Runs a replay that must fail without a change. Returns the error.
    #[track_caller]
    fn refused(&mut self, logs: &[&Path], options: &[&str]) -> String {
        let (done, state) = self.replay(logs, options);
        assert_eq!(done.status.code(), Some(1), "{}", done.err);
        assert!(!state.exists(), "nothing was applied");
        let dir = self.sandbox.path("").display().to_string();
        done.err.replace(&dir, "")
    }
}

#[test]
fn truncated_last_line_is_dropped_with_warning() {
    let mut replays = ReplayRunner::new();
    let (before, last) = (lines(0..20), line(20));
    let whole = replays.log("whole.jsonl", &before);
    let (want, printed) = replays.rows(&[&whole], &[]);
    assert!(!want.is_empty() && !printed.contains("warning"), "{printed}");
    for cut in (1..last.len() - 1).step_by(9).chain([last.len() - 2]) {
        let log = replays.log("cut.jsonl", before.clone() + &last[..cut]);
        let (rows, printed) = replays.rows(&[&log], &[]);
        assert_eq!(rows, want, "cut at byte {cut}");
        let warning = format!(
            "clqd: warning: cut.jsonl:11: the last line is incomplete ({cut} bytes of this line are in the file): dropped\n"
        );
        assert!(printed.starts_with(&warning), "{printed}");
        assert!(printed.contains("cut.jsonl: 10 scans"), "{printed}");
    }
    let packed = zst(&(before.clone() + &last));
    for cut in (0..packed.len()).step_by(packed.len() / 6) {
        let log = replays.log("cut.jsonl.1.zst", [&zst(&before)[..], &packed[..cut]].concat());
        let (rows, printed) = replays.rows(&[&log], &[]);
        assert_eq!(rows, want, "cut at byte {cut}");
        assert_eq!(printed.contains("cut.jsonl.1.zst:11: the compressed data are truncated"), cut > 0, "{printed}");
    }
}

#[test]
fn damaged_lines_are_refused_without_salvage() {
    let mut replays = ReplayRunner::new();
    let whole = replays.log("whole.jsonl", lines(0..10) + &lines(20..30));
    let (want, _) = replays.rows(&[&whole], &[]);
    let damaged = replays.log("damaged.jsonl", lines(0..10) + "{\"t\":1,\"ser\n\0\0\0\n" + &lines(20..30));
    let refused = replays.refused(&[&damaged], &[]);
    assert_eq!(
        refused,
        "clqd: damaged.jsonl:6: not a line of a scan log: EOF while parsing a string at column 11 (lines 6 to 7, 16 \
         bytes). In all 2 damaged lines, 16 bytes, in 1 range; --salvage skips them and replays the others\n"
    );
    let (rows, printed) = replays.rows(&[&damaged], &["--salvage"]);
    assert_eq!(rows, want);
    assert!(printed.starts_with("clqd: warning: damaged.jsonl:6: not a line"), "{printed}");
    assert!(printed.contains("(lines 6 to 7, 16 bytes): skipped\ndamaged.jsonl: 10 scans"), "{printed}");

    let other = replays.log("notes.txt", "not a log\n");
    let refused = replays.refused(&[&whole, &other], &["--salvage"]);
    assert!(refused.starts_with("clqd: notes.txt is not a scan log: notes.txt:1: not a line"), "{refused}");
}

#[test]
fn truncated_older_file_is_refused_without_salvage() {
    let mut replays = ReplayRunner::new();
    let (first, last) = (lines(0..20), lines(20..40));
    for (name, cut) in [
        ("scans.jsonl.1.zst", [&zst(&first)[..], &zst(&line(20))[..20]].concat()),
        ("old.jsonl", (first.clone() + "{\"t\":").into_bytes()),
    ] {
        let (cut, next) = (replays.log(name, cut), replays.log("scans.jsonl", &last));
        let refused = replays.refused(&[&cut, &next], &[]);
        assert!(
            refused.starts_with(&format!("clqd: {name}:11: "))
                && refused.ends_with("and scans.jsonl continues after it; use --salvage to replay the readable part\n"),
            "{refused}"
        );
        let (rows, printed) = replays.rows(&[&next, &cut], &["--salvage"]);
        assert!(printed.starts_with(&format!("clqd: warning: {name}:11: ")), "{printed}");
        let whole = replays.log("whole.jsonl", first.clone() + &last);
        assert_eq!(rows, replays.rows(&[&whole], &[]).0);
        // Only the last file may be truncated.
        let cut_end = replays.log("scans.jsonl", last.clone() + "{\"t\":");
        let first_whole = replays.log("first.jsonl", &first);
        assert_eq!(rows, replays.rows(&[&cut_end, &first_whole], &[]).0);
    }
}

#[test]
fn duplicate_or_non_file_argument_is_refused() {
    let mut replays = ReplayRunner::new();
    let log = replays.log("g.jsonl", lines(0..20));
    assert_eq!(replays.refused(&[&log, &log], &[]), "clqd: g.jsonl is given twice\n");
    let link = replays.sandbox.path("link.jsonl");
    std::os::unix::fs::symlink(&log, &link).expect("a link");
    assert_eq!(replays.refused(&[&log, &link], &[]), "clqd: g.jsonl and link.jsonl are the same file\n");
    let dir = replays.sandbox.path("dir");
    fs::create_dir(&dir).expect("a directory");
    assert_eq!(replays.refused(&[&dir], &[]), "clqd: dir is neither a state directory with a log, nor a log\n");
    let error = replays.refused(&[&log, &dir.join("none.jsonl")], &[]);
    assert_eq!(error, "clqd: cannot read dir/none.jsonl: No such file or directory (os error 2)\n");
}

/// Versions of clqd write different reasons. A replay must give the same state with each of them.
#[test]
fn miss_with_any_reason_replays_to_same_state() {
    let replay = |reason: &str| {
        let miss = |minute: i64| {
            let t_ms = START_MS + minute * 60_000;
            format!("{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true{reason}}}\n")
        };
        let sandbox = Sandbox::new("");
        let log = sandbox.path("scans.jsonl");
        fs::write(&log, lines(0..40) + &(40..53).map(miss).collect::<String>() + &line(53)).expect("written");
        sandbox.ok(["replay".as_ref(), "--state".as_ref(), sandbox.state().as_os_str(), log.as_os_str()]);
        let after_misses = sandbox.path("misses.jsonl");
        fs::write(&after_misses, (54..69).map(miss).collect::<String>()).expect("written");
        sandbox.ok(["replay".as_ref(), "--state".as_ref(), sandbox.state().as_os_str(), after_misses.as_os_str()]);
        let server = sandbox.json(["servers", "show", "quake3://10.0.0.1:27960"]);
        (sandbox.export(&sandbox.state(), WEEK), server)
    };
    let (rows, server) = replay("");
    assert_eq!((server[0]["missed"].as_u64(), rows.contains("ann")), (Some(15), true), "{server:?}");
    for reason in [
        // Written by clqd before release 0.1.0.
        "no_protocol",
        "unsendable",
        "overrun",
        // Written by this version.
        "timeout",
        "unsupported_scheme",
        "send_failed",
        "receive_overflow",
        "unknown to every version",
    ] {
        assert_eq!(replay(&format!(",\"reason\":\"{reason}\"")), (rows.clone(), server.clone()), "{reason}");
    }
}

/// What an admin does, with kills right after it and other settings after a restart. A replay gives the
/// same rankings.
#[test]
fn commands_and_settings_are_recorded_and_replayed() {
    let fleet = fleet(16, 33, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    let players = |url: &str| sandbox.top(url, "time");
    let urls: Vec<String> = wait_for("four servers have players", || {
        let mut urls = fleet.urls();
        urls.retain(|url| players(url).len() > 2);
        (urls.len() >= 4).then_some(urls)
    });
    let name = |url: &str, at: usize| players(url)[at]["name"].as_str().expect("a name").to_owned();
    let game = sandbox.list(&[&urls[2]])[0]["game"].as_str().expect("a game").to_owned();
    let [from, into, forgotten] = [0, 1, 2].map(|at| name(&urls[2], at));

    sandbox.ok(["greylist", &urls[0], "--reason", "bots"]);
    sandbox.ok(["servers", "tag", "--add", "ctf", &urls[1], &urls[2]]);
    sandbox.ok(["player", "merge", &from, &into, "--game", &game]);
    daemon.kill();
    // After the kill the daemon has other settings.
    sandbox.configure("[elo]\nk = 31.0\n[clq2]\nquarter = \"exact\"\n");
    let daemon = sandbox.start();
    assert_eq!(sandbox.list(&["--greylisted"]).len(), 1);
    sandbox.ok(["servers", "remove", &urls[3]]);
    sandbox.ok(["servers", "trust", &urls[1], "--except", "frozen_list"]);
    sandbox.ok(["player", "forget", &forgotten, "--game", &game, "--yes"]);
    wait_until("the name is removed from the log", || sandbox.status()["log"]["names_pending"] == 0);
    daemon.kill();
    let daemon = sandbox.start();
    sandbox.ok(["greylist", &urls[0], "--lift"]);
    sandbox.ok(["servers", "add", &urls[3]]);
    let scans = |url: &str| sandbox.list(&[url])[0]["last_scan_ms"].as_i64().expect("scanned");
    let before: Vec<i64> = urls.iter().map(|url| scans(url)).collect();
    for (url, before) in urls.iter().zip(before) {
        wait_until("the servers are scanned again", || scans(url) > before + 5_000);
    }
    daemon.stop();

    let exported = sandbox.log_lines();
    let lines: Vec<serde_json::Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let commands: Vec<&str> = lines.iter().filter_map(|line| line["command"].as_str()).collect();
    for command in ["add", "greylist", "tag", "merge", "remove", "trust", "forget", "lift"] {
        assert!(commands.contains(&command), "{command}: {commands:?}");
    }
    assert!(lines.iter().any(|line| line["settings"]["elo.k"] == 31.0));
    // The player may play on. Then later lines have the name again.
    let forget = lines.iter().position(|line| line["command"] == "forget").expect("the command");
    let with_name: Vec<_> =
        lines[..forget].iter().filter(|line| line.to_string().contains(&format!("{forgotten:?}"))).collect();
    assert!(with_name.is_empty(), "{forgotten}: {with_name:#?}");
    sandbox.assert_replay_equals_state();
}

/// A daemon whose system calls are recorded.
struct TracedDaemon {
    strace: Child,
    pid: Pid,
    trace: PathBuf,
}

impl TracedDaemon {
    /// `calls`: as for the option `-e` of strace.
    fn start(sandbox: &Sandbox, calls: &str) -> TracedDaemon {
        let trace = sandbox.path("trace");
        let clqd = sandbox.command(["run"]);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-qq", "-s", "4096", "-e", calls, "-o"]).arg(&trace);
        strace.arg(clqd.get_program()).args(clqd.get_args()).stdin(Stdio::null()).stdout(Stdio::null());
        strace.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        strace.stderr(fs::File::create(sandbox.path("daemon.log")).expect("a log"));
        let mut strace =
            strace.spawn().unwrap_or_else(|error| panic!("strace: {error}; on Debian: apt-get install strace"));
        wait_until("the daemon responds", || {
            let ended = strace.try_wait().expect("a child process");
            assert!(ended.is_none(), "{ended:?}: {}", fs::read_to_string(sandbox.path("daemon.log")).expect("the log"));
            sandbox.socket().exists() && sandbox.run(["status"]).status.success()
        });
        let pid = sandbox.status()["daemon"]["pid"].as_i64().expect("a process id");
        TracedDaemon { strace, pid: Pid::from_raw(pid as i32), trace }
    }

    /// Stops the daemon. Returns the trace.
    fn stop(&mut self) -> String {
        kill(self.pid, Signal::SIGTERM).expect("a running daemon");
        self.strace.wait().expect("a child process");
        String::from_utf8_lossy(&fs::read(&self.trace).expect("the trace")).into_owned()
    }
}

/// A change is on disk before it is acknowledged: the answer is sent only after `fdatasync` of the log of
/// the state directory, which began after the last write to it.
#[test]
fn change_is_synced_before_the_answer() {
    let sandbox = Sandbox::new("");
    let mut traced = TracedDaemon::start(&sandbox, "trace=write,sendto,writev,sendmsg,pwrite64,fdatasync");
    for port in 1..=5 {
        sandbox.ok(["servers", "add", &format!("quake3://127.9.9.9:{port}")]);
    }
    let calls = traced.stop();
    let log = format!("<{}/0", sandbox.state().join("log").display());
    let (mut last_write, mut synced, mut answers, mut writes) = (0, 0, 0, 0);
    // When the unfinished `fdatasync` of a thread began.
    let mut syncing: HashMap<&str, usize> = HashMap::new();
    for (at, line) in calls.lines().enumerate() {
        let (thread, call) = line.split_once(' ').expect("a thread and a call");
        let call = call.trim_start();
        if call.starts_with("write(") && call.contains(&log) {
            (last_write, writes) = (at, writes + 1);
        } else if call.starts_with("fdatasync(") && call.contains(&log) {
            match call.ends_with("= 0") {
                true => synced = at,
                false => _ = syncing.insert(thread, at),
            }
        } else if call.starts_with("<... fdatasync") && call.ends_with("= 0") {
            synced = synced.max(syncing.remove(thread).unwrap_or(0));
        } else if call.contains("127.9.9.9") && call.contains("outcome") {
            answers += 1;
            assert!(last_write < synced, "the change is not on disk before the answer: {line}");
        }
    }
    assert!(answers >= 5 && writes >= 5, "{answers} answers, {writes} writes:\n{calls}");
}
