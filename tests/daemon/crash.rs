//! Kills the real daemon repeatedly, with a real MariaDB, at random times from a seed that is
//! printed. Acknowledged data must not be lost and no data may be duplicated, neither in the
//! state nor in MySQL.
//!
//! `CLQD_CRASHES` is the number of kills of the first test (15; `bash tests/run
//! --crash N`), `CLQD_SEED` the seed. Rankings and database failures have their own
//! tests.
//!
//! **Acknowledged** is what the daemon has reported over its control socket; of a read, what
//! it shows when a later change was answered. An
//! observer sends requests without pause, and stores the last response for every
//! server, player and top list. SIGKILL is sent during a request. After each start
//! every acknowledged value must still hold: keys are equal, and values that only grow
//! (points, time, starts, scores, rounds, times) are at least the acknowledged ones.
//!
//! **No loss or duplication** of data that the observer did not request: the daemon
//! records its scans, each batch of lines just before the commit of the same scans. At
//! the end, that log is replayed into an empty state in one run without a crash. Both
//! exports must be equal bit for bit. A scan that was credited twice or partly, or only
//! recorded, or only credited, would change times and starts, which change with each
//! scan. This does not detect a scan that is missing in both. If that scan was
//! acknowledged, the observer detects it. If not, the next scan credits the same time.
//!
//! **MySQL** must equal the state at the end, after a clean stop: every row of every
//! week equal, no row missing, no additional row, names unique.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::sandbox::{self, QUICK_TIMEOUTS, Sandbox, closed_port_url, fleet, number, rows, seed, wait_for};
use clqd::api::requests::{self, RescanSelector, ScanResult};
use clqd::api::{ErrorCode, LineOf, Request, ServerFilter};
use clqd::client::{Client, ClientError};
use clqd::engine::Outcome;
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::fleet::{FaultShares, Fleet, SimulatedHistory, World, world};
use clqd::model::ServerUrl;
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::row::Ranking;
use clqd::scan_log;
use clqd::view::PlayerWeekView;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

/// Prints to standard error directly, so that the seed and the figures are visible
/// whether or not the test passes.
macro_rules! print_always {
    ($($arg:tt)*) => {
        writeln!(std::io::stderr(), $($arg)*).expect("standard error")
    };
}

// Kills at random times ---------------------------------------------------

