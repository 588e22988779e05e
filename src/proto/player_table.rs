//! Player lists that are sent as columns: one value for each field and player (GameSpy 1, 2, 3).

use std::collections::BTreeMap;

use super::exchange::has_enough_entries;
use super::fields;
use super::text::{player_name, points, short_text};
use crate::limits::PLAYERS_MAX;
use crate::model::Player;

/// A column that clqd uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Name,
    Points,
    /// Points of games without a score.
    Kills,
    Ping,
    Bot,
    Mesh,
}

/// The number of columns.
const COLUMN_COUNT: usize = 6;

type Row<'a> = [Option<&'a [u8]>; COLUMN_COUNT];

/// The columns by the names that games use, in lower case and without the final underscore.
const COLUMNS: &[(&str, Column)] = &[
    ("player", Column::Name),
    ("playername", Column::Name),
    ("name", Column::Name),
    ("score", Column::Points),
    ("frags", Column::Points),
    ("kills", Column::Kills),
    ("ping", Column::Ping),
    ("bot", Column::Bot),
    ("aibot", Column::Bot),
    ("mesh", Column::Mesh),
];

/// The mesh of a spectator in Unreal Tournament.
const SPECTATOR_MESH: &[u8] = b"Spectator";

/// The team of a player without one, in games of the Unreal engine.
const NO_TEAM: &[u8] = b"255";

/// Whether a text is the name of a column in a list of columns: one that clqd uses, or one that ends as
/// they do, such as `deaths_` or `team_t`.
pub(super) fn column_name(text: &[u8]) -> bool {
    let is_word = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_known = || COLUMNS.iter().any(|(name, _)| text.eq_ignore_ascii_case(name.as_bytes()));
    is_word && (text.ends_with(b"_") || text.ends_with(b"_t") || is_known())
}

/// Values of players by their number in the list, at most [`PLAYERS_MAX`]. They are slices of the reply: a
/// datagram may have a value in two bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayerTable<'a> {
    rows: Vec<Row<'a>>,
    /// Teams are separate from the rows, because some games also name teams by `team_N`, and a team
    /// is no player. `None`: teams are not read.
    teams: Option<BTreeMap<usize, &'a [u8]>>,
}

impl<'a> PlayerTable<'a> {
    /// A table that also reads the teams of the players.
    pub(super) fn with_teams() -> PlayerTable<'a> {
        PlayerTable { teams: Some(BTreeMap::new()), ..PlayerTable::default() }
    }

    /// Sets a value whose key ends with the player's number: `frags_3`. Other keys are skipped.
    pub(super) fn set_numbered(&mut self, key: &[u8], value: &'a [u8]) {
        let Some(end) = key.iter().rposition(|&b| b == b'_') else { return };
        let Some(number) = fields::number(&key[end + 1..]) else { return };
        self.set(&key[..end], number, value);
    }

    /// Sets the value of a column for a player. Columns that clqd does not use are skipped, and
    /// so are players beyond the limit.
    pub(super) fn set(&mut self, column: &[u8], number: usize, value: &'a [u8]) {
        let column = column.strip_suffix(b"_").unwrap_or(column);
        if let Some(teams) = &mut self.teams
            && column.eq_ignore_ascii_case(b"team")
            && number <= PLAYERS_MAX
        {
            teams.insert(number, value);
        }
        let known = COLUMNS.iter().find(|(name, _)| column.eq_ignore_ascii_case(name.as_bytes()));
        let Some(&(_, column)) = known else { return };
        if number > PLAYERS_MAX {
            return;
        }
        if self.rows.len() <= number {
            self.rows.resize(number + 1, Row::default());
        }
        self.rows[number][column as usize] = Some(value);
    }

    /// The teams of the players that [`PlayerTable::into_players`] returns, in the same order.
    /// All are empty unless the table was created by [`PlayerTable::with_teams`].
    pub(super) fn player_teams(&self) -> Vec<String> {
        let players = self.rows.iter().enumerate().filter(|(_, columns)| is_player(columns)).take(PLAYERS_MAX);
        let team = |number| self.teams.as_ref()?.get(&number).copied().filter(|team| *team != NO_TEAM);
        players.map(|(number, _)| short_text(team(number).unwrap_or_default())).collect()
    }

    /// One more than the highest number of a player with a value.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The players in the order of their numbers, and the number of entries that are not usable:
    /// without a name, or beyond the limit.
    pub(super) fn into_players(self) -> (Vec<Player>, usize) {
        let mut players = Vec::new();
        let mut unusable = 0;
        for columns in self.rows.into_iter().filter(|columns| *columns != Row::default()) {
            match player(&columns) {
                Some(player) if players.len() < PLAYERS_MAX => players.push(player),
                _ => unusable += 1,
            }
        }
        (players, unusable)
    }
}

