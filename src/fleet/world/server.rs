//! One server: its state at a time, advanced in ticks.

use super::player::ActivePlayer;
use super::settings::{TICK_MS, WorldSettings};
use crate::fleet::behaviours::Behaviour;
use crate::fleet::population::{Person, Population};
use crate::fleet::profile::{MapRotation, ServerProfile};
use crate::fleet::rng::{RngExt, SplitMix64, hash_parts};
use crate::fleet::truth::{PlayerTruth, RoundResult, ServerTruth};
use crate::model::WeekKey;
use crate::model::calendar::{Calendar, DAY_MS, HOUR_MS};

/// The state of one server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) rng: SplitMix64,
    /// The time reached; the last tick is not after it.
    pub(super) now_ms: i64,
    /// The last tick.
    pub(super) tick_ms: i64,
    /// Time of the next re-seeding.
    pub(super) seeding_end_ms: i64,
    /// False until the server is queried for the first time.
    pub(super) is_seeded: bool,
    /// Whether the ground truth is recorded, because `start_ms` is reached.
    pub(super) is_recording: bool,
    pub(super) next_arrival_ms: i64,
    pub(super) map: u32,
    pub(super) round_end_ms: i64,
    /// End of the current intermission.
    pub(super) intermission_end_ms: Option<i64>,
    pub(super) week: WeekKey,
    pub(super) week_end_ms: i64,
    /// Players without bots.
    pub(super) humans: u16,
    pub(super) players: Vec<ActivePlayer>,
    pub(super) truth: Option<Box<ServerTruth>>,
}

/// The values that do not change while a server advances.
pub(super) struct TickContext<'a> {
    pub(super) settings: &'a WorldSettings,
    pub(super) population: &'a Population,
    pub(super) profile: &'a ServerProfile,
    pub(super) server: u32,
}

impl TickContext<'_> {
    /// Start of the server's day that contains this time.
    fn day_start_ms(&self, t_ms: i64) -> i64 {
        self.period_start_ms(t_ms, DAY_MS)
    }

    /// Start of the time after a re-seeding that contains this time.
    fn seeding_start_ms(&self, t_ms: i64) -> i64 {
        self.period_start_ms(t_ms, self.seeding_interval_ms())
    }

    /// The server begins a period of this length at its own time of day.
    fn period_start_ms(&self, t_ms: i64, length_ms: i64) -> i64 {
        let phase_ms = self.profile.restart_time_of_day_ms;
        (t_ms - phase_ms).div_euclid(length_ms) * length_ms + phase_ms
    }

    /// Time between two re-seedings.
    fn seeding_interval_ms(&self) -> i64 {
        if self.constant_players().is_some() { HOUR_MS } else { DAY_MS }
    }

    /// The number of players, if it is constant.
    pub(super) fn constant_players(&self) -> Option<u16> {
        let players = self.settings.constant_players?.min(self.profile.slots);
        Some(if self.profile.behaviour == Some(Behaviour::Frozen) { 0 } else { players })
    }

    /// Length of the intermission that begins at this tick. A fifth of the servers have none; the
    /// others have 10 or 20 s, and every fourth intermission is 10 s longer. No numbers of the
    /// server's generator are used.
    fn intermission_ms(&self, t_ms: i64) -> i64 {
        if !self.settings.intermissions {
            return 0;
        }
        let server = hash_parts(&[self.settings.seed, 0x1417, u64::from(self.server)]);
        let round = hash_parts(&[server, t_ms as u64]);
        match server % 5 {
            0 => 0,
            kind => TICK_MS * (1 + (kind % 2) as i64 + i64::from(round.is_multiple_of(4))),
        }
    }

    /// Arrivals per ms at the busiest hour.
    pub(super) fn arrivals_per_ms(&self) -> f64 {
        if self.constant_players().is_some() { 0.0 } else { self.profile.players_mean / self.profile.session_ms_mean }
    }
}

impl Server {
    pub(super) fn new(settings: &WorldSettings) -> Server {
        Server {
            rng: SplitMix64::from_parts(&[]),
            now_ms: settings.start_ms,
            tick_ms: 0,
            seeding_end_ms: 0,
            is_seeded: false,
            is_recording: false,
            next_arrival_ms: 0,
            map: 0,
            round_end_ms: 0,
            intermission_end_ms: None,
            week: WeekKey(0),
            week_end_ms: 0,
            humans: 0,
            players: Vec::new(),
            truth: settings.truth.then(Box::default),
        }
    }