#[test]
fn random_kills_neither_lose_nor_duplicate_data() {
    let (crashes, seed) = (number("CLQD_CRASHES", 15), seed());
    print_always!("seed {seed}, {crashes} kills");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let mut rng = SplitMix64::from_parts(&[seed, 1]);
    // Servers are added continuously: a few in each run of the daemon.
    let faults: FaultShares =
        "silent=0.05,slow=0.1,lossy=0.1,duplicating=0.05,spoofed=0.05,malformed=0.05,partial=0.15".parse().unwrap();
    let fleet = fleet((12 + crashes / 4) as u32, seed, 60.0, faults);
    let sandbox = Sandbox::new("");
    let extra = format!("[archive]\nurl = {:?}\ninterval_s = 10\ndrain_timeout_s = 300\n", database.url());
    // The state is small and is compacted continuously.
    // Partial answers are recorded before the next kill, and a server that missed its first scan is scanned again.
    let quick = format!("{QUICK_TIMEOUTS}retry_failed_s = 2\n");
    sandbox.configure_all(&quick, "compact_bytes_min = 1", &extra);
    sandbox.ok(["migrate"]);

    let mut observer = Observer::new(&fleet);
    let began = Instant::now();
    let (mut kill_times, mut responses) = (BTreeMap::new(), 0);
    let mut kills = 0;
    // At least the configured number of kills, and more until enough data were acknowledged: the
    // length of each run is random.
    while kills < crashes || (observer.players.len() < 40 && kills < 10 * crashes) {
        kills += 1;
        let mut daemon = sandbox.spawn();
        if rng.bool(0.15) {
            // During the start or shortly after.
            *kill_times.entry("during the start").or_insert(0) += 1;
            std::thread::sleep(Duration::from_millis(rng.below(400) as u64));
            daemon.kill();
            continue;
        }
        daemon.wait_until_ready();
        let mut client = daemon.client().expect("a connection");
        observer.check(&mut client, &format!("run {kills} of seed {seed}"));
        let kill_time = KillTime::choose(&mut rng);
        *kill_times.entry(kill_time.name()).or_insert(0) += 1;
        let (pid, log, state, socket) = (daemon.pid(), sandbox.state().join("log"), sandbox.state(), sandbox.socket());
        let killer = std::thread::spawn(move || {
            kill_time.wait(&log, &state, &socket);
            kill(pid, Signal::SIGKILL).expect("a child process");
        });
        responses += observer.request_until_killed(&mut client, &mut rng);
        killer.join().unwrap();
        let status = daemon.wait();
        assert_eq!(status.signal(), Some(9), "the daemon ended before the kill, {status}: {}", daemon.log());
    }
    print_always!(
        "{kills} kills in {:?}: {kill_times:?}; {responses} responses; acknowledged: {} servers, {} players, \
         {} weeks of them, {} entries of top lists",
        began.elapsed(),
        observer.servers.len(),
        observer.players.len(),
        observer.players.values().map(|player| player.weeks.len()).sum::<usize>(),
        observer.tops.len(),
    );

    // The last run ends with a clean stop.
    let daemon = sandbox.start();
    let mut client = daemon.client().unwrap();
    observer.check(&mut client, "the last run");
    let replying: Vec<String> =
        (0..fleet.servers()).filter(|&n| fleet.fault(n).is_none()).map(|n| fleet.url(n)).collect();
    sandbox::wait_until("every added server that replies has been seen", || {
        let listed = sandbox.list(&[]);
        let unseen = |row: &&Value| row["last_seen_ms"].is_null();
        listed.iter().filter(unseen).all(|row| !replying.iter().any(|url| row["url"] == url.as_str()))
    });
    observer.check(&mut client, "before the end");
    let log = daemon.stop();
    assert!(!log.contains("ERROR") && !log.contains("could not be brought up to date"), "{log}");

    let compared = runtime.block_on(check_archive_equals_state(&sandbox, &database));
    sandbox.assert_replay_equals_state();
    let lines = sandbox.log_lines().lines().count();
    print_always!("MySQL has the {compared} rows of the state; {lines} lines of the log replay to the same state");
    assert!(compared as u64 > 20, "there are enough rows");
}

/// When the daemon is killed after it responds.
enum KillTime {
    /// At a random time.
    After(Duration),
    /// Early, during the archive's first pass.
    Early(Duration),
    /// As soon as the scan log has grown: the commit of the same scans follows.
    BetweenLogAndCommit(Duration),
    /// As soon as an entry was deleted from the outbox in the archive's next pass: it must be in
    /// MySQL by then.
    Trimmed,
    /// While a second database exists next to the current one.
    Compacting(Duration),
}

impl KillTime {
    fn choose(rng: &mut SplitMix64) -> KillTime {
        let mut within = |ms| Duration::from_millis(rng.below(ms) as u64);
        let (any, early, second, short) = (within(2_500), within(150), within(1_000), within(30));
        match rng.below(12) {
            0 | 1 => KillTime::Early(early),
            2..5 => KillTime::BetweenLogAndCommit(second),
            5 => KillTime::Trimmed,
            6 | 7 => KillTime::Compacting(short),
            _ => KillTime::After(any),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            KillTime::After(_) => "any time",
            KillTime::Early(_) => "early",
            KillTime::BetweenLogAndCommit(_) => "between log and commit",
            KillTime::Trimmed => "after a trim",
            KillTime::Compacting(_) => "while the state is compacted",
        }
    }

