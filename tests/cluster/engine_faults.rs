//! Three engines on a cluster of three database nodes, and three scanners: each of them is killed, paused, stopped and cut
//! off at random. In the end all engines, a replay of the log, and the archive have the same rows.
//!
//! `CLQD_FAULTS` failures; `CLQD_SERVERS` servers, scanned every `CLQD_INTERVAL_S`. With more than a second, they are
//! archived twice in an interval.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::daemon::{stored_by, tables};
use crate::database::cluster::{Cluster, Fault, NODES, url_of};
use crate::database::world::assert_same;
use crate::engines::{ENGINES, Engines};
use crate::relay::Relay;
use crate::sandbox::{Sandbox, number, seed, wait_until};

const SCANNERS: usize = 3;

/// One of the things that happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    KillEngine,
    PauseEngine(Duration),
    StopEngine,
    /// From one node, or from all.
    CutEngine {
        from_all: bool,
        time: Duration,
    },
    /// From all scanners.
    CutFromScanners(Duration),
    KillScanner,
    PauseScanner(Duration),
    Node(Fault, Duration),
    /// From the other nodes.
    CutNode(Duration),
    KillAllNodes,
}

/// Random numbers: the same for one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn event(&mut self) -> Event {
        let pause_ms_max = if self.below(8) == 0 { 60_000 } else { 8_000 };
        let pause = Duration::from_millis(500 + self.below(pause_ms_max));
        match self.below(21) {
            0..=2 => Event::KillEngine,
            3..=5 => Event::PauseEngine(pause),
            6 => Event::StopEngine,
            7..=9 => Event::CutEngine { from_all: self.below(2) == 0, time: pause },
            10 => Event::CutFromScanners(pause),
            11..=12 => Event::KillScanner,
            13 => Event::PauseScanner(pause),
            14..=15 => Event::Node(Fault::Kill, pause),
            16..=17 => Event::Node(Fault::Pause, pause),
            18 => Event::Node(Fault::ShutDown, pause),
            19 => Event::CutNode(pause),
            _ => Event::KillAllNodes,
        }
    }
}

/// The relays between the programs, whose connections are cut.
struct Network {
    /// By engine and node.
    to_nodes: Vec<Vec<Relay>>,
    /// By engine: for the scanners.
    to_engines: Vec<Relay>,
    /// Where the engines listen.
    engines: Vec<SocketAddr>,
}

impl Network {
    async fn new(cluster: &Cluster) -> Network {
        let sockets: Vec<TcpListener> =
            (0..ENGINES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let engines: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_addr().expect("an address")).collect();
        let (mut to_nodes, mut to_engines) = (Vec::new(), Vec::new());
        for address in &engines {
            let mut of_engine = Vec::new();
            for node in 0..NODES {
                of_engine.push(Relay::to(cluster.address(node).parse().expect("an address")).await);
            }
            to_nodes.push(of_engine);
            to_engines.push(Relay::to(*address).await);
        }
        Network { to_nodes, to_engines, engines }
    }

    /// The database of an engine: the nodes, its own first.
    fn url_of(&self, engine: usize) -> String {
        let relays = &self.to_nodes[engine];
        let hosts: Vec<String> =
            (0..NODES).map(|offset| relays[(engine + offset) % NODES].address.to_string()).collect();
        url_of(&hosts)
    }
}

struct Scanner {
    process: Child,
    dir: Sandbox,
}

impl Scanner {
    fn start(&mut self, name: &str, network: &Network) {
        let joins =
            network.to_engines.iter().flat_map(|relay| ["--join".to_owned(), format!("http://{}", relay.address)]);
        let token = self.dir.path("token").display().to_string();
        let own = ["--name", name, "--region", name, "--token-file", &token].map(str::to_owned);
        let arguments = ["scan".to_owned()].into_iter().chain(joins).chain(own);
        self.process = self.dir.command(arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("clqd");
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).expect("it runs");
    }

    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it has ended");
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        _ = self.process.kill();
    }
}

/// How long something took after failures.
#[derive(Default)]
struct Times(BTreeMap<&'static str, Vec<Duration>>);

impl Times {
    fn measure(&mut self, what: &'static str, wait: impl FnOnce()) {
        let began = Instant::now();
        wait();
        self.0.entry(what).or_default().push(began.elapsed());
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(what, times)| {
            let mut times = times.clone();
            times.sort_unstable();
            let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
            writeln!(f, "{what}: {} times, median {median:.1?}, longest {longest:.1?}", times.len())
        })
    }
}

