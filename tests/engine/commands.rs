//! Live equals replay: random commands of admins between random scans, recorded as the daemon
//! records them. A replay of the log gives the same rows, positions, ratings and archived records.

use std::collections::BTreeMap;
use std::path::Path;

use crate::scans;
use clqd::cli::replay::Replay;
use clqd::config::Config;
use clqd::engine::{Event, Outcome, StateReader};
use clqd::log::ForgottenNames;
use clqd::log::LogEvent;
use clqd::model::calendar::{MINUTE_MS, WEEK_MS, week_label};
use clqd::model::outbox::{ArchiveStep, OutboxKey, WriterBeat};
use clqd::model::server::ScreenReason;
use clqd::model::{AdminCommand, ArchiveJob, Completeness, ServerKey, ServerUrl};
use clqd::scan_log;
use clqd::state::State;

const MONDAY_MS: i64 = 1_764_547_200_000; // 2025-12-01 00:00 UTC
const SERVERS: u32 = 5;
const MEMORY: u64 = 64 << 20;

/// Small numbers from a seed: the next one is below `n`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        // The generator of Knuth's MMIX; its low bits are weak.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn is_one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn config(elo_k: u64) -> Config {
    let text = format!(
        "[archive]\nurl = \"mysql://clqd@localhost/clqd\"\n[boards]\nwindows = [\"day keep=8\"]\n[elo]\nk = {elo_k}\n\
         k_times_opponents_max = 2000\n"
    );
    Config::parse(&text).expect("a config")
}

/// With an archive that has everything so far: a replay of a state without one notes nothing for it.
fn open(dir: &Path, config: &Config) -> State {
    let mut state = State::open_configured(config, dir, true).expect("a state");
    if state.engine.model().archive_id().is_none() {
        state.engine.apply_archive_step(ArchiveStep::Claim { id: 1 });
        state.engine.apply_archive_step(ArchiveStep::Archived { batch: 0, at: WriterBeat { epoch: 0, beat: 0 } });
    }
    state
}

fn url(server: u32) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.0.1:{}", 27_960 + server)).expect("a URL")
}

fn game(server: u32) -> &'static str {
    if server == 1 { "osp" } else { "baseq3" }
}

/// A daemon's state, and the log that it records.
struct Live {
    dir: tempfile::TempDir,
    state: Option<State>,
    config: Config,
    log: Vec<LogEvent>,
    /// As `log`, but before names were removed from it.
    log_with_names: Vec<LogEvent>,
    dice: Dice,
    now_ms: i64,
    points: BTreeMap<(u32, u64), i64>,
    applied: BTreeMap<String, u32>,
}

impl Live {
    /// Begins hours before the end of a week.
    fn new(seed: u64) -> Live {
        let dir = tempfile::tempdir().expect("a directory");
        let config = config(25);
        let state = Some(open(dir.path(), &config));
        let now_ms = MONDAY_MS + WEEK_MS - 150 * MINUTE_MS;
        let (points, applied) = (BTreeMap::new(), BTreeMap::new());
        let log = vec![LogEvent::Settings { t_ms: now_ms, settings: config.result_settings() }];
        let log_with_names = log.clone();
        Live { dir, state, config, log, log_with_names, dice: Dice(seed), now_ms, points, applied }
    }

    fn record(&mut self, event: LogEvent) {
        self.log_with_names.push(event.clone());
        self.log.push(event);
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("open")
    }

    fn scan(&mut self, server: u32) {
        // Servers are added in order of their numbers.
        let (url, key) = (url(server), ServerKey(server));
        let outcome = match self.dice.below(20) {
            0 => Outcome::Miss { t_ms: self.now_ms, reason: "timeout".into() },
            kind => {
                let mut snapshot = scans::snapshot(self.now_ms, self.list(server));
                snapshot.game = game(server).into();
                snapshot.map = format!("m{}", self.now_ms / (20 * MINUTE_MS) % 3);
                if kind == 1 {
                    snapshot.players.truncate(1);
                    (snapshot.completeness, snapshot.count) = (Completeness::Partial, Some(3));
                }
                Outcome::Snapshot(snapshot)
            }
        };
        if self.state().engine.model().is_removed(&url) {
            return;
        }
        let event = Event::Replayed { url, outcome };
        let recorded = self.state().handle_and_record(key, event).expect("a store");
        recorded.into_iter().for_each(|event| self.record(event));
    }

