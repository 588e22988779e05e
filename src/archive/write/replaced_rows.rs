//! Finds which rows of a week the archive has before they are written: which jobs replace rows, and
//! which rows remain.

use std::collections::{BTreeMap, BTreeSet};

use super::kept_totals::{KeptTotals, OTHER_SERVERS_MAX};
use super::sums::Sums;
use super::tables::{PLAYER_WEEK, SERVER_WEEK};
use super::weeks::{by_span, player_range_condition};
use super::{OperationContext, PLAYERS_MAX, TransactionError};
use crate::archive::connect::{Archive, NameCheck};
use crate::archive::sql::in_group;
use crate::model::archive::WeekArchive;

/// Servers in one statement.
const SERVERS_MAX: usize = 500;

/// The rows of some servers in one week, before they are written.
#[derive(Default)]
pub(super) struct ReplacedRows {
    /// Servers whose jobs have all rows, and that have other rows in the archive, or may have.
    pub servers_with_other_maps: BTreeSet<u32>,
    /// Servers whose jobs have all rows, and that have rows of other players.
    pub servers_with_other_players: BTreeSet<u32>,
    /// Players in the jobs who have rows that the jobs do not replace, except those in `kept_totals`.
    pub players_with_other_rows: BTreeSet<u32>,
    /// Those of them whose next totals need not be computed from all rows.
    pub players_on_many_servers: BTreeSet<u32>,
    /// The totals of players without the rows that the jobs replace.
    pub kept_totals: BTreeMap<u32, Sums>,
}

impl Archive {
    /// Finds the rows of a week that these jobs do not replace. Call it before their rows are written:
    /// rows that a transaction has changed take several times as long to read.
    pub(super) async fn replaced_rows(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
    ) -> Result<ReplacedRows, TransactionError> {
        let mut rows = ReplacedRows::default();
        // By server: rows of players in its job.
        let KeptTotals { by_player, mut replaced } = self.kept_totals(week, jobs).await?;
        let mut written: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (&server, job) in jobs {
            for row in job.rows.iter().filter(|row| !by_player.contains_key(&row.player.0)) {
                written.entry(row.player.0).or_default().insert(server);
            }
        }
        for (player, kept) in by_player {
            match kept {
                Some(sums) => _ = rows.kept_totals.insert(player, sums),
                None => _ = rows.players_with_other_rows.insert(player),
            }
        }
        let mut others: BTreeMap<u32, usize> = BTreeMap::new();
        self.doing = PLAYER_WEEK.name;
        for players in written.keys().copied().collect::<Vec<_>>().chunks(PLAYERS_MAX) {
            // This reads only the index. Without FORCE the database may read all of an index that
            // begins with the week.
            let select = format!(
                "SELECT player, server FROM player_week FORCE INDEX (player_week_by_player) WHERE {}",
                in_group(("week", week), "player", players)
            );
            for (player, server) in self.rows::<(u32, u32)>(&select).await.doing(PLAYER_WEEK.name)? {
                if written[&player].contains(&server) {
                    *replaced.entry(server).or_default() += 1;
                } else {
                    *others.entry(player).or_default() += 1;
                }
            }
        }
        rows.players_with_other_rows.extend(others.keys());
        let on_many = others.into_iter().filter(|(_, servers)| *servers > OTHER_SERVERS_MAX);
        rows.players_on_many_servers = on_many.map(|(player, _)| player).collect();
        let known = self.completely_replaced(week, jobs).await?;
        for (span, servers) in by_span(&known) {
            for servers in servers.chunks(SERVERS_MAX) {
                let count = format!(
                    "SELECT server, COUNT(*) FROM player_week FORCE INDEX (PRIMARY) WHERE {}{} GROUP BY server",
                    player_range_condition(span),
                    in_group(("week", week), "server", servers)
                );
                let counted = self.rows::<(u32, usize)>(&count).await.doing(PLAYER_WEEK.name)?;
                let replaced = |server: &u32| replaced.get(server).copied().unwrap_or(0);
                let with_others = counted.into_iter().filter(|(server, rows)| *rows > replaced(server));
                rows.servers_with_other_players.extend(with_others.map(|(server, _)| server));
            }
        }
        rows.servers_with_other_maps =
            known.iter().filter(|(_, job)| job.span.after.is_none()).map(|(&server, _)| server).collect();
        Ok(rows)
    }

    /// The jobs with all rows of a server whose week may have other rows in the archive. While a resync fills the
    /// archive, a week without a row in `server_week` has none in other tables.
    async fn completely_replaced<'j>(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &'j WeekArchive>,
    ) -> Result<BTreeMap<u32, &'j WeekArchive>, TransactionError> {
        let mut complete: BTreeMap<u32, &WeekArchive> =
            jobs.iter().filter(|(_, job)| job.is_complete).map(|(&server, job)| (server, *job)).collect();
        if complete.is_empty() || self.name_check != NameCheck::Skip {
            return Ok(complete);
        }
        self.doing = SERVER_WEEK.name;
        let among = in_group(("week", week), "server", complete.keys());
        let select = format!("SELECT server FROM {} FORCE INDEX (PRIMARY) WHERE {among}", SERVER_WEEK.name);
        let known: BTreeSet<u32> = self.rows::<u32>(&select).await.doing(SERVER_WEEK.name)?.into_iter().collect();
        // The first chunk of a large week has inserted that row already.
        complete.retain(|server, job| known.contains(server) || job.span.after.is_some());
        Ok(complete)
    }
}
