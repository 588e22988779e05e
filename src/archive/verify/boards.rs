//! Compares published boards.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{ExpectedRows, RowDifference, Verification, compare};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::sql::{comma_separated, literal, literals};
use crate::archive::write::tables::{TOP_BOARD, TOP_BOARD_ROW};
use crate::archive::write::top_boards::{board_key, content_hash, entry_values, head_values};
use crate::model::PlayerKey;
use crate::model::top_board::{TopBoard, TopBoardKey, TopEntry};

impl Archive {
    /// Compares published boards, at least one. Adds their keys to `keys`.
    pub async fn verify_top_boards(
        &mut self,
        boards: &[TopBoard],
        keys: &mut BTreeSet<u64>,
    ) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        self.begin_reading().await?;
        self.compare_boards(boards, keys, &mut all).await?;
        self.end_reading().await?;
        Ok(all)
    }

    async fn compare_boards(
        &mut self,
        boards: &[TopBoard],
        keys: &mut BTreeSet<u64>,
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let (mut heads, mut rows) = (ExpectedRows::new(&TOP_BOARD), ExpectedRows::new(&TOP_BOARD_ROW));
        for board in boards {
            let key = board_key(board, &board.window);
            heads.add(literals(|row| head_values(row, board, key, 0)));
            let previous = self.previous_positions(board).await;
            let previous = previous.map_err(|fault| fault.classify(&self.target, TOP_BOARD_ROW.name))?;
            for (entry, position) in board.entries.iter().zip(1..) {
                rows.add(literals(|row| entry_values(row, key, position, entry, &previous)));
            }
        }
        let of_boards: Vec<u64> = boards.iter().map(|board| board_key(board, &board.window)).collect();
        let condition = format!("board IN ({})", comma_separated(&of_boards));
        keys.extend(of_boards);
        let mut found = self.read_rows(&TOP_BOARD, &condition).await?;
        // The last value is the time of publication.
        heads
            .rows
            .values_mut()
            .chain(found.values_mut())
            .filter_map(|values| values.last_mut())
            .for_each(String::clear);
        compare(&heads, &found, all);
        compare(&rows, &self.read_rows(&TOP_BOARD_ROW, &condition).await?, all);
        Ok(())
    }

    /// Finds published boards of a window that there should not be. `boards`: the keys of all others, of which `last` is
    /// one.
    pub async fn verify_surplus_boards(
        &mut self,
        boards: &BTreeSet<u64>,
        last: &TopBoard,
    ) -> Result<Verification, ArchiveError> {
        let (window_type, label) = (literal(&last.window_type), literal(&last.window));
        let condition = format!("window_type = {window_type} AND window_label = {label}");
        let mut found = self.read_rows(&TOP_BOARD, &condition).await?;
        found.retain(|key, _| key[0].parse().is_ok_and(|board| !boards.contains(&board)));
        let mut all = Verification::default();
        compare(&ExpectedRows::new(&TOP_BOARD), &found, &mut all);
        Ok(all)
    }

    /// Compares published boards of a window that is not closed with what was published last: `published` has a hash of
    /// each board; others are not compared. Adds their keys to `keys`.
    pub async fn verify_open_boards(
        &mut self,
        boards: &[TopBoard],
        published: &FxHashMap<TopBoardKey, u64>,
        keys: &mut BTreeSet<u64>,
    ) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        self.begin_reading().await?;
        for board in boards {
            let key = board_key(board, &board.window);
            keys.insert(key);
            let Some(hash) = published.get(&board.key) else { continue };
            let table = TOP_BOARD_ROW.name;
            let select = format!("SELECT player, score, reached_ms FROM {table} WHERE board = {key} ORDER BY position");
            let entries: Vec<(u32, f64, i64)> = self.all(table, &select).await?;
            let entry = |(player, score, reached_ms)| TopEntry { player: PlayerKey(player), score, reached_ms };
            let size = self.first("top_board", &format!("SELECT players FROM top_board WHERE board = {key}")).await?;
            // The board as it is in the archive: its other columns are compared with those of the state.
            let entries = entries.into_iter().map(entry).collect();
            let found = TopBoard { size: size.unwrap_or_default(), entries, ..board.clone() };
            if content_hash(found.size, false, &found.entries) != *hash {
                all.differences.push(RowDifference {
                    column: Some("content"),
                    expected: Some("as published last".to_owned()),
                    found: Some("changed".to_owned()),
                    ..RowDifference::surplus(table, vec![("board", key.to_string())])
                });
            }
            self.compare_boards(&[found], keys, &mut all).await?;
        }
        self.end_reading().await?;
        Ok(all)
    }
}
