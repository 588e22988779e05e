//! Sums over all weeks of many servers: maps over time, and the players with the best positions on a
//! server. They are read from the store; the daemon does that beside the engine, and caches them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::name_index::INSIDE_BYTES_MIN;
use crate::engine::{BestPlayersPlan, MapHistoryPlan};
use crate::model::calendar::week_label;
use crate::model::commit::MapRowKey;
use crate::model::row::{BestPositions, MapRow};
use crate::model::{MapKey, PlayerKey, Ranking, ServerKey, WeekKey};
use crate::store::{Reader, StoreError};
use crate::view::PlayerNameView;
use crate::view::history::{BestOfRanking, BestPlayer, BestPlayers, MapTotals, MapWeekView, PositionOfWeek};

/// Players of each ranking.
const BEST_PLAYERS: usize = 10;

/// Positions of a player in one ranking, best first.
type Places = Vec<(u32, WeekKey)>;

/// The best players of a server in each of [`Ranking::WITH_BEST_POSITIONS`].
#[derive(Debug, Default)]
pub struct BestOfServer([Vec<(PlayerKey, Places)>; 3]);

/// Sums of the map rows of all servers.
#[derive(Clone, Debug, Default)]
pub struct MapHistory {
    /// The servers whose rows are in the sums.
    counted: Vec<bool>,
    /// Newest first.
    weeks: Vec<Arc<MapWeek>>,
    /// Maps that were played in these weeks, the most played first.
    totals: Vec<MapTotals>,
}

#[derive(Debug)]
pub struct MapWeek {
    week: WeekKey,
    /// It was closed when it was read: its rows do not change any more.
    is_closed: bool,
    /// Time of all players on all maps, ms.
    player_ms: u64,
    maps: FxHashMap<MapKey, MapSums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct MapSums {
    servers: u32,
    played_ms: u64,
    player_ms: u64,
}

impl MapHistory {
    /// The current sums. Closed weeks are read again only if the set of counting servers has
    /// changed.
    pub fn next(&self, plan: MapHistoryPlan, reader: &Reader) -> Result<MapHistory, StoreError> {
        let MapHistoryPlan { weeks, counted, newer, names } = plan;
        let is_same = |week: &&Arc<MapWeek>| week.is_closed && self.counted == counted;
        let read = |&(week, is_closed): &(WeekKey, bool)| match self
            .weeks
            .iter()
            .filter(is_same)
            .find(|known| known.week == week && is_closed)
        {
            Some(known) => Ok(known.clone()),
            None => MapWeek::read(week, is_closed, &counted, &newer, reader).map(Arc::new),
        };
        let weeks = weeks.iter().rev().map(read).collect::<Result<Vec<_>, _>>()?;
        let totals = totals(&weeks, names);
        Ok(MapHistory { weeks, counted, totals })
    }

    /// The most played maps; with a string, those whose name is the string, begins with it or contains it,
    /// in this order. A string shorter than [`INSIDE_BYTES_MIN`] is not searched for inside names.
    pub fn most_played(&self, text: Option<&str>, count: usize) -> Vec<MapTotals> {
        let Some(text) = text.map(str::to_lowercase) else {
            return self.totals.iter().take(count).cloned().collect();
        };
        let may_be_inside = text.len() >= INSIDE_BYTES_MIN;
        let mut found = [const { Vec::new() }; 3];
        for totals in &self.totals {
            let name = totals.map.to_lowercase();
            let place = match name.find(&text) {
                Some(0) if name.len() == text.len() => 0,
                Some(0) => 1,
                Some(_) if may_be_inside => 2,
                _ => continue,
            };
            if found[place].len() < count {
                found[place].push(totals);
            }
        }
        found.into_iter().flatten().take(count).cloned().collect()
    }

