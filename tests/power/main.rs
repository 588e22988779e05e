//! Simulated power cuts: no change that the daemon has acknowledged may be lost, whatever part
//! of the later writes is on disk.
//!
//! A disk in memory ([`disk`]) records every write and every flush of a block device. It is a file
//! of a FUSE file system in this process ([`fuse`]), a loop device is attached to it, and ext4, XFS
//! or Btrfs is mounted from that. The real daemon runs with its state, its scan log and its
//! backups there, scans a simulated fleet, and answers a client ([`load`]). One run of
//! the daemon gives many cuts: for each, the disk is built as it could be after a cut at
//! that position of the recording, mounted (the file system replays its journal), and a daemon is
//! started. It must become ready and have everything that had been acknowledged before that
//! position. Of some cuts, the scan log must replay to the same rankings.
//!
//! Half of the cuts are right after a response, when what it acknowledges is most at risk. The others
//! are at any write or flush.
//!
//! Further tests slow down and fail single system calls of the daemon ([`syncs`]).
//!
//! The tests need root, /dev/fuse, loop devices and the programs of three file systems, so they are
//! ignored by default: run `bash tests/run --power`. They leave nothing behind ([`namespace`]).
//!
//! `CLQD_POWER_CUTS` is the number of cuts (60), `CLQD_SEED` the seed, `CLQD_POWER_FILE_SYSTEM` the
//! only file system. The daemon runs in real time, so a seed does not repeat a run. The
//! disk of the first cut that lost something is saved, and the failure names the file.

mod disk;
mod file_system;
mod fuse;
#[path = "../support/http.rs"]
mod http;
#[path = "../support/load.rs"]
mod load;
mod namespace;
#[path = "../support/sandbox.rs"]
mod sandbox;
#[path = "../support/shim.rs"]
mod shim;
mod syncs;

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::fleet::{FaultShares, Fleet};
use disk::{Recording, Survival};
use file_system::{FileSystem, Mount};
use fuse::{DiskFile, SharedDisk};
use load::{CLOSED_WEEKS, History, Load, Position, prepare};
use sandbox::{Sandbox, copy, fleet, number, run, seed};
use shim::Shim;

/// Cuts of one run of the daemon.
const CUTS_PER_RUN: usize = 15;

/// A run lasts at least this long, so that servers are scanned several times, ...
const RUN_MIN: Duration = Duration::from_secs(5);

/// ... and has at least this number of changes.
const CHANGES_MIN: usize = 30;

/// One of this number of cuts is followed by a replay.
const CUTS_PER_REPLAY: usize = 3;

fn file_systems() -> Vec<FileSystem> {
    let only = std::env::var("CLQD_POWER_FILE_SYSTEM").ok();
    let chosen = FileSystem::ALL.into_iter().filter(|kind| only.as_ref().is_none_or(|only| only == kind.name()));
    let chosen: Vec<FileSystem> = chosen.collect();
    assert!(!chosen.is_empty(), "CLQD_POWER_FILE_SYSTEM is not one of {:?}", FileSystem::ALL.map(FileSystem::name));
    chosen
}

/// A disk in memory with a mounted file system. Everything on it counts as flushed when
/// [`RecordedDisk::record`] begins.
struct RecordedDisk {
    // In the order in which they must be dropped.
    mount: Mount,
    _file: DiskFile,
    disk: SharedDisk,
    _dir: tempfile::TempDir,
}

impl RecordedDisk {
    fn new(kind: FileSystem, mount_dir: &Path) -> RecordedDisk {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let disk = SharedDisk::new(FileSystem::DISK_BYTES);
        let file = DiskFile::mount(disk.clone(), dir.path());
        kind.format(&file.path());
        let mount = Mount::new(kind, &file.path(), mount_dir);
        RecordedDisk { mount, _file: file, disk, _dir: dir }
    }

    fn record(&self, mount_dir: &Path) {
        run(Command::new("sync").arg("--file-system").arg(mount_dir));
        self.disk.lock().record();
    }

    fn unmount(self) {
        self.mount.unmount();
    }
}

// The daemon --------------------------------------------------------------

/// A directory for a daemon whose state is on a mounted disk.
struct Setup {
    sandbox: Sandbox,
    /// The state with which every run begins: two closed weeks.
    prepared: PathBuf,
    fleet: Fleet,
}

