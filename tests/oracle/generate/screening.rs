//! Scan logs with the cases of docs/rules.md 4.2, 14 and 15: spectators, duplicate generic
//! names, bots that A2S counts but does not name, more entries than slots, lists that never
//! change, floods of new games, maps and names, entries without points, and impossible
//! gains. The limits are so small that short logs reach them. The same seed and time zone
//! always give the same log.

use clqd::model::WeekKey;
use clqd::model::calendar::{Calendar, parse_week_label};

use super::{GAPS_MS, Random, in_ascii, json};
use crate::oracle::Screen;

const HOUR_MS: i64 = 3_600_000;
const GENERIC: [&str; 4] = ["Player", "UnnamedPlayer", "Bob", "^1Bob"];
const HOME_MAPS: [&str; 4] = ["q3dm17", "q3dm6", "de_dust2", ""];

/// The limits that the log of a seed reaches.
pub fn screen(seed: u64) -> Screen {
    let random = &mut Random::new(seed ^ 0x5C4EE7);
    let mut spectator_points = Screen::default().spectator_points;
    if random.chance(30) {
        spectator_points.push(("baseq3".to_owned(), -1));
    }
    Screen {
        enabled: !random.chance(10),
        frozen_after_s: random.pick(&[3_600, 3_600, 7_200, 21_600]),
        new_games_per_day_max: random.pick(&[1, 2, 4, 4]),
        new_maps_per_day_max: random.pick(&[1, 5, 7, 200]),
        new_names_per_day_max: random.pick(&[1, 6, 15, 40, 2_000]),
        games_max: random.pick(&[2, 5, 10_000, 10_000, 10_000]),
        maps_max: random.pick(&[1, 6, 9, 1_000_000, 1_000_000]),
        spectator_points,
        gain_max: random.pick(&[10, 1_000, 1_000_000, 1_000_000]),
    }
}

/// A log for [`screen`] of the same seed, in the time zone of its settings.
pub fn log(seed: u64, calendar: &Calendar) -> String {
    let limits = screen(seed);
    let random = &mut Random::new(seed ^ 0x10_95);
    let week = parse_week_label("2026-W12").expect("a label").0 + random.below(30) as u32;
    let edge = calendar.week_start_ms(WeekKey(week));
    let mut lines: Vec<(i64, String)> = Vec::new();
    for number in 0..2 + random.below(4) as usize {
        // A separate generator, so that the rest of a log does not depend on connected times.
        let connections = Random::new(seed ^ ((number as u64) << 32) ^ 0xC0_22EC7);
        let mut server = Server::new(number, &limits, connections, random);
        server.t = edge - random.between(1, 5) * HOUR_MS + random.between(0, 200_000);
        let end = server.t + random.pick(&[6, 9, 11]) * HOUR_MS;
        while server.t < end {
            server.next_t(random);
            server.play(random);
            server.lines(random, &mut lines);
        }
    }
    lines.sort_by_key(|(t, _)| *t);
    lines.iter().map(|(_, line)| line.as_str()).collect()
}

struct Server {
    url: String,
    game: &'static str,
    map: String,
    slots: usize,
    players: Vec<Player>,
    /// The points that mark a spectator, if the game has such a mark.
    marker: Option<i64>,
    /// The protocol is A2S: bots are counted but not marked.
    a2s: bool,
    /// More bots than names are remembered, sometimes without players.
    many_bots: bool,
    /// Number of different names; a large number reaches the quota of names.
    names: u64,
    points: PointsShown,
    gain_max: i64,
    frozen_after_ms: i64,
    /// Until this time the list does not change.
    frozen_until: i64,
    /// Remaining scans of a flood, and its kind.
    flood: (u64, Flood),
    t: i64,
    exact: bool,
    /// What connected times are rounded down to; `None`: the server sends none.
    connected_step_ms: Option<i64>,
    connections: Random,
}

