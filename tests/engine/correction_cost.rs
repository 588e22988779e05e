//! The number of records that a correction reads depends on the servers on which the player
//! was, not on the total number of servers or players.

use crate::scans;
use clqd::model::calendar::WEEK_MS;
use std::cell::Cell;

use clqd::engine::{EngineSettings, ReadError, RemovedPlayer, StateReader, StoreReader};
use clqd::model::commit::{MapRowKey, RowKey};
use clqd::model::name::Name;
use clqd::model::row::BestPositions;
use clqd::model::server::PlayerRecord;
use clqd::model::{
    GameKey, MapKey, MapRow, OutboxEntry, OutboxKey, PlayerKey, PlayerRow, PlayerWindow, Seen, ServerKey, Session,
    SessionDay, SessionKey, WeekKey, WindowKey,
};
use clqd::state::State;
use clqd::store::{Store, StoreSettings};
use clqd::view::board::PlayerSelector;

const SERVERS: u32 = 10_000;
const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC

/// Counts the records that are read from a store.
struct CountingReader<'s> {
    store: &'s Store,
    reads: Cell<usize>,
}

impl CountingReader<'_> {
    fn one<T>(&self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        self.reads.set(self.reads.get() + 1);
        read
    }

    fn all<T>(&self, read: Result<Vec<T>, ReadError>) -> Result<Vec<T>, ReadError> {
        self.reads.set(self.reads.get() + 1 + read.as_ref().map_or(0, Vec::len));
        read
    }
}

impl StateReader for CountingReader<'_> {
    fn player(&self, game: GameKey, name: &str) -> Result<Option<(PlayerKey, Name)>, ReadError> {
        self.one(self.store.player(game, name))
    }
    fn player_record(&self, player: PlayerKey) -> Result<Option<PlayerRecord>, ReadError> {
        self.one(self.store.player_record(player))
    }
    fn players_after(
        &self,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRecord)>, ReadError> {
        self.all(self.store.players_after(after, most))
    }
    fn players_named(&self, name: &str) -> Result<Vec<(GameKey, PlayerKey)>, ReadError> {
        self.all(self.store.players_named(name))
    }
    fn aliases(&self, player: PlayerKey) -> Result<Vec<String>, ReadError> {
        self.all(self.store.aliases(player))
    }
    fn removed_player(&self, player: PlayerKey) -> Result<Option<RemovedPlayer>, ReadError> {
        self.one(self.store.removed_player(player))
    }
    fn removed_players_after(&self, after: Option<PlayerKey>, most: usize) -> Result<Vec<PlayerKey>, ReadError> {
        self.all(self.store.removed_players_after(after, most))
    }
    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, ReadError> {
        self.one(self.store.row(key))
    }
    fn rows(&self, window: WindowKey, server: ServerKey) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        self.all(self.store.rows(window, server))
    }
    fn rows_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        self.all(self.store.rows_after(window, server, after, most))
    }
    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, ReadError> {
        self.one(self.store.player_window(window, player))
    }
    fn map_row(&self, key: MapRowKey) -> Result<Option<MapRow>, ReadError> {
        self.one(self.store.map_row(key))
    }
    fn map_rows(&self, week: WeekKey, server: ServerKey) -> Result<Vec<(MapKey, MapRow)>, ReadError> {
        self.all(self.store.map_rows(week, server))
    }
    fn best(&self, server: ServerKey, player: PlayerKey) -> Result<Option<BestPositions>, ReadError> {
        self.one(self.store.best(server, player))
    }
    fn best_after(
        &self,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, BestPositions)>, ReadError> {
        self.all(self.store.best_after(server, after, most))
    }
    fn servers_with_best(&self, player: PlayerKey) -> Result<Vec<ServerKey>, ReadError> {
        self.all(self.store.servers_with_best(player))
    }
    fn rank(&self, week: WeekKey, server: ServerKey) -> Result<Option<u32>, ReadError> {
        self.one(self.store.rank(week, server))
    }
    fn seen(&self, player: PlayerKey) -> Result<Option<Seen>, ReadError> {
        self.one(self.store.seen(player))
    }
    fn session(&self, key: &SessionKey) -> Result<Option<Session>, ReadError> {
        self.one(self.store.session(key))
    }
    fn sessions_on(
        &self,
        day: SessionDay,
        server: ServerKey,
        most: usize,
    ) -> Result<Vec<(SessionKey, Session)>, ReadError> {
        self.all(self.store.sessions_on(day, server, most))
    }
    fn sessions_of(&self, day: SessionDay, player: PlayerKey, most: usize) -> Result<Vec<SessionKey>, ReadError> {
        self.all(self.store.sessions_of(day, player, most))
    }
}

