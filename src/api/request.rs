//! The requests of clients. Each says which rows ([`Row`](super::Row)) it returns.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::archive::WeekRange;
use crate::model::NameHash;
use crate::model::row::Ranking;
use crate::model::server::{Class, ScreenReason};
use crate::model::server_page::{ServerCursor, ServerOrder};
use crate::model::url::ServerUrl;
use crate::model::view::ServerFields;
use crate::model::view::board::{BoardQuery, BoardSelector, BoardsSelector, FusedQuery, PlayerSelector, RankingWeight};

/// A request to the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", deny_unknown_fields)]
pub enum Request {
    /// One row, `Row::Status`.
    #[serde(rename = "status")]
    Status {},
    /// A `Row::Change` for each URL, in order: added, restored, tagged, scan requested, not answering,
    /// unchanged or refused. A known server of class 6 or 7 is scanned, at most once a day. The tags are added to those that a known server has.
    #[serde(rename = "servers.add")]
    ServersAdd {
        urls: Vec<String>,
        #[serde(default)]
        tags: Vec<String>,
        /// From a list, not by hand: they are removed if they never answer.
        #[serde(default)]
        import: bool,
    },
    /// A `Row::Change` for each URL, in order: removed, not found or refused.
    #[serde(rename = "servers.remove")]
    ServersRemove { urls: Vec<String> },
    /// A `Row::Server` for each server that matches the whole filter, by URL.
    #[serde(rename = "servers.list")]
    ServersList {
        #[serde(default)]
        filter: ServerFilter,
    },
    /// As `ServersList`, but in pages, and in another order: a `Row::Server` for each of at most
    /// `count` servers, and `Row::ServersNext` unless it is the last page. The page begins at a place
    /// that the page before ended with. The daemon examines a limited number of servers for each
    /// page, so a page that is not the last may have fewer servers than `count`, even none. `recent`:
    /// with the players of the last 25 hours.
    #[serde(rename = "servers.page")]
    ServersPage {
        #[serde(default)]
        filter: ServerFilter,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ServerCursor>,
        count: u32,
        #[serde(default)]
        order: ServerOrder,
        #[serde(default)]
        recent: bool,
    },
    /// A `Row::Server` for each of at most `count` servers whose host name has all words of the text, or whose
    /// address contains it; those with most players first.
    #[serde(rename = "servers.search")]
    ServersSearch { text: String, count: u32 },
    /// One row, `Row::Overview`.
    #[serde(rename = "overview")]
    Overview {},
    /// `Row::Series`: of a game, of the servers with a tag, or of all servers. No row: it is not
    /// computed yet, or none of these servers was seen.
    #[serde(rename = "series")]
    Series {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        game: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// One row, `Row::ServerDetail`.
    #[serde(rename = "servers.show")]
    ServersShow { url: ServerUrl },
    /// A `Row::Scan` for each server as soon as its result is known.
    #[serde(rename = "rescan")]
    Rescan { servers: RescanSelector },
    /// One row, `Row::Top`; without `week`, of the running week.
    #[serde(rename = "top")]
    Top {
        server: ServerUrl,
        ranking: Ranking,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        week: Option<String>,
        count: u32,
    },
    /// A `Row::BoardHead`, then a row for each entry or other result of the query.
    #[serde(rename = "board")]
    Board { board: BoardSelector, query: BoardQuery },
    /// One row, `Row::Standings`; without `rankings`, of all five.
    #[serde(rename = "standings")]
    Standings {
        boards: BoardsSelector,
        player: PlayerSelector,
        #[serde(default)]
        rankings: Vec<Ranking>,
    },
    /// A `Row::FusedHead`, then a `Row::Fused` for each player. Without `rankings`
    /// all five have equal weights; the default of `k` is 60.
    #[serde(rename = "fused")]
    Fused {
        boards: BoardsSelector,
        #[serde(default)]
        rankings: Vec<RankingWeight>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<f64>,
        query: FusedQuery,
    },
    /// For each ranking, a `Row::BoardHead` and then the rows of the query.
    #[serde(rename = "boards")]
    Boards { boards: BoardsSelector, query: BoardQuery },
    /// A `Row::Window` for each window, newest first, by type.
    #[serde(rename = "windows")]
    Windows {
        /// Whether to report the size of each window in the state directory, which
        /// requires reading all of it.
        #[serde(default)]
        bytes: bool,
    },
    /// A `Row::WindowDeleted` for each deleted window. Deletes windows that ended
    /// before that time; weeks only if they are closed and archived.
    #[serde(rename = "windows.delete")]
    WindowsDelete { before_ms: i64 },
    /// A `Row::Correction`. Replaces the rows of the running windows by those that follow from the log with the
    /// present settings. `settings`: those that change a result, as the client expects them. `only_check`: refuse what
    /// cannot be done, and do nothing; no row.
    #[serde(rename = "windows.recompute")]
    WindowsRecompute {
        settings: Map<String, Value>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_check: bool,
    },
    /// One `Row::Map`.
    #[serde(rename = "map")]
    Map { map: String },
    /// A `Row::MapTotals` for each of at most `count` maps, the most played first; with `text`, for those
    /// whose name is the string, begins with it or, from three characters on, contains it, in this
    /// order, regardless of case.
    #[serde(rename = "maps")]
    Maps {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        count: u32,
    },
    /// One `Row::BestPlayers`: the players with the best positions on a server in closed weeks.
    #[serde(rename = "servers.best")]
    ServersBest { url: ServerUrl },
    /// A `Row::Player` for each game in which the name is known.
    #[serde(rename = "player")]
    Player { name: String },
    /// A `Row::PlayerName` for each of at most `count` players whose name has all words of the text, the best
    /// matches first.
    #[serde(rename = "player.search")]
    PlayerSearch { text: String, count: u32 },
    /// A `Row::PlayerName` for each of these players that exists.
    #[serde(rename = "player.names")]
    PlayerNames { player_keys: Vec<u32> },
    /// One `Row::Player`, without the first `skip` rows of weeks.
    #[serde(rename = "player.show")]
    PlayerShow {
        player_key: u32,
        #[serde(default)]
        skip: u32,
    },
    /// A `Row::Change` for each URL, in order: tagged, unchanged, not found or refused.
    #[serde(rename = "servers.tag")]
    ServersTag {
        urls: Vec<ServerUrl>,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    },
    /// One `Row::Change`: trusted, or unchanged. `except`: screening
    /// checks that no longer apply to a server; `revoke`: those that apply again.
    #[serde(rename = "servers.trust")]
    ServersTrust {
        url: ServerUrl,
        #[serde(default)]
        except: Vec<ScreenReason>,
        #[serde(default)]
        revoke: Vec<ScreenReason>,
    },
    /// One `Row::Correction`. Removes the tag from all servers and deletes its boards
    /// and ratings.
    #[serde(rename = "tag.drop")]
    TagDrop { tag: String },
    /// One `Row::Correction`.
    #[serde(rename = "player.merge")]
    PlayerMerge { from: PlayerSelector, into: PlayerSelector, game: String },
    /// One `Row::Correction`.
    #[serde(rename = "player.forget")]
    PlayerForget { player: PlayerSelector, game: String },
    /// A `Row::ForgottenName` for each, the oldest first.
    #[serde(rename = "player.forgotten")]
    PlayerForgotten {},
    /// One `Row::Correction`.
    #[serde(rename = "player.allow")]
    PlayerAllow { hash: NameHash },
    /// One `Row::Change`: boosted, boost ended or unchanged. The server is scanned at least once a
    /// minute for this number of seconds; 0 ends the boost.
    #[serde(rename = "boost")]
    Boost { url: ServerUrl, for_s: u32 },
    /// One `Row::Change`: greylisted, lifted or unchanged. Without a reason the server is removed
    /// from the greylist.
    #[serde(rename = "greylist")]
    Greylist {
        url: ServerUrl,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Writes a backup. One `Row::Backup`.
    #[serde(rename = "backup")]
    Backup {
        /// Absolute; must not exist, or be empty.
        dir: String,
    },
    /// One `Row::Clock`. The admin confirms that the system clock is right.
    #[serde(rename = "clock.accept")]
    ClockAccept {},
    /// One `Row::Correction`: sets recorded time back to system time. Requires `force`
    /// if the system clock is not known to be synchronised.
    #[serde(rename = "clock.reset")]
    ClockReset {
        #[serde(default)]
        force: bool,
    },
    /// One `Row::Correction`.
    #[serde(rename = "week.reopen")]
    WeekReopen { week: String },
    /// One `Row::ArchiveResend`. Writes all rows of kept weeks to the archive again; without
    /// `weeks`, everything. With `take_over` everything, also to an archive that another copy of the state has
    /// written, or that is older than the state.
    #[serde(rename = "archive.resend")]
    ArchiveResend {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weeks: Option<WeekRange>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        take_over: bool,
    },
    /// A `Row::ArchiveDifference` for each of the first 5,000 differences, then one
    /// `Row::ArchiveVerified`. Compares kept weeks in the archive with the state; without `weeks`,
    /// all.
    #[serde(rename = "archive.verify")]
    ArchiveVerify {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weeks: Option<WeekRange>,
    },
    /// A `Row::Export` for each row of a week, in order of server URL, player name and game. The rows of
    /// one server are of one moment.
    #[serde(rename = "export")]
    Export { week: String },
    /// No row; changes and settings that need a restart are in the notes.
    #[serde(rename = "reload")]
    Reload {},
}

/// Names of all commands.
pub const COMMANDS: [&str; 42] = [
    "status",
    "servers.add",
    "servers.remove",
    "servers.list",
    "servers.page",
    "servers.search",
    "overview",
    "series",
    "servers.show",
    "rescan",
    "top",
    "board",
    "standings",
    "fused",
    "boards",
    "windows",
    "windows.delete",
    "windows.recompute",
    "player",
    "map",
    "maps",
    "servers.best",
    "player.search",
    "player.names",
    "player.show",
    "servers.tag",
    "servers.trust",
    "tag.drop",
    "player.merge",
    "player.forget",
    "player.forgotten",
    "player.allow",
    "boost",
    "greylist",
    "backup",
    "clock.accept",
    "clock.reset",
    "week.reopen",
    "archive.resend",
    "archive.verify",
    "export",
    "reload",
];

/// Selects servers to list; all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<bool>,
    /// Whether a check of docs/rules.md section 14 has applied within the last 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screened: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greylisted: Option<bool>,
    /// Without it, servers that are not removed. Pages never contain removed servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
    /// Part of the URL, host name or map; case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl ServerFilter {
    /// Whether a server has these fields. Call it once for a list of servers.
    pub fn matcher(&self) -> impl Fn(&ServerFields<'_>) -> bool {
        let ServerFilter { class, game, map, tag, online, screened, greylisted, removed, text } = self;
        let text = text.as_ref().map(|text| text.to_lowercase());
        move |server| {
            class.is_none_or(|class| server.class == class.number())
                && game.as_ref().is_none_or(|game| server.game == Some(game))
                && map.as_ref().is_none_or(|map| server.map == Some(map))
                && tag.as_ref().is_none_or(|tag| server.tags.contains(&tag.as_str()))
                && online.is_none_or(|online| server.online == online)
                && screened.is_none_or(|screened| server.is_screened == screened)
                && greylisted.is_none_or(|greylisted| server.is_greylisted == greylisted)
                && server.is_removed == removed.unwrap_or(false)
                && text.as_ref().is_none_or(|text| {
                    let mut texts = [Some(server.url), Some(server.hostname), server.map].into_iter().flatten();
                    texts.any(|field| contains_lowercase(field, text))
                })
        }
    }
}

/// Whether a string contains another one, regardless of case. The string searched for is in lower
/// case.
fn contains_lowercase(text: &str, lower: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(lower);
    }
    // ASCII is compared without a copy: most strings are ASCII, and a search compares those of all
    // servers.
    let (text, lower) = (text.as_bytes(), lower.as_bytes());
    let Some(&first) = lower.first() else { return true };
    let starts = memchr::memchr2_iter(first, first.to_ascii_uppercase(), text);
    starts
        .map(|at| &text[at..])
        .any(|rest| rest.get(..lower.len()).is_some_and(|part| part.eq_ignore_ascii_case(lower)))
}

