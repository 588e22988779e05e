//! Compares boards of all players with other ordered sets, on the same players and scores:
//! `cargo bench --bench board`.
//!
//! The others are Redis (`redis-server`, sorted sets, one connection over a Unix socket,
//! pipelined by 64; skipped where it is not installed), `indexset` (a `BTreeSet` with
//! counts and a `HashMap` from player to entry) and a sorted `Vec` with the same map.
//! Sizes: `CLQD_ENTRIES` (default `1000000,10000000`). It then measures how the board's
//! costs grow, at 10^4 to 10^7 and `CLQD_LARGEST` (such as 50000000). Each contender runs
//! in a separate process, so that its memory is measured separately.
//!
//! An update gives a random player a random score, the worst case: no two updates touch the
//! same memory. Redis orders equal scores by name and stores no time, so it does less work.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clqd::board::order::Direction;
use clqd::board::{Board, BoardEntry, Score};
use clqd::model::PlayerKey;

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC
const PIPELINE: usize = 64;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "contender") {
        return run_contender(&args[at + 1], args[at + 2].parse()?);
    }
    let sizes = std::env::var("CLQD_ENTRIES").unwrap_or_else(|_| "1000000,10000000".into());
    let has_redis = Command::new("redis-server").arg("--version").output().is_ok();
    for size in sizes.split(',') {
        println!("{size} entries, load average {}", load());
        println!("                     update/s    rank/s  select/s      page/s  bytes/entry  build s");
        let board = run("board", size)?;
        let many = run("board-ranks-by-64", size)?;
        run("indexset", size)?;
        run("sorted-vec", size)?;
        if has_redis {
            let redis = run("redis", size)?;
            for (name, own) in [("one by one", &board), ("ranks by 64", &many)] {
                let ratio = |i: usize| own[i] / redis[i];
                println!(
                    "  board {name} : redis  update {:.1} x, rank {:.1} x, select {:.1} x, memory 1/{:.1}",
                    ratio(0),
                    ratio(1),
                    ratio(2),
                    redis[4] / own[4]
                );
            }
        } else {
            println!("  redis: skipped, there is no redis-server (apt-get install redis-server)");
        }
    }
    println!("how a board's costs grow: ns a call, load average {}", load());
    println!("      entries  update  rank  rank by 64  select  page of 50  rank of a score  dense");
    let mut sizes = vec![10_000, 100_000, 1_000_000, 10_000_000];
    sizes.extend(std::env::var("CLQD_LARGEST").ok().and_then(|v| v.parse::<u32>().ok()));
    for size in sizes {
        let output =
            Command::new(std::env::current_exe()?).args(["contender", "growth", &size.to_string()]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Runs a contender; prints and returns its numbers in the order of the heading.
fn run(name: &str, size: &str) -> Result<Vec<f64>> {
    let output = Command::new(std::env::current_exe()?).args(["contender", name, size]).output()?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    let [update, rank, select, page, bytes, build] = numbers[..] else { anyhow::bail!("{name} printed {text:?}") };
    println!("  {name:<15} {update:>11.0} {rank:>9.0} {select:>9.0} {page:>11.0} {bytes:>12.1} {build:>8.2}");
    Ok(numbers)
}

fn run_contender(name: &str, size: u32) -> Result<()> {
    match name {
        "board" => board(size, 1),
        "board-ranks-by-64" => board(size, PIPELINE),
        "indexset" => index_set(size),
        "sorted-vec" => sorted_vec(size),
        "redis" => redis(size)?,
        "growth" => growth(size),
        other => anyhow::bail!("no contender {other}"),
    }
    Ok(())
}

/// Pseudorandom numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((x ^ (x >> 31)) >> 32) * u64::from(n)) >> 32) as u32
    }

    /// A score like points or milliseconds: seldom repeated.
    fn entry(&mut self, player: u32) -> BoardEntry {
        let score = i64::from(self.below(100_000_000));
        BoardEntry::new(Score(score), START_MS + i64::from(self.below(604_800_000)), PlayerKey(player))
    }
}

