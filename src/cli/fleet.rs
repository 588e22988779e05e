//! `clqd fleet`: simulated game servers on the loopback, to try, test and load clqd. They
//! must not be exposed to a network.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use strum::VariantArray;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::stdio::{note, say};
use crate::clock;
use crate::fleet::serve::{Fleet, FleetStats, RateLimit, ServeSettings};
use crate::fleet::world::{CONSTANT_PLAYERS_MAX, World, WorldSettings};
use crate::fleet::{Behaviour, BehaviourShares, FaultShares, Ports, Protocol, ProtocolShares, address};
use crate::shutdown;

/// Most servers that are advanced to the current time for each status line. In a larger fleet, a
/// server is counted as it was at its last query.
const STATUS_SERVERS_MAX: u32 = 50_000;

/// Run simulated game servers on 127.0.0.0/8
#[derive(Clone, Debug, clap::Args)]
pub struct FleetArgs {
    /// Number of servers
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(address::SERVERS_MAX)))]
    pub servers: u32,

    /// The same seed gives the same servers, players and faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Port of the Quake 3 servers; 0 lets the system choose
    #[arg(long, default_value_t = 27_960)]
    pub quake3_port: u16,

    /// Port of the Source servers; 0 lets the system choose
    #[arg(long, default_value_t = 27_015)]
    pub source_port: u16,

    /// Ports of other protocols, such as `teeworlds=8310,samp=0` [default: the usual port of each
    /// protocol]
    #[arg(long, value_name = "SCHEME=PORT,...", value_delimiter = ',', value_parser = protocol_port)]
    pub ports: Vec<(Protocol, u16)>,

    /// Fraction of servers that speak the Source protocol, 0 to 1; the rest speaks Quake 3
    #[arg(long, default_value_t = 0.4, value_parser = share, conflicts_with = "protocols")]
    pub source_share: f64,

    /// Protocols: `all`, `default`, or fractions of servers by scheme such as
    /// `source=0.2,quakeworld=0.1,teeworlds=0.1`; the rest speaks Quake 3
    #[arg(long, value_name = "SCHEME=FRACTION,...")]
    pub protocols: Option<ProtocolShares>,

    /// Speed of game time; 2 is twice real time
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// Player arrival rate; 1 gives about 2 players per server on average
    #[arg(long, default_value_t = 1.0, value_parser = activity)]
    pub activity: f64,

    /// Constant number of players on each server, instead of players who join and leave; behaviours may add entries
    #[arg(long, value_name = "N", conflicts_with = "activity", value_parser = clap::value_parser!(u16).range(0..=i64::from(CONSTANT_PLAYERS_MAX)))]
    pub players: Option<u16>,

    /// Network faults: `none`, `default`, or fractions of servers such as
    /// `silent=0.03,slow=0.02,lossy=0.03`
    #[arg(long, default_value = "default")]
    pub faults: FaultShares,

    /// Behaviours that must not be ranked: `none`, `default`, or fractions of servers such as
    /// `spectators=0.05,generic_names=0.02`; others are unmarked_bots, oversized and frozen
    #[arg(long, default_value = "default")]
    pub behaviours: BehaviourShares,

    /// Limit the replies of each server as its program does by default: ioquake3, QuakeForge, Q2PRO, Source and DDNet.
    /// Servers of other protocols have no limit
    #[arg(long)]
    pub rate_limit: bool,

    /// Run a master server on this port of 127.0.0.1 that lists the fleet by the dpmaster, QuakeWorld, Quake 2, Steam,
    /// Teeworlds 0.6 and Teeworlds 0.7 protocols; 0 lets the system choose
    #[arg(long, value_name = "PORT")]
    pub master: Option<u16>,

    /// Write the server list to this file, one URL a line
    #[arg(long, value_name = "FILE")]
    pub server_list: Option<PathBuf>,

    /// Write a configuration for a daemon that scans this fleet, with its state next to the file
    #[arg(long, value_name = "FILE")]
    pub daemon_config: Option<PathBuf>,

    /// Write the ground truth to this file at exit and on SIGUSR1, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Seconds between two status lines; 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub status_interval: u64,
}

fn speed(text: &str) -> Result<f64, String> {
    number(text, "a number above 0", |speed| speed > 0.0)
}

fn protocol_port(text: &str) -> Result<(Protocol, u16), String> {
    let form = || "expected SCHEME=PORT, such as teeworlds=8303".to_owned();
    let (scheme, port) = text.split_once('=').ok_or_else(form)?;
    let protocol = Protocol::VARIANTS.iter().find(|protocol| protocol.scheme() == scheme.trim());
    let protocol = protocol.ok_or_else(|| {
        let known: Vec<_> = Protocol::VARIANTS.iter().map(|protocol| protocol.scheme()).collect();
        format!("{scheme:?} is unknown; there are {}", known.join(", "))
    })?;
    let port = port.trim().parse().map_err(|_| format!("port {port:?} is not a number from 0 to 65535"))?;
    Ok((*protocol, port))
}