    /// Advances the server to a time, Unix ms.
    pub(super) fn advance(&mut self, context: &TickContext, t_ms: i64) {
        if !self.is_seeded || (self.truth.is_none() && t_ms >= self.seeding_end_ms) {
            // Only a server with recorded ground truth must simulate every day.
            let from_ms = if self.truth.is_some() { context.settings.start_ms } else { t_ms };
            self.is_seeded = true;
            self.reseed(context, context.seeding_start_ms(from_ms));
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
            let next_ms = next_ms.min(self.seeding_end_ms);
            self.advance_truth(context, next_ms, t_ms);
            if next_ms > t_ms {
                break;
            }
            self.tick(context, next_ms);
        }
        self.now_ms = self.now_ms.max(t_ms);
    }

    /// Starts recording the ground truth at `start_ms`, and starts a new week's totals at
    /// each week's end, before the tick at `next_ms`. The tick's points count for the time of
    /// the tick.
    fn advance_truth(&mut self, context: &TickContext, next_ms: i64, t_ms: i64) {
        if self.truth.is_none() {
            return;
        }
        let start_ms = context.settings.start_ms;
        if !self.is_recording && next_ms.min(t_ms + 1) > start_ms {
            self.is_recording = true;
            for p in &mut self.players {
                p.clear_unrecorded(start_ms);
            }
            self.begin_week(start_ms);
        }
        while self.is_recording && next_ms.min(t_ms) >= self.week_end_ms {
            let end_ms = self.week_end_ms;
            for index in 0..self.players.len() {
                self.record(index, end_ms);
            }
            self.begin_week(end_ms);
        }
    }

    fn begin_week(&mut self, t_ms: i64) {
        let utc = Calendar::default();
        self.week = utc.week(t_ms);
        self.week_end_ms = utc.week_end_ms(self.week);
    }

    fn reseed(&mut self, context: &TickContext, start_ms: i64) {
        let profile = context.profile;
        let interval_ms = context.seeding_interval_ms();
        let number = start_ms.div_euclid(interval_ms) as u64;
        self.rng = SplitMix64::from_parts(&[context.settings.seed, 0xDA1, u64::from(context.server), number]);
        self.players.clear();
        self.humans = 0;
        self.intermission_end_ms = None;
        self.tick_ms = start_ms;
        self.seeding_end_ms = start_ms + interval_ms;
        self.map = self.rng.below(profile.game.maps.len()) as u32;
        self.round_end_ms = start_ms + (profile.round_ms_max as f64 * (0.1 + 0.9 * self.rng.unit())) as i64;
        match context.constant_players() {
            Some(count) => self.add_constant_players(context, count, context.day_start_ms(start_ms), start_ms),
            None => self.rejoin(context, start_ms),
        }
        self.next_arrival_ms = start_ms;
        self.draw_arrival(context);
        self.fill_with_bots(context);
        self.update_spectators(context);
    }

    /// The players of the previous day rejoin at once, as after a short restart.
    fn rejoin(&mut self, context: &TickContext, start_ms: i64) {
        let profile = context.profile;
        let count =
            self.rng.around(profile.players_mean * profile.load_factor(start_ms)).min(usize::from(profile.slots));
        for number in 0..count as i64 {
            let ago_ms = 60_000 + 97 * number + self.rng.exponential(profile.session_ms_mean) as i64;
            self.join(context, start_ms - ago_ms, start_ms);
        }
    }

    /// One step. `t_ms` is a tick, after the last one.
    fn tick(&mut self, context: &TickContext, t_ms: i64) {
        let limit_reached = self.score(context, t_ms);
        self.tick_ms = t_ms;
        if t_ms >= self.seeding_end_ms {
            if self.intermission_end_ms.is_none() {
                self.end_play(context, 0);
            }
            while !self.players.is_empty() {
                self.leave(0);
            }
            return self.reseed(context, t_ms);
        }
        if self.players.is_empty() {
            self.skip_empty_rounds(context.profile);
        } else if let Some(end_ms) = self.intermission_end_ms {
            if t_ms >= end_ms {
                self.begin_round(context.profile);
            }
        } else if limit_reached || t_ms >= self.round_end_ms {
            let intermission_ms = context.intermission_ms(t_ms);
            self.end_play(context, intermission_ms);
            match intermission_ms {
                0 => self.begin_round(context.profile),
                _ => self.intermission_end_ms = Some(t_ms + intermission_ms),
            }
        }
        self.update_players(context);
        if self.players.is_empty() && self.intermission_end_ms.is_some() {
            self.begin_round(context.profile);
        }
        self.update_spectators(context);
    }

