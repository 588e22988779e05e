//! Real game servers: the daemon scans two OpenArena servers with bots for some rounds, and its
//! rankings are compared with the servers' own logs of kills, points and rounds. A second test
//! compares final lists with budgets of 0 and 3 (`scan.budget`).
//!
//! It takes minutes, so it is ignored by default: run `bash tests/run --openarena`, which
//! installs the servers. `CLQD_OPENARENA_ROUNDS` is the number of rounds that each server
//! must end (3, and 10 in the second test). The servers' logs are kept in the target directory's `tmp`. Protocols and
//! rules have their own tests.
//!
//! Expected results: A server reports the final points for about 16 s after a round, which is
//! many scans. So each final list that the daemon rates equals that of the log, and ELO and
//! CLQ2 must equal those computed here from the log. Points may differ: a scan sees only the
//! difference since the last scan. If a player scores twice and loses a point between two
//! scans, the scanner sees 1 point and the log has 2, so each lost point may hide a gained
//! one. Points gained after the last scan are not seen. And a player whose points dropped
//! below half is treated as restarted (docs/rules.md section 3).

#[path = "support/sandbox.rs"]
mod sandbox;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clqd::model::name::{ColourCodes, normalise};
use sandbox::{Sandbox, rows};
use serde_json::Value;

const INTERVAL_S: u64 = 2;

/// Length of the end of a log that may be after the last scan.
const LATE_S: u64 = 10;