fn share(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 to 1", |share| (0.0..=1.0).contains(&share))
}

fn activity(text: &str) -> Result<f64, String> {
    number(text, "a number of at least 0", |activity| activity >= 0.0)
}

fn number(text: &str, expected: &str, is_valid: impl Fn(f64) -> bool) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| number.is_finite() && is_valid(number));
    number.ok_or_else(|| format!("expected {expected}"))
}

/// Runs until SIGINT or SIGTERM, in its own runtime, so it must not be called within
/// another. Error: a port is in use, or a file cannot be written.
pub fn run(args: FleetArgs) -> anyhow::Result<ExitCode> {
    let mut fleet = start(&args)?;
    let master =
        args.master.map(|port| fleet.serve_master(port)).transpose().context("cannot start the master server")?;
    if args.players.is_some() {
        // The first query of each server is then as fast as all others.
        fleet.advance_all();
    }
    if let Some(path) = &args.server_list {
        let lines: String = fleet.urls().iter().flat_map(|url| [url, "\n"]).collect();
        write_file(path, "the server list", |out| out.write_all(lines.as_bytes()))?;
    }
    if let Some(path) = &args.daemon_config {
        write_daemon_config(path)?;
    }
    print_summary(&fleet, args.server_list.as_deref());
    if let Some(port) = master {
        say(format_args!("A master server lists them: clqd servers import --master dpmaster://127.0.0.1:{port}/68"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_until_stopped(&fleet, &args))?;
    if let Some(path) = &args.truth {
        write_truth(&fleet, path)?;
    }
    fleet.stop();
    Ok(ExitCode::SUCCESS)
}

fn start(args: &FleetArgs) -> anyhow::Result<Fleet> {
    let now_ms = clock::system_ms();
    let world = World::new(WorldSettings {
        servers: args.servers,
        seed: args.seed,
        start_ms: now_ms,
        protocols: args.protocols.unwrap_or(ProtocolShares::source(args.source_share)),
        activity: args.activity,
        constant_players: args.players,
        behaviours: args.behaviours,
        truth: args.truth.is_some(),
        ..WorldSettings::default()
    });
    let mut ports = Ports::default();
    ports.set(Protocol::Quake3, args.quake3_port);
    ports.set(Protocol::Source, args.source_port);
    for &(protocol, port) in &args.ports {
        ports.set(protocol, port);
    }
    let settings = ServeSettings {
        ports,
        live_from_ms: now_ms,
        speed: args.speed,
        faults: args.faults,
        rate_limit: if args.rate_limit { RateLimit::of } else { RateLimit::none },
    };
    Fleet::start(world, settings).context("cannot start the fleet")
}

fn write_daemon_config(path: &Path) -> anyhow::Result<()> {
    let absolute = std::path::absolute(path).with_context(|| format!("cannot resolve {}", path.display()))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let text = format!(
        "# For a daemon that watches simulated servers on this machine.\n\
         state_dir = {:?}\ncontrol_socket = {:?}\n\n[scan]\n\
         # The limits of an address and of a network are for servers of others.\n\
         allow_private = true\nlimit_loopback = false\n",
        folder.join("clqd-state"),
        folder.join("clqd.sock"),
    );
    std::fs::write(path, text).with_context(|| format!("cannot write the configuration {}", path.display()))
}

fn print_summary(fleet: &Fleet, list: Option<&Path>) {
    let servers = fleet.servers();
    say(format_args!("{servers} servers, each with its own address, {} per /24 network:", address::SERVERS_PER_24));
    say(format_args!("  {} to {}", address::address_of(0), address::address_of(servers - 1)));
    for &protocol in Protocol::VARIANTS {
        if let Some(first) = (0..servers).find(|&server| fleet.protocol(server) == protocol) {
            say(format_args!("  {} on port {}, such as {}", protocol.scheme(), fleet.port(protocol), fleet.url(first)));
        }
    }
    for &behaviour in Behaviour::VARIANTS {
        let count = (0..servers).filter(|&server| fleet.behaviour(server) == Some(behaviour)).count();
        if count > 0 {
            say(format_args!("  {count} with the behaviour {}", behaviour.name()));
        }
    }
    match list {
        Some(path) => say(format_args!(
            "To scan them all: clqd servers import {} (the daemon needs scan.allow_private)",
            path.display()
        )),
        None => say("--server-list FILE writes their URLs for: clqd servers import FILE"),
    }
}

async fn run_until_stopped(fleet: &Fleet, args: &FleetArgs) -> anyhow::Result<()> {
    let stop = shutdown::on_signal()?;
    let mut write_now = signal(SignalKind::user_defined1())?;
    let period = Duration::from_secs(if args.status_interval == 0 { 3_600 } else { args.status_interval });
    let mut status = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    let mut previous = fleet.stats();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = write_now.recv() => match &args.truth {
                Some(path) => write_truth(fleet, path)?,
                None => note("SIGUSR1 needs --truth FILE"),
            },
            _ = status.tick() => if args.status_interval > 0 {
                if fleet.servers() <= STATUS_SERVERS_MAX {
                    fleet.advance_all();
                }
                let now = fleet.stats();
                say(status_line(previous, now, fleet.players_online(), period));
                previous = now;
            },
        }
    }
}

