//! What readers ask in place of the engine thread: replicas of the engine, with a reader of the store.
//!
//! There are two views, the current one and a spare one. A reader holds the current view while it computes an answer. After a
//! commit, the spare view is brought up to date and becomes the current one. While a reader still holds the spare view,
//! that waits; after [`HELD_MS_MAX`] a new view is made instead.
//!
//! One answer is computed from one replica: servers, weeks and settings of one moment. Rows of players and boards are
//! read as they are at that time, which may be some commits later.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;

use crate::api::{ApiError, ErrorCode, StateView, StoreStatus};
use crate::engine::{ChangedServers, Engine, ReadModel, StoreReader};
use crate::state::State;
use crate::store::Reader;
use crate::view::board::BoardsSelector;

/// Answers that are computed at the same time, each on a thread.
const ANSWERS_MAX: usize = 16;

/// How long a reader may delay the next replica, ms.
const HELD_MS_MAX: i64 = 1_000;

/// What readers ask.
#[derive(Debug)]
pub(super) struct View {
    model: ReadModel,
    reader: Reader,
    outbox_entries: u64,
    engine_thread: EngineThreadStatus,
}

/// The part of the status that only the engine thread knows.
#[derive(Clone, Debug, Default)]
pub(super) struct EngineThreadStatus {
    pub(super) outcomes_queued: u64,
    pub(super) store: StoreStatus,
    pub(super) week_pending_close: Option<String>,
    /// Since when no server answers.
    pub(super) silent_since_ms: Option<i64>,
}

/// The current view.
#[derive(Debug)]
pub(super) struct Views {
    /// `None`: the engine thread has ended.
    current: RwLock<Option<Arc<View>>>,
    answers: Arc<Semaphore>,
}

/// Brings the views up to date.
#[derive(Debug)]
pub(super) struct Publisher {
    views: Arc<Views>,
    spare: Arc<View>,
    /// What the current view has, but not the spare one.
    missing_in_spare: Vec<ChangedServers>,
    /// What no view has.
    unpublished: Vec<ChangedServers>,
    /// Since when readers delay the next view, Unix ms.
    held_since_ms: Option<i64>,
}

impl View {
    fn new(state: &mut State, engine_thread: EngineThreadStatus) -> Arc<View> {
        let (reader, outbox_entries) = (state.store.reader(), state.store.outbox_len() as u64);
        Arc::new(View { model: state.engine.replica(), reader, outbox_entries, engine_thread })
    }

    pub(super) fn state(&self) -> StateView<'_> {
        StateView {
            model: &self.model,
            reader: &self.reader,
            outbox_entries: self.outbox_entries,
            outcomes_queued: self.engine_thread.outcomes_queued,
            store: Some(&self.engine_thread.store),
        }
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn model(&self) -> &ReadModel {
        &self.model
    }

    /// Whether these boards are in memory and up to date; they stay in memory for a while. An invalid query needs none.
    pub(super) fn has_boards(&self, boards: &BoardsSelector) -> bool {
        let Some(window) = self.model.boards_needed(boards).ok().flatten() else { return true };
        if self.model.boards(window).is_none() {
            return false;
        }
        self.model.touch_boards(window);
        true
    }

    pub(super) fn engine_thread(&self) -> &EngineThreadStatus {
        &self.engine_thread
    }
}

impl Views {
    /// Not to be held longer than it takes to compute an answer.
    pub(super) fn current(&self) -> Result<Arc<View>, ApiError> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(stopping)
    }

    /// Calls `read` with the current view, on a thread where it may wait for the disk.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Views>,
        read: impl FnOnce(&View) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let views = self.clone();
        self.on_thread(move || views.current().map(|view| read(&view))).await?
    }

    /// Runs a reader on a thread where it may wait for the disk.
    pub(super) async fn on_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.answers.clone().acquire_owned().await.map_err(|_| stopping())?;
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read()
        });
        reading.await.map_err(|_| stopping())
    }
}

fn stopping() -> ApiError {
    ApiError::new(ErrorCode::Stopping, "the daemon is stopping")
}