    fn wait(&self, log: &Path, state: &Path, socket: &Path) {
        match self {
            KillTime::Compacting(wait) => {
                let databases = || {
                    let names = std::fs::read_dir(state).expect("the state directory");
                    let other = names.filter(|name| name.as_ref().is_ok_and(|name| name.path().join("db").exists()));
                    other.count() + usize::from(state.join("db").exists())
                };
                let began = Instant::now();
                // During the copy, the switch, or the removal of the old database.
                while databases() < 2 && began.elapsed() < Duration::from_secs(8) {
                    std::thread::sleep(Duration::from_micros(200));
                }
                std::thread::sleep(*wait);
            }
            KillTime::After(wait) | KillTime::Early(wait) => std::thread::sleep(*wait),
            KillTime::BetweenLogAndCommit(wait) => {
                std::thread::sleep(*wait);
                let files =
                    || std::fs::read_dir(log).into_iter().flatten().filter_map(|file| file.ok()?.metadata().ok());
                let len = || files().map(|file| file.len()).sum::<u64>();
                let (before, began) = (len(), Instant::now());
                // Without servers nothing is scanned.
                while len() == before && began.elapsed() < Duration::from_secs(3) {
                    std::hint::spin_loop();
                }
            }
            KillTime::Trimmed => {
                let mut client = Client::connect(socket).expect("a connection");
                let mut outbox = || client.lines(&requests::Status {}).expect("a status")[0].outbox_entries;
                let (mut before, began) = (0, Instant::now());
                while began.elapsed() < Duration::from_secs(8) {
                    let now = outbox();
                    if now < before {
                        return;
                    }
                    before = now;
                }
            }
        }
    }
}

/// Sends requests, and checks later responses against earlier ones.
struct Observer {
    /// URLs of the fleet that are not added yet; the next is the last.
    not_added: Vec<String>,
    /// An address without a listener that is greylisted and removed from the greylist.
    greylist_url: String,
    /// An address without a listener that is added and removed.
    removal_url: String,
    /// Last acknowledged values; `None`: requested but not acknowledged.
    greylist_reason: Option<Option<String>>,
    present: Option<bool>,
    /// Servers whose addition was requested; it may have happened.
    maybe_added: BTreeSet<String>,
    servers: BTreeMap<String, AcknowledgedServer>,
    players: BTreeMap<(String, String), AcknowledgedPlayer>,
    /// Points by server and player key.
    tops: BTreeMap<(String, u32), f64>,
    names: Vec<String>,
    week: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct AcknowledgedServer {
    /// Key and time of adding, once acknowledged.
    constant: Option<(u32, i64)>,
    last_scan_ms: Option<i64>,
    last_seen_ms: Option<i64>,
}

#[derive(Clone, Debug)]
struct AcknowledgedPlayer {
    key: u32,
    /// By week and server.
    weeks: BTreeMap<(String, String), PlayerWeekView>,
}

impl Observer {
    fn new(fleet: &Fleet) -> Observer {
        let mut not_added = fleet.urls();
        not_added.reverse();
        Observer {
            not_added,
            greylist_url: closed_port_url(),
            removal_url: closed_port_url(),
            greylist_reason: Some(None),
            present: Some(false),
            maybe_added: BTreeSet::new(),
            servers: BTreeMap::new(),
            players: BTreeMap::new(),
            tops: BTreeMap::new(),
            names: Vec::new(),
            week: None,
        }
    }

