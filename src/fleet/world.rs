//! The simulated world: which players are on which server at which time, with how many
//! points. Pure: no IO, no clock, no randomness except the seed.
//!
//! A server's state at a time depends only on the seed, the server's number and the time,
//! not on when or how often it was queried, nor on the other servers. A server advances
//! in ticks of 10 s while it has players, and skips the time without players. Once a day,
//! at its own time of day, it is re-seeded from the seed and the day number, so any time
//! can be reached within one day's ticks.
//!
//! In a tick the players score by skill (sometimes a suicide takes a point, rarely a
//! player's points are reset). Then the round may end by points or time, which resets all
//! points and may change the map. Then players leave and join. Bots fill the server while
//! it has players. Some servers have a special behaviour ([`super::behaviours`]).

use super::behaviours::{self, Behaviour, BehaviourShares, GENERIC_NAME};
use super::games::{Family, MapRotation, ProfileMix, ServerProfile};
use super::rng::{Rng, hash_parts};
use super::truth::{PlayerTruth, RoundResult, ServerTruth, TruthLine};
use crate::fleet::population::{BOTS_MAX, Person, Population};
use crate::model::calendar::{self, Calendar};
use crate::model::name::{ColourCodes, normalise};
use crate::model::{Completeness, Player, Snapshot, WeekKey};

/// Time between two steps of a server, ms.
pub const TICK_MS: i64 = 10_000;
const DAY_MS: i64 = 86_400_000;

/// The parameters of a world.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Number of servers.
    pub servers: u32,
    pub seed: u64,
    /// Start of the ground truth, Unix ms; no state before it can be queried.
    pub start_ms: i64,
    /// Share of the servers with the Source protocol, 0 to 1.
    pub source_share: f64,
    /// Factor for the number of arriving players; 1 is normal: a mean of about 2 players
    /// on a server, and most servers empty.
    pub activity: f64,
    /// Number of persons; 0: 15 for each server and 500 more, at most a million.
    pub population: u32,
    /// Shares of the behaviours that must not be ranked.
    pub behaviours: BehaviourShares,
    /// Whether the ground truth is recorded. Without it a server can skip entire days.
    pub truth: bool,
    /// Number of newest final lists kept for each server; `usize::MAX` for all.
    pub round_results_max: usize,
}

impl Default for WorldSettings {
    fn default() -> Self {
        WorldSettings {
            servers: 100,
            seed: 1,
            start_ms: 1_763_683_200_000,
            source_share: 0.4,
            activity: 1.0,
            population: 0,
            behaviours: BehaviourShares::NONE,
            truth: true,
            round_results_max: 8,
        }
    }
}

/// All servers of a fleet.
pub struct World {
    settings: WorldSettings,
    population: Population,
    natures: Vec<ServerProfile>,
    servers: Vec<Server>,
}

/// The state of one server.
#[derive(Clone, Debug)]
struct Server {
    rng: Rng,
    /// The time reached; the last tick is not after it.
    now_ms: i64,
    tick_ms: i64,
    day_end_ms: i64,
    born: bool,
    counting: bool,
    next_arrival_ms: i64,
    map: u32,
    round_end_ms: i64,
    week: WeekKey,
    week_end_ms: i64,
    humans: u16,
    players: Vec<ActivePlayer>,
    ledger: Option<Box<ServerTruth>>,
}

#[derive(Clone, Debug)]
struct ActivePlayer {
    person: Person,
    points: i32,
    /// From the last tick to the next.
    spectating: bool,
    scores_per_tick: f32,
    ping_ms: i32,
    joined_ms: i64,
    leave_ms: i64,
    /// Start of the time whose sums below are not yet recorded.
    since_ms: i64,
    points_gained: i32,
    points_lost: i32,
    spectated_ms: i64,
    starts: u32,
}

impl World {
    /// Creates the servers and the population, without simulating. About 250 bytes for a
    /// server and 40 for a person.
    pub fn new(settings: WorldSettings) -> World {
        let mix = ProfileMix { source_share: settings.source_share, activity: settings.activity };
        let size = match settings.population {
            0 => settings.servers.saturating_mul(15).saturating_add(500).min(1_000_000),
            size => size,
        };
        let profile = |server| {
            let mut profile = ServerProfile::generate(settings.seed, server, mix);
            let behaviour = settings.behaviours.behaviour(settings.seed, server, profile.game.family);
            behaviours::configure(behaviour, settings.seed, server, &mut profile);
            profile
        };
        let natures = (0..settings.servers).map(profile).collect();
        let servers = (0..settings.servers).map(|_| Server::new(&settings)).collect();
        World { population: Population::new(settings.seed, size), natures, servers, settings }
    }

    pub fn settings(&self) -> &WorldSettings {
        &self.settings
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.servers.len() as u32
    }

