//! Servers: reads, changes and scans on request.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::{Answer, kinds, lines};
use crate::api::checks;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::api::server_filter::ServerFilter;
use crate::geo::{self, Country};
use crate::limits::BOOST_S_MAX;
use crate::model::ScanBudget;
use crate::model::ServerKey;
use crate::model::server::ScreenReason;
use crate::model::server_page::{ServerCursor, ServerOrder};
use crate::model::url::ServerUrl;
use crate::view::history::BestPlayers;
use crate::view::{
    CountryCount, PublicServer, PublicServerDetail, ServerDetail, ServerFields, ServerSummary, TagSummary,
};

kinds! {
    ServersNext: "servers_next", "ServersNext";
    PublicServer: "server", "Server";
    ServerSummary: "server", "AdminServer";
    PublicServerDetail: "server_detail", "ServerDetail";
    ServerDetail: "server_detail", "AdminServerDetail";
    BestPlayers: "best_players", "BestPlayers";
    TagSummary: "tag", "Tag";
    CountryCount: "country", "Country";
    ServerChange: "change", "ServerChange";
    ScanRow: "scan", "ServerScan";
}

/// Adds servers. The answer has a change for each URL, in order: added, restored, tagged, scan requested, not answering,
/// unchanged or refused. A known server of class 6 or 7 is scanned, at most once a day. The tags are added to those that
/// a known server has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersAdd {
    /// At most 1,000.
    pub urls: Vec<String>,
    /// Tags for all of them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// From a list, not by hand: they are removed if they never answer.
    #[serde(default)]
    pub import: bool,
}

request!(ServersAdd: "servers.add", Access::SERVERS => Vec<ServerChange>, |request| {
    checks::urls(request.urls.len())?;
    checks::tags(&request.tags)
});

/// Removes servers. The answer has a change for each URL, in order: removed, not found or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersRemove {
    /// At most 1,000.
    pub urls: Vec<String>,
}

request!(ServersRemove: "servers.remove", Access::SERVERS => Vec<ServerChange>, |request| {
    checks::urls(request.urls.len())
});

/// Servers that match the whole filter, by URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersList {
    /// Which servers; without it, all that are not removed.
    #[serde(default)]
    pub filter: ServerFilter,
}

request!(ServersList: "servers.list", Access::Read => Vec<ServerSummary>);

impl Read for ServersList {
    fn answer(&self, host: &dyn Host) -> Result<Vec<ServerSummary>, ApiError> {
        self.filter.check()?;
        host.read(|view| {
            let mut servers: Vec<_> = view.model.servers_that(self.filter.matcher()).collect();
            servers.sort_unstable_by(|a, b| a.public.url.cmp(&b.public.url));
            servers
        })
    }
}

/// As `servers.list`, but in pages, and in another order. A page begins at a place that the page before ended with. A
/// limited number of servers is examined for each page, so a page that is not the last may have fewer servers than
/// `count`, even none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersPage {
    /// Which servers; without it, all that are not removed.
    #[serde(default)]
    pub filter: ServerFilter,
    /// Where the page begins: what the page before ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub after: Option<ServerCursor>,
    /// Most servers.
    pub count: u32,
    /// `added`, `players`, `rank` or `name`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub order: ServerOrder,
    /// With the players of the last 25 hours.
    #[serde(default)]
    pub recent: bool,
}

request!(ServersPage: "servers.page", Access::Read => ServerPage, |request| checks::rows(request.count));

impl Read for ServersPage {
    fn answer(&self, host: &dyn Host) -> Result<ServerPage, ApiError> {
        let ServersPage { filter, after, count, order, recent } = self;
        filter.check()?;
        host.read(|view| {
            let matcher = filter.matcher();
            let (mut servers, next) = view.model.servers_page(*order, after.as_ref(), *count as usize, &matcher);
            for server in servers.iter_mut().filter(|_| *recent) {
                server.public.recent = view.model.recent_series(ServerKey(server.public.key));
            }
            ServerPage { servers, next }
        })
    }
}

/// A page of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPage {
    pub servers: Vec<ServerSummary>,
    /// Where the next page begins; `None`: this is the last one.
    pub next: Option<ServerCursor>,
}