impl Publisher {
    pub(super) fn new(state: &mut State, status: EngineThreadStatus) -> Publisher {
        let current = View::new(state, status.clone());
        let views = Views { current: RwLock::new(Some(current)), answers: Arc::new(Semaphore::new(ANSWERS_MAX)) };
        Publisher {
            views: Arc::new(views),
            spare: View::new(state, status),
            missing_in_spare: Vec::new(),
            unpublished: Vec::new(),
            held_since_ms: None,
        }
    }

    pub(super) fn views(&self) -> Arc<Views> {
        self.views.clone()
    }

    /// Whether readers delay the view of the last commit.
    pub(super) fn is_behind(&self) -> bool {
        self.held_since_ms.is_some()
    }

    /// Whether the view of the last commit is delayed and can be made now. A view that is made while changes wait for a
    /// commit would lack rows of players who have left since: these rows are not in the store yet.
    pub(super) fn can_catch_up(&self, engine: &Engine) -> bool {
        self.is_behind() && !engine.model().has_changes()
    }

    /// Shows readers the committed state, unless one of them delays that.
    pub(super) fn publish(&mut self, state: &mut State, status: EngineThreadStatus, now_ms: i64) {
        self.unpublished.push(state.engine.take_changed_servers());
        match Arc::get_mut(&mut self.spare) {
            Some(view) => {
                let changed = self.missing_in_spare.iter().chain(&self.unpublished);
                state.engine.update_replica(&mut view.model, changed);
                (view.outbox_entries, view.engine_thread) = (state.store.outbox_len() as u64, status);
            }
            None if now_ms - *self.held_since_ms.get_or_insert(now_ms) < HELD_MS_MAX => return,
            None => self.spare = View::new(state, status),
        }
        let mut current = self.views.current.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &mut *current {
            std::mem::swap(current, &mut self.spare);
        }
        self.missing_in_spare = std::mem::take(&mut self.unpublished);
        self.held_since_ms = None;
    }
}

impl Drop for Publisher {
    /// Readers have the database open.
    fn drop(&mut self) {
        *self.views.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Answer, Host, Line, Read, ServerFilter, requests};
    use crate::config::Config;
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::server_page::ServerOrder;
    use crate::model::{Completeness, Player, Ranking, Scope, ServerUrl, Snapshot};
    use crate::state::answer::one_answer_host;
    use crate::store::StoreSettings;
    use crate::view::ServerSummary;
    use crate::view::board::{BoardQuery, BoardSelector, FusedQuery, PlayerSelector};

    const START_MS: i64 = 1_763_942_400_000;

    fn url(n: u64) -> ServerUrl {
        ServerUrl::parse(&format!("quake3://10.0.0.{n}:27960")).unwrap()
    }

