//! The profile of each server: game, size, number of players, how rounds end. Fixed by the
//! seed; never changes.

use super::behaviours::Behaviour;
use super::games::{Game, SPECTATOR_GAMES, pick_game};
use super::protocol::{NameFormat, Protocol, ProtocolShares};
use super::rng::{RngExt, SplitMix64, hash_parts};
use crate::model::calendar::{DAY_MS, HOUR_MS};

/// Whether the map changes when a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapRotation {
    Always,
    Sometimes,
    Never,
}

/// The profile of a server.
#[derive(Clone, Debug)]
pub struct ServerProfile {
    pub game: &'static Game,
    pub hostname: Box<str>,
    pub slots: u16,
    /// Mean number of players at the busiest hour, if slots were unlimited.
    pub players_mean: f64,
    pub session_ms_mean: f64,
    /// Number of regular players.
    pub regulars: u32,
    /// Local time minus UTC.
    pub utc_offset_ms: i64,
    /// Bots fill up to this number of players while a player is on the server.
    pub bot_fill_target: u16,
    /// A round ends when a player has this many scores.
    pub score_limit: Option<i32>,
    pub round_ms_max: i64,
    pub rotation: MapRotation,
    /// Time of day at which the server is re-seeded, ms after 00:00 UTC.
    pub restart_time_of_day_ms: i64,
    /// Its special behaviour ([`super::behaviours`]).
    pub behaviour: Option<Behaviour>,
}

/// How the servers of a fleet are chosen.
#[derive(Clone, Copy, Debug)]
pub struct ProfileMix {
    pub protocols: ProtocolShares,
    /// Factor for the number of arriving players; 1 is normal.
    pub activity: f64,
}

const TOPICS: &[&str] = &[
    "Frag Factory",
    "Instagib",
    "CTF Only",
    "Newbies Welcome",
    "24/7 DM17",
    "Sniper Den",
    "Public #",
    "Old School",
    "Rocket Arena",
    "Low Grav",
    "No AWP",
    "Clan War",
    "Zombie Escape",
    "Rail Only",
    "The Pit",
    "Café de l'Arène",
];
const OWNERS: &[&str] =
    &["[EU]", "{MAD}", "Reverse.nl", "*DE*", "US East", "=BR=", "[RUS]", "Vienna", "ESL", "Home of", "Ye Olde", "Büro"];
const ZONES_H: &[i64] = &[-8, -5, -3, 0, 1, 1, 1, 2, 3, 8, 9, 10];

impl ServerProfile {
    /// The profile of one server, without a behaviour.
    pub fn generate(seed: u64, server: u32, mix: ProfileMix) -> ServerProfile {
        let rng = &mut SplitMix64::from_parts(&[seed, 0x5E27E2, u64::from(server)]);
        let protocol = mix.protocols.pick(rng.unit());
        let game = pick_game(rng, protocol);
        let slots = *[8_u16, 10, 12, 16, 16, 16, 20, 24, 24, 32, 32, 64].get(rng.below(12)).unwrap_or(&16);
        let slots = protocol.slots(slots);
        // Most servers have few players or none; a few are always full.
        let activity_class = rng.unit();
        let within = rng.unit();
        let players = match activity_class {
            c if c < 0.45 => within * 0.2,
            c if c < 0.70 => 0.2 + within * 2.0,
            c if c < 0.90 => 2.0 + within * 8.0,
            c if c < 0.98 => 6.0 + within * 14.0,
            _ => f64::from(slots) * 2.5,
        };
        let players_mean = (players * mix.activity).min(f64::from(slots) * 3.0);
        let quake = protocol == Protocol::Quake3;
        let tag = if quake { rng.pick(&["^1", "^4", "^2", "", "", "^7", "^5"]) } else { "" };
        let tail = if tag.is_empty() { "" } else { "^7" };
        let hostname = format!("{tag}{}{tail} {} {}", rng.pick(OWNERS), rng.pick(TOPICS), server + 1);
        let hostname = match protocol {
            _ if !protocol.has_hostname() => "".into(),
            Protocol::QuakeWorld => NameFormat::Ascii(usize::MAX).apply(&hostname).into(),
            _ => hostname.into(),
        };
        let minutes = if quake { 8 + rng.below(13) } else { 15 + rng.below(26) };
        let rotates = rng.unit();
        ServerProfile {
            game,
            hostname,
            slots,
            players_mean,
            session_ms_mean: 60_000.0 * (12.0 + 40.0 * rng.unit()),
            regulars: (players_mean * 14.0 + 8.0) as u32,
            utc_offset_ms: ZONES_H[rng.below(ZONES_H.len())] * HOUR_MS,
            bot_fill_target: if protocol.shows_bots() && rng.bool(0.2) { 2 + rng.below(5) as u16 } else { 0 },
            score_limit: (quake && rng.bool(0.7)).then(|| 20 + 5 * rng.below(7) as i32),
            round_ms_max: minutes as i64 * 60_000,
            rotation: match rotates {
                r if r < 0.6 => MapRotation::Always,
                r if r < 0.85 => MapRotation::Sometimes,
                _ => MapRotation::Never,
            },
            restart_time_of_day_ms: (hash_parts(&[seed, 0xDA7, u64::from(server)]) % DAY_MS as u64) as i64,
            behaviour: None,
        }
    }

