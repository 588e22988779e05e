//! One line of a scan log: text to event and back.
//!
//! The fast path parses scans in the recorder's format, serde_json any other JSON.
//! The values are validated here, whichever parser was used.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::fast_path;
use super::raw_line::{RawLine, RawPlayer};
use crate::api::check_tag;
use crate::engine::Outcome;
use crate::limits::{NAME_BYTES_MAX, PLAYERS_MAX, POINTS_ABS_MAX, TEXT_BYTES_MAX};
use crate::log::{LogEvent, RecordedSettings};
use crate::model::calendar::parse_week_label;
use crate::model::rebuild::RebuildStep;
use crate::model::snapshot::{Completeness, Player, Snapshot};
use crate::model::url::UrlError;
use crate::model::{AdminCommand, ServerUrl};

/// Latest time accepted: the end of the year 9999.
const T_MS_MAX: i64 = 253_402_300_799_999;

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("not a line of a scan log: {0}")]
    Json(String),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("t = {0} is not a time in Unix ms")]
    Time(i64),
    #[error("{0:?} is missing")]
    Missing(&'static str),
    #[error("\"miss\" and a snapshot in one line")]
    MissAndSnapshot,
    #[error("{0} players, the maximum is {PLAYERS_MAX}")]
    Players(usize),
    #[error("player {index} ({name:?}): points {points} are beyond +-{POINTS_ABS_MAX}")]
    Points { index: usize, name: String, points: i64 },
    #[error("{field} is {bytes} bytes long, the maximum is {max}")]
    TooLong { field: &'static str, bytes: usize, max: usize },
    #[error("{0}")]
    Command(String),
    #[error("this line is a command or settings, not a scan")]
    NotScan,
}

impl From<serde_json::Error> for LineError {
    /// Removes "line 1" from the message: the text is one line of a file.
    fn from(error: serde_json::Error) -> LineError {
        let text = error.to_string();
        LineError::Json(match text.rsplit_once(" at line ") {
            Some((what, _)) => format!("{what} at column {}", error.column()),
            None => text,
        })
    }
}

/// Parses one line. Unknown fields are ignored.
pub fn parse(text: &str) -> Result<LogEvent, LineError> {
    Ok(match parse_raw(text, RawPlayer::into_player)? {
        Raw::Scan(line) => LogEvent::Scan { server: ServerUrl::parse(&line.server)?, outcome: line.into_outcome() },
        Raw::Other(event) => event,
    })
}

/// Parses one line that is a scan.
pub fn parse_scan(text: &str) -> Result<(ServerUrl, Outcome), LineError> {
    match parse(text)? {
        LogEvent::Scan { server, outcome } => Ok((server, outcome)),
        _ => Err(LineError::NotScan),
    }
}

/// Validates a line without building an outcome. Returns its time, Unix ms, or the
/// same error as [`parse`].
pub fn check(text: &str) -> Result<i64, LineError> {
    check_time(text).map(|time| time.t_ms)
}

/// The time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineTime {
    /// Unix ms.
    pub(super) t_ms: i64,
    /// The line sets recorded time back: it may be earlier than the line before.
    pub(super) sets_clock: bool,
}

/// As [`check`], but also returns the values that determine the order of lines.
pub(super) fn check_time(text: &str) -> Result<LineTime, LineError> {
    match parse_raw(text, drop)? {
        Raw::Scan(line) => {
            ServerUrl::check(&line.server)?;
            Ok(LineTime { t_ms: line.t, sets_clock: false })
        }
        Raw::Other(event) => Ok(LineTime { t_ms: event.t_ms(), sets_clock: event.sets_clock() }),
    }
}

/// A parsed line. The URL of a scan that the fast path read is not checked yet.
enum Raw<'a, P> {
    Scan(RawLine<'a, P>),
    Other(LogEvent),
}

/// Whether the text may be a truncated line.
pub(super) fn is_truncated_line(text: &str) -> bool {
    let ends_early = |error: serde_json::Error| error.is_eof();
    text.is_empty() || text.starts_with('{') && serde_json::from_str::<serde_json::Value>(text).is_err_and(ends_early)
}