    /// Applies the `n`th outcome: a list whose server, game, map and players follow from `n`, or a miss.
    fn scan(state: &mut State, n: u64) {
        let player = |name: u64| Player {
            name: format!("p{}", name % 23).as_str().into(),
            points: Some((n * name % 50) as i64),
            ping: Some(40),
            connected_ms: None,
            bot: false,
            spectator: false,
        };
        let snapshot = Snapshot {
            t_ms: START_MS + n as i64 * 10_000,
            game: format!("game{}", n % 3).as_str().into(),
            map: format!("map{}", n / 7).as_str().into(),
            hostname: format!("host {n}"),
            slots: 16,
            players: (n..n + n % 6).map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        let outcome = match n % 11 {
            10 => Outcome::Miss { t_ms: snapshot.t_ms, reason: "silent".into() },
            _ => Outcome::Snapshot(snapshot),
        };
        state.handle(Event::Replayed { url: url(1 + n % 9), outcome }).unwrap();
    }

    /// The answers as JSON, without the times of scans (no scan begins here, and a view takes those that are due for
    /// begun), and without the status of the store, which only the engine thread tells a view.
    fn answers(view: StateView<'_>, reader: Reader) -> Vec<String> {
        fn answer<R: Read>(host: &dyn Host, request: R) -> String {
            match request.answer(host) {
                Ok(answer) => {
                    let lines: Vec<String> =
                        answer.lines().map(|line| String::from_utf8(line.to_json()).unwrap()).collect();
                    let text = lines.join("\n");
                    let is_shown =
                        |field: &&str| !field.contains("next_scan_ms") && !field.contains("scan_in_progress");
                    text.split(',').filter(is_shown).collect::<Vec<_>>().join(",")
                }
                Err(error) => error.to_string(),
            }
        }
        let config = Config::default();
        let view = &one_answer_host(StateView { store: None, ..view }, reader, &config);
        let mut all = vec![
            answer(view, requests::Status {}),
            answer(view, requests::Overview {}),
            answer(view, requests::ServersList { filter: Default::default() }),
            answer(view, requests::Windows { bytes: false }),
            answer(view, requests::PlayerSearch { text: "p1".to_owned(), count: 9 }),
            answer(view, requests::ServersSearch { text: "host".to_owned(), count: 9 }),
            answer(view, requests::ServersSearch { text: "10.0.0.3".to_owned(), count: 9 }),
            answer(view, requests::Maps { text: None, count: 99 }),
            answer(view, requests::Maps { text: Some("map1".to_owned()), count: 9 }),
        ];
        for order in [ServerOrder::Added, ServerOrder::Players, ServerOrder::Rank, ServerOrder::Name] {
            let filter = ServerFilter::default();
            all.push(answer(view, requests::ServersPage { filter, after: None, count: 4, order, recent: true }));
        }
        for n in 1..10 {
            all.push(answer(view, requests::ServersShow { url: url(n) }));
            all.push(answer(view, requests::PlayerShow { player_key: n as u32, skip: 0 }));
            let player = || PlayerSelector::Name(format!("p{n}"));
            all.push(answer(view, requests::PlayerNamed { name: format!("p{n}") }));
            all.push(answer(view, requests::Player { name: format!("p{n}") }));
            all.push(answer(view, requests::Map { map: format!("map{}", 5 * n) }));
            all.push(answer(view, requests::ServersBest { url: url(n) }));
            all.push(answer(view, requests::PlayerSessions { player: player(), count: 20 }));
            all.push(answer(view, requests::PlayerCompanions { player_key: n as u32, count: 20 }));
            all.push(answer(view, requests::ServersSessions { url: url(n), last_s: None, count: 20 }));
            all.push(answer(view, requests::ServersVisitors { url: url(n), last_s: 900, sessions: 20, count: 20 }));
            all.push(answer(view, requests::Top { server: url(n), ranking: Ranking::Clq1, week: None, count: 9 }));
        }
        let games = ["game0", "game1", "game2"].map(|name| Scope::Game(name.to_owned()));
        let scopes = (1..10).map(|n| Scope::Server(url(n))).chain(games).chain([Scope::Tag("blue".to_owned())]);
        for (scope, ranking) in scopes.flat_map(|scope| Ranking::ALL.map(|ranking| (scope.clone(), ranking))) {
            let board = BoardSelector { scope: scope.clone(), ranking, window: None, at_ms: None };
            all.push(answer(view, requests::Board { board, query: BoardQuery::Top { count: 9 } }));
            let boards = BoardsSelector { scope, window: None, at_ms: None };
            all.push(answer(view, requests::Boards { boards: boards.clone(), query: BoardQuery::Top { count: 9 } }));
            let player = PlayerSelector::Name("p7".to_owned());
            let rankings = Vec::new();
            all.push(answer(view, requests::Standings { boards: boards.clone(), player, rankings: rankings.clone() }));
            let (query, rankings) = (FusedQuery::Top { count: 9 }, Vec::new());
            all.push(answer(view, requests::Fused { boards, rankings, k: None, query }));
        }
        let series = [(None, None), (Some("game1"), None), (None, Some("blue"))];
        for (game, tag) in series.map(|(game, tag)| (game.map(str::to_owned), tag.map(str::to_owned))) {
            all.push(answer(view, requests::Series { game, tag }));
        }
        all.extend([answer(view, requests::ServersTags {}), answer(view, requests::PlayerForgotten {})]);
        all
    }

    #[test]
    fn views_show_scans_that_were_planned_again() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
        // Without players it is scanned rarely.
        scan(&mut state, 6);
        state.commit().unwrap();
        let mut publisher = Publisher::new(&mut state, EngineThreadStatus::default());
        let next_scan_ms =
            |view: &StateView<'_>| view.model.server_detail(view.reader, &url(7)).unwrap().public.next_scan_ms.unwrap();
        let mut shown = Vec::new();
        for boost_s in [0, 3_600, 0] {
            let now_ms = state.engine.model().now_ms();
            state.engine.boost(&url(7), boost_s, now_ms).unwrap();
            publisher.publish(&mut state, EngineThreadStatus::default(), now_ms);
            let view = publisher.views().current().unwrap();
            shown.push(next_scan_ms(&view.state()));
            assert_eq!(shown.last(), Some(&next_scan_ms(&state.view())));
        }
        assert!(shown[1] < shown[0] && shown[2] == shown[0], "{shown:?}");
    }

