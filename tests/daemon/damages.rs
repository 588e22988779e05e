//! Random damages of every file of a state and of a backup: flipped bits, zeroed blocks, files that are cut
//! or missing, and reads and writes that fail once with EIO.
//!
//! After a damage a daemon is started, a command reads the state, or the backup is restored. What the
//! state then contains is compared with that of an undamaged copy. If it differs, the damage must be
//! reported: by a failure, or by a warning. After a call that failed with EIO nothing is damaged, so the
//! next start must have everything.
//!
//! A log that ends between two batches looks like one in which nothing was written later. So no file is
//! cut there.
//!
//! `CLQD_DAMAGES` is the number of damages (40), `CLQD_SEED` the seed. The state is written in real time, so a
//! seed does not repeat a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::load::{BACKUPS_MAX, Load, Position, prepare};
use crate::sandbox::{Daemon, Sandbox, copy, fleet, number, rows, seed, wait_for, wait_until};
use crate::shim::{Shim, as_strs};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::fleet::{FaultShares, Fleet};
use nix::sys::signal::Signal;

const BLOCK_BYTES: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Damage {
    FlippedBits,
    ZeroedBlock,
    Cut,
    Missing,
    /// Of the file; a read or a write.
    FailedCall(&'static str),
}

impl Damage {
    fn choose(rng: &mut SplitMix64) -> Damage {
        match rng.below(6) {
            0 => Damage::FlippedBits,
            1 => Damage::ZeroedBlock,
            2 => Damage::Cut,
            3 => Damage::Missing,
            4 => Damage::FailedCall("read"),
            _ => Damage::FailedCall("write"),
        }
    }

    /// Damages a file.
    fn apply(self, path: &Path, rng: &mut SplitMix64) {
        let mut bytes = fs::read(path).expect("a file");
        let len = bytes.len();
        match self {
            Damage::FailedCall(_) => return,
            Damage::Missing => return fs::remove_file(path).expect("a file"),
            _ if len == 0 => return,
            Damage::FlippedBits => (0..=rng.below(3)).for_each(|_| bytes[rng.below(len)] ^= 1 << rng.below(8)),
            Damage::ZeroedBlock => {
                let begin = rng.below(len) / BLOCK_BYTES * BLOCK_BYTES;
                bytes[begin..len.min(begin + BLOCK_BYTES)].fill(0);
            }
            Damage::Cut => {
                let at = rng.below(len);
                let is_between_batches = bytes[at..].starts_with(b"CLQB");
                bytes.truncate(at + usize::from(is_between_batches));
            }
        }
        fs::write(path, bytes).expect("a file");
    }
}

/// How a state is read after a damage.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Daemon,
    Command,
    Restore,
}

/// A state or a backup.
struct Original {
    dir: PathBuf,
    readers: &'static [Reader],
    /// What an undamaged copy contains.
    content: String,
}

impl Original {
    /// The first line that differs.
    fn difference(&self, found: &Found) -> Option<String> {
        let (mut expected, mut lines) = (self.content.lines(), found.content.lines());
        loop {
            match (expected.next(), lines.next()) {
                (None, None) => return None,
                (expected, found) if expected != found => return Some(format!("{expected:?} is {found:?}")),
                _ => {}
            }
        }
    }
}

struct Setup {
    sandbox: Sandbox,
    weeks: Vec<String>,
    shim: Shim,
}

/// What a reader has found.
struct Found {
    content: String,
    /// Messages that are no information.
    report: String,
}

