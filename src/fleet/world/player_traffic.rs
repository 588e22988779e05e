//! The players of a server: who joins, leaves and spectates.

use super::player::ActivePlayer;
use super::server::{Server, TickContext};
use crate::fleet::behaviours::{self, Behaviour};
use crate::fleet::population::{BOTS_MAX, Person};
use crate::fleet::rng::{RngExt, hash_parts};

impl Server {
    /// Draws the time of the next arrival.
    pub(super) fn draw_arrival(&mut self, context: &TickContext) {
        let rate = context.arrivals_per_ms();
        if rate < 1e-12 {
            self.next_arrival_ms = i64::MAX / 4;
            return;
        }
        // At least 1 ms apart: clqd recognises spoofed lists by equal connect times.
        self.next_arrival_ms += 1 + self.rng.exponential(1.0 / rate).min(1e15) as i64;
    }

    /// Decides which players spectate until the next tick. Spectating resets the points.
    pub(super) fn update_spectators(&mut self, context: &TickContext) {
        if context.profile.behaviour != Some(Behaviour::Spectators) {
            return;
        }
        for p in &mut self.players {
            let (seed, server) = (context.settings.seed, context.server);
            p.spectating = behaviours::is_spectating(seed, server, p.person, p.joined_ms, self.tick_ms);
            if p.spectating {
                p.points = 0;
            }
        }
    }

    /// Players leave and join, and bots fill the server.
    pub(super) fn update_players(&mut self, context: &TickContext) {
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
            let wanted = self.rng.bool(context.profile.load_factor(at_ms));
            if wanted && self.humans < context.profile.slots {
                if self.players.len() >= usize::from(context.profile.slots) {
                    self.remove_bot();
                }
                self.join(context, at_ms, self.tick_ms);
            }
            self.draw_arrival(context);
        }
        self.fill_with_bots(context);
    }

    /// A person joins at `joined_ms`, and is on the server from the tick `seen_ms` on.
    pub(super) fn join(&mut self, context: &TickContext, joined_ms: i64, seen_ms: i64) {
        let profile = context.profile;
        let size = context.population.size();
        for _ in 0..4 {
            let person = if self.rng.bool(0.85) {
                // The most frequent regulars have the lowest numbers.
                let x = self.rng.unit();
                let number = (x * x * f64::from(profile.regulars)) as u64;
                let bits = hash_parts(&[context.settings.seed, 0x4E6, u64::from(context.server), number]);
                Person((bits % u64::from(size)) as u32)
            } else {
                Person(self.rng.below(size as usize) as u32)
            };
            if self.players.iter().any(|p| p.person == person) {
                continue;
            }
            let stay_ms = 20_000 + self.rng.exponential(profile.session_ms_mean) as i64;
            self.humans += 1;
            self.players.push(ActivePlayer {
                ping_ms: context.population.ping_ms(person),
                joined_ms,
                leave_ms: seen_ms + stay_ms,
                ..ActivePlayer::new(profile, person, context.population.skill(person), seen_ms)
            });
            return;
        }
    }

    /// Adds players who stay. They are the same after each re-seeding, and joined before the
    /// start of the server's day, `day_start_ms`. They are neighbours in the population: their
    /// names are next to each other in memory.
    pub(super) fn add_constant_players(&mut self, context: &TickContext, count: u16, day_start_ms: i64, seen_ms: i64) {
        let (profile, population) = (context.profile, context.population);
        let size = population.size();
        self.players.reserve_exact(usize::from(count));
        let first = hash_parts(&[context.settings.seed, 0xC025, u64::from(context.server)]) % u64::from(size);
        for number in 0..u64::from(count).min(u64::from(size)) {
            let person = Person(((first + number) % u64::from(size)) as u32);
            let bits = hash_parts(&[first, number]);
            let ago_ms = 60_000 + 97 * number as i64 + (bits % profile.session_ms_mean as u64) as i64;
            self.humans += 1;
            self.players.push(ActivePlayer {
                ping_ms: population.ping_ms(person),
                joined_ms: day_start_ms - ago_ms,
                ..ActivePlayer::new(profile, person, population.skill(person), seen_ms)
            });
        }
    }

    pub(super) fn fill_with_bots(&mut self, context: &TickContext) {
        let profile = context.profile;
        if profile.bot_fill_target == 0 {
            return;
        }
        let wanted = self.humans > 0 || profile.behaviour == Some(Behaviour::UnmarkedBots);
        let fill = if wanted { usize::from(profile.bot_fill_target.min(profile.slots)) } else { 0 };
        while self.players.len() > fill.max(usize::from(self.humans)) {
            self.remove_bot();
        }
        while self.players.len() < fill {
            let free = |bot: &Person| self.players.iter().all(|p| p.person != *bot);
            let Some(bot) = (0..BOTS_MAX).map(Person::bot).find(free) else { return };
            self.players.push(ActivePlayer::new(profile, bot, 0.8, self.tick_ms));
        }
    }

    fn remove_bot(&mut self) {
        if let Some(index) = self.players.iter().rposition(|p| p.person.is_bot()) {
            self.leave(index);
        }
    }

    pub(super) fn leave(&mut self, index: usize) {
        if self.is_recording {
            self.record(index, self.tick_ms);
        }
        let removed = self.players.swap_remove(index);
        self.humans -= u16::from(!removed.person.is_bot());
    }
}