    #[test]
    fn views_give_the_answers_of_the_engine_also_if_readers_hold_some() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
        let engine_settings = EngineSettings { scan_budget: 0.0, ..EngineSettings::default() };
        let mut state = State::open(dir.path(), settings, engine_settings.clone()).unwrap();
        for n in 1..3 {
            state.engine.add_server(url(n), vec!["blue".to_owned()], START_MS).unwrap();
            scan(&mut state, n);
        }
        compare_views(state, 3..130);
        // Again after a restart.
        compare_views(State::open(dir.path(), settings, engine_settings).unwrap(), 300..400);
    }

    /// Applies scans and compares the answers of views with those of the engine.
    fn compare_views(mut state: State, scans: std::ops::Range<u64>) {
        let window = state.engine.model().running_windows()[0];
        state.commit_and_build_boards(window).unwrap();
        let mut publisher = Publisher::new(&mut state, EngineThreadStatus::default());
        let views = publisher.views();
        let (mut held, mut published, steps) = (Vec::new(), 0, (scans.end - scans.start) / 3);
        for n in scans {
            scan(&mut state, n);
            if n % 3 > 0 {
                continue;
            }
            if n % 30 == 0 {
                let greylisted = (n % 60 == 0).then(|| "a reason".to_owned());
                state.engine.greylist(&state.store, &url(3), greylisted).unwrap();
            }
            state.commit_and_build_boards(window).unwrap();
            publisher.publish(&mut state, EngineThreadStatus::default(), 100 * n as i64);
            if publisher.is_behind() {
                assert!(!held.is_empty(), "only a reader delays a view");
                assert!(publisher.can_catch_up(&state.engine));
                state.engine.greylist(&state.store, &url(9), Some(format!("reason {n}"))).unwrap();
                assert!(!publisher.can_catch_up(&state.engine), "with changes that are not committed");
            } else {
                published += 1;
                let current = views.current().unwrap();
                let shown = answers(current.state(), current.reader().clone());
                for (got, want) in shown.iter().zip(answers(state.view(), state.store.reader())) {
                    let different = got.split(',').zip(want.split(',')).find(|(got, want)| got != want);
                    assert_eq!((different, got.len()), (None, want.len()), "after {n} scans");
                }
            }
            // Some readers are slow.
            held.truncate(n as usize % 2);
            if n % 5 == 0 {
                held.push(views.current().unwrap());
            }
        }
        assert!(published > steps / 2 && published < steps, "{published} views of {steps}");
        drop(held);
        publisher.publish(&mut state, EngineThreadStatus::default(), 40_000);
        let players = |view: &StateView<'_>| -> Vec<ServerSummary> { view.model.servers().collect() };
        assert_eq!(players(&views.current().unwrap().state()), state.engine.model().servers().collect::<Vec<_>>());
    }
}
