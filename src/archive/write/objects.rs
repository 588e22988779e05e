//! The rows of objects that are written whenever they change: names, servers, best positions and sessions. The rows
//! of weeks are in [`weeks`](super::weeks).

use std::collections::{BTreeMap, BTreeSet};

use super::surplus::Keys;
use super::tables::{
    BEST_POSITION, GAME, LISTED, MAP, ONLINE_PLAYER, PLAYER, PLAYER_SESSION, PLAYER_WORD, SCREENED, SERIES, SERVER,
    SERVER_SCREENING, SERVER_SERIES, SERVER_TAG, SERVER_WORD, TAGS, WORDS,
};
use super::weeks::{best_position_values, best_rows, player_range_condition};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::error::{ArchiveError, StatementError};
use crate::archive::sql::{Table, Values, comma_separated, literal, literals, truncate_chars};
use crate::archive::upsert::Upsert;
use crate::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::archive::{ArchiveJob, BestPositionsArchive, KeyRange, ObjectRange, PlayerKeyRange, ServerArchive};
use crate::model::search_text::fold;
use crate::model::{PlayerKey, ServerKey, Session, SessionKey};

/// Widths of columns, in characters. Text that is only displayed is truncated to them.
const GREYLIST_CHARS: usize = 1_000;
const TAG_CHARS: usize = 190;
const WORD_CHARS: usize = 64;

/// Rows that one statement deletes. The database's time for it grows with the square of their number.
const SURPLUS_MAX: usize = 50;

/// Servers in one range that are listed. A resync and a verification read at most 2,000 at once.
const SERVERS_OF_RANGE_MAX: usize = 4_000;

/// Servers in one list. MariaDB joins a temporary table for a list of 1,000 or more.
const SERVERS_MAX: usize = 500;

/// Takes a row of a table: a function that adds its values.
pub(in crate::archive) type PutRow<'p> = dyn FnMut(&'static Table, &dyn Fn(&mut Values<'_>)) + Send + 'p;

/// Kinds of objects, in the order in which they are written: names before objects that refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::archive) enum ObjectKind {
    Game,
    Map,
    Player,
    Server,
    BestPositions,
    Session,
}

impl ObjectKind {
    /// `None`: the job writes no object.
    pub fn of(job: &ArchiveJob) -> Option<ObjectKind> {
        Some(match job {
            ArchiveJob::Game { .. } => ObjectKind::Game,
            ArchiveJob::Map { .. } => ObjectKind::Map,
            ArchiveJob::Player { .. } => ObjectKind::Player,
            ArchiveJob::Server(_) => ObjectKind::Server,
            ArchiveJob::BestPositions(_) => ObjectKind::BestPositions,
            ArchiveJob::Session(..) => ObjectKind::Session,
            ArchiveJob::PlayerRemoved { .. }
            | ArchiveJob::Week(_)
            | ArchiveJob::LargeWeek { .. }
            | ArchiveJob::WeekTotals { .. } => return None,
        })
    }

    /// The tables with rows of such objects.
    pub fn tables(self) -> &'static [&'static Table] {
        match self {
            ObjectKind::Game => &[&GAME],
            ObjectKind::Map => &[&MAP],
            ObjectKind::Player => &[&PLAYER, &PLAYER_WORD],
            ObjectKind::Server => {
                &[&SERVER, &SERVER_SERIES, &SERVER_TAG, &SERVER_WORD, &SERVER_SCREENING, &ONLINE_PLAYER]
            }
            ObjectKind::BestPositions => &[&BEST_POSITION],
            ObjectKind::Session => &[&PLAYER_SESSION],
        }
    }
}

/// The kind of objects in a range.
pub(in crate::archive) fn kind_of(range: &ObjectRange) -> ObjectKind {
    match range {
        ObjectRange::Games(_) => ObjectKind::Game,
        ObjectRange::Maps(_) => ObjectKind::Map,
        ObjectRange::Players(_) => ObjectKind::Player,
        ObjectRange::Servers(_) => ObjectKind::Server,
        ObjectRange::BestPositions { .. } => ObjectKind::BestPositions,
        ObjectRange::Sessions { .. } => ObjectKind::Session,
    }
}

