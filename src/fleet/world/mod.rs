//! The simulated world: which players are on which server at which time, with how many
//! points. Pure: no IO, no clock, no randomness except the seed.
//!
//! A server's state at a time depends only on the seed, the server's number and the time,
//! not on when or how often it was queried, nor on the other servers. A server advances
//! in ticks of 10 s while it has players, and skips the time without players. Once a day,
//! at its own time of day, it is re-seeded from the seed and the day number, so any time
//! can be reached within one day's ticks. With a constant number of players
//! ([`WorldSettings::constant_players`]) it is re-seeded every hour, so that a fleet of a
//! million servers starts in seconds; the players remain.
//!
//! In a tick the players score by skill (sometimes a suicide takes a point, rarely a
//! player's points are reset). Then the round may end by points or time, which resets all
//! points and may change the map, at once or after an intermission. Then players leave and join. Bots fill the server while
//! it has players. Some servers have a special behaviour ([`super::behaviours`]).

mod fake_players;
mod player;
mod player_traffic;
mod server;
mod settings;

use std::borrow::Cow;

use self::player::ActivePlayer;
use self::server::{Server, TickContext};
pub use self::settings::{CONSTANT_PLAYERS_MAX, WorldSettings};
use self::settings::{POPULATION_MAX, TICK_MS};
use super::behaviours::{self, Behaviour, GENERIC_NAME};
use super::population::{Person, Population};
use super::profile::{ProfileMix, ServerProfile};
use super::protocol::{NameFormat, Protocol, SAMP_LIST_PLAYERS_MAX};
use super::truth::{ServerTruth, TruthLine};
use crate::model::calendar;
use crate::model::name::{ColourCodes, normalise};
use crate::model::{Completeness, Player, Snapshot};

/// All servers of a fleet.
pub struct World {
    settings: WorldSettings,
    population: Population,
    profiles: Vec<ServerProfile>,
    servers: Vec<Server>,
}

