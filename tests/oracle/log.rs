//! Reads a scan log (docs/rules.md 13) into memory. Panics at the first error.

use clqd::model::url::ServerUrl;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Line {
    /// Unix ms.
    pub t: i64,
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
        map: String,
        count: Option<u32>,
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
    pub bot: bool,
    /// Marked by the protocol.
    pub spectator: bool,
}

pub fn read_log(log: &str) -> Vec<Line> {
    let lines: Vec<Line> = log.lines().map(read_line).collect();
    for (earlier, later) in lines.iter().zip(lines.iter().skip(1)) {
        assert!(earlier.t <= later.t, "the log is not in time order at {}", later.t);
    }
    // [open] docs/rules.md does not define two lines of one server with the same time.
    for (i, line) in lines.iter().enumerate() {
        let same_time = lines[i + 1..].iter().take_while(|later| later.t == line.t);
        assert!(
            same_time.into_iter().all(|later| later.server != line.server),
            "two lines of {} at {}",
            line.server,
            line.t
        );
    }
    lines
}

fn read_line(line: &str) -> Line {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let url = ServerUrl::parse(text(&value, "server").as_str()).expect("a server URL");
    let kind = if value["miss"] == true {
        LineKind::Miss
    } else if value["partial"] == true {
        LineKind::Partial { map: text(&value, "map"), count: number(&value, "count") }
    } else {
        let players = value["players"].as_array().expect("players").iter().map(read_player).collect();
        LineKind::Full {
            game: text(&value, "game"),
            map: text(&value, "map"),
            slots: number(&value, "slots").unwrap_or(0),
            count: number(&value, "count"),
            bots: number(&value, "bots"),
            players,
        }
    };
    Line { t: value["t"].as_i64().expect("t"), server: url.as_str().to_owned(), url, kind }
}

fn read_player(value: &Value) -> LoggedPlayer {
    LoggedPlayer {
        name: text(value, "name"),
        points: (!value["points"].is_null()).then(|| value["points"].as_i64().expect("a whole number of points")),
        ping: value["ping"].as_i64(),
        bot: value["bot"].as_bool().unwrap_or(false),
        spectator: value["spectator"].as_bool().unwrap_or(false),
    }
}

fn number(value: &Value, field: &str) -> Option<u32> {
    value[field].as_u64().map(|number| u32::try_from(number).expect("a small number"))
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}