#[derive(Clone)]
struct Player {
    name: String,
    points: i64,
    ping: Option<i64>,
    /// A bot, even if the list does not mark it.
    bot: bool,
    spectator: Option<Spectator>,
    has_points: bool,
    /// `None`: there is no connected time.
    joined: Option<i64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Spectator {
    Flagged,
    Marked,
}

#[derive(Clone, Copy)]
enum PointsShown {
    All,
    Some,
    None,
}

#[derive(Clone, Copy)]
enum Flood {
    Games,
    Maps,
    Names,
}

impl Server {
    fn new(number: usize, limits: &Screen, connections: Random, random: &mut Random) -> Server {
        let (scheme, game, marker) = random.pick(&[
            ("quake3", "Xonotic", Some(-666)),
            ("darkplaces", "Nexuiz", Some(-666)),
            ("quake3", "Warsow", Some(-9_999)),
            ("quake3", "baseq3", None),
            ("quake3", "baseq3", Some(-1)),
            ("quakeworld", "ffa", Some(-9_999)),
            ("source", "cstrike", None),
            ("source", "cstrike", None),
            ("source", "tf", None),
        ]);
        let a2s = scheme == "source" && !random.chance(15);
        let many_bots = a2s && random.chance(25);
        Server {
            url: format!("{scheme}://127.0.0.1:{}", 27_000 + number),
            game,
            map: random.pick(&HOME_MAPS).to_owned(),
            slots: if many_bots { 64 } else { random.pick(&[0, 2, 4, 8, 16, 32, 64]) },
            players: Vec::new(),
            marker,
            a2s,
            many_bots,
            names: random.pick(&[8, 20, 40]),
            points: random.pick(&[
                PointsShown::All,
                PointsShown::All,
                PointsShown::All,
                PointsShown::Some,
                PointsShown::None,
            ]),
            gain_max: limits.gain_max,
            frozen_after_ms: 1_000 * limits.frozen_after_s,
            frozen_until: 0,
            flood: (0, Flood::Names),
            t: 0,
            exact: random.chance(70),
            connected_step_ms: match scheme {
                "quakeworld" => Some(60_000),
                "source" => Some(1_000),
                _ => None,
            },
            connections,
        }
    }

    fn next_t(&mut self, random: &mut Random) {
        self.t += match random.below(20) {
            0 => random.pick(&GAPS_MS),
            _ if self.exact => 120_000,
            _ => random.between(60_000, 300_000),
        };
    }

    fn play(&mut self, random: &mut Random) {
        if self.t < self.frozen_until {
            return self.keep_list(random);
        }
        let gain_max = self.gain_max;
        for player in self.players.iter_mut().filter(|p| p.spectator.is_none()) {
            player.points += match random.below(60) {
                0 => gain_max,
                1 => gain_max + 1,
                2 => gain_max - player.points.max(0) + 1,
                3 => -player.points / 2,
                4 => -player.points,
                5..=8 => -random.between(0, 2),
                9..=40 => random.between(0, 9),
                _ => 0,
            };
        }
        for _ in 0..random.below(3) {
            self.random_event(random);
        }
        if self.many_bots && random.chance(10) {
            self.players.clear();
            (0..40).for_each(|_| self.join_as(bot_name(random), true, random));
        }
        if self.flood.0 > 0 {
            self.flood.0 -= 1;
            match self.flood.1 {
                Flood::Maps => self.map = format!("map{}", random.below(12)),
                Flood::Names => (0..random.between(1, 3)).for_each(|_| {
                    let name = format!("new{}", random.below(500));
                    self.join_as(name, false, random);
                }),
                Flood::Games => (),
            }
        }
        let entries_max = if self.slots == 0 { 12 } else { self.slots.min(40) };
        while self.players.len() > entries_max {
            self.players.remove(0);
        }
    }

    /// The list stays the same, except for its order and for bots that the protocol marks.
    fn keep_list(&mut self, random: &mut Random) {
        match random.below(60) {
            0..=9 => random.shuffle(&mut self.players),
            10 if !self.a2s => self.players.iter_mut().filter(|p| p.bot).for_each(|p| p.points += 1),
            11 if random.chance(30) => self.frozen_until = 0,
            _ => {}
        }
    }

