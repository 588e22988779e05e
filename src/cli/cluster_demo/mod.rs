//! `clqd cluster demo`: three database nodes, three engines, three scanners and a fleet on this machine. A key kills a
//! part, and the screen shows how the others go on. All files are temporary.

#![cfg_attr(
    not(test),
    expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "looks for free ports, and shows real time")
)]

mod nodes;
mod parts;
mod screen;
mod status;

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use self::nodes::Nodes;
use self::parts::Part;
use self::status::Picture;
use crate::api::Permission;
use crate::archive::{Archive, ArchiveSettings};
use crate::cli::screen::Key;
use crate::cli::stdio::say;
use crate::client::Client;
use crate::clock;
use crate::fleet::serve::{Fleet, RateLimit, ServeSettings};
use crate::fleet::{FaultShares, Ports, World, WorldSettings};
use crate::shutdown;
use crate::web::{TokenHash, new_token};

/// Nodes, engines and scanners: of each so many.
const COUNT: usize = 3;

/// Interval of the screen, and of lines without a terminal.
const SCREEN_INTERVAL: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Limit for a node or an engine to begin.
const START_MAX: Duration = Duration::from_secs(120);

/// Parts that are killed between leaders, by their numbers: nodes and scanners.
const BETWEEN: [usize; 2 * COUNT] = [1, 6, 2, 7, 0, 8];

const REGIONS: [&str; COUNT] = ["eu", "us", "asia"];

#[derive(Clone, Debug, clap::Args)]
pub struct ClusterDemoArgs {
    /// Number of simulated servers
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    servers: u32,
    /// Seconds until it ends [default: until q or Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Kill a part by itself every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..))]
    kill_every: Option<u64>,
    /// Print lines even on a terminal
    #[arg(long)]
    plain: bool,
}

/// Everything that runs.
struct Demo {
    nodes: Nodes,
    engines: Vec<Part>,
    scanners: Vec<Part>,
    sockets: Vec<PathBuf>,
    runtime: Runtime,
    stop: CancellationToken,
}

pub fn run(args: &ClusterDemoArgs) -> anyhow::Result<ExitCode> {
    let dir = tempfile::Builder::new().prefix("clqd-cluster-demo-").tempdir();
    let dir = dir.context("cannot create a temporary directory")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stop = runtime.block_on(async { shutdown::on_signal() })?;
    say("clqd cluster demo: three database nodes, three engines, three scanners, and simulated game servers");
    let mut demo = Demo::create(dir.path(), runtime, stop)?;
    demo.start()?;
    let fleet = start_fleet(args.servers)?;
    let add = crate::api::requests::ServersAdd { urls: fleet.urls(), tags: Vec::new(), import: false };
    let mut picture = Picture::new(args.servers);
    picture.look(&demo);
    let leader = picture.leader().context("no engine leads; see the logs of the engines")?;
    Client::connect(&demo.sockets[leader])?.lines(&add)?;
    let end = Instant::now() + args.seconds.map_or(Duration::from_secs(86_400 * 365), Duration::from_secs);
    let shown = if crate::cli::screen::is_possible() && !args.plain {
        screen::show(|draw| demo.run(&mut picture, args, end, draw))
    } else {
        let mut printed = Instant::now();
        demo.run(&mut picture, args, end, &mut |_, picture| {
            std::thread::sleep(SCREEN_INTERVAL);
            picture.new_events().iter().for_each(say);
            if printed.elapsed() >= LINE_EVERY {
                printed = Instant::now();
                say(picture.line());
            }
            Ok(None)
        })
    };
    drop(demo);
    fleet.stop();
    shown?;
    say(
        "\nThe demo has ended; all temporary files were removed. A cluster of your own: docs/operations.md, Several engines",
    );
    Ok(ExitCode::SUCCESS)
}

/// Shows a picture, and waits for a key for [`SCREEN_INTERVAL`].
type Show<'s> = &'s mut dyn FnMut(&Demo, &mut Picture) -> anyhow::Result<Option<Key>>;

