//! How players join a server: the address to type, and a link that starts the game.

use crate::games;
use crate::model::ServerUrl;

pub(in crate::web) struct Join {
    /// `host:port`.
    pub address: String,
    pub link: Option<String>,
}

/// `game`: as the lists of the server call it.
pub(in crate::web) fn join(url: &ServerUrl, game: Option<&str>) -> Join {
    // As in a URL: an IPv6 address is in brackets.
    let host = match url.host().contains(':') {
        true => format!("[{}]", url.host()),
        false => url.host().to_owned(),
    };
    let known = game.and_then(|game| games::of_server(url.scheme(), game));
    let steam = || (url.scheme() == "source").then(|| games::steam_link(&host, url.port()));
    Join {
        address: format!("{host}:{}", known.map_or(url.port(), |game| game.join_port(url.port()))),
        link: known.and_then(|game| game.join_link(&host, url.port())).or_else(steam),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_that_of_the_game_and_links_are_known_to_browsers() {
        for (url, game, address, link) in [
            ("source://192.0.2.1:27015", Some("cstrike"), "192.0.2.1:27015", Some("steam://connect/192.0.2.1:27015")),
            ("source://192.0.2.1:27015", None, "192.0.2.1:27015", Some("steam://connect/192.0.2.1:27015")),
            (
                "source://[2001:db8::1]:2303",
                Some("Arma3"),
                "[2001:db8::1]:2302",
                Some("steam://connect/[2001:db8::1]:2303"),
            ),
            ("unreal2://h:7778", Some("ut2004"), "h:7777", None),
            ("teeworlds://h:8303", Some("teeworlds"), "h:8303", Some("ddnet://h:8303")),
            ("quake3://h:27960", Some("mod"), "h:27960", None),
        ] {
            let Join { address: got, link: got_link } = join(&ServerUrl::parse(url).unwrap(), game);
            assert_eq!((&got[..], got_link.as_deref()), (address, link), "{url}");
        }
    }
}
