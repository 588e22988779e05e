//! Adversarial scan logs from a seed: short games close to every edge case of
//! docs/rules.md. They do not resemble real servers; `clqd::fleet` does. The same seed and
//! time zone always give the same log. Logs for screening are in `screening`; `commands` adds what an
//! admin did.

pub mod commands;
pub mod screening;

use clqd::model::WeekKey;
use clqd::model::calendar::{Calendar, parse_week_label};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::to_string;

/// Names that the rules treat specially, and pairs that are equal or almost equal when
/// normalised.
const NAMES: [&str; 36] = [
    "UnnamedPlayer",
    "Player",
    "player",
    "unnamed",
    "nameless tee",
    "^7Player",
    "",
    " ",
    "^1",
    "\u{200b}",
    "Visor",
    "^1Visor",
    "\u{a7}4Visor",
    "\u{a7}lV\u{a7}\u{a7}aisor\u{a7}",
    "^2Vi^3sor",
    "visor",
    "^^11Sarge",
    "^1Sarge",
    "^xF00Red",
    "F00Red",
    "Red",
    "Klesk^",
    "Jos\u{e9}",
    "Jose\u{301}",
    "\u{65e5}\u{672c}",
    "a\tb",
    "a  b",
    "a b ",
    "\u{a0}a\u{3000}b",
    "q\"uo\\te/",
    "\u{202e}rtl",
    "rtl",
    "\u{1f600}\u{1f3fd}",
    "nul\u{0}l\u{7f}",
    "{\"t\":1}",
    "ninety-nine bytes and more, ninety-nine bytes and more, ninety-nine bytes and more, ninety-nine bytes and more",
];

const MAPS: [&str; 6] = ["q3dm17", "q3dm6", "de_dust2", "Q3DM6", "", "ma p/\u{65e5}"];

/// Gaps around 720 s, and fractions of it, so that segments end exactly at a snapshot.
const GAPS_MS: [i64; 14] = [
    720_000, 720_000, 720_001, 719_999, 360_000, 240_000, 180_000, 144_000, 600_000, 1, 999, 60_000, 721_000, 1_440_000,
];

/// Gaps around those that matter at the end of a round.
const DENSE_GAPS_MS: [i64; 12] =
    [7_999, 8_000, 8_000, 15_000, 15_001, 20_000, 34_999, 35_000, 35_000, 35_000, 35_001, 60_000];

/// A log around week boundaries of a time zone. In every eighth seed servers change their
/// game together with their map.
pub fn scan_log(seed: u64, calendar: &Calendar) -> String {
    let mut random = Random::new(seed);
    let first_week = parse_week_label("2025-W47").expect("a label").0 + random.below(60) as u32;
    let edges: Vec<i64> = (0..1 + random.below(3) as u32)
        .map(|n| calendar.week_start_ms(WeekKey(first_week + n + random.below(2) as u32)))
        .collect();
    let servers = 2 + random.below(7) as usize;
    let mut lines: Vec<(i64, String)> = Vec::new();
    for number in 0..servers {
        let mut server = Server::new(number, seed % 8 == 7, &mut random);
        for &edge in &edges {
            server.session(edge, &mut random, &mut lines);
        }
    }
    lines.sort_by_key(|(t, _)| *t);
    lines.iter().map(|(_, line)| line.as_str()).collect()
}

struct Server {
    url: String,
    scheme: &'static str,
    game: &'static str,
    games: &'static [&'static str],
    changes_game: bool,
    map: &'static str,
    players: Vec<Player>,
    capacity: usize,
    /// Points of one frag.
    scale: i64,
    pace: Pace,
    /// Remaining scans until a new round begins. Before it the points stay the same.
    intermission: u64,
    /// What connected times are rounded down to; `None`: the server sends none.
    connected_step_ms: Option<i64>,
    /// Time of the last line written.
    t: i64,
}

#[derive(Clone)]
struct Player {
    name: String,
    points: i64,
    ping: Option<i64>,
    bot: bool,
    /// `None`: after the last line written.
    joined: Option<i64>,
}

#[derive(Clone, Copy)]
enum Pace {
    /// A gap of 120,000 ms, so that every sixth snapshot ends a segment.
    Exact,
    Jittery,
    Slow,
    Wild,
    /// Some seconds, around the 8, 15 and 35 s that matter at the end of a round; players leave often, and
    /// often the points stay the same until a new round begins.
    Dense,
    /// Like `Exact`, but for hours, with many short rounds and players who stay, so that
    /// players have more than ten segments and games.
    Steady,
}

