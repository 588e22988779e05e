//! The configuration file of a running daemon: commands work while the file is broken, and
//! `clqd reload` and `clqd check-config` refuse what the next start would refuse.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::{Uid, User, chown, geteuid};

use crate::sandbox::Sandbox;

#[test]
fn commands_reach_the_daemon_while_the_config_has_errors() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let good = fs::read_to_string(sandbox.config()).unwrap();
    // A typo, and a file that is not TOML after the key.
    for broken in [good.replace("[scan]", "[scann]"), good.replace("retries = 4", "retries = \"4")] {
        fs::write(sandbox.config(), broken).unwrap();
        let status = sandbox.run(["--json", "status"]);
        assert!(status.status.success(), "{}{}", status.out, status.err);
        assert!(status.out.contains(&format!("\"pid\":{}", daemon.pid())), "{}", status.out);
        assert!(status.err.starts_with("clqd: warning: the configuration has "), "{}", status.err);
        assert!(status.err.contains("control.sock"), "{}", status.err);
        sandbox.ok(["servers", "add", "quake3://127.0.0.1:1"]);
        sandbox.ok(["servers", "remove", "quake3://127.0.0.1:1"]);
        sandbox.ok(["backup", sandbox.path("backup").to_str().unwrap()]);
        fs::remove_dir_all(sandbox.path("backup")).unwrap();
        let refused = sandbox.run(["reload"]);
        assert!(!refused.status.success(), "{}", refused.out);
        assert_eq!(refused.err.matches("the configuration has ").count(), 1, "{}", refused.err);
    }
    // A file that cannot be read: no process may read a directory.
    fs::remove_file(sandbox.config()).unwrap();
    fs::create_dir(sandbox.config()).unwrap();
    let socket = sandbox.socket();
    let status = sandbox.run(["--socket", socket.to_str().unwrap(), "status"]);
    assert!(status.status.success() && status.err.is_empty(), "{}", status.err);
    let default = sandbox.run(["status"]);
    assert!(default.err.contains("cannot read") && default.err.contains("/run/clqd/control.sock"), "{}", default.err);
    fs::remove_dir(sandbox.config()).unwrap();
    daemon.stop();

    fs::write(sandbox.config(), good.replace("[scan]", "[scann]")).unwrap();
    let status = sandbox.run(["status"]);
    assert!(
        !status.status.success() && status.err.contains("because the configuration cannot be used"),
        "{}",
        status.err
    );
}

/// Adds top-level keys to the config.
fn configure(sandbox: &Sandbox, keys: &str) {
    sandbox.configure("");
    let text = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), format!("{keys}{text}")).unwrap();
}

#[test]
fn time_zone_that_the_state_forbids_is_an_error_of_check_and_reload() {
    let sandbox = Sandbox::new("");
    let berlin = "time_zone = \"Europe/Berlin\"\n";
    let file = sandbox.config();
    let check = || sandbox.run(["check-config", file.to_str().unwrap()]);
    configure(&sandbox, berlin);
    assert!(check().status.success(), "there is no state yet");
    configure(&sandbox, "");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", "quake3://127.0.0.1:1"]);
    configure(&sandbox, berlin);
    let want = format!("{}:1: time_zone: the state was counted in time zone \"UTC\"", file.display());
    let checked = check();
    assert_eq!(checked.status.code(), Some(1), "{}", checked.out);
    assert!(checked.out.starts_with(&want), "{}", checked.out);
    let reloaded = sandbox.run(["reload"]);
    assert_eq!(reloaded.status.code(), Some(1), "{}", reloaded.out);
    assert!(reloaded.err.contains(&want), "{}", reloaded.err);
    // Neither the socket of the file nor the one in use leads to the daemon.
    let elsewhere = sandbox.path("elsewhere.sock");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(sandbox.socket().to_str().unwrap(), elsewhere.to_str().unwrap())).unwrap();
    let unknown = check();
    assert!(unknown.status.success(), "{}", unknown.out);
    let note = "note: the configuration is not compared with the state: state directory ";
    assert!(unknown.out.contains(note) && unknown.out.contains("is in use by process"), "{}", unknown.out);
    configure(&sandbox, berlin);
    daemon.stop();
    // As the next start says.
    let checked = check();
    assert!(checked.out.starts_with(&want), "{}", checked.out);
    let started = sandbox.run(["run"]);
    assert!(!started.status.success() && started.err.contains("was counted in time zone"), "{}", started.err);
    configure(&sandbox, "");
    assert!(check().status.success());
}