impl Demo {
    /// Kills parts and starts them again, until the user quits, a stop signal is received, or the time has passed.
    fn run(&mut self, picture: &mut Picture, args: &ClusterDemoArgs, end: Instant, show: Show) -> anyhow::Result<()> {
        let mut killed = Instant::now();
        while !self.stop.is_cancelled() && Instant::now() < end {
            match show(self, picture)? {
                Some(Key::Quit) => break,
                Some(Key::Digit(digit @ 1..=9)) => picture.killed(self.kill(usize::from(digit) - 1)),
                Some(Key::Digit(_)) | None => {}
            }
            self.kill_by_itself(args.kill_every, &mut killed, picture);
            self.start_due(picture)?;
            picture.look(self);
        }
        Ok(())
    }

    fn create(dir: &Path, runtime: Runtime, stop: CancellationToken) -> anyhow::Result<Demo> {
        let nodes = Nodes::create()?;
        let program = std::env::current_exe().context("cannot find the program")?;
        let token = new_token()?;
        let (token_file, ports) = (dir.join("token"), free_ports(COUNT)?);
        std::fs::write(&token_file, &token)?;
        let addresses: Vec<SocketAddr> = ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect();
        let (mut engines, mut scanners, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..COUNT {
            let name = ["a", "b", "c"][n];
            let own = dir.join(format!("engine-{name}"));
            std::fs::create_dir_all(&own)?;
            let (config, socket) = (own.join("clqd.toml"), own.join("control.sock"));
            std::fs::write(&config, engine_config(&own, &nodes.url_from(n), name, addresses[n], &token))?;
            let arguments = ["--config".into(), config.into_os_string(), "run".into()].to_vec();
            engines.push(Part::new(format!("engine {name}"), &program, arguments, own.join("log")));
            sockets.push(socket);
            let joins = addresses.iter().flat_map(|address| ["--join".to_owned(), format!("http://{address}")]);
            let name = format!("s{}", n + 1);
            let arguments = ["scan", "--name", &name, "--region", REGIONS[n], "--token-file"].map(OsString::from);
            let config = dir.join(format!("{name}.toml"));
            std::fs::write(&config, "[scan]\nallow_private = true\nlimit_loopback = false\n")?;
            let arguments = ["--config".into(), config.into_os_string()].into_iter().chain(arguments);
            let arguments = arguments.chain([token_file.clone().into_os_string()]).chain(joins.map(OsString::from));
            let log = dir.join(format!("{name}.log"));
            scanners.push(Part::new(format!("scanner {name}"), &program, arguments.collect(), log));
        }
        Ok(Demo { nodes, engines, scanners, sockets, runtime, stop })
    }

    /// Starts all parts, in order.
    fn start(&mut self) -> anyhow::Result<()> {
        for node in 0..COUNT {
            say(format_args!("starting {} of the database", self.nodes.parts[node].name));
            self.nodes.start(node)?;
            let part = &self.nodes.parts[node];
            self.wait(|| self.runtime.block_on(self.nodes.is_ready(node)))
                .with_context(|| format!("{} of the database does not begin: {}", part.name, part.last_log_line()))?;
        }
        say("creating the tables, and starting engines and scanners");
        let settings = ArchiveSettings { url: self.nodes.url_from(0), ..ArchiveSettings::default() };
        self.runtime.block_on(async {
            let mut archive = Archive::connect(&settings).await.context("cannot use the database")?;
            archive.migrate().await.context("cannot create the tables")?;
            archive.close().await;
            Ok::<_, anyhow::Error>(())
        })?;
        for part in self.engines.iter_mut().chain(&mut self.scanners) {
            part.start(&[])?;
        }
        let mut picture = Picture::new(0);
        let has_begun = self.wait(|| {
            picture.look(self);
            picture.leader().is_some()
        });
        has_begun.with_context(|| format!("no engine leads: {}", self.engines[0].last_log_line()))
    }

    fn wait(&self, mut is_reached: impl FnMut() -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        while !is_reached() {
            ensure!(!self.stop.is_cancelled(), "stopped");
            ensure!(began.elapsed() < START_MAX, "not within {} s", START_MAX.as_secs());
            std::thread::sleep(SCREEN_INTERVAL);
        }
        Ok(())
    }

    /// The parts in the order of their keys.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.nodes.parts.iter().chain(&self.engines).chain(&self.scanners)
    }