/// `FROM table WHERE ...`: the rows of all objects in a range.
pub(in crate::archive) fn from_range(table: &Table, range: &ObjectRange) -> String {
    let within = |column: &str, keys: &KeyRange| match keys.last {
        Some(last) => format!("{column} BETWEEN {} AND {last}", keys.first),
        None => format!("{column} >= {}", keys.first),
    };
    let name = table.name;
    match range {
        ObjectRange::Games(keys) => format!("FROM {name} WHERE {}", within("game", keys)),
        ObjectRange::Maps(keys) => format!("FROM {name} WHERE {}", within("map", keys)),
        ObjectRange::Players(keys) => format!("FROM {name} WHERE {}", within("player", keys)),
        ObjectRange::Servers(keys) => format!("FROM {name} WHERE {}", within("server", keys)),
        ObjectRange::BestPositions { servers, players, .. } => {
            format!("FROM {name} WHERE {}{}", player_range_condition(*players), within("server", servers))
        }
        ObjectRange::Sessions { servers, day, .. } => {
            let ended = format!("end_ms >= {} AND end_ms < {}", day.start_ms(), day.end_ms());
            match servers.last.map(|last| servers.first..=last) {
                // By the index of times, the database would read the whole day for each range of servers.
                Some(few) if few.clone().count() <= SERVERS_OF_RANGE_MAX => {
                    let few: Vec<u32> = few.collect();
                    let lists = few.chunks(SERVERS_MAX).map(|few| format!("server IN ({})", comma_separated(few)));
                    let among = lists.collect::<Vec<_>>().join(" OR ");
                    format!("FROM {name} FORCE INDEX (PRIMARY) WHERE ({among}) AND {ended}")
                }
                _ => format!(
                    "FROM {name} FORCE INDEX (player_session_by_end) WHERE {ended} AND {}",
                    within("server", servers)
                ),
            }
        }
    }
}

impl Archive {
    /// Writes objects of one kind.
    pub(super) async fn upsert_objects(
        &mut self,
        kind: ObjectKind,
        jobs: &[&ArchiveJob],
    ) -> Result<u64, TransactionError> {
        self.check_names(kind, jobs).await?;
        let merged = self.merge_earlier_best(jobs).await.doing(BEST_POSITION.name)?;
        let merged: Vec<&ArchiveJob> = merged.iter().collect();
        let jobs = if kind == ObjectKind::BestPositions { &merged[..] } else { jobs };
        let mut upserts: Vec<Upsert> = kind.tables().iter().map(|table| self.upsert(table)).collect();
        object_rows(jobs, &mut |table, fill| {
            let upsert = upserts.iter_mut().find(|upsert| upsert.table_name() == table.name);
            upsert.expect("a table of this kind").row(fill);
        });
        let mut rows = 0;
        for upsert in upserts {
            rows += self.execute_upsert(upsert).await?;
        }
        self.delete_surplus_of_servers(jobs).await?;
        self.delete_surplus_best(jobs).await?;
        Ok(rows)
    }

    /// Jobs of best positions, with those of weeks that only the archive knows.
    pub(in crate::archive) async fn merge_earlier_best(
        &mut self,
        jobs: &[&ArchiveJob],
    ) -> Result<Vec<ArchiveJob>, StatementError> {
        let mut merged = Vec::new();
        for job in jobs {
            let ArchiveJob::BestPositions(job) = job else { continue };
            let all = self.with_earlier_best(job.server.0, &job.best).await?;
            let best = all.into_iter().map(|(player, three)| (PlayerKey(player), three).into()).collect();
            merged.push(ArchiveJob::BestPositions(Box::new(BestPositionsArchive { best, ..**job })));
        }
        Ok(merged)
    }

