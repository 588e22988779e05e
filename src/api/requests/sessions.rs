//! Sessions: when players were on servers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::checks;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::model::PlayerKey;
use crate::model::url::ServerUrl;
use crate::view::board::PlayerSelector;
use crate::view::session::{Companion, ExportedSession, SessionView, Visitors};

kinds! {
    SessionView: "session", "Session";
    ExportedSession: "exported_session", "ExportedSession";
    Companion: "companion", "Companion";
    Visitors: "visitors", "Visitors";
}

/// The newest sessions of a player, open ones first; of a name, those of its players in all games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerSessions {
    /// The player, or one who was merged into the player.
    pub player: PlayerSelector,
    /// Most sessions.
    pub count: u32,
}

request!(PlayerSessions: "player.sessions", Access::Read => Vec<SessionView>, |request| checks::rows(request.count));

impl Read for PlayerSessions {
    fn answer(&self, host: &dyn Host) -> Result<Vec<SessionView>, ApiError> {
        let most = self.count as usize;
        Ok(host.read(|view| view.model.player_sessions(view.reader, &self.player, most))??)
    }
}

/// The newest sessions on a server, open ones first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersSessions {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
    /// Sessions that ended within this time, s; without it, all that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<u32>,
    /// Most sessions.
    pub count: u32,
}

request!(ServersSessions: "servers.sessions", Access::Read => Vec<SessionView>, |request| checks::rows(request.count));

impl Read for ServersSessions {
    fn answer(&self, host: &dyn Host) -> Result<Vec<SessionView>, ApiError> {
        let most = self.count as usize;
        Ok(host.read(|view| view.model.server_sessions(view.reader, &self.url, self.last_s, most))??)
    }
}

/// The players of a server within some time, those who were there longest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServersVisitors {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub url: ServerUrl,
    /// The time until now, s.
    pub last_s: u32,
    /// Most sessions that are looked at, the newest.
    pub sessions: u32,
    /// Most players with their names.
    pub count: u32,
}

request!(ServersVisitors: "servers.visitors", Access::Read => Visitors, |request| {
    checks::rows(request.sessions).and_then(|()| checks::rows(request.count))
});

impl Read for ServersVisitors {
    fn answer(&self, host: &dyn Host) -> Result<Visitors, ApiError> {
        let (sessions, most) = (self.sessions as usize, self.count as usize);
        Ok(host.read(|view| view.model.server_visitors(view.reader, &self.url, self.last_s, sessions, most))??)
    }
}

/// The players who were on the same servers during the newest sessions of a player, those who were together longest
/// first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerCompanions {
    /// The number of the player.
    pub player_key: u32,
    /// Most players.
    pub count: u32,
}

request!(PlayerCompanions: "player.companions", Access::Read => Vec<Companion>, |request| checks::rows(request.count));

impl Read for PlayerCompanions {
    fn answer(&self, host: &dyn Host) -> Result<Vec<Companion>, ApiError> {
        let (player, most) = (PlayerKey(self.player_key), self.count as usize);
        Ok(host.read(|view| view.model.companions(view.reader, player, most))??)
    }
}

/// All complete sessions that are kept, in order of server URL, end, start and name. Those of one server are of one
/// moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportSessions {}

request!(ExportSessions: "export.sessions", Access::Read => Vec<ExportedSession>);