impl Setup {
    /// The state of a daemon that was killed some time after a checkpoint and a base, a backup, and the state of a
    /// daemon that was killed soon after it had begun with the backup.
    fn new(seed: u64) -> (Setup, Vec<Original>) {
        let sandbox = Sandbox::new("");
        // A week stays reopened, because the clock is not trusted to close it.
        let clock = "[clock]\nsynchronised = \"never\"\ntrust_after_s = 86400";
        sandbox.configure(clock);
        prepare(&sandbox.state());
        let fleet = fleet(12, seed, 60.0, FaultShares::NONE);
        let (state, backup) = (sandbox.path("killed"), sandbox.path("backup"));
        Setup::change(&sandbox, &fleet, seed).stop();
        let daemon = Setup::change(&sandbox, &fleet, seed + 1);
        sandbox.ok(["backup".as_ref(), backup.as_os_str()]);
        daemon.kill();
        Setup::change(&sandbox, &fleet, seed + 2).kill();
        copy(&sandbox.state(), &state);
        let mut weeks = sandbox.weeks();
        weeks.retain(|week| sandbox.run(["export", "--week", week]).status.success());
        fs::remove_dir_all(sandbox.state()).expect("the state");
        sandbox.ok(["restore".as_ref(), backup.as_os_str()]);
        let young = sandbox.path("young");
        Setup::change(&sandbox, &fleet, seed + 3).kill();
        copy(&sandbox.state(), &young);

        // Nothing else changes the state from now on.
        sandbox.configure_scan("opt_out = [\"127.0.0.0/8\"]", clock);
        let temporary = sandbox.path("temporary");
        fs::create_dir(&temporary).expect("a directory");
        let sandbox = sandbox.with_env("TMPDIR", temporary.to_str().expect("UTF-8"));
        let shim = Shim::new(&sandbox.state());
        let setup = Setup { sandbox, weeks, shim };
        let of_state: &[Reader] = &[Reader::Daemon, Reader::Daemon, Reader::Command];
        let originals = [(state, of_state), (young, of_state), (backup, &[Reader::Restore])].map(|(dir, readers)| {
            let mut original = Original { dir, readers, content: String::new() };
            let reader = readers[0];
            setup.place(&original, reader);
            let Found { content, report } = setup.read(reader, &[]);
            assert!(content.lines().count() > 30 && report.is_empty(), "{:?}: {report}", original.dir);
            original.content = content;
            original
        });
        (setup, originals.into())
    }

    /// Starts a daemon, changes its state, and waits until every server of the fleet was seen.
    fn change(sandbox: &Sandbox, fleet: &Fleet, seed: u64) -> Daemon {
        const CHANGES: usize = 20;
        for n in 1..=BACKUPS_MAX {
            _ = fs::remove_dir_all(sandbox.path(&format!("backup-{n}")));
        }
        let daemon = sandbox.start();
        sandbox.add_servers(fleet);
        let client = daemon.client().expect("a connection");
        let mut load = Load::new(sandbox, Box::new(|| Position(0)), client, fleet, SplitMix64::from_parts(&[seed, 5]));
        while load.changes() < CHANGES {
            load.step().expect("a response");
        }
        wait_until("every server was seen", || sandbox.list(&["--online"]).len() >= fleet.servers() as usize);
        daemon
    }

    /// Copies a state or a backup to where it is read. Returns the directory.
    fn place(&self, original: &Original, reader: Reader) -> PathBuf {
        let placed = self.sandbox.path("damaged-backup");
        for dir in [self.sandbox.state(), self.sandbox.path("state.before-restore"), placed.clone()] {
            _ = fs::remove_dir_all(dir);
        }
        let placed = if matches!(reader, Reader::Restore) { placed } else { self.sandbox.state() };
        copy(&original.dir, &placed);
        placed
    }

    /// Reads what was placed. The environment is that of the process that reads it.
    fn read(&self, reader: Reader, env: &[(&str, &str)]) -> Found {
        match reader {
            Reader::Command => self.content(env),
            Reader::Restore => {
                let placed = self.sandbox.path("damaged-backup");
                let restored = self.sandbox.run_with_env(["restore".as_ref(), placed.as_os_str()], env);
                match restored.status.success() {
                    true => self.content(&[]),
                    false => Found { content: String::new(), report: restored.err },
                }
            }
            Reader::Daemon => {
                let mut daemon = self.sandbox.spawn_with_env(env);
                let mut found = match daemon.becomes_ready() && self.has_compared(&mut daemon) {
                    true => self.content(&[]),
                    false => Found { content: String::new(), report: String::new() },
                };
                if daemon.exit_status().is_none() {
                    daemon.signal(Signal::SIGTERM);
                }
                let has_failed = !daemon.wait().success();
                let log = daemon.log();
                let is_report = |line: &&str| has_failed || line.contains(" WARN ") || line.contains(" ERROR ");
                let is_usual =
                    |line: &&str| line.contains(" INFO ") || line.contains("the week is over but is not closed");
                let lines = log.lines().filter(|line| !is_usual(line)).filter(is_report);
                found.report.extend(lines.map(|line| format!("{line}\n")));
                // This says that nothing is lost.
                if !has_failed && log.contains("the log since then replaces them") {
                    found.report.clear();
                }
                found
            }
        }
    }

    /// Waits until the daemon has compared its database with the checkpoint files, which it does before its
    /// first checkpoint. `false`: it has ended.
    fn has_compared(&self, daemon: &mut Daemon) -> bool {
        wait_for("the first checkpoint", || match daemon.exit_status() {
            Some(_) => Some(false),
            None => {
                let status = self.sandbox.run(["--json", "status"]);
                let has_checkpoint = |row: &serde_json::Value| row["store"]["last_commit_ms"].is_number();
                (status.status.success() && rows(&status.out).iter().any(has_checkpoint)).then_some(true)
            }
        })
    }