    /// The profile of a server. This and all other methods with a server number panic if the
    /// server does not exist.
    pub fn nature(&self, server: u32) -> &ServerProfile {
        &self.natures[server as usize]
    }

    pub fn family(&self, server: u32) -> Family {
        self.nature(server).game.family
    }

    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Advances a server to a time, Unix ms. A time before the one that it has reached
    /// changes nothing.
    pub fn advance(&mut self, server: u32, t_ms: i64) {
        let index = server as usize;
        let rules = TickContext {
            settings: &self.settings,
            population: &self.population,
            nature: &self.natures[index],
            server,
        };
        self.servers[index].advance(&rules, t_ms.max(self.settings.start_ms));
    }

    /// Advances all servers to a time.
    pub fn advance_all(&mut self, t_ms: i64) {
        for server in 0..self.servers() {
            self.advance(server, t_ms);
        }
    }

    /// The time that a server has reached, Unix ms.
    pub fn now_ms(&self, server: u32) -> i64 {
        self.servers[server as usize].now_ms
    }

    /// Players on a server now, without bots. Fake entries (oversized and frozen lists) do not
    /// count.
    pub fn players(&self, server: u32) -> u32 {
        u32::from(self.servers[server as usize].humans)
    }

    /// Players on all servers, each at the time that it has reached, without bots.
    pub fn players_online(&self) -> u64 {
        self.servers.iter().map(|server| u64::from(server.humans)).sum()
    }

    /// Bots on a server now.
    pub fn bots(&self, server: u32) -> u32 {
        let server = &self.servers[server as usize];
        server.players.len() as u32 - u32::from(server.humans)
    }

    /// The snapshot that a scan without faults returns at the time that the server has
    /// reached, equal to what the reply decodes to. Bots have ping 0 and no mark, as in the
    /// Quake 3 protocol. Source servers announce their number, and they are marked if no
    /// player is on the server. A player who has just joined a Source server has no name yet;
    /// on Quake 3 the ping is 999.
    pub fn snapshot(&mut self, server: u32) -> Snapshot {
        let index = server as usize;
        if !self.servers[index].born {
            self.advance(server, self.settings.start_ms);
        }
        let nature = &self.natures[index];
        let state = &self.servers[index];
        let now_ms = state.now_ms;
        let quake = nature.game.family == Family::Quake3;
        let spectator_points = nature.game.spectator_points.unwrap_or(0);
        let player = |p: &ActivePlayer| {
            let connected_ms = now_ms - p.joined_ms;
            let connecting = connected_ms < TICK_MS && !p.person.is_bot();
            let name = if connecting && !quake { "" } else { self.shown_name(server, p.person) };
            let ping = match () {
                () if p.person.is_bot() => 0,
                () if connecting => 999,
                () => p.ping_ms + ((now_ms / TICK_MS + p.joined_ms) % 7) as i32,
            };
            Player {
                name: name.into(),
                points: Some(if p.spectating { spectator_points } else { i64::from(p.points) }),
                ping: quake.then_some(ping),
                connected_ms: (!quake).then_some(connected_ms as u64),
                bot: false,
                spectator: false,
            }
        };
        let mut players: Vec<Player> = state.players.iter().map(player).collect();
        let bots = (!quake).then(|| self.bots(server));
        // A2S does not mark bots, but it announces their number.
        if bots.is_some_and(|bots| bots > 0 && bots as usize == players.len()) {
            players.iter_mut().for_each(|player| player.bot = true);
        }
        behaviours::alter_players(nature, server, now_ms, &mut players);
        let frozen = nature.behaviour == Some(Behaviour::Frozen);
        let map = if frozen { 0 } else { state.map_index(nature, now_ms) };
        Snapshot {
            t_ms: now_ms,
            game: nature.game.name.to_owned(),
            map: nature.game.maps[map].to_owned(),
            hostname: nature.hostname.to_string(),
            slots: u32::from(nature.slots),
            count: (!quake).then_some(players.len() as u32),
            bots,
            players,
            completeness: Completeness::Full,
        }
    }

    /// The name of a person as a server shows it, including colour codes.
    pub fn shown_name(&self, server: u32, person: Person) -> &str {
        let nature = self.nature(server);
        let generic = nature.behaviour == Some(Behaviour::GenericNames)
            && behaviours::has_generic_name(self.settings.seed, server, person);
        match nature.game.family {
            _ if generic => GENERIC_NAME,
            Family::Quake3 => self.population.quake_name(person),
            Family::Source => self.population.plain_name(person),
        }
    }

    /// The ground truth of one server up to the time that it has reached. Empty if none is
    /// recorded.
    pub fn ledger(&self, server: u32) -> ServerTruth {
        let state = &self.servers[server as usize];
        let mut ledger = state.ledger.as_deref().cloned().unwrap_or_default();
        if state.counting && state.ledger.is_some() {
            for p in &state.players {
                let open = p.unrecorded(state.now_ms);
                ledger.players.entry((state.week, p.person)).or_default().add(open);
            }
        }
        ledger
    }

