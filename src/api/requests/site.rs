//! The whole site.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::api::status;
use crate::engine::Engine;
use crate::view::{self, EngineStatus, OnlineSeriesView};

kinds! {
    status::PublicStatus<'_>: "status", "Status";
    status::Status: "status", "AdminStatus";
    view::Overview: "overview", "Overview";
    OnlineSeriesView: "series", "OnlineSeries";
}

/// The state of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

request!(Status: "status", Access::Read => status::Status);

impl Read for Status {
    fn answer(&self, host: &dyn Host) -> Result<status::Status, ApiError> {
        let mut status = host.read(|view| status::Status {
            engine: EngineStatus { outcomes_queued: view.outcomes_queued, ..view.model.status() },
            outbox_entries: view.outbox_entries,
            store: view.store.cloned(),
            ..status::Status::default()
        })?;
        host.complete_status(&mut status)?;
        Ok(status)
    }
}

/// Players and servers online, by game and tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Overview {}

request!(Overview: "overview", Access::Read => view::Overview);

impl Read for Overview {
    fn answer(&self, host: &dyn Host) -> Result<view::Overview, ApiError> {
        host.read(|view| view.model.overview())
    }
}

/// Players and servers online over time: of a game, of the servers with a tag, or of all servers. No line: it is not computed
/// yet, or none of these servers was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Only the servers of a game.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    /// Only the servers with a tag; not together with `game`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

request!(Series: "series", Access::Read => Option<OnlineSeriesView>, |request| {
    match request {
        Series { game: Some(_), tag: Some(_) } => Err("expected only one of game and tag".to_owned()),
        _ => Ok(()),
    }
});

impl Read for Series {
    fn prepare(&self, engine: &mut Engine) {
        engine.complete_site_series();
    }

    fn answer(&self, host: &dyn Host) -> Result<Option<OnlineSeriesView>, ApiError> {
        host.read(|view| {
            let group = view.model.series_group(self.game.as_deref(), self.tag.as_deref())?;
            Ok(view.model.online_series(group))
        })?
    }
}