    pub fn weeks_of(&self, map: MapKey) -> Vec<MapWeekView> {
        let view = |week: &Arc<MapWeek>| {
            let MapSums { servers, played_ms, player_ms } = *week.maps.get(&map)?;
            Some(MapWeekView {
                week: week_label(week.week),
                servers,
                minutes: played_ms as f64 / 60_000.0,
                average_players: ratio(player_ms, played_ms),
                share: ratio(player_ms, week.player_ms),
            })
        };
        self.weeks.iter().filter_map(view).collect()
    }
}

/// The sums of all weeks, the most played map first.
fn totals(weeks: &[Arc<MapWeek>], names: Vec<(MapKey, String)>) -> Vec<MapTotals> {
    let all_ms: u64 = weeks.iter().map(|week| week.player_ms).sum();
    let totals = |(map, name): (MapKey, String)| {
        let of_weeks: Vec<&MapSums> = weeks.iter().filter_map(|week| week.maps.get(&map)).collect();
        let played_ms: u64 = of_weeks.iter().map(|sums| sums.played_ms).sum();
        let player_ms: u64 = of_weeks.iter().map(|sums| sums.player_ms).sum();
        (!of_weeks.is_empty()).then(|| MapTotals {
            map_key: map.0,
            map: name,
            weeks: of_weeks.len() as u32,
            minutes: played_ms as f64 / 60_000.0,
            average_players: ratio(player_ms, played_ms),
            share: ratio(player_ms, all_ms),
        })
    };
    let mut totals: Vec<MapTotals> = names.into_iter().filter_map(totals).collect();
    totals.sort_unstable_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.map_key.cmp(&b.map_key)));
    totals
}

/// 0 if there is nothing to divide by.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

impl MapWeek {
    fn read(
        week: WeekKey,
        is_closed: bool,
        counted: &[bool],
        newer: &FxHashMap<MapRowKey, MapRow>,
        reader: &Reader,
    ) -> Result<MapWeek, StoreError> {
        let mut read = MapWeek { week, is_closed, player_ms: 0, maps: FxHashMap::default() };
        let mut add = |server: ServerKey, map, MapRow { played_ms, player_ms }| {
            if counted.get(server.0 as usize) == Some(&true) {
                read.player_ms += player_ms;
                let sums = read.maps.entry(map).or_default();
                sums.servers += 1;
                sums.played_ms += played_ms;
                sums.player_ms += player_ms;
            }
        };
        reader.each_map_row(week, &mut |server, map, row| {
            if !newer.contains_key(&MapRowKey { week, server, map }) {
                add(server, map, row);
            }
        })?;
        newer.iter().filter(|(key, _)| key.week == week).for_each(|(key, row)| add(key.server, key.map, *row));
        Ok(read)
    }
}

