//! The record of a server from its archived values.
//!
//! The record has no present players, so the players of the next list are credited as after an
//! invisible time.

use super::TIME_MS_MAX;
use crate::model::archive::ServerArchive;
use crate::model::calendar::Calendar;
use crate::model::server::{Class, Screening, SeriesRecord, ServerRecord};
use crate::model::{ServerUrl, TagKey};
use crate::series::slots;

/// Error: why the values do not fit.
pub(super) fn restore(
    archived: ServerArchive,
    url: ServerUrl,
    tags: Vec<TagKey>,
    series: Option<&SeriesRecord>,
    calendar: &Calendar,
) -> Result<ServerRecord, String> {
    let class = Class::new(archived.class).ok_or_else(|| format!("class {} is not one of 1 to 7", archived.class))?;
    let times = [Some(archived.added_ms), archived.last_scan_ms, archived.last_seen_ms];
    if let Some(t_ms) = times.into_iter().flatten().find(|t_ms| !(0..TIME_MS_MAX).contains(t_ms)) {
        return Err(format!("{t_ms} is not a time in Unix ms"));
    }
    // The median of these counts is the archived one. An offline server has no players now.
    let assumed = archived.assumed_players;
    let last = if archived.online { archived.players } else { assumed };
    let counts = archived.last_seen_ms.map(|_| [assumed, assumed, last]);
    let mut screening = Screening { bots_unidentified: archived.bots_unidentified, ..Screening::default() };
    for (reason, applied_ms) in archived.screened {
        screening.record_reason(reason, applied_ms);
    }
    Ok(ServerRecord {
        url,
        tags,
        greylist_reason: archived.greylist_reason,
        removed: archived.removed,
        added_ms: archived.added_ms,
        class,
        missed: archived.missed,
        last_scan_ms: archived.last_scan_ms,
        last_seen_ms: archived.last_seen_ms,
        game: archived.game,
        map: archived.map,
        hostname: archived.hostname,
        slots: archived.slots,
        rank: archived.rank,
        rank_week: archived.rank_week,
        counts: counts.into_iter().flatten().collect(),
        count: archived.players,
        total_points: archived.total_points,
        last_snapshot: None,
        map_time: None,
        sums: series.map(|series| slots::resume(series, calendar)).unwrap_or_default(),
        screening: Some(Box::new(screening)).filter(|screening| **screening != Screening::default()),
        recent: Default::default(),
        imported: false,
        scan_budget: None,
    })
}