    /// Players who stay, gain points, and now and then leave, return or start a new round.
    fn list(&mut self, server: u32) -> Vec<(String, i64)> {
        let mut list = Vec::new();
        let is_new_round = self.dice.is_one_in(12);
        for player in 0..7 {
            let points = self.points.entry((server, player)).or_default();
            *points = if is_new_round { 0 } else { *points + self.dice.below(4) as i64 };
            if !self.dice.is_one_in(5) {
                list.push((name(player), *points));
            }
        }
        list
    }

    /// A random command, as an admin may give it: it may name something unknown.
    fn command(&mut self) {
        let server = url(self.dice.below(u64::from(SERVERS)) as u32 + 1);
        let game = game(self.dice.below(2) as u32).to_owned();
        let tags = vec![["ctf", "duel"][self.dice.below(2) as usize].to_owned()];
        let [from, into] = [name(self.dice.below(8)), name(self.dice.below(8))];
        let command = match self.dice.below(16) {
            0 | 1 => AdminCommand::Add { server, tags, import: self.dice.below(2) == 0 },
            2 => AdminCommand::Remove { server },
            3 | 4 => AdminCommand::Tag { server, add: tags, remove: vec!["duel".into()] },
            5 => AdminCommand::DropTag { tag: tags[0].clone() },
            6 | 7 => AdminCommand::Greylist { server, reason: "bots".into() },
            8 | 9 => AdminCommand::Lift { server },
            10 => AdminCommand::Trust { server, except: vec![ScreenReason::FrozenList], revoke: Vec::new() },
            11 if self.dice.below(2) == 0 => {
                AdminCommand::Budget { server, budget: [None, 3.0.try_into().ok()][self.dice.below(2) as usize] }
            }
            11 => AdminCommand::Merge { game, from, into },
            12 => AdminCommand::Forget { game, player: from, key: None, hash: None },
            13 => match self.state().engine.model().forgotten().first() {
                Some(&(hash, _)) => AdminCommand::Allow { hash },
                None => return,
            },
            14 => {
                let before =
                    clqd::model::WeekKey(self.state().engine.model().weeks().first().map_or(0, |week| week.week.0));
                AdminCommand::Reopen { week: week_label(before) }
            }
            _ => AdminCommand::DeleteWindows { before: MONDAY_MS + WEEK_MS },
        };
        self.apply(command);
    }

    fn apply(&mut self, command: AdminCommand) {
        let now_ms = self.now_ms;
        let state = self.state();
        let t_ms = state.engine.begin_command(now_ms);
        let before = state.engine.model().forgotten();
        let player = match &command {
            AdminCommand::Forget { player, .. } => {
                state.commit().expect("a store");
                state.store.players_named(player).expect("a store")
            }
            _ => Vec::new(),
        };
        if !state.apply_command(t_ms, &command).expect("a store") {
            return;
        }
        let forgotten = state.engine.model().forgotten();
        self.now_ms = t_ms + 1;
        let recorded = serde_json::to_value(&command).expect("JSON");
        let name = recorded["command"].as_str().expect("a name").to_owned();
        *self.applied.entry(name).or_default() += 1;
        let AdminCommand::Forget { game, .. } = command else {
            self.record(LogEvent::Command { t_ms, command });
            return;
        };
        // As the daemon does: the log names the placeholder, and earlier lines get it.
        let names = ForgottenNames::new(forgotten.clone(), Default::default());
        for (hash, _) in forgotten.iter().filter(|it| !before.contains(it)) {
            let placeholder = names.placeholder(hash).expect("it is forgotten").to_string();
            let engine = &self.state.as_ref().expect("open").engine;
            let key = player.iter().find(|(of, _)| engine.model().game_name(*of) == Some(&game)).map(|(_, key)| *key);
            assert!(key.is_some());
            let command = AdminCommand::Forget { game: game.clone(), player: placeholder, key, hash: Some(*hash) };
            self.record(LogEvent::Command { t_ms, command });
        }
        self.log.iter_mut().for_each(|event| _ = names.replace_in(event));
    }

    /// Two minutes with a scan of each server and a tick. Now and then a restart.
    fn step(&mut self, commands: bool) {
        for server in 1..=SERVERS {
            self.now_ms += 10_000;
            self.scan(server);
            if commands && self.dice.is_one_in(6) {
                self.tick();
                self.command();
                self.tick();
            }
        }
        self.now_ms += 2 * MINUTE_MS - 10_000 * i64::from(SERVERS);
        self.tick();
        if self.dice.is_one_in(4) {
            self.state().commit().expect("a store");
        }
        if self.dice.is_one_in(40) {
            // With other settings.
            let (config, t_ms) = (config(20 + self.dice.below(20)), self.now_ms);
            let settings = config.result_settings().changed_since(&self.config.result_settings());
            self.record(LogEvent::Settings { t_ms, settings });
            self.config = config;
            self.state().commit().expect("a store");
            self.state = None;
            self.state = Some(open(self.dir.path(), &self.config));
        }
    }

