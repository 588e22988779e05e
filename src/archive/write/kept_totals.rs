//! What a transaction leaves of the totals of players on many servers.
//!
//! A name such as "Player" is on thousands of servers, and some of its rows change in nearly every transaction. So the
//! database adds up all rows of such a player only once for each connection. After that, the replaced rows are
//! subtracted from the total and the new ones added. With 8 names on 61,000 servers and more, adding up all rows took
//! a second for each transaction.

use std::collections::BTreeMap;

use super::sums::Sums;
use super::tables::{PLAYER_TOTAL, PLAYER_WEEK};
use super::{OperationContext, PLAYERS_MAX, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::{comma_separated, in_group};
use crate::model::archive::WeekArchive;

/// With rows on more other servers, reading the total and the replaced rows is faster than reading all rows.
pub(super) const OTHER_SERVERS_MAX: usize = 8;

/// What jobs leave of the totals of players on many servers.
#[derive(Default)]
pub(super) struct KeptTotals {
    /// The totals without the rows that the jobs replace; `None`: they must be computed from all rows.
    pub by_player: BTreeMap<u32, Option<Sums>>,
    /// How many rows of these players the jobs replace, by server.
    pub replaced: BTreeMap<u32, usize>,
}

/// The values that [`Sums`] are sums of, except when the player was last seen.
const VALUES: &str = "time_ms, time_est_ms, points, points_est, elo_rounds, elo_rounds_sure, time_est_variance, \
                      points_est_variance";

/// Two numbers, [`VALUES`], and when the player was last seen, Unix ms.
type Row = (u32, u32, u64, u64, i64, f64, u32, u32, u64, u64, Option<i64>);

/// The sums in a row, of this number of servers.
fn sums_of(row: &Row, servers: u32) -> Sums {
    let &(_, _, time_ms, time_est_ms, points, points_est, elo_rounds, elo_rounds_sure, time_est_s2, thousandths, seen) =
        row;
    Sums {
        servers,
        time_ms,
        time_est_ms,
        points,
        points_est,
        elo_rounds,
        elo_rounds_sure,
        time_est_s2,
        points_est_thousandths: thousandths,
        last_seen_ms: seen,
    }
}

impl Archive {
    /// Finds what jobs leave of the totals that were computed from all rows on this connection. Call it before their rows are written.
    pub(super) async fn kept_totals(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
    ) -> Result<KeptTotals, TransactionError> {
        let (mut kept, mut keys) = (KeptTotals::default(), Vec::new());
        let mut written: BTreeMap<u32, Sums> = BTreeMap::new();
        for (&server, job) in jobs {
            for row in job.rows.iter().filter(|row| self.computed_totals.contains(week, row.player.0)) {
                written.entry(row.player.0).or_default().add(&Sums::of_row(row));
                keys.push((server, row.player.0, job.week_start_ms));
            }
        }
        let mut replaced: BTreeMap<u32, Sums> = BTreeMap::new();
        self.doing = PLAYER_WEEK.name;
        for keys in keys.chunks(PLAYERS_MAX) {
            let of_server = |keys: &[(u32, u32, i64)]| {
                format!("(server = {} AND player IN ({}))", keys[0].0, comma_separated(keys.iter().map(|key| key.1)))
            };
            let rows: Vec<String> = keys.chunk_by(|a, b| a.0 == b.0).map(of_server).collect();
            let select = format!(
                "SELECT server, player, {VALUES}, {} + time_reached_after_ms \
                 FROM player_week FORCE INDEX (PRIMARY) WHERE week = {week} AND ({})",
                keys[0].2,
                rows.join(" OR ")
            );
            for row in self.rows::<Row>(&select).await.doing(PLAYER_WEEK.name)? {
                let (server, player, ..) = row;
                replaced.entry(player).or_default().add(&sums_of(&row, 1));
                *kept.replaced.entry(server).or_default() += 1;
            }
        }
        self.doing = PLAYER_TOTAL.name;
        let mut totals: BTreeMap<u32, Sums> = BTreeMap::new();
        for players in written.keys().copied().collect::<Vec<_>>().chunks(PLAYERS_MAX) {
            let select = format!(
                "SELECT player, servers, {VALUES}, last_seen_ms FROM player_total WHERE {}",
                in_group(("week", week), "player", players)
            );
            let rows = self.rows::<Row>(&select).await.doing(PLAYER_TOTAL.name)?;
            totals.extend(rows.iter().map(|row| (row.0, sums_of(row, row.1))));
        }
        let kept_of = |(player, written): (u32, Sums)| {
            let replaced = replaced.remove(&player).unwrap_or_default();
            (player, totals.get(&player).and_then(|total| total.without(&replaced, &written)))
        };
        kept.by_player = written.into_iter().map(kept_of).collect();
        Ok(kept)
    }
}
