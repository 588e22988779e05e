//! What the banner of a server shows.

use super::drawing::{Banner, Mark};
use crate::model::ServerUrl;
use crate::view::PublicServerDetail;
use crate::web::pages::format::{count, utc};
use crate::web::pages::join::join;
use crate::web::pages::names;
use crate::web::texts::text;

/// Longest map name, characters. It leaves space for the facts after it.
const MAP_CHARS_MAX: usize = 24;

pub(super) fn banner(detail: PublicServerDetail) -> Banner {
    let server = detail.server;
    let map = server.map.iter().map(|map| map.chars().take(MAP_CHARS_MAX).collect()).collect();
    let rank = server.rank.map(|rank| text!("banner-rank", rank = count(rank)).into_owned());
    // Forums cache images. A time of day stays correct in a cached image, an age does not.
    let seen = |format| server.last_seen_ms.map(|at_ms| utc(at_ms, format));
    let seen_at = || Some(text!("banner-at", time = seen("%H:%M")?).into_owned());
    let facts = if server.online {
        let players =
            text!("banner-players", players = count(server.players), slots = count(server.slots)).into_owned();
        [vec![players], map, rank.into_iter().chain(seen_at()).collect()]
    } else {
        let seen =
            seen("%Y-%m-%d %H:%M").map_or_else(|| text!("banner-never"), |time| text!("banner-seen", time = time));
        [vec![text!("offline").into_owned()], vec![seen.into_owned()], Vec::from_iter(rank)]
    };
    let address = ServerUrl::parse(&server.url).map(|url| join(&url, server.game.as_deref()).address);
    let address = address.unwrap_or_else(|_| server.url.clone());
    let game = server.game.iter().map(|game| names::plain_game(game, Some(&server.url)));
    let origin = game.chain([address]).collect::<Vec<_>>().join(", ");
    Banner {
        mark: if server.online { Mark::Online } else { Mark::Offline },
        name: names::plain_hostname(&server.hostname, &server.url),
        origin,
        facts,
        players: detail.series.map(|series| series.ten_minutes).unwrap_or_default(),
    }
}