    /// Checks that every acknowledged value still holds.
    fn check(&mut self, client: &mut Client, when: &str) {
        let list = requests::ServersList { filter: ServerFilter::default() };
        let mut listed = BTreeMap::new();
        let mut keys = BTreeSet::new();
        for row in client.lines(&list).expect("a list") {
            assert!(keys.insert(row.public.key), "{when}: two servers with key {}", row.public.key);
            assert!(listed.insert(row.public.url.clone(), row).is_none(), "{when}: a server is listed twice");
        }
        for (url, acknowledged) in &self.servers {
            let Some(row) = listed.get(url) else { panic!("{when}: {url} was acknowledged and is lost") };
            assert!(
                acknowledged.constant.is_none_or(|constant| constant == (row.public.key, row.public.added_ms)),
                "{when}: {acknowledged:?} {row:?}"
            );
            assert!(
                row.public.last_scan_ms >= acknowledged.last_scan_ms
                    && row.public.last_seen_ms >= acknowledged.last_seen_ms,
                "{when}: {acknowledged:?} {row:?}"
            );
        }
        if let (Some(reason), Some(row)) = (&self.greylist_reason, listed.get(&self.greylist_url)) {
            assert_eq!(&row.greylist_reason, reason, "{when}: the reason of the greylist");
        }
        if let Some(present) = self.present {
            assert_eq!(listed.contains_key(&self.removal_url), present, "{when}: the server is listed");
        }
        let known = |url: &String| {
            self.servers.contains_key(url)
                || self.maybe_added.contains(url)
                || *url == self.removal_url
                || *url == self.greylist_url
        };
        assert!(listed.keys().all(known), "{when}: servers without a request: {:?}", listed.keys());

        for ((game, name), acknowledged) in &self.players {
            let response = client.lines(&requests::Player { name: name.clone() }).expect("an acknowledged player");
            let mut found = response.iter().filter(|player| player.game == *game);
            let Some(now) = found.next() else { panic!("{when}: {name} in {game} is lost") };
            assert!(
                found.next().is_none() && now.player_key == acknowledged.key && now.name == *name,
                "{when}: {acknowledged:?} {now:?}"
            );
            let weeks = by_week(&now.weeks, when);
            for (week, acknowledged) in &acknowledged.weeks {
                let Some(now) = weeks.get(week) else { panic!("{when}: {name} has lost {week:?}") };
                assert!(
                    has_grown(acknowledged, now),
                    "{when}: {name}\nacknowledged {acknowledged:?}\nnow          {now:?}"
                );
            }
        }
        let servers: BTreeSet<String> = self.tops.keys().map(|(server, _)| server.clone()).collect();
        for server in servers {
            let top = self.top(client, &server).expect("an acknowledged top list");
            let now: BTreeMap<u32, f64> = top.rows.iter().map(|row| (row.player_key, row.score)).collect();
            assert_eq!(now.len(), top.rows.len(), "{when}: a player is listed twice on {server}");
            for ((_, player), acknowledged) in self.tops.iter().filter(|((url, _), _)| *url == server) {
                assert!(
                    now.get(player).is_some_and(|now| now >= acknowledged),
                    "{when}: {player} on {server}: {acknowledged}, {now:?}"
                );
            }
        }
    }

