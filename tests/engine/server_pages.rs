//! Pages of the list of servers: their order, their ends, and the limit of what one looks at.

use crate::scans;
use clqd::engine::EngineSettings;
use clqd::model::server_page::ServerOrder;
use clqd::model::{ServerUrl, Snapshot};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::ServerFields;

const NOW_MS: i64 = 1_764_064_800_000;

/// More than one page may look at.
const SERVERS: u32 = 10_001;

fn url(number: u32) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.{}.{}:27960", number / 256, number % 256)).unwrap()
}

#[test]
fn pages_contain_every_listed_server_once_and_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    // From the last number down, so that the order of the URLs is another one.
    for number in (0..SERVERS).rev() {
        state.engine.add_server(url(number), Vec::new(), NOW_MS).unwrap();
    }
    for number in [0, 7_777, 10_000] {
        state.engine.remove_server(&state.store, &url(number)).unwrap();
    }
    let pages = |count: usize, matches: &dyn Fn(&ServerFields<'_>) -> bool| {
        let (mut all, mut pages, mut after) = (Vec::new(), 0, None);
        loop {
            let (page, next) = state.engine.model().servers_page(ServerOrder::Added, after.as_ref(), count, matches);
            assert!(page.len() <= count);
            all.extend(page.into_iter().map(|server| server.public.url));
            pages += 1;
            match next {
                Some(next) => after = Some(next),
                None => return (all, pages),
            }
        }
    };
    let listed = (0..SERVERS).rev().filter(|number| ![0, 7_777, 10_000].contains(number));
    let want: Vec<String> = listed.map(|number| url(number).to_string()).collect();
    assert_eq!(pages(500, &|_| true).0, want);
    assert_eq!(pages(10_001, &|_| true), (want.clone(), 2));
    let is = |wanted: u32| move |server: &ServerFields<'_>| server.url == url(wanted).as_str();
    assert_eq!(pages(5, &is(1)), (vec![url(1).to_string()], 2), "the last but one");
    assert_eq!(pages(5, &|_| false), (Vec::new(), 2), "no server matches, but all were looked at");
}

/// Servers that answered have 0 to 6 players.
#[test]
fn other_orders_contain_their_servers_once() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    const SERVERS: u32 = 50;
    for number in 0..SERVERS {
        state.engine.add_server(url(number), Vec::new(), NOW_MS).unwrap();
        if number < 40 {
            let players = (0..number % 7).map(|n| (format!("p{n}"), 5));
            let hostname = format!("{}name", ["B", "a", "b "][number as usize % 3]);
            let snapshot = Snapshot { hostname, ..scans::snapshot(NOW_MS, players) };
            scans::apply_snapshot(&mut state, url(number).as_str(), snapshot);
        }
    }
    let list = |state: &State, order: ServerOrder, count: usize| -> Vec<(u32, String, String)> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = state.engine.model().servers_page(order, after.as_ref(), count, &|_| true);
            all.extend(
                page.into_iter()
                    .map(|server| (server.public.players, server.public.hostname.to_lowercase(), server.public.url)),
            );
            match next {
                Some(next) => after = Some(next),
                None => return all,
            }
        }
    };
    for order in [ServerOrder::Players, ServerOrder::Name] {
        let whole = list(&state, order, 100);
        assert_eq!(list(&state, order, 3), whole);
        assert_eq!(whole.len(), 40, "{order:?}: servers that answer");
        let is_sorted = match order {
            ServerOrder::Players => whole.is_sorted_by(|a, b| a.0 >= b.0),
            _ => whole.is_sorted_by(|a, b| a.1 <= b.1),
        };
        assert!(is_sorted, "{order:?}: {whole:?}");
    }
    assert_eq!(list(&state, ServerOrder::Added, 7).len(), 50);
    assert_eq!(list(&state, ServerOrder::Rank, 7).len(), 0, "no week has closed");

    // Every server of the first page is empty afterwards, and so in the middle of the order; no server
    // is there twice on the further pages, and none is missing.
    let (first, mut after) = state.engine.model().servers_page(ServerOrder::Players, None, 5, &|_| true);
    let mut walked: Vec<String> = first.iter().map(|server| server.public.url.clone()).collect();
    let mut later_ms = NOW_MS;
    while let Some(place) = after {
        // Longer than a list is used for first pages.
        later_ms += 30_000;
        for url in walked.clone() {
            scans::apply_snapshot(&mut state, &url, scans::snapshot::<&str>(later_ms, []));
        }
        // Another reader begins, and the servers are sorted again.
        state.engine.model().servers_page(ServerOrder::Players, None, 1, &|_| true);
        let (page, next) = state.engine.model().servers_page(ServerOrder::Players, Some(&place), 5, &|_| true);
        walked.extend(page.into_iter().map(|server| server.public.url));
        after = next;
    }
    let unique: std::collections::BTreeSet<&String> = walked.iter().collect();
    assert_eq!((walked.len(), unique.len()), (40, 40), "{walked:?}");
    let busiest = list(&state, ServerOrder::Players, 7);
    assert_eq!(busiest[0].0, 0, "a new walk has the new order: {busiest:?}");

    // A list that was sorted is used for a while, also if servers change; a removed one is left out.
    let before = list(&state, ServerOrder::Players, 7);
    let (best, rest) = before.split_first().unwrap();
    state.engine.remove_server(&state.store, &ServerUrl::parse(&best.2).unwrap()).unwrap();
    assert_eq!(list(&state, ServerOrder::Players, 7), rest);
}
