//! Updates cached boards after a commit: computes the entries of dirty players again.
//!
//! Refreshing a dirty player costs one update for each group of that player, independent of the
//! total number of groups: the game, and the tags of the servers that the player played on. A
//! player leaves a tag only by a change of a server or by a correction, which names the tags in
//! question.

use super::cache::SharedBoards;
use super::dirty::{DirtyPlayer, DirtyServer, Groups, add_groups};
use super::group::Group;
use super::kept_rows::KeptRows;
use crate::engine::rows::RowPage;
use crate::engine::{Engine, ReadError, ServerState, StateReader};
use crate::model::row::PlayerRow;
use crate::model::{PlayerKey, ServerKey, WindowKey};

/// Adding up so many kept rows takes as long as reading one.
const KEPT_ROWS_PER_READ: usize = 16;

impl Engine {
    /// Refreshes entries of dirty players, or marks players dirty, until it has read about `most` rows. Boards then
    /// show changes that are not committed, too. `only`: in one window. Returns whether there are more.
    pub fn refresh_boards(
        &mut self,
        source: &dyn StateReader,
        only: Option<WindowKey>,
        most: usize,
    ) -> Result<bool, ReadError> {
        let mut left = most;
        while left > 0 {
            let Some(dirty) = self.model.global.board_cache.next_dirty_server(only) else { break };
            let (window, server) = (dirty.window, dirty.server);
            let RowPage { rows, is_last } = self.model.rows_after(source, window, server, dirty.after, left)?;
            left = left.saturating_sub(rows.len().max(1));
            let cache = &mut self.model.global.board_cache;
            rows.iter().for_each(|(player, _)| cache.mark_dirty_leaving(window, *player, &dirty.groups_left));
            let last = rows.last().filter(|_| !is_last);
            cache.expanding = last.map(|(last, _)| DirtyServer { after: Some(*last), ..dirty });
        }
        let windows = only.map_or_else(|| self.model.global.board_cache.windows_in_turn(), |window| vec![window]);
        for window in windows {
            let Some(cached) = self.model.global.board_cache.windows.get_mut(&window) else { continue };
            let Some(boards) = cached.boards.clone() else { continue };
            let mut changed = std::mem::take(&mut cached.dirty);
            let mut batch = changed.take(left).into_iter();
            while left > 0
                && let Some((player, dirty, groups_left)) = batch.next()
            {
                let rows = self.refresh_player(source, &boards, window, player, dirty, groups_left)?;
                left = left.saturating_sub(rows.max(1));
            }
            changed.put_back(batch);
            let more = !changed.is_empty() || self.model.global.board_cache.has_dirty_servers(window);
            let cached = self.model.global.board_cache.windows.get_mut(&window).expect("checked above");
            cached.dirty = changed;
            if more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of rows read; kept rows count as [`KEPT_ROWS_PER_READ`] says.
    fn refresh_player(
        &mut self,
        source: &dyn StateReader,
        boards: &SharedBoards,
        window: WindowKey,
        player: PlayerKey,
        dirty: DirtyPlayer,
        mut left: Groups,
    ) -> Result<usize, ReadError> {
        self.model.global.cache_player_window(source, window, player)?;
        let player_window = self.model.global.player_windows.get(window, player);
        let player_window = player_window.as_ref();
        let cached = self.model.global.board_cache.windows.get_mut(&window);
        let mut kept = cached.and_then(|cached| cached.known.take(player)).filter(|_| player_window.is_some());
        let mut rows_read = 0;
        let mut merged: Vec<(Group, PlayerRow)> = Vec::with_capacity(1);
        if let Some(player_window) = player_window {
            add_groups(&mut left, &[Group::Game(player_window.game)]);
            if let Some(kept) = &kept {
                merged.push((Group::Game(player_window.game), kept.sum()));
                for (server, row) in kept.rows() {
                    let Some(server_state) = self.model.servers.get(server) else { continue };
                    for tag in self.model.global.existing_tags(&server_state.record.tags) {
                        add(&mut merged, Group::Tag(tag), row.unpack());
                    }
                }
                rows_read = kept.len() / KEPT_ROWS_PER_READ;
            } else {
                let mut rows: Vec<(ServerKey, PlayerRow)> = Vec::new();
                let servers = player_window.servers.len();
                let cached = self.model.global.board_cache.windows.get(&window);
                let windows = self.model.global.current_windows.keys.len().max(1);
                let keeps =
                    dirty.is_listed && servers > 1 && cached.is_some_and(|it| it.known.has_room_for(servers, windows));
                for &server in &player_window.servers {
                    let is_counted = |server_state: &&ServerState| self.model.is_counted(server_state, window, server);
                    let Some(server_state) = self.model.servers.get(server).filter(is_counted) else { continue };
                    let Some(row) = self.model.current_row(source, server_state, window, server, player)? else {
                        continue;
                    };
                    if keeps {
                        rows.push((server, row.clone()));
                    }
                    for tag in self.model.global.existing_tags(&server_state.record.tags) {
                        add(&mut merged, Group::Tag(tag), row.clone());
                    }
                    add(&mut merged, Group::Game(player_window.game), row);
                }
                rows_read = servers;
                kept = (rows.len() > 1).then(|| KeptRows::new(&rows));
            }
        }
        let mut boards = boards.write();
        for (group, row) in &merged {
            let rating = player_window.and_then(|player_window| player_window.rating(group.tag()));
            boards.put(*group, player, row, rating, dirty.changed);
        }
        left.retain(|group| !merged.iter().any(|(merged, _)| merged == group));
        for group in &left {
            let boards = boards.boards.get_mut(group);
            boards.into_iter().for_each(|boards| boards.remove(player));
        }
        let is_single = player_window.is_some_and(|player_window| player_window.servers.len() == 1);
        if let Some(cached) = self.model.global.board_cache.windows.get_mut(&window) {
            cached.known.set_single(player, is_single);
            kept.into_iter().for_each(|kept| cached.known.keep(player, kept));
        }
        self.model.global.board_cache.groups_visited += (merged.len() + left.len()) as u64;
        Ok(rows_read)
    }
}

/// Adds a player's row of one server to the player's sum in a group.
fn add(merged: &mut Vec<(Group, PlayerRow)>, group: Group, row: PlayerRow) {
    match merged.iter_mut().find(|(other, _)| *other == group) {
        Some((_, sum)) => sum.merge(&row),
        None => merged.push((group, row)),
    }
}

#[cfg(test)]
mod tests {
    use crate::board::window::WindowTypes;
    use crate::engine::{EngineSettings, Event};
    use crate::model::calendar::Calendar;
    use crate::model::{PlayerKey, ServerUrl, WindowKey};
    use crate::scan_log;
    use crate::state::State;
    use crate::store::StoreSettings;
    use crate::view::board::PlayerSelector;

    const FROM_MS: i64 = 1_764_064_800_000;
    const GAMES: u32 = 30;

    fn url(n: u32) -> ServerUrl {
        ServerUrl::parse(&format!("quake3://10.0.0.{n}:27960")).unwrap()
    }

    /// Each server has a separate game with two players.
    fn observe(state: &mut State, n: u32, t_ms: i64) {
        let points = t_ms % 1_000;
        let line = format!(
            r#"{{"t":{t_ms},"server":"{}","game":"game {n}","map":"map","slots":8,"players":[{{"name":"player 0","points":{points},"ping":40}},{{"name":"player 1","points":{},"ping":40}}]}}"#,
            url(n),
            points + 1
        );
        let (url, outcome) = scan_log::parse_scan(&line).unwrap();
        state.handle(Event::Replayed { url, outcome }).unwrap();
    }

    /// Groups visited since the last call, refreshing the boards of the week included.
    fn visited(state: &mut State) -> u64 {
        state.commit().unwrap();
        while state.engine.refresh_boards(&state.store, None, 1).unwrap() {}
        std::mem::take(&mut state.engine.model.global.board_cache.groups_visited)
    }

    #[test]
    fn dirty_player_refreshes_only_their_groups() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        for n in 0..GAMES {
            // Two servers have a tag; one of them and one other have another tag.
            let tags = [("both", n < 2), ("one", n < 1), ("other", n == 7)];
            let tags = tags.into_iter().filter(|(_, has)| *has).map(|(tag, _)| tag.to_owned()).collect();
            state.engine.add_server(url(n), tags, FROM_MS).unwrap();
            observe(&mut state, n, FROM_MS);
        }
        let window = state.engine.model.running_windows()[0];
        state.commit_and_build_boards(window).unwrap();
        let boards = |state: &State| state.engine.model.boards(window).unwrap().boards.len();
        assert_eq!(boards(&state), GAMES as usize + 3);
        visited(&mut state);

        for (n, groups) in [(0, 3), (1, 2), (2, 1), (7, 2)] {
            observe(&mut state, n, FROM_MS + 60_000);
            assert_eq!(visited(&mut state), 2 * groups, "server {n}");
        }
        // One tag less: the player is removed from its group, which is one more visit.
        state.engine.tag_server(&url(1), &[], &["both".to_owned()]).unwrap();
        assert_eq!(visited(&mut state), 2 * 2);
        observe(&mut state, 1, FROM_MS + 120_000);
        assert_eq!(visited(&mut state), 2);
        // Greylisted: removed from its game and its tags, and added again.
        for reason in [Some("fake".to_owned()), None] {
            state.engine.greylist(&state.store, &url(0), reason).unwrap();
            assert_eq!(visited(&mut state), 2 * 3);
        }
        // A new game has separate boards.
        observe(&mut state, GAMES, FROM_MS + 120_000);
        assert_eq!((visited(&mut state), boards(&state)), (2, GAMES as usize + 4));
        // A removed player may have been in any of the three tags, and in one game.
        let State { engine, store } = &mut state;
        engine.forget_player(store, "game 9", &PlayerSelector::Name("player 1".into()), FROM_MS + 120_000).unwrap();
        assert_eq!(visited(&mut state), 4);
        assert!(state.engine.model.boards(window).unwrap().boards.values().all(|boards| !boards.0[4].is_empty()));
    }
    /// Two windows with five dirty players each.
    fn dirty_windows(dir: &std::path::Path) -> (State, [WindowKey; 2]) {
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let windows = WindowTypes::new(Calendar::default(), ["all-time".parse().unwrap()]).unwrap();
        let mut state = State::open(dir, store, EngineSettings { windows, ..EngineSettings::default() }).unwrap();
        (0..5).for_each(|n| observe(&mut state, n, FROM_MS));
        let windows: [WindowKey; 2] = state.engine.model.running_windows().try_into().unwrap();
        windows.iter().for_each(|window| state.commit_and_build_boards(*window).unwrap());
        let cache = &mut state.engine.model.global.board_cache;
        for window in windows {
            (1..=5).for_each(|player| cache.mark_dirty(window, PlayerKey(player)));
        }
        (state, windows)
    }

    fn dirty(state: &State, windows: [WindowKey; 2]) -> [Option<usize>; 2] {
        windows.map(|window| state.engine.model.global.board_cache.dirty_players(window))
    }

    #[test]
    fn one_window_is_refreshed_without_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, windows) = dirty_windows(dir.path());
        assert!(!state.engine.refresh_boards(&state.store, Some(windows[0]), usize::MAX).unwrap());
        assert_eq!(dirty(&state, windows), [Some(0), Some(5)]);
        // A server whose players are still to be marked, in both windows.
        state.engine.tag_server(&url(1), &["tag".to_owned()], &[]).unwrap();
        assert!(state.engine.refresh_boards(&state.store, None, 1).unwrap(), "begins with one of them");
        for window in windows.into_iter().rev() {
            assert!(!state.engine.refresh_boards(&state.store, Some(window), usize::MAX).unwrap());
        }
        assert_eq!(dirty(&state, windows), [Some(0); 2]);
        let tagged = |window| state.engine.model.boards(window).unwrap().boards.len();
        assert_eq!(windows.map(tagged), [6; 2], "five games and a tag");
    }

    #[test]
    fn each_window_comes_first_in_turn() {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, windows) = dirty_windows(dir.path());
        for left in [4, 3] {
            (0..2).for_each(|_| assert!(state.engine.refresh_boards(&state.store, None, 1).unwrap()));
            assert_eq!(dirty(&state, windows), [Some(left); 2]);
        }
    }
}
