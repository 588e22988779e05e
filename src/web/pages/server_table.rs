//! Tables of servers.

use maud::{Markup, html};

use super::chart::sparkline;
use super::format::{ago, count};
use super::names;
use crate::geo::{self, Country};
use crate::view::{PublicServer, ServerSummary};
use crate::web::texts::text;

/// The path of a server's page.
pub fn server_path(url: &str) -> String {
    format!("/servers/{}", names::path(url))
}

/// The path of a game's page.
pub fn game_path(game: &str) -> String {
    format!("/games/{}", names::segment(game))
}

/// The path of a tag's page.
pub fn tag_path(tag: &str) -> String {
    format!("/tags/{}", names::segment(tag))
}

/// The path of a map's page.
pub(super) fn map_path(map: &str) -> String {
    format!("/maps/{}", names::segment(map))
}

/// When a server was seen. Only scripts make an age of it, because a page must not change with time alone.
pub(super) fn seen(server: &PublicServer) -> Markup {
    html! {
        @if server.online { (text!("now")) } @else {
            @match server.last_seen_ms { Some(at_ms) => (ago(at_ms)), None => (text!("server-table-never")) }
        }
    }
}

pub(super) fn table(caption: &str, servers: &[ServerSummary]) -> Markup {
    table_of(caption, servers, true, true)
}

/// As [`table`], with fewer columns.
pub(super) fn short_table(caption: &str, servers: &[ServerSummary]) -> Markup {
    table_of(caption, servers, false, true)
}

/// As [`table`], of servers that all play one map.
pub(super) fn table_of_map(caption: &str, servers: &[ServerSummary]) -> Markup {
    table_of(caption, servers, true, false)
}

fn table_of(caption: &str, servers: &[ServerSummary], is_whole: bool, has_maps: bool) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { @if is_whole { (caption) } @else { span .unseen { (caption) } } }
                thead {
                    tr {
                        th scope="col" { (text!("server")) } th scope="col" .n { (text!("player-count")) }
                        @if is_whole { th scope="col" .wide-only { (text!("server-table-25-hours")) } }
                        @if has_maps { th scope="col" { (text!("map")) } }
                        th scope="col" { (text!("game")) }
                        @if is_whole { th scope="col" .n .wide-only { (text!("rank")) } th scope="col" { (text!("server-table-seen")) } }
                    }
                }
                tbody {
                    @for ServerSummary { public: server, .. } in servers {
                        tr {
                            td .name {
                                a href=(server_path(&server.url)) { (names::hostname(&server.hostname, &server.url)) }
                                @if is_full(server) { " " span .badge { (text!("server-table-full")) } }
                                @if is_whole {
                                    @if let Some(country) = geo::country_of_url(&server.url) { " " (flag(&country)) }
                                    @if server.greylisted { " " span .badge { (text!("server-table-not-ranked")) } }
                                }
                            }
                            td .n { (players(server)) "/" (count(server.slots)) }
                            @if is_whole {
                                td .wide-only { @if let Some(recent) = &server.recent { (sparkline(&text!("server-over-25-hours"), &recent.ten_minutes)) } }
                            }
                            @if has_maps { td .name { @if let Some(map) = &server.map { a href=(map_path(map)) { (names::plain(map)) } } } }
                            td { @if let Some(game) = &server.game { a href=(game_path(game)) { (names::game_badge(game, Some(&server.url))) } } }
                            @if is_whole {
                                td .n .wide-only { @if let Some(rank) = server.rank { (count(rank)) } }
                                td { (seen(server)) }
                            }
                        }
                    }
                }
            }
        }
        @if servers.is_empty() { p { (text!("server-table-none")) } }
    }
}

fn is_full(server: &PublicServer) -> bool {
    server.online && server.slots > 1 && server.believed_players() >= server.slots
}

/// Where a server is.
pub(super) fn flag(country: &Country) -> Markup {
    html! { span .soft title=(names::country(&country.code, &country.name)) { (country.flag()) " " (country.code) } }
}

/// The number of players, marked if it is not believed.
pub(super) fn players(server: &PublicServer) -> Markup {
    html! {
        (count(server.players))
        @if server.players_unverified {
            abbr title=(text!("server-table-not-believed")) { "?" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_servers_are_marked() {
        let is_full = |players, slots| {
            let public = PublicServer { online: true, players, slots, ..PublicServer::default() };
            let drawn = short_table("Servers", &[ServerSummary { public, ..ServerSummary::default() }]).into_string();
            drawn.contains(">full<")
        };
        assert!(is_full(16, 16) && is_full(17, 16) && !is_full(15, 16) && !is_full(1, 1) && !is_full(0, 0));
    }
}
