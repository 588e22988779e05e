//! Inserts commands of an admin and settings into a scan log (docs/rules.md 13). The same log, seed
//! and options always give the same result.
//!
//! - Names of merges are taken from lists, so that both are often on one server at the same time. Some
//!   commands name something unknown.
//! - A player to be forgotten has a placeholder in the lists before the request and an empty name in
//!   those after it, as in a log of the daemon. Placeholders are merged with each other only.
//! - A clock is set back only after the last request to forget a player, because placeholders contain
//!   the time of the request.

use std::collections::BTreeSet;

use clqd::model::WeekKey;
use clqd::model::calendar::week_label;
use clqd::model::url::ServerUrl;
use serde_json::{Value, json};

use super::Random;
use crate::oracle::{LineKind, Oracle, Outcome, Quarter, Settings, normalised};

#[derive(Clone, Debug)]
pub struct Options {
    /// Number of commands, about.
    pub commands: u64,
    pub forget: bool,
    pub clock: bool,
    /// Settings also change in the log. The first line always has all.
    pub settings: bool,
    /// Changes of settings include `elo.carry_over`.
    pub carry_over: bool,
    /// No command stands in this time after the end of a week, in which a daemon may not have closed
    /// it yet.
    pub quiet_after_week_end_ms: i64,
}

impl Options {
    pub fn of_seed(seed: u64) -> Options {
        let random = &mut Random::new(seed ^ 0xC0_44A4D);
        Options {
            commands: random.pick(&[5, 20, 20, 60]),
            forget: random.chance(70),
            clock: random.chance(25),
            settings: random.chance(60),
            carry_over: false,
            quiet_after_week_end_ms: 0,
        }
    }
}

/// The log with commands. `settings` are those of its first line.
pub fn with_commands(log: &str, seed: u64, options: &Options, settings: &Settings) -> String {
    let random = Random::new(seed ^ 0xAD_414);
    let lines: Vec<(i64, String)> = log.lines().map(|line| (time_of(line), line.to_owned())).collect();
    let oracle = Oracle::new(log, settings.clone());
    let mut inserter = Inserter {
        random,
        settings,
        options,
        forgets: Vec::new(),
        servers: oracle.servers.clone(),
        greylisted: BTreeSet::new(),
        removed: BTreeSet::new(),
        out: Vec::new(),
    };
    let lines = inserter.forget_players(lines, &oracle);
    inserter.insert(&lines);
    inserter.out.iter().map(|(t, line)| with_time(*t, line)).collect()
}

/// The log as a daemon records it: without the lists of greylisted servers.
pub fn as_recorded(log: &str, settings: &Settings) -> String {
    let oracle = Oracle::new(log, settings.clone());
    let mut scans = oracle.lines.iter().peekable();
    let mut out = String::new();
    for (number, text) in log.lines().enumerate() {
        let scan = scans.next_if(|line| line.number == number);
        match scan.map(|line| (line, &line.kind)) {
            Some((line, LineKind::Full { map, .. })) if oracle.was_greylisted_at(line) => {
                let mut partial =
                    json!({"t": line.t, "server": line.server, "partial": true, "map": map, "players": []});
                if let Outcome::Partial { count: Some(count) } = oracle.outcome_of(line) {
                    partial["count"] = count.into();
                }
                out += &format!("{partial}\n");
            }
            _ => out += &format!("{text}\n"),
        }
    }
    out
}

