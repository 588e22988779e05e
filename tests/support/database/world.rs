//! Random data to archive: it changes at random from a seed, returns jobs like the daemon's
//! outbox, and computes the expected content of the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use clqd::archive::{JobSource, OutboxQuery, SourceClosed};
use clqd::model::archive::{
    ArchiveBounds, BoardOrder, BoardPlace, BoardStep, ListEntry, MapWeekArchive, PlayerKeyRange, PlayerWeekArchive,
    ServerArchive, WeekArchive,
};
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::outbox::WriterBeat;
use clqd::model::row::{BestPositions, TopTen, Uncertainty};
use clqd::model::server::{ScreenReason, SeriesRecord};
use clqd::model::top_board::SiteTotals;
use clqd::model::{
    ArchiveJob, GameKey, MapKey, OutboxEntry, OutboxKey, PlayerKey, Ranking, ServerKey, Session, SessionKey, WeekKey,
};

use super::Database;

/// Names that break incorrectly escaped statements or wrong collations.
const ODD_NAMES: [&str; 14] =
    ["O'Brien", "back\\slash", "\\'", "😀", "ß", "ss", "SS", "é", "e", "\"q\"", "%_", "a;b -- c", "名前", "/*x*/"];

/// The job source of a worker.
#[derive(Clone)]
pub struct Outbox(pub Arc<Mutex<World>>);

impl Outbox {
    pub fn new(seed: u64) -> Outbox {
        Outbox(Arc::new(Mutex::new(World::new(seed))))
    }

    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

impl JobSource for Outbox {
    async fn archive_id(&self) -> Result<Option<u64>, SourceClosed> {
        // As of the default plan of a writer: a connection after a failure continues at once.
        Ok(Some(0))
    }

    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        Ok(self.with(|world| {
            let mut rows = 0;
            let mut jobs = Vec::new();
            for (&key, &seq) in world.pending.iter().filter(|(key, _)| query.contains(**key)) {
                if jobs.len() == query.entries_max || rows >= query.rows_max {
                    break;
                }
                let job = world.job(key);
                if let ArchiveJob::Week(week) = &job {
                    rows += week.rows.len() + week.maps.len();
                }
                jobs.push((OutboxEntry { key, seq }, job));
            }
            // The data change while these jobs are written.
            if world.changes_concurrently && !jobs.is_empty() {
                world.step();
                world.changes_concurrently = world.random(4) > 0;
            }
            jobs
        }))
    }

    async fn bounds(&self) -> Result<Option<ArchiveBounds>, SourceClosed> {
        Ok(self.with(|world| world.bounds.clone()))
    }

    async fn site_totals(&self) -> Result<Option<SiteTotals>, SourceClosed> {
        Ok(self.with(|world| world.site_totals.clone()))
    }

    async fn tasks(&self) -> Result<Vec<OutboxEntry>, SourceClosed> {
        Ok(self.with(|world| world.tasks.iter().map(|&key| OutboxEntry { key, seq: 0 }).collect()))
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, _: WriterBeat) -> Result<(), SourceClosed> {
        self.with(|world| {
            for entry in entries {
                world.tasks.remove(&entry.key);
                if world.pending.get(&entry.key) == Some(&entry.seq) {
                    world.pending.remove(&entry.key);
                }
            }
        });
        Ok(())
    }
}