#[test]
#[ignore = "takes minutes and needs openarena-server: bash tests/run --openarena"]
fn rankings_agree_with_game_logs() {
    let rounds: usize = std::env::var("CLQD_OPENARENA_ROUNDS").map_or(3, |n| n.parse().expect("a number"));
    let sandbox = Sandbox::new("[names]\ncount_bots = true\nping_zero_is_bot = false");
    let config = std::fs::read_to_string(sandbox.config()).unwrap();
    let intervals = format!("interval_class1_s = {INTERVAL_S}\ninterval_class2_s = {INTERVAL_S}");
    let config = config.replace("interval_class1_s = 1\ninterval_class2_s = 2", &intervals);
    std::fs::write(sandbox.config(), config).unwrap();

    let daemon = sandbox.start();
    let servers = Servers::start(&sandbox.path("openarena"));
    let urls: Vec<String> = servers.ports.iter().map(|port| format!("quake3://127.0.0.1:{port}")).collect();
    sandbox.ok(["servers", "add", &urls[0], &urls[1]]);

    // A round takes three minutes plus the intermission.
    let limit = Duration::from_secs(300 + 300 * rounds as u64);
    let began = Instant::now();
    while (0..2).any(|n| servers.log(n).ended().count() < rounds || !servers.log(n).is_playing()) {
        assert!(began.elapsed() < limit, "{rounds} rounds have not ended in {limit:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    // Wait for a scan of the new round.
    let now_ms = clqd::clock::system_ms();
    for url in &urls {
        sandbox::wait_until("a scan of the new round", || {
            sandbox.json(["servers", "show", url])[0]["last_seen_ms"].as_i64() > Some(now_ms + 3_000)
        });
    }
    let status = sandbox.json(["status"])[0].clone();
    let week = status["engine"]["week"].as_str().unwrap().to_owned();
    daemon.stop();
    let logs = [servers.log(0), servers.log(1)];
    for number in [1, 2] {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("openarena-{number}.log"));
        std::fs::copy(servers.file(number - 1), kept).unwrap();
    }
    drop(servers);

    let exported = rows(&sandbox.export(&sandbox.state(), &week));
    let (mut agree, mut pairs) = (0, 0);
    for (log, url) in logs.iter().zip(&urls) {
        let of_server: Vec<&Value> = exported.iter().filter(|row| row["server"] == url.as_str()).collect();
        let (a, p) = compare(log, url, &of_server);
        agree += a;
        pairs += p;
    }
    let counted: usize = logs.iter().map(|log| log.ended().filter(|round| round.counts()).count()).sum();
    let rated = status["engine"]["counts"]["rounds"].as_u64().unwrap() as usize;
    println!(
        "rounds: {counted} ended by the logs, {rated} rated; players in the same order of points: {agree} of {pairs} pairs"
    );
    assert_eq!(rated, counted);
    assert!(agree * 10 >= pairs * 9, "the orders of points differ in at most a tenth of the pairs");
}

/// Scan interval of the comparison, s: longer than an intermission, as in practice.
const SPARSE_INTERVAL_S: u64 = 40;

/// Rounds after which the scheduler knows a server's time limit.
const ROUNDS_LEARNED: usize = 3;

/// Two daemons scan the same servers, on a fixed grid and with a budget of three scans in its interval, and their last lists of each round are compared with the servers' logs.
/// Rounds of real servers are not repeatable, so only the number of scans is checked; the rest is
/// printed.
#[test]
#[ignore = "takes 25 minutes and needs openarena-server: bash tests/run --openarena"]
fn elastic_scans_show_more_final_lists() {
    let rounds: usize = std::env::var("CLQD_OPENARENA_ROUNDS").map_or(10, |n| n.parse().expect("a number"));
    let rounds = rounds.max(ROUNDS_LEARNED + 1);
    let daemons = [0.0, 3.0].map(|budget: f64| {
        let sandbox = Sandbox::new("[names]\ncount_bots = true\nping_zero_is_bot = false");
        let config = std::fs::read_to_string(sandbox.config()).unwrap();
        let intervals = format!(
            "interval_class1_s = {SPARSE_INTERVAL_S}\ninterval_class2_s = {SPARSE_INTERVAL_S}\nbudget = {budget:?}"
        );
        let config = config.replace("interval_class1_s = 1\ninterval_class2_s = 2", &intervals);
        std::fs::write(sandbox.config(), config).unwrap();
        let daemon = sandbox.start();
        (budget, sandbox, daemon)
    });
    let pairs = ["first", "second", "third"].map(|name| Servers::start_with(&daemons[0].1.path(name), 2));
    let server = |n: usize| (&pairs[n / 2], n % 2);
    let urls: Vec<String> = (0..6).map(|n| format!("quake3://127.0.0.1:{}", server(n).0.ports[server(n).1])).collect();
    for (_, sandbox, ..) in &daemons {
        sandbox.ok([vec!["servers".to_owned(), "add".to_owned()], urls.clone()].concat());
    }

    // When each round of a server began, ms: within a second.
    let mut began_ms: Vec<Vec<i64>> = vec![Vec::new(); urls.len()];
    let limit = Duration::from_secs(300 + 200 * rounds as u64);
    let began = Instant::now();
    while began_ms.iter().any(|starts| starts.len() <= rounds) {
        assert!(began.elapsed() < limit, "{rounds} rounds have not ended in {limit:?}");
        std::thread::sleep(Duration::from_millis(500));
        for (n, starts) in began_ms.iter_mut().enumerate() {
            let seen = server(n).0.log(server(n).1).rounds.len();
            starts.resize(seen.max(starts.len()), clqd::clock::system_ms());
        }
    }
    println!("scans by need: {}", daemons[1].1.json(["servers", "show", &urls[0]])[0]["elastic"]);
    let logs: Vec<Log> = (0..urls.len()).map(|n| server(n).0.log(server(n).1)).collect();
    drop(pairs);

    println!("{:<14} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7}", "", "scans", "rounds", "whole", "winner", "three", "lost");
    let mut scans = Vec::new();
    for (budget, sandbox, daemon) in daemons {
        daemon.stop();
        let lists = Lists::read(&sandbox.log_lines());
        let mut found = Found::default();
        for ((url, log), starts) in urls.iter().zip(&logs).zip(&began_ms) {
            for at in ROUNDS_LEARNED..rounds {
                let finals: BTreeMap<&str, i64> =
                    log.rounds[at].finals.iter().map(|(name, points)| (&**name, *points)).collect();
                // A second on both sides: the times are those at which the log was read.
                found.add(&finals, lists.last(url, starts[at] + 1_000, starts[at + 1] - 1_000));
            }
        }
        let Found { rounds, whole, winner, three, points, lost } = found;
        println!(
            "budget {budget:<7} {:>6} {rounds:>6} {whole:>7} {winner:>7} {three:>7} {:>6.1}%",
            lists.0.len(),
            100.0 * lost as f64 / points as f64
        );
        scans.push(lists.0.len());
    }
    // Each of the six servers starts with four saved scans.
    assert!(scans[1] > scans[0] && scans[1] as f64 <= 3.1 * scans[0] as f64 + 24.0, "{scans:?}");
}

/// How well last lists agree with final lists.
#[derive(Default)]
struct Found {
    rounds: usize,
    /// All points are the final ones.
    whole: usize,
    winner: usize,
    three: usize,
    points: i64,
    lost: i64,
}

impl Found {
    fn add(&mut self, finals: &BTreeMap<&str, i64>, last: Option<&BTreeMap<String, i64>>) {
        let points = |name: &str| last.and_then(|list| list.get(name)).copied().unwrap_or(0);
        let mut order: Vec<(&str, i64)> = finals.iter().map(|(name, points)| (*name, *points)).collect();
        order.sort_by_key(|(_, points)| -points);
        let mut seen = order.clone();
        seen.sort_by_key(|(name, _)| -points(name));
        // The order of players with equal points does not matter.
        let is_right = |at: usize| last.is_some() && seen[at].1 == order[at].1;
        self.rounds += 1;
        self.whole += usize::from(order.iter().all(|&(name, of)| points(name) == of));
        self.winner += usize::from(is_right(0));
        self.three += usize::from((0..order.len().min(3)).all(is_right));
        for (name, of) in order {
            self.points += of.max(0);
            self.lost += (of - points(name)).max(0);
        }
    }
}

/// The lists of a log: time, server, points by name.
struct Lists(Vec<(i64, String, BTreeMap<String, i64>)>);

impl Lists {
    fn read(log: &str) -> Lists {
        let lines = rows(log).into_iter().filter(|line| line["players"].is_array());
        let list = |line: Value| {
            let points = |player: &Value| {
                let name = normalise(player["name"].as_str().expect("a name"), ColourCodes::Quake3);
                (name, player["points"].as_i64().expect("points"))
            };
            let players = line["players"].as_array().expect("a list").iter().map(points).collect();
            (line["t"].as_i64().expect("a time"), line["server"].as_str().expect("a URL").to_owned(), players)
        };
        Lists(lines.map(list).collect())
    }

    /// The last list of a server in a time.
    fn last(&self, url: &str, from_ms: i64, to_ms: i64) -> Option<&BTreeMap<String, i64>> {
        let of_server = |(t_ms, server, _): &&(i64, String, _)| server == url && (from_ms..to_ms).contains(t_ms);
        self.0.iter().rev().find(of_server).map(|(.., list)| list)
    }
}

/// Prints and checks one server. Returns the number of pairs of players with the same
/// order of points in both, and the number of pairs.
fn compare(log: &Log, url: &str, exported: &[&Value]) -> (usize, usize) {
    let ended = log.ended().filter(|round| round.counts()).count();
    println!("{url}: {ended} rounds ended, {} kills", log.rounds.iter().map(|round| round.kills).sum::<usize>());
    println!(
        "  {:<12} {:>8} {:>14} {:>8} {:>6} {:>6} {:>9} {:>9} {:>5} {:>5}",
        "player", "points", "by the log", "rounds", "clq2", "log", "elo", "log", "s", "log"
    );
    let boards = log.boards();
    assert_eq!(exported.len(), boards.len(), "the players are not those of the log: {exported:?}");
    let mut points = Vec::new();
    let mut off = 0;
    for row in exported {
        let name = row["player"].as_str().unwrap();
        let board = boards.get(name).unwrap_or_else(|| panic!("{name} is not in the log"));
        let got = row["points"].as_i64().unwrap();
        let (points_min, points_max) = board.points;
        let measured_s = row["measured_ms"].as_u64().unwrap() / 1_000;
        let (clq2, elo) = (row["clq2"].as_u64().unwrap(), row["elo"].as_f64().unwrap());
        let seen_rounds = row["elo_rounds"].as_u64().unwrap();
        println!(
            "  {name:<12} {got:>8} {:>14} {seen_rounds:>8} {clq2:>6} {:>6} {elo:>9.3} {:>9.3} {measured_s:>5} {:>5}",
            format!("{} ({points_min}..{points_max})", board.gained),
            board.clq2,
            board.elo,
            board.present_s
        );
        assert!(
            (points_min..=points_max).contains(&got),
            "{name}: {got} points, by the log {points_min} to {points_max}"
        );
        assert_eq!(seen_rounds, board.rounds, "{name}: rounds");
        assert_eq!(clq2, board.clq2, "{name}: clq2");
        assert!((elo - board.elo).abs() < 1e-6, "{name}: elo {elo}, by the log {}", board.elo);
        // Measured from the first scan to the last; a scan may be missed while a map loads.
        let difference_s = measured_s.abs_diff(board.present_s);
        assert!(difference_s <= 6 * INTERVAL_S, "{name}: {measured_s} s, by the log {}", board.present_s);
        assert_eq!(row["starts"], 1, "{name} has never left");
        points.push((got, board.gained));
        off += got.abs_diff(board.gained);
    }
    let all: i64 = points.iter().map(|(_, gained)| gained).sum();
    println!("  points gained by the log: {all}; difference to clqd: {off}");
    let mut agree = 0;
    let mut pairs = 0;
    for (i, a) in points.iter().enumerate() {
        for b in &points[..i] {
            pairs += 1;
            // A tie agrees with any order.
            agree += usize::from((a.0 - b.0).signum() * (a.1 - b.1).signum() >= 0);
        }
    }
    (agree, pairs)
}

// The servers ------------------------------------------------------------

struct Servers {
    child: Child,
    dir: PathBuf,
    ports: [u16; 2],
}

impl Servers {
    /// Starts both servers and waits until they reply; the bots join later, one by one.
    fn start(dir: &Path) -> Servers {
        Servers::start_with(dir, 3)
    }

    /// As [`Servers::start`], with rounds of this many minutes.
    fn start_with(dir: &Path, minutes: u32) -> Servers {
        std::fs::create_dir(dir).unwrap();
        // The servers do not run as root, and only its owner may enter a temporary directory.
        for path in [dir.parent().unwrap(), dir] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports = sockets.map(|socket| socket.local_addr().unwrap().port());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openarena/start");
        let mut command = Command::new("bash");
        command
            .arg(script)
            .arg(dir)
            .args(ports.map(|port| port.to_string()))
            .arg(minutes.to_string())
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        for port in ports {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            client.connect(("127.0.0.1", port)).unwrap();
            sandbox::wait_until("an OpenArena server replies", || {
                assert!(child.try_wait().unwrap().is_none(), "tests/openarena/start has ended");
                _ = client.send(b"\xff\xff\xff\xffgetstatus clqd\n");
                std::thread::sleep(Duration::from_millis(500));
                client.recv(&mut [0; 4_096]).is_ok()
            });
        }
        Servers { child, dir: dir.to_owned(), ports }
    }

    fn log(&self, number: usize) -> Log {
        Log::read(&String::from_utf8_lossy(&std::fs::read(self.file(number)).expect("the server's log")))
    }

    fn file(&self, number: usize) -> PathBuf {
        self.dir.join(format!("{}/baseoa/games.log", number + 1))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // The script stops both servers when its input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

// Their logs -------------------------------------------------------------

/// The content of a games.log.
#[derive(Default)]
struct Log {
    /// The last one may not have ended.
    rounds: Vec<Round>,
    /// Clock of the last line, s.
    now_s: u64,
    /// When each player joined, s of the server's clock.
    joined_s: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Round {
    /// Every change of a player's points in order: clock in s, points.
    points: BTreeMap<String, Vec<(u64, i64)>>,
    /// The lines `score:` at the end.
    finals: Vec<(String, i64)>,
    ended: bool,
    kills: usize,
}

impl Round {
    /// docs/rules.md section 4.
    fn counts(&self) -> bool {
        self.finals.len() >= 2 && self.finals.iter().any(|(_, points)| *points > 0)
    }
}

/// Totals of a player in the log.
#[derive(Default)]
struct LogTotals {
    /// Minimum and maximum of the points that a scanner can have seen.
    points: (i64, i64),
    /// All points that the player gained.
    gained: i64,
    rounds: u64,
    clq2: u64,
    elo: f64,
    present_s: u64,
}

impl Log {
    fn read(text: &str) -> Log {
        let mut log = Log::default();
        let mut names = BTreeMap::<u32, String>::new();
        for line in text.lines() {
            let Some((clock, rest)) = line.trim_start().split_once(' ') else { continue };
            let Some((min, s)) = clock.split_once(':') else { continue };
            let (Ok(min), Ok(s)) = (min.parse::<u64>(), s.parse::<u64>()) else { continue };
            log.now_s = min * 60 + s;
            let Some((kind, arguments)) = rest.split_once(':') else { continue };
            let arguments = arguments.trim();
            let client = || arguments.split(' ').next().and_then(|id| id.parse().ok()).unwrap_or(u32::MAX);
            match kind {
                "InitGame" => log.rounds.push(Round::default()),
                "ClientUserinfoChanged" => {
                    let name = arguments.split_once(" n\\").and_then(|(_, rest)| rest.split('\\').next()).unwrap_or("");
                    names.insert(client(), normalise(name, ColourCodes::Quake3));
                }
                "ClientBegin" => {
                    log.joined_s.entry(names[&client()].clone()).or_insert(log.now_s);
                }
                "Kill" => log.round().kills += 1,
                "PlayerScore" => {
                    let points = arguments.rsplit(' ').nth(1).and_then(|n| n.parse().ok()).expect("... has N points");
                    let name = names[&client()].clone();
                    let now_s = log.now_s;
                    log.round().points.entry(name).or_default().push((now_s, points));
                }
                "Exit" => log.round().ended = true,
                // score: 8  ping: 0  client: 5 Grism
                "score" => {
                    let mut words = arguments.split_whitespace();
                    let points = words.next().and_then(|n| n.parse().ok()).expect("points");
                    let id: u32 = words.nth(3).and_then(|n| n.parse().ok()).expect("a client");
                    let name = names[&id].clone();
                    log.round().finals.push((name, points));
                }
                _ => {}
            }
        }
        log
    }

    fn round(&mut self) -> &mut Round {
        self.rounds.last_mut().expect("a log begins with InitGame")
    }

    fn ended(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|round| round.ended)
    }

    /// Whether the last round has started and players are back.
    fn is_playing(&self) -> bool {
        self.rounds.last().is_some_and(|round| !round.ended && round.kills > 0)
    }

    fn boards(&self) -> BTreeMap<&str, LogTotals> {
        let mut boards: BTreeMap<&str, LogTotals> = BTreeMap::new();
        for (name, joined_s) in &self.joined_s {
            let board = LogTotals { elo: 1_000.0, present_s: self.now_s - joined_s, ..LogTotals::default() };
            boards.insert(name, board);
        }
        for round in &self.rounds {
            for (name, changes) in &round.points {
                let board = boards.get_mut(name.as_str()).expect("a player who joined");
                let mut before = [0; 3];
                for &(at_s, points) in changes {
                    let gained = (points - before[0]).max(0);
                    board.gained += gained;
                    board.points.0 += gained.min(points - before[0]);
                    board.points.1 += gained;
                    if at_s + LATE_S > self.now_s {
                        board.points.0 -= gained;
                    }
                    if points > 0 && before.iter().any(|&before| 2 * points < before) {
                        board.points.1 += points;
                    }
                    before = [points, before[0], before[1]];
                }
            }
        }
        for round in self.ended().filter(|round| round.counts()) {
            rate(&round.finals, &mut boards);
        }
        boards
    }
}

/// ELO and CLQ2 of a final list (docs/rules.md sections 6 and 7), implemented independently.
fn rate(finals: &[(String, i64)], boards: &mut BTreeMap<&str, LogTotals>) {
    let n = finals.len() as f64;
    let before: Vec<f64> = finals.iter().map(|(name, _)| boards[name.as_str()].elo).collect();
    let mut descending: Vec<i64> = finals.iter().map(|(_, points)| *points).collect();
    descending.sort_by_key(|points| -points);
    let pivot = descending[(finals.len() / 4).max(1) - 1];
    let serious = descending.iter().filter(|&&points| points > 0 && pivot / points <= 4).count();
    for (i, (name, points)) in finals.iter().enumerate() {
        let others = finals.iter().enumerate().filter(|(j, _)| *j != i);
        let won: f64 = others
            .map(|(_, (_, p))| {
                if p < points {
                    1.0
                } else if p == points {
                    0.5
                } else {
                    0.0
                }
            })
            .sum();
        let mean = before.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, r)| r).sum::<f64>() / (n - 1.0);
        let expected = (n - 1.0) / (1.0 + 10_f64.powf((mean - before[i]) / 400.0));
        let board = boards.get_mut(name.as_str()).expect("a player of the log");
        board.elo = before[i] + (225.0 / (n - 1.0)).min(25.0) * (won - expected);
        board.rounds += 1;
        if pivot > 0 && *points > 0 && pivot / points <= 4 {
            let position = 1 + descending.iter().filter(|p| *p > points).count();
            board.clq2 += (serious + 1 - position) as u64; // at most ten rounds: no game is left out
        }
    }
}