/// A quarter of all players is on the board.
fn player(n: u32) -> u32 {
    n * 4 + 1
}

fn field(size: u32) -> Vec<BoardEntry> {
    let mut numbers = Numbers(1);
    (0..size).map(|n| numbers.entry(player(n))).collect()
}

/// Random players with new scores.
fn updates(size: u32, n: usize) -> Vec<BoardEntry> {
    let mut numbers = Numbers(2);
    (0..n)
        .map(|_| {
            let who = player(numbers.below(size));
            numbers.entry(who)
        })
        .collect()
}

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn per_second(n: usize, work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    n as f64 / started.elapsed().as_secs_f64()
}

/// Calls the function for each item and consumes the results.
fn each<T: Copy, A>(of: &[T], mut ask: impl FnMut(T) -> A) {
    for &one in of {
        black_box(ask(one));
    }
}

fn report(rates: [f64; 4], bytes: f64, build: Duration) {
    let [update, rank, select, page] = rates;
    println!("{update} {rank} {select} {page} {bytes} {}", build.as_secs_f64());
}

fn board(size: u32, ranks_at_once: usize) {
    let field = field(size);
    let started = Instant::now();
    let mut board = Board::build(Direction::HighIsBetter, 1, field);
    let build = started.elapsed();
    let some = updates(size, 2_000_000);
    let players: Vec<PlayerKey> = some.iter().map(|entry| entry.player).collect();
    // Updated twice: the second time the blocks are filled as unevenly as possible.
    let mut update = 0.0;
    for _ in 0..2 {
        update = per_second(some.len(), || each(&some, |entry| board.put(entry)));
    }
    let rank = per_second(some.len(), || match ranks_at_once {
        1 => each(&players, |player| board.position(player)),
        _ => players.chunks(ranks_at_once).for_each(|some| each(&[some], |some| board.positions(some))),
    });
    let mut numbers = Numbers(3);
    let positions: Vec<u32> = (0..some.len()).map(|_| numbers.below(size) + 1).collect();
    let select = per_second(some.len(), || each(&positions, |p| board.entry_at(p)));
    let page = per_second(100_000, || each(&positions[..100_000], |p| board.page(p, 50)));
    report([update, rank, select, page], board.heap_bytes() as f64 / f64::from(size), build);
}

type Tuple = (Reverse<i64>, i64, u32);

fn tuple(entry: &BoardEntry) -> Tuple {
    (Reverse(entry.score().0), entry.at_ms, entry.player.0)
}

fn index_set(size: u32) {
    let field = field(size);
    let before = resident();
    let started = Instant::now();
    let mut entries: HashMap<u32, (i64, i64)> = HashMap::with_capacity(size as usize);
    entries.extend(field.iter().map(|entry| (entry.player.0, (entry.score().0, entry.at_ms))));
    let mut set = indexset::BTreeSet::<Tuple>::new();
    for entry in &field {
        set.insert(tuple(entry));
    }
    let build = started.elapsed();
    let bytes = (resident() - before) / f64::from(size);
    let some = updates(size, 1_000_000);
    let update = per_second(some.len(), || {
        for entry in &some {
            let old = entries.insert(entry.player.0, (entry.score().0, entry.at_ms)).expect("is on the board");
            set.remove(&(Reverse(old.0), old.1, entry.player.0));
            set.insert(tuple(entry));
        }
    });
    let rank = per_second(some.len(), || {
        for entry in &some {
            let (score, at_ms) = entries[&entry.player.0];
            black_box(set.rank(&(Reverse(score), at_ms, entry.player.0)));
        }
    });
    let mut numbers = Numbers(3);
    let positions: Vec<usize> = (0..some.len()).map(|_| numbers.below(size) as usize).collect();
    let select = per_second(some.len(), || each(&positions, |p| set.get_index(p)));
    let page = per_second(10_000, || {
        for &p in &positions[..10_000] {
            black_box((p..p + 50).map_while(|p| set.get_index(p).copied()).collect::<Vec<Tuple>>());
        }
    });
    report([update, rank, select, page], bytes, build);
}