impl Server {
    fn new(number: usize, changes_game: bool, random: &mut Random) -> Server {
        let (scheme, games): (_, &[&str]) = random.pick(&[
            ("quake3", &["baseq3", "baseoa"][..]),
            ("quake3", &["baseq3", "baseoa"]),
            ("source", &["cstrike", "baseq3"]),
            ("source", &["cstrike", "baseq3"]),
            ("quakeworld", &["ffa", "baseq3"]),
            ("odamex", &["doom2", "baseq3"]),
            ("darkplaces", &["nexuiz"]),
            ("minecraft", &["MINECRAFT"]),
        ]);
        // Sometimes they are not rounded down.
        let connected_steps_ms: &[Option<i64>] = match scheme {
            "source" => &[Some(1_000), Some(1_000), Some(1), None],
            "quakeworld" | "odamex" => &[Some(60_000), Some(60_000), Some(60_000), Some(1)],
            _ => &[None],
        };
        let host = random.pick(&["127.0.0.1", "127.0.1.9", "[::1]", "game.example.org"]);
        Server {
            url: format!("{scheme}://{host}:{}", 27_960 + number),
            scheme,
            game: random.pick(games),
            games,
            changes_game,
            map: random.pick(&MAPS),
            players: Vec::new(),
            capacity: random.pick(&[1, 2, 2, 3, 4, 5, 8, 8, 16, 64, 64]),
            scale: random.pick(&[1, 1, 1, 1, 10, 1_000, 1_000_003]),
            pace: random.pick(&[
                Pace::Exact,
                Pace::Exact,
                Pace::Jittery,
                Pace::Slow,
                Pace::Wild,
                Pace::Steady,
                Pace::Dense,
            ]),
            intermission: 0,
            connected_step_ms: random.pick(connected_steps_ms),
            t: 0,
        }
    }

    /// Scans from some time before a week boundary to some time after it.
    fn session(&mut self, edge: i64, random: &mut Random, lines: &mut Vec<(i64, String)>) {
        let start = edge - random.between(600_000, 7_000_000);
        let longer = if matches!(self.pace, Pace::Steady) { 9_000_000 } else { 0 };
        let end = edge + random.between(600_000, 7_000_000) + longer;
        // The previous session may have ended later than this one begins.
        self.t = self.t.max(start);
        while self.t < end {
            let (last, next) = (self.t, self.next_t(random));
            let crosses = self.t < edge && next >= edge;
            if crosses {
                self.play_across_the_edge(random);
            } else {
                self.play(random);
            }
            self.t = match random.below(4) {
                0 if crosses => edge,
                1 if crosses && self.t < edge - 1 => edge - 1,
                _ => next,
            };
            if random.chance(1) {
                self.misses(random.pick(&[3, 11, 21, 31, 45]), random, lines);
            }
            self.connect(last, random);
            let line = match random.below(100) {
                0..=3 => self.miss_line(random),
                4..=7 => self.partial_line(random),
                _ => self.snapshot_line(random),
            };
            lines.push((self.t, line));
        }
    }

    fn next_t(&self, random: &mut Random) -> i64 {
        let gap = match self.pace {
            Pace::Steady => 120_000,
            Pace::Dense => random.pick(&DENSE_GAPS_MS),
            _ if random.chance(8) => random.pick(&GAPS_MS),
            Pace::Exact => 120_000,
            Pace::Jittery => 120_000 + random.between(-5_000, 5_000),
            Pace::Slow => 600_000 + random.between(-20_000, 20_000),
            Pace::Wild if random.chance(50) => random.pick(&GAPS_MS),
            Pace::Wild => random.between(1, 900_000),
        };
        self.t + gap
    }

    fn misses(&mut self, count: i64, random: &mut Random, lines: &mut Vec<(i64, String)>) {
        for _ in 0..count {
            lines.push((self.t, self.miss_line(random)));
            self.t += random.between(1, 20_000);
        }
    }

    /// Simulates the time between two scans.
    fn play(&mut self, random: &mut Random) {
        if self.intermission > 0 {
            self.wait_for_new_round(random);
        } else {
            self.score(random);
            self.random_events(random);
        }
        match random.below(4) {
            0 => random.shuffle(&mut self.players),
            1 => self.players.sort_by_key(|p| -p.points),
            _ => {}
        }
    }

    fn random_events(&mut self, random: &mut Random) {
        match self.pace {
            Pace::Steady if self.players.len() > 1 => {
                if random.chance(20) {
                    self.new_round(random);
                }
            }
            Pace::Dense if random.chance(15) && self.players.len() > 1 => self.intermission = 1 + random.below(3),
            Pace::Dense if random.chance(30) && !self.players.is_empty() => {
                let index = random.below(self.players.len() as u64) as usize;
                self.players.remove(index);
            }
            _ => (0..random.below(3)).for_each(|_| self.random_event(random)),
        }
    }