    /// The ticks of some seconds: no command is given while a week is being closed, because a log has no
    /// ticks.
    fn tick(&mut self) {
        let now_ms = self.now_ms;
        let state = self.state();
        state.handle(Event::Tick { now_ms }).expect("a store");
        if state.engine.has_week_to_close() {
            state.close_due_weeks(now_ms).expect("a store");
        }
    }

    fn text(&self) -> String {
        let mut text = Vec::new();
        self.log.iter().for_each(|event| scan_log::write_event(&mut text, event));
        String::from_utf8(text).expect("JSON")
    }
}

fn name(player: u64) -> String {
    format!("player {player}")
}

/// Everything that is exported and archived.
fn content(state: &mut State) -> (String, BTreeMap<OutboxKey, ArchiveJob>) {
    state.commit().expect("a store");
    let weeks: Vec<String> = state.engine.model().weeks().iter().map(|week| week_label(week.week)).collect();
    let mut exported = Vec::new();
    for week in &weeks {
        clqd::cli::export::write(state, week, &mut exported).expect("an export");
    }
    let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).expect("a store");
    let jobs = jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, scans::complete(job?))));
    let is_compared = |key: &OutboxKey| matches!(key, OutboxKey::Week { .. } | OutboxKey::Player(_));
    (String::from_utf8(exported).expect("JSON"), jobs.filter(|(key, _)| is_compared(key)).collect())
}

fn replay(state: &mut State, log: &[LogEvent]) {
    let mut replay = Replay::new(state, MEMORY).with_config(config(30));
    log.iter().for_each(|event| replay.apply(event.clone()).expect("a replay"));
    replay.finish().expect("a replay");
}

#[test]
fn replay_of_random_scans_and_commands_gives_the_same_state() {
    let (mut applied, mut rows) = (BTreeMap::<String, u32>::new(), 0);
    for seed in 1..=12 {
        let mut live = Live::new(seed);
        (1..=SERVERS)
            .for_each(|server| live.apply(AdminCommand::Add { server: url(server), tags: Vec::new(), import: false }));
        (0..110).for_each(|_| live.step(true));
        // The week that has ended is closed again if it was reopened.
        (0..5).for_each(|_| live.step(false));
        let now_ms = live.now_ms;
        live.state().close_due_weeks(now_ms).expect("a store");
        let want = content(live.state());

        let text = live.text();
        let log: Vec<LogEvent> = text.lines().map(|line| scan_log::parse(line).expect("a line")).collect();
        assert!(log.windows(2).all(|two| two[0].t_ms() <= two[1].t_ms()), "seed {seed}: not in order of time");
        let dir = tempfile::tempdir().expect("a directory");
        let mut replayed = open(dir.path(), &config(30));
        // A replay that was interrupted is repeated from the beginning.
        let cut = live.dice.below(log.len() as u64) as usize;
        if seed % 2 == 0 {
            let mut first = Replay::new(&mut replayed, MEMORY).with_config(config(30));
            log[..cut].iter().for_each(|event| first.apply(event.clone()).expect("a replay"));
            replayed.commit().expect("a store");
        }
        replay(&mut replayed, &log);
        replayed.close_due_weeks(now_ms).expect("a store");
        let found = content(&mut replayed);
        rows += want.0.lines().count();
        assert_same(seed, &want.0, &found.0);
        for (key, job) in &want.1 {
            assert_eq!(Some(job), found.1.get(key), "seed {seed}");
        }
        assert_eq!(want.1.len(), found.1.len(), "seed {seed}");

        // One that follows the log has the names until they are forgotten.
        let dir = tempfile::tempdir().expect("a directory");
        let mut follower = open(dir.path(), &config(30));
        replay(&mut follower, &live.log_with_names);
        follower.close_due_weeks(now_ms).expect("a store");
        assert_same(seed, &want.0, &content(&mut follower).0);
        assert_eq!(follower.engine.model().forgotten(), live.state().engine.model().forgotten(), "seed {seed}");
        live.applied.into_iter().for_each(|(name, count)| *applied.entry(name).or_default() += count);
    }
    assert!(rows > 150, "{rows}");
    assert!(applied.len() >= 12 && applied.values().all(|&count| count > 1), "{applied:?}");
}

fn assert_same(seed: u64, want: &str, found: &str) {
    for (want, found) in want.lines().zip(found.lines()) {
        assert_eq!(want, found, "seed {seed}");
    }
    assert_eq!(want.lines().count(), found.lines().count(), "seed {seed}");
}
