//! Checks of the fields of requests: sizes and ranges of numbers.

use crate::board::window::TIME_MS_MAX;
use crate::limits::TAGS_MAX;
use crate::model::row::Ranking;
use crate::view::board::{BoardQuery, PlayerSelector, RankingWeight, ScoreBounds};

type Checked = Result<(), String>;

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

/// Fails with the problem if there is one.
fn ok_unless(is_wrong: bool, problem: impl FnOnce() -> String) -> Checked {
    if is_wrong { Err(problem()) } else { Ok(()) }
}

/// Whether there are few enough URLs.
pub(super) fn urls(len: usize) -> Checked {
    ok_unless(len > URLS_PER_REQUEST_MAX, || format!("{len} URLs; at most {URLS_PER_REQUEST_MAX} in one request"))
}

/// Whether there are few enough tags.
pub(super) fn tag_count(len: usize) -> Checked {
    ok_unless(len > TAGS_MAX, || format!("{len} tags; at most {TAGS_MAX}"))
}

/// Whether each of these tags may be assigned.
pub(super) fn tags(tags: &[String]) -> Checked {
    tag_count(tags.len())?;
    tags.iter().find_map(|tag| check_tag(tag)).map_or(Ok(()), Err)
}

/// A time in Unix ms.
pub(super) fn time(name: &str, t_ms: Option<i64>) -> Checked {
    let wrong = t_ms.filter(|t_ms| !(0..=TIME_MS_MAX).contains(t_ms));
    wrong.map_or(Ok(()), |t_ms| Err(format!("{name} is {t_ms}; expected Unix milliseconds from 0 to {TIME_MS_MAX}")))
}

pub(super) fn board_query(query: &BoardQuery) -> Checked {
    match query {
        BoardQuery::Size {} | BoardQuery::Standing { .. } => Ok(()),
        BoardQuery::Top { count } | BoardQuery::Bottom { count } => rows(*count),
        BoardQuery::Around { count, .. } => rows(*count),
        BoardQuery::After { count, .. } | BoardQuery::Before { count, .. } => rows(*count),
        BoardQuery::At { position: at } => position(*at),
        BoardQuery::Page { position: at, count } => position(*at).and_then(|()| rows(*count)),
        BoardQuery::Range { scores, start, count } => {
            bounds(scores)?;
            ok_unless(*start == 0, || "start is 0; entries of a range are counted from 1".to_owned())?;
            rows(*count)
        }
        BoardQuery::Count { scores } => bounds(scores),
        BoardQuery::PositionFor { score } => number(*score),
        BoardQuery::Positions { players: list } => players(list),
    }
}

/// The number of rows of an answer.
pub(super) fn rows(count: u32) -> Checked {
    let is_valid = (1..=ROWS_PER_RESPONSE_MAX).contains(&count);
    ok_unless(!is_valid, || format!("count is {count}; expected 1 to {ROWS_PER_RESPONSE_MAX}"))
}

fn position(position: u32) -> Checked {
    ok_unless(position == 0, || "position is 0; positions are from 1".to_owned())
}

pub(super) fn players(players: &[PlayerSelector]) -> Checked {
    let is_valid = (1..=QUERY_PLAYERS_MAX).contains(&players.len());
    ok_unless(!is_valid, || format!("{} players; expected 1 to {QUERY_PLAYERS_MAX}", players.len()))
}

fn number(score: f64) -> Checked {
    ok_unless(!score.is_finite(), || format!("score is {score}; expected a number"))
}

fn bounds(scores: &ScoreBounds) -> Checked {
    let ScoreBounds { at_least, above, at_most, below } = *scores;
    ok_unless(at_least.is_some() && above.is_some(), || {
        "at_least and above are both the low end of a range; give one".to_owned()
    })?;
    ok_unless(at_most.is_some() && below.is_some(), || {
        "at_most and below are both the high end of a range; give one".to_owned()
    })?;
    [at_least, above, at_most, below].into_iter().flatten().try_for_each(number)
}

/// Whether each ranking is named once.
pub(super) fn rankings(rankings: &[Ranking]) -> Checked {
    let duplicate = (1..rankings.len()).find(|&i| rankings[..i].contains(&rankings[i]));
    duplicate.map_or(Ok(()), |i| Err(format!("ranking {} is named twice", rankings[i].name())))
}

pub(super) fn weights(weights: &[RankingWeight]) -> Checked {
    let named: Vec<Ranking> = weights.iter().map(|weighted| weighted.ranking).collect();
    rankings(&named)?;
    // With weights further apart, the smaller ones would be lost to rounding in the sum.
    let wrong = weights.iter().find(|weighted| !(1e-6..=1e6).contains(&weighted.weight));
    wrong.map_or(Ok(()), |RankingWeight { ranking, weight }| {
        Err(format!("the weight of {} is {weight}; expected 0.000001 to 1000000", ranking.name()))
    })
}

/// The `k` of a fused query.
pub(super) fn k(k: Option<f64>) -> Checked {
    let wrong = k.filter(|k| !(0.0..=K_MAX).contains(k));
    wrong.map_or(Ok(()), |k| Err(format!("k is {k}; expected 0 to {K_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::requests::{Board, Fused};
    use crate::api::{REQUESTS, Request, decode, encode};
    use crate::view::board::FusedQuery;

    /// Returns the validation error of a request with these JSON fields.
    #[track_caller]
    fn validation_error(body: &str) -> Option<String> {
        let (command, fields) = body.split_once(',').unwrap_or((body, ""));
        let command = command.trim_start_matches("\"cmd\":\"").trim_end_matches('"');
        let request = REQUESTS.iter().find(|request| request.name == command).expect("a request");
        (request.check)(format!("{{{fields}}}").as_bytes()).err().map(|error| error.message)
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
        assert!(number(f64::NAN).is_err() && number(f64::INFINITY).is_err());
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
        let request = Fused {
            boards: serde_json::from_str(r#"{"scope":"tag:pro"}"#).expect("a scope"),
            rankings: Vec::new(),
            k: None,
            query: FusedQuery::Players { players: vec![name; QUERY_PLAYERS_MAX] },
        };
        assert!(encode(&request).1.len() < crate::limits::REQUEST_BODY_BYTES_MAX);
        assert_eq!(request.check(), Ok(()));
    }

    #[test]
    fn printed_score_parses_to_same_number() {
        let mut score = 987.654_321_f64;
        for _ in 0..2_000 {
            score = score.next_up() * 1.000_001;
            let query = BoardQuery::PositionFor { score };
            let board = serde_json::from_str(r#"{"scope":"server:quake3://a:1","ranking":"elo"}"#).expect("a board");
            let request = Board { board, query };
            assert_eq!(decode(encode(&request).1.as_bytes()), Ok(request));
        }
    }
}