    /// The ground truth of all servers as printable lines, ordered by server. `url` returns a
    /// server's URL.
    pub fn truth<'a>(&'a self, url: impl Fn(u32) -> String + 'a) -> impl Iterator<Item = TruthLine> + 'a {
        (0..self.servers()).flat_map(move |server| self.truth_of(server, url(server)))
    }

    fn truth_of(&self, server: u32, url: String) -> Vec<TruthLine> {
        let nature = self.nature(server);
        let quake = nature.game.family == Family::Quake3;
        let codes = if quake { ColourCodes::Quake3 } else { ColourCodes::None };
        let shown = |person| self.shown_name(server, person);
        let ledger = self.ledger(server);
        let mut lines = vec![TruthLine::Server {
            server: url.clone(),
            game: nature.game.name,
            t_ms: self.now_ms(server),
            rounds: ledger.rounds,
            rounds_rated: ledger.rounds_rated,
            players: self.servers[server as usize].players.len(),
            behaviour: nature.behaviour.map(Behaviour::name),
        }];
        let mut totals: Vec<_> = ledger.players.into_iter().collect();
        totals.sort_unstable_by_key(|(key, _)| *key);
        lines.extend(totals.into_iter().map(|((week, person), totals)| TruthLine::Player {
            server: url.clone(),
            week: calendar::week_label(week),
            person_id: person.0,
            name: shown(person).to_owned(),
            normalised: normalise(shown(person), codes),
            bot: person.is_bot(),
            totals,
        }));
        lines.extend(ledger.finals.into_iter().map(|last| TruthLine::Round {
            server: url.clone(),
            t_ms: last.t_ms,
            map: last.map,
            final_list:
                last.final_list.into_iter().map(|(person, points)| (shown(person).to_owned(), points)).collect(),
        }));
        lines
    }
}

/// The values that do not change while a server advances.
struct TickContext<'a> {
    settings: &'a WorldSettings,
    population: &'a Population,
    nature: &'a ServerProfile,
    server: u32,
}

impl TickContext<'_> {
    /// Start of the server's day that contains this time.
    fn day_start_ms(&self, t_ms: i64) -> i64 {
        (t_ms - self.nature.restart_time_of_day_ms).div_euclid(DAY_MS) * DAY_MS + self.nature.restart_time_of_day_ms
    }

    /// Arrivals per ms at the busiest hour.
    fn arrivals_per_ms(&self) -> f64 {
        self.nature.players_mean / self.nature.session_ms_mean
    }
}

impl Server {
    fn new(settings: &WorldSettings) -> Server {
        Server {
            rng: Rng::new(&[]),
            now_ms: settings.start_ms,
            tick_ms: 0,
            day_end_ms: 0,
            born: false,
            counting: false,
            next_arrival_ms: 0,
            map: 0,
            round_end_ms: 0,
            week: WeekKey(0),
            week_end_ms: 0,
            humans: 0,
            players: Vec::new(),
            ledger: settings.truth.then(Box::default),
        }
    }

    fn advance(&mut self, rules: &TickContext, t_ms: i64) {
        if !self.born || (self.ledger.is_none() && t_ms >= self.day_end_ms) {
            // Only a server with recorded ground truth must simulate every day.
            let from_ms = if self.ledger.is_some() { rules.settings.start_ms } else { t_ms };
            self.born = true;
            self.begin_day(rules, rules.day_start_ms(from_ms));
        } else if t_ms <= self.now_ms {
            return;
        }
        loop {
            let mut next_ms = self.tick_ms + TICK_MS;
            if self.players.is_empty() {
                // Nothing happens until a player joins: skip to that tick.
                let ticks = (self.next_arrival_ms - self.tick_ms).max(1) as u64;
                next_ms = self.tick_ms + ticks.div_ceil(TICK_MS as u64) as i64 * TICK_MS;
            }
            let next_ms = next_ms.min(self.day_end_ms);
            self.advance_truth(rules, next_ms, t_ms);
            if next_ms > t_ms {
                break;
            }
            self.tick(rules, next_ms);
        }
        self.now_ms = self.now_ms.max(t_ms);
    }

    /// Starts recording the ground truth at `start_ms`, and starts a new week's totals at
    /// each week's end, before the tick at `next_ms`. The tick's points count for the time of
    /// the tick.
    fn advance_truth(&mut self, rules: &TickContext, next_ms: i64, t_ms: i64) {
        if self.ledger.is_none() {
            return;
        }
        let start_ms = rules.settings.start_ms;
        if !self.counting && next_ms.min(t_ms + 1) > start_ms {
            self.counting = true;
            for p in &mut self.players {
                p.since_ms = start_ms;
                (p.points_gained, p.points_lost, p.spectated_ms, p.starts) = (0, 0, 0, 0);
            }
            self.begin_week(start_ms);
        }
        while self.counting && next_ms.min(t_ms) >= self.week_end_ms {
            let end_ms = self.week_end_ms;
            for index in 0..self.players.len() {
                self.book(index, end_ms);
            }
            self.begin_week(end_ms);
        }
    }