fn sorted_vec(size: u32) {
    let field = field(size);
    let before = resident();
    let started = Instant::now();
    let mut entries: HashMap<u32, (i64, i64)> = HashMap::with_capacity(size as usize);
    entries.extend(field.iter().map(|entry| (entry.player.0, (entry.score().0, entry.at_ms))));
    let mut sorted: Vec<Tuple> = field.iter().map(tuple).collect();
    sorted.sort_unstable();
    let build = started.elapsed();
    let bytes = (resident() - before) / f64::from(size);
    let some = updates(size, 1_000_000);
    let few = &some[..1_000]; // each moves a large part of the board
    let update = per_second(few.len(), || {
        for entry in few {
            let old = entries.insert(entry.player.0, (entry.score().0, entry.at_ms)).expect("is on the board");
            let at = sorted.binary_search(&(Reverse(old.0), old.1, entry.player.0)).expect("is in order");
            sorted.remove(at);
            let at = sorted.partition_point(|kept| *kept < tuple(entry));
            sorted.insert(at, tuple(entry));
        }
    });
    let rank = per_second(some.len(), || {
        for entry in &some {
            let (score, at_ms) = entries[&entry.player.0];
            black_box(sorted.binary_search(&(Reverse(score), at_ms, entry.player.0)).is_ok());
        }
    });
    let mut numbers = Numbers(3);
    let positions: Vec<usize> = (0..some.len()).map(|_| numbers.below(size) as usize).collect();
    let select = per_second(some.len(), || each(&positions, |p| sorted[p]));
    let page = per_second(100_000, || {
        let page = |p: usize| sorted[p..sorted.len().min(p + 50)].to_vec();
        each(&positions[..100_000], page);
    });
    report([update, rank, select, page], bytes, build);
}

/// A separate Redis server, stopped when dropped.
struct Redis {
    process: Child,
    connection: BufReader<UnixStream>,
    _dir: tempfile::TempDir,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Redis {
    fn start() -> Result<Redis> {
        let dir = tempfile::tempdir()?;
        let socket = dir.path().join("redis.sock");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server does not start")?;
        let mut failure = None;
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(50));
            match UnixStream::connect(&socket) {
                Ok(stream) => return Ok(Redis { process, connection: BufReader::new(stream), _dir: dir }),
                Err(error) => failure = Some(error),
            }
        }
        let mut process = process;
        process.kill()?;
        Err(failure.expect("was tried").into())
    }

    /// Sends requests in one write and reads their replies, `lines` lines each.
    fn pipeline(&mut self, requests: &[u8], lines: usize, line: &mut Vec<u8>) -> Result<()> {
        self.connection.get_mut().write_all(requests)?;
        for _ in 0..lines {
            line.clear();
            self.connection.read_until(b'\n', line)?;
            ensure!(line.first() != Some(&b'-'), "redis: {}", String::from_utf8_lossy(line));
        }
        Ok(())
    }

    fn used_memory(&mut self) -> Result<f64> {
        self.connection.get_mut().write_all(b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n")?;
        let (mut line, mut used) = (String::new(), None);
        // The last line of the section, then the end of the reply.
        while !line.starts_with("lazyfreed_objects") {
            line.clear();
            self.connection.read_line(&mut line)?;
            used = line.strip_prefix("used_memory:").and_then(|v| v.trim().parse().ok()).or(used);
        }
        self.connection.read_line(&mut line)?;
        used.context("redis does not report used_memory")
    }
}

fn request(out: &mut Vec<u8>, words: &[&str]) {
    write!(out, "*{}\r\n", words.len()).expect("into memory");
    for word in words {
        write!(out, "${}\r\n{word}\r\n", word.len()).expect("into memory");
    }
}

