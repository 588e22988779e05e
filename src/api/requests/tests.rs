//! Tests of the bodies of requests, and of the lines of their answers.

use super::*;
use crate::api::{
    ApiError, ArchiveStatus, ErrorCode, Line, Request, ServerFilter, URLS_PER_REQUEST_MAX, decode, encode,
};
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::model::server::{Class, ScreenReason};
use crate::model::server_page::ServerOrder;
use crate::model::{NameHash, ServerUrl};
use crate::view::board::{BoardQuery, BoardSelector, BoardsSelector, FusedQuery, PlayerSelector, RankingWeight};
use crate::view::{MapSeen, PublicServer, PublicServerDetail, ServerDetail, Setting};

fn url(text: &str) -> ServerUrl {
    ServerUrl::parse(text).expect("a URL")
}

#[test]
fn every_request_round_trips_and_is_listed() {
    let mut seen = [
        round_trip(&Status {}),
        round_trip(&ServersAdd { urls: vec!["quake3://a:1".into()], tags: vec!["ctf".into()], import: false }),
        round_trip(&ServersRemove { urls: vec!["quake3://a:1".into()] }),
        round_trip(&ServersList { filter: ServerFilter { class: Class::new(2), ..ServerFilter::default() } }),
        round_trip(&ServersPage {
            filter: ServerFilter { map: Some("q3dm6".into()), ..ServerFilter::default() },
            after: Some("AAAAAAE".parse().expect("a cursor")),
            count: 5,
            order: ServerOrder::Players,
            recent: true,
        }),
        round_trip(&ServersSearch { text: "house".into(), count: 7 }),
        round_trip(&Overview {}),
        round_trip(&Series { game: Some("baseq3".into()), tag: None }),
        round_trip(&ServersShow { url: url("quake3://a:1") }),
        round_trip(&Rescan { servers: RescanSelector::AllUnknown }),
        round_trip(&ScannersList {}),
        round_trip(&ClusterCopy {}),
        round_trip(&ClusterEngines {}),
        round_trip(&ScannersExchange {
            name: "a".into(),
            region: "eu".into(),
            session: 7,
            space: 5,
            batch_known: 3,
            oldest: 4,
            first: 5,
            outcomes: Vec::new(),
            settings_known: None,
        }),
        round_trip(&Top { server: url("source://b:2"), ranking: Ranking::Clq1, week: None, count: 10 }),
        round_trip(&Board {
            board: BoardSelector {
                scope: Scope::Server(url("source://b:2")),
                ranking: Ranking::Clq1,
                window: Some("2026-W47".into()),
                at_ms: None,
            },
            query: BoardQuery::Around { player: PlayerSelector::Name("Visor".into()), count: 5 },
        }),
        round_trip(&Standings {
            boards: BoardsSelector { scope: Scope::Tag("pro".into()), window: None, at_ms: Some(5) },
            player: PlayerSelector::Key(12),
            rankings: vec![],
        }),
        round_trip(&Fused {
            boards: BoardsSelector { scope: Scope::Game("baseq3".into()), window: None, at_ms: None },
            rankings: vec![RankingWeight { ranking: Ranking::Elo, weight: 0.1 }],
            k: Some(60.0),
            query: FusedQuery::Top { count: 3 },
        }),
        round_trip(&Boards {
            boards: BoardsSelector { scope: Scope::Tag("pro".into()), window: None, at_ms: None },
            query: BoardQuery::Top { count: 10 },
        }),
        round_trip(&Windows { bytes: true }),
        round_trip(&WindowsDelete { before_ms: 1_763_683_200_000 }),
        round_trip(&WindowsRecompute {
            settings: serde_json::Map::from_iter([("elo.k".to_owned(), 25.5.into())]),
            only_check: true,
        }),
        round_trip(&Player { name: "Visor".into() }),
        round_trip(&Map { map: "q3dm17".into() }),
        round_trip(&Maps { text: Some("q3".into()), count: 7 }),
        round_trip(&ServersBest { url: url("quake3://a:1") }),
        round_trip(&PlayerNamed { name: "Visor".into() }),
        round_trip(&PlayerSearch { text: "vis".into(), count: 7 }),
        round_trip(&PlayerShow { player_key: 7, skip: 0 }),
        round_trip(&ServersTags {}),
        round_trip(&ServersTag { urls: vec![url("quake3://a:1")], add: vec!["ctf".into()], remove: Vec::new() }),
        round_trip(&ServersTrust {
            url: url("source://b:2"),
            except: vec![ScreenReason::FrozenList],
            revoke: Vec::new(),
        }),
        round_trip(&ServersBudget { urls: vec![url("quake3://a:1")], budget: Some(3.0.try_into().unwrap()) }),
        round_trip(&TagDrop { tag: "ctf".into() }),
        round_trip(&PlayerMerge {
            from: PlayerSelector::Key(7),
            into: PlayerSelector::Name("7".into()),
            game: "g".into(),
        }),
        round_trip(&PlayerForget { player: PlayerSelector::Name("Visor".into()), game: "baseq3".into() }),
        round_trip(&PlayerForgotten {}),
        round_trip(&PlayerAllow { hash: NameHash::of("baseq3", "Visor") }),
        round_trip(&Boost { url: url("source://b:2"), for_s: 1_800 }),
        round_trip(&Greylist { url: url("source://b:2"), reason: Some("two servers, one list".into()) }),
        round_trip(&Backup { dir: "/var/lib/clqd-backup/a".into() }),
        round_trip(&ClockAccept {}),
        round_trip(&ClockReset { force: true }),
        round_trip(&WeekReopen { week: "2026-W47".into() }),
        round_trip(&ArchiveResend {
            weeks: Some(WeekRange { first: "2026-W45".into(), last: "2026-W47".into() }),
            take_over: false,
        }),
        round_trip(&ArchiveVerify { weeks: None }),
        round_trip(&Export { week: "2026-W47".into() }),
        round_trip(&ExportSessions {}),
        round_trip(&ServersCountries {}),
        round_trip(&PlayerCompanions { player_key: 7, count: 9 }),
        round_trip(&PlayerSessions { player: PlayerSelector::Key(7), count: 9 }),
        round_trip(&ServersSessions { url: url("quake3://a:1"), last_s: Some(5), count: 9 }),
        round_trip(&ServersVisitors { url: url("quake3://a:1"), last_s: 5, sessions: 7, count: 9 }),
        round_trip(&Reload {}),
    ];
    let mut listed: Vec<&str> = REQUESTS.iter().map(|request| request.name).collect();
    seen.sort_unstable();
    listed.sort_unstable();
    assert_eq!(seen[..], listed[..]);
}