lines! {
    /// A line of a page of servers.
    ServerPageLine {
        Server(Box<ServerSummary>),
        ServersNext(ServersNext),
    }
}

impl Answer for ServerPage {
    type Line = ServerPageLine;

    fn lines(self) -> impl Iterator<Item = ServerPageLine> + Send {
        let servers = self.servers.into_iter().map(|server| ServerPageLine::Server(Box::new(server)));
        servers.chain(self.next.map(|after| ServerPageLine::ServersNext(ServersNext { after })))
    }
}

/// Servers whose host name has all words of the text, or whose address contains it; those with most players first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersSearch {
    /// Words of a host name, or a part of an address.
    pub text: String,
    /// Most servers.
    pub count: u32,
}

request!(ServersSearch: "servers.search", Access::Read => Vec<ServerSummary>, |request| checks::rows(request.count));

impl Read for ServersSearch {
    fn answer(&self, host: &dyn Host) -> Result<Vec<ServerSummary>, ApiError> {
        let found = host.find_servers(&self.text)?;
        host.read(|view| view.model.busiest_servers(&found, self.count as usize))
    }
}

/// A server with its players, maps and series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersShow {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
}

request!(ServersShow: "servers.show", Access::Read => ServerDetail);

impl Read for ServersShow {
    fn answer(&self, host: &dyn Host) -> Result<ServerDetail, ApiError> {
        let mut detail = host.read(|view| view.model.server_detail(view.reader, &self.url))??;
        host.complete_server(&mut detail);
        Ok(detail)
    }
}

/// The countries in which servers are online, those with most servers first. Empty without a database of countries
/// (`geo.database`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersCountries {}

request!(ServersCountries: "servers.countries", Access::Read => Vec<CountryCount>);

impl Read for ServersCountries {
    fn answer(&self, host: &dyn Host) -> Result<Vec<CountryCount>, ApiError> {
        let counts: RefCell<BTreeMap<Country, u64>> = RefCell::default();
        let count = |server: &ServerFields<'_>| {
            if server.online
                && !server.is_removed
                && let Some(country) = geo::country_of_url(server.url)
            {
                *counts.borrow_mut().entry(country).or_default() += 1;
            }
            // They are only counted.
            false
        };
        let mut after = None;
        while geo::is_set() {
            after = host.read(|view| view.model.servers_page(ServerOrder::Added, after.as_ref(), 1, &count).1)?;
            if after.is_none() {
                break;
            }
        }
        let row = |(Country { code, name }, servers_online)| CountryCount { country: code, name, servers_online };
        let mut countries: Vec<CountryCount> = counts.into_inner().into_iter().map(row).collect();
        countries.sort_by_key(|country| Reverse(country.servers_online));
        Ok(countries)
    }
}

/// The players with the best positions on a server in closed weeks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersBest {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
}

request!(ServersBest: "servers.best", Access::Read => BestPlayers);

impl Read for ServersBest {
    fn answer(&self, host: &dyn Host) -> Result<BestPlayers, ApiError> {
        host.best_players(&self.url)
    }
}

/// All tags, by name, with their servers and players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersTags {}

request!(ServersTags: "servers.tags", Access::Read => Vec<TagSummary>);

impl Read for ServersTags {
    fn answer(&self, host: &dyn Host) -> Result<Vec<TagSummary>, ApiError> {
        host.read(|view| view.model.tags())
    }
}

/// Changes tags of servers. The answer has a change for each URL, in order: tagged, unchanged, not found or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersTag {
    /// At most 1,000.
    #[schema(value_type = Vec<String>)]
    pub urls: Vec<ServerUrl>,
    /// Tags to add.
    #[serde(default)]
    pub add: Vec<String>,
    /// Tags to remove.
    #[serde(default)]
    pub remove: Vec<String>,
}

request!(ServersTag: "servers.tag", Access::SERVERS => Vec<ServerChange>, |request| {
    checks::urls(request.urls.len())?;
    checks::tag_count(request.remove.len())?;
    checks::tags(&request.add)
});