pub struct World {
    state: u64,
    seq: u64,
    pub pending: BTreeMap<OutboxKey, u64>,
    games: Vec<String>,
    maps: Vec<String>,
    players: Vec<(GameKey, String, String)>,
    servers: Vec<ServerArchive>,
    pub weeks: BTreeMap<(u32, u32), WeekArchive>,
    best: BTreeMap<(u32, u32), BestPositions>,
    sessions: BTreeMap<SessionKey, Session>,
    /// The current week.
    week: u32,
    /// Changes happen while jobs are being written.
    pub changes_concurrently: bool,
    /// The weeks that the source keeps, and its time; `None`: not known.
    pub bounds: Option<ArchiveBounds>,
    /// Tasks that are not done.
    pub tasks: BTreeSet<OutboxKey>,
    /// Totals to publish.
    pub site_totals: Option<SiteTotals>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            state: seed | 1,
            seq: 0,
            pending: BTreeMap::new(),
            games: Vec::new(),
            maps: Vec::new(),
            players: Vec::new(),
            servers: Vec::new(),
            weeks: BTreeMap::new(),
            best: BTreeMap::new(),
            sessions: BTreeMap::new(),
            week: 2_900,
            changes_concurrently: false,
            bounds: None,
            tasks: BTreeSet::new(),
            site_totals: None,
        };
        for name in ["baseq3", "cstrike", "map's \\ game"] {
            world.games.push(name.into());
            world.touch(OutboxKey::Game(GameKey(world.games.len() as u32)));
        }
        for name in ODD_NAMES {
            world.add_player(name.into());
        }
        for _ in 0..4 {
            world.add_server();
        }
        world
    }

    /// A random number below a limit (xorshift64*).
    fn random(&mut self, limit: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn touch(&mut self, key: OutboxKey) {
        self.seq += 1;
        self.pending.insert(key, self.seq);
    }

    pub fn touch_all(&mut self) {
        let all: Vec<OutboxKey> = self.keys();
        for key in all {
            self.touch(key);
        }
    }

    fn keys(&self) -> Vec<OutboxKey> {
        let mut keys = Vec::new();
        keys.extend((1..=self.games.len() as u32).map(|key| OutboxKey::Game(GameKey(key))));
        keys.extend((1..=self.maps.len() as u32).map(|key| OutboxKey::Map(MapKey(key))));
        keys.extend((1..=self.players.len() as u32).map(|key| OutboxKey::Player(PlayerKey(key))));
        keys.extend(self.servers.iter().map(|server| OutboxKey::Server(server.key)));
        keys.extend(
            self.weeks.keys().map(|&(week, server)| OutboxKey::Week { week: WeekKey(week), server: ServerKey(server) }),
        );
        keys.extend(self.sessions.keys().copied().map(OutboxKey::Session));
        keys
    }

    /// All jobs with their current content.
    pub fn jobs(&self) -> Vec<ArchiveJob> {
        self.keys().into_iter().map(|key| self.job(key)).collect()
    }

    fn job(&self, key: OutboxKey) -> ArchiveJob {
        match key {
            OutboxKey::Game(key) => ArchiveJob::Game { key, name: self.games[key.0 as usize - 1].clone() },
            OutboxKey::Map(key) => ArchiveJob::Map { key, name: self.maps[key.0 as usize - 1].clone() },
            OutboxKey::Player(key) => {
                let (game, name, display) = self.players[key.0 as usize - 1].clone();
                ArchiveJob::Player { key, game, name, display }
            }
            OutboxKey::Session(key) => ArchiveJob::Session(key, self.sessions[&key]),
            OutboxKey::WeekTotals(week) => ArchiveJob::WeekTotals { week },
            OutboxKey::BestPositions { .. } => panic!("{key:?} was not added"),
            OutboxKey::TopBoards(_) | OutboxKey::LaterRows => panic!("{key:?} is a task"),
            OutboxKey::Server(key) => ArchiveJob::Server(Box::new(self.servers[key.0 as usize - 1].clone())),
            OutboxKey::Week { week, server } => {
                let mut week = self.weeks[&(week.0, server.0)].clone();
                if week.closed {
                    week.best =
                        week.rows.iter().map(|row| (row.player, self.best_of(server, row.player)).into()).collect();
                }
                ArchiveJob::Week(Box::new(week))
            }
        }
    }

    fn best_of(&self, server: ServerKey, player: PlayerKey) -> [Vec<(u32, WeekKey)>; 3] {
        let best = self.best.get(&(server.0, player.0)).cloned().unwrap_or_default();
        best.top_three()
    }

    fn add_player(&mut self, name: String) -> PlayerKey {
        let game = GameKey(1 + self.random(self.games.len() as u64) as u32);
        let display = format!("^1{name}");
        self.players.push((game, name, display));
        let key = PlayerKey(self.players.len() as u32);
        self.touch(OutboxKey::Player(key));
        key
    }

    fn add_map(&mut self) -> MapKey {
        self.maps.push(format!("q3dm{}", self.maps.len()));
        let key = MapKey(self.maps.len() as u32);
        self.touch(OutboxKey::Map(key));
        key
    }

    fn add_server(&mut self) {
        let key = ServerKey(self.servers.len() as u32 + 1);
        self.servers.push(ServerArchive {
            hostname: "a 'server' \\".into(),
            slots: 16,
            total_points: -5,
            added_ms: 1_763_000_000_000,
            ..new_server(key.0, &format!("quake3://10.0.0.{key}:27960"))
        });
        self.touch(OutboxKey::Server(key));
    }

    /// Makes a random change.
    pub fn step(&mut self) {
        match self.random(20) {
            0 => self.add_server(),
            1 => self.close_week(),
            2..=8 => self.change_server(),
            9..=11 => self.add_session(),
            _ => self.change_week(),
        }
    }

    fn add_session(&mut self) {
        let server = ServerKey(self.random_server() as u32 + 1);
        let (player, origin, map) = (self.random_player(), self.random_player(), self.random_map());
        let end_ms = 1_763_000_000_000 + self.random(1_000) as i64;
        let points = (self.random(3) > 0).then_some(self.random(100) as i64 - 50);
        let start_ms = end_ms - self.random(100_000) as i64;
        let (key, seen) = (SessionKey { end_ms, server, player, origin, generation: 0 }, self.random(50) as u32);
        self.sessions.insert(key, Session { start_ms, points, map, seen });
        self.touch(OutboxKey::Session(key));
    }

    fn random_server(&mut self) -> usize {
        self.random(self.servers.len() as u64) as usize
    }

    fn random_player(&mut self) -> PlayerKey {
        if self.random(5) == 0 {
            let name = format!("{} {}", ODD_NAMES[self.random(ODD_NAMES.len() as u64) as usize], self.players.len());
            return self.add_player(name);
        }
        let key = PlayerKey(1 + self.random(self.players.len() as u64) as u32);
        if self.random(3) == 0 {
            let colour = self.random(8);
            let player = &mut self.players[key.0 as usize - 1];
            player.2 = format!("^{colour}{}", player.1);
            self.touch(OutboxKey::Player(key));
        }
        key
    }

    fn random_map(&mut self) -> MapKey {
        if self.maps.is_empty() || self.random(6) == 0 {
            return self.add_map();
        }
        MapKey(1 + self.random(self.maps.len() as u64) as u32)
    }

    fn change_server(&mut self) {
        let at = self.random_server();
        let map = self.random_map();
        let length = self.random(5);
        let list = (0..length)
            .map(|_| {
                let player = self.random_player();
                let (_, name, display) = self.players[player.0 as usize - 1].clone();
                let points = self.random(100) as i64 - 10;
                ListEntry {
                    name,
                    display,
                    points: (points % 7 > 0).then_some(points),
                    player: (points % 3 > 0).then_some(player),
                    spectator: points % 5 == 0,
                }
            })
            .collect();
        let random: Vec<u64> = (0..1_700).map(|_| self.random(1 << 20)).collect();
        let bytes = |from: usize, count: usize| random[from..from + count].iter().map(|&it| it as u8).collect();
        let week = self.week;
        let server = &mut self.servers[at];
        server.game = Some(GameKey(1));
        server.map = Some(map);
        server.list = list;
        server.players = random[0] as u32;
        server.online = random[0] > 0;
        server.class = 1 + (random[1] % 7) as u8;
        server.last_seen_ms = Some(1_763_000_000_000 + random[2] as i64);
        server.greylist_reason = random[3].is_multiple_of(4).then(|| "it's fake".to_owned());
        server.removed = random[4].is_multiple_of(8);
        server.rank = random[5].is_multiple_of(2).then_some(random[5] as u32);
        server.rank_week = server.rank.map(|_| WeekKey(week - 1));
        server.tags = ["ctf", "CTF", "it's", "123"]
            .into_iter()
            .zip(&random[6..10])
            .filter(|(_, random)| *random % 2 == 0)
            .map(|(tag, _)| tag.to_owned())
            .collect();
        server.bots_unidentified = random[13] as u32 % 5;
        server.screened = ScreenReason::ALL
            .iter()
            .zip(&random[14..20])
            .filter(|(_, random)| *random % 2 == 0)
            .map(|(&reason, &random)| (reason, 1_763_000_000_000 + random as i64))
            .collect();
        server.series = (!random[11].is_multiple_of(5)).then(|| SeriesRecord {
            newest_ten_minutes_ms: 1_763_000_400_000,
            newest_hour_ms: 1_762_999_200_000,
            newest_day_ms: 1_762_905_600_000,
            newest_week_ms: 0,
            ten_minutes: bytes(20, 250),
            hours: bytes(300, 768),
            days: bytes(1_100, 365),
            weeks: bytes(1_500, (random[12] % 60) as usize),
            ranks: bytes(1_570, 110),
            newest_rank_week: Some(WeekKey(week - 1)),
        });
        let key = server.key;
        self.touch(OutboxKey::Server(key));
    }

    fn change_week(&mut self) {
        let server = self.random_server() as u32 + 1;
        let week = self.week;
        let count = self.random(8);
        let mut players = BTreeSet::new();
        for _ in 0..count {
            players.insert(self.random_player());
        }
        let mut maps = BTreeSet::new();
        for _ in 0..count / 2 {
            maps.insert(self.random_map());
        }
        let calendar = Calendar::default();
        let key = WeekKey(week);
        let week_start_ms = calendar.week_start_ms(key);
        let mut steps = Vec::new();
        for ranking in Ranking::ALL {
            for number in 0..self.random(3) as u32 {
                let order = self.random(1 << 31).to_be_bytes().into_iter().collect();
                steps.push(BoardStep { ranking, position: 1 + 32 * number, order });
            }
        }
        let mut rows = Vec::new();
        for (at, &player) in players.iter().enumerate() {
            let measured_ms = self.random(1 << 30);
            let starts = self.random(20) as u32;
            let position = Some(at as u32 + 1);
            let reached_ms = week_start_ms + self.random(1 << 29) as i64;
            let place = |position| BoardPlace { reached_ms, order: BoardOrder::Position(position) };
            let mut ten_best = [TopTen::default(), TopTen::default()];
            for ten in &mut ten_best {
                for _ in 0..self.random(11) {
                    ten.insert(self.random(1 << 30), week_start_ms + self.random(1 << 29) as i64);
                }
            }
            rows.push(PlayerWeekArchive {
                player,
                measured_ms,
                starts,
                time_ms: measured_ms + 60_000 * u64::from(starts),
                time_est_ms: measured_ms + self.random(1 << 20),
                points: self.random(500) as i64 - 20,
                points_est: self.random(500_000) as f64 / 1_000.0,
                elo: 1_000.0 + self.random(1 << 30) as f64 / 3.0e7 - 17.9,
                elo_rounds: 2 + self.random(3) as u32,
                elo_rounds_sure: self.random(3) as u32,
                uncertainty: Uncertainty {
                    time_est_s2: self.random(1 << 20) as u32,
                    connected_difference_ms: self.random(1 << 20) as i64 - (1 << 19),
                    time_connected_s2: self.random(1 << 20) as u32,
                    points_est_thousandths: self.random(1 << 34),
                },
                clq1: self.random(1 << 40),
                clq2: self.random(80),
                places: [position, None, position.filter(|it| it % 2 == 0), position, position]
                    .map(|position| position.map(place)),
                ten_best: Some(Box::new(ten_best)).filter(|_| at % 3 > 0),
            });
        }
        let mut map_rows = Vec::new();
        for &map in &maps {
            map_rows.push(MapWeekArchive { map, played_ms: self.random(1 << 29), player_ms: self.random(1 << 31) });
        }
        // A greylisted server counts in no game.
        let game = Some(self.random(self.games.len() as u64 + 1) as u32).filter(|game| *game > 0).map(GameKey);
        let board_sizes = [(); 5].map(|()| self.random(400) as u32);
        self.weeks.insert(
            (week, server),
            WeekArchive {
                week: key,
                server: ServerKey(server),
                label: week_label(key),
                week_start_ms,
                week_end_ms: calendar.week_end_ms(key),
                closed: false,
                game,
                server_rank: None,
                player_ms: map_rows.iter().map(|row| row.player_ms).sum(),
                board_sizes,
                checksum: None,
                span: PlayerKeyRange::ALL,
                is_complete: true,
                rows,
                maps: map_rows,
                steps,
                best: Vec::new(),
            },
        );
        self.touch(OutboxKey::Week { week: key, server: ServerKey(server) });
    }

    fn close_week(&mut self) {
        let week = self.week;
        let keys: Vec<(u32, u32)> = self.weeks.range((week, 0)..(week + 1, 0)).map(|(&key, _)| key).collect();
        for (rank, key) in (1..).zip(keys) {
            let job = self.weeks.get_mut(&key).unwrap();
            job.closed = true;
            job.steps.clear();
            job.checksum = Some(rank * 7_919);
            job.rows.iter_mut().for_each(|row| row.ten_best = None);
            job.server_rank = (job.player_ms > 0).then_some(rank);
            for row in &job.rows {
                let best = self.best.entry((key.1, row.player.0)).or_default();
                for ranking in 0..3 {
                    best.set(ranking, position(row.places[ranking].as_ref()), job.week);
                }
            }
            self.touch(OutboxKey::Week { week: WeekKey(key.0), server: ServerKey(key.1) });
        }
        self.week += 1;
    }

    /// The expected tables after everything is archived.
    pub fn tables(&self) -> Tables {
        let mut tables = Tables::new();
        for name in TABLES.map(|(name, _)| name) {
            tables.insert(name, BTreeSet::new());
        }
        let mut totals: BTreeMap<(WeekKey, GameKey, MapKey), (u64, u64, u32)> = BTreeMap::new();
        let mut server_weeks: BTreeMap<(WeekKey, ServerKey), (Option<u32>, Vec<String>)> = BTreeMap::new();
        let mut player_totals: BTreeMap<(PlayerKey, WeekKey), PlayerTotal> = BTreeMap::new();
        let mut put = |table: &'static str, row: Vec<String>| {
            assert!(tables.get_mut(table).unwrap().insert(row), "a duplicate row of {table}");
        };
        for job in self.jobs() {
            match job {
                ArchiveJob::Game { key, name } => put("game", vec![text(key), name]),
                ArchiveJob::Map { key, name } => put("map", vec![text(key), name]),
                ArchiveJob::Player { key, game, name, display } => {
                    for (ordinal, word) in (1..).zip(later_words(&name)) {
                        put("player_word", vec![text(key), text(ordinal), word, text(game)]);
                    }
                    put("player", vec![text(key), text(game), name, display])
                }
                ArchiveJob::Session(SessionKey { end_ms, server, player, origin, .. }, session) => {
                    let Session { start_ms, points, map, seen } = session;
                    let key = vec![text(server), text(end_ms), text(player), text(origin)];
                    let values = vec![text(start_ms), maybe(points), text(map), text(seen)];
                    put("player_session", [key, values].concat());
                }
                ArchiveJob::WeekTotals { week } => panic!("week {week}: no totals are queued"),
                ArchiveJob::BestPositions(best) => panic!("server {}: no best positions are queued", best.server),
                ArchiveJob::PlayerRemoved { key, .. } => panic!("player {key}: no player is removed"),
                ArchiveJob::Server(it) => {
                    let key = text(it.key);
                    put(
                        "server",
                        vec![
                            key.clone(),
                            it.url,
                            it.hostname.clone(),
                            maybe(it.game),
                            maybe(it.map),
                            text(it.slots),
                            text(it.class),
                            text(it.missed),
                            text(u8::from(it.online)),
                            text(it.players),
                            text(it.assumed_players),
                            text(it.total_points),
                            text(it.bots_unidentified),
                            text(it.added_ms),
                            maybe(it.last_scan_ms),
                            maybe(it.last_seen_ms),
                            maybe(it.rank),
                            maybe(it.rank_week),
                            maybe(it.greylist_reason),
                            text(u8::from(it.removed)),
                        ],
                    );
                    for tag in it.tags {
                        let rank = it.rank.filter(|_| !it.removed);
                        put("server_tag", vec![key.clone(), tag, text(it.players), maybe(rank)]);
                    }
                    let words = if it.removed { Vec::new() } else { later_words(&it.hostname) };
                    for (ordinal, word) in (1..).zip(words) {
                        put("server_word", vec![key.clone(), text(ordinal), word]);
                    }
                    for (reason, applied_ms) in it.screened {
                        let reason = reason.name().to_owned();
                        put("server_screening", vec![key.clone(), reason, text(applied_ms)]);
                    }
                    for (number, entry) in (1..).zip(it.list) {
                        let points = maybe(entry.points);
                        let spectator = text(u8::from(entry.spectator));
                        let row = vec![
                            key.clone(),
                            text(number),
                            entry.name,
                            entry.display,
                            points,
                            maybe(entry.player),
                            spectator,
                            maybe(it.game),
                        ];
                        put("online_player", row);
                    }
                    if let Some(it) = it.series {
                        let times = [it.newest_ten_minutes_ms, it.newest_hour_ms, it.newest_day_ms, it.newest_week_ms];
                        let blobs = [it.ten_minutes, it.hours, it.days, it.weeks, it.ranks];
                        let mut row = vec![key];
                        row.extend(times.map(text));
                        row.extend(blobs.map(|blob| hex(&blob)));
                        row.push(maybe(it.newest_rank_week));
                        put("server_series", row);
                    }
                }
                ArchiveJob::LargeWeek { .. } => panic!("no week is large"),
                ArchiveJob::Week(it) => {
                    let scope = [text(it.week), text(it.server)];
                    let row = |rest: Vec<String>| [&scope[..], &rest[..]].concat();
                    let mut rest = vec![maybe(it.game), maybe(it.server_rank), text(it.player_ms)];
                    rest.push(text(u8::from(it.closed)));
                    rest.extend(it.board_sizes.map(text));
                    rest.push(maybe(it.checksum));
                    server_weeks.insert((it.week, it.server), (it.server_rank, row(rest)));
                    for step in &it.steps {
                        put("board_step", row(vec![text(step.ranking.name()), text(step.position), hex(&step.order)]));
                    }
                    for r in &it.rows {
                        player_totals.entry((r.player, it.week)).or_default().add(r);
                        let mut rest = vec![text(r.player), text(r.measured_ms), text(r.starts), text(r.time_ms)];
                        rest.extend([text(r.time_est_ms), text(r.points), format!("{:?}", r.points_est)]);
                        rest.extend([format!("{:?}", r.elo), text(r.elo_rounds), text(r.elo_rounds_sure)]);
                        let Uncertainty { time_est_s2, time_connected_s2, points_est_thousandths, .. } = r.uncertainty;
                        rest.extend([text(time_est_s2), text(r.time_connected_ms()), text(time_connected_s2)]);
                        rest.push(text(points_est_thousandths));
                        rest.extend([text(r.clq1), text(r.clq2)]);
                        let places = r.places.each_ref().map(Option::as_ref);
                        rest.extend(places.map(|place| maybe(place.map(|place| hex(&place.order.to_bytes())))));
                        let after_ms = |place: &BoardPlace| place.reached_ms - it.week_start_ms;
                        rest.extend(places.map(|place| maybe(place.map(after_ms))));
                        for at in 0..2 {
                            let bytes = r.ten_best.as_ref().map(|ten_best| ten_best[at].to_bytes(it.week_start_ms));
                            rest.push(maybe(bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| hex(&bytes))));
                        }
                        rest.extend(places.map(|place| maybe(position(place))));
                        put("player_week", row(rest));
                    }
                    for r in &it.maps {
                        put("map_week", row(vec![text(r.map), maybe(it.game), text(r.played_ms), text(r.player_ms)]));
                        for game in it.game.map(|game| [game, GameKey(0)]).into_iter().flatten() {
                            let total = totals.entry((it.week, game, r.map)).or_default();
                            *total = (total.0 + r.played_ms, total.1 + r.player_ms, total.2 + 1);
                        }
                    }
                }
            }
        }
        for (&(week, server), (rank, row)) in &server_weeks {
            let before = server_weeks.get(&(WeekKey(week.0 - 1), server)).and_then(|(rank, _)| *rank);
            let previous = before.filter(|_| rank.is_some());
            let moved = previous.zip(*rank).map(|(previous, rank)| i64::from(previous) - i64::from(rank));
            put("server_week", [&row[..], &[maybe(previous), maybe(moved)]].concat());
        }
        for ((week, game, map), (played_ms, player_ms, servers)) in totals {
            put(
                "map_total",
                [text(week), text(game), text(map), text(played_ms), text(player_ms), text(servers)].to_vec(),
            );
        }
        for ((player, week), total) in player_totals {
            let points_est = (total.points_est * 1_000.0).round() / 1_000.0;
            let mut row = vec![text(player), text(week), text(total.servers), text(total.time_ms)];
            row.extend([
                text(total.time_est_ms),
                text(total.points),
                format!("{points_est:?}"),
                text(total.elo_rounds),
                text(total.elo_rounds_sure),
                text(total.time_est_variance),
                text(total.points_est_variance),
                maybe(total.last_seen_ms),
            ]);
            put("player_total", row);
        }
        let weeks: BTreeSet<u32> = self.weeks.keys().map(|&(week, _)| week).collect();
        for week in weeks {
            let (key, calendar) = (WeekKey(week), Calendar::default());
            let row = [text(key), week_label(key), text(calendar.week_start_ms(key)), text(calendar.week_end_ms(key))];
            // No task has computed the checksum.
            put("week", [&row[..], &[maybe(None::<u32>)]].concat());
        }
        for (&(server, player), best) in &self.best {
            for (ranking, list) in ["clq1", "clq2", "elo"].iter().zip(best.top_three()) {
                for (number, (position, week)) in (1..).zip(list) {
                    let row = [text(server), text(player), text(ranking), text(number), text(position), text(week)];
                    put("best_position", row.to_vec());
                }
            }
        }
        tables
    }
}

