//! Measures the simulated servers themselves: `cargo bench --bench fleet`.
//!
//! Prints how fast two weeks of 2,000 servers are simulated, and how many replies a second
//! 20,000 Quake 3 and Source servers send over the loopback interface, with the CPU time of
//! the thread that sends them.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::Context;
use clqd::fleet::truth::TruthLine;
use clqd::fleet::{FaultShares, Fleet, Ports, Protocol, ServeSettings, SimulatedHistory, World, WorldSettings};

const START_MS: i64 = 1_763_683_200_000;
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

fn main() -> anyhow::Result<()> {
    simulate_history();
    query_fleet()
}

fn simulate_history() {
    let began = Instant::now();
    let mut world = World::new(WorldSettings { servers: 2_000, start_ms: START_MS, ..WorldSettings::default() });
    println!("2,000 servers created in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let (mut snapshots, mut players) = (0_u64, 0_u64);
    for (_, _, snapshot) in SimulatedHistory::new(&mut world, START_MS, START_MS + 14 * 86_400_000) {
        snapshots += 1;
        players += snapshot.players.len() as u64;
    }
    let simulated_s = began.elapsed().as_secs_f64();
    let rows = world.truth(|_| String::new()).filter(|line| matches!(line, TruthLine::Player { .. })).count();
    println!("{snapshots} snapshots of {players} players, {rows} rows, in {simulated_s:.1} s");
}

fn query_fleet() -> anyhow::Result<()> {
    let world = World::new(WorldSettings { servers: 20_000, activity: 3.0, ..WorldSettings::default() });
    let live_from_ms = world.settings().start_ms + 3_600_000;
    let faults = FaultShares::NONE;
    let settings = ServeSettings { ports: Ports::ANY, live_from_ms, faults, ..ServeSettings::default() };
    let fleet = Fleet::start(world, settings)?;
    fleet.advance_all();
    let scheme = format!("{}://", Protocol::Quake3.scheme());
    let servers: Vec<String> =
        fleet.urls().iter().filter_map(|url| Some(url.strip_prefix(&scheme)?.to_owned())).collect();
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    let mut buffer = vec![0; 65_535];
    let (began, mut replies, mut bytes) = (Instant::now(), 0_u64, 0_u64);
    for window in servers.chunks(200).cycle().take(1_000) {
        for address in window {
            socket.send_to(b"\xFF\xFF\xFF\xFFgetstatus x\n", address)?;
        }
        for _ in window {
            let Ok(length) = socket.recv(&mut buffer) else { break };
            replies += 1;
            bytes += length as u64;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{replies} replies of {:.0} bytes, {:.0} replies/s",
        bytes as f64 / replies as f64,
        replies as f64 / seconds
    );
    println!("the thread of the servers used {:.1} s of CPU time", cpu_s_of_thread("fleet-quake3")?);
    Ok(())
}

/// User and system time of a thread of this process, from proc_pid_stat(5).
fn cpu_s_of_thread(thread: &str) -> anyhow::Result<f64> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(task?.path().join("stat"))?;
        let (name, rest) = stat.rsplit_once(')').context("no name")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if name.contains(thread) {
            return Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0);
        }
    }
    anyhow::bail!("no thread {thread}")
}
