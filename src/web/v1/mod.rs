//! The JSON API, version 1: `/api/v1/`. A handler reads the parameters, sends one request to the
//! engine and returns its rows, without what visitors must not see.
//!
//! Fields are never removed or renamed within a version; new ones may be added.

mod boards;
pub(super) mod live;
mod maps;
mod players;
mod series;
mod servers;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use super::context::WebContext;

/// The routes, without `/api/v1`.
pub(super) fn routes() -> Router<Arc<WebContext>> {
    Router::new()
        .route("/status", get(status::status))
        .route("/overview", get(series::overview))
        .route("/series", get(series::series))
        .route("/servers", get(servers::list))
        // All of the rest: most clients encode the slashes of the URL, some do not.
        .route("/servers/{*url}", get(servers::show))
        .route("/best", get(servers::best))
        .route("/boards", get(boards::board))
        .route("/maps/{name}", get(maps::show))
        .route("/players", get(players::players))
        .route("/players/{key}", get(players::by_key))
        .route("/search", get(players::search))
}
