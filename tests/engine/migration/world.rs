//! A small state with records of every kind: servers with tags, one tag deleted, one
//! server greylisted, one removed, one silent; merged and forgotten players; two closed
//! weeks and the current one, with other windows; rows with presences; a non-empty outbox.
//! And the requests whose responses are compared.

use std::io::Write;
use std::path::Path;

use clqd::api::Request;
use clqd::board::window::{Shape, WindowSpec, WindowTypes};
use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::model::calendar::{self, Calendar, MINUTE_MS};
use clqd::model::view::board::{BoardQuery, BoardSelector, BoardsSelector, PlayerSelector};
use clqd::model::{NameHash, PlayerKey, Ranking, Scope, ServerUrl, WindowType};
use clqd::state::State;
use clqd::state::answer::{board_window_of, respond};
use clqd::store::StoreSettings;
use serde_json::{Value, json};

use crate::scans;

const FROM_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC
const WEEK_MINUTES: i64 = 7 * 24 * 60;

/// Servers, with tags.
const SERVERS: [(&str, &[&str]); 6] = [
    ("quake3://10.0.0.1:27960", &["ctf", "eu"]),
    ("quake3://10.0.0.2:27960", &["eu"]),
    ("quake3://10.0.0.3:27960", &["ctf", "gone"]),
    ("quake3://10.0.0.4:27960", &["gone"]),
    ("quake3://10.0.0.5:27960", &[]),
    ("quake3://10.0.0.6:27960", &["ctf"]),
];

const FORGOTTEN: &str = "player 7";

pub fn settings() -> EngineSettings {
    let spec = |kind, shape, keep| WindowSpec { kind, shape, keep };
    let windows = [
        spec(WindowType::HOUR, Shape::Hour, 2),
        spec(WindowType::DAY, Shape::Day, 3),
        spec(WindowType::MONTH, Shape::Month, 0),
        spec(WindowType::ALL_TIME, Shape::AllTime, 0),
    ];
    let windows = WindowTypes::new(Calendar::default(), windows).expect("window types");
    EngineSettings { archive_enabled: true, windows, ..EngineSettings::default() }
}

pub fn open(dir: &Path) -> Result<State, clqd::state::StateError> {
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, settings())
}

struct World {
    state: State,
    minute: i64,
}

impl World {
    fn now_ms(&self) -> i64 {
        FROM_MS + self.minute * MINUTE_MS
    }

    /// Scans of all servers, two minutes apart. Each server has 8 of its 60 players at a
    /// time; every twenty minutes a round ends.
    fn play(&mut self, minutes: i64) {
        for _ in 0..minutes / 2 {
            self.minute += 2;
            let (t_ms, minute) = (self.now_ms(), self.minute);
            for (n, (url, _)) in (0_i64..).zip(SERVERS) {
                if n == 3 && minute > 60 {
                    let outcome = Outcome::Miss { t_ms, reason: "no answer".to_owned() };
                    self.state.handle(Event::Replayed { url: parse(url), outcome }).expect("a store");
                    continue;
                }
                let present = (0..8).map(|seat| (minute / 14 * 3 + seat * 7) % 60);
                let player = |number: i64| {
                    // Every fifth player plays on two servers.
                    let home = if number % 5 == 0 { n & !1 } else { n };
                    let colour = if number % 3 == 0 { "^1" } else { "" };
                    let rate = 1 + (number * 7 + n) % 5;
                    (format!("{colour}player {}", home * 60 + number), rate * (minute % 20))
                };
                let mut snapshot = scans::snapshot(t_ms, present.map(player));
                snapshot.game = if n == 4 { "baseoa" } else { "baseq3" }.into();
                snapshot.map = format!("map{}", minute / 20 % 3);
                snapshot.hostname = format!("Server {n}");
                scans::apply_snapshot(&mut self.state, url, snapshot);
            }
            self.tick();
        }
    }

    fn tick(&mut self) {
        let now_ms = self.now_ms();
        self.state.handle(Event::Tick { now_ms }).expect("a store");
        self.state.commit().expect("a store");
    }

    fn go_to(&mut self, minute: i64) {
        self.minute = minute;
        let now_ms = self.now_ms();
        self.state.close_due_weeks(now_ms).expect("a store");
    }

    fn correct(&mut self) {
        let name = |name: &str| PlayerSelector::Name(name.to_owned());
        let now_ms = self.now_ms();
        let State { engine, store } = &mut self.state;
        engine.merge_players(store, "baseq3", &name("player 3"), &name("player 9")).expect("known players");
        self.state.commit().expect("a store");
        let State { engine, store } = &mut self.state;
        engine.forget_player(store, "baseq3", &name(FORGOTTEN), now_ms).expect("a known player");
        self.state.commit().expect("a store");
        self.state.engine.greylist(&parse(SERVERS[1].0), Some("fake".to_owned())).expect("a known server");
        self.state.engine.remove_server(&parse(SERVERS[5].0)).expect("a known server");
        self.state.engine.delete_tag("gone").expect("a known tag");
        self.tick();
    }
}

