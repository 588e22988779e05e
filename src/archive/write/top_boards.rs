//! Writes published boards. A board is one transaction: readers see its old
//! or its new positions. Rows that are equal in the archive are not written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use rustc_hash::FxHasher;
use siphasher::sip::SipHasher24;

use super::tables::{TOP_BOARD, TOP_BOARD_ROW};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::error::{ArchiveError, StatementError};
use crate::archive::sql::{Values, literal, truncate_chars};
use crate::limits::NAME_BYTES_MAX;
use crate::model::top_board::{TopBoard, TopEntry};

/// Key of a board in a window: the same for the same scope, window and ranking in every state.
pub(in crate::archive) fn board_key(board: &TopBoard, window: &str) -> u64 {
    let mut hasher = SipHasher24::new();
    for part in [board.key.scope.name(), &board.scope_name, window, board.key.ranking.name()] {
        hasher.write(part.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

/// Replaces the spaces at the end of a name.
const SPACES: char = '\u{2420}';

/// The name of a scope in the archive. MySQL takes names for equal that differ in spaces at their ends, and no two scopes
/// may have the same one: such a name gets a hash at its end.
fn scope_text(name: &str) -> Cow<'_, str> {
    if !name.ends_with(' ') && !name.contains(SPACES) {
        return truncate_chars(name, NAME_BYTES_MAX).into();
    }
    let hash = SipHasher24::new().hash(name.as_bytes());
    format!("{}{SPACES}{hash:016x}", truncate_chars(name.trim_end_matches(' '), NAME_BYTES_MAX - 17)).into()
}

/// The values of the row of a board.
pub(in crate::archive) fn head_values(row: &mut Values<'_>, board: &TopBoard, key: u64, now_ms: i64) {
    row.uint(key).text(board.key.scope.name()).text(&scope_text(&board.scope_name));
    row.text(&board.window_type).text(&board.window);
    row.opt_int(board.start_ms).opt_int(board.end_ms).text(board.key.ranking.name());
    row.uint(board.size).bool(board.closed).int(now_ms);
}

/// The values of the row of a position. `previous`: positions of players on the board of the window before.
pub(in crate::archive) fn entry_values(
    row: &mut Values<'_>,
    key: u64,
    position: u32,
    entry: &TopEntry,
    previous: &BTreeMap<u32, u32>,
) {
    row.uint(key).uint(position).uint(entry.player.0).double(entry.score).int(entry.reached_ms);
    row.opt_uint(previous.get(&entry.player.0).copied());
}

impl Archive {
    pub(super) async fn upsert_top_board(&mut self, board: &TopBoard, now_ms: i64) -> Result<u64, TransactionError> {
        let (key, table) = (board_key(board, &board.window), TOP_BOARD_ROW.name);
        self.doing = table;
        let previous = self.previous_positions(board).await.doing(table)?;
        let select =
            format!("SELECT position, player, score, reached_ms, previous_position FROM {table} WHERE board = {key}");
        let found: Vec<(u32, u32, f64, i64, Option<u32>)> = self.rows(&select).await.doing(table)?;
        let found: BTreeMap<u32, _> = found
            .into_iter()
            .map(|(position, player, score, reached_ms, previous)| (position, (player, score, reached_ms, previous)))
            .collect();
        let mut head = self.upsert(&TOP_BOARD);
        head.row(|row| head_values(row, board, key, now_ms));
        let mut rows = self.upsert(&TOP_BOARD_ROW);
        for (position, entry) in (1..).zip(&board.entries) {
            let wanted = (entry.player.0, entry.score, entry.reached_ms, previous.get(&entry.player.0).copied());
            if found.get(&position) != Some(&wanted) {
                rows.row(|row| entry_values(row, key, position, entry, &previous));
            }
        }
        let written = self.execute_upsert(head).await? + self.execute_upsert(rows).await?;
        let size = u32::try_from(board.entries.len()).unwrap_or(u32::MAX);
        if found.last_key_value().is_some_and(|(last, _)| *last > size) {
            self.doing = table;
            let delete = format!("DELETE FROM {table} WHERE board = {key} AND position > {size}");
            self.execute(&delete).await.doing(table)?;
        }
        Ok(written)
    }

    /// The positions of players on the published board of the window before.
    pub(in crate::archive) async fn previous_positions(
        &mut self,
        board: &TopBoard,
    ) -> Result<BTreeMap<u32, u32>, StatementError> {
        let Some(window) = &board.previous_window else { return Ok(BTreeMap::new()) };
        let key = board_key(board, window);
        let select = format!("SELECT player, position FROM {} WHERE board = {key}", TOP_BOARD_ROW.name);
        Ok(self.rows::<(u32, u32)>(&select).await?.into_iter().collect())
    }

    /// Deletes the boards of a window that are not in `kept`. Returns whether there are all that are: somebody may have
    /// changed another board so that it was in the way of one of them.
    pub(in crate::archive) async fn delete_other_top_boards(
        &mut self,
        window_type: &str,
        label: &str,
        kept: &BTreeSet<u64>,
    ) -> Result<bool, ArchiveError> {
        let (window_type, label) = (literal(window_type), literal(label));
        // The scopes are few, and found by steps in the unique key. The boards of all windows are many.
        let select = format!(
            "SELECT b.board FROM (SELECT DISTINCT scope_type, scope FROM top_board) s STRAIGHT_JOIN top_board b \
             ON b.scope_type = s.scope_type AND b.scope = s.scope \
             WHERE b.window_type = {window_type} AND b.window_label = {label}"
        );
        let found: Vec<u64> = self.all(TOP_BOARD.name, &select).await?;
        for board in found.iter().filter(|board| !kept.contains(board)) {
            // The rows first: a deleted board leaves none.
            for table in [TOP_BOARD_ROW.name, TOP_BOARD.name] {
                self.run_fenced(table, &format!("DELETE FROM {table} WHERE board = {board}")).await?;
            }
        }
        Ok(kept.iter().all(|board| found.contains(board)))
    }
}

/// A hash of what a board shows.
pub(in crate::archive) fn content_hash(size: u32, closed: bool, entries: &[TopEntry]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(size);
    hasher.write_u8(closed.into());
    for entry in entries {
        hasher.write_u32(entry.player.0);
        hasher.write_u64(entry.score.to_bits());
        hasher.write_i64(entry.reached_ms);
    }
    hasher.finish()
}
