//! The data that a reader of all weeks needs: which servers count, and which weeks.

use rustc_hash::FxHashMap;

use super::{ReadModel, ServerState, ViewError};
use crate::model::commit::MapRowKey;
use crate::model::row::MapRow;
use crate::model::{MapKey, ServerKey, ServerUrl, WeekKey};
use crate::view::history::MapView;

/// The servers whose map rows are summed up.
#[derive(Clone, Debug)]
pub struct MapHistoryPlan {
    /// Weeks with rows, oldest first, and whether they are closed.
    pub weeks: Vec<(WeekKey, bool)>,
    /// By server key; greylisted and removed ones do not count.
    pub counted: Vec<bool>,
    /// Rows that are newer than those in the store, by week, server and map.
    pub newer: FxHashMap<MapRowKey, MapRow>,
    /// Names of all maps.
    pub names: Vec<(MapKey, String)>,
}

/// The server whose best positions are listed.
#[derive(Clone, Debug)]
pub struct BestPlayersPlan {
    pub server: ServerKey,
    /// Weeks that are not closed on the server, because they were reopened: their positions do not
    /// count.
    pub open_weeks: Vec<WeekKey>,
}

impl ReadModel {
    pub fn map_history_plan(&self) -> MapHistoryPlan {
        let weeks = self.weeks().iter().map(|state| (state.week, self.is_closed(state.week))).collect();
        let mut counted = vec![false; self.servers.end().0 as usize];
        for (server, ServerState { record, .. }) in self.servers.iter() {
            counted[server.0 as usize] = !record.removed && record.greylist_reason.is_none();
        }
        let mut newer: FxHashMap<MapRowKey, MapRow> = FxHashMap::default();
        for (&(week, server), rows) in &self.global.pending.map_rows {
            newer.extend(rows.iter().map(|(map, row)| (MapRowKey { week, server, map: *map }, *row)));
        }
        for (server, state) in self.listed_servers() {
            newer.extend(
                state.record.map_time.map(|live| (MapRowKey { week: live.week, server, map: live.map }, live.row)),
            );
        }
        let names = &self.global.maps;
        let names = names.keys().map(|key| (MapKey(key), names.name(key).to_owned())).collect();
        MapHistoryPlan { weeks, counted, newer, names }
    }

    /// A map without its weeks.
    pub fn map(&self, map: &str) -> Result<MapView, ViewError> {
        let key = self.global.maps.find(map).ok_or_else(|| ViewError::UnknownMap {
            map: map.to_owned(),
            nearest: crate::nearest::nearest(map, self.global.maps.names()).map(str::to_owned),
        })?;
        let mut view =
            MapView { map_key: key, map: map.to_owned(), servers_online: 0, players_online: 0, weeks: Vec::new() };
        for (_, server) in self.listed_servers() {
            if server.record.map == Some(MapKey(key)) && self.is_online(&server.record) {
                view.servers_online += 1;
                view.players_online += u64::from(server.record.believed_count());
            }
        }
        Ok(view)
    }

    pub fn best_players_plan(&self, url: &ServerUrl) -> Result<BestPlayersPlan, ViewError> {
        let (server, state) = self.find_server(url)?;
        if state.record.removed {
            return Err(ViewError::RemovedServer(url.as_str().to_owned()));
        }
        let weeks = self.weeks().iter().map(|state| state.week);
        Ok(BestPlayersPlan { server, open_weeks: weeks.filter(|week| !self.is_server_closed(*week, server)).collect() })
    }
}