    fn random_event(&mut self, random: &mut Random) {
        let index = random.below(self.players.len().max(1) as u64) as usize;
        match random.below(64) {
            0..=11 => self.join(random),
            12..=14 => (0..4).for_each(|_| self.join(random)),
            15..=18 if !self.players.is_empty() => drop(self.players.remove(index)),
            19 => self.players.clear(),
            20..=31 if !self.players.is_empty() => self.toggle_spectator(index, random),
            32..=34 => {
                // All spectators play, as when a new round begins.
                for n in 0..self.players.len() {
                    if self.players[n].spectator.is_some() {
                        self.toggle_spectator(n, random);
                    }
                }
                if random.chance(50) {
                    self.new_round(random);
                }
            }
            35..=37 => self.new_round(random),
            38..=40 => self.map = random.pick(&HOME_MAPS).to_owned(),
            41..=43 if !self.players.is_empty() => {
                let mut duplicate = self.players[index].clone();
                duplicate.points = random.between(-1, 30);
                duplicate.spectator = random.pick(&[None, None, duplicate.spectator, Some(Spectator::Flagged)]);
                self.players.push(duplicate);
            }
            44..=47 => {
                // Only players with the same generic name are left.
                self.players.clear();
                for _ in 0..random.between(1, 3) {
                    self.join_as(random.pick(&GENERIC).to_owned(), false, random);
                }
            }
            48..=50 => {
                let names = random.pick(&[0, 1, 2, 5, 40]);
                self.players.clear();
                (0..names).for_each(|_| self.join_as(bot_name(random), true, random));
            }
            51..=53 => self.join_as(bot_name(random), random.chance(60), random),
            54 => self.flood = (random.below(9), random.pick(&[Flood::Games, Flood::Maps, Flood::Names])),
            55 | 56 if self.frozen_until + 4 * HOUR_MS < self.t => {
                while self.players.len() < 3 + random.below(4) as usize {
                    self.join(random);
                }
                // Until just before the limit, or for some time after it.
                let after = random.pick(&[0, 0, 120_000, 1_500_000, HOUR_MS]);
                self.frozen_until = self.t + self.frozen_after_ms + after;
            }
            57 if !self.players.is_empty() => {
                let player = &mut self.players[index];
                player.has_points = !player.has_points && !matches!(self.points, PointsShown::None);
            }
            58 => self.players.retain(|p| p.spectator.is_some()),
            _ => {}
        }
    }

    fn toggle_spectator(&mut self, n: usize, random: &mut Random) {
        let marked = self.marker.is_some() && random.chance(70);
        let joined = self.joined();
        let player = &mut self.players[n];
        if self.connections.chance(40) {
            player.joined = joined;
        }
        player.spectator = match player.spectator {
            Some(_) => None,
            None if marked => Some(Spectator::Marked),
            None => Some(Spectator::Flagged),
        };
        player.points = random.pick(&[player.points, player.points, 0, 0, 7, -1]);
    }

    fn new_round(&mut self, random: &mut Random) {
        for player in &mut self.players {
            player.points = random.pick(&[0, 0, 0, 1, 2, -1]);
        }
        if random.chance(30) {
            self.map = random.pick(&HOME_MAPS).to_owned();
        }
    }

    fn join(&mut self, random: &mut Random) {
        let name = match random.below(20) {
            0 | 1 => random.pick(&GENERIC).to_owned(),
            2 => random.pick(&["", "^1", " Bob ", "Bo^2b"]).to_owned(),
            _ => format!("p{}", random.below(self.names)),
        };
        self.join_as(name, false, random);
    }

    fn join_as(&mut self, name: String, bot: bool, random: &mut Random) {
        let spectator = if random.chance(12) { Some(Spectator::Flagged) } else { None };
        let ping = random.pick(&[Some(40), Some(40), Some(40), Some(40), Some(40), None, Some(0)]);
        let has_points = match self.points {
            PointsShown::All => true,
            PointsShown::Some => random.chance(70),
            PointsShown::None => false,
        };
        let points = random.pick(&[0, 0, 3, -1, 12]);
        let joined = self.joined();
        self.players.push(Player { name, points, ping, bot, spectator, has_points, joined });
    }