/// The rest of a name from each later word on.
fn later_words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let begins = |at: &usize| !characters[at - 1].is_alphanumeric() && characters[*at].is_alphanumeric();
    (1..characters.len()).filter(begins).map(|at| characters[at..].iter().take(64).collect()).collect()
}

/// A server that was never scanned.
pub fn new_server(key: u32, url: &str) -> ServerArchive {
    ServerArchive {
        key: ServerKey(key),
        url: url.into(),
        hostname: String::new(),
        game: None,
        map: None,
        slots: 0,
        class: 6,
        missed: 0,
        online: false,
        players: 0,
        assumed_players: 0,
        total_points: 0,
        added_ms: 0,
        last_scan_ms: None,
        last_seen_ms: None,
        rank: None,
        rank_week: None,
        greylist_reason: None,
        removed: false,
        tags: Vec::new(),
        list: Vec::new(),
        series: None,
        screened: Vec::new(),
        bots_unidentified: 0,
    }
}

/// Rows of each table, every value as text.
pub type Tables = BTreeMap<&'static str, BTreeSet<Vec<String>>>;

/// Tables and the columns that are read; blobs as hex.
const TABLES: [(&str, &str); 19] = [
    ("game", "*"),
    ("map", "*"),
    ("player", "player, game, name, display"),
    ("player_word", "*"),
    ("week", "*"),
    (
        "server",
        "server, url, hostname, game, map, slots, class, missed, online, players, assumed_players, total_points, \
         bots_unidentified, added_ms, last_scan_ms, last_seen_ms, server_rank, server_rank_week, greylist_reason, removed",
    ),
    ("server_tag", "*"),
    ("server_word", "*"),
    ("server_screening", "*"),
    ("online_player", "server, list_index, name, display, points, player, spectator, game"),
    (
        "server_series",
        "server, newest_ten_minutes_ms, newest_hour_ms, newest_day_ms, newest_week_ms, HEX(ten_minutes), HEX(hours), HEX(days), \
         HEX(weeks), HEX(ranks), newest_rank_week",
    ),
    ("server_week", "*"),
    (
        "player_week",
        "week, server, player, measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, \
         elo_rounds_sure, time_est_variance, time_connected_ms, time_connected_variance, points_est_variance, clq1, clq2, \
         HEX(clq1_order), HEX(clq2_order), HEX(elo_order), HEX(points_order), HEX(time_order), clq1_reached_after_ms, \
         clq2_reached_after_ms, elo_reached_after_ms, points_reached_after_ms, time_reached_after_ms, \
         HEX(clq1_segments), HEX(clq2_games), clq1_position, \
         clq2_position, elo_position, points_position, time_position",
    ),
    ("board_step", "week, server, ranking, position, HEX(board_order)"),
    ("best_position", "*"),
    ("map_week", "week, server, map, game, played_ms, player_ms"),
    ("map_total", "*"),
    ("player_total", "*"),
    ("player_session", "*"),
];