/// Parses and validates a line, except for a server URL that the fast path read: the
/// caller checks it.
fn parse_raw<'a, P>(text: &'a str, make: impl Fn(RawPlayer<'a>) -> P) -> Result<Raw<'a, P>, LineError> {
    let checked = |index, player: RawPlayer<'a>| player.check(index).map(|()| make(player));
    if let Some(line) = fast_path::read(text, |index, player| checked(index, player).ok())
        && line.check().is_ok()
    {
        return Ok(Raw::Scan(line));
    }
    // serde_json produces the error message, the same for every line.
    let kind: OtherLine = serde_json::from_str(text)?;
    if kind.command.is_some() || kind.settings.is_some() || kind.rebuild.is_some() {
        return parse_other(kind, text).map(Raw::Other);
    }
    let mut line: RawLine = serde_json::from_str(text)?;
    ServerUrl::check(&line.server)?;
    line.check()?;
    let players = line.players.take();
    let players =
        players.map(|list| list.into_iter().enumerate().map(|(index, player)| checked(index, player)).collect());
    Ok(Raw::Scan(line.with_players(players.transpose()?)))
}

/// A line that is not a scan.
#[derive(Deserialize)]
struct OtherLine {
    t: i64,
    /// Its fields are beside it in the line.
    command: Option<IgnoredAny>,
    settings: Option<RecordedSettings>,
    /// Its fields are beside it in the line.
    rebuild: Option<IgnoredAny>,
}

fn parse_other(line: OtherLine, text: &str) -> Result<LogEvent, LineError> {
    let t_ms = line.t;
    check_t(t_ms)?;
    match (line.command, line.settings, line.rebuild) {
        (None, Some(settings), None) => Ok(LogEvent::Settings { t_ms, settings }),
        (None, None, Some(_)) => Ok(LogEvent::Rebuild { t_ms, step: serde_json::from_str(text)? }),
        (Some(_), None, None) => {
            let command: AdminCommand = serde_json::from_str(text)?;
            check_command(&command)?;
            Ok(LogEvent::Command { t_ms, command })
        }
        _ => Err(LineError::Command("a line is either a command, settings or a step of a rebuild".to_owned())),
    }
}

/// Applies the limits that the requests of an admin have.
fn check_command(command: &AdminCommand) -> Result<(), LineError> {
    let check_tags = |tags: &[String]| match tags.iter().find_map(|tag| check_tag(tag)) {
        Some(error) => Err(LineError::Command(error)),
        None => Ok(()),
    };
    match command {
        AdminCommand::Add { tags, .. } => check_tags(tags),
        AdminCommand::Tag { add, remove, .. } => check_tags(add).and_then(|()| check_tags(remove)),
        AdminCommand::DropTag { tag } => check_tags(std::slice::from_ref(tag)),
        AdminCommand::Greylist { reason, .. } => check_len("reason", reason, TEXT_BYTES_MAX),
        AdminCommand::Merge { game, from, into } => {
            check_len("game", game, TEXT_BYTES_MAX)?;
            check_len("from", from, NAME_BYTES_MAX)?;
            check_len("into", into, NAME_BYTES_MAX)
        }
        AdminCommand::Forget { game, player, .. } => {
            check_len("game", game, TEXT_BYTES_MAX)?;
            check_len("player", player, NAME_BYTES_MAX)
        }
        AdminCommand::Reopen { week } => match parse_week_label(week) {
            Ok(_) => Ok(()),
            Err(error) => Err(LineError::Command(error.to_string())),
        },
        AdminCommand::Remove { .. }
        | AdminCommand::Lift { .. }
        | AdminCommand::Trust { .. }
        | AdminCommand::Budget { .. }
        | AdminCommand::Allow { .. }
        | AdminCommand::DeleteWindows { .. }
        | AdminCommand::Clock {} => Ok(()),
    }
}

fn check_t(t_ms: i64) -> Result<(), LineError> {
    if (0..=T_MS_MAX).contains(&t_ms) { Ok(()) } else { Err(LineError::Time(t_ms)) }
}

impl<'a, P> RawLine<'a, P> {
    /// Validates all fields except the URL and the players.
    fn check(&self) -> Result<(), LineError> {
        check_t(self.t)?;
        if self.miss {
            return match self.players.is_some() || self.partial {
                true => Err(LineError::MissAndSnapshot),
                false => Ok(()),
            };
        }
        match &self.players {
            Some(players) if players.len() > PLAYERS_MAX => return Err(LineError::Players(players.len())),
            None if !self.partial => return Err(LineError::Missing("players")),
            _ => (),
        }
        check_len("game", self.game.as_ref().ok_or(LineError::Missing("game"))?, TEXT_BYTES_MAX)?;
        check_len("map", self.map.as_ref().ok_or(LineError::Missing("map"))?, TEXT_BYTES_MAX)?;
        check_len("hostname", self.hostname.as_deref().unwrap_or_default(), TEXT_BYTES_MAX)
    }

    fn with_players<Q>(self, players: Option<Vec<Q>>) -> RawLine<'a, Q> {
        let RawLine { t, server, miss, reason, game, map, hostname, slots, partial, count, bots, players: _ } = self;
        RawLine { t, server, miss, reason, game, map, hostname, slots, partial, count, bots, players }
    }
}