    /// Kills a part by its number. Returns its name; `None`: it is away.
    fn kill(&mut self, number: usize) -> Option<String> {
        let mut parts = self.nodes.parts.iter_mut().chain(&mut self.engines).chain(&mut self.scanners);
        let part = parts.nth(number).filter(|part| !part.is_away())?;
        part.kill();
        Some(part.name.clone())
    }

    fn kill_by_itself(&mut self, every_s: Option<u64>, killed: &mut Instant, picture: &mut Picture) {
        if every_s.is_some_and(|every_s| killed.elapsed() >= Duration::from_secs(every_s)) {
            *killed = Instant::now();
            let kills = picture.kills();
            let number = match kills % 2 {
                0 => COUNT + picture.leader().unwrap_or_default(),
                _ => BETWEEN[kills / 2 % BETWEEN.len()],
            };
            picture.killed(self.kill(number));
        }
    }

    /// Starts the parts again that were away long enough.
    fn start_due(&mut self, picture: &mut Picture) -> anyhow::Result<()> {
        for part in self.nodes.parts.iter_mut().chain(&mut self.engines).chain(&mut self.scanners) {
            if part.note_end() {
                picture.event(format!("{} has ended by itself", part.name));
            }
        }
        let is_due = |part: &Part| part.starts_in().is_some_and(|left| left.is_zero());
        for node in 0..COUNT {
            if is_due(&self.nodes.parts[node]) && self.nodes.start(node)? {
                picture.event(format!("{} starts again", self.nodes.parts[node].name));
            }
        }
        for part in self.engines.iter_mut().chain(&mut self.scanners).filter(|part| is_due(part)) {
            part.start(&[])?;
            picture.event(format!("{} starts again", part.name));
        }
        Ok(())
    }
}

fn engine_config(dir: &Path, url: &str, name: &str, address: SocketAddr, token: &str) -> String {
    let (state, socket) = (dir.join("state"), dir.join("control.sock"));
    format!(
        "state_dir = {state:?}\ncontrol_socket = {socket:?}\n\
         [scan]\nallow_private = true\nlimit_loopback = false\ntimeout_ms = 1000\ninterval_class1_s = 3\n\
         interval_class2_s = 3\ninterval_class3_s = 3\ninterval_class4_s = 3\ninterval_class5_s = 3\n\
         [archive]\nurl = {url:?}\ninterval_s = 5\nbackoff_s_max = 1\n\
         [web]\nlisten = \"{address}\"\n[[web.token]]\nname = \"scanners\"\nhash = \"{hash}\"\nmay = [\"{may}\"]\n\
         [cluster]\nengine = \"{name}\"\naddress = \"http://{address}\"\n",
        hash = TokenHash::of(token),
        may = Permission::Scan.name(),
    )
}

/// The simulated servers. All of them answer.
fn start_fleet(servers: u32) -> anyhow::Result<Fleet> {
    let now_ms = clock::system_ms();
    let settings = WorldSettings { servers, start_ms: now_ms, activity: 1.5, ..WorldSettings::default() };
    let serve = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: now_ms,
        speed: 20.0,
        faults: FaultShares::NONE,
        rate_limit: RateLimit::none,
    };
    Fleet::start(World::new(settings), serve).context("cannot start the simulated servers")
}

/// Ports that are free at the moment, all different.
fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let open = |_| TcpListener::bind("127.0.0.1:0");
    let sockets = (0..count).map(open).collect::<Result<Vec<_>, _>>().context("cannot open a port")?;
    sockets.iter().map(|socket| Ok(socket.local_addr()?.port())).collect()
}
