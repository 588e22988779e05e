//! Players and servers online over time, of all servers, a game and a tag, are the sums of servers.

use clqd::engine::{EngineSettings, Event, SeriesGroup};
use clqd::model::calendar::{HOUR_MS, MINUTE_MS};
use clqd::model::{ServerUrl, Snapshot};
use clqd::state::State;
use clqd::store::StoreSettings;

use crate::scans;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
const HOURS: i64 = 50;

/// Game, tag, players, and hours in which it does not answer.
type Server = (&'static str, Option<&'static str>, u32, std::ops::Range<i64>);

const SERVERS: [Server; 4] = [
    ("baseq3", Some("ctf"), 4, 0..0),
    ("baseq3", None, 2, 20..22),
    ("tf", Some("ctf"), 8, 0..30),
    ("tf", None, 1, 49..HOURS),
];

fn url(number: usize) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.0.{number}:27960")).unwrap()
}

#[test]
fn sums_are_those_of_the_servers_that_were_seen() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    for (number, (_, tag, ..)) in SERVERS.iter().enumerate() {
        let tags = tag.map(str::to_owned).into_iter().collect();
        state.engine.add_server(url(number), tags, MONDAY_MS).unwrap();
    }
    assert!(state.engine.model().online_series(SeriesGroup::All).is_none(), "not computed yet");
    let end_ms = MONDAY_MS + HOURS * HOUR_MS;
    // A slot ends with the first scan after it.
    for t_ms in (MONDAY_MS..=end_ms + 10 * MINUTE_MS).step_by(5 * MINUTE_MS as usize) {
        let hour = (t_ms - MONDAY_MS) / HOUR_MS;
        for (number, (game, _, players, absent)) in SERVERS.iter().enumerate() {
            if !absent.contains(&hour) {
                // A list that never changes would be screened.
                let points = (t_ms - MONDAY_MS) / (5 * MINUTE_MS);
                let list = (0..*players).map(|player| (format!("p{player} on {number}"), points));
                let snapshot = Snapshot { game: (*game).into(), ..scans::snapshot(t_ms, list) };
                scans::apply_snapshot(&mut state, url(number).as_str(), snapshot);
            }
        }
        state.handle(Event::Tick { now_ms: t_ms }).unwrap();
    }
    state.handle(Event::Tick { now_ms: end_ms + 11 * MINUTE_MS }).unwrap();

    let check = |game: Option<&str>, tag: Option<&str>| {
        let group = state.engine.model().series_group(game, tag).unwrap();
        let series = state.engine.model().online_series(group).unwrap();
        let of_group =
            |server: &&Server| game.is_none_or(|game| server.0 == game) && tag.is_none_or(|tag| server.1 == Some(tag));
        for (slots, slot_ms, newest_ms) in
            [(&series.ten_minutes, 10 * MINUTE_MS, end_ms - 10 * MINUTE_MS), (&series.hours, HOUR_MS, end_ms - HOUR_MS)]
        {
            assert_eq!(slots.newest_ms, newest_ms);
            assert_eq!(slots.players.len(), slots.servers.len());
            for (back, (players, servers)) in slots.players.iter().rev().zip(slots.servers.iter().rev()).enumerate() {
                let start_ms = newest_ms - back as i64 * slot_ms;
                let hour = (start_ms - MONDAY_MS).div_euclid(HOUR_MS);
                let seen: Vec<&Server> =
                    SERVERS.iter().filter(of_group).filter(|it| hour >= 0 && !it.3.contains(&hour)).collect();
                // The count is assumed from three scans, so the first ones after a pause may be lower.
                let is_steady = !SERVERS.iter().any(|it| hour == it.3.end);
                assert_eq!(servers.unwrap_or(0) as usize, seen.len(), "{game:?} {tag:?} hour {hour}");
                let want: u32 = seen.iter().map(|it| it.2).sum();
                let got = players.unwrap_or(0.0);
                // The code of hours is exact to 2.3 %.
                let is_near = (got - f64::from(want)).abs() <= 0.023 * f64::from(want) + 0.05;
                assert!(is_near || !is_steady || hour == 0, "{game:?} {tag:?} hour {hour}: {got} of {want}");
            }
        }
        let of_group: Vec<&Server> = SERVERS.iter().filter(of_group).collect();
        let hours_seen: i64 = of_group.iter().map(|it| HOURS - (it.3.end - it.3.start)).sum();
        assert_eq!(series.week_coverage, Some(hours_seen as f64 / (HOURS * of_group.len() as i64) as f64));
        assert_eq!(series.days.newest_ms, MONDAY_MS + 24 * HOUR_MS, "Tuesday has ended");
        assert_eq!(series.days.servers.last(), Some(&Some(of_group.len() as u32)));
        assert_eq!(series.weeks.players.len(), 0);
    };
    check(None, None);
    check(Some("baseq3"), None);
    check(Some("tf"), None);
    check(None, Some("ctf"));
    let unknown = state.engine.model().series_group(Some("baseq"), None).unwrap_err();
    assert_eq!(unknown.to_string(), "no server of game \"baseq\" was ever seen; did you mean \"baseq3\"?");

    // A removed server is not counted any more.
    state.engine.remove_server(&state.store, &url(2)).unwrap();
    state.handle(Event::Tick { now_ms: end_ms + 21 * MINUTE_MS }).unwrap();
    let series = state.engine.model().online_series(SeriesGroup::All).unwrap();
    let servers: Vec<u32> = series.hours.servers.iter().flatten().copied().collect();
    assert_eq!(servers.iter().max(), Some(&3));
}