    fn begin_week(&mut self, t_ms: i64) {
        let utc = Calendar::default();
        self.week = utc.week(t_ms);
        self.week_end_ms = utc.week_end_ms(self.week);
    }

    fn begin_day(&mut self, rules: &TickContext, start_ms: i64) {
        let nature = rules.nature;
        let day = start_ms.div_euclid(DAY_MS) as u64;
        self.rng = Rng::new(&[rules.settings.seed, 0xDA1, u64::from(rules.server), day]);
        self.players.clear();
        self.humans = 0;
        self.tick_ms = start_ms;
        self.day_end_ms = start_ms + DAY_MS;
        self.map = self.rng.below(nature.game.maps.len()) as u32;
        self.round_end_ms = start_ms + (nature.round_ms_max as f64 * (0.1 + 0.9 * self.rng.unit())) as i64;
        // The players of the previous day rejoin at once, as after a short restart.
        let count = self.rng.around(nature.players_mean * nature.load_factor(start_ms)).min(usize::from(nature.slots));
        for number in 0..count as i64 {
            let ago_ms = 60_000 + 97 * number + self.rng.exponential(nature.session_ms_mean) as i64;
            self.join(rules, start_ms - ago_ms, start_ms);
        }
        self.next_arrival_ms = start_ms;
        self.draw_arrival(rules);
        self.fill_with_bots(rules);
        self.update_spectators(rules);
    }

    fn draw_arrival(&mut self, rules: &TickContext) {
        let rate = rules.arrivals_per_ms();
        if rate < 1e-12 {
            self.next_arrival_ms = i64::MAX / 4;
            return;
        }
        // At least 1 ms apart: clqd recognises spoofed lists by equal connect times.
        self.next_arrival_ms += 1 + self.rng.exponential(1.0 / rate).min(1e15) as i64;
    }

    /// One step. `t_ms` is a tick of the day, after the last one.
    fn tick(&mut self, rules: &TickContext, t_ms: i64) {
        let limit_reached = self.score(rules, t_ms);
        self.tick_ms = t_ms;
        if t_ms >= self.day_end_ms {
            self.end_round(rules);
            while !self.players.is_empty() {
                self.leave(0);
            }
            return self.begin_day(rules, t_ms);
        }
        if self.players.is_empty() {
            self.skip_empty_rounds(rules.nature);
        } else if limit_reached || t_ms >= self.round_end_ms {
            self.end_round(rules);
        }
        self.update_players(rules);
        self.update_spectators(rules);
    }

    /// Decides which players spectate until the next tick. Spectating resets the points.
    fn update_spectators(&mut self, rules: &TickContext) {
        if rules.nature.behaviour != Some(Behaviour::Spectators) {
            return;
        }
        for p in &mut self.players {
            let (seed, server) = (rules.settings.seed, rules.server);
            p.spectating = behaviours::is_spectating(seed, server, p.person, p.joined_ms, self.tick_ms);
            if p.spectating {
                p.points = 0;
            }
        }
    }

    /// Adds the points of all players until the tick at `t_ms`. Returns whether a player
    /// reached the limit.
    fn score(&mut self, rules: &TickContext, t_ms: i64) -> bool {
        let limit = rules.nature.score_limit.unwrap_or(i32::MAX);
        let unit = rules.nature.game.points_per_score;
        let mut reached = false;
        for p in &mut self.players {
            let bits = self.rng.next_u64();
            // Three numbers from one: 24 bits, 24 bits, 16 bits.
            let spread = (bits >> 40) as f32 / (1 << 24) as f32;
            let fraction = (bits >> 16 & 0xFF_FFFF) as f32 / (1 << 24) as f32;
            let rare = bits as u16;
            if p.spectating {
                p.spectated_ms += t_ms - p.since_ms.max(self.tick_ms);
                continue;
            }
            let x = p.scores_per_tick * 2.0 * spread;
            let scores = x as i32 + i32::from(fraction < x.fract());
            p.points += scores * unit;
            p.points_gained += scores * unit;
            if rare < 400 {
                p.points -= 1;
                p.points_lost += 1;
            } else if rare < 420 {
                p.points = 0;
            }
            reached |= p.points >= limit.saturating_mul(unit);
        }
        reached
    }

    fn end_round(&mut self, rules: &TickContext) {
        let nature = rules.nature;
        if self.counting && !self.players.is_empty() {
            self.book_round(nature, rules.settings.round_results_max);
        }
        for p in &mut self.players {
            p.points = 0;
        }
        let change = match nature.rotation {
            MapRotation::Always => true,
            MapRotation::Sometimes => self.rng.bool(0.4),
            MapRotation::Never => false,
        };
        self.map = self.map.wrapping_add(u32::from(change)) % nature.game.maps.len() as u32;
        self.round_end_ms = self.tick_ms + nature.round_ms_max;
    }

