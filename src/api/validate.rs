//! Validates requests before anything is read or changed: sizes and numeric ranges. The daemon and
//! the offline reader share this module, so both refuse the same requests.

use super::request::Request;
use crate::board::window::TIME_MS_MAX;
use crate::limits::BOOST_S_MAX;
use crate::limits::TAGS_MAX;
use crate::model::row::Ranking;
use crate::model::view::board::{BoardQuery, FusedQuery, PlayerSelector, RankingWeight, ScoreBounds};

/// Most URLs in one request; 1,000 of the longest stay below a third of
/// `limits::REQUEST_BODY_BYTES_MAX`. A client with more URLs sends several requests.
pub const URLS_PER_REQUEST_MAX: usize = 1_000;

/// Longest tag, bytes.
const TAG_BYTES_MAX: usize = 64;

/// Most entries of one response.
pub const ROWS_PER_RESPONSE_MAX: u32 = 10_000;

/// Most players in one request. A request with that many names of the maximum length stays
/// below `limits::REQUEST_BODY_BYTES_MAX`, even if each byte of a name needs a backslash.
const QUERY_PLAYERS_MAX: usize = 1_000;

/// Largest `k` of a fused query. It bounds the work of a query: fusion reads each board to a
/// depth of at most five times (the number of rankings) the sum of `k` and
/// `ROWS_PER_RESPONSE_MAX`.
const K_MAX: f64 = 10_000.0;

// A name also has two quotes and a comma. A third of the line remains for the other fields.
const _: () = assert!(
    QUERY_PLAYERS_MAX * (2 * crate::limits::NAME_BYTES_MAX + 3) < crate::limits::REQUEST_BODY_BYTES_MAX * 2 / 3
);

const _: () = assert!(
    URLS_PER_REQUEST_MAX * (crate::limits::SERVER_URL_BYTES_MAX + 3) < crate::limits::REQUEST_BODY_BYTES_MAX / 3
);

/// Returns the error of an invalid tag. Tags are used on command lines, in list files and
/// in SQL, so spaces and most punctuation are invalid.
pub fn check_tag(tag: &str) -> Option<String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if tag.is_empty() || tag.len() > TAG_BYTES_MAX || !tag.chars().all(fits) {
        let shown: String = tag.chars().take(TAG_BYTES_MAX).collect();
        return Some(format!("tag {shown:?} is not 1 to {TAG_BYTES_MAX} bytes of letters, digits and - _ . :"));
    }
    None
}

/// Returns the error of a request with an invalid value, or too many URLs, tags or rows; `None` if there is none. It is
/// checked before anything is done.
pub fn check(request: &Request) -> Option<String> {
    match request {
        Request::ServersAdd { urls: added, tags: new, .. } => {
            urls(added.len()).or_else(|| tags(new.len())).or_else(|| invalid_tag(new))
        }
        Request::ServersRemove { urls: removed } => urls(removed.len()),
        Request::ServersTag { urls: tagged, add, remove } => {
            urls(tagged.len()).or_else(|| tags(add.len().max(remove.len()))).or_else(|| invalid_tag(add))
        }
        Request::Top { count, .. } => rows(*count),
        Request::Board { board, query } => time("at_ms", board.at_ms).or_else(|| board_query(query)),
        Request::Boards { boards, query } => time("at_ms", boards.at_ms).or_else(|| board_query(query)),
        Request::Standings { boards, rankings, .. } => {
            let duplicate = (1..rankings.len()).find(|&i| rankings[..i].contains(&rankings[i]));
            time("at_ms", boards.at_ms).or_else(|| duplicate.map(|i| duplicate_ranking(rankings[i])))
        }
        Request::Fused { boards, rankings, k, query } => time("at_ms", boards.at_ms)
            .or_else(|| weights(rankings))
            .or_else(|| k.filter(|k| !(0.0..=K_MAX).contains(k)).map(|k| format!("k is {k}; expected 0 to {K_MAX}")))
            .or_else(|| match query {
                FusedQuery::Top { count } => rows(*count),
                FusedQuery::Players { players } => list(players),
            }),
        Request::ServersPage { count, .. }
        | Request::ServersSearch { count, .. }
        | Request::PlayerSearch { count, .. }
        | Request::Maps { count, .. } => rows(*count),
        Request::PlayerNames { player_keys } => rows(player_keys.len().try_into().unwrap_or(u32::MAX)),
        Request::Series { game: Some(_), tag: Some(_) } => Some("expected only one of game and tag".to_owned()),
        Request::WindowsDelete { before_ms } => time("before_ms", Some(*before_ms)),
        Request::Boost { for_s, .. } => {
            (*for_s > BOOST_S_MAX).then(|| format!("for_s is {for_s}; expected 0 to {BOOST_S_MAX} seconds"))
        }
        _ => None,
    }
}