/// The expected sums of a player's rows in a week.
#[derive(Default)]
struct PlayerTotal {
    servers: u32,
    time_ms: u64,
    time_est_ms: u64,
    points: i64,
    points_est: f64,
    elo_rounds: u32,
    elo_rounds_sure: u32,
    time_est_variance: u64,
    points_est_variance: u64,
    last_seen_ms: Option<i64>,
}

impl PlayerTotal {
    fn add(&mut self, row: &PlayerWeekArchive) {
        self.servers += 1;
        self.time_ms += row.time_ms;
        self.time_est_ms += row.time_est_ms;
        self.points += row.points;
        self.points_est += row.points_est;
        self.elo_rounds += row.elo_rounds;
        self.elo_rounds_sure += row.elo_rounds_sure;
        self.time_est_variance += u64::from(row.uncertainty.time_est_s2);
        self.points_est_variance += row.uncertainty.points_est_thousandths;
        let time = &row.places[Ranking::Time as usize];
        self.last_seen_ms = self.last_seen_ms.max(time.as_ref().map(|place| place.reached_ms));
    }
}

/// The content of the tables.
pub async fn read(database: &Database) -> Tables {
    let mut tables = Tables::new();
    for (name, columns) in TABLES {
        // A map that is played on no server any more is kept with 0 servers.
        let played = if name == "map_total" { " WHERE servers > 0" } else { "" };
        let mut rows = database.rows(&format!("SELECT {columns} FROM {name}{played}")).await;
        if name == "player_week" {
            for row in &mut rows {
                // The database and Rust may print the same number differently.
                for at in [8, 9] {
                    row[at] = format!("{:?}", row[at].parse::<f64>().unwrap());
                }
            }
        }
        if name == "player_total" {
            for row in &mut rows {
                row[6] = format!("{:?}", row[6].parse::<f64>().unwrap());
            }
        }
        tables.insert(name, rows.into_iter().collect());
    }
    tables
}

/// Panics with the first missing and surplus rows of a table that differs.
pub fn assert_same(found: &Tables, wanted: &Tables, when: &str) {
    for (name, wanted) in wanted {
        let found = &found[name];
        let missing: Vec<_> = wanted.difference(found).take(3).collect();
        let surplus: Vec<_> = found.difference(wanted).take(3).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{when}: table {name}: missing {missing:?}, surplus {surplus:?}"
        );
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The position of a place in a closed week.
fn position(place: Option<&BoardPlace>) -> Option<u32> {
    match place?.order {
        BoardOrder::Position(position) => Some(position),
        BoardOrder::SortKey(_) => None,
    }
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

fn maybe<T: ToString>(value: Option<T>) -> String {
    value.map_or("NULL".into(), |value| value.to_string())
}