fn status_line(previous: FleetStats, now: FleetStats, players: u64, period: Duration) -> String {
    let rate = |count: fn(&FleetStats) -> u64| (count(&now) - count(&previous)) as f64 / period.as_secs_f64();
    let mut line = format!(
        "{:.0} queries/s, {:.0} replies/s, {players} players online",
        rate(|stats| stats.queries),
        rate(|stats| stats.replies)
    );
    for (what, count) in [
        ("limited", rate(|stats| stats.rate_limited)),
        ("refused", rate(|stats| stats.rejected)),
        ("unsent", rate(|stats| stats.send_failures)),
    ] {
        if count > 0.0 {
            line.push_str(&format!(", {count:.1} {what}/s"));
        }
    }
    line
}

fn write_truth(fleet: &Fleet, path: &Path) -> anyhow::Result<()> {
    write_file(path, "the truth", |out| fleet.write_truth(out))
}

/// Writes a temporary file and renames it, so that a reader never sees an incomplete
/// file. A pipe or a device is written directly.
fn write_file(
    path: &Path,
    what: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {what} to {}", path.display());
    if path.exists() && !path.is_file() {
        let mut out = BufWriter::new(File::options().write(true).open(path).with_context(cannot)?);
        return write(&mut out).and_then(|()| out.flush()).with_context(cannot);
    }
    let mut name = path.file_name().with_context(cannot)?.to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let mut out = BufWriter::new(File::create(&temporary).with_context(cannot)?);
    write(&mut out).and_then(|()| out.flush()).with_context(cannot)?;
    drop(out);
    std::fs::rename(&temporary, path).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_shows_rates() {
        let now = FleetStats { queries: 1_000, replies: 950, send_failures: 1, ..FleetStats::default() };
        assert_eq!(
            status_line(FleetStats::default(), now, 7, Duration::from_secs(5)),
            "200 queries/s, 190 replies/s, 7 players online, 0.2 unsent/s"
        );
    }

    #[test]
    fn truth_file_is_written_and_bad_options_are_refused() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            fleet: FleetArgs,
        }
        use clap::Parser;
        let line =
            ["fleet", "--servers", "7", "--quake3-port", "0", "--source-port", "0", "--truth", "x", "--faults=none"];
        let args = Cli::parse_from(line).fleet;
        let fleet = start(&args).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("truth.jsonl");
        write_truth(&fleet, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("\"kind\":\"server\"")).count(), 7);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        for invalid in [
            ["--servers", "0"],
            ["--faults", "noisy=1"],
            ["--behaviours", "ghosts=1"],
            ["--speed", "x"],
            ["--speed", "0"],
            ["--source-share", "1.1"],
            ["--protocols", "quake=1"],
            ["--protocols", "samp=0.9,ase=0.2"],
            ["--ports", "quake=1"],
            ["--ports", "samp"],
            ["--ports", "samp=70000"],
            ["--players", "65"],
        ] {
            assert!(Cli::try_parse_from([&["fleet"][..], &invalid].concat()).is_err());
        }
        for both in [["--source-share", "0.1", "--protocols", "all"], ["--players", "4", "--activity", "2"]] {
            assert!(Cli::try_parse_from([&["fleet"][..], &both].concat()).is_err());
        }
    }

    #[test]
    fn protocols_and_ports_are_chosen() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            fleet: FleetArgs,
        }
        use clap::Parser;
        let line = ["fleet", "--servers=40", "--protocols", "samp=0.5,ase=0.5", "--ports", "samp=0,ase=0"];
        let fleet = start(&Cli::parse_from(line).fleet).unwrap();
        let count = |protocol| (0..40).filter(|&server| fleet.protocol(server) == protocol).count();
        assert_eq!(count(Protocol::SaMp) + count(Protocol::Ase), 40);
        assert!(count(Protocol::SaMp) > 5 && fleet.port(Protocol::SaMp) != Protocol::SaMp.usual_port());
        assert_eq!(fleet.port(Protocol::Quake3), 0);
    }
}