    /// A scan after the end of a round. Few players leave, join or score.
    fn wait_for_new_round(&mut self, random: &mut Random) {
        self.intermission -= 1;
        let index = random.below(self.players.len().max(1) as u64) as usize;
        match random.below(20) {
            0..=2 if !self.players.is_empty() => drop(self.players.remove(index)),
            3 | 4 if self.players.len() < self.capacity => self.join(random),
            5 if !self.players.is_empty() => self.players[index].points += self.scale,
            _ => {}
        }
        if self.intermission == 0 {
            self.new_round(random);
        }
    }

    /// New players have joined since the last line. Sometimes they say that they came a little before it.
    fn connect(&mut self, last: i64, random: &mut Random) {
        if self.connected_step_ms.is_none() {
            return;
        }
        for player in self.players.iter_mut().filter(|p| p.joined.is_none()) {
            let since = random.between(last, self.t);
            let edge = random.pick(&[last - 6_000, last - 5_001, last - 5_000, last - 1, last, self.t]);
            player.joined = Some(random.pick(&[since, since, since, edge]));
        }
    }

    /// The round ends at the week boundary. Some players leave at the same time, so only a
    /// final list of the new week contains them.
    fn play_across_the_edge(&mut self, random: &mut Random) {
        self.play(random);
        if random.chance(60) {
            let leaving = random.below(1 + self.players.len() as u64) as usize;
            self.players.truncate(self.players.len() - leaving);
            self.new_round(random);
        }
    }

    fn score(&mut self, random: &mut Random) {
        for player in &mut self.players {
            let before = player.points;
            player.points = match random.below(40) {
                0 => before / 2,
                1 => before / 2 - 1,
                2 => (before - 1) / 2,
                3 => (before + 1) / 2,
                4 => 0,
                5 => 1,
                6..=8 => before - random.between(1, 3),
                9..=24 => before,
                _ => before + self.scale * random.between(1, 6),
            };
        }
    }

    fn random_event(&mut self, random: &mut Random) {
        let free_slots = self.capacity.saturating_sub(self.players.len());
        let index = random.below(self.players.len().max(1) as u64) as usize;
        match random.below(40) {
            0..=12 if free_slots > 0 => self.join(random),
            13..=16 => (0..free_slots.min(8)).for_each(|_| self.join(random)),
            17..=20 if !self.players.is_empty() => drop(self.players.remove(index)),
            21 => self.players.clear(),
            22 | 39 => (0..free_slots).for_each(|_| self.join(random)),
            23..=25 => self.new_round(random),
            26 => self.map = random.pick(&MAPS),
            27..=29 => self.drop_to_threshold(random),
            30 => {
                // All players are replaced: no common name, on the same map.
                let names: Vec<String> = self.players.drain(..).map(|p| p.name).collect();
                (0..names.len()).for_each(|_| self.join(random));
                self.players.retain(|p| !names.contains(&p.name));
            }
            31 | 32 => {
                let same = self.players.get(index).map_or(0, |p| p.points);
                let some = random.below(1 + self.players.len() as u64) as usize;
                self.players.iter_mut().take(some).for_each(|p| p.points = same);
            }
            33 => self.players.iter_mut().for_each(|p| p.points = -p.points.abs()),
            34..=36 if !self.players.is_empty() => {
                // A second entry with the same name: another player's, or a bot's.
                let mut duplicate = self.players[index].clone();
                duplicate.bot = random.chance(40);
                duplicate.points = random.between(-2, 9);
                self.players.push(duplicate);
            }
            37 if !self.players.is_empty() => self.players[index].name = self.new_name(random),
            38 if !self.players.is_empty() => self.players[index].ping = random.pick(&[Some(0), None, Some(50)]),
            _ => {}
        }
    }

    fn join(&mut self, random: &mut Random) {
        let points = random.pick(&[0, 0, 0, 1, 3, -1, 7, 20]) * self.scale;
        let ping = random.pick(&[Some(30), Some(30), Some(30), Some(30), Some(150), Some(999), None, Some(0)]);
        self.players.push(Player { name: self.new_name(random), points, ping, bot: random.chance(6), joined: None });
    }

    fn new_name(&self, random: &mut Random) -> String {
        match self.capacity {
            64 if random.chance(90) => format!("p{}", random.below(400)),
            _ if random.chance(35) => random.pick(&NAMES).to_owned(),
            _ => format!("p{}", random.below(40)),
        }
    }

