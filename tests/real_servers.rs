//! Real game servers on loopback: their replies are decoded, their protocols are found without a
//! scheme, and qstat, where it knows the protocol, reports the same.
//!
//! It needs Debian's packages `teeworlds-server` and `nexuiz-server`, so it is ignored by
//! default: run `bash tests/run --real`, which installs them. OpenArena has its own test.

#[path = "support/sandbox.rs"]
mod sandbox;

use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use sandbox::{Sandbox, wait_for};
use serde_json::Value;

const HOSTNAME: &str = "a real server";

/// A game server of Debian.
struct Game {
    program: &'static str,
    args: fn(port: u16) -> Vec<String>,
    scheme: &'static str,
    /// The scheme that detection reports: the first with the wire format.
    detected: &'static str,
    slots: u64,
    map: Option<&'static str>,
    /// The option of `quakestat`; `None`: it does not know the protocol.
    qstat: Option<&'static str>,
}

const GAMES: &[Game] = &[
    Game {
        program: "teeworlds-server",
        args: |port| {
            let settings = ["sv_register 0", &format!("sv_port {port}"), &format!("sv_name {HOSTNAME}")];
            settings.map(str::to_owned).to_vec()
        },
        scheme: "teeworlds7",
        detected: "teeworlds7",
        slots: 8,
        map: Some("dm1"),
        qstat: None,
    },
    Game {
        program: "nexuiz-server",
        args: |port| {
            let port = port.to_string();
            let args = ["-port", &port, "+hostname", HOSTNAME, "+sv_public", "0", "+net_address", "127.0.0.1"];
            args.map(str::to_owned).to_vec()
        },
        scheme: "nexuiz",
        detected: "quake3",
        slots: 8,
        map: None,
        qstat: Some("-nexuizs"),
    },
];

/// A running server; the whole process group is killed at the end, because some programs are
/// scripts.
struct Server {
    child: Child,
}

impl Server {
    fn start(game: &Game, home: &Path, port: u16) -> Server {
        std::fs::create_dir(home).unwrap();
        // The server does not run as root, and only its owner may enter a temporary directory.
        for path in [home.parent().unwrap(), home] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        }
        let program = [format!("/usr/games/{}", game.program), format!("/usr/bin/{}", game.program)]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .unwrap_or_else(|| panic!("{} is not installed", game.program));
        let mut command = match nix::unistd::geteuid().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", &program]);
                command
            }
            false => Command::new(&program),
        };
        let log = std::fs::File::create(home.join("log")).unwrap();
        command.args((game.args)(port)).current_dir(home).env("HOME", home).process_group(0);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Server { child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The only row of `clqd --json query ADDRESS`; `None`: the server did not answer.
fn query(sandbox: &Sandbox, address: &str) -> Option<Value> {
    let done = sandbox.run(["--json", "query", address]);
    let row: Value = serde_json::from_str(done.out.lines().next()?).unwrap();
    (row["miss"].is_null()).then_some(row)
}

#[test]
#[ignore = "needs game servers: bash tests/run --real"]
fn replies_of_real_servers_are_decoded_and_their_protocols_found() {
    let sandbox = Sandbox::new("");
    for game in GAMES {
        let port = free_port();
        let server = Server::start(game, &sandbox.path(game.program), port);
        let row = wait_for(&format!("{} answers", game.program), || {
            query(&sandbox, &format!("{}://127.0.0.1:{port}", game.scheme))
        });
        assert_eq!((row["hostname"].as_str(), row["slots"].as_u64()), (Some(HOSTNAME), Some(game.slots)), "{row}");
        assert_eq!((row["authentication"].as_str(), row["partial"].is_null()), (Some("nonce"), true), "{row}");
        assert!(row["details"]["version"].is_string(), "{row}");
        let map = row["map"].as_str().unwrap();
        assert!(!map.is_empty() && game.map.is_none_or(|want| want == map), "{row}");

        let found = query(&sandbox, &format!("127.0.0.1:{port}")).expect("its protocol is found");
        assert_eq!(found["server"].as_str(), Some(&*format!("{}://127.0.0.1:{port}", game.detected)));
        assert_eq!((&found["hostname"], &found["game"]), (&row["hostname"], &row["game"]));

        if let Some(option) = game.qstat {
            let args = ["-P", "-raw", "\t", option, &format!("127.0.0.1:{port}")];
            let done = Command::new("quakestat").args(args).output().expect("quakestat");
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let columns: Vec<&str> = text.lines().next().unwrap_or_default().split('\t').collect();
            assert_eq!(columns.get(2..6), Some(&[HOSTNAME, map, &game.slots.to_string(), "0"][..]), "{text}");
        }
        drop(server);
    }
}