impl Setup {
    fn new(seed: u64) -> Setup {
        let faults: FaultShares = "slow=0.1,lossy=0.1,duplicating=0.05,partial=0.1".parse().expect("shares");
        let sandbox = Sandbox::new("").with_state("disk/state");
        std::fs::create_dir(sandbox.path("disk")).expect("a directory");
        let prepared = sandbox.path("prepared");
        prepare(&prepared);
        // The state is small and is compacted continuously. The disk is smaller than what should be
        // free. A week stays reopened, because the clock is not trusted to close it.
        sandbox.configure_store(
            "compact_bytes_min = 1\ndisk_free_bytes_min = 0",
            "[clock]\nsynchronised = \"never\"\ntrust_after_s = 86400\n",
        );
        Setup { sandbox, prepared, fleet: fleet(40, seed, 60.0, faults) }
    }

    fn mount_dir(&self) -> PathBuf {
        self.sandbox.path("disk")
    }

    /// Runs the daemon on a recorded disk until the power is cut.
    fn record_run(&self, kind: FileSystem, rng: &mut SplitMix64, env: &[(&str, &str)]) -> (Recording, History) {
        let recorded = RecordedDisk::new(kind, &self.mount_dir());
        copy(&self.prepared, &self.sandbox.state());
        recorded.record(&self.mount_dir());
        let daemon = self.sandbox.start_with_env(env);
        let client = daemon.client().expect("a connection");
        let rng = SplitMix64::from_parts(&[rng.bits()]);
        let disk = recorded.disk.clone();
        let now = Box::new(move || disk.lock().position());
        let mut load = Load::new(&self.sandbox, now, client, &self.fleet, rng);
        let began = Instant::now();
        while began.elapsed() < RUN_MIN || load.changes() < CHANGES_MIN {
            load.step().expect("a response");
        }
        let recording = recorded.disk.lock().stop_recording();
        daemon.kill();
        recorded.unmount();
        (recording, load.finish())
    }

    /// Starts a daemon on what a cut has left. Returns what is lost.
    fn check(&self, kind: FileSystem, image: &Path, history: &History, cut: Position, end: AfterCut) -> Vec<String> {
        let sandbox = &self.sandbox;
        let mount = match Mount::try_new(kind, image, &self.mount_dir()) {
            Ok(mount) => mount,
            Err(error) => return vec![error],
        };
        let daemon = sandbox.start();
        let mut client = daemon.client().expect("a connection");
        let losses = history.losses(sandbox, &mut client, cut);
        match end {
            AfterCut::Kill => daemon.kill(),
            AfterCut::Replay => {
                daemon.stop();
                self.assert_replay_equals_state();
            }
        }
        mount.unmount();
        losses
    }

    /// Compares the running week of a stopped daemon with a replay of its log. Closed weeks differ:
    /// the log does not contain the names of forgotten players.
    fn assert_replay_equals_state(&self) {
        let sandbox = &self.sandbox;
        let replayed = tempfile::tempdir().expect("a temporary directory");
        let replayed = replayed.path().join("state");
        copy(&self.prepared, &replayed);
        sandbox.replay(&sandbox.state(), &replayed);
        // A week that was just begun may have no rows, and then it cannot be exported.
        let export = |state: &Path, week: &String| {
            let export = sandbox.run(["export", "--state", state.to_str().expect("UTF-8"), "--week", week]);
            (export.status.code(), export.out, export.err)
        };
        for week in sandbox.weeks().iter().filter(|week| !CLOSED_WEEKS.contains(&week.as_str())) {
            let (live, again) = (export(&sandbox.state(), week), export(&replayed, week));
            let different = live.1.lines().zip(again.1.lines()).find(|(a, b)| a != b);
            assert!(live == again, "{week}: live and replayed rows differ: {different:?}, {} {}", live.2, again.2);
        }
    }
}

#[derive(Clone, Copy)]
enum AfterCut {
    Kill,
    Replay,
}

/// What the cuts of one file system have shown.
#[derive(Default)]
struct Figures {
    runs: usize,
    events: usize,
    flushes: usize,
    changes: usize,
    cuts: usize,
    replays: usize,
    /// Cuts that lost something.
    lossy_cuts: usize,
    first_loss: Option<String>,
}