impl RawLine<'_, Player> {
    /// Converts a validated line.
    fn into_outcome(self) -> Outcome {
        if self.miss {
            let reason = self.reason.map_or_else(|| "recorded".to_owned(), Cow::into_owned);
            return Outcome::Miss { t_ms: self.t, reason };
        }
        Outcome::Snapshot(Snapshot {
            t_ms: self.t,
            game: self.game.unwrap_or_default().into_owned(),
            map: self.map.unwrap_or_default().into_owned(),
            hostname: self.hostname.unwrap_or_default().into_owned(),
            slots: self.slots.unwrap_or(0),
            players: self.players.unwrap_or_default(),
            completeness: if self.partial { Completeness::Partial } else { Completeness::Full },
            count: self.count,
            bots: self.bots,
        })
    }
}

impl RawPlayer<'_> {
    fn check(&self, index: usize) -> Result<(), LineError> {
        if let Some(points) = self.points.filter(|points| points.unsigned_abs() > POINTS_ABS_MAX as u64) {
            let name = self.name.clone().into_owned();
            return Err(LineError::Points { index, name, points });
        }
        check_len("a player's name", &self.name, NAME_BYTES_MAX)
    }

    fn into_player(self) -> Player {
        Player {
            name: self.name.into(),
            points: self.points,
            ping: self.ping.map(|ping| i32::try_from(ping).unwrap_or(if ping < 0 { i32::MIN } else { i32::MAX })),
            connected_ms: self.connected_ms,
            bot: self.bot,
            spectator: self.spectator,
        }
    }
}

fn check_len(field: &'static str, text: &str, max: usize) -> Result<(), LineError> {
    match text.len() > max {
        true => Err(LineError::TooLong { field, bytes: text.len(), max }),
        false => Ok(()),
    }
}

/// Writes one line, including the line feed. Nothing for a tick and a known server.
pub fn write_event(out: &mut Vec<u8>, event: &LogEvent) {
    #[derive(Serialize)]
    struct Line<'a> {
        t: i64,
        #[serde(flatten)]
        command: Option<&'a AdminCommand>,
        #[serde(skip_serializing_if = "Option::is_none")]
        settings: Option<&'a RecordedSettings>,
        #[serde(flatten)]
        step: Option<&'a RebuildStep>,
    }
    let line = |t| Line { t, command: None, settings: None, step: None };
    let line = match event {
        LogEvent::Scan { server, outcome } => return write(out, server, outcome),
        LogEvent::Command { t_ms, command } => Line { command: Some(command), ..line(*t_ms) },
        LogEvent::Settings { t_ms, settings } => Line { settings: Some(settings), ..line(*t_ms) },
        LogEvent::Rebuild { t_ms, step } => Line { step: Some(step), ..line(*t_ms) },
        // A reader of the log gives them as commands.
        LogEvent::Known { .. } | LogEvent::Archive { .. } | LogEvent::Tick { .. } => return,
    };
    serde_json::to_writer(&mut *out, &line).expect("a line is serialisable and a Vec accepts every write");
    out.push(b'\n');
}