    async fn delete_surplus_best(&mut self, jobs: &[&ArchiveJob]) -> Result<(), TransactionError> {
        if !jobs.iter().any(|job| matches!(job, ArchiveJob::BestPositions(_))) {
            return Ok(());
        }
        let mut found: BTreeMap<u32, usize> = BTreeMap::new();
        for jobs in jobs.chunks(SERVERS_MAX) {
            let servers = jobs.iter().filter_map(|job| match job {
                ArchiveJob::BestPositions(job) if job.players == PlayerKeyRange::ALL => Some(job.server),
                _ => None,
            });
            // No server has key 0.
            let servers = comma_separated(servers.chain([ServerKey(0)]));
            let count = format!(
                "SELECT server, COUNT(*) FROM best_position FORCE INDEX (PRIMARY) WHERE server IN ({servers}) GROUP BY server"
            );
            found.extend(self.rows::<(u32, usize)>(&count).await.doing(BEST_POSITION.name)?);
        }
        for job in jobs {
            let ArchiveJob::BestPositions(job) = job else { continue };
            let written: usize = job.best.iter().map(|it| best_rows(&it.three).count()).sum();
            if found.get(&job.server.0) == Some(&written) {
                // All rows of the server are those that were just written.
                continue;
            }
            let by_player = job.best.iter().map(|it| (it.player.0, it.three.clone())).collect();
            self.delete_surplus_positions(job.server.0, &by_player).await?;
        }
        Ok(())
    }

    async fn delete_surplus_of_servers(&mut self, jobs: &[&ArchiveJob]) -> Result<(), TransactionError> {
        let mut by_key: BTreeMap<u32, &ServerArchive> = BTreeMap::new();
        for job in jobs {
            if let ArchiveJob::Server(server) = job {
                by_key.insert(server.key.0, server);
            }
        }
        let series_of = |key: u32| Keys::from_iter(by_key[&key].series.iter().map(|_| Vec::new()));
        let tags_of = |key: u32| {
            Keys::from_iter(by_key[&key].tags.iter().map(|tag| vec![literal(truncate_chars(tag, TAG_CHARS))]))
        };
        let words_of = |key: u32| {
            Keys::from_iter((1..=hostname_words(by_key[&key]).len()).map(|ordinal| vec![ordinal.to_string()]))
        };
        let screened_of =
            |key: u32| Keys::from_iter(by_key[&key].screened.iter().map(|(reason, _)| vec![literal(reason.name())]));
        let list_of = |key: u32| Keys::from_iter((1..=by_key[&key].list.len()).map(|index| vec![index.to_string()]));
        self.delete_surplus(&SERIES, None, by_key.keys().copied(), series_of).await?;
        self.delete_surplus(&TAGS, None, by_key.keys().copied(), tags_of).await?;
        self.delete_surplus(&WORDS, None, by_key.keys().copied(), words_of).await?;
        self.delete_surplus(&SCREENED, None, by_key.keys().copied(), screened_of).await?;
        self.delete_surplus(&LISTED, None, by_key.keys().copied(), list_of).await?;
        Ok(())
    }

