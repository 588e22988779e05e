//! One line: text to outcome and back.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::engine::Outcome;
use crate::limits::{NAME_BYTES_MAX, PLAYERS_MAX, POINTS_ABS_MAX, TEXT_BYTES_MAX};
use crate::model::ServerUrl;
use crate::model::snapshot::{Completeness, Player, Snapshot};
use crate::model::url::UrlError;

/// Latest moment accepted: the end of the year 9999.
const T_MS_MAX: i64 = 253_402_300_799_999;

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("not a line of a scan log")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("t = {0} is not a time in Unix ms")]
    Time(i64),
    #[error("{0:?} is missing")]
    Missing(&'static str),
    #[error("\"miss\" and a snapshot in one line")]
    MissAndSnapshot,
    #[error("\"count\" without \"partial\"")]
    CountWithoutPartial,
    #[error("{0} players, at most {PLAYERS_MAX} are taken")]
    Players(usize),
    #[error("player {index} ({name:?}): points {points} are beyond +-{POINTS_ABS_MAX}")]
    Points { index: usize, name: String, points: i64 },
    #[error("{field} is {bytes} bytes long, at most {most} are taken")]
    TooLong { field: &'static str, bytes: usize, most: usize },
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    t: i64,
    #[serde(borrow)]
    server: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    miss: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    game: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    map: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    hostname: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slots: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    partial: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    players: Option<Vec<LinePlayer<'a>>>,
}

#[derive(Serialize, Deserialize)]
struct LinePlayer<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    points: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ping: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connected_ms: Option<u64>,
    #[serde(default)]
    bot: bool,
}

fn is_false(b: &bool) -> bool {
    !b
}

/// Reads one line. Fields that are not known are passed over.
pub fn parse(text: &str) -> Result<(ServerUrl, Outcome), LineError> {
    let line: Line = serde_json::from_str(text)?;
    let url = ServerUrl::parse(&line.server)?;
    if !(0..=T_MS_MAX).contains(&line.t) {
        return Err(LineError::Time(line.t));
    }
    if line.miss {
        if line.players.is_some() || line.partial {
            return Err(LineError::MissAndSnapshot);
        }
        let reason = line.reason.map_or_else(|| "recorded".to_owned(), Cow::into_owned);
        return Ok((url, Outcome::Miss { t_ms: line.t, reason }));
    }
    let completeness = match (line.partial, line.count) {
        (true, count) => Completeness::Partial { count },
        (false, None) => Completeness::Full,
        (false, Some(_)) => return Err(LineError::CountWithoutPartial),
    };
    let players = match line.players {
        Some(players) => players,
        None if line.partial => Vec::new(),
        None => return Err(LineError::Missing("players")),
    };
    if players.len() > PLAYERS_MAX {
        return Err(LineError::Players(players.len()));
    }
    let players = players.into_iter().enumerate().map(|(index, player)| {
        if player.points.unsigned_abs() > POINTS_ABS_MAX as u64 {
            return Err(LineError::Points { index, name: player.name.into_owned(), points: player.points });
        }
        Ok(Player {
            name: bounded("a player's name", player.name, NAME_BYTES_MAX)?,
            points: player.points,
            ping: player.ping.map(|ping| ping.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
            connected_ms: player.connected_ms,
            bot: player.bot,
        })
    });
    let snapshot = Snapshot {
        t_ms: line.t,
        game: bounded("game", line.game.ok_or(LineError::Missing("game"))?, TEXT_BYTES_MAX)?,
        map: bounded("map", line.map.ok_or(LineError::Missing("map"))?, TEXT_BYTES_MAX)?,
        hostname: bounded("hostname", line.hostname.unwrap_or_default(), TEXT_BYTES_MAX)?,
        slots: line.slots.unwrap_or(0),
        players: players.collect::<Result<_, _>>()?,
        completeness,
    };
    Ok((url, Outcome::Snapshot(snapshot)))
}

fn bounded(field: &'static str, text: Cow<'_, str>, most: usize) -> Result<String, LineError> {
    if text.len() > most {
        return Err(LineError::TooLong { field, bytes: text.len(), most });
    }
    Ok(text.into_owned())
}

/// Writes one line, with its line feed.
pub fn write(out: &mut Vec<u8>, url: &ServerUrl, outcome: &Outcome) {
    let server = Cow::Borrowed(url.as_str());
    let line = match outcome {
        Outcome::Miss { t_ms, reason } => Line {
            t: *t_ms,
            server,
            miss: true,
            reason: Some(reason.into()),
            game: None,
            map: None,
            hostname: None,
            slots: None,
            partial: false,
            count: None,
            players: None,
        },
        Outcome::Snapshot(snapshot) => {
            let (partial, count) = match snapshot.completeness {
                Completeness::Full => (false, None),
                Completeness::Partial { count } => (true, count),
            };
            Line {
                t: snapshot.t_ms,
                server,
                miss: false,
                reason: None,
                game: Some(snapshot.game.as_str().into()),
                map: Some(snapshot.map.as_str().into()),
                hostname: Some(snapshot.hostname.as_str().into()),
                slots: Some(snapshot.slots),
                partial,
                count,
                players: Some(
                    snapshot
                        .players
                        .iter()
                        .map(|p| LinePlayer {
                            name: p.name.as_str().into(),
                            points: p.points,
                            ping: p.ping.map(i64::from),
                            connected_ms: p.connected_ms,
                            bot: p.bot,
                        })
                        .collect(),
                ),
            }
        }
    };
    serde_json::to_writer(&mut *out, &line).expect("a line is always JSON and memory takes it");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_both_ways() {
        for text in [
            r#"{"t":1,"server":"quake3://127.0.0.1:27960","game":"baseq3","map":"q3dm17","hostname":"a\"b","slots":16,"players":[{"name":"^1Visor","points":-2,"ping":48,"bot":false}]}"#,
            r#"{"t":1,"server":"source://127.0.0.1:27960","game":"cstrike","map":"m","hostname":"","slots":0,"partial":true,"count":9,"players":[]}"#,
            r#"{"t":1,"server":"quake3://127.0.0.1:27960","miss":true,"reason":"timeout"}"#,
        ] {
            let (url, outcome) = parse(text).unwrap();
            let mut out = Vec::new();
            write(&mut out, &url, &outcome);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}\n"));
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let snapshot = |rest: &str| format!(r#"{{"t":1,"server":"quake3://h:1","game":"g","map":"m"{rest}}}"#);
        let long = format!(r#","players":[{{"name":"{}","points":1}}]"#, "x".repeat(300));
        for (text, want) in [
            ("".to_owned(), "not a line"),
            ("{".to_owned(), "not a line"),
            (r#"{"t":1,"server":"x","miss":true}"#.to_owned(), "scheme://host:port"),
            (r#"{"t":-1,"server":"quake3://h:1","miss":true}"#.to_owned(), "t = -1"),
            (snapshot(""), "\"players\" is missing"),
            (snapshot(r#","players":[],"count":3"#), "without \"partial\""),
            (snapshot(r#","players":[],"miss":true"#), "\"miss\" and a snapshot"),
            (snapshot(r#","players":[{"name":"a","points":1.5}]"#), "not a line"),
            (snapshot(r#","players":[{"name":"a","points":2199023255552}]"#), "beyond"),
            (snapshot(&long), "300 bytes long"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