/// Exempts a server from screening checks. The answer is one change: trusted or unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersTrust {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
    /// Checks that no longer apply.
    #[serde(default)]
    pub except: Vec<ScreenReason>,
    /// Checks that apply again.
    #[serde(default)]
    pub revoke: Vec<ScreenReason>,
}

request!(ServersTrust: "servers.trust", Access::SERVERS => ServerChange);

/// Sets how often servers are scanned while they have players. The answer has a change for each URL, in order:
/// budget set, unchanged or not found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersBudget {
    /// At most 1,000.
    #[schema(value_type = Vec<String>)]
    pub urls: Vec<ServerUrl>,
    /// Mean number of scans in an interval of class 1: 0 for a fixed grid, or 0.75 to 6. Without it, that of the
    /// setting `scan.budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, example = 3.0)]
    pub budget: Option<ScanBudget>,
}

request!(ServersBudget: "servers.budget", Access::SERVERS => Vec<ServerChange>, |request| {
    checks::urls(request.urls.len())
});

/// Scans a server at least once a minute for a while. The answer is one change: boosted, boost ended or unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Boost {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
    /// For how many seconds; 0 ends the boost.
    pub for_s: u32,
}

request!(Boost: "boost", Access::RESCAN => ServerChange, |request| {
    match request.for_s {
        0..=BOOST_S_MAX => Ok(()),
        for_s => Err(format!("for_s is {for_s}; expected 0 to {BOOST_S_MAX} seconds")),
    }
});

/// Excludes a server from rankings. The answer is one change: greylisted, lifted or unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Greylist {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
    /// Why; without it the server is removed from the greylist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

request!(Greylist: "greylist", Access::SERVERS => ServerChange);

/// Scans servers now. The answer has a line for each as soon as its result is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rescan {
    /// Which servers.
    pub servers: RescanSelector,
}

request!(Rescan: "rescan", Access::RESCAN => Vec<ScanRow>);

/// Selects servers to rescan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RescanSelector {
    /// One server.
    #[schema(value_type = String)]
    Url(ServerUrl),
    /// Classes 6 and 7.
    AllUnknown,
}

/// There is a further page of servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServersNext {
    /// Where that page begins.
    #[schema(value_type = String)]
    pub after: ServerCursor,
}

/// The result of a change to one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerChange {
    /// As it was sent.
    pub url: String,
    /// What happened.
    pub outcome: ChangeOutcome,
    /// Why it was refused or greylisted, or is unchanged; until when it is boosted; its tags or
    /// skipped checks after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What happened to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    Added,
    /// Was removed earlier; restored with its history.
    Restored,
    /// Nothing changed; `reason` says why: it is already in the list, has no such tag, is not
    /// greylisted.
    Unchanged,
    /// The server was added again. It is of class 6 or 7 and is scanned now. Tags may have been
    /// added.
    ScanRequested,
    /// The server was added again. It is of class 6 or 7, but is not scanned, because adding it
    /// requested a scan less than a day ago. Tags may have been added.
    NotAnswering,
    Removed,
    /// The server or tag was not found.
    NotFound,
    /// Its tags have changed.
    Tagged,
    /// The list of skipped screening checks has changed.
    Trusted,
    /// It is scanned more or less often while it has players; `reason` says how often.
    BudgetSet,
    Greylisted,
    /// Removed from the greylist.
    Lifted,
    /// Scanned once a minute for a while; `reason` says until when.
    Boosted,
    /// No longer scanned once a minute.
    BoostEnded,
    Refused,
    /// The same import lists it more than once; this is not the first line. `reason` names that.
    ListedTwice,
}

/// The result of one requested scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScanRow {
    /// The URL of the server.
    pub url: String,
    /// When it ended, Unix ms.
    pub t_ms: i64,
    /// What the server sent.
    pub result: ScanResult,
    /// Class after the scan.
    pub class: u8,
    /// The host name, of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The game, of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    /// The map, of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Players, without bots, of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    /// Places for players, of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The URL under which the host answered although the server did not answer under its own URL:
    /// another protocol or port. It may be another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_at: Option<String>,
    /// Why the server was missed, if more is known than a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a scan got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScanResult {
    /// A complete list of players.
    Snapshot,
    /// An incomplete list.
    Partial,
    /// No answer.
    Miss,
}