/// Whether a reply that is whole has a complete list: a few players may be missing, and nothing else.
pub(super) fn is_full_list(players: usize, unusable: usize, announced: Option<u32>) -> bool {
    match announced {
        Some(announced) => has_enough_entries(players, announced),
        None => unusable == 0,
    }
}

fn is_player(columns: &Row) -> bool {
    columns[Column::Name as usize].is_some()
}

fn player(columns: &Row) -> Option<Player> {
    let value = |column: Column| columns[column as usize];
    let number = fields::number::<i64>;
    Some(Player {
        name: player_name(value(Column::Name)?),
        // A score that is no number: no points.
        points: value(Column::Points).or(value(Column::Kills)).and_then(number).map(points),
        ping: value(Column::Ping).and_then(number).and_then(|ping| i32::try_from(ping).ok()).filter(|ping| *ping >= 0),
        connected_ms: None,
        bot: value(Column::Bot).and_then(number).is_some_and(|flag| flag != 0),
        spectator: value(Column::Mesh).is_some_and(|mesh| mesh.eq_ignore_ascii_case(SPECTATOR_MESH)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_players_in_the_order_of_their_numbers() {
        let mut table = PlayerTable::with_teams();
        for (key, value) in [
            ("player_10", "ten"),
            ("score_10", "-4"),
            ("player_2", "two"),
            ("frags_2", " 12 "),
            ("ping_2", "33"),
            ("bot_2", "1"),
            ("mesh_2", "Male Soldier"),
            ("team_2", "red"),
            ("team_3", "a team"),
            ("team_10", "255"),
            ("player_x", "no number"),
            ("player_99999999", "too many"),
        ] {
            table.set_numbered(key.as_bytes(), value.as_bytes());
        }
        table.set(b"Player_", 11, b"eleven");
        table.set(b"team_", 11, b"1");
        assert_eq!(table.player_teams(), ["red", "", "1"]);
        let (players, unusable) = table.into_players();
        let rows: Vec<_> = players.iter().map(|p| (p.name.as_str(), p.points, p.ping, p.bot)).collect();
        assert_eq!(
            rows,
            [("two", Some(12), Some(33), true), ("ten", Some(-4), None, false), ("eleven", None, None, false)]
        );
        assert_eq!(unusable, 0);
    }

    #[test]
    fn entry_without_name_is_unusable_and_one_with_bad_points_has_none() {
        let mut table = PlayerTable::default();
        table.set(b"score", 0, b"1");
        table.set(b"player", 1, b"a");
        table.set(b"score", 1, b"many");
        table.set(b"player", 2, b"b");
        table.set(b"kills", 2, b"6");
        table.set(b"player", 3, b"c");
        table.set(b"kills", 3, b"6");
        table.set(b"score", 3, b"-1");
        table.set(b"mesh", 3, b"spectator");
        let (players, unusable) = table.into_players();
        let rows: Vec<_> = players.iter().map(|p| (p.name.as_str(), p.points, p.spectator)).collect();
        assert_eq!(rows, [("a", None, false), ("b", Some(6), false), ("c", Some(-1), true)]);
        assert_eq!(unusable, 1);
    }
}
