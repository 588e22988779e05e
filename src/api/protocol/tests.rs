//! Tests of the lines of requests and responses.

use super::*;
use crate::api::{
    ArchiveStatus, ChangeOutcome, RescanSelector, ServerChange, ServerFilter, Status, URLS_PER_REQUEST_MAX, WeekRange,
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
        let line = encode_request(7, request);
        assert_eq!(decode_request(line.as_bytes()), Ok((7, request.clone())));
        assert!(line.contains(&format!("\"cmd\":\"{command}\"")), "{line}");
    }
}

#[test]
fn documented_lines_decode() {
    let read = |line: &str| decode_request(line.as_bytes()).map_err(|(id, failure)| (id, failure.code));
    let show = r#"{"v":2,"id":7,"cmd":"servers.show","url":"QUAKE3://127.0.0.1"}"#;
    assert_eq!(read(show), Ok((7, Request::ServersShow { url: url("quake3://127.0.0.1:27960") })));
    let list = r#"{"v":2,"id":0,"cmd":"servers.list"}"#;
    assert_eq!(read(list), Ok((0, Request::ServersList { filter: ServerFilter::default() })));
    let rescan = r#"{"v":2,"id":1,"cmd":"rescan","servers":"all_unknown"}"#;
    assert_eq!(read(rescan), Ok((1, Request::Rescan { servers: RescanSelector::AllUnknown })));
    let end = Response { v: PROTOCOL_VERSION, id: Some(7), body: ResponseBody::End(ResponseEnd::default()) };
    assert_eq!(serde_json::to_string(&end).expect("plain"), r#"{"v":2,"id":7,"end":{"notes":[]}}"#);
}

#[test]
fn invalid_requests_get_specific_errors() {
    #[track_caller]
    fn refused(line: &str, id: Option<u64>, code: ErrorCode, message: &str) {
        let (got_id, failure) = decode_request(line.as_bytes()).expect_err(line);
        assert_eq!((got_id, failure.code), (id, code), "{line}");
        assert!(failure.message.contains(message), "{line}: {}", failure.message);
    }
    refused("", None, ErrorCode::MalformedLine, "not JSON");
    refused("[]", None, ErrorCode::MalformedLine, "expected a JSON object");
    refused(r#"{"v":2,"cmd":"status"}"#, None, ErrorCode::MalformedLine, "\"id\" is missing");
    for id in ["-1", "1.5", "\"1\"", "null"] {
        let line = format!(r#"{{"v":2,"id":{id},"cmd":"status"}}"#);
        refused(&line, None, ErrorCode::MalformedLine, "\"id\" must be a whole number of at least 0");
    }
    refused(r#"{"v":1,"id":3,"cmd":"status"}"#, Some(3), ErrorCode::UnsupportedVersion, "version 2");
    refused(r#"{"id":3,"cmd":"status"}"#, Some(3), ErrorCode::UnsupportedVersion, "\"v\" is missing");
    refused(r#"{"v":2,"id":3}"#, Some(3), ErrorCode::BadRequest, "\"cmd\" is missing");
    refused(r#"{"v":2,"id":3,"cmd":"statsu"}"#, Some(3), ErrorCode::UnknownCommand, "did you mean status?");
    refused(r#"{"v":2,"id":3,"cmd":"server.add"}"#, Some(3), ErrorCode::UnknownCommand, "mean servers.add?");
    refused(r#"{"v":2,"id":3,"cmd":"zz"}"#, Some(3), ErrorCode::UnknownCommand, "the commands are status, ");
    refused(r#"{"v":2,"id":3,"cmd":"status","x":1}"#, Some(3), ErrorCode::BadRequest, "x");
    refused(r#"{"v":2,"id":3,"cmd":"servers.list","filter":{"clas":1}}"#, Some(3), ErrorCode::BadRequest, "clas");
    refused(r#"{"v":2,"id":3,"cmd":"servers.list","filter":{"class":8}}"#, Some(3), ErrorCode::BadRequest, "8");
    refused(r#"{"v":2,"id":3,"cmd":"servers.show","url":"x"}"#, Some(3), ErrorCode::BadRequest, "scheme://");
    let top = r#"{"v":2,"id":3,"cmd":"top","server":"quake3://a:1","ranking":"elo","count":0}"#;
    refused(top, Some(3), ErrorCode::BadRequest, "expected 1 to 10000");
    let board = |query: &str| {
        let board = r#""board":{"scope":"server:quake3://a:1","ranking":"elo"}"#;
        format!(r#"{{"v":2,"id":3,"cmd":"board",{board},"query":{query}}}"#)
    };
    refused(&board(r#"{"topp":{"count":3}}"#), Some(3), ErrorCode::BadRequest, "topp");
    refused(&board(r#"{"top":{"count":3,"n":4}}"#), Some(3), ErrorCode::BadRequest, "unknown field `n`");
    refused(&board(r#"{"range":{"count":3,"scores":{"over":4}}}"#), Some(3), ErrorCode::BadRequest, "over");
    let scope = r#"{"v":2,"id":3,"cmd":"standings","boards":{"scope":"quake3://a:1"},"player":"a"}"#;
    refused(scope, Some(3), ErrorCode::BadRequest, "did you mean server:");
    let tagged = Request::ServersAdd { urls: Vec::new(), tags: vec!["a b".into()], import: false };
    refused(&encode_request(3, &tagged), Some(3), ErrorCode::BadRequest, "tag \"a b\" is not");
    let many = Request::ServersRemove { urls: vec![String::new(); URLS_PER_REQUEST_MAX + 1] };
    refused(&encode_request(3, &many), Some(3), ErrorCode::BadRequest, "at most 1000");
}

#[test]
fn client_of_version_1_gets_error_with_both_versions() {
    let line = r#"{"v":1,"id":3,"cmd":"top","server":"quake3://a:1","ranking":"elo","n":10}"#;
    let (id, failure) = decode_request(line.as_bytes()).expect_err("another version");
    assert_eq!((id, failure.code), (Some(3), ErrorCode::UnsupportedVersion));
    assert_eq!(
        failure.message,
        "this daemon speaks version 2 of the control protocol, not 1; use the clqd program of the daemon"
    );
    let failed = Response { v: PROTOCOL_VERSION, id, body: ResponseBody::Error(failure) };
    let text = serde_json::to_string(&failed).expect("plain");
    assert!(text.starts_with(r#"{"v":2,"id":3,"error":{"code":"unsupported_version","message":"#), "{text}");
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
        let answer = Response { v: PROTOCOL_VERSION, id: Some(3), body: ResponseBody::Row(row) };
        let text = serde_json::to_string(&answer).expect("plain");
        assert_eq!(serde_json::from_str::<Response>(&text).expect(&text), answer);
    }
    let newer = r#"{"v":2,"id":1,"row":{"kind":"change","url":"x","outcome":"added","since":5}}"#;
    assert!(serde_json::from_str::<Response>(newer).is_ok());
    let newer = r#"{"v":2,"id":1,"error":{"code":"too_hot","message":"m"}}"#;
    let newer: Response = serde_json::from_str(newer).expect("an error of a newer daemon");
    assert_eq!(newer.body, ResponseBody::Error(ApiError::new(ErrorCode::Other, "m")));
}