    /// When a new player joined, mostly since the last list. Sometimes there is no connected time, or an absurd one.
    fn joined(&mut self) -> Option<i64> {
        match self.connections.below(20) {
            0 => None,
            1 => Some(self.t - 2_000_000_000_000),
            _ => Some(self.t - self.connections.between(0, 150_000)),
        }
    }

    fn lines(&self, random: &mut Random, lines: &mut Vec<(i64, String)>) {
        let line = match random.below(60) {
            0 => format!("{{\"t\":{},\"server\":{},\"miss\":true}}\n", self.t, json(&self.url)),
            1 => self.line(&[], ",\"partial\":true,\"count\":3"),
            2 => self.line(&self.players[..self.players.len() / 2], ",\"partial\":true"),
            3 => {
                // As many entries as a server may list, or one more.
                let mut players = self.players.clone();
                let entries = self.slots + (self.slots / 4).max(8) + random.below(2) as usize;
                let extra = |n: usize| Player {
                    name: format!("x{n}"),
                    points: 0,
                    ping: Some(9),
                    bot: false,
                    spectator: None,
                    has_points: true,
                    joined: Some(self.t),
                };
                players.extend((players.len()..entries).map(extra));
                self.line(&players, &self.announced(&players, random))
            }
            _ => self.line(&self.players, &self.announced(&self.players, random)),
        };
        let line = match self.flood {
            (1.., Flood::Games) => {
                let game = format!("\"game\":{},", json(&format!("game{}", random.below(9))));
                line.replacen(&format!("\"game\":{},", json(self.game)), &game, 1)
            }
            _ => line,
        };
        lines.push((self.t, if random.chance(5) { in_ascii(&line) } else { line }));
    }

    /// The bots that A2S announces: sometimes none, sometimes a wrong number.
    fn announced(&self, players: &[Player], random: &mut Random) -> String {
        let entries = players.len() as i64;
        let bots = players.iter().filter(|p| p.bot).count() as i64;
        if !self.a2s || random.chance(5) {
            return String::new();
        }
        let bots = match random.below(12) {
            0 => 0,
            1 => bots + random.between(1, 3),
            2 => bots / 2,
            _ => bots,
        };
        let count = match random.below(4) {
            0 => format!(",\"count\":{}", entries + random.between(0, 2)),
            1 => format!(",\"count\":{entries}"),
            2 => format!(",\"count\":{}", (entries - 1).max(0)),
            _ => String::new(),
        };
        format!(",\"bots\":{bots}{count}")
    }

    fn line(&self, players: &[Player], more_fields: &str) -> String {
        let players: Vec<String> = players.iter().map(|p| self.entry(p)).collect();
        format!(
            "{{\"t\":{},\"server\":{},\"game\":{},\"map\":{},\"hostname\":\"s\",\"slots\":{},\"players\":[{}]{more_fields}}}\n",
            self.t,
            json(&self.url),
            json(self.game),
            json(&self.map),
            self.slots,
            players.join(","),
        )
    }

    fn entry(&self, p: &Player) -> String {
        let points = match (p.spectator, self.marker) {
            (Some(Spectator::Marked), Some(marker)) => format!(",\"points\":{marker}"),
            _ if p.has_points => format!(",\"points\":{}", p.points),
            _ => String::new(),
        };
        let ping = p.ping.map_or(String::new(), |ping| format!(",\"ping\":{ping}"));
        let connected = match (self.connected_step_ms, p.joined) {
            (Some(step_ms), Some(joined)) => format!(",\"connected_ms\":{}", (self.t - joined) / step_ms * step_ms),
            _ => String::new(),
        };
        // A2S does not mark bots.
        let bot = format!(",\"bot\":{}", p.bot && !self.a2s);
        let spectator = if p.spectator == Some(Spectator::Flagged) { ",\"spectator\":true" } else { "" };
        format!("{{\"name\":{}{points}{ping}{connected}{bot}{spectator}}}", json(&p.name))
    }
}

/// A name of a bot: sometimes that of a player. There are more than are remembered.
fn bot_name(random: &mut Random) -> String {
    match random.below(12) {
        0 => String::new(),
        1 => format!("p{}", random.below(8)),
        2..=7 => format!("Bot{}", random.below(90)),
        _ => format!("Bot{}", random.below(9)),
    }
}