    fn book_round(&mut self, nature: &ServerProfile, finals_max: usize) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.rounds += 1;
        let mut list: Vec<(Person, i32)> =
            self.players.iter().filter(|p| !p.person.is_bot() && !p.spectating).map(|p| (p.person, p.points)).collect();
        list.sort_by_key(|&(_, points)| std::cmp::Reverse(points));
        let best = list.first().map_or(0, |&(_, points)| points);
        if list.len() < 2 || best <= 0 {
            return;
        }
        ledger.rounds_rated += 1;
        for &(person, points) in &list {
            let round = PlayerTruth { rounds: 1, wins: u32::from(points == best), ..PlayerTruth::default() };
            ledger.players.entry((self.week, person)).or_default().add(round);
        }
        while ledger.finals.len() >= finals_max.max(1) {
            ledger.finals.pop_front();
        }
        if finals_max > 0 {
            let map = nature.game.maps[self.map as usize];
            ledger.finals.push_back(RoundResult { t_ms: self.tick_ms, map, final_list: list });
        }
    }

    /// Rounds on an empty server end by time only, so they can be computed.
    fn skip_empty_rounds(&mut self, nature: &ServerProfile) {
        self.map = self.map_index(nature, self.tick_ms) as u32;
        if self.tick_ms >= self.round_end_ms {
            let past_ms = (self.tick_ms - self.round_end_ms) % nature.round_ms_max;
            self.round_end_ms = self.tick_ms - past_ms + nature.round_ms_max;
        }
    }

    /// The map at a time not before the last tick, including rounds that ended without players.
    fn map_index(&self, nature: &ServerProfile, t_ms: i64) -> usize {
        let mut map = i64::from(self.map);
        if self.players.is_empty() && t_ms >= self.round_end_ms && nature.rotation != MapRotation::Never {
            map += 1 + (t_ms - self.round_end_ms) / nature.round_ms_max;
        }
        (map % nature.game.maps.len() as i64) as usize
    }

    fn update_players(&mut self, rules: &TickContext) {
        let mut index = 0;
        while index < self.players.len() {
            if self.players[index].leave_ms <= self.tick_ms {
                self.leave(index);
            } else {
                index += 1;
            }
        }
        while self.next_arrival_ms <= self.tick_ms {
            let at_ms = self.next_arrival_ms;
            let wanted = self.rng.bool(rules.nature.load_factor(at_ms));
            if wanted && self.humans < rules.nature.slots {
                if self.players.len() >= usize::from(rules.nature.slots) {
                    self.remove_bot();
                }
                self.join(rules, at_ms, self.tick_ms);
            }
            self.draw_arrival(rules);
        }
        self.fill_with_bots(rules);
    }

    fn join(&mut self, rules: &TickContext, joined_ms: i64, seen_ms: i64) {
        let nature = rules.nature;
        let size = rules.population.size();
        for _ in 0..4 {
            let person = if self.rng.bool(0.85) {
                // The most frequent regulars have the lowest numbers.
                let x = self.rng.unit();
                let number = (x * x * f64::from(nature.regulars)) as u64;
                let bits = hash_parts(&[rules.settings.seed, 0x4E6, u64::from(rules.server), number]);
                Person((bits % u64::from(size)) as u32)
            } else {
                Person(self.rng.below(size as usize) as u32)
            };
            if self.players.iter().any(|p| p.person == person) {
                continue;
            }
            let stay_ms = 20_000 + self.rng.exponential(nature.session_ms_mean) as i64;
            let skill = rules.population.skill(person);
            let ping_ms = rules.population.ping_ms(person);
            self.humans += 1;
            self.add_player(nature, person, skill, ping_ms, joined_ms, seen_ms, seen_ms + stay_ms);
            return;
        }
    }

    #[expect(clippy::too_many_arguments)]
    fn add_player(
        &mut self,
        nature: &ServerProfile,
        person: Person,
        skill: f64,
        ping_ms: i32,
        joined_ms: i64,
        seen_ms: i64,
        leave_ms: i64,
    ) {
        let per_tick = nature.game.scores_per_minute * skill * TICK_MS as f64 / 60_000.0;
        self.players.push(ActivePlayer {
            person,
            points: 0,
            spectating: false,
            scores_per_tick: per_tick as f32,
            ping_ms,
            joined_ms,
            leave_ms,
            since_ms: seen_ms,
            points_gained: 0,
            points_lost: 0,
            spectated_ms: 0,
            starts: 1,
        });
    }

    fn fill_with_bots(&mut self, rules: &TickContext) {
        let nature = rules.nature;
        if nature.bot_fill_target == 0 {
            return;
        }
        let wanted = self.humans > 0 || nature.behaviour == Some(Behaviour::UnmarkedBots);
        let fill = if wanted { usize::from(nature.bot_fill_target.min(nature.slots)) } else { 0 };
        while self.players.len() > fill.max(usize::from(self.humans)) {
            self.remove_bot();
        }
        while self.players.len() < fill {
            let free = |bot: &Person| self.players.iter().all(|p| p.person != *bot);
            let Some(bot) = (0..BOTS_MAX).map(Person::bot).find(free) else { return };
            self.add_player(nature, bot, 0.8, 0, self.tick_ms, self.tick_ms, i64::MAX / 4);
        }
    }

    fn remove_bot(&mut self) {
        if let Some(index) = self.players.iter().rposition(|p| p.person.is_bot()) {
            self.leave(index);
        }
    }

    fn leave(&mut self, index: usize) {
        if self.counting {
            self.book(index, self.tick_ms);
        }
        let removed = self.players.swap_remove(index);
        self.humans -= u16::from(!removed.person.is_bot());
    }

    fn book(&mut self, index: usize, until_ms: i64) {
        let Some(ledger) = &mut self.ledger else { return };
        let p = &mut self.players[index];
        ledger.players.entry((self.week, p.person)).or_default().add(p.unrecorded(until_ms));
        p.since_ms = until_ms;
        (p.points_gained, p.points_lost, p.spectated_ms, p.starts) = (0, 0, 0, 0);
    }
}