#[test]
fn reload_refuses_what_the_next_start_refuses() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let other = Sandbox::new("");
    let foreign = other.start();
    other.ok(["servers", "add", "quake3://127.0.0.1:1"]);
    foreign.stop();
    let good = fs::read_to_string(sandbox.config()).unwrap();
    let state_dir = |path: &std::path::Path| {
        good.replace(
            &format!("state_dir = {:?}", sandbox.state()),
            &format!("time_zone = \"Asia/Tokyo\"\nstate_dir = {path:?}"),
        )
    };
    for (text, want) in [
        (
            // The file of the config is no directory.
            format!("{good}[capture]\ndir = {:?}\n", sandbox.config().join("captures")),
            "capture.dir: cannot look at ",
        ),
        // An address for documentation: no machine has it.
        (good.replace("listen = \"\"", "listen = \"192.0.2.1:8480\""), "web.listen: cannot listen at 192.0.2.1: "),
        (state_dir(&other.state()), "time_zone: the state was counted in time zone \"UTC\""),
    ] {
        fs::write(sandbox.config(), &text).unwrap();
        let reloaded = sandbox.run(["reload"]);
        assert!(!reloaded.status.success() && reloaded.err.contains(want), "{want}: {}", reloaded.err);
        let checked = sandbox.run(["check-config"]);
        assert!(!checked.status.success() && checked.out.contains(want), "{want}: {}", checked.out);
    }
    // A directory without a state may be used from the next start on.
    fs::write(sandbox.config(), state_dir(&sandbox.path("new")).replace("Asia/Tokyo", "UTC")).unwrap();
    let reloaded = sandbox.run(["reload"]);
    assert!(reloaded.status.success(), "{}", reloaded.err);
    assert!((reloaded.out + &reloaded.err).contains("kept until a restart: state_dir"));
    daemon.stop();
}

/// Root may read every file, so the check by root looks at what the owner of the state directory may read.
#[test]
fn check_by_root_notes_what_the_owner_of_the_state_cannot_read() {
    assert!(geteuid().is_root(), "only root can give files to other users");
    let owner = User::from_name("nobody").unwrap().expect("a user");
    let sandbox = Sandbox::new("");
    let password = sandbox.path("password");
    sandbox.configure(&format!("[archive]\nurl = \"mysql://clqd@127.0.0.1:1/clqd\"\npassword_file = {password:?}\n"));
    fs::write(&password, "SECRET\n").unwrap();
    fs::create_dir(sandbox.state()).unwrap();
    for (path, mode) in [(sandbox.path(""), 0o755), (sandbox.config(), 0o644), (password.clone(), 0o600)] {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let notes = || sandbox.json(["check-config"])[0]["notes"].to_string();
    let about = |file: &std::path::Path| format!("nobody, the owner of state_dir, cannot read {}", file.display());
    assert!(!notes().contains("the owner of state_dir"), "root is the owner: {}", notes());
    chown(&sandbox.state(), Some(owner.uid), Some(owner.gid)).unwrap();
    assert!(notes().contains(&format!("archive.password_file: {}", about(&password))), "{}", notes());
    assert!(!notes().contains(&about(&sandbox.config())), "{}", notes());
    let printed = sandbox.ok(["check-config"]);
    assert!(printed.lines().any(|line| line.starts_with("note: ") && line.contains(&about(&password))), "{printed}");
    // A group that the owner is in may read it.
    chown(&password, Some(Uid::from_raw(0)), Some(owner.gid)).unwrap();
    fs::set_permissions(&password, PermissionsExt::from_mode(0o640)).unwrap();
    assert!(!notes().contains("cannot read"), "{}", notes());
    // The directory above may be closed to it.
    fs::set_permissions(sandbox.path(""), PermissionsExt::from_mode(0o700)).unwrap();
    assert!(notes().contains(&about(&password)) && notes().contains(&about(&sandbox.config())), "{}", notes());
}
