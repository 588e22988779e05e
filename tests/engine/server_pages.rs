//! Pages of the list of servers: their order, their ends, and the limit of what one looks at.

use clqd::engine::EngineSettings;
use clqd::model::ServerUrl;
use clqd::model::view::ServerSummary;
use clqd::state::State;
use clqd::store::StoreSettings;

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
        state.engine.remove_server(&url(number)).unwrap();
    }
    let pages = |count: usize, matches: &dyn Fn(&ServerSummary) -> bool| {
        let (mut all, mut pages, mut after) = (Vec::new(), 0, None);
        loop {
            let (page, next) = state.engine.servers_page(after.as_ref(), count, matches).unwrap();
            assert!(page.len() <= count);
            all.extend(page.into_iter().map(|server| server.url));
            pages += 1;
            match next {
                Some(next) => after = Some(ServerUrl::parse(&next).unwrap()),
                None => return (all, pages),
            }
        }
    };
    let listed = (0..SERVERS).rev().filter(|number| ![0, 7_777, 10_000].contains(number));
    let want: Vec<String> = listed.map(|number| url(number).to_string()).collect();
    assert_eq!(pages(500, &|_| true).0, want);
    assert_eq!(pages(10_001, &|_| true), (want.clone(), 2));
    let is = |wanted: u32| move |server: &ServerSummary| server.url == url(wanted).as_str();
    assert_eq!(pages(5, &is(1)), (vec![url(1).to_string()], 2), "the last but one");
    assert_eq!(pages(5, &|_| false), (Vec::new(), 2), "no server matches, but all were looked at");
    let unknown = ServerUrl::parse("quake3://192.0.2.1:1").unwrap();
    assert!(state.engine.servers_page(Some(&unknown), 5, &|_| true).is_none());
    assert!(state.engine.servers_page(Some(&url(7_777)), 5, &|_| true).is_some(), "a removed server");
}