fn urls(len: usize) -> Option<String> {
    (len > URLS_PER_REQUEST_MAX).then(|| format!("{len} URLs; at most {URLS_PER_REQUEST_MAX} in one request"))
}

fn tags(len: usize) -> Option<String> {
    (len > TAGS_MAX).then(|| format!("{len} tags; at most {TAGS_MAX}"))
}

fn invalid_tag(tags: &[String]) -> Option<String> {
    tags.iter().find_map(|tag| check_tag(tag))
}

fn time(name: &str, t_ms: Option<i64>) -> Option<String> {
    let t_ms = t_ms.filter(|t_ms| !(0..=TIME_MS_MAX).contains(t_ms))?;
    Some(format!("{name} is {t_ms}; expected Unix milliseconds from 0 to {TIME_MS_MAX}"))
}

fn board_query(query: &BoardQuery) -> Option<String> {
    match query {
        BoardQuery::Size {} | BoardQuery::Standing { .. } => None,
        BoardQuery::Top { count } | BoardQuery::Bottom { count } => rows(*count),
        BoardQuery::Around { count, .. } => rows(*count),
        BoardQuery::After { count, .. } | BoardQuery::Before { count, .. } => rows(*count),
        BoardQuery::At { position: at } => position(*at),
        BoardQuery::Page { position: at, count } => position(*at).or_else(|| rows(*count)),
        BoardQuery::Range { scores, start, count } => {
            bounds(scores).or_else(|| range_start(*start)).or_else(|| rows(*count))
        }
        BoardQuery::Count { scores } => bounds(scores),
        BoardQuery::PositionFor { score } => number(*score),
        BoardQuery::Positions { players } => list(players),
    }
}

fn rows(count: u32) -> Option<String> {
    let is_valid = (1..=ROWS_PER_RESPONSE_MAX).contains(&count);
    (!is_valid).then(|| format!("count is {count}; expected 1 to {ROWS_PER_RESPONSE_MAX}"))
}

fn position(position: u32) -> Option<String> {
    (position == 0).then(|| "position is 0; positions are from 1".to_owned())
}

fn range_start(start: u32) -> Option<String> {
    (start == 0).then(|| "start is 0; entries of a range are counted from 1".to_owned())
}

fn list(players: &[PlayerSelector]) -> Option<String> {
    let is_valid = (1..=QUERY_PLAYERS_MAX).contains(&players.len());
    (!is_valid).then(|| format!("{} players; expected 1 to {QUERY_PLAYERS_MAX}", players.len()))
}

fn number(score: f64) -> Option<String> {
    (!score.is_finite()).then(|| format!("score is {score}; expected a number"))
}

fn bounds(scores: &ScoreBounds) -> Option<String> {
    let ScoreBounds { at_least, above, at_most, below } = *scores;
    if at_least.is_some() && above.is_some() {
        return Some("at_least and above are both the low end of a range; give one".to_owned());
    }
    if at_most.is_some() && below.is_some() {
        return Some("at_most and below are both the high end of a range; give one".to_owned());
    }
    [at_least, above, at_most, below].into_iter().flatten().find_map(number)
}

fn duplicate_ranking(ranking: Ranking) -> String {
    format!("ranking {} is named twice", ranking.name())
}