impl ActivePlayer {
    fn unrecorded(&self, until_ms: i64) -> PlayerTruth {
        PlayerTruth {
            points_gained: i64::from(self.points_gained),
            points_lost: i64::from(self.points_lost),
            present_ms: until_ms - self.since_ms,
            spectated_ms: self.spectated_ms,
            starts: self.starts,
            ..PlayerTruth::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const START_MS: i64 = 1_763_931_600_000; // Sunday, not at a tick of any server
    const HOUR_MS: i64 = 3_600_000;

    fn world(servers: u32, seed: u64) -> World {
        World::new(WorldSettings {
            servers,
            seed,
            start_ms: START_MS,
            activity: 2.0,
            round_results_max: usize::MAX,
            ..WorldSettings::default()
        })
    }

    fn states(world: &mut World) -> Vec<(Snapshot, ServerTruth)> {
        (0..world.servers()).map(|server| (world.snapshot(server), world.ledger(server))).collect()
    }

    #[test]
    fn state_does_not_depend_on_how_often_it_is_advanced() {
        let end_ms = START_MS + 40 * HOUR_MS;
        let mut once = world(60, 5);
        once.advance_all(end_ms);
        let mut often = world(60, 5);
        let mut rng = Rng::new(&[9]);
        for _ in 0..3_000 {
            let server = rng.below(60) as u32;
            let t_ms = (often.now_ms(server) + rng.below(4 * HOUR_MS as usize) as i64).min(end_ms);
            often.advance(server, t_ms);
            often.advance(server, t_ms - HOUR_MS); // changes nothing
            often.snapshot(server);
        }
        for server in (0..60).rev() {
            often.advance(server, end_ms);
        }
        assert!(states(&mut once) == states(&mut often));
        let mut other = world(60, 6);
        other.advance_all(end_ms);
        assert!(states(&mut once) != states(&mut other));
    }

    #[test]
    fn state_at_a_time_does_not_depend_on_start_ms() {
        let end_ms = START_MS + 50 * HOUR_MS;
        let mut long = world(60, 5);
        long.advance_all(end_ms);
        let mut late =
            World::new(WorldSettings { start_ms: end_ms - HOUR_MS, truth: false, ..long.settings().clone() });
        late.advance_all(end_ms - HOUR_MS / 2);
        late.advance_all(end_ms);
        for server in 0..60 {
            assert_eq!(long.snapshot(server), late.snapshot(server));
        }
        assert!(late.ledger(0).players.is_empty());
    }

    /// Observes a world at every tick and compares the ground truth with the snapshots.
    #[test]
    fn ground_truth_matches_the_snapshots_of_every_tick() {
        let mut world = world(40, 11);
        let (mut points_checked, mut rounds_checked, mut resets) = (0_u64, 0_u64, 0_u64);
        for server in 0..40 {
            let phase_ms = (START_MS - world.nature(server).restart_time_of_day_ms).rem_euclid(TICK_MS);
            let mut t_ms = START_MS - phase_ms + TICK_MS;
            world.advance(server, t_ms);
            let mut present_ms: HashMap<Person, i64> = HashMap::new();
            let mut before = world.servers[server as usize].players.clone();
            let truth_at_start = world.ledger(server);
            let mut truth = truth_at_start.clone();
            let net = |truth: &ServerTruth, person: Person| -> i64 {
                truth
                    .players
                    .iter()
                    .filter(|((_, p), _)| *p == person)
                    .map(|(_, d)| d.points_gained - d.points_lost)
                    .sum()
            };
            for _ in 0..6 * 360 {
                for p in &before {
                    *present_ms.entry(p.person).or_default() += TICK_MS;
                }
                t_ms += TICK_MS;
                world.advance(server, t_ms);
                let now = world.servers[server as usize].players.clone();
                if before.is_empty() && now.is_empty() {
                    continue;
                }
                let after = world.ledger(server);
                let ended = (after.rounds > truth.rounds).then(|| after.finals.back()).flatten();
                for p in &before {
                    let same = |q: &&ActivePlayer| q.person == p.person && q.joined_ms == p.joined_ms;
                    let Some(q) = now.iter().find(same) else { continue };
                    let points = match ended {
                        Some(last) if last.t_ms == t_ms => {
                            rounds_checked += 1;
                            match last.final_list.iter().find(|(person, _)| *person == p.person) {
                                Some(&(_, points)) => points,
                                None => continue,
                            }
                        }
                        Some(_) => continue,
                        None if after.rounds > truth.rounds => continue,
                        None => q.points,
                    };
                    let recorded = net(&after, p.person) - net(&truth, p.person);
                    points_checked += u64::from(points != p.points);
                    if points == 0 && recorded >= 0 {
                        resets += u64::from(recorded != -i64::from(p.points));
                        continue; // the points may have been reset
                    }
                    assert_eq!(recorded, i64::from(points - p.points), "server {server} at {t_ms}: {p:?} {q:?}");
                }
                truth = after;
                before = now;
            }
            let recorded_ms = |truth: &ServerTruth| -> i64 { truth.players.values().map(|d| d.present_ms).sum() };
            let observed: i64 = present_ms.values().sum();
            assert_eq!(recorded_ms(&world.ledger(server)) - recorded_ms(&truth_at_start), observed, "server {server}");
        }
        assert!(points_checked > 2_000 && rounds_checked > 100, "{points_checked} {rounds_checked}");
        assert!(resets * 200 < points_checked, "{resets} {points_checked}");
    }

    #[test]
    fn ground_truth_is_kept_by_week() {
        // The start is a Sunday, 21:00 UTC: the week ends three hours later.
        let mut world = world(30, 3);
        world.advance_all(START_MS + 3 * HOUR_MS);
        let first: Vec<ServerTruth> = (0..30).map(|server| world.ledger(server)).collect();
        world.advance_all(START_MS + 6 * HOUR_MS);
        let mut in_both = 0;
        for (server, first) in first.iter().enumerate() {
            let weeks = |truth: &ServerTruth, week: &str| {
                let of_week = |((w, _), _): &(&(WeekKey, Person), &PlayerTruth)| calendar::week_label(*w) == week;
                truth
                    .players
                    .iter()
                    .filter(of_week)
                    .map(|(_, d)| (d.points_gained, d.present_ms))
                    .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
            };
            let last = world.ledger(server as u32);
            // Nothing is added to a week that is over.
            assert_eq!(weeks(&last, "2025-W47").1, weeks(first, "2025-W47").1);
            in_both += usize::from(weeks(&last, "2025-W47").0 > 0 && weeks(&last, "2025-W48").0 > 0);
        }
        assert!(in_both > 3, "{in_both}");
    }

    #[test]
    fn snapshots_contain_bots_full_empty_and_duplicate_names() {
        let mut world = world(400, 2);
        let (mut bots, mut full, mut empty, mut nameless, mut twice) = (0, 0, 0, 0, 0);
        for hour in 0..24 {
            for server in 0..400 {
                world.advance(server, START_MS + hour * HOUR_MS + 77);
                let snapshot = world.snapshot(server);
                assert_eq!(snapshot.t_ms, START_MS + hour * HOUR_MS + 77);
                assert!(snapshot.players.len() as u32 <= snapshot.slots);
                full += u32::from(snapshot.players.len() as u32 == snapshot.slots);
                empty += u32::from(snapshot.players.is_empty());
                bots += snapshot.players.iter().filter(|p| p.ping == Some(0)).count() as u32;
                nameless += snapshot.players.iter().filter(|p| p.name.is_empty()).count();
                let mut names: Vec<_> = snapshot.players.iter().map(|p| &p.name).collect();
                let mut connected: Vec<_> = snapshot.players.iter().filter_map(|p| p.connected_ms).collect();
                names.sort();
                connected.sort();
                twice += u32::from(names.windows(2).any(|pair| pair[0] == pair[1]));
                assert!(connected.windows(2).filter(|pair| pair[0] == pair[1]).count() < 2);
            }
        }
        assert!(
            bots > 100 && full > 20 && empty > 2_000 && nameless > 5 && twice > 10,
            "{bots} {full} {empty} {nameless} {twice}"
        );
    }

    #[test]
    fn each_behaviour_shows_in_the_lists() {
        let behaviours =
            BehaviourShares { spectators: 0.2, generic_names: 0.2, unmarked_bots: 0.2, oversized: 0.2, frozen: 0.2 };
        let mut world = World::new(WorldSettings { behaviours, ..world(200, 2).settings().clone() });
        let mut first: HashMap<u32, (String, Vec<Player>)> = HashMap::new();
        let (mut markers, mut playing, mut twice, mut bots_alone, mut bots_with_players) = (0, 0, 0, 0, 0);
        for minute in (0..720).step_by(10) {
            for server in 0..200 {
                world.advance(server, START_MS + minute * 60_000);
                let nature = world.nature(server).clone();
                let snapshot = world.snapshot(server);
                let list = &snapshot.players;
                let humans = world.players(server);
                match nature.behaviour {
                    None => assert!(list.len() <= usize::from(nature.slots)),
                    Some(Behaviour::Spectators) => {
                        let marker = nature.game.spectator_points.unwrap();
                        assert!(matches!((&*snapshot.game, marker), ("Xonotic", -666) | ("Warsow", -9_999)));
                        let spectating = list.iter().filter(|p| p.points == Some(marker)).count();
                        (markers, playing) = (markers + spectating, playing + list.len() - spectating);
                    }
                    Some(Behaviour::GenericNames) => {
                        twice += u32::from(list.iter().filter(|p| p.name == GENERIC_NAME).count() > 1);
                    }
                    Some(Behaviour::UnmarkedBots) => {
                        let bots = world.bots(server);
                        assert_eq!((snapshot.count, snapshot.bots), (Some(list.len() as u32), Some(bots)));
                        assert!(list.iter().all(|p| p.bot == (humans == 0) && p.ping.is_none()));
                        assert!(humans > 0 || bots >= 3, "bots stay");
                        bots_alone += u32::from(humans == 0);
                        bots_with_players += u32::from(humans > 0 && bots > 0);
                    }
                    Some(Behaviour::Oversized) => {
                        assert!(list.len() > usize::from(nature.slots + 8.max(nature.slots / 4)));
                        assert!(list.len() <= 255, "what A2S can announce");
                    }
                    Some(Behaviour::Frozen) => {
                        let shown = list.iter().map(|p| Player { connected_ms: None, ..p.clone() });
                        let shown: Vec<_> = shown.collect();
                        assert!(shown.len() > 4 && shown.iter().all(|p| p.points > Some(0)));
                        let shown = (snapshot.map, shown);
                        assert_eq!(*first.entry(server).or_insert_with(|| shown.clone()), shown);
                    }
                }
            }
        }
        assert!(markers > 50 && playing > 200 && twice > 20, "{markers} {playing} {twice}");
        assert!(bots_alone > 50 && bots_with_players > 50, "{bots_alone} {bots_with_players}");
        let mut spectated_ms = 0;
        for server in 0..200 {
            for totals in world.ledger(server).players.values() {
                assert!((0..=totals.present_ms).contains(&totals.spectated_ms), "{totals:?}");
                spectated_ms += totals.spectated_ms;
            }
        }
        assert!(spectated_ms > HOUR_MS);
        let lines: Vec<TruthLine> = world.truth(|server| server.to_string()).collect();
        for behaviour in Behaviour::ALL {
            let is = |line: &&TruthLine| matches!(line, TruthLine::Server { behaviour: Some(name), .. } if *name == behaviour.name());
            assert!(lines.iter().filter(is).count() > 5, "{behaviour:?}");
        }
    }

    #[test]
    fn ground_truth_is_written_as_json_lines() {
        let mut world = world(20, 2);
        world.advance_all(START_MS + 5 * HOUR_MS);
        let mut out = Vec::new();
        crate::fleet::truth::write(world.truth(|server| format!("x://{server}")), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut kinds: HashMap<String, u32> = HashMap::new();
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value["server"].as_str().unwrap().starts_with("x://"));
            let kind = value["kind"].as_str().unwrap();
            *kinds.entry(kind.to_owned()).or_default() += 1;
            let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
            names.sort_unstable();
            let want = match kind {
                "server" => &["game", "kind", "players", "rounds", "rounds_rated", "server", "t_ms"][..],
                "round" => &["final_list", "kind", "map", "server", "t_ms"],
                _ => &[
                    "bot",
                    "kind",
                    "name",
                    "normalised",
                    "person_id",
                    "points_gained",
                    "points_lost",
                    "present_ms",
                    "rounds",
                    "server",
                    "spectated_ms",
                    "starts",
                    "week",
                    "wins",
                ],
            };
            assert_eq!(names, want, "{line}");
        }
        assert_eq!(kinds["server"], 20);
        assert!(kinds["player"] > 50 && kinds["round"] > 20, "{kinds:?}");
    }
}