    /// Adds the points of all players until the tick at `t_ms`. Returns whether a player
    /// reached the limit.
    fn score(&mut self, context: &TickContext, t_ms: i64) -> bool {
        let limit = context.profile.score_limit.unwrap_or(i32::MAX);
        let unit = context.profile.game.points_per_score;
        let mut reached = false;
        if self.intermission_end_ms.is_some() {
            return reached;
        }
        for p in &mut self.players {
            let bits = self.rng.bits();
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

    /// Records the final list, which is shown for `intermission_ms` longer.
    fn end_play(&mut self, context: &TickContext, intermission_ms: i64) {
        if self.is_recording && !self.players.is_empty() {
            self.record_round(context.profile, context.settings.round_results_max, self.tick_ms + intermission_ms);
        }
    }

    fn begin_round(&mut self, profile: &ServerProfile) {
        self.intermission_end_ms = None;
        for p in &mut self.players {
            p.points = 0;
        }
        let change = match profile.rotation {
            MapRotation::Always => true,
            MapRotation::Sometimes => self.rng.bool(0.4),
            MapRotation::Never => false,
        };
        self.map = self.map.wrapping_add(u32::from(change)) % profile.game.maps.len() as u32;
        self.round_end_ms = self.tick_ms + profile.round_ms_max;
    }

    fn record_round(&mut self, profile: &ServerProfile, lists_max: usize, next_round_ms: i64) {
        let Some(truth) = &mut self.truth else { return };
        truth.rounds += 1;
        let mut final_list: Vec<(Person, i32)> =
            self.players.iter().filter(|p| !p.person.is_bot() && !p.spectating).map(|p| (p.person, p.points)).collect();
        final_list.sort_by_key(|&(_, points)| std::cmp::Reverse(points));
        let best = final_list.first().map_or(0, |&(_, points)| points);
        if final_list.len() < 2 || best <= 0 {
            return;
        }
        truth.rounds_rated += 1;
        for &(person, points) in &final_list {
            let round = PlayerTruth { rounds: 1, wins: u32::from(points == best), ..PlayerTruth::default() };
            truth.players.entry((self.week, person)).or_default().add(round);
        }
        while truth.final_lists.len() >= lists_max.max(1) {
            truth.final_lists.pop_front();
        }
        if lists_max > 0 {
            let map = profile.game.maps[self.map as usize];
            truth.final_lists.push_back(RoundResult { t_ms: self.tick_ms, next_round_ms, map, final_list });
        }
    }

    /// Rounds on an empty server end by time only, so they can be computed.
    fn skip_empty_rounds(&mut self, profile: &ServerProfile) {
        self.map = self.map_index(profile, self.tick_ms) as u32;
        if self.tick_ms >= self.round_end_ms {
            let past_ms = (self.tick_ms - self.round_end_ms) % profile.round_ms_max;
            self.round_end_ms = self.tick_ms - past_ms + profile.round_ms_max;
        }
    }

    /// The map at a time not before the last tick, including rounds that ended without players.
    pub(super) fn map_index(&self, profile: &ServerProfile, t_ms: i64) -> usize {
        let mut map = i64::from(self.map);
        if self.players.is_empty() && t_ms >= self.round_end_ms && profile.rotation != MapRotation::Never {
            map += 1 + (t_ms - self.round_end_ms) / profile.round_ms_max;
        }
        (map % profile.game.maps.len() as i64) as usize
    }

    /// Records what a player did until now.
    pub(super) fn record(&mut self, index: usize, until_ms: i64) {
        let Some(truth) = &mut self.truth else { return };
        let p = &mut self.players[index];
        truth.players.entry((self.week, p.person)).or_default().add(p.unrecorded(until_ms));
        p.clear_unrecorded(until_ms);
    }
}
