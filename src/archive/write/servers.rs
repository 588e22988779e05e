//! Writes the state and the series of servers.

use std::collections::{BTreeMap, BTreeSet};

use super::TransactionError;
use super::surplus::Keys;
use super::tables::{
    LISTED, ONLINE_PLAYER, SCREENED, SERIES, SERVER, SERVER_SCREENING, SERVER_SERIES, SERVER_TAG, TAGS,
};
use crate::archive::connect::Archive;
use crate::archive::sql::{literal, truncate_chars};
use crate::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::archive::ServerArchive;

/// Widths of columns, in characters. Text that is only displayed is truncated to them.
const GREYLIST_CHARS: usize = 1_000;
const TAG_CHARS: usize = 190;

impl Archive {
    pub(super) async fn upsert_servers(&mut self, servers: &[&ServerArchive]) -> Result<u64, TransactionError> {
        let urls: Vec<(u32, &str)> = servers.iter().map(|server| (server.key.0, server.url.as_str())).collect();
        self.check_keys("server", "server", "url", &urls).await?;

        let mut state = self.upsert(&SERVER);
        let mut series = self.upsert(&SERVER_SERIES);
        let mut tags = self.upsert(&SERVER_TAG);
        let mut screened = self.upsert(&SERVER_SCREENING);
        let mut listed = self.upsert(&ONLINE_PLAYER);
        for server in servers {
            let key = server.key.0;
            state.row(|row| {
                row.uint(key).text(&server.url).text(truncate_chars(&server.hostname, TEXT_BYTES_MAX));
                row.opt_uint(server.game.map(|game| game.0)).opt_uint(server.map.map(|map| map.0));
                row.uint(server.slots).uint(server.class).uint(server.missed).bool(server.online);
                row.uint(server.players).uint(server.assumed_players).int(server.total_points);
                row.uint(server.bots_unidentified)
                    .int(server.added_ms)
                    .opt_int(server.last_scan_ms)
                    .opt_int(server.last_seen_ms);
                row.opt_uint(server.rank).opt_uint(server.rank_week.map(|week| week.0));
                row.opt_text(server.greylist_reason.as_deref().map(|why| truncate_chars(why, GREYLIST_CHARS)))
                    .bool(server.removed);
            });
            if let Some(values) = &server.series {
                series.row(|row| {
                    row.uint(key).int(values.newest_ten_minutes_ms).int(values.newest_hour_ms);
                    row.int(values.newest_day_ms).int(values.newest_week_ms);
                    row.bytes(&values.ten_minutes).bytes(&values.hours).bytes(&values.days);
                    row.bytes(&values.weeks).bytes(&values.ranks);
                    row.opt_uint(values.newest_rank_week.map(|week| week.0));
                });
            }
            for tag in server.tags.iter().map(|tag| truncate_chars(tag, TAG_CHARS)).collect::<BTreeSet<_>>() {
                tags.row(|row| _ = row.uint(key).text(tag));
            }
            for it in &server.screened {
                screened.row(|row| _ = row.uint(key).text(it.reason.name()).int(it.applied_ms));
            }
            for (list_index, entry) in (1_u32..).zip(&server.list) {
                listed.row(|row| {
                    row.uint(key).uint(list_index).text(truncate_chars(&entry.name, NAME_BYTES_MAX));
                    row.text(truncate_chars(&entry.display, NAME_BYTES_MAX)).opt_int(entry.points);
                    row.opt_uint(entry.player.map(|player| player.0)).bool(entry.spectator);
                });
            }
        }
        let mut rows = 0;
        for upsert in [state, series, tags, screened, listed] {
            rows += self.execute_upsert(upsert).await?;
        }

        let by_key: BTreeMap<u32, &ServerArchive> = servers.iter().map(|server| (server.key.0, *server)).collect();
        let series_of = |key: u32| Keys::from_iter(by_key[&key].series.iter().map(|_| Vec::new()));
        let tags_of = |key: u32| {
            Keys::from_iter(by_key[&key].tags.iter().map(|tag| vec![literal(truncate_chars(tag, TAG_CHARS))]))
        };
        let screened_of =
            |key: u32| Keys::from_iter(by_key[&key].screened.iter().map(|it| vec![literal(it.reason.name())]));
        let list_of = |key: u32| Keys::from_iter((1..=by_key[&key].list.len()).map(|index| vec![index.to_string()]));
        self.delete_surplus(&SERIES, None, by_key.keys().copied(), series_of).await?;
        self.delete_surplus(&TAGS, None, by_key.keys().copied(), tags_of).await?;
        self.delete_surplus(&SCREENED, None, by_key.keys().copied(), screened_of).await?;
        self.delete_surplus(&LISTED, None, by_key.keys().copied(), list_of).await?;
        Ok(rows)
    }
}
