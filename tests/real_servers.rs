//! Real game servers on loopback: their replies are decoded, their protocols are found without a
//! scheme, and qstat, where it knows the protocol, reports the same.
//!
//! It needs the game servers of Debian, so it is ignored by default: run `bash tests/run --real`,
//! which installs them. OpenArena has its own test.

#[path = "support/sandbox.rs"]
mod sandbox;

use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clqd::model::NO_MAP;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use sandbox::{Sandbox, wait_for};
use serde_json::Value;

const HOSTNAME: &str = "a real server";

/// A game server of Debian.
struct Game {
    program: &'static str,
    /// Writes the files that it needs into its home, and returns its arguments.
    args: fn(home: &Path, port: u16) -> Vec<String>,
    scheme: &'static str,
    /// The scheme that detection reports: the first with the wire format.
    detected: &'static str,
    /// What the port that answers is beyond that of the game.
    query_port: u16,
    /// `None`: the reply does not have it, or it depends on the machine.
    hostname: Option<&'static str>,
    slots: Option<u64>,
    map: Option<&'static str>,
    authentication: &'static str,
    has_list: bool,
    /// The option of `quakestat`; `None`: it does not know the protocol.
    qstat: Option<&'static str>,
}

/// Values that most games share.
const GAME: Game = Game {
    program: "",
    args: |_, _| Vec::new(),
    scheme: "",
    detected: "",
    query_port: 0,
    hostname: Some(HOSTNAME),
    slots: Some(8),
    map: None,
    authentication: "nonce",
    has_list: true,
    qstat: None,
};

fn words<const N: usize>(args: [&str; N]) -> Vec<String> {
    args.map(str::to_owned).to_vec()
}

const GAMES: &[Game] = &[
    Game {
        program: "teeworlds-server",
        args: |_, port| words(["sv_register 0", &format!("sv_port {port}"), &format!("sv_name {HOSTNAME}")]),
        scheme: "teeworlds7",
        detected: "teeworlds7",
        map: Some("dm1"),
        ..GAME
    },
    Game {
        program: "nexuiz-server",
        args: |_, port| {
            let port = port.to_string();
            words(["-port", &port, "+hostname", HOSTNAME, "+sv_public", "0", "+net_address", "127.0.0.1"])
        },
        scheme: "nexuiz",
        detected: "quake3",
        qstat: Some("-nexuizs"),
        ..GAME
    },
    Game {
        program: "cube2-server",
        // `-m` without a name: no master server.
        args: |home, port| {
            let home = format!("-q{}", home.display());
            words([&home, "-i127.0.0.1", &format!("-j{port}"), "-m", "-c9", &format!("-n{HOSTNAME}")])
        },
        scheme: "sauerbraten",
        detected: "cube2",
        query_port: 1,
        slots: Some(9),
        map: Some("(none)"),
        qstat: Some("-cubes"),
        ..GAME
    },
    Game {
        program: "redeclipse-server",
        args: |home, port| {
            let text = format!("sv_serverdesc \"{HOSTNAME}\"\nservertype 1\nserverip 127.0.0.1\nserverport {port}\n");
            std::fs::write(home.join("servinit.cfg"), text).unwrap();
            words([&format!("-h{}", home.display())])
        },
        scheme: "redeclipse",
        detected: "eclipse",
        query_port: 1,
        slots: None,
        ..GAME
    },
    Game {
        program: "bzfs",
        args: |_, port| words(["-p", &port.to_string(), "-i", "127.0.0.1", "-mp", "7"]),
        scheme: "bzflag",
        detected: "bzflag",
        hostname: None,
        slots: Some(7),
        map: Some("TeamFFA"),
        authentication: "challenge",
        ..GAME
    },
    Game {
        program: "murmurd",
        args: |home, port| {
            let at = |name| home.join(name).display().to_string();
            let text = format!(
                "database={}\nlogfile={}\npidfile={}\nhost=127.0.0.1\nport={port}\nusers=37\nbonjour=false\n",
                at("murmur.sqlite"),
                at("murmur.log"),
                at("murmur.pid")
            );
            std::fs::write(home.join("murmur.ini"), text).unwrap();
            words(["-fg", "-ini", &at("murmur.ini")])
        },
        scheme: "mumble",
        detected: "mumble",
        hostname: None,
        slots: Some(37),
        map: Some(""),
        has_list: false,
        ..GAME
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
        let args = (game.args)(home, port);
        let program = ["/usr/games", "/usr/bin", "/usr/sbin"]
            .map(|directory| format!("{directory}/{}", game.program))
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
        command.args(args).current_dir(home).env("HOME", home).process_group(0);
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
        let game_port = free_port();
        let server = Server::start(game, &sandbox.path(game.program), game_port);
        let port = game_port + game.query_port;
        let row = wait_for(&format!("{} answers", game.program), || {
            query(&sandbox, &format!("{}://127.0.0.1:{game_port}", game.scheme))
        });
        println!("{}: {row}", game.program);
        assert_eq!(row["hostname"].as_str().filter(|name| !name.is_empty()), game.hostname, "{row}");
        assert!(row["slots"].as_u64() == game.slots || game.slots.is_none(), "{row}");
        assert_eq!(
            (row["authentication"].as_str(), row["partial"].is_null()),
            (Some(game.authentication), game.has_list),
            "{row}"
        );
        let map = row["map"].as_str().unwrap_or_default();
        assert!(game.map.map_or(!map.is_empty(), |want| want == map), "{row}");

        let found = query(&sandbox, &format!("127.0.0.1:{game_port}")).expect("its protocol is found");
        assert_eq!(found["server"].as_str(), Some(&*format!("{}://127.0.0.1:{port}", game.detected)));
        assert_eq!((&found["hostname"], &found["game"]), (&row["hostname"], &row["game"]));

        if let Some(option) = game.qstat {
            let args = ["-P", "-raw", "\t", option, &format!("127.0.0.1:{game_port}")];
            let done = Command::new("quakestat").args(args).output().expect("quakestat");
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let columns: Vec<&str> = text.lines().next().unwrap_or_default().split('\t').collect();
            let map = if map == NO_MAP { "" } else { map };
            assert_eq!(
                columns.get(2..6),
                Some(&[HOSTNAME, map, &game.slots.unwrap_or(0).to_string(), "0"][..]),
                "{text}"
            );
        }
        drop(server);
    }
}