/// Cuts the power this number of times and checks each cut. The disk of the first cut that lost
/// something is saved, unless the daemon has further variables: then losses are expected.
fn cut_power(setup: &Setup, kind: FileSystem, seed: u64, cuts: usize, env: &[(&str, &str)]) -> Figures {
    let mut rng = SplitMix64::from_parts(&[seed, kind as u64]);
    let mut figures = Figures::default();
    while figures.cuts < cuts {
        let (recording, history) = setup.record_run(kind, &mut rng, env);
        figures.runs += 1;
        figures.events += recording.end().0;
        figures.flushes += recording.flushes();
        figures.changes += history.responses.len();
        for _ in 0..CUTS_PER_RUN.min(cuts - figures.cuts) {
            let cut = match rng.bool(0.5) {
                true => history.responses[rng.below(history.responses.len())],
                false => Position(rng.below(recording.end().0 + 1)),
            };
            let survival = Survival::choose(&mut rng);
            let image = setup.sandbox.path("cut.img");
            recording.after_cut(cut, survival, &mut rng).save(&image, FileSystem::DISK_BYTES).expect("an image");
            let end = match figures.cuts % CUTS_PER_REPLAY {
                0 => AfterCut::Replay,
                _ => AfterCut::Kill,
            };
            figures.cuts += 1;
            figures.replays += usize::from(matches!(end, AfterCut::Replay));
            // The check changes the disk.
            let checked = setup.sandbox.path("checked.img");
            copy(&image, &checked);
            let check = || setup.check(kind, &checked, &history, cut, end);
            let losses = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| vec![message(&*panic)]);
            if !losses.is_empty() {
                figures.lossy_cuts += 1;
                figures.first_loss.get_or_insert_with(|| {
                    let name = format!("power-cut-{}-{seed}.img", kind.name());
                    let saved = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
                    if env.is_empty() {
                        run(Command::new("cp").arg("--sparse=always").arg(&image).arg(&saved));
                    }
                    format!(
                        "{}: seed {seed}, run {}, cut {}: {survival:?} of the writes after the last flush before {cut:?} \
                         of {:?} is left; {} changes had been acknowledged; the disk is {}. Lost:\n{}",
                        kind.name(),
                        figures.runs,
                        figures.cuts,
                        recording.end(),
                        history.acknowledged(cut),
                        saved.display(),
                        losses.join("\n")
                    )
                });
            }
        }
    }
    figures
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

#[test]
#[ignore = "it needs root, loop devices and programs of file systems: bash tests/run --power"]
fn power_cuts_lose_no_acknowledged_change() {
    if !namespace::is_inside("power_cuts_lose_no_acknowledged_change") {
        return;
    }
    let (seed, cuts) = (seed(), number("CLQD_POWER_CUTS", 60) as usize);
    let kinds = file_systems();
    eprintln!("seed {seed}, {cuts} cuts");
    let setup = Setup::new(seed);
    let mut losses = Vec::new();
    for (n, &kind) in kinds.iter().enumerate() {
        let began = Instant::now();
        let share = cuts * (n + 1) / kinds.len() - cuts * n / kinds.len();
        let figures = cut_power(&setup, kind, seed, share, &[]);
        eprintln!(
            "{}: {} cuts, {} of them lost something; {} runs with {} writes, {} flushes and {} acknowledged changes; {} \
             replays; {:.0?}",
            kind.name(),
            figures.cuts,
            figures.lossy_cuts,
            figures.runs,
            figures.events - figures.flushes,
            figures.flushes,
            figures.changes,
            figures.replays,
            began.elapsed()
        );
        losses.extend(figures.first_loss);
    }
    assert!(losses.is_empty(), "{}", losses.join("\n\n"));
}

