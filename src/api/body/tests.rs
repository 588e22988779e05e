//! Tests of the bodies of requests.

use super::*;
use crate::api::{
    ApiError, ArchiveStatus, COMMANDS, ChangeOutcome, ErrorCode, RescanSelector, Row, ServerChange, ServerFilter,
    Status, URLS_PER_REQUEST_MAX, WeekRange,
};
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::model::server::{Class, ScreenReason};
use crate::model::server_page::ServerOrder;
use crate::model::view::board::{BoardQuery, BoardSelector, BoardsSelector, FusedQuery, PlayerSelector, RankingWeight};
use crate::model::view::{ServerDetail, ServerSummary};
use crate::model::{NameHash, ServerUrl};

fn url(text: &str) -> ServerUrl {
    ServerUrl::parse(text).expect("a URL")
}

#[test]
fn every_request_round_trips_and_is_listed() {
    let all = [
        Request::Status {},
        Request::ServersAdd { urls: vec!["quake3://a:1".into()], tags: vec!["ctf".into()], import: false },
        Request::ServersRemove { urls: vec!["quake3://a:1".into()] },
        Request::ServersList { filter: ServerFilter { class: Class::new(2), ..ServerFilter::default() } },
        Request::ServersPage {
            filter: ServerFilter { map: Some("q3dm6".into()), ..ServerFilter::default() },
            after: Some("AAAAAAE".parse().expect("a cursor")),
            count: 5,
            order: ServerOrder::Players,
            recent: true,
        },
        Request::ServersSearch { text: "house".into(), count: 7 },
        Request::Overview {},
        Request::Series { game: Some("baseq3".into()), tag: None },
        Request::ServersShow { url: url("quake3://a:1") },
        Request::Rescan { servers: RescanSelector::AllUnknown },
        Request::Top { server: url("source://b:2"), ranking: Ranking::Clq1, week: None, count: 10 },
        Request::Board {
            board: BoardSelector {
                scope: Scope::Server(url("source://b:2")),
                ranking: Ranking::Clq1,
                window: Some("2026-W47".into()),
                at_ms: None,
            },
            query: BoardQuery::Around { player: PlayerSelector::Name("Visor".into()), count: 5 },
        },
        Request::Standings {
            boards: BoardsSelector { scope: Scope::Tag("pro".into()), window: None, at_ms: Some(5) },
            player: PlayerSelector::Key(12),
            rankings: vec![],
        },
        Request::Fused {
            boards: BoardsSelector { scope: Scope::Game("baseq3".into()), window: None, at_ms: None },
            rankings: vec![RankingWeight { ranking: Ranking::Elo, weight: 0.1 }],
            k: Some(60.0),
            query: FusedQuery::Top { count: 3 },
        },
        Request::Boards {
            boards: BoardsSelector { scope: Scope::Tag("pro".into()), window: None, at_ms: None },
            query: BoardQuery::Top { count: 10 },
        },
        Request::Windows { bytes: true },
        Request::WindowsDelete { before_ms: 1_763_683_200_000 },
        Request::WindowsRecompute {
            settings: serde_json::Map::from_iter([("elo.k".to_owned(), 25.5.into())]),
            only_check: true,
        },
        Request::Player { name: "Visor".into() },
        Request::Map { map: "q3dm17".into() },
        Request::Maps { text: Some("q3".into()), count: 7 },
        Request::ServersBest { url: url("quake3://a:1") },
        Request::PlayerSearch { text: "vis".into(), count: 7 },
        Request::PlayerNames { player_keys: vec![7] },
        Request::PlayerShow { player_key: 7, skip: 0 },
        Request::ServersTag { urls: vec![url("quake3://a:1")], add: vec!["ctf".into()], remove: Vec::new() },
        Request::ServersTrust { url: url("source://b:2"), except: vec![ScreenReason::FrozenList], revoke: Vec::new() },
        Request::TagDrop { tag: "ctf".into() },
        Request::PlayerMerge { from: PlayerSelector::Key(7), into: PlayerSelector::Name("7".into()), game: "g".into() },
        Request::PlayerForget { player: PlayerSelector::Name("Visor".into()), game: "baseq3".into() },
        Request::PlayerForgotten {},
        Request::PlayerAllow { hash: NameHash::of("baseq3", "Visor") },
        Request::Boost { url: url("source://b:2"), for_s: 1_800 },
        Request::Greylist { url: url("source://b:2"), reason: Some("two servers, one list".into()) },
        Request::Backup { dir: "/var/lib/clqd-backup/a".into() },
        Request::ClockAccept {},
        Request::ClockReset { force: true },
        Request::WeekReopen { week: "2026-W47".into() },
        Request::ArchiveResend {
            weeks: Some(WeekRange { first: "2026-W45".into(), last: "2026-W47".into() }),
            take_over: false,
        },
        Request::ArchiveVerify { weeks: None },
        Request::Export { week: "2026-W47".into() },
        Request::Reload {},
    ];
    assert_eq!(all.len(), COMMANDS.len());
    for (request, command) in all.iter().zip(COMMANDS) {
        let (path, body) = encode_request(request);
        assert_eq!(path, path_of(command));
        assert_eq!(decode_request(command, body.as_bytes()), Ok(request.clone()));
    }
}

#[test]
fn documented_bodies_decode() {
    let show = decode_request("servers.show", br#"{"url":"QUAKE3://127.0.0.1"}"#);
    assert_eq!(show, Ok(Request::ServersShow { url: url("quake3://127.0.0.1:27960") }));
    for body in ["", " \n", "{}"] {
        let list = decode_request("servers.list", body.as_bytes());
        assert_eq!(list, Ok(Request::ServersList { filter: ServerFilter::default() }));
    }
    let rescan = decode_request("rescan", br#"{"servers":"all_unknown"}"#);
    assert_eq!(rescan, Ok(Request::Rescan { servers: RescanSelector::AllUnknown }));
}

#[test]
fn invalid_requests_get_specific_errors() {
    #[track_caller]
    fn refused(command: &str, body: &str, message: &str) {
        let failure = decode_request(command, body.as_bytes()).expect_err(body);
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
fn rows_round_trip_and_unknown_fields_are_ignored() {
    let detail = ServerDetail {
        summary: ServerSummary {
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
            last_scan_ms: Some(6),
            last_seen_ms: None,
            greylist_reason: None,
            tags: vec!["ctf".into()],
            screened: Vec::new(),
            recent: None,
        },
        scan_in_progress: false,
        next_scan_ms: Some(9),
        round_end: None,
        total_points: -4,
        bots_unidentified: 0,
        authentication: Some("nonce".into()),
        exempt_checks: Vec::new(),
        players_listed: Vec::new(),
        series: None,
        maps: Vec::new(),
        coverage: 0.5,
    };
    let status = Status { archive: Some(ArchiveStatus::default()), ..Status::default() };
    let change = ServerChange { url: "x".into(), outcome: ChangeOutcome::Refused, reason: Some("no".into()) };
    for row in [Row::ServerDetail(Box::new(detail)), Row::Status(Box::new(status)), Row::Change(change)] {
        let text = serde_json::to_string(&row).expect("plain");
        assert_eq!(serde_json::from_str::<Row>(&text).expect(&text), row);
    }
    let newer = r#"{"kind":"change","url":"x","outcome":"added","since":5}"#;
    assert!(serde_json::from_str::<Row>(newer).is_ok());
    let newer: ApiError = serde_json::from_str(r#"{"code":"too_hot","message":"m"}"#).expect("of a newer daemon");
    assert_eq!(newer, ApiError::new(ErrorCode::Other, "m"));
}