fn redis(size: u32) -> Result<()> {
    let mut redis = Redis::start()?;
    let (mut out, mut line) = (Vec::new(), Vec::new());
    let before = redis.used_memory()?;
    let add = |entry: &BoardEntry, out: &mut Vec<u8>| {
        request(out, &["ZADD", "board", &entry.score().0.to_string(), &entry.player.0.to_string()]);
    };
    let started = Instant::now();
    for some in field(size).chunks(PIPELINE) {
        out.clear();
        some.iter().for_each(|entry| add(entry, &mut out));
        redis.pipeline(&out, some.len(), &mut line)?;
    }
    let build = started.elapsed();
    let bytes = (redis.used_memory()? - before) / f64::from(size);
    let some = updates(size, 1_000_000);
    // Requests are written before the timer starts, so that only Redis is measured.
    let time = |redis: &mut Redis, lines: usize, n: usize, one: &dyn Fn(usize, &mut Vec<u8>)| -> Result<f64> {
        let batches: Vec<(usize, Vec<u8>)> = (0..n)
            .step_by(PIPELINE)
            .map(|from| {
                let mut out = Vec::new();
                let upto = n.min(from + PIPELINE);
                (from..upto).for_each(|i| one(i, &mut out));
                (upto - from, out)
            })
            .collect();
        let (started, mut line) = (Instant::now(), Vec::new());
        for (requests, batch) in &batches {
            redis.pipeline(batch, requests * lines, &mut line)?;
        }
        Ok(n as f64 / started.elapsed().as_secs_f64())
    };
    let update = time(&mut redis, 1, some.len(), &|i, out| add(&some[i], out))?;
    let rank = time(&mut redis, 1, some.len(), &|i, out| {
        request(out, &["ZREVRANK", "board", &some[i].player.0.to_string()]);
    })?;
    let mut numbers = Numbers(3);
    let positions: Vec<u32> = (0..some.len()).map(|_| numbers.below(size - 50)).collect();
    let range = |i: usize, n: u32, out: &mut Vec<u8>| {
        let (from, to) = (positions[i].to_string(), (positions[i] + n - 1).to_string());
        request(out, &["ZREVRANGE", "board", &from, &to, "WITHSCORES"]);
    };
    // An array of member and score, each preceded by its length.
    let select = time(&mut redis, 5, some.len(), &|i, out| range(i, 1, out))?;
    let page = time(&mut redis, 1 + 4 * 50, 100_000, &|i, out| range(i, 50, out))?;
    report([update, rank, select, page], bytes, build);
    Ok(())
}

fn growth(size: u32) {
    let mut board = Board::build(Direction::HighIsBetter, 1, field(size));
    let some = updates(size, 1_000_000);
    let players: Vec<PlayerKey> = some.iter().map(|entry| entry.player).collect();
    let mut numbers = Numbers(3);
    let positions: Vec<u32> = (0..some.len()).map(|_| numbers.below(size) + 1).collect();
    let n = some.len();
    let update = per_second(n, || each(&some, |entry| board.put(entry)));
    let rank = per_second(n, || each(&players, |player| board.position(player)));
    let ranks = per_second(n, || players.chunks(PIPELINE).for_each(|some| each(&[some], |some| board.positions(some))));
    let select = per_second(n, || each(&positions, |p| board.entry_at(p)));
    let page = per_second(100_000, || each(&positions[..100_000], |p| board.page(p, 50)));
    let score = per_second(n, || each(&some, |entry| board.better_count(entry.score())));
    let dense = per_second(n, || each(&players, |player| board.dense_rank(player)));
    let [update, rank, ranks, select, page, score, dense] =
        [update, rank, ranks, select, page, score, dense].map(|rate| 1e9 / rate);
    println!(
        "  {size:>10} {update:>7.0} {rank:>5.0} {ranks:>11.0} {select:>7.0} {page:>11.0} {score:>16.0} {dense:>6.0}"
    );
}