    /// Gives the server a special behaviour, or none.
    pub(super) fn set_behaviour(&mut self, behaviour: Option<Behaviour>, seed: u64, server: u32) {
        let bits = hash_parts(&[seed, 0xBE4B, u64::from(server)]);
        match behaviour {
            Some(Behaviour::Spectators) if self.game.protocol == Protocol::Quake3 => {
                self.game = &SPECTATOR_GAMES[bits as usize % SPECTATOR_GAMES.len()];
            }
            Some(Behaviour::UnmarkedBots) => self.bot_fill_target = 3 + (bits % 5) as u16,
            Some(Behaviour::Frozen) => (self.players_mean, self.bot_fill_target) = (0.0, 0),
            Some(Behaviour::Spectators | Behaviour::GenericNames | Behaviour::Oversized) | None => {}
        }
        self.behaviour = behaviour;
    }

    /// Gives the server at least the slots for this number of players, and no bots.
    pub(super) fn set_constant_players(&mut self, players: u16) {
        self.slots = self.slots.max(self.game.protocol.slots(players));
        self.bot_fill_target = 0;
    }

    /// The activity at a time, relative to the busiest hour, 0 to 1.
    pub fn load_factor(&self, t_ms: i64) -> f64 {
        // Maximum at nine in the evening, minimum before dawn.
        const HOURS: [u8; 24] =
            [62, 46, 33, 24, 18, 16, 17, 20, 25, 30, 36, 42, 47, 50, 53, 57, 63, 70, 77, 84, 91, 96, 92, 79];
        let local_ms = t_ms + self.utc_offset_ms;
        let hour = local_ms.rem_euclid(DAY_MS) / HOUR_MS;
        let day = (local_ms.div_euclid(DAY_MS) + 3).rem_euclid(7);
        let weekend = if day >= 5 { 1.0 } else { 0.85 };
        f64::from(HOURS[hour as usize]) / 96.0 * weekend
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::games::GAMES;

    #[test]
    fn profiles_cover_every_game_and_are_mostly_quiet() {
        let mix = ProfileMix { protocols: ProtocolShares::default(), activity: 1.0 };
        let all: Vec<ServerProfile> = (0..5_000).map(|i| ServerProfile::generate(7, i, mix)).collect();
        let share = |f: &dyn Fn(&ServerProfile) -> bool| all.iter().filter(|p| f(p)).count() as f64 / 5_000.0;
        assert!((share(&|p| p.game.protocol == Protocol::Source) - 0.4).abs() < 0.05);
        assert!(share(&|p| p.players_mean < 2.3) > 0.6);
        assert!(share(&|p| p.slots == 64 && p.players_mean > 60.0) > 0.0005);
        assert!(share(&|p| p.bot_fill_target > 0) > 0.05);
        for game in GAMES.iter().filter(|game| matches!(game.protocol, Protocol::Quake3 | Protocol::Source)) {
            assert!(share(&|p| std::ptr::eq(p.game, game)) > 0.01, "{}", game.title);
        }
        for profile in &all {
            assert!((0.0..=1.0).contains(&profile.load_factor(1_763_683_200_000)));
        }
    }
}