/// A line with all settings that change a result.
pub fn settings_line(t: i64, settings: &Settings) -> String {
    let screen = &settings.screen;
    let points: Vec<String> = screen.spectator_points.iter().map(|(of, points)| format!("{of}={points}")).collect();
    let all = json!({
        "rules.number": settings.rules,
        "time_zone": settings.calendar.zone_name(),
        "names.ignore": settings.ignore,
        "names.count_bots": settings.count_bots,
        "names.ping_zero_is_bot": settings.ping_zero_is_bot,
        "names.darkplaces_games": settings.darkplaces_games,
        "rounds.round_drop_min": settings.round_drop_min,
        "rounds.round_drop_ratio": settings.round_drop_ratio,
        "clq2.quarter": if settings.clq2_quarter == Quarter::Exact { "exact" } else { "whole" },
        "elo.k": settings.elo_k,
        "elo.k_times_opponents_max": settings.elo_k_times_opponents_max,
        "elo.carry_over": settings.elo_carry_over,
        "screen.enabled": screen.enabled,
        "screen.frozen_after_s": screen.frozen_after_s,
        "screen.new_games_per_day_max": screen.new_games_per_day_max,
        "screen.new_maps_per_day_max": screen.new_maps_per_day_max,
        "screen.new_names_per_day_max": screen.new_names_per_day_max,
        "screen.games_max": screen.games_max,
        "screen.maps_max": screen.maps_max,
        "screen.spectator_points": points,
        "screen.gain_max": screen.gain_max,
        "scan.class1_players_min": settings.class1_players_min,
        "boards.low_is_better": settings.low_is_better,
        "boards.tie_breakers": settings.tie_breakers,
        "boards.windows": settings.windows,
    });
    format!("{}\n", json!({"t": t, "settings": all}))
}

struct Inserter<'a> {
    random: Random,
    settings: &'a Settings,
    options: &'a Options,
    /// Index of the line before which a request stands, and its command.
    forgets: Vec<(usize, Value)>,
    servers: Vec<String>,
    greylisted: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// Times, and lines whose own time may be another one.
    out: Vec<(i64, String)>,
}

const TAGS: [&str; 3] = ["ctf", "pro", "low-points"];
const CHECKS: [&str; 7] = [
    "more_players_than_slots",
    "frozen_list",
    "too_many_new_games",
    "too_many_new_maps",
    "too_many_new_names",
    "impossible_gain",
    "unverified_count",
];