/// Commands on a stopped state: what they have written is on disk when they end.
#[test]
#[ignore = "it needs root, loop devices and programs of file systems: bash tests/run --power"]
fn power_cuts_after_replay_and_restore_lose_nothing() {
    const CUTS: usize = 5;
    if !namespace::is_inside("power_cuts_after_replay_and_restore_lose_nothing") {
        return;
    }
    let seed = seed();
    let setup = Setup::new(seed);
    let (sandbox, dir) = (&setup.sandbox, setup.mount_dir());
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scan-log.jsonl");
    let state = sandbox.state();
    let commands: [(&str, Vec<&OsStr>); 2] = [
        ("replay", vec!["--state".as_ref(), state.as_ref(), log.as_ref()]),
        ("restore", vec![setup.prepared.as_ref()]),
    ];
    let export = || CLOSED_WEEKS.map(|week| sandbox.export(&sandbox.state(), week));
    for kind in file_systems() {
        for (name, args) in &commands {
            let mut rng = SplitMix64::from_parts(&[seed, kind as u64]);
            let recorded = RecordedDisk::new(kind, &dir);
            recorded.record(&dir);
            sandbox.ok([&[OsStr::new(name)], &args[..]].concat());
            let recording = recorded.disk.lock().stop_recording();
            let written = export();
            recorded.unmount();
            let image = sandbox.path("cut.img");
            for number in 0..CUTS {
                let survival = if number == 0 { Survival::None } else { Survival::Random(rng.unit()) };
                let blocks = recording.after_cut(recording.end(), survival, &mut rng);
                blocks.save(&image, FileSystem::DISK_BYTES).expect("an image");
                let mount = Mount::new(kind, &image, &dir);
                assert!(export() == written, "{name} on {}, seed {seed}, {survival:?}", kind.name());
                mount.unmount();
            }
            eprintln!("{name} on {}: {CUTS} cuts", kind.name());
        }
    }
}

// The simulation itself ---------------------------------------------------

/// A daemon whose syncs do nothing loses changes, and the test sees it.
#[test]
#[ignore = "it needs root, loop devices and programs of file systems: bash tests/run --power"]
fn power_cuts_lose_changes_of_daemon_without_syncs() {
    if !namespace::is_inside("power_cuts_lose_changes_of_daemon_without_syncs") {
        return;
    }
    let seed = seed();
    let setup = Setup::new(seed);
    let shim = Shim::new(&setup.mount_dir());
    let env = shim.env(&[("SHIM_SYNC", "skip")]);
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for kind in file_systems() {
        let figures = cut_power(&setup, kind, seed, 5, &env);
        eprintln!("{}: {} of {} cuts lost something", kind.name(), figures.lossy_cuts, figures.cuts);
        assert!(figures.lossy_cuts > 0, "{}, seed {seed}: no cut lost a change", kind.name());
    }
}

#[test]
#[ignore = "it needs root, loop devices and programs of file systems: bash tests/run --power"]
fn power_cuts_lose_files_without_fsync_and_no_others() {
    const FILES: usize = 40;
    const CUTS: usize = 20;
    if !namespace::is_inside("power_cuts_lose_files_without_fsync_and_no_others") {
        return;
    }
    let seed = seed();
    eprintln!("seed {seed}");
    for kind in file_systems() {
        let mut rng = SplitMix64::from_parts(&[seed, kind as u64]);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let recorded = RecordedDisk::new(kind, dir.path());
        recorded.record(dir.path());
        let written: Vec<(PathBuf, Position)> = (0..FILES)
            .map(|n| {
                let file = dir.path().join(n.to_string());
                let sync = if is_synced(n) { "sync \"$1\" \"$2\"" } else { ":" };
                let script = format!("echo \"content of $1\" >\"$1\" && {sync}");
                run(Command::new("sh").args(["-euc", &script, "sh"]).arg(&file).arg(dir.path()));
                (file, recorded.disk.lock().position())
            })
            .collect();
        let recording = recorded.disk.lock().stop_recording();
        recorded.unmount();
        let image = tempfile::NamedTempFile::new().expect("a file");
        let (mut lost, mut lost_synced) = (0, Vec::new());
        for _ in 0..CUTS {
            let cut = Position(rng.below(recording.end().0 + 1));
            let survival = Survival::choose(&mut rng);
            recording.after_cut(cut, survival, &mut rng).save(image.path(), FileSystem::DISK_BYTES).expect("an image");
            let mount = Mount::new(kind, image.path(), dir.path());
            for (n, (file, _)) in written.iter().enumerate().filter(|(_, (_, position))| *position <= cut) {
                let found = std::fs::read_to_string(file).unwrap_or_default();
                match found == format!("content of {}\n", file.display()) {
                    true => {}
                    false if is_synced(n) => lost_synced.push((n, cut, survival)),
                    false => lost += 1,
                }
            }
            mount.unmount();
        }
        eprintln!("{}: {CUTS} cuts lost {lost} files without fsync, {} with", kind.name(), lost_synced.len());
        assert!(lost_synced.is_empty(), "{}, seed {seed}: {lost_synced:?}", kind.name());
        assert!(lost > 0, "{}, seed {seed}: no cut lost a file", kind.name());
    }
}

fn is_synced(file: usize) -> bool {
    file.is_multiple_of(2)
}
