//! `clqd demo`: a complete demonstration in one command, without any set-up.
//!
//! A fleet of simulated servers, a new state directory, two weeks of history through the
//! same engine, then a real daemon that scans the fleet at short intervals, and a live
//! dashboard. All files are temporary and deleted at the end.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "looks for free ports"))]

mod dashboard;
mod sampler;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::cli::demo::sampler::DemoState;
use crate::cli::stdio::say;
use crate::clock;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::engine::{Event, Outcome};
use crate::fleet::serve::{Fleet, RateLimit, ServeSettings};
use crate::fleet::{FaultShares, Ports, Protocol, SimulatedHistory, World, WorldSettings, address};
use crate::model::ServerUrl;
use crate::model::calendar::{DAY_MS, HOUR_MS};
use crate::shutdown;
use crate::state::State;

/// Snapshots of history between two commits.
const SNAPSHOTS_PER_COMMIT: u64 = 20_000;

/// Interval of dashboard updates, and of lines without a terminal.
const SCREEN_INTERVAL: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Number of simulated servers
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub servers: u32,
    /// Days of history to simulate first
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(0..=70))]
    pub days: u32,
    /// Also write to this database
    ///
    /// Such as mysql://user:password@host:3306/database
    #[arg(long, value_name = "URL")]
    pub mysql: Option<String>,
    /// Seconds of live scanning [default: until Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Print lines even on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Selects servers and players
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

pub fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let dir = tempfile::Builder::new().prefix("clqd-demo-").tempdir().context("cannot create a temporary directory")?;
    let (quake3_port, source_port) = (free_port()?, free_port()?);
    ensure!(quake3_port != source_port, "the system assigned one port twice; try again");
    let mut ports = Ports::ANY;
    ports.set(Protocol::Quake3, quake3_port);
    ports.set(Protocol::Source, source_port);
    let website = website_address()?;
    let config = config(args, dir.path(), website);
    let now_ms = clock::system_ms();
    let from_ms = now_ms - i64::from(args.days) * DAY_MS;
    let mut world = World::new(WorldSettings {
        servers: args.servers,
        seed: args.seed,
        start_ms: from_ms,
        activity: 1.5,
        truth: false,
        ..WorldSettings::default()
    });
    let url = |world: &World, server: u32| {
        let protocol = world.protocol(server);
        let port = ports.of(protocol);
        ServerUrl::parse(&format!("{}://{}:{port}", protocol.scheme(), address::address_of(server)))
    };
    let urls = (0..args.servers).map(|server| url(&world, server)).collect::<Result<Vec<_>, _>>()?;

    say(format_args!("website: http://{website} (in a few seconds)"));
    say(format_args!("clqd demo: {} simulated game servers, {} days of history first", args.servers, args.days));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stop = runtime.block_on(async { shutdown::on_signal() })?;
    let played = import_history(&config, &mut world, &urls, from_ms, now_ms, &stop)?;
    if !played {
        say("stopped; all temporary files were removed");
        return Ok(ExitCode::SUCCESS);
    }
    let fleet = Fleet::start(
        world,
        ServeSettings {
            ports,
            live_from_ms: now_ms,
            speed: 20.0,
            faults: FaultShares::default(),
            rate_limit: RateLimit::none,
        },
    )
    .context("cannot start the fleet")?;
    runtime.block_on(run_live(args, config, &urls, &stop))?;
    fleet.stop();
    say("\nThe demo has ended; all temporary files were removed. Next steps:");
    say("  your own fleet, in one terminal:");
    say(format_args!("    {} fleet --servers 1000 --server-list servers.txt --daemon-config try.toml", program()));
    say("  a daemon that scans it, in a second, and its commands in a third:");
    say(format_args!("    {} --config try.toml run", program()));
    say(format_args!("    {} --config try.toml servers import servers.txt", program()));
    say(format_args!("    {} --config try.toml status", program()));
    say("  one real game server, without a daemon:");
    say(format_args!("    {} query quake3://HOST:PORT", program()));
    say("  install it, connect a website: docs/operations.md");
    Ok(ExitCode::SUCCESS)
}

/// The program as it was called, so that printed commands can be copied.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    // `cargo run` passes a path relative to the current directory.
    if called.is_empty() { "clqd".to_owned() } else { called }
}

