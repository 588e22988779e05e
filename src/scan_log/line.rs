//! One line of a scan log: text to event and back.
//!
//! Parsing a line of 12 players (701 bytes) takes some 2 us, a small part of what its replay takes.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

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

/// The fields of a line, before they are validated, in the order in which they are written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RawLine<'a> {
    t: i64,
    #[serde(borrow, default)]
    server: Option<Cow<'a, str>>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bots: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    players: Option<Vec<RawPlayer<'a>>>,
    /// A line with one of these is not a scan. Their other fields are beside them.
    #[serde(default, skip_serializing)]
    command: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    settings: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    rebuild: Option<IgnoredAny>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RawPlayer<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    points: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ping: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connected_ms: Option<u64>,
    #[serde(default)]
    bot: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    spectator: bool,
}

fn is_false(b: &bool) -> bool {
    !b
}

/// Parses one line. Unknown fields are ignored.
pub fn parse(text: &str) -> Result<LogEvent, LineError> {
    let line: RawLine = serde_json::from_str(text)?;
    if line.command.is_some() || line.settings.is_some() || line.rebuild.is_some() {
        return parse_other(&line, text);
    }
    let server = ServerUrl::parse(line.server.as_ref().ok_or(LineError::Missing("server"))?)?;
    line.check()?;
    Ok(LogEvent::Scan { server, outcome: line.into_outcome() })
}

/// Parses one line that is a scan.
pub fn parse_scan(text: &str) -> Result<(ServerUrl, Outcome), LineError> {
    match parse(text)? {
        LogEvent::Scan { server, outcome } => Ok((server, outcome)),
        _ => Err(LineError::NotScan),
    }
}

/// Whether the text may be a truncated line.
pub(super) fn is_truncated_line(text: &str) -> bool {
    let ends_early = |error: serde_json::Error| error.is_eof();
    text.is_empty() || text.starts_with('{') && serde_json::from_str::<serde_json::Value>(text).is_err_and(ends_early)
}

/// Parses a line that is not a scan.
fn parse_other(line: &RawLine<'_>, text: &str) -> Result<LogEvent, LineError> {
    #[derive(Deserialize)]
    struct SettingsLine {
        settings: RecordedSettings,
    }
    let t_ms = line.t;
    check_t(t_ms)?;
    match (line.command, line.settings, line.rebuild) {
        (None, Some(_), None) => {
            let SettingsLine { settings } = serde_json::from_str(text)?;
            Ok(LogEvent::Settings { t_ms, settings })
        }
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

impl RawLine<'_> {
    /// Validates all fields of a scan except the URL.
    fn check(&self) -> Result<(), LineError> {
        check_t(self.t)?;
        check_len("reason", self.reason.as_deref().unwrap_or_default(), TEXT_BYTES_MAX)?;
        if self.miss {
            return match self.players.is_some() || self.partial {
                true => Err(LineError::MissAndSnapshot),
                false => Ok(()),
            };
        }
        match &self.players {
            Some(players) if players.len() > PLAYERS_MAX => return Err(LineError::Players(players.len())),
            Some(players) => players.iter().enumerate().try_for_each(|(index, player)| player.check(index))?,
            None if !self.partial => return Err(LineError::Missing("players")),
            None => (),
        }
        check_len("game", self.game.as_ref().ok_or(LineError::Missing("game"))?, TEXT_BYTES_MAX)?;
        check_len("map", self.map.as_ref().ok_or(LineError::Missing("map"))?, TEXT_BYTES_MAX)?;
        check_len("hostname", self.hostname.as_deref().unwrap_or_default(), TEXT_BYTES_MAX)
    }

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
            players: self.players.unwrap_or_default().into_iter().map(RawPlayer::into_player).collect(),
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
    let server = Some(Cow::Borrowed(url.as_str()));
    let line = match outcome {
        Outcome::Miss { t_ms, reason } => {
            RawLine { t: *t_ms, server, miss: true, reason: Some(reason.into()), ..RawLine::default() }
        }
        Outcome::Snapshot(snapshot) => RawLine {
            t: snapshot.t_ms,
            server,
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
            ..RawLine::default()
        },
    };
    serde_json::to_writer(&mut *out, &line).expect("a line is serialisable and a Vec accepts every write");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            r#"{"t":1,"rebuild":"give_up","windows":[{"kind":3,"index":9}]}"#,
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
            (
                format!(r#"{{"t":1,"server":"quake3://h:1","miss":true,"reason":"{}"}}"#, "x".repeat(300)),
                "reason is 300 bytes",
            ),
            (r#"{"t":1,"miss":true}"#.to_owned(), "\"server\" is missing"),
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

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[ -~]{0,20}", 1 => "[\\\\\"/u0-9a-f\u{0}-\u{ff}]{0,12}", 1 => any::<String>()]
    }

    fn player() -> impl Strategy<Value = Player> {
        let points = prop_oneof![-99..9_999_i64, -POINTS_ABS_MAX..=POINTS_ABS_MAX];
        let points = proptest::option::weighted(0.9, points);
        (text(), points, any::<Option<i32>>(), any::<Option<u64>>(), any::<bool>(), any::<bool>()).prop_map(
            |(name, points, ping, connected_ms, bot, spectator)| Player {
                name: name.into(),
                points,
                ping,
                connected_ms,
                bot,
                spectator,
            },
        )
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        let completeness = prop_oneof![3 => Just(Completeness::Full), 1 => Just(Completeness::Partial)];
        let announced = any::<(Option<u32>, Option<u32>)>();
        let players = proptest::collection::vec(player(), 0..20);
        let snapshot = (0..1_i64 << 45, text(), text(), text(), any::<u32>(), players, completeness, announced)
            .prop_map(|(t_ms, game, map, hostname, slots, players, completeness, (count, bots))| {
                Outcome::Snapshot(Snapshot { t_ms, game, map, hostname, slots, players, completeness, count, bots })
            });
        let miss = (0..1_i64 << 45, text()).prop_map(|(t_ms, reason)| Outcome::Miss { t_ms, reason });
        prop_oneof![4 => snapshot, 1 => miss]
    }

    fn written(outcome: &Outcome) -> String {
        let mut out = Vec::new();
        write(&mut out, &ServerUrl::parse("quake3://127.0.0.1:27960").unwrap(), outcome);
        let text = String::from_utf8(out).unwrap();
        text.trim_end().to_owned()
    }

    proptest! {
        #[test]
        fn written_scan_parses_to_the_same(outcome in outcome()) {
            prop_assert_eq!(format!("{:?}", parse_scan(&written(&outcome)).unwrap().1), format!("{outcome:?}"));
        }
    }
}