fn weights(rankings: &[RankingWeight]) -> Option<String> {
    for (i, weighted) in rankings.iter().enumerate() {
        let name = weighted.ranking.name();
        if rankings[..i].iter().any(|earlier| earlier.ranking == weighted.ranking) {
            return Some(duplicate_ranking(weighted.ranking));
        }
        // With weights further apart, the smaller ones would be lost to rounding in the sum.
        if !(1e-6..=1e6).contains(&weighted.weight) {
            return Some(format!("the weight of {name} is {}; expected 0.000001 to 1000000", weighted.weight));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{COMMANDS, decode_request, encode_request, path_of};

    /// Returns the validation error of a request with these JSON fields.
    #[track_caller]
    fn validation_error(body: &str) -> Option<String> {
        let (command, fields) = body.split_once(',').unwrap_or((body, ""));
        let command = command.trim_start_matches("\"cmd\":\"").trim_end_matches('"');
        decode_request(command, format!("{{{fields}}}").as_bytes()).err().map(|error| error.message)
    }

    fn board(query: &str) -> Option<String> {
        validation_error(&format!(
            r#""cmd":"board","board":{{"scope":"server:quake3://a:1","ranking":"elo"}},"query":{query}"#
        ))
    }

    #[test]
    fn valid_board_queries_pass() {
        for query in [
            r#"{"size":{}}"#,
            r#"{"top":{"count":10000}}"#,
            r#"{"page":{"position":4000000000,"count":1}}"#,
            r#"{"around":{"player":"Visor","count":3}}"#,
            r#"{"around":{"player":7,"count":3}}"#,
            r#"{"range":{"count":5}}"#,
            r#"{"range":{"scores":{"above":-2.5,"at_most":1e300},"start":3,"count":5}}"#,
            r#"{"position_for":{"score":0}}"#,
            r#"{"positions":{"players":["a",2]}}"#,
            r#"{"after":{"cursor":"A","count":5}}"#,
        ] {
            assert_eq!(board(query), None, "{query}");
        }
        assert_eq!(validation_error(r#""cmd":"status""#), None);
    }

    #[test]
    fn invalid_board_query_error_names_expected_range() {
        for (query, want) in [
            (r#"{"top":{"count":0}}"#, "count is 0; expected 1 to 10000"),
            (r#"{"before":{"cursor":"A","count":10001}}"#, "count is 10001"),
            (r#"{"page":{"position":0,"count":5}}"#, "positions are from 1"),
            (r#"{"range":{"scores":{"above":1,"at_least":1},"count":5}}"#, "give one"),
            (r#"{"range":{"start":0,"count":5}}"#, "start is 0"),
            (r#"{"count":{"scores":{"below":1,"at_most":1}}}"#, "give one"),
            (r#"{"positions":{"players":[]}}"#, "0 players; expected 1 to 1000"),
        ] {
            let error = board(query).expect(query);
            assert!(error.contains(want), "{query}: {error}");
        }
        assert!(number(f64::NAN).is_some() && number(f64::INFINITY).is_some());
        let fused = |rest: &str| validation_error(&format!(r#""cmd":"fused","boards":{{"scope":"tag:pro"}},{rest}"#));
        let top = r#""query":{"top":{"count":3}}"#;
        assert_eq!(fused(top), None);
        for (rest, want) in [
            (r#""rankings":[{"ranking":"elo"},{"ranking":"elo"}]"#, "elo is named twice"),
            (r#""rankings":[{"ranking":"elo","weight":0}]"#, "the weight of elo is 0"),
            (r#""k":-1"#, "k is -1"),
        ] {
            let error = fused(&format!("{rest},{top}")).expect(rest);
            assert!(error.contains(want), "{rest}: {error}");
        }
        let time = r#""cmd":"standings","boards":{"scope":"tag:pro","at_ms":-1},"player":"a""#;
        assert!(validation_error(time).expect("refused").contains("at_ms is -1"));
    }

    #[test]
    fn longest_player_list_fits_one_request() {
        let name = PlayerSelector::Name("\"".repeat(crate::limits::NAME_BYTES_MAX));
        let request = Request::Fused {
            boards: serde_json::from_str(r#"{"scope":"tag:pro"}"#).expect("a scope"),
            rankings: Vec::new(),
            k: None,
            query: FusedQuery::Players { players: vec![name; QUERY_PLAYERS_MAX] },
        };
        assert!(encode_request(&request).1.len() < crate::limits::REQUEST_BODY_BYTES_MAX);
        assert_eq!(check(&request), None);
    }

    #[test]
    fn printed_score_parses_to_same_number() {
        let mut score = 987.654_321_f64;
        for _ in 0..2_000 {
            score = score.next_up() * 1.000_001;
            let query = BoardQuery::PositionFor { score };
            let board = serde_json::from_str(r#"{"scope":"server:quake3://a:1","ranking":"elo"}"#).expect("a board");
            let request = Request::Board { board, query };
            let (path, body) = encode_request(&request);
            let command = COMMANDS.into_iter().find(|command| path_of(command) == path).expect("a command");
            assert_eq!(decode_request(command, body.as_bytes()), Ok(request));
        }
    }
}