/// Writes the line of a scan, including the line feed.
pub fn write(out: &mut Vec<u8>, url: &ServerUrl, outcome: &Outcome) {
    let server = Cow::Borrowed(url.as_str());
    let line = match outcome {
        Outcome::Miss { t_ms, reason } => RawLine {
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
            bots: None,
            players: None,
        },
        Outcome::Snapshot(snapshot) => RawLine {
            t: snapshot.t_ms,
            server,
            miss: false,
            reason: None,
            game: Some(snapshot.game.as_str().into()),
            map: Some(snapshot.map.as_str().into()),
            hostname: Some(snapshot.hostname.as_str().into()),
            slots: Some(snapshot.slots),
            partial: snapshot.completeness == Completeness::Partial,
            count: snapshot.count,
            bots: snapshot.bots,
            players: Some(
                snapshot
                    .players
                    .iter()
                    .map(|p| RawPlayer {
                        name: p.name.as_str().into(),
                        points: p.points,
                        ping: p.ping.map(i64::from),
                        connected_ms: p.connected_ms,
                        bot: p.bot,
                        spectator: p.spectator,
                    })
                    .collect(),
            ),
        },
    };
    serde_json::to_writer(&mut *out, &line).expect("a line is serialisable and a Vec accepts every write");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        for text in [
            r#"{"t":1,"server":"quake3://127.0.0.1:27960","game":"baseq3","map":"q3dm17","hostname":"a\"b","slots":16,"players":[{"name":"^1Visor","points":-2,"ping":48,"bot":false}]}"#,
            r#"{"t":1,"server":"source://127.0.0.1:27960","game":"cstrike","map":"m","hostname":"","slots":0,"partial":true,"count":9,"players":[]}"#,
            r#"{"t":1,"server":"source://127.0.0.1:27960","game":"cstrike","map":"m","hostname":"","slots":0,"count":9,"bots":2,"players":[{"name":"a","bot":false,"spectator":true}]}"#,
            r#"{"t":1,"server":"quake3://127.0.0.1:27960","miss":true,"reason":"timeout"}"#,
            r#"{"t":1,"command":"add","server":"quake3://127.0.0.1:27960","tags":["ctf"]}"#,
            r#"{"t":1,"command":"remove","server":"quake3://127.0.0.1:27960"}"#,
            r#"{"t":1,"command":"tag","server":"quake3://127.0.0.1:27960","remove":["ctf"]}"#,
            r#"{"t":1,"command":"drop_tag","tag":"ctf"}"#,
            r#"{"t":1763683400000,"command":"greylist","server":"quake3://127.0.0.1:27960","reason":"bots"}"#,
            r#"{"t":1,"command":"lift","server":"quake3://127.0.0.1:27960"}"#,
            r#"{"t":1,"command":"trust","server":"quake3://127.0.0.1:27960","except":["frozen_list"]}"#,
            r#"{"t":1,"command":"merge","game":"baseq3","from":"a","into":"b\"c"}"#,
            r#"{"t":2,"command":"forget","game":"baseq3","player":"forgotten-2-1"}"#,
            r#"{"t":1,"command":"reopen","week":"2026-W47"}"#,
            r#"{"t":1,"command":"delete_windows","before":0}"#,
            r#"{"t":1,"command":"clock"}"#,
            r#"{"t":1,"settings":{"elo.k":25.5,"names.ignore":["a"]}}"#,
            r#"{"t":1,"rebuild":"begin","windows":[{"window":{"kind":0,"index":0},"start_ms":-9223372036854775808,"end_ms":9223372036854775807}]}"#,
            r#"{"t":1,"rebuild":"players","window":{"kind":3,"index":9},"players":[{"game":"g","name":"a","servers":["quake3://127.0.0.1:27960"],"game_rating":{"elo":999.9999999999999,"rounds":1,"sure":1,"at_ms":7},"tag_ratings":[]}]}"#,
            r#"{"t":1,"rebuild":"end"}"#,
        ] {
            let mut out = Vec::new();
            write_event(&mut out, &parse(text).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}\n"));
        }
    }

    #[test]
    fn invalid_line_error_names_the_cause() {
        let snapshot = |rest: &str| format!(r#"{{"t":1,"server":"quake3://h:1","game":"g","map":"m"{rest}}}"#);
        let long = format!(r#","players":[{{"name":"{}","points":1}}]"#, "x".repeat(300));
        for (text, want) in [
            ("".to_owned(), "not a line"),
            ("{".to_owned(), "not a line"),
            (r#"{"t":1,"server":"x","miss":true}"#.to_owned(), "scheme://host:port"),
            (r#"{"t":-1,"server":"quake3://h:1","miss":true}"#.to_owned(), "t = -1"),
            (snapshot(""), "\"players\" is missing"),
            (snapshot(r#","players":[],"miss":true"#), "\"miss\" and a snapshot"),
            (snapshot(r#","players":[{"name":"a","points":1.5}]"#), "not a line"),
            (snapshot(r#","players":[{"name":"a","points":2199023255552}]"#), "beyond"),
            (snapshot(&long), "300 bytes long"),
            (r#"{"t":1,"command":"grey"}"#.to_owned(), "unknown variant `grey`"),
            (r#"{"t":1,"command":"remove"}"#.to_owned(), "missing field `server`"),
            (r#"{"t":1,"command":"remove","server":"x"}"#.to_owned(), "scheme://host:port"),
            (r#"{"t":-1,"command":"clock"}"#.to_owned(), "t = -1"),
            (r#"{"t":1,"command":"clock","settings":{}}"#.to_owned(), "either a command, settings"),
            (r#"{"t":1,"rebuild":"server","window":{"kind":3,"index":9}}"#.to_owned(), "missing field `server`"),
            (r#"{"t":1,"command":"drop_tag","tag":"a b"}"#.to_owned(), "tag \"a b\""),
            (r#"{"t":1,"command":"reopen","week":"x"}"#.to_owned(), "x"),
            (r#"{"t":1,"settings":1}"#.to_owned(), "not a line"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
