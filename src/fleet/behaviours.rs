//! Server behaviours that rankings must exclude (docs/rules.md section 14): spectators,
//! generic names, unmarked bots, lists longer than the server has slots, lists that
//! never change.
//!
//! Unlike a fault ([`super::faults`]), a behaviour does not damage replies: the reply
//! is correct and the game state itself must not be ranked. The seed gives each server
//! at most one behaviour, so a test knows which names may be ranked.

use std::str::FromStr;

use strum::{IntoStaticStr, VariantArray};

use super::population::Person;
use super::protocol::Protocol;
use super::rng::{hash_parts, unit};
use super::shares::{ShareListError, Shares};

/// The special behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Behaviour {
    /// Players spectate when they join and sometimes later. Quake 3 (Xonotic or Warsow): the
    /// list shows them with the marker of the game as points. QuakeWorld and Teeworlds mark them.
    Spectators,
    /// Half of the players have the name [`GENERIC_NAME`].
    GenericNames,
    /// Three to seven bots that stay while the server has no players. A2S_INFO counts
    /// them, but the list does not mark them. Source.
    UnmarkedBots,
    /// More entries than slots; their names are [`PHANTOM_NAME`] and a number.
    Oversized,
    /// Entries with the names [`STATUE_NAME`] and a number, with the same points, on the
    /// same map, permanently. No player joins.
    Frozen,
}

/// The name of half of the players of a server with generic names.
pub const GENERIC_NAME: &str = "New Player";
/// Prefix of the names of surplus entries in an oversized list.
pub const PHANTOM_NAME: &str = "Phantom";
/// Prefix of the names in a frozen list.
pub const STATUE_NAME: &str = "Statue";

/// Interval at which a player decides whether to spectate.
const SPECTATE_PERIOD_MS: i64 = 300_000;

impl Behaviour {
    /// As in `--behaviours` and in the ground truth.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn is_possible_in(self, protocol: Protocol) -> bool {
        match self {
            Behaviour::Spectators => protocol == Protocol::Quake3 || protocol.marks_spectators(),
            Behaviour::UnmarkedBots => protocol == Protocol::Source,
            Behaviour::GenericNames | Behaviour::Frozen => protocol.has_list(),
            // The others cannot show a list of that length.
            Behaviour::Oversized => !matches!(
                protocol,
                Protocol::Quake2
                    | Protocol::GameSpy2
                    | Protocol::SaMp
                    | Protocol::Doom3
                    | Protocol::Etqw
                    | Protocol::Teeworlds
                    | Protocol::Teeworlds7
                    | Protocol::MinecraftStatus
                    | Protocol::Zandronum
                    | Protocol::Armagetron
                    | Protocol::Bedrock
                    | Protocol::Mumble
            ),
        }
    }
}

/// The share of the servers with each behaviour, among the servers whose protocol can show it.
pub type BehaviourShares = Shares<Behaviour, { Behaviour::VARIANTS.len() }>;

impl BehaviourShares {
    /// A few servers with each behaviour.
    pub const MIXED: BehaviourShares = BehaviourShares::new([0.05, 0.02, 0.05, 0.01, 0.01]);

    /// The behaviour of a server, if it has one.
    pub fn behaviour(&self, seed: u64, server: u32, protocol: Protocol) -> Option<Behaviour> {
        let behaviour = self.value_at(unit(hash_parts(&[seed, 0xBE4A, u64::from(server)])));
        behaviour.filter(|behaviour| behaviour.is_possible_in(protocol))
    }
}

impl FromStr for BehaviourShares {
    type Err = ShareListError;

    /// `none`, `default` ([`BehaviourShares::MIXED`]), or `spectators=0.1,frozen=0.02,...`;
    /// omitted ones are 0.
    fn from_str(text: &str) -> Result<BehaviourShares, ShareListError> {
        match text {
            "none" => Ok(BehaviourShares::NONE),
            "default" => Ok(BehaviourShares::MIXED),
            _ => BehaviourShares::parse_list(text, "behaviours"),
        }
    }
}

/// Whether a player who joined at `joined_ms` spectates at `t_ms`, on a server with
/// spectators: one in ten always, others for up to 90 s after joining and in one of
/// ten periods of five minutes.
pub fn is_spectating(seed: u64, server: u32, person: Person, joined_ms: i64, t_ms: i64) -> bool {
    if person.is_bot() {
        return false;
    }
    let player_bits = hash_parts(&[seed, 0x59EC, u64::from(server), u64::from(person.0), joined_ms as u64]);
    let connected_ms = t_ms - joined_ms;
    let period_bits = hash_parts(&[player_bits, connected_ms.div_euclid(SPECTATE_PERIOD_MS) as u64]);
    unit(player_bits) < 0.1 || connected_ms < 10_000 + (player_bits % 80_000) as i64 || unit(period_bits) < 0.1
}

/// Whether a person has the name [`GENERIC_NAME`] on a server with generic names.
pub fn has_generic_name(seed: u64, server: u32, person: Person) -> bool {
    !person.is_bot() && hash_parts(&[seed, 0x6E4E, u64::from(server), u64::from(person.0)]).is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaviour_shares_are_parsed_and_drawn() {
        let shares: BehaviourShares = "spectators=0.5, frozen=0.25".parse().unwrap();
        assert_eq!(shares, BehaviourShares::NONE.with(Behaviour::Spectators, 0.5).with(Behaviour::Frozen, 0.25));
        assert_eq!("none".parse(), Ok(BehaviourShares::NONE));
        assert_eq!("default".parse(), Ok(BehaviourShares::MIXED));
        let error = "ghosts=1".parse::<BehaviourShares>().unwrap_err().to_string();
        assert!(error.contains("ghosts") && error.contains("unmarked_bots"), "{error}");
        let count = |protocol, behaviour| {
            (0..10_000).filter(|&server| shares.behaviour(1, server, protocol) == Some(behaviour)).count()
        };
        assert!((4_800..5_200).contains(&count(Protocol::Quake3, Behaviour::Spectators)));
        assert_eq!(count(Protocol::Source, Behaviour::Spectators), 0);
        for protocol in [Protocol::Quake3, Protocol::Source] {
            assert!((2_300..2_700).contains(&count(protocol, Behaviour::Frozen)));
            assert_eq!(count(protocol, Behaviour::Oversized), 0);
        }
    }

    #[test]
    fn each_player_spectates_at_first_and_a_tenth_always() {
        let minutes = |number: u32| {
            let person = Person(number);
            (0..60).filter(|minute| is_spectating(1, 2, person, 5_000, 5_000 + minute * 60_000)).count()
        };
        let all: Vec<usize> = (0..1_000).map(minutes).collect();
        let always = all.iter().filter(|&&minutes| minutes == 60).count();
        assert!((70..130).contains(&always), "{always}");
        assert!(all.iter().all(|&minutes| minutes > 0), "every player spectates first");
        let mean = all.iter().sum::<usize>() as f64 / 60_000.0;
        assert!((0.15..0.25).contains(&mean), "{mean}");
        assert!(!is_spectating(1, 2, Person::bot(1), 5_000, 5_000));
    }
}