/// Selects servers to rescan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RescanSelector {
    Url(ServerUrl),
    /// Classes 6 and 7.
    AllUnknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_requires_every_condition() {
        let server = ServerFields {
            url: "quake3://a.example:1",
            class: 2,
            hostname: "The House of \u{c9}va",
            game: Some("baseq3"),
            map: Some("q3dm17"),
            online: true,
            tags: ["ctf"].into_iter().collect(),
            is_screened: false,
            is_greylisted: false,
            is_removed: false,
        };
        let text = |text: &str| ServerFilter { text: Some(text.into()), ..ServerFilter::default() };
        for (filter, fits) in [
            (ServerFilter::default(), true),
            (ServerFilter { class: Class::new(2), ..text("house") }, true),
            (ServerFilter { class: Class::new(1), ..text("house") }, false),
            (text("Q3DM"), true),
            (text("a.EX"), true),
            (text("dm18"), false),
            (text("\u{c9}VA"), true),
            (text("\u{e8}"), false),
            (ServerFilter { tag: Some("ctf".into()), ..ServerFilter::default() }, true),
            (ServerFilter { tag: Some("CTF".into()), ..ServerFilter::default() }, false),
            (ServerFilter { map: Some("q3dm17".into()), ..ServerFilter::default() }, true),
            (ServerFilter { map: Some("q3dm1".into()), ..ServerFilter::default() }, false),
            (ServerFilter { online: Some(true), ..text("house") }, true),
            (ServerFilter { online: Some(false), ..text("house") }, false),
            (ServerFilter { screened: Some(true), ..text("house") }, false),
            (ServerFilter { screened: Some(false), ..text("house") }, true),
            (ServerFilter { game: Some("baseoa".into()), ..ServerFilter::default() }, false),
            (ServerFilter { greylisted: Some(true), ..ServerFilter::default() }, false),
            (ServerFilter { greylisted: Some(false), ..ServerFilter::default() }, true),
            (ServerFilter { removed: Some(true), ..ServerFilter::default() }, false),
        ] {
            assert_eq!(filter.matcher()(&server), fits, "{filter:?}");
        }
    }
}