    /// As `read`, and one call of the reader fails. Returns whether it has failed.
    fn read_with_failure(&self, reader: Reader, call: &str, read: &Path, rng: &mut SplitMix64) -> (Found, bool) {
        let written = match reader {
            Reader::Daemon => "state",
            Reader::Command => "temporary",
            Reader::Restore => "state.restoring",
        };
        let (below, calls) = if call == "read" { (read.to_owned(), 2) } else { (self.sandbox.path(written), 12) };
        let after = rng.below(calls).to_string();
        let below = ("SHIM_DIR", below.to_str().expect("UTF-8"));
        let env = self.shim.env(&[below, ("SHIM_FAIL", call), ("SHIM_FAIL_AFTER", &after)]);
        self.shim.fail();
        let found = self.read(reader, &as_strs(&env));
        (found, self.shim.has_failed())
    }

    /// Asks the daemon, or reads the state if none is running.
    fn content(&self, env: &[(&str, &str)]) -> Found {
        let mut found = Found { content: String::new(), report: String::new() };
        let list = vec!["--json", "servers", "list"];
        let exports = self.weeks.iter().map(|week| vec!["export", "--week", week]);
        for args in [list].into_iter().chain(exports) {
            let is_list = args.contains(&"list");
            let done = self.sandbox.run_with_env(args, env);
            match done.status.success() {
                true if is_list => found.content.extend(rows(&done.out).iter().map(|row| {
                    format!("{} {} {} {}\n", row["url"], row["tags"], row["greylist_reason"], row["last_seen_ms"])
                })),
                true => found.content += &done.out,
                // With --json, the message is in the output.
                false => found.report.extend([done.out, done.err.clone()]),
            }
            found
                .report
                .extend(done.err.lines().filter(|line| line.contains("warning")).map(|line| format!("{line}\n")));
        }
        found
    }
}

/// Chooses a directory, and a file in it; often the newest.
fn choose_file(dir: &Path, rng: &mut SplitMix64) -> PathBuf {
    let mut files: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(&dir).expect("a directory").map(|entry| entry.expect("an entry").path()) {
            match path.is_dir() {
                true => dirs.push(path),
                false => files.entry(dir.clone()).or_default().push(path),
            }
        }
    }
    let count = files.len();
    let mut chosen = files.into_values().nth(rng.below(count)).expect("a directory");
    chosen.sort();
    let last = chosen.len() - 1;
    chosen.swap_remove(if rng.bool(0.3) { last } else { rng.below(chosen.len()) })
}

#[test]
fn damages_change_nothing_or_are_reported() {
    let (damages, seed) = (number("CLQD_DAMAGES", 40), seed());
    eprintln!("seed {seed}, {damages} damages");
    let mut rng = SplitMix64::from_parts(&[seed, 6]);
    let (setup, originals) = Setup::new(seed);
    let (mut same, mut reported, mut silent, mut failed_calls) = (0, 0, Vec::new(), 0);
    for n in 1..=damages {
        let original = &originals[rng.below(originals.len())];
        let reader = original.readers[rng.below(original.readers.len())];
        let placed = setup.place(original, reader);
        let path = &choose_file(&placed, &mut rng);
        let damage = Damage::choose(&mut rng);
        damage.apply(path, &mut rng);
        let what = || format!("damage {n}: {damage:?} of {}, {reader:?}", path.display());
        let found = match damage {
            Damage::FailedCall(call) => {
                let (found, has_failed) = setup.read_with_failure(reader, call, path, &mut rng);
                failed_calls += u64::from(has_failed);
                found
            }
            _ => setup.read(reader, &[]),
        };
        if std::env::var_os("CLQD_DAMAGES").is_some() {
            eprintln!("{}: {:?} {}", what(), original.difference(&found), found.report);
        }
        // After a failed call nothing is damaged.
        let is_undamaged = matches!(damage, Damage::FailedCall(_));
        if is_undamaged && let Some(difference) = original.difference(&setup.read(reader, &[])) {
            silent.push(format!("{}, and the next reader: {difference}", what()));
        }
        match original.difference(&found) {
            None => same += 1,
            Some(_) if !found.report.is_empty() => reported += 1,
            Some(difference) => silent.push(format!("{}: {difference}", what())),
        }
    }
    eprintln!(
        "{damages} damages, {failed_calls} of them failed calls: {same} same, {reported} reported, {} silent",
        silent.len()
    );
    assert!(silent.is_empty(), "seed {seed}: lost without a report:\n{}", silent.join("\n"));
    // Fewer may happen to be all of one kind.
    let kinds = [failed_calls, same, reported];
    assert!(damages < 40 || kinds.iter().all(|&count| count > 0), "seed {seed}: {kinds:?}");
}