    /// Sends various requests until the connection breaks. Returns the number of responses.
    fn request_until_killed(&mut self, client: &mut Client, rng: &mut SplitMix64) -> u64 {
        let mut responses = 0;
        loop {
            match self.send_random_request(client, rng) {
                Ok(()) => responses += 1,
                Err(ClientError::Closed | ClientError::ConnectionLost { .. }) => return responses,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn send_random_request(&mut self, client: &mut Client, rng: &mut SplitMix64) -> Result<(), ClientError> {
        let known: Vec<String> = self.servers.keys().cloned().collect();
        let random_server = |rng: &mut SplitMix64| known[rng.below(known.len())].clone();
        match rng.below(40) {
            _ if known.is_empty() => self.add(client),
            0 => self.add(client),
            1 => self.toggle_greylist(client, rng),
            2 => self.toggle_presence(client),
            3 => self.rescan(client, &random_server(rng)),
            4..12 => {
                let server = random_server(rng);
                if self.servers[&server].last_seen_ms.is_some() {
                    let top = match self.top(client, &server) {
                        // No player was acknowledged yet: no week needs to have rows.
                        Err(ClientError::Failure(error))
                            if error.code == ErrorCode::NotFound && self.tops.is_empty() =>
                        {
                            return Ok(());
                        }
                        top => top?,
                    };
                    self.tops.extend(top.rows.into_iter().map(|row| ((server.clone(), row.player_key), row.score)));
                }
                Ok(())
            }
            12..25 if !self.names.is_empty() => {
                let name = self.names[rng.below(self.names.len())].clone();
                self.player(client, name)
            }
            _ => self.show(client, &random_server(rng)),
        }
    }

    fn add(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let Some(url) = self.not_added.pop() else { return Ok(()) };
        self.maybe_added.insert(url.clone());
        client.lines(&requests::ServersAdd { urls: vec![url.clone()], tags: vec!["crash".into()], import: false })?;
        self.servers.entry(url).or_default();
        Ok(())
    }

    fn toggle_greylist(&mut self, client: &mut Client, rng: &mut SplitMix64) -> Result<(), ClientError> {
        client.lines(&requests::ServersAdd {
            urls: vec![self.greylist_url.clone()],
            tags: Vec::new(),
            import: false,
        })?;
        let reason = match &self.greylist_reason {
            Some(Some(_)) => None,
            _ => Some(format!("reason {}", rng.bits())),
        };
        self.greylist_reason = None;
        client.lines(&requests::Greylist {
            url: ServerUrl::parse(&self.greylist_url).unwrap(),
            reason: reason.clone(),
        })?;
        self.greylist_reason = Some(reason);
        Ok(())
    }

    fn toggle_presence(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let urls = vec![self.removal_url.clone()];
        let present = self.present.take() != Some(true);
        match present {
            true => client.lines(&requests::ServersAdd { urls, tags: Vec::new(), import: false })?,
            false => client.lines(&requests::ServersRemove { urls })?,
        };
        self.present = Some(present);
        Ok(())
    }

    fn rescan(&mut self, client: &mut Client, server: &str) -> Result<(), ClientError> {
        for scan in
            client.lines(&requests::Rescan { servers: RescanSelector::Url(ServerUrl::parse(server).unwrap()) })?
        {
            let acknowledged = self.servers.get_mut(server).expect("a known server");
            // A local failure is a miss that is not counted.
            if scan.result != ScanResult::Miss {
                acknowledged.last_scan_ms = acknowledged.last_scan_ms.max(Some(scan.t_ms));
                acknowledged.last_seen_ms = acknowledged.last_seen_ms.max(Some(scan.t_ms));
            }
        }
        Ok(())
    }

    fn top(&mut self, client: &mut Client, server: &str) -> Result<clqd::view::Top, ClientError> {
        let request = requests::Top {
            server: ServerUrl::parse(server).unwrap(),
            ranking: Ranking::Points,
            week: self.week.clone(),
            count: 10_000,
        };
        let top = read(client, &request)?.pop().expect("a top list");
        // If the week ends meanwhile, the same week is still requested.
        self.week.get_or_insert_with(|| top.week.clone());
        Ok(top)
    }

    fn player(&mut self, client: &mut Client, name: String) -> Result<(), ClientError> {
        for row in read(client, &requests::Player { name: name.clone() })? {
            let weeks = by_week(&row.weeks, "a response");
            self.players.insert((row.game, name.clone()), AcknowledgedPlayer { key: row.player_key, weeks });
        }
        Ok(())
    }

    fn show(&mut self, client: &mut Client, server: &str) -> Result<(), ClientError> {
        let request = requests::ServersShow { url: ServerUrl::parse(server).unwrap() };
        let detail = read(client, &request)?.pop().expect("a server");
        let row = detail.public.server;
        let acknowledged = AcknowledgedServer {
            constant: Some((row.key, row.added_ms)),
            last_scan_ms: row.last_scan_ms,
            last_seen_ms: row.last_seen_ms,
        };
        self.servers.insert(server.to_owned(), acknowledged);
        let ranked =
            detail.public.players_listed.into_iter().filter(|entry| entry.player_key.is_some()).map(|entry| entry.name);
        for name in ranked {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        Ok(())
    }
}

/// Reads, and waits until what it read is on disk: a request that changes something is answered
/// after every event before it, also if it is refused.
fn read<R: Request>(client: &mut Client, request: &R) -> Result<Vec<LineOf<R>>, ClientError> {
    let rows = client.lines(request)?;
    match client.lines(&requests::TagDrop { tag: "unknown".to_owned() }) {
        Err(ClientError::Failure(error)) if error.code == ErrorCode::NotFound => Ok(rows),
        Err(error) => Err(error),
        Ok(rows) => panic!("no server has the tag: {rows:?}"),
    }
}

fn by_week(weeks: &[PlayerWeekView], when: &str) -> BTreeMap<(String, String), PlayerWeekView> {
    let map: BTreeMap<_, _> = weeks.iter().map(|w| ((w.week.clone(), w.server.clone()), w.clone())).collect();
    assert_eq!(map.len(), weeks.len(), "{when}: duplicate weeks: {weeks:?}");
    map
}

/// Compares the values that only grow.
fn has_grown(acknowledged: &PlayerWeekView, now: &PlayerWeekView) -> bool {
    now.measured_ms >= acknowledged.measured_ms
        && now.starts >= acknowledged.starts
        && now.time_ms >= acknowledged.time_ms
        && now.points >= acknowledged.points
        && now.clq1 >= acknowledged.clq1
        && now.clq2 >= acknowledged.clq2
        && now.elo_rounds >= acknowledged.elo_rounds
}

// Kills during a week close -----------------------------------------------

/// Closing the 26,000 rows of 1,000 servers and ranking them takes the daemon about ten
/// ticks, two seconds. It is killed repeatedly until the close is complete. An
/// uninterrupted daemon starts from the same state.
#[test]
fn kills_during_week_close_change_no_result() {
    const SERVERS: u32 = 1_000;
    let seed = seed();
    print_always!("seed {seed}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox_with = |database: &Database| {
        let sandbox = Sandbox::new("");
        // The log contains the past of servers that do not exist: they are not scanned.
        sandbox.configure_scan(
            "opt_out = [\"127.0.0.0/8\"]",
            &format!(
                // A daemon that is killed every second never runs long enough to trust an
                // unsynchronised clock.
                "[clock]\nsynchronised = \"always\"\n[archive]\nurl = {:?}\ninterval_s = 10\ndrain_timeout_s = 300",
                database.url()
            ),
        );
        let config = std::fs::read_to_string(sandbox.config()).unwrap();
        let config = config.replace("interval_class1_s = 1\ninterval_class2_s = 2", "interval_class1_s = 600");
        std::fs::write(sandbox.config(), config).unwrap();
        sandbox.ok(["migrate"]);
        sandbox
    };
    let databases = [runtime.block_on(Database::new()), runtime.block_on(Database::new())];
    let [killed, uninterrupted] = databases.each_ref().map(sandbox_with);

    let log = killed.path("past.jsonl");
    let weeks = write_past(&log, SERVERS, seed);
    killed.ok(["replay".as_ref(), "--state".as_ref(), killed.state().as_os_str(), log.as_os_str()]);
    sandbox::copy(&killed.state(), &uninterrupted.state());
    assert_eq!(
        phase(&killed.status(), &weeks[1]).as_deref(),
        Some("running"),
        "no scan after the week's end was applied"
    );

    let mut rng = SplitMix64::from_parts(&[seed, 2]);
    let (mut kills, mut seen) = (0, BTreeSet::new());
    let began = Instant::now();
    loop {
        let mut daemon = killed.spawn();
        // Longer and longer: a busy machine needs more time for a start.
        std::thread::sleep(Duration::from_millis(rng.below(700 + 10 * kills) as u64));
        // Checks whether the close is complete. A daemon that does not respond is killed.
        let status = daemon.client().and_then(|mut client| client.lines(&requests::Status {}));
        if let Ok([status]) = status.as_deref() {
            let status = serde_json::to_value(status).unwrap();
            let now = phase(&status, &weeks[1]);
            seen.insert(now.clone());
            if now.as_deref() == Some("closed") {
                daemon.wait_until_ready();
                daemon.stop();
                break;
            }
        }
        daemon.kill();
        kills += 1;
        assert!(began.elapsed() < Duration::from_secs(600), "{kills} kills and the week is not closed");
    }
    let daemon = uninterrupted.start();
    wait_for("the week is closed", || {
        (phase(&uninterrupted.status(), &weeks[1]).as_deref() == Some("closed")).then_some(())
    });
    daemon.stop();
    print_always!("{kills} kills until the week was closed; phases: {seen:?}");
    assert!(kills >= 2, "the close was interrupted");

    let ranks = |sandbox: &Sandbox| {
        let rank = |row: &Value| (row["url"].to_string(), row["rank"].as_u64());
        sandbox.list(&[]).iter().map(rank).collect::<Vec<_>>()
    };
    assert!(ranks(&uninterrupted).iter().filter(|(_, rank)| rank.is_some()).count() > 100);
    assert_eq!(ranks(&killed), ranks(&uninterrupted));
    for week in &weeks {
        let (a, b) = (killed.export(&killed.state(), week), uninterrupted.export(&uninterrupted.state(), week));
        assert!(!a.is_empty() && a == b, "{week}: the exports are equal");
    }
    runtime.block_on(async {
        let rows = check_archive_equals_state(&killed, &databases[0]).await;
        assert_eq!(check_archive_equals_state(&uninterrupted, &databases[1]).await, rows);
        let mut compared = 0;
        let player_week = "week, server, player, measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, \
                           elo_rounds, elo_rounds_sure, time_est_variance, time_connected_ms, time_connected_variance, \
                           points_est_variance, clq1, clq2, clq1_position, clq2_position, elo_position, points_position, \
                           time_position, clq1_reached_after_ms, clq2_reached_after_ms, elo_reached_after_ms, \
                           points_reached_after_ms, time_reached_after_ms";
        for (table, columns, order) in [
            ("week", "*", "week"),
            ("player", "*", "player"),
            ("player_word", "*", "word, player"),
            ("server_week", "*", "week, server"),
            ("player_week", player_week, "week, server, player"),
            ("map_week", "*", "week, server, map"),
            ("map_total", "*", "week, game, map"),
            ("best_position", "*", "server, player, ranking, ordinal"),
        ] {
            let sql = format!("SELECT {columns} FROM {table} ORDER BY {order}");
            let (a, b) = (databases[0].rows(&sql).await, databases[1].rows(&sql).await);
            assert!(!a.is_empty() && a == b, "{table} is equal in both");
            compared += a.len();
        }
        let sql = "SELECT server, server_rank, server_rank_week, HEX(ranks) FROM server JOIN server_series USING (server) ORDER BY 1";
        assert_eq!(databases[0].rows(sql).await, databases[1].rows(sql).await);
        let open = "SELECT COUNT(*) FROM server_week WHERE closed = 0";
        assert_eq!(databases[0].value(open).await, "0");
        print_always!("{rows} player rows; {compared} rows in MySQL are equal with and without kills");
    });
}

/// Scans of the last hours of the last two weeks. Returns the weeks' labels.
fn write_past(log: &Path, servers: u32, seed: u64) -> [String; 2] {
    let calendar = Calendar::default();
    let this = calendar.week(clqd::clock::system_ms());
    let ends_ms = [1, 0].map(|back| calendar.week_start_ms(clqd::model::WeekKey(this.0 - back)));
    let start_ms = ends_ms[0] - 3_600_000;
    let settings = world::WorldSettings { servers, seed, start_ms, activity: 3.0, truth: false, ..Default::default() };
    let mut world = World::new(settings);
    let mut text = Vec::new();
    for (end_ms, hours) in ends_ms.into_iter().zip([1, 2]) {
        for (_, server, snapshot) in SimulatedHistory::new(&mut world, end_ms - hours * 3_600_000, end_ms) {
            let url = format!("quake3://{}:1", clqd::fleet::address::address_of(server));
            scan_log::write(&mut text, &ServerUrl::parse(&url).unwrap(), &Outcome::Snapshot(snapshot));
        }
    }
    std::fs::write(log, text).unwrap();
    [2, 1].map(|back| week_label(clqd::model::WeekKey(this.0 - back)))
}

fn phase(status: &Value, week: &str) -> Option<String> {
    let weeks = status["engine"]["weeks"].as_array().expect("weeks");
    let state = weeks.iter().find(|state| state["week"] == week)?;
    Some(state["phase"].as_str().expect("a phase").to_lowercase())
}

// Final comparison --------------------------------------------------------

/// Compares MySQL with the state of a stopped daemon. Returns the number of player rows.
async fn check_archive_equals_state(sandbox: &Sandbox, database: &Database) -> usize {
    assert_eq!(sandbox.status()["outbox_entries"], 0, "nothing is pending");
    let mut want = Vec::new();
    for week in sandbox.weeks() {
        let export = sandbox.export(&sandbox.state(), &week);
        for (row, line) in rows(&export).iter().zip(export.lines()) {
            let text = |field: &str| row[field].as_str().expect("text").to_owned();
            let elo = exact(line, "elo");
            let mut line = vec![text("week"), text("server"), text("game"), text("player")];
            let fields = ["measured_ms", "starts", "time_ms", "points", "clq1", "clq2", "elo_rounds"];
            line.extend(fields.map(|field| row[field].to_string()));
            line.push(elo);
            let position = |ranking| row["pos"].get(ranking).map_or("NULL".to_owned(), Value::to_string);
            line.extend(["clq1", "clq2", "elo", "points", "time"].map(position));
            want.push(line);
        }
    }
    want.sort();
    let mut got = database
        .rows(
            "SELECT w.label, s.url, g.name, p.name, measured_ms, starts, time_ms, points, clq1, clq2, elo_rounds, elo, \
             clq_position(week, server, 'clq1', clq1_order), clq_position(week, server, 'clq2', clq2_order), \
             clq_position(week, server, 'elo', elo_order), clq_position(week, server, 'points', points_order), \
             clq_position(week, server, 'time', time_order) FROM player_week JOIN week w USING (week) JOIN server s USING (server) JOIN player p USING (player) \
             JOIN game g ON g.game = p.game",
        )
        .await;
    for line in &mut got {
        line[11] = format!("{:?}", line[11].parse::<f64>().expect("a double"));
    }
    got.sort();
    let different = got.iter().zip(&want).find(|(got, want)| got != want);
    assert!(got == want, "MySQL has {} rows, the state {}; first: {different:?}", got.len(), want.len());

    // The joins above cover every row of a table, and no row exists twice.
    let count = database.value("SELECT COUNT(*) FROM player_week").await;
    assert_eq!(count, want.len().to_string());
    for twice in [
        "SELECT url FROM server GROUP BY url HAVING COUNT(*) > 1",
        "SELECT game, name FROM player GROUP BY game, name HAVING COUNT(*) > 1",
        "SELECT name FROM game GROUP BY name HAVING COUNT(*) > 1",
        "SELECT name FROM map GROUP BY name HAVING COUNT(*) > 1",
        "SELECT week, server, HEX(points_order) FROM player_week WHERE points_order IS NOT NULL GROUP BY 1, 2, 3 HAVING COUNT(*) > 1",
        "SELECT pw.week, pw.server FROM player_week pw LEFT JOIN server_week sw USING (week, server) WHERE sw.week IS NULL",
    ] {
        assert_eq!(database.rows(twice).await, Vec::<Vec<String>>::new(), "{twice}");
    }

    let text = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fields = [
        "key",
        "url",
        "class",
        "missed",
        "players",
        "slots",
        "added_ms",
        "last_scan_ms",
        "last_seen_ms",
        "rank",
        "greylist_reason",
    ];
    let listed = sandbox.list(&[]);
    let mut want: Vec<Vec<String>> = listed.iter().map(|row| fields.map(|field| text(&row[field])).to_vec()).collect();
    want.sort();
    let mut got = database
        .rows(
            "SELECT server, url, class, missed, players, slots, added_ms, last_scan_ms, last_seen_ms, server_rank, greylist_reason \
             FROM server WHERE removed = 0",
        )
        .await;
    got.sort();
    let different = got.iter().zip(&want).find(|(got, want)| got != want);
    assert!(got == want, "MySQL has {} servers, the state {}; first: {different:?}", got.len(), want.len());
    let players = sandbox.status()["engine"]["players_known"].to_string();
    assert_eq!(database.value("SELECT COUNT(*) FROM player").await, players);
    count.parse().expect("a count")
}

/// A number of a JSON line, parsed exactly, which serde_json does not guarantee.
fn exact(line: &str, field: &str) -> String {
    let text = line.split_once(&format!("\"{field}\":")).expect("the field").1;
    let text = text.split([',', '}']).next().expect("its value");
    format!("{:?}", text.parse::<f64>().expect("a number"))
}