/// Configuration of the demo: scans every few seconds instead of minutes.
fn config(args: &DemoArgs, dir: &Path, website: SocketAddr) -> Config {
    let (state_dir, control_socket) = (dir.join("state"), dir.join("control.sock"));
    let mut config = Config { state_dir, control_socket, ..Config::default() };
    config.web.listen = website.to_string();
    config.scan.allow_private = true;
    config.scan.limit_loopback = false;
    config.scan.timeout_ms = 1_000;
    config.scan.interval_class1_s = 3;
    config.scan.interval_class2_s = 10;
    config.scan.interval_class3_s = 30;
    config.scan.interval_class4_s = 60;
    config.scan.interval_class5_s = 120;
    if let Some(url) = &args.mysql {
        config.archive.url.clone_from(url);
        config.archive.interval_s = 10;
    }
    config
}

/// The address of the website: the default one, or a free port if other programs use it.
fn website_address() -> anyhow::Result<SocketAddr> {
    let default = Config::default().web.listen;
    let listener = TcpListener::bind(default).or_else(|_| TcpListener::bind("127.0.0.1:0"));
    Ok(listener.context("cannot open a port for the website")?.local_addr()?)
}

/// Returns a port that is free at the moment.
fn free_port() -> anyhow::Result<u16> {
    let socket = UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
    Ok(socket.local_addr()?.port())
}

/// Applies simulated scans of two weeks to the engine. Returns whether it finished.
fn import_history(
    config: &Config,
    world: &mut World,
    urls: &[ServerUrl],
    from_ms: i64,
    to_ms: i64,
    stop: &CancellationToken,
) -> anyhow::Result<bool> {
    let mut state = State::open_configured(config, &config.state_dir, true)?;
    let bar = ProgressBar::new((to_ms - from_ms) as u64);
    bar.set_style(ProgressStyle::with_template("history {bar:40} {percent:>3} %  {msg}").expect("a valid template"));
    let mut snapshots = 0;
    let mut looked_ms = from_ms;
    for (t_ms, server, snapshot) in SimulatedHistory::new(world, from_ms, to_ms) {
        if t_ms - looked_ms >= HOUR_MS {
            if t_ms >= state.engine.model().next_close_ms() {
                state.close_due_weeks(t_ms)?;
            }
            looked_ms = t_ms;
            bar.set_position((t_ms - from_ms) as u64);
            bar.set_message(format!("{snapshots} snapshots, {} players", state.engine.model().status().players_known));
            if stop.is_cancelled() {
                bar.abandon();
                return Ok(false);
            }
        }
        let url = urls[server as usize].clone();
        state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) })?;
        snapshots += 1;
        if snapshots % SNAPSHOTS_PER_COMMIT == 0 {
            state.commit()?;
        }
    }
    state.close_due_weeks(to_ms)?;
    bar.finish_and_clear();
    say(format_args!("history: {snapshots} snapshots through the engine in {:.1} s", bar.elapsed().as_secs_f64()));
    Ok(true)
}

async fn run_live(args: &DemoArgs, config: Config, urls: &[ServerUrl], stop: &CancellationToken) -> anyhow::Result<()> {
    if config.archive.is_enabled() {
        let mut archive = Archive::connect(&config.archive_settings()).await.context("--mysql")?;
        archive.migrate().await.context("--mysql: cannot apply the schema")?;
        archive.close().await;
    }
    let (socket, website) = (config.control_socket.clone(), config.web.listen.clone());
    let daemon = Daemon::start(config, None, None).await?;
    // The history contains only queried servers; servers that never respond are new.
    let urls = urls.iter().map(ServerUrl::to_string).collect();
    let request = crate::api::requests::ServersAdd { urls, tags: Vec::new(), import: false };
    daemon.change(request).await?;
    let mut state = DemoState::new(socket, website);
    let end = tokio::time::Instant::now() + args.seconds.map_or(Duration::from_secs(86_400 * 365), Duration::from_secs);
    let on_screen = crate::cli::screen::is_possible() && !args.plain;
    let shown = if on_screen {
        dashboard::show(&daemon, &mut state, stop, end, SCREEN_INTERVAL).await
    } else {
        run_lines(&daemon, &mut state, stop, end).await
    };
    daemon.stop().await?;
    shown
}

async fn run_lines(
    daemon: &Daemon,
    state: &mut DemoState,
    stop: &CancellationToken,
    end: tokio::time::Instant,
) -> anyhow::Result<()> {
    say(format_args!("website: http://{}", state.website));
    say(format_args!("live; admin commands work from another terminal with: --socket {}", state.socket.display()));
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + LINE_EVERY, LINE_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep_until(end) => return Ok(()),
            _ = tick.tick() => {
                state.poll(daemon).await?;
                say(state.line());
            }
        }
    }
}