impl Inserter<'_> {
    /// Replaces the names of some players.
    fn forget_players(&mut self, mut lines: Vec<(i64, String)>, oracle: &Oracle) -> Vec<(i64, String)> {
        if !self.options.forget || oracle.facts.is_empty() {
            return lines;
        }
        for _ in 0..1 + self.random.below(4) {
            let seen = &oracle.facts[self.random.below(oracle.facts.len() as u64) as usize];
            let (game, name) = (&seen.player.game, &seen.player.name);
            // Sometimes at the time of another request.
            let again = self.random.chance(40).then(|| self.forgets.last().cloned()).flatten();
            let after = match again {
                Some((before, _)) => before - 1,
                None => (seen.line + self.random.below(100) as usize).min(lines.len() - 1),
            };
            let t = lines[after].0;
            let before = lines.iter().position(|line| line.0 > t).unwrap_or(lines.len());
            let number = 1 + self.forgets.iter().filter(|(at, command)| *at == before && command["t"] == t).count();
            let placeholder = format!("forgotten-{t}-{number}");
            for (n, (_, line)) in lines.iter_mut().enumerate() {
                let new_name = if n < before { placeholder.as_str() } else { "" };
                self.rename(line, game, name, new_name);
            }
            self.forgets.push((before, json!({"t": t, "command": "forget", "game": game, "player": placeholder})));
        }
        lines
    }

    fn rename(&self, line: &mut String, game: &str, name: &str, new_name: &str) {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        if value["game"] != *game {
            return;
        }
        let url = ServerUrl::parse(value["server"].as_str().expect("a server")).expect("a URL");
        let mut renamed = false;
        for player in value["players"].as_array_mut().into_iter().flatten() {
            if normalised(&url, game, player["name"].as_str().expect("a name"), self.settings) == name {
                player["name"] = new_name.into();
                renamed = true;
            }
        }
        if renamed {
            *line = value.to_string();
        }
    }

    fn insert(&mut self, lines: &[(i64, String)]) {
        let Some(first) = lines.first() else { return };
        self.out.push((first.0, settings_line(first.0, self.settings)));
        let last_forget = self.forgets.iter().map(|(before, _)| *before).max().unwrap_or(0);
        let mut clocks = if self.options.clock { 1 + self.random.below(2) } else { 0 };
        // The time by which the clock was set back.
        let mut back = 0;
        for n in 0..=lines.len() {
            for at in 0..self.forgets.len() {
                let (before, command) = self.forgets[at].clone();
                let t = command["t"].as_i64().expect("t");
                if before == n {
                    // Placeholders of one time may be names of one player.
                    let other =
                        self.forgets[..at].iter().find(|(other, it)| *other == n && it["game"] == command["game"]);
                    if let Some((_, other)) = other.cloned().filter(|_| self.random.chance(50)) {
                        let (from, into) = (&other["player"], &command["player"]);
                        let merge =
                            json!({"t": t, "command": "merge", "game": command["game"], "from": from, "into": into});
                        let at = self.out.iter().rposition(|(_, text)| *text == format!("{other}\n"));
                        self.out.insert(at.expect("the earlier request"), (t, format!("{merge}\n")));
                    }
                    self.out.push((t, format!("{command}\n")));
                }
            }
            let now = self.out.last().expect("a line").0;
            if n > last_forget && n < lines.len() && clocks > 0 && self.random.below(lines.len() as u64) < 3 {
                clocks -= 1;
                let to = now - self.random.pick(&[1, 1_000, 300_000, 3_600_000, 10_800_000]);
                self.out.push((to, format!("{}\n", json!({"t": to, "command": "clock"}))));
                // A scan at the time of the command itself is left out: its server may have one of that time.
                back = lines[n].0 - to - self.random.pick(&[1, 999, 60_000, 120_000]);
            }
            let Some((t, text)) = lines.get(n) else { break };
            let t = t - back;
            if n > 0 && self.random.below(lines.len() as u64) < self.options.commands {
                for _ in 0..1 + self.random.below(3) {
                    let now = self.out.last().expect("a line").0;
                    let between = self.random.between(now, t);
                    let at = self.random.pick(&[now, between, between, t]);
                    self.command(at, &lines[n.saturating_sub(20)..n]);
                }
            }
            self.out.push((t, format!("{text}\n")));
        }
    }

    /// Adds a random command.
    fn command(&mut self, t: i64, recent: &[(i64, String)]) {
        let calendar = &self.settings.calendar;
        let week = calendar.week(t).0;
        if t - calendar.week_start_ms(WeekKey(week)) < self.options.quiet_after_week_end_ms {
            return;
        }
        let known = self.random.below(self.servers.len() as u64) as usize;
        let mut server = self.servers[known].clone();
        if self.random.chance(5) {
            server = "quake3://192.0.2.1:27960".to_owned();
        }
        // Servers that were greylisted or removed are soon used again.
        let unused: Vec<String> = self.greylisted.union(&self.removed).cloned().collect();
        if !unused.is_empty() && self.random.chance(40) {
            server = unused[self.random.below(unused.len() as u64) as usize].clone();
            let restores = self.removed.contains(&server);
            let command = if restores { "add" } else { "lift" };
            if restores {
                self.removed.remove(&server)
            } else {
                self.greylisted.remove(&server)
            };
            return self.push(t, json!({"command": command, "server": server}));
        }
        let (tag, other_tag) = (self.random.pick(&TAGS), self.random.pick(&TAGS));
        let check = self.random.pick(&CHECKS);
        let command = match self.random.below(24) {
            0..=3 => {
                self.greylisted.insert(server.clone());
                json!({"command": "greylist", "server": server, "reason": "bots"})
            }
            4 => json!({"command": "lift", "server": server}),
            5 | 6 => {
                self.removed.insert(server.clone());
                json!({"command": "remove", "server": server})
            }
            7 => json!({"command": "add", "server": server, "tags": [tag]}),
            8 => json!({"command": "add", "server": format!("quake3://192.0.2.2:{}", 27_960 + self.random.below(3))}),
            9..=11 => match self.random.below(3) {
                0 => json!({"command": "tag", "server": server, "add": [], "remove": [tag]}),
                _ => json!({"command": "tag", "server": server, "add": [tag, other_tag], "remove": []}),
            },
            12 => json!({"command": "drop_tag", "tag": tag}),
            13 => json!({"command": "trust", "server": server, "except": [check], "revoke": []}),
            14 => json!({"command": "trust", "server": server, "except": [], "revoke": CHECKS}),
            15..=19 => match self.merge(recent) {
                Some(merge) => merge,
                None => return,
            },
            20 => json!({"command": "reopen", "week": week_label(WeekKey(week - 1 - self.random.below(3) as u32))}),
            21 => {
                let weeks_ago = calendar.week_start_ms(WeekKey(week - self.random.below(2) as u32));
                let before = self.random.pick(&[weeks_ago, weeks_ago, weeks_ago - 1, t - 3_600_000, t + 86_400_000]);
                json!({"command": "delete_windows", "before": before})
            }
            22 => json!({"command": "allow", "hash": "0".repeat(64)}),
            _ if self.options.settings => json!({"settings": self.changed_settings()}),
            _ => return,
        };
        self.push(t, command);
    }

    fn push(&mut self, t: i64, mut command: Value) {
        command["t"] = t.into();
        self.out.push((t, format!("{command}\n")));
    }

    /// Two names of one of these lists, or of two of them.
    fn merge(&mut self, recent: &[(i64, String)]) -> Option<Value> {
        let mut names = Vec::new();
        for _ in 0..2 {
            let line = &recent[self.random.below(recent.len() as u64) as usize].1;
            let value: Value = serde_json::from_str(line).expect("JSON");
            let Some(game) = value["game"].as_str() else { continue };
            let url = ServerUrl::parse(value["server"].as_str().expect("a server")).expect("a URL");
            let players = value["players"].as_array().into_iter().flatten();
            let of_list =
                players.map(|player| normalised(&url, game, player["name"].as_str().expect("a name"), self.settings));
            names.extend(of_list.map(|name| (game.to_owned(), name)));
            if names.len() > 1 && self.random.chance(70) {
                break;
            }
        }
        names.retain(|(_, name)| !name.is_empty() && !name.starts_with("forgotten-"));
        if names.is_empty() {
            return None;
        }
        let (game, from) = names[self.random.below(names.len() as u64) as usize].clone();
        let of_game: Vec<String> = names.into_iter().filter(|(of, _)| *of == game).map(|(_, name)| name).collect();
        let mut into = of_game[self.random.below(of_game.len() as u64) as usize].clone();
        if self.random.chance(3) {
            into = "nobody of this name".to_owned();
        }
        Some(json!({"command": "merge", "game": game, "from": from, "into": into}))
    }

    fn changed_settings(&mut self) -> Value {
        let mut changed = json!({});
        for _ in 0..1 + self.random.below(2) {
            let flag = self.random.chance(50);
            let carry = self.options.carry_over;
            let (key, value) = match self.random.below(15) {
                0 => ("elo.k", json!(self.random.pick(&[25.0, 40.0, 12.5]))),
                1 => ("elo.k_times_opponents_max", json!(self.random.pick(&[0.0, 225.0, 100.0]))),
                2 => ("names.ignore", if flag { json!(["p1", "p2", "Visor"]) } else { json!(self.settings.ignore) }),
                3 => ("names.count_bots", json!(flag)),
                4 => ("names.ping_zero_is_bot", json!(flag)),
                5 => ("rounds.round_drop_min", json!(self.random.pick(&[1, 5, 20]))),
                6 => ("rounds.round_drop_ratio", json!(self.random.pick(&[0.25, 0.5, 0.75]))),
                7 => ("clq2.quarter", json!(if flag { "exact" } else { "whole" })),
                8 => ("screen.gain_max", json!(self.random.pick(&[10, 1_000, 1_000_000]))),
                9 => ("screen.enabled", json!(flag)),
                10 => ("boards.low_is_better", if flag { json!(["time", "points tag:low-points"]) } else { json!([]) }),
                11 => ("boards.tie_breakers", if flag { json!(["points time", "clq2 elo"]) } else { json!([]) }),
                12 => ("scan.class1_players_min", json!(self.random.pick(&[1, 3, 6]))),
                13 => ("rules.number", json!(if flag { 1 } else { 2 })),
                _ if carry => ("elo.carry_over", json!(flag)),
                _ => ("screen.frozen_after_s", json!(self.random.pick(&[3_600, 21_600]))),
            };
            changed[key] = value;
        }
        changed
    }
}

fn time_of(line: &str) -> i64 {
    let value: Value = serde_json::from_str(line).expect("JSON");
    value["t"].as_i64().expect("t")
}

/// The line with another time.
fn with_time(t: i64, line: &str) -> String {
    if time_of(line) == t {
        return line.to_owned();
    }
    let mut value: Value = serde_json::from_str(line).expect("JSON");
    value["t"] = t.into();
    format!("{value}\n")
}
