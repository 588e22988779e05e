//! Credits the time between two snapshots to the map.

use crate::engine::{GlobalState, ReadError, StoreReader};
use crate::model::ServerKey;
use crate::model::commit::MapRowKey;
use crate::model::server::CurrentMapRow;

impl GlobalState {
    pub(super) fn credit_map_time(
        &mut self,
        source: &dyn StoreReader,
        map_time: &mut Option<CurrentMapRow>,
        key: MapRowKey,
        gap_ms: i64,
        assumed: u32,
    ) -> Result<(), ReadError> {
        let MapRowKey { week, server, map } = key;
        if !matches!(map_time, Some(m) if m.week == week && m.map == map) {
            self.flush_map_time(server, map_time.take());
            let pending = self.pending.map_rows.get(&(week, server)).and_then(|rows| rows.get(&map));
            let row = match pending {
                Some(row) => *row,
                None => source.map_row(key)?.unwrap_or_default(),
            };
            *map_time = Some(CurrentMapRow { week, map, row });
        }
        if let Some(CurrentMapRow { row, .. }) = map_time {
            row.played_ms += gap_ms as u64;
            row.player_ms += gap_ms as u64 * u64::from(assumed);
        }
        Ok(())
    }

    pub(in crate::engine) fn flush_map_time(&mut self, server: ServerKey, map_time: Option<CurrentMapRow>) {
        if let Some(CurrentMapRow { week, map, row }) = map_time {
            if self.records_archive_changes() {
                self.archive_changes.add_map(week, server, map);
            }
            self.pending.map_rows.entry((week, server)).or_default().insert(map, row);
        }
    }
}
