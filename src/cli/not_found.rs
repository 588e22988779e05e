//! What a user may have meant whose server, player or list was not found. The daemon is asked again, so these requests cost only
//! the commands of admins.

use crate::api::requests::{Map, PlayerNamed, PlayerSearch, Series, ServersList, ServersShow};
use crate::api::{ApiError, ErrorCode, ServerFilter};
use crate::cli::context::Source;
use crate::cli::exit::api_code;
use crate::cli::output::format::{quoted, relative_time, sanitize};
use crate::model::ServerUrl;
use crate::model::server::Class;
use crate::view::ServerDetail;
use crate::view::board::PlayerSelector;

/// Most names that a message lists.
const NAMES_MAX: usize = 3;

/// Adds what the user may have meant to the error of a request that names this server.
pub(super) fn explain_server(error: anyhow::Error, url: &ServerUrl, source: &mut Source) -> anyhow::Error {
    let is_unknown = |error: &anyhow::Error| api_code(error) == Some(ErrorCode::NotFound);
    // If it is known, or was removed, something else was not found.
    if !is_unknown(&error) || !source.lines(&ServersShow { url: url.clone() }).is_err_and(|error| is_unknown(&error)) {
        return error;
    }
    let filter = ServerFilter { text: Some(url.host().to_owned()), ..ServerFilter::default() };
    let Ok(servers) = source.lines(&ServersList { filter }) else { return error };
    let mut known: Vec<String> = servers.into_iter().map(|server| server.public.url).collect();
    known.retain(|known| ServerUrl::parse(known).is_ok_and(|known| known.host() == url.host()));
    known.truncate(NAMES_MAX);
    let help = match known.is_empty() {
        true => format!("add it with: clqd servers add {url}"),
        false => format!("known on this host: {}", known.join(", ")),
    };
    ApiError::new(ErrorCode::NotFound, format!("server {url} is not known; {help}")).into()
}

/// Adds similar names to the error of a request that names these players.
pub(super) fn explain_players<'p>(
    error: anyhow::Error,
    players: impl IntoIterator<Item = &'p PlayerSelector>,
    source: &mut Source,
) -> anyhow::Error {
    if api_code(&error) != Some(ErrorCode::NotFound) {
        return error;
    }
    for player in players {
        let PlayerSelector::Name(name) = player else { continue };
        let is_unknown = source.lines(&PlayerNamed { name: name.clone() }).is_ok_and(|found| found.is_empty());
        if !is_unknown {
            continue;
        }
        let mut names: Vec<String> = Vec::new();
        let mut searched = name.as_str();
        // Many names end with a number.
        let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
        for text in std::iter::once(name.as_str()).chain(Some(without_number).filter(|text| text != name)) {
            if text.is_empty() || names.len() == NAMES_MAX {
                continue;
            }
            searched = text;
            // A name may be that of players in several games.
            let request = PlayerSearch { text: text.to_owned(), count: 10 };
            for player in source.lines(&request).unwrap_or_default() {
                let shown = sanitize(&player.name);
                if names.len() < NAMES_MAX && !names.contains(&shown) {
                    names.push(shown);
                }
            }
        }
        if !names.is_empty() {
            let (names, searched) = (names.join(", "), quoted(searched));
            let text = format!("{error}; similar names: {names}\n  others: clqd player search {searched}");
            return ApiError::new(ErrorCode::NotFound, text).into();
        }
    }
    error
}

/// Why nobody on a server is ranked, if the reason is the server. Parts of the text are lines.
pub(super) fn why_not_ranked(url: &ServerUrl, now_ms: i64, source: &mut Source) -> Option<String> {
    let detail = match source.lines(&ServersShow { url: url.clone() }) {
        Ok(details) => details.into_iter().next()?,
        Err(error) if api_code(&error) == Some(ErrorCode::Removed) => {
            return Some(format!("the server was removed; restore it with: clqd servers add {url}"));
        }
        Err(_) => return None,
    };
    let ServerDetail { public, greylist_reason, .. } = detail;
    if let Some(reason) = greylist_reason {
        let reason = sanitize(&reason);
        return Some(format!(
            "the server is greylisted ({reason}): nobody on it is ranked; include it again with:\n  \
             clqd greylist {url} --lift"
        ));
    }
    match public.server.last_seen_ms {
        None => Some(format!("the server has not answered yet; scan it now with: clqd rescan {url}")),
        Some(_) if public.server.class < Class::UNKNOWN.number() => None,
        last_seen_ms => {
            let seen = relative_time(last_seen_ms, now_ms);
            Some(format!("the server does not answer, last seen {seen}; scan it now with: clqd rescan {url}"))
        }
    }
}

/// Why no server matches a filter: a part of it that nothing has.
pub(super) fn why_no_server(filter: &ServerFilter, source: &mut Source) -> Option<String> {
    let ServerFilter { game, map, tag, text, .. } = filter;
    let of_game = |game: &str| Series { game: Some(game.to_owned()), tag: None };
    let of_tag = |tag: &str| Series { game: None, tag: Some(tag.to_owned()) };
    let mut errors = Vec::new();
    errors.extend(game.as_ref().and_then(|game| source.lines(&of_game(game)).err()));
    errors.extend(tag.as_ref().and_then(|tag| source.lines(&of_tag(tag)).err()));
    errors.extend(map.as_ref().and_then(|map| source.lines(&Map { map: map.clone() }).err()));
    let is_unknown = |error: &anyhow::Error| api_code(error) == Some(ErrorCode::NotFound);
    if let Some(error) = errors.into_iter().find(is_unknown) {
        return Some(error.to_string());
    }
    let text =
        text.as_ref().filter(|text| *filter == ServerFilter { text: Some((*text).clone()), ..Default::default() })?;
    let mut why = format!("no server has {text:?} in its URL, name or map");
    for (what, option, request) in [("game", "--game", of_game(text)), ("tag", "--tag", of_tag(text))] {
        if source.lines(&request).is_ok() {
            why += &format!("; a {what}: {option} {text}");
        }
    }
    Some(why)
}