/// Waits until nearly everything is archived, however long it takes: there are scans, which are misses now. The rest is
/// archived when the leader stops.
fn wait_until_archived(leader: &Sandbox, servers: u64) {
    let (began, mut left) = (Instant::now(), u64::MAX);
    while left > servers {
        wait_until("the archive writes", || {
            let before = left;
            left = left.min(leader.status()["outbox_entries"].as_u64().unwrap_or(u64::MAX));
            left < before
        });
        if began.elapsed() > Duration::from_secs(10) {
            println!("{left} records are not archived after {:.0?}", began.elapsed());
        }
    }
}

/// Waits until the scans of all servers are back on time.
fn wait_for_scans(engines: &Engines, interval_s: u64) {
    match interval_s {
        1 => engines.wait_for_scans(),
        // An elastic scan is two intervals after the one before at most.
        _ => engines.wait_until_none_is_late(Duration::from_secs(2 * interval_s + 10)),
    }
}

/// Servers of one process, at most: each has a socket.
const FLEET_SERVERS: u64 = 10_000;

/// Simulated servers in processes of their own.
struct Fleets(Vec<(Child, Sandbox)>);

impl Fleets {
    fn start(servers: u64, speed: f64) -> Fleets {
        let start = |n: u64| {
            let dir = Sandbox::new("");
            let count = FLEET_SERVERS.min(servers - n * FLEET_SERVERS).to_string();
            let (seed, speed, list) = ((93 + n).to_string(), speed.to_string(), dir.path("list"));
            let mut command = dir.command(["fleet", "--servers", &count, "--seed", &seed, "--speed", &speed]);
            command.args(["--activity", "6", "--faults", "none", "--behaviours", "none", "--status-interval", "0"]);
            command.args(["--quake3-port", "0", "--source-port", "0", "--server-list"]).arg(&list);
            let process = command.stdout(Stdio::null()).spawn().expect("clqd");
            wait_until("the fleet has written its list", || list.exists());
            (process, dir)
        };
        Fleets((0..servers.div_ceil(FLEET_SERVERS)).map(start).collect())
    }

    fn add_to(&self, engine: &Sandbox) {
        for (_, dir) in &self.0 {
            engine.ok(["servers".as_ref(), "import".as_ref(), dir.path("list").as_os_str()]);
        }
    }
}

impl Drop for Fleets {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(process, _)| _ = process.kill());
    }
}

fn start_scanners(network: &Network, token: &str) -> Vec<Scanner> {
    let start = |n: usize| {
        let dir = Sandbox::new("");
        std::fs::write(dir.path("token"), token).expect("written");
        let idle = dir.command(["--version"]).stdout(Stdio::null()).spawn().expect("clqd");
        let mut scanner = Scanner { process: idle, dir };
        scanner.kill();
        scanner.start(&format!("s{n}"), network);
        scanner
    };
    (0..SCANNERS).map(start).collect()
}