impl BestOfServer {
    /// The players whose names [`BestOfServer::view`] needs, each once.
    pub fn player_keys(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = self.0.iter().flatten().map(|(player, _)| player.0).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The best players that have a name, which are those that exist.
    pub fn view(&self, server: String, names: Vec<PlayerNameView>) -> BestPlayers {
        let names: FxHashMap<u32, PlayerNameView> = names.into_iter().map(|name| (name.player_key, name)).collect();
        let player = |(player, places): &(PlayerKey, Places)| {
            let PlayerNameView { player_key, name, display, .. } = names.get(&player.0)?.clone();
            let position = |&(position, week): &(u32, WeekKey)| PositionOfWeek { position, week: week_label(week) };
            Some(BestPlayer { player_key, name, display, positions: places.iter().map(position).collect() })
        };
        let rankings = Ranking::WITH_BEST_POSITIONS.into_iter().zip(&self.0);
        let rankings = rankings
            .map(|(ranking, players)| BestOfRanking { ranking, players: players.iter().filter_map(player).collect() });
        BestPlayers { server, rankings: rankings.collect() }
    }
}

/// The best players of a server, read in one pass over all who have best positions there.
pub fn read_best(plan: &BestPlayersPlan, reader: &Reader) -> Result<BestOfServer, StoreError> {
    let mut best = BestOfServer::default();
    reader.each_best(plan.server, &mut |player, positions: BestPositions| {
        let of_player = positions.top_three_where(|week| !plan.open_weeks.contains(&week));
        for (players, places) in best.0.iter_mut().zip(of_player) {
            insert(players, player, places);
        }
    })?;
    Ok(best)
}

/// Inserts a player into a list of at most [`BEST_PLAYERS`], in order.
fn insert(players: &mut Vec<(PlayerKey, Places)>, player: PlayerKey, places: Places) {
    let at = players.partition_point(|(_, other)| order(other) <= order(&places));
    if !places.is_empty() && at < BEST_PLAYERS {
        players.truncate(BEST_PLAYERS - 1);
        players.insert(at, (player, places));
    }
}

/// Orders players by their best position, then their second, then their third; a missing position
/// is the worst. Of equal players, the one with the earlier weeks comes first.
fn order(places: &Places) -> ([u32; 3], [u32; 3]) {
    let place = |n: usize| places.get(n).map_or((u32::MAX, u32::MAX), |(position, week)| (*position, week.0));
    let places = [place(0), place(1), place(2)];
    (places.map(|(position, _)| position), places.map(|(_, week)| week))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_found_by_parts_of_their_names() {
        let week = |key, maps: &[(u32, u64)]| {
            let sums =
                |&(map, player_ms): &(u32, u64)| (MapKey(map), MapSums { servers: 1, played_ms: 60_000, player_ms });
            let player_ms = maps.iter().map(|(_, player_ms)| player_ms).sum();
            Arc::new(MapWeek { week: WeekKey(key), is_closed: true, player_ms, maps: maps.iter().map(sums).collect() })
        };
        let weeks = vec![week(2, &[(1, 30_000), (2, 60_000)]), week(1, &[(2, 60_000), (3, 50_000), (4, 0)])];
        let names = [(1, "q3dm6"), (2, "Q3DM17"), (3, "pro-q3dm6"), (4, "q3dm6x"), (5, "never played")];
        let names = names.map(|(key, name)| (MapKey(key), name.to_owned())).to_vec();
        let history = MapHistory { totals: totals(&weeks, names), weeks, counted: Vec::new() };
        let found = |text: Option<&str>, count| {
            history.most_played(text, count).into_iter().map(|map| map.map_key).collect::<Vec<_>>()
        };
        assert_eq!(found(None, 3), [2, 3, 1]);
        assert_eq!(found(Some("Q3dm6"), 9), [1, 4, 3]);
        assert_eq!(found(Some("Q3dm6"), 2), [1, 4]);
        assert_eq!(found(Some("q3dm1"), 9), [2]);
        assert_eq!((found(Some("dm"), 9), found(Some("never"), 9)), (vec![], vec![]), "too short, not played");
        let most = &history.totals[0];
        assert_eq!((most.weeks, most.minutes, most.average_players, most.share), (2, 2.0, 1.0, 0.6));
    }

    #[test]
    fn best_players_are_in_order_of_their_positions() {
        let mut players = Vec::new();
        let lists: [&[(u32, u32)]; 6] =
            [&[(1, 9)], &[(1, 5), (2, 6)], &[(1, 5), (3, 6), (3, 7)], &[(2, 1)], &[], &[(1, 4)]];
        for (player, places) in lists.iter().enumerate() {
            let places = places.iter().map(|&(position, week)| (position, WeekKey(week))).collect();
            insert(&mut players, PlayerKey(player as u32), places);
        }
        let order: Vec<u32> = players.iter().map(|(player, _)| player.0).collect();
        assert_eq!(order, [1, 2, 5, 0, 3]);
        for player in 10..30 {
            insert(&mut players, PlayerKey(player), vec![(7, WeekKey(player))]);
        }
        assert_eq!(players.len(), BEST_PLAYERS);
        assert_eq!(players[9].1, [(7, WeekKey(14))]);
        insert(&mut players, PlayerKey(99), vec![(1, WeekKey(1)); 3]);
        assert_eq!((players.len(), players[0].0), (BEST_PLAYERS, PlayerKey(99)));
    }
}
