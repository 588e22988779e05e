//! The JSON API, version 1: `/api/v1/`. A handler reads the parameters, sends one request to the
//! engine and returns its rows, without what visitors must not see.
//!
//! Fields are never removed or renamed within a version; new ones may be added.

mod boards;
mod live;
mod maps;
pub(super) mod openapi;
mod players;
pub(super) mod responses;
mod rows;
mod search;
mod servers;
mod sessions;
mod site;

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get};

use super::admin;
use super::context::WebContext;

type Route = (&'static str, MethodRouter<Arc<WebContext>>);

/// The routes whose answers are cached.
fn cached() -> Vec<Route> {
    vec![
        ("/status", get(site::status)),
        ("/overview", get(site::overview)),
        ("/series", get(site::series)),
        ("/servers", get(servers::list)),
        // All of the rest: most clients encode the slashes of the URL, some do not.
        ("/servers/{*url}", get(servers::show)),
        ("/best", get(servers::best)),
        ("/boards", get(boards::board)),
        ("/windows", get(boards::windows)),
        ("/maps", get(maps::list)),
        ("/maps/{name}", get(maps::show)),
        ("/players", get(players::players)),
        ("/players/{key}", get(players::by_key)),
        ("/sessions", get(sessions::list)),
        ("/search", get(search::search)),
        ("/openapi.json", get(openapi::openapi)),
        ("/openapi-admin.json", get(admin::openapi::openapi)),
    ]
}

/// The routes whose answers are streams.
fn streams() -> Vec<Route> {
    vec![("/live", get(live::live))]
}

/// The routes whose answers are cached, without `/api/v1`.
pub(super) fn cached_routes() -> Router<Arc<WebContext>> {
    router(cached())
}

/// The routes whose answers are streams, without `/api/v1`.
pub(super) fn stream_routes() -> Router<Arc<WebContext>> {
    router(streams())
}

fn router(routes: Vec<Route>) -> Router<Arc<WebContext>> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let routes: BTreeSet<String> = cached()
            .into_iter()
            .chain(streams())
            .map(|(path, _)| format!("/api/v1{}", path.replace("{*", "{")))
            .collect();
        let described: BTreeSet<String> = openapi::DESCRIPTION.paths.paths.keys().cloned().collect();
        assert_eq!(routes, described);
    }
}