impl World {
    /// Creates the servers and the population, without simulating. About 250 bytes for a
    /// server and 40 for a person.
    pub fn new(settings: WorldSettings) -> World {
        let mix = ProfileMix { protocols: settings.protocols, activity: settings.activity };
        let size = match settings.population {
            0 => settings.servers.saturating_mul(15).saturating_add(500).min(POPULATION_MAX),
            size => size,
        };
        let profile = |server| {
            let mut profile = ServerProfile::generate(settings.seed, server, mix);
            let behaviour = settings.behaviours.behaviour(settings.seed, server, profile.game.protocol);
            profile.set_behaviour(behaviour, settings.seed, server);
            if let Some(players) = settings.constant_players {
                profile.set_constant_players(players);
            }
            profile
        };
        let profiles = (0..settings.servers).map(profile).collect();
        let servers = (0..settings.servers).map(|_| Server::new(&settings)).collect();
        World { population: Population::new(settings.seed, size), profiles, servers, settings }
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
    pub fn profile(&self, server: u32) -> &ServerProfile {
        &self.profiles[server as usize]
    }

    pub fn protocol(&self, server: u32) -> Protocol {
        self.profile(server).game.protocol
    }

    /// Advances a server to a time, Unix ms. A time before the one that it has reached
    /// changes nothing.
    pub fn advance(&mut self, server: u32, t_ms: i64) {
        let index = server as usize;
        let context = TickContext {
            settings: &self.settings,
            population: &self.population,
            profile: &self.profiles[index],
            server,
        };
        self.servers[index].advance(&context, t_ms.max(self.settings.start_ms));
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
    /// player is on the server. A player who has just joined a Source server has no name yet, and
    /// 0 points, which are not read; on others the ping is 999. The snapshot is partial where a server shows only the number of
    /// its players: SA-MP with more than 100, and Bedrock.
    pub fn snapshot(&mut self, server: u32) -> Snapshot {
        let index = server as usize;
        if !self.servers[index].is_seeded {
            self.advance(server, self.settings.start_ms);
        }
        let profile = &self.profiles[index];
        let state = &self.servers[index];
        let now_ms = state.now_ms;
        let game = profile.game;
        let protocol = game.protocol;
        let list = protocol.list_format();
        let spectator_points = game.spectator_points.unwrap_or(0);
        let player = |p: &ActivePlayer| {
            let connected_ms = now_ms - p.joined_ms;
            let connecting = connected_ms < TICK_MS && !p.person.is_bot();
            let nameless = connecting && protocol == Protocol::Source;
            let name = if nameless { "".into() } else { self.shown_name(server, p.person) };
            let ping = match () {
                () if p.person.is_bot() => 0,
                () if connecting => 999,
                () => p.ping_ms + ((now_ms / TICK_MS + p.joined_ms) % 7) as i32,
            };
            Player {
                name: name.into(),
                points: match p.spectating {
                    true if protocol.marks_spectators() => None,
                    true => Some(spectator_points),
                    false => game.has_points.then_some(i64::from(p.points)),
                },
                ping: list.has_ping.then_some(ping),
                connected_ms: list.connected_unit_ms.map(|unit_ms| connected_ms as u64 / unit_ms * unit_ms),
                bot: p.person.is_bot() && protocol.marks_bots(),
                spectator: p.spectating && protocol.marks_spectators(),
            }
        };
        let mut players: Vec<Player> = state.players.iter().map(player).collect();
        let bots = (protocol == Protocol::Source).then(|| self.bots(server));
        // A2S does not mark bots, but it announces their number.
        if bots.is_some_and(|bots| bots > 0 && bots as usize == players.len()) {
            players.iter_mut().for_each(|player| player.bot = true);
        }
        fake_players::alter_players(profile, server, now_ms, &mut players);
        let frozen = profile.behaviour == Some(Behaviour::Frozen);
        let map = if frozen { 0 } else { state.map_index(profile, now_ms) };
        let withheld = match protocol {
            Protocol::SaMp => players.len() > SAMP_LIST_PLAYERS_MAX,
            _ => !protocol.has_list(),
        };
        let count = (withheld || protocol == Protocol::Source).then_some(players.len() as u32);
        if withheld {
            players.clear();
        }
        Snapshot {
            t_ms: now_ms,
            game: game.name.to_owned(),
            map: game.maps[map].to_owned(),
            hostname: profile.hostname.to_string(),
            slots: u32::from(profile.slots),
            count,
            bots,
            players,
            completeness: if withheld { Completeness::Partial } else { Completeness::Full },
        }
    }

    /// The name of a person as a server shows it, including colour codes.
    pub fn shown_name(&self, server: u32, person: Person) -> Cow<'_, str> {
        let profile = self.profile(server);
        let generic = profile.behaviour == Some(Behaviour::GenericNames)
            && behaviours::has_generic_name(self.settings.seed, server, person);
        match profile.game.protocol.list_format().names {
            names if generic => names.apply(GENERIC_NAME),
            NameFormat::Coloured => self.population.quake_name(person).into(),
            names => names.apply(self.population.plain_name(person)),
        }
    }

    /// The ground truth of one server up to the time that it has reached. Empty if none is
    /// recorded.
    pub(super) fn server_truth(&self, server: u32) -> ServerTruth {
        let state = &self.servers[server as usize];
        let mut truth = state.truth.as_deref().cloned().unwrap_or_default();
        if state.is_recording && state.truth.is_some() {
            for p in &state.players {
                let open = p.unrecorded(state.now_ms);
                truth.players.entry((state.week, p.person)).or_default().add(open);
            }
        }
        truth
    }

    /// The ground truth of all servers as printable lines, ordered by server. `url` returns a
    /// server's URL.
    pub fn truth<'a>(&'a self, url: impl Fn(u32) -> String + 'a) -> impl Iterator<Item = TruthLine> + 'a {
        (0..self.servers()).flat_map(move |server| self.truth_of(server, url(server)))
    }

    fn truth_of(&self, server: u32, url: String) -> Vec<TruthLine> {
        let profile = self.profile(server);
        let coloured = profile.game.protocol.list_format().names == NameFormat::Coloured;
        let codes = if coloured { ColourCodes::Quake3 } else { ColourCodes::None };
        let shown = |person| self.shown_name(server, person);
        let truth = self.server_truth(server);
        let mut lines = vec![TruthLine::Server {
            server: url.clone(),
            game: profile.game.name,
            t_ms: self.now_ms(server),
            rounds: truth.rounds,
            rounds_rated: truth.rounds_rated,
            players: self.servers[server as usize].players.len(),
            behaviour: profile.behaviour.map(Behaviour::name),
        }];
        let mut totals: Vec<_> = truth.players.into_iter().collect();
        totals.sort_unstable_by_key(|(key, _)| *key);
        lines.extend(totals.into_iter().map(|((week, person), totals)| TruthLine::Player {
            server: url.clone(),
            week: calendar::week_label(week),
            person_id: person.0,
            name: shown(person).into_owned(),
            normalised: normalise(&shown(person), codes),
            bot: person.is_bot(),
            totals,
        }));
        lines.extend(truth.final_lists.into_iter().map(|last| TruthLine::Round {
            server: url.clone(),
            t_ms: last.t_ms,
            next_round_ms: last.next_round_ms,
            map: last.map,
            final_list:
                last.final_list.into_iter().map(|(person, points)| (shown(person).into_owned(), points)).collect(),
        }));
        lines
    }
}

#[cfg(test)]
mod tests;