    /// Deletes the rows of objects in a range that `jobs` do not contain, which are all objects that there should be.
    /// Returns whether rows are missing.
    pub(in crate::archive) async fn delete_surplus_objects(
        &mut self,
        range: &ObjectRange,
        jobs: &[&ArchiveJob],
    ) -> Result<bool, ArchiveError> {
        if let ObjectRange::Sessions { is_whole: false, .. } | ObjectRange::BestPositions { is_whole: false, .. } =
            range
        {
            return Ok(false);
        }
        let merged = self.merge_earlier_best(jobs).await;
        let merged = merged.map_err(|fault| fault.classify(&self.target, BEST_POSITION.name))?;
        let merged: Vec<&ArchiveJob> = merged.iter().collect();
        let kind = kind_of(range);
        let jobs = if kind == ObjectKind::BestPositions { &merged[..] } else { jobs };
        let mut lacks_rows = false;
        for table in kind.tables() {
            let mut expected = 0_u64;
            object_rows(jobs, &mut |of, _| expected += u64::from(of.name == table.name));
            let from = from_range(table, range);
            let found: Option<u64> = self.first(table.name, &format!("SELECT COUNT(*) {from}")).await?;
            if found == Some(expected) {
                continue;
            }
            let mut wanted = Keys::new();
            object_rows(jobs, &mut |of, fill| {
                if of.name == table.name {
                    let mut key = literals(|row| fill(row));
                    key.truncate(table.key_columns);
                    wanted.insert(key);
                }
            });
            let columns = table.columns[..table.key_columns].join(", ");
            let found: Keys = self.read(table.name, &format!("SELECT {columns} {from}")).await?.into_iter().collect();
            lacks_rows |= wanted.difference(&found).next().is_some();
            let surplus: Vec<String> =
                found.difference(&wanted).map(|key| format!("({})", comma_separated(key))).collect();
            for surplus in surplus.chunks(SURPLUS_MAX) {
                let keys = comma_separated(surplus);
                let delete = format!("DELETE FROM {} WHERE ({columns}) IN ({keys})", table.name);
                self.run_fenced(table.name, &delete).await?;
            }
        }
        Ok(lacks_rows)
    }
}

/// All rows of objects of one kind, which are in order of key: table by table, each in the order of its primary key as
/// far as that is simple.
pub(in crate::archive) fn object_rows(jobs: &[&ArchiveJob], put: &mut PutRow<'_>) {
    let mut servers: Vec<&ServerArchive> = Vec::new();
    for job in jobs {
        match job {
            ArchiveJob::Game { key, name } => put(&GAME, &|row| _ = row.uint(key.0).text(name)),
            ArchiveJob::Map { key, name } => put(&MAP, &|row| _ = row.uint(key.0).text(name)),
            ArchiveJob::Player { key, game, name, display } => {
                let display = truncate_chars(display, NAME_BYTES_MAX);
                put(&PLAYER, &|row| _ = row.uint(key.0).uint(game.0).text(name).text(display));
                // The name of a key never changes, so neither do its words.
                for (ordinal, word) in (1_u32..).zip(later_words(name)) {
                    put(&PLAYER_WORD, &|row| _ = row.uint(key.0).uint(ordinal).text(word).uint(game.0));
                }
            }
            ArchiveJob::Server(server) => servers.push(server),
            ArchiveJob::BestPositions(best) => {
                for of_player in &best.best {
                    for position in best_rows(&of_player.three) {
                        put(&BEST_POSITION, &|row| {
                            best_position_values(row, best.server.0, of_player.player.0, position);
                        });
                    }
                }
            }
            ArchiveJob::Session(key, session) => put(&PLAYER_SESSION, &|row| session_values(row, key, session)),
            ArchiveJob::PlayerRemoved { .. }
            | ArchiveJob::Week(_)
            | ArchiveJob::LargeWeek { .. }
            | ArchiveJob::WeekTotals { .. } => {}
        }
    }
    server_rows(&servers, put);
}

