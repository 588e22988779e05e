//! Reads a scan log (docs/rules.md 13) into memory. Panics at the first error.

use clqd::model::calendar::parse_week_label;
use clqd::model::url::ServerUrl;
use serde_json::Value;

/// A line of any kind.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Unix ms.
    pub t: i64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Scan(Line),
    Command(Command),
    /// Keys of the config file with their values.
    Settings(Vec<(String, Value)>),
}

/// What an admin did. Servers are in canonical form, players are normalised names.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Add { server: String, tags: Vec<String> },
    Remove { server: String },
    Tag { server: String, add: Vec<String>, remove: Vec<String> },
    DropTag { tag: String },
    Greylist { server: String },
    Lift { server: String },
    Trust { server: String, except: Vec<String>, revoke: Vec<String> },
    Merge { game: String, from: String, into: String },
    Forget { game: String, player: String },
    Allow,
    Reopen { week: u32 },
    DeleteWindows { before: i64 },
    Clock,
}

/// A scan.
#[derive(Clone, Debug)]
pub struct Line {
    /// Unix ms.
    pub t: i64,
    /// Index among the lines of all kinds.
    pub number: usize,
    /// In canonical form.
    pub server: String,
    /// The parsed URL, with the scheme of the protocol.
    pub url: ServerUrl,
    pub kind: LineKind,
}

#[derive(Clone, Debug)]
pub enum LineKind {
    Miss,
    Partial {
        /// Empty: not known.
        game: String,
        map: String,
        /// 0: not known.
        slots: u32,
        count: Option<u32>,
        bots: Option<u32>,
    },
    Full {
        game: String,
        map: String,
        /// 0: not known.
        slots: u32,
        /// Players that an A2S server reports, bots included.
        count: Option<u32>,
        /// Bots that an A2S server reports.
        bots: Option<u32>,
        players: Vec<LoggedPlayer>,
    },
}

#[derive(Clone, Debug)]
pub struct LoggedPlayer {
    pub name: String,
    /// `None`: the protocol has none.
    pub points: Option<i64>,
    pub ping: Option<i64>,
    /// `None`: the protocol does not say so.
    pub connected_ms: Option<i64>,
    pub bot: bool,
    /// Marked by the protocol.
    pub spectator: bool,
}

/// All lines, in order. Time runs backwards only to that of a `clock` command.
pub fn read_log(log: &str) -> Vec<Logged> {
    let lines: Vec<Logged> = log.lines().enumerate().map(|(at, line)| read_line(at, line)).collect();
    for (earlier, later) in lines.iter().zip(lines.iter().skip(1)) {
        let set_back = matches!(later.what, What::Command(Command::Clock));
        assert!(earlier.t <= later.t || set_back, "the log is not in time order at {}", later.t);
    }
    // [open] docs/rules.md does not define two scans of one server with the same time.
    for (i, logged) in lines.iter().enumerate() {
        let What::Scan(line) = &logged.what else { continue };
        let same_time = lines[i + 1..].iter().take_while(|later| later.t == line.t);
        let twice =
            same_time.into_iter().any(|later| matches!(&later.what, What::Scan(it) if it.server == line.server));
        assert!(!twice, "two lines of {} at {}", line.server, line.t);
    }
    lines
}

fn read_line(at: usize, line: &str) -> Logged {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let t = value["t"].as_i64().expect("t");
    let what = if let Some(settings) = value.get("settings") {
        let settings = settings.as_object().expect("settings by key");
        What::Settings(settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    } else if value.get("command").is_some() {
        What::Command(read_command(&value))
    } else {
        What::Scan(read_scan(t, at, &value))
    };
    Logged { t, what }
}

fn read_command(value: &Value) -> Command {
    let server = || ServerUrl::parse(&text(value, "server")).expect("a server URL").as_str().to_owned();
    match text(value, "command").as_str() {
        "add" => Command::Add { server: server(), tags: texts(value, "tags") },
        "remove" => Command::Remove { server: server() },
        "tag" => Command::Tag { server: server(), add: texts(value, "add"), remove: texts(value, "remove") },
        "drop_tag" => Command::DropTag { tag: text(value, "tag") },
        "greylist" => Command::Greylist { server: server() },
        "lift" => Command::Lift { server: server() },
        "trust" => Command::Trust { server: server(), except: texts(value, "except"), revoke: texts(value, "revoke") },
        "merge" => Command::Merge { game: text(value, "game"), from: text(value, "from"), into: text(value, "into") },
        "forget" => Command::Forget { game: text(value, "game"), player: text(value, "player") },
        "allow" => Command::Allow,
        "reopen" => Command::Reopen { week: parse_week_label(&text(value, "week")).expect("a week").0 },
        "delete_windows" => Command::DeleteWindows { before: value["before"].as_i64().expect("before") },
        "clock" => Command::Clock,
        other => panic!("{other} is not a command"),
    }
}

fn read_scan(t: i64, at: usize, value: &Value) -> Line {
    let url = ServerUrl::parse(text(value, "server").as_str()).expect("a server URL");
    let kind = if value["miss"] == true {
        LineKind::Miss
    } else if value["partial"] == true {
        // The scans of a greylisted server may be recorded without a map.
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        LineKind::Partial {
            game: text("game"),
            map: text("map"),
            slots: number(value, "slots").unwrap_or(0),
            count: number(value, "count"),
            bots: number(value, "bots"),
        }
    } else {
        let players = value["players"].as_array().expect("players").iter().map(read_player).collect();
        LineKind::Full {
            game: text(value, "game"),
            map: text(value, "map"),
            slots: number(value, "slots").unwrap_or(0),
            count: number(value, "count"),
            bots: number(value, "bots"),
            players,
        }
    };
    Line { t, number: at, server: url.as_str().to_owned(), url, kind }
}

fn read_player(value: &Value) -> LoggedPlayer {
    LoggedPlayer {
        name: text(value, "name"),
        points: (!value["points"].is_null()).then(|| value["points"].as_i64().expect("a whole number of points")),
        ping: value["ping"].as_i64(),
        connected_ms: (!value["connected_ms"].is_null()).then(|| connected_ms(&value["connected_ms"])),
        bot: value["bot"].as_bool().unwrap_or(false),
        spectator: value["spectator"].as_bool().unwrap_or(false),
    }
}

/// A time that is too long is longer than any gap.
fn connected_ms(value: &Value) -> i64 {
    i64::try_from(value.as_u64().expect("a whole number of ms")).unwrap_or(i64::MAX)
}

fn number(value: &Value, field: &str) -> Option<u32> {
    value[field].as_u64().map(|number| u32::try_from(number).expect("a small number"))
}

/// A list of strings that may be absent.
fn texts(value: &Value, field: &str) -> Vec<String> {
    let Some(list) = value.get(field) else { return Vec::new() };
    let texts = list.as_array().unwrap_or_else(|| panic!("{field} is not a list in {value}")).iter();
    texts.map(|text| text.as_str().expect("a string").to_owned()).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}