/// Returns the name of the request.
#[track_caller]
fn round_trip<R: Request + PartialEq + std::fmt::Debug>(request: &R) -> &'static str {
    let (path, body) = encode(request);
    let info = REQUESTS.iter().find(|info| info.path() == path).expect("listed");
    assert_eq!((info.name, (info.check)(body.as_bytes())), (R::NAME, Ok(())));
    assert_eq!(decode::<R>(body.as_bytes()).as_ref(), Ok(request));
    R::NAME
}

#[test]
fn documented_bodies_decode() {
    let show = decode(br#"{"url":"QUAKE3://127.0.0.1"}"#);
    assert_eq!(show, Ok(ServersShow { url: url("quake3://127.0.0.1:27960") }));
    for body in ["", " \n", "{}"] {
        assert_eq!(decode(body.as_bytes()), Ok(ServersList { filter: ServerFilter::default() }));
    }
    let rescan = decode(br#"{"servers":"all_unknown"}"#);
    assert_eq!(rescan, Ok(Rescan { servers: RescanSelector::AllUnknown }));
}

#[test]
fn invalid_requests_get_specific_errors() {
    #[track_caller]
    fn refused(command: &str, body: &str, message: &str) {
        let request = REQUESTS.iter().find(|request| request.name == command).expect("a request");
        let failure = (request.check)(body.as_bytes()).expect_err(body);
        assert_eq!(failure.code, ErrorCode::BadRequest, "{body}");
        assert!(failure.message.contains(message), "{body}: {}", failure.message);
    }
    refused("status", "[]", "not a JSON object");
    refused("status", "{", "not JSON");
    refused("status", r#"{"x":1}"#, "x");
    refused("status", r#"{"cmd":"reload"}"#, "unknown field `cmd`");
    refused("servers.list", r#"{"filter":{"clas":1}}"#, "clas");
    refused("servers.list", r#"{"filter":{"class":8}}"#, "8");
    refused("servers.show", r#"{"url":"x"}"#, "scheme://");
    refused("top", r#"{"server":"quake3://a:1","ranking":"elo","count":0}"#, "expected 1 to 10000");
    let board =
        |query: &str| format!(r#"{{"board":{{"scope":"server:quake3://a:1","ranking":"elo"}},"query":{query}}}"#);
    refused("board", &board(r#"{"topp":{"count":3}}"#), "topp");
    refused("board", &board(r#"{"top":{"count":3,"n":4}}"#), "unknown field `n`");
    refused("board", &board(r#"{"range":{"count":3,"scores":{"over":4}}}"#), "over");
    refused("standings", r#"{"boards":{"scope":"quake3://a:1"},"player":"a"}"#, "did you mean server:");
    refused("servers.add", r#"{"urls":[],"tags":["a b"]}"#, "tag \"a b\" is not");
    let urls = vec![""; URLS_PER_REQUEST_MAX + 1];
    refused("servers.remove", &serde_json::json!({ "urls": urls }).to_string(), "at most 1000");
    refused("boost", r#"{"url":"quake3://a:1","for_s":4000000000}"#, "expected 0 to 86400");
}

#[test]
fn lines_round_trip_and_unknown_fields_are_ignored() {
    let public = PublicServerDetail {
        server: PublicServer {
            key: 1,
            url: "quake3://a:1".into(),
            class: 1,
            missed: 0,
            hostname: "^1A".into(),
            game: Some("baseq3".into()),
            map: None,
            online: true,
            players: 3,
            players_unverified: false,
            assumed_players: 2,
            slots: 16,
            rank: None,
            added_ms: 5,
            days_seen: 3,
            last_scan_ms: Some(6),
            last_seen_ms: None,
            greylisted: true,
            tags: vec!["ctf".into()],
            screened: Vec::new(),
            recent: None,
        },
        next_scan_ms: Some(9),
        elastic: None,
        total_points: -4,
        bots_unidentified: 0,
        authentication: Some("nonce".into()),
        settings: vec![Setting { name: "g_speed".into(), value: "320".into() }],
        maps_seen: vec![MapSeen { map: "q3dm6".into(), since_ms: 5 }],
        next_map: Some("q3dm7".into()),
        players_listed: Vec::new(),
        series: None,
        maps: Vec::new(),
        coverage: 0.5,
    };
    let greylist_reason = Some("a reason".to_owned());
    let detail = ServerDetail { public, greylist_reason, scan_in_progress: false, exempt_checks: Vec::new() };
    let status = crate::api::Status { archive: Some(ArchiveStatus::default()), ..Default::default() };
    let change = ServerChange { url: "x".into(), outcome: ChangeOutcome::Refused, reason: Some("no".into()) };
    line_round_trips(&detail, "server_detail");
    line_round_trips(&status, "status");
    line_round_trips(&change, "change");
    let newer = br#"{"kind":"change","url":"x","outcome":"added","since":5}"#;
    assert!(ServerChange::parse(newer).is_ok());
    let other = br#"{"kind":"changes","url":"x","outcome":"added"}"#;
    assert!(ServerChange::parse(other).expect_err("another kind").to_string().contains("kind change"));
    let newer: ApiError = serde_json::from_str(r#"{"code":"too_hot","message":"m"}"#).expect("of a newer daemon");
    assert_eq!(newer, ApiError::new(ErrorCode::Other, "m"));
}

#[track_caller]
fn line_round_trips<L: Line + PartialEq + std::fmt::Debug>(line: &L, kind: &str) {
    let text = line.to_json();
    assert!(text.starts_with(format!("{{\"kind\":\"{kind}\",").as_bytes()), "{}", String::from_utf8_lossy(&text));
    assert_eq!(&L::parse(&text).expect("a line"), line);
}
