//! Entries of a list that are no players: behaviours that only change what is shown.

use crate::fleet::behaviours::{Behaviour, PHANTOM_NAME, STATUE_NAME};
use crate::fleet::profile::ServerProfile;
use crate::model::Player;

/// Applies the server's behaviour to its player list. `t_ms`: time, Unix ms.
pub(super) fn alter_players(profile: &ServerProfile, server: u32, t_ms: i64, players: &mut Vec<Player>) {
    match profile.behaviour {
        Some(Behaviour::Oversized) => {
            let surplus = 2 * i64::from(profile.slots) + 40;
            let points = |number| (t_ms / 60_000 + 7 * number) % 50;
            players
                .extend((1..=surplus).map(|number| fake_player(profile, PHANTOM_NAME, number, points(number), t_ms)));
        }
        Some(Behaviour::Frozen) => {
            let count = 5 + i64::from(server % 4);
            *players = (1..=count).map(|number| fake_player(profile, STATUE_NAME, number, 3 * number, t_ms)).collect();
        }
        Some(Behaviour::Spectators | Behaviour::GenericNames | Behaviour::UnmarkedBots) | None => {}
    }
}

/// A player who is not in the population. Connect times differ, as real ones do, and are
/// short enough for a 32-bit float in seconds to be exact to the millisecond.
fn fake_player(profile: &ServerProfile, name: &str, number: i64, points: i64, t_ms: i64) -> Player {
    let list = profile.game.protocol.list_format();
    let connected_ms = (t_ms.rem_euclid(7_200_000) + 1_000 * number) as u64;
    Player {
        name: format!("{name}{number}").into(),
        points: profile.game.has_points.then_some(points),
        ping: list.has_ping.then_some(40),
        connected_ms: list.connected_unit_ms.map(|unit_ms| connected_ms / unit_ms * unit_ms),
        bot: false,
        spectator: false,
    }
}