#[test]
#[ignore = "starts a cluster; tests/run --cluster"]
fn engines_survive_failures_of_engines_scanners_and_nodes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::start());
    let network = runtime.block_on(Network::new(&cluster));
    let made = Sandbox::new("").ok(["token", "new", "scanners", "--may", "scan"]);
    let (token, section) = made.split_once("\n\n").expect("a token and a section");
    let interval_s = number("CLQD_INTERVAL_S", 1);
    let mut engines = Engines::start_every(interval_s, |engine| {
        let address = network.to_engines[engine].address;
        let own = format!("address = \"http://{address}\"\n[web]\nlisten = \"{}\"\n{section}", network.engines[engine]);
        (network.url_of(engine), own)
    });
    let mut scanners = start_scanners(&network, token);
    let servers = number("CLQD_SERVERS", 30);
    let fleets = Fleets::start(servers, 60.0 / interval_s as f64);
    fleets.add_to(engines.sandbox_of_leader());
    wait_for_scans(&engines, interval_s);
    println!("every server was scanned");
    let mut random = Random(seed());
    let (mut times, mut earlier) = (Times::default(), BTreeMap::new());
    for n in 0..number("CLQD_FAULTS", 12) {
        let (event, leader) = (random.event(), engines.leader());
        // The leader most often.
        let engine = if random.below(3) > 0 { leader } else { random.below(ENGINES as u64) as usize };
        let (node, one) = (random.below(NODES as u64) as usize, random.below(SCANNERS as u64) as usize);
        println!("{n}: {event:?}, engine {engine} of leader {leader}, node {node}, scanner {one}");
        match event {
            Event::KillEngine => {
                engines.kill(engine);
                if engine == leader {
                    times.measure("outcomes after a leader was killed", || engines.wait_for_outcomes());
                }
                std::thread::sleep(Duration::from_millis(random.below(5_000)));
                engines.start_again(engine);
            }
            Event::PauseEngine(time) => engines.pause(engine, time),
            Event::StopEngine => {
                engines.stop(engine);
                std::thread::sleep(Duration::from_millis(random.below(2_000)));
                engines.start_again(engine);
            }
            Event::CutEngine { from_all, time } => {
                let relays = &network.to_nodes[engine];
                match from_all {
                    true => Relay::cut_for(&relays.iter().collect::<Vec<_>>(), time),
                    false => Relay::cut_for(&[&relays[node]], time),
                }
            }
            Event::CutFromScanners(time) => Relay::cut_for(&[&network.to_engines[engine]], time),
            Event::KillScanner => {
                scanners[one].kill();
                times.measure("all scans on time after a scanner was killed", || wait_for_scans(&engines, interval_s));
                scanners[one].start(&format!("s{one}"), &network);
            }
            Event::PauseScanner(time) => {
                scanners[one].signal(Signal::SIGSTOP);
                std::thread::sleep(time);
                scanners[one].signal(Signal::SIGCONT);
            }
            Event::Node(fault, time) => {
                cluster.inflict(node, fault);
                let what = match fault {
                    Fault::Kill => "outcomes after a node was killed",
                    Fault::Pause => "outcomes after a node was paused",
                    Fault::ShutDown => "outcomes after a node was shut down",
                };
                times.measure(what, || engines.wait_for_outcomes());
                std::thread::sleep(time);
                runtime.block_on(async {
                    cluster.restore(node, fault).await;
                    cluster.wait_until_all_synced().await;
                });
            }
            Event::CutNode(time) => {
                runtime.block_on(cluster.set_cut_off(node, true));
                times.measure("outcomes after a node was cut off", || engines.wait_for_outcomes());
                std::thread::sleep(time);
                runtime.block_on(async {
                    cluster.set_cut_off(node, false).await;
                    cluster.wait_until_all_synced().await;
                });
            }
            Event::KillAllNodes => runtime.block_on(cluster.kill_all_and_restart()),
        }
        times.measure("outcomes after the end of a failure", || engines.wait_for_outcomes());
        times.measure("then, all scans on time", || wait_for_scans(&engines, interval_s));
        let status = engines.sandbox_of_leader().run(["--json", "status"]).out;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        // A counter of the process.
        let pid = status["daemon"]["pid"].as_u64().unwrap_or_default();
        earlier.insert(pid, status["counters"]["scanners.earlier_answers"].as_u64().unwrap_or_default());
    }
    print!("{times}");
    let earlier: u64 = earlier.values().sum();
    println!("the leaders after the failures took {earlier} answers to scans of earlier ones");
    let answered: u64 = {
        let rows = engines.sandbox_of_leader().json(["scanners"]);
        rows.iter().map(|row| row["answered"].as_u64().expect("a number")).sum()
    };
    assert!(answered > 0, "the scanners scan");
    drop(fleets);
    scanners.iter_mut().for_each(Scanner::kill);
    engines.wait_until_equal();
    let leader = engines.leader();
    wait_until_archived(&engines.sandboxes[leader], servers);
    let followers = (0..ENGINES).filter(|&engine| engine != leader);
    followers.into_iter().for_each(|engine| drop(engines.stop(engine)));
    let log = engines.stop(leader);
    engines.sandboxes.iter().for_each(Sandbox::assert_replay_equals_state);
    assert_eq!(engines.sandboxes[leader].status()["outbox_entries"], 0, "{log}");
    let want = runtime.block_on(stored_by(&engines.sandboxes[leader]));
    assert!(want["player_week"].len() > 50, "{} rows", want["player_week"].len());
    for node in 0..NODES {
        let found = runtime.block_on(async {
            cluster.wait_until_equal().await;
            tables(&cluster.database(node)).await
        });
        assert_same(&found, &want, &format!("node {node}"));
    }
}