impl StoreReader for CountingReader<'_> {
    fn is_swept(&self, window: WindowKey) -> bool {
        self.store.is_swept(window)
    }

    fn outbox(&self, after: Option<OutboxKey>, limit: usize) -> Vec<OutboxEntry> {
        self.store.outbox(after, limit)
    }
    fn outbox_len(&self) -> usize {
        self.store.outbox_len()
    }
    fn outbox_seq(&self, key: OutboxKey) -> Option<u64> {
        self.store.outbox_seq(key)
    }

    fn outbox_oldest_session_ms(&self) -> Option<i64> {
        self.store.outbox_oldest_session_ms()
    }

    fn outbox_holds_week(&self, week: WeekKey) -> bool {
        self.store.outbox_holds_week(week)
    }
}

fn observe(state: &mut State, server: u32, t_ms: i64, names: &[&str], points: i64) {
    let url = format!("quake3://10.0.{}.{}:27960", server / 250, server % 250);
    scans::apply_snapshot(state, &url, scans::snapshot(t_ms, names.iter().map(|name| (*name, points))));
}

/// In a closed week and in the current one, Sarge is on every server, Visor on three of them,
/// Klesk on two.
fn fixture() -> (tempfile::TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 64 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
    for week in 0..2 {
        for server in 0..SERVERS {
            let t_ms = FROM_MS + week * WEEK_MS + i64::from(server);
            let mut names = vec!["Sarge"];
            names.extend([7, 5_000, 9_999].contains(&server).then_some("Visor"));
            names.extend([5_000, 8_000].contains(&server).then_some("Klesk"));
            observe(&mut state, server, t_ms, &names, 0);
            observe(&mut state, server, t_ms + 120_000, &names, 5);
        }
        state.close_due_weeks(FROM_MS + (week + 1) * WEEK_MS - 86_400_000).unwrap();
    }
    (dir, state)
}

#[test]
fn merge_and_forget_read_only_servers_of_player() {
    let (_dir, mut state) = fixture();
    let key = |state: &State, name| state.store.player(GameKey(1), name).unwrap().expect("known").0;
    let (visor, klesk) = (key(&state, "Visor"), key(&state, "Klesk"));
    assert_eq!(
        (state.store.servers_with_best(visor).unwrap().len(), state.engine.model().status().players_known),
        (3, 3)
    );

    let reader = CountingReader { store: &state.store, reads: Cell::new(0) };
    let merged =
        state.engine.merge_players(&reader, "baseq3", &PlayerSelector::Key(klesk.0), &PlayerSelector::Key(visor.0));
    let reads = reader.reads.get();
    assert_eq!(merged.unwrap().rows, 4);
    state.commit().unwrap();
    assert!((8..60).contains(&reads), "{reads} reads of {SERVERS} servers");
    let servers: Vec<u32> = state.store.servers_with_best(visor).unwrap().iter().map(|server| server.0).collect();
    assert_eq!(servers, [8, 5_001, 8_001, 10_000], "servers where either player has best positions");
    assert!(state.store.servers_with_best(klesk).unwrap().is_empty());
    assert!(state.store.best(ServerKey(8_001), visor).unwrap().is_some());
    assert_eq!(state.engine.model().status().players_known, 2);

    let reader = CountingReader { store: &state.store, reads: Cell::new(0) };
    let merged_player = PlayerSelector::Key(visor.0);
    let forgotten = state.engine.forget_player(&reader, "baseq3", &merged_player, FROM_MS + 2 * WEEK_MS);
    let reads = reader.reads.get();
    assert_eq!(forgotten.unwrap().rows, 8);
    state.commit().unwrap();
    assert!((8..60).contains(&reads), "{reads} reads of {SERVERS} servers");
    assert!(state.store.servers_with_best(visor).unwrap().is_empty());
    assert!(servers.iter().all(|server| state.store.best(ServerKey(*server), visor).unwrap().is_none()));
    assert_eq!(state.engine.model().status().players_known, 1);
}
