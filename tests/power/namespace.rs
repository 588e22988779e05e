//! Runs a test in a mount namespace and a PID namespace of its own, so that nothing of it is left.
//!
//! The test program starts itself again with `unshare`. When that process ends, also by SIGKILL,
//! the kernel kills every process of the PID namespace. With the last of them the mounts end,
//! with the mounts the loop devices are detached, and with the mounted tmpfs all files are
//! gone. So a killed test needs no cleanup at the next start, and the mounts are invisible to
//! the rest of the system.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Set in the process inside.
const INSIDE: &str = "CLQD_POWER_INSIDE";

/// An empty directory of every system (Filesystem Hierarchy Standard). Inside it is a tmpfs.
const TEMPORARY: &str = "/mnt";

/// The programs that the tests start, with Debian's packages.
const PROGRAMS: [(&str, &str); 8] = [
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("cc", "gcc"),
];

/// `PATH` with the directories of programs for the administrator.
pub fn path_variable() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Whether this process is inside. Outside, it runs the test inside and fails if the test fails. If
/// something is missing, it prints what, and fails if `tests/run --power` has requested the test.
pub fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=90%", "tmpfs", TEMPORARY]).status();
        assert!(mounted.expect("mount starts").success(), "mount of a tmpfs on {TEMPORARY}");
        return true;
    }
    let missing = missing();
    if !missing.is_empty() {
        let message = format!("{test}: nothing was tested; missing: {}", missing.join("; "));
        assert!(std::env::var_os("CLQD_POWER_CUTS").is_none(), "{message}");
        // Directly, so that it is visible although the test passes.
        writeln!(std::io::stderr(), "{message}").expect("standard error");
        return false;
    }
    // `unshare` dies with the thread that started it, and everything inside dies with `unshare`.
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe().expect("the path of this program"))
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .env("TMPDIR", TEMPORARY)
        .env("PATH", path_variable())
        .status()
        .expect("setpriv starts");
    assert!(status.success(), "{test} failed inside its namespaces, {status}; see above");
    false
}

/// What the tests need and the system does not have.
fn missing() -> Vec<String> {
    let path = path_variable();
    let is_installed = |program: &str| path.split(':').any(|dir| Path::new(dir).join(program).exists());
    let mut missing: Vec<String> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, package)| format!("the program {program} (Debian's package {package})"))
        .collect();
    if !nix::unistd::geteuid().is_root() {
        missing.push("the rights of root, to mount file systems".to_owned());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(device) {
            missing.push(format!("{device} ({error})"));
        }
    }
    missing
}
