//! Starting and stopping: a start that fails ends at once with a message and status 1, at each step
//! and with every optional part on; SIGTERM ends a start; a second start names the first.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use crate::sandbox::{Daemon, Sandbox, copy_of_program, wait_for, wait_until};
use crate::shim::{Shim, as_strs};

/// A sandbox whose daemon has every optional part on.
fn with_every_part(extra: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let captures = sandbox.path("captures");
    let web = if extra.contains("[web]") { "" } else { "[web]\nlisten = \"127.0.0.1:0\"\n" };
    sandbox.configure(&format!(
        "[capture]\ndir = {captures:?}\n\
         [archive]\nurl = \"mysql://clqd@127.0.0.1:1/clqd\"\n{web}{extra}"
    ));
    sandbox
}

/// The end of a start that must fail. Panics if it hangs.
#[track_caller]
fn failed_start(sandbox: &Sandbox) -> String {
    let mut daemon = sandbox.spawn();
    let status = ended(&mut daemon);
    let log = daemon.log();
    assert_eq!(status.code(), Some(1), "{status}: {log}");
    log
}

#[track_caller]
fn ended(daemon: &mut Daemon) -> ExitStatus {
    wait_for("the process ends", || daemon.exit_status())
}

#[test]
fn start_that_fails_at_any_step_ends_with_status_1() {
    let file = |sandbox: &Sandbox, name: &str| fs::write(sandbox.path(name), "a file").unwrap();
    type Spoil<'s> = &'s dyn Fn(&Sandbox);
    let steps: &[(&str, Spoil, &str)] = &[
        ("state is a file", &|it| file(it, "state"), "state_dir"),
        ("state is damaged", &|it| fs::create_dir_all(it.state().join("db")).unwrap(), "state"),
        (
            "log is a file",
            &|it| {
                fs::create_dir_all(it.state()).unwrap();
                fs::write(it.state().join("log"), "a file").unwrap();
            },
            "log",
        ),
        ("socket is a file", &|it| file(it, "control.sock"), "control_socket"),
        (
            "socket of another daemon",
            &|it| std::mem::forget(UnixListener::bind(it.socket()).unwrap()),
            "another daemon is running on",
        ),
    ];
    for (step, spoil, expected) in steps {
        let sandbox = with_every_part("");
        spoil(&sandbox);
        let log = failed_start(&sandbox);
        assert!(log.contains(expected), "{step}: {log}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("[web]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    let log = failed_start(&with_every_part(&listen));
    assert!(log.contains("another program uses this port"), "{log}");
}

/// The scan log is open and the engine could run when the socket is opened.
#[test]
fn start_that_may_not_create_its_control_socket_ends_with_status_1() {
    assert!(geteuid().is_root(), "only root can run commands as other users");
    const USER: u32 = 64_011;
    let sandbox = with_every_part("");
    let outside = tempfile::tempdir().unwrap();
    let socket = outside.path().join("c.sock");
    let config = fs::read_to_string(sandbox.config()).unwrap();
    let config = config.replace(&format!("{:?}", sandbox.socket()), &format!("{socket:?}"));
    let (status, log) = run_as_user(USER, &sandbox, &config, &[]);
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("control_socket") && log.contains("Permission denied"), "{log}");
}

/// Some libraries panic, and sled waits for ever, where no thread can be created.
#[test]
fn start_without_threads_ends_with_status_1() {
    assert!(geteuid().is_root(), "only root can run commands as other users");
    const USER: u32 = 64_012;
    for threads in [1, 2, 4, 6, 12, 20] {
        let sandbox = with_every_part("");
        let config = fs::read_to_string(sandbox.config()).unwrap();
        let limit = format!("--nproc={threads}");
        let (status, log) = run_as_user(USER, &sandbox, &config, &["prlimit", &limit]);
        assert_eq!(status.code(), Some(1), "{threads} threads: {log}");
        assert!(log.contains("cannot create") && log.contains("TasksMax="), "{threads} threads: {log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
}

/// A start whose process may open only some files, or `None` if it succeeds.
fn failed_start_with_files(sandbox: &Sandbox, files_max: u32) -> Option<(ExitStatus, String)> {
    let log = sandbox.path(&format!("log-{files_max}"));
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={files_max}")).arg(env!("CARGO_BIN_EXE_clqd")).arg("--config").arg(sandbox.config());
    command.arg("run").stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let read_log = || fs::read_to_string(&log).unwrap();
    let ended = wait_for("the start ends", || match child.try_wait().unwrap() {
        Some(status) => Some(Some((status, read_log()))),
        None => read_log().contains(" ready ").then_some(None),
    });
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended
}

/// Without a free file descriptor, tokio panics where it begins to handle signals.
#[test]
fn panic_of_a_library_at_the_start_prints_one_line() {
    let sandbox = with_every_part("");
    let mut panics = 0;
    for files_max in 4..100 {
        let (status, log) =
            failed_start_with_files(&sandbox, files_max).expect("no panic before a start that succeeds");
        assert!(!status.success(), "{files_max} files: {log}");
        assert_eq!(log.lines().count(), 1, "{files_max} files: {log}");
        if log.contains("panicked") {
            panics += 1;
            assert!(log.contains("thread \"main\" panicked at ") && log.contains("Too many open files"), "{log}");
        } else if panics > 0 {
            return;
        }
    }
    panic!("no library panicked");
}

#[test]
fn start_that_cannot_open_its_scan_sockets_ends_with_status_1() {
    let sandbox = with_every_part("");
    sandbox.configure_scan("sockets_per_ip_version = 64", "");
    let (status, log) = failed_start_with_files(&sandbox, 60).expect("64 sockets are more than 60 files");
    assert_eq!(status.code(), Some(1), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    let expected = "clqd: cannot start the scanner: section [scan]: cannot open a UDP socket: Too many open files";
    assert!(log.starts_with(expected), "{log}");
    assert!(!sandbox.socket().exists(), "the control socket is opened after the scanner");
    // The failed start leaves nothing that prevents the next one.
    sandbox.start().stop();
}

/// A daemon of another user, in a copy of a sandbox. Killed when dropped.
pub struct DaemonOfUser {
    dir: tempfile::TempDir,
    child: Child,
}

impl DaemonOfUser {
    pub fn start(user: u32, sandbox: &Sandbox, config: &str, wrapper: &[&str]) -> DaemonOfUser {
        let dir = tempfile::Builder::new().prefix("clqd-user-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let (program, home) = (copy_of_program(dir.path()), dir.path().join("home"));
        fs::create_dir(&home).unwrap();
        chown(&home, Some(user), Some(user)).unwrap();
        let file = dir.path().join("clqd.toml");
        let of_sandbox = sandbox.path("").display().to_string();
        fs::write(&file, config.replace(of_sandbox.trim_end_matches('/'), home.to_str().unwrap())).unwrap();
        let mut words = wrapper.to_vec();
        words.extend([program.to_str().unwrap(), "--config", file.to_str().unwrap(), "run"]);
        let log = File::create(dir.path().join("log")).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).uid(user).gid(user).current_dir("/").stderr(log);
        let child = command.spawn().unwrap();
        DaemonOfUser { dir, child }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("home/control.sock")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the process ends", || self.child.try_wait().unwrap())
    }

    pub fn stop(mut self) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
    }
}

impl Drop for DaemonOfUser {
    fn drop(&mut self) {
        // Usually it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Runs the daemon as another user in a copy of the sandbox, until it ends.
fn run_as_user(user: u32, sandbox: &Sandbox, config: &str, wrapper: &[&str]) -> (ExitStatus, String) {
    let mut daemon = DaemonOfUser::start(user, sandbox, config, wrapper);
    (daemon.wait(), daemon.log())
}

#[test]
fn second_start_names_the_process_of_the_first() {
    let sandbox = with_every_part("");
    // No other test listens at this address, so a port that was free stays free.
    let taken = TcpListener::bind("127.0.0.11:0").unwrap();
    let listen = format!("[web]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    drop(taken);
    sandbox.configure(&listen);
    let first = sandbox.start();
    let log = failed_start(&sandbox);
    let expected = format!("is in use by process {} (", first.pid());
    assert!(log.contains(&expected) && !log.contains("port"), "{log}");
    assert!(!log.contains("gave up after"), "it does not wait for a daemon that runs: {log}");
    first.stop();
}

/// The scanner ends at once when it has no scans, while boards are still being built.
#[test]
fn stop_right_after_the_start_succeeds() {
    let sandbox = Sandbox::new("[boards]\nwindows = [\"hour\", \"day\", \"all-time\"]\n");
    for _ in 0..5 {
        let daemon = sandbox.spawn();
        daemon.wait_for_log(" ready ");
        let log = daemon.stop();
        assert!(log.contains("stopped; all state is on disk") && !log.contains("unexpectedly"), "{log}");
    }
}

/// The daemon would wait for ever: the library does not let the look-up end.
#[test]
fn look_up_in_progress_does_not_delay_the_stop() {
    let sandbox = Sandbox::new("");
    let (shim, silent) = (Shim::new(&sandbox.state()), sandbox.path("silent"));
    fs::write(&silent, "").unwrap();
    let env = shim.env(&[("SHIM_SILENT", silent.to_str().unwrap())]);
    let daemon = sandbox.start_with_env(&as_strs(&env));
    sandbox.ok(["servers", "add", "quake3://name.invalid:27960"]);
    wait_until("the name is looked up", || fs::read_to_string(&silent).unwrap() == "name.invalid\n");
    daemon.stop();
}

#[test]
fn sigterm_ends_a_start_that_waits_for_the_state() {
    let sandbox = with_every_part("");
    sandbox.start().stop();
    let db = wait_for("the state is closed", || {
        let db = File::options().read(true).write(true).open(sandbox.state().join("db")).unwrap();
        Flock::lock(db, FlockArg::LockExclusiveNonblock).ok()
    });
    let mut daemon = sandbox.spawn();
    daemon.wait_for_log("waiting for the state directory");
    daemon.signal(Signal::SIGTERM);
    let status = ended(&mut daemon);
    assert_eq!(status.code(), Some(0), "it did not wait until it gave up: {}", daemon.log());
    assert!(daemon.log().contains("stopped during the start"), "{}", daemon.log());
    drop(db);
    sandbox.start().stop();
}

/// The modes of every file and directory below a path, except sockets.
fn check_modes(path: &Path) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_dir() {
        assert_eq!(mode & !0o750, 0, "{path:?} {mode:o}");
        fs::read_dir(path).unwrap().for_each(|entry| check_modes(&entry.unwrap().path()));
    } else if metadata.is_file() {
        assert_eq!(mode & !0o640, 0, "{path:?} {mode:o}");
    }
}

#[test]
fn files_and_directories_are_not_for_others() {
    let sandbox = Sandbox::new("");
    let names = ["a/b/state", "c/d/control.sock", "g/h/captures"].map(|name| sandbox.path(name));
    let [state, socket, captures] = &names;
    sandbox.configure(&format!("[capture]\ndir = {captures:?}\n"));
    let config = fs::read_to_string(sandbox.config()).unwrap();
    let config = config.replace(&format!("{:?}", sandbox.state()), &format!("{state:?}"));
    fs::write(sandbox.config(), config.replace(&format!("{:?}", sandbox.socket()), &format!("{socket:?}"))).unwrap();
    let with_mask = |args: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_clqd"), "--config"]);
        command.arg(sandbox.config()).args(args);
        command
    };
    let mut daemon = with_mask(&["run"]).spawn().unwrap();
    wait_for("the daemon serves its socket", || sandbox.run(["reload"]).status.success().then_some(()));
    let backup = sandbox.path("i/j/backup");
    sandbox.ok(["backup".as_ref(), backup.as_os_str()]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon.id() as i32), Signal::SIGTERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    let offline = sandbox.path("k/l/backup");
    assert!(with_mask(&["backup", offline.to_str().unwrap()]).status().unwrap().success());
    for path in ["a", "c", "g", "i", "k"] {
        check_modes(&sandbox.path(path));
    }
}