fn server_rows(servers: &[&ServerArchive], put: &mut PutRow<'_>) {
    for server in servers {
        put(&SERVER, &|row| server_values(row, server));
    }
    for (key, series) in servers.iter().filter_map(|server| Some((server.key.0, server.series.as_ref()?))) {
        put(&SERVER_SERIES, &|row| {
            row.uint(key).int(series.newest_ten_minutes_ms).int(series.newest_hour_ms);
            row.int(series.newest_day_ms).int(series.newest_week_ms);
            row.bytes(&series.ten_minutes).bytes(&series.hours).bytes(&series.days);
            row.bytes(&series.weeks).bytes(&series.ranks);
            row.opt_uint(series.newest_rank_week.map(|week| week.0));
        });
    }
    for server in servers {
        for tag in server.tags.iter().map(|tag| truncate_chars(tag, TAG_CHARS)).collect::<BTreeSet<_>>() {
            let rank = server.rank.filter(|_| !server.removed);
            put(&SERVER_TAG, &|row| _ = row.uint(server.key.0).text(tag).uint(server.players).opt_uint(rank));
        }
    }
    for server in servers {
        for (ordinal, word) in (1_u32..).zip(hostname_words(server)) {
            put(&SERVER_WORD, &|row| _ = row.uint(server.key.0).uint(ordinal).text(word));
        }
    }
    for server in servers {
        for (reason, applied_ms) in &server.screened {
            put(&SERVER_SCREENING, &|row| _ = row.uint(server.key.0).text(reason.name()).int(*applied_ms));
        }
    }
    for server in servers {
        for (list_index, entry) in (1_u32..).zip(&server.list) {
            put(&ONLINE_PLAYER, &|row| {
                row.uint(server.key.0).uint(list_index).text(truncate_chars(&entry.name, NAME_BYTES_MAX));
                row.text(truncate_chars(&entry.display, NAME_BYTES_MAX)).opt_int(entry.points);
                row.opt_uint(entry.player.map(|player| player.0)).bool(entry.spectator);
                row.opt_uint(server.game.map(|game| game.0));
            });
        }
    }
}

fn server_values(row: &mut Values<'_>, server: &ServerArchive) {
    row.uint(server.key.0).text(&server.url).text(truncate_chars(&server.hostname, TEXT_BYTES_MAX));
    row.opt_uint(server.game.map(|game| game.0)).opt_uint(server.map.map(|map| map.0));
    row.uint(server.slots).uint(server.class).uint(server.missed).bool(server.online);
    row.uint(server.players).uint(server.assumed_players).int(server.total_points);
    row.uint(server.bots_unidentified).int(server.added_ms);
    row.opt_int(server.last_scan_ms).opt_int(server.last_seen_ms);
    row.opt_uint(server.rank).opt_uint(server.rank_week.map(|week| week.0));
    row.opt_text(server.greylist_reason.as_deref().map(|why| truncate_chars(why, GREYLIST_CHARS))).bool(server.removed);
}

fn session_values(row: &mut Values<'_>, key: &SessionKey, session: &Session) {
    row.uint(key.server.0).int(key.end_ms).uint(key.player.0).uint(key.origin.0);
    row.int(session.start_ms).opt_int(session.points).uint(session.map.0).uint(session.seen);
}

/// Nobody searches for removed servers.
fn hostname_words(server: &ServerArchive) -> Vec<&str> {
    if server.removed { Vec::new() } else { later_words(truncate_chars(&server.hostname, TEXT_BYTES_MAX)) }
}

/// The rest of a name from its second and each later word on. A word begins with a letter or a digit behind any other
/// character. Of those that the database takes for equal, the first.
fn later_words(name: &str) -> Vec<&str> {
    let (mut before, mut seen) = (None, BTreeSet::new());
    let mut words = Vec::new();
    for (at, character) in name.char_indices() {
        let begins = character.is_alphanumeric() && before.is_some_and(|before: char| !before.is_alphanumeric());
        before = Some(character);
        if !begins {
            continue;
        }
        let word = truncate_chars(&name[at..], WORD_CHARS);
        // Words of a short name are whole, and so have different lengths.
        if name.len() <= WORD_CHARS || seen.insert(fold(word)) {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_behind_other_characters() {
        assert_eq!(later_words("[CLAN] Visor_the-2nd"), ["CLAN] Visor_the-2nd", "Visor_the-2nd", "the-2nd", "2nd"]);
        assert_eq!(later_words("Visor"), [""; 0]);
        assert_eq!(later_words("|été 名前"), ["été 名前", "名前"]);
        assert_eq!(later_words("😀 "), [""; 0]);
    }

    /// They would be one row, which each write changes.
    #[test]
    fn long_words_are_not_equal_in_the_database() {
        let name = "a A é e ".repeat(20);
        let words = later_words(name.trim_end());
        let folded: BTreeSet<String> = words.iter().map(|word| fold(word)).collect();
        assert_eq!((words.len(), words[0].chars().count()), (folded.len(), 64));
    }
}