    fn new_round(&mut self, random: &mut Random) {
        for player in &mut self.players {
            player.points = random.pick(&[0, 0, 0, 1, 2, -1]) * self.scale;
        }
        if random.chance(50) {
            self.map = random.pick(&MAPS);
            if self.changes_game && random.chance(30) {
                // A new game always has a new map, whichever map was picked.
                self.map = if self.map == MAPS[0] { MAPS[1] } else { MAPS[0] };
                self.game = random.pick(self.games);
            }
        }
    }

    /// The sum of points falls close to the threshold at which a round counts as restarted.
    fn drop_to_threshold(&mut self, random: &mut Random) {
        let sum: i64 = self.players.iter().map(|p| p.points.max(0)).sum();
        let sums = [sum - 4, sum - 5, sum - 6, sum / 2, (sum - 1) / 2, sum / 2 + 1];
        let mut fall = sum - random.pick(&sums).max(0);
        for player in &mut self.players {
            let part = fall.min(player.points).max(0);
            player.points -= part;
            fall -= part;
        }
    }

    fn snapshot_line(&self, random: &mut Random) -> String {
        let mut hostname = format!("server {}", random.below(3));
        hostname.push_str(random.pick(&["", " ^1red", " \u{65e5}"]));
        let line = format!(
            "{{\"t\":{},\"server\":{},\"game\":{},\"map\":{},\"hostname\":{},\"slots\":{},\"players\":{}}}\n",
            self.t,
            self.written_url(random),
            json(self.game),
            json(self.map),
            json(&hostname),
            self.capacity,
            self.players_json(&self.players, random),
        );
        if random.chance(10) { in_ascii(&line) } else { line }
    }

    fn partial_line(&self, random: &mut Random) -> String {
        let shown = random.below(1 + self.players.len() as u64) as usize;
        let count = match random.below(3) {
            0 => String::new(),
            1 => format!(",\"count\":{}", self.players.len()),
            _ => format!(",\"count\":{}", random.below(65)),
        };
        let bots = if random.chance(20) { format!(",\"bots\":{}", random.below(5)) } else { String::new() };
        let map = if random.chance(30) { random.pick(&MAPS) } else { self.map };
        let game = if random.chance(20) { random.pick(&["partial-game", "", self.games[0]]) } else { self.game };
        format!(
            "{{\"t\":{},\"server\":{},\"partial\":true{count}{bots},\"game\":{},\"map\":{},\"slots\":{},\"players\":{}}}\n",
            self.t,
            self.written_url(random),
            json(game),
            json(map),
            self.capacity,
            self.players_json(&self.players[..shown], random),
        )
    }

    fn miss_line(&self, random: &mut Random) -> String {
        format!("{{\"t\":{},\"server\":{},\"miss\":true}}\n", self.t, self.written_url(random))
    }

    fn players_json(&self, players: &[Player], random: &mut Random) -> String {
        let mut entries = Vec::new();
        for p in players {
            let ping = p.ping.map_or(String::new(), |ping| format!(",\"ping\":{ping}"));
            let connected = self.connected_ms(p, random).map_or(String::new(), |ms| format!(",\"connected_ms\":{ms}"));
            let (name, points, bot) = (json(&p.name), p.points, p.bot);
            entries.push(format!("{{\"name\":{name},\"points\":{points}{ping}{connected},\"bot\":{bot}}}"));
        }
        format!("[{}]", entries.join(","))
    }

    /// The connected time as the server sends it: sometimes none, and sometimes an absurd one.
    fn connected_ms(&self, player: &Player, random: &mut Random) -> Option<i64> {
        let (step_ms, joined) = (self.connected_step_ms?, player.joined?);
        match random.below(40) {
            0 | 1 => None,
            2 => Some(random.pick(&[86_400_000, 4_294_967_295_000, i64::MAX])),
            _ => Some((self.t - joined) / step_ms * step_ms),
        }
    }

    /// The URL, sometimes not in canonical form.
    fn written_url(&self, random: &mut Random) -> String {
        let url = match random.below(50) {
            0 => self.url.replacen(self.scheme, &self.scheme.to_ascii_uppercase(), 1),
            1 => format!("{}/", self.url),
            _ => self.url.clone(),
        };
        json(&url)
    }
}

fn json(text: &str) -> String {
    to_string(text).expect("text is JSON")
}

/// The same JSON with all non-ASCII characters escaped.
fn in_ascii(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Random numbers from a seed. The distributions are defined here and not taken from a
/// crate: a seed must give the same log in every version.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::seed_from_u64(seed))
    }

    /// 0 to `n` - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    /// `low` to `high`, both included.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}