fn parse(url: &str) -> ServerUrl {
    ServerUrl::parse(url).expect("a URL")
}

/// Writes the state into an empty directory.
pub fn write(dir: &Path) {
    let state = open(dir).expect("an empty directory");
    let mut world = World { state, minute: 0 };
    for (url, tags) in SERVERS {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        world.state.engine.add_server(parse(url), tags, FROM_MS).expect("a new server");
    }
    world.play(180);
    world.go_to(WEEK_MINUTES);
    world.play(80);
    world.correct();
    world.go_to(2 * WEEK_MINUTES);
    world.play(90);
    world.state.commit().expect("a store");
}

/// More scans, and the close of the week.
pub fn continue_play(state: State) -> State {
    let mut world = World { state, minute: 2 * WEEK_MINUTES + 90 };
    world.play(60);
    world.go_to(3 * WEEK_MINUTES);
    world.play(10);
    world.state
}

/// The responses of the state: rows of all weeks as exported, then one line for each
/// request, with the rows of its response or the error.
pub fn responses(state: &mut State) -> Vec<Value> {
    let mut lines = Vec::new();
    for n in [0, 1, 2] {
        let label = calendar::week_label(Calendar::default().week(FROM_MS + n * WEEK_MINUTES * MINUTE_MS));
        let mut rows = Vec::new();
        // The export of a week without rows is an error.
        match clqd::cli::export::write(state, &label, &mut rows) {
            Ok(()) | Err(clqd::cli::export::ExportError::View(_)) => {}
            Err(error) => panic!("{error}"),
        }
        let rows: Vec<Value> = serde_json::Deserializer::from_slice(&rows).into_iter().map(Result::unwrap).collect();
        lines.push(json!({"export": label, "rows": rows}));
    }
    for request in requests(state) {
        if let Some(window) = board_window_of(&state.engine, &request) {
            state.ensure_boards(window).expect("a store");
        }
        let rows = match respond(&state.view(), &request) {
            Ok(rows) => serde_json::to_value(rows).expect("rows are JSON"),
            Err(failure) => json!(failure.message),
        };
        lines.push(json!({"request": request, "rows": rows}));
    }
    lines.push(json!({"records": records(state)}));
    lines
}

fn requests(state: &State) -> Vec<Request> {
    let urls: Vec<String> = state.engine.servers().map(|server| server.url).collect();
    let mut requests = vec![
        Request::Status {},
        Request::ServersList { filter: Default::default() },
        Request::PlayerForgotten {},
        Request::Windows { bytes: false },
    ];
    requests.extend(urls.iter().map(|url| Request::ServersShow { url: parse(url) }));
    for name in ["player 0", "player 3", "player 9", FORGOTTEN, "player 240", "player 5"] {
        requests.push(Request::Player { name: name.to_owned() });
    }
    let groups = ["game:baseq3", "game:baseoa", "tag:ctf", "tag:eu", "tag:gone"];
    let servers = urls.iter().map(|url| format!("server:{url}"));
    let scopes: Vec<Scope> =
        groups.into_iter().map(str::to_owned).chain(servers).map(|scope| scope.parse().expect("a scope")).collect();
    let windows: Vec<String> = state.engine.windows().into_iter().map(|listed| listed.window.window).collect();
    for window in windows {
        for scope in &scopes {
            let window = Some(window.clone());
            for ranking in Ranking::ALL {
                let board = BoardSelector { scope: scope.clone(), ranking, window: window.clone(), at_ms: None };
                requests.push(Request::Board { board, query: BoardQuery::Top { count: 8 } });
            }
            requests.push(Request::Standings {
                boards: BoardsSelector { scope: scope.clone(), window, at_ms: None },
                player: PlayerSelector::Name("player 9".to_owned()),
                rankings: Vec::new(),
            });
        }
    }
    requests
}

/// Data that no request returns: best positions, names, the outbox.
fn records(state: &State) -> Value {
    use clqd::engine::{StateReader, StoreReader};
    let store = &state.store;
    let players = (1..400).map(PlayerKey).map(|player| {
        let best = store.servers_with_best(player).expect("a store");
        let best = best.into_iter().map(|server| (server, store.best(server, player).expect("a store")));
        json!({
            "record": store.player_record(player).expect("a store"),
            "aliases": store.aliases(player).expect("a store"),
            "gone": store.removed_player(player).expect("a store").map(|gone| gone.into),
            "best": best.collect::<Vec<_>>(),
        })
    });
    let outbox: Vec<String> =
        store.outbox(None, usize::MAX).iter().map(|entry| format!("{:?} {}", entry.key, entry.seq)).collect();
    let hash = NameHash::of("baseq3", FORGOTTEN).to_string();
    let holds = store.contains_bytes(b"player 12").expect("a store");
    json!({"players": players.collect::<Vec<_>>(), "outbox": outbox, "forgotten": hash, "holds": holds})
}

/// Writes each value to a line.
pub fn write_lines(lines: &[Value], mut out: impl Write) -> std::io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
