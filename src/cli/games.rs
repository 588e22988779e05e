//! `clqd games`: the table of games.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use crate::api::json;
use crate::cli::context::CliContext;
use crate::cli::output::format::group_digits;
use crate::cli::output::table::{Align, Table};
use crate::cli::stdio::{Output, note};
use crate::games::{self, FactSource, Game, Lists};
use crate::proto::{Authentication, Nonce, protocol_of};

/// List the games that are known by name
///
/// The name of a game may be used in the URL of a server: `clqd servers add ut2004://host`. Servers of
/// other games can be scanned, too, if they speak one of the protocols.
#[derive(Debug, Args)]
pub struct GamesArgs {
    /// Part of the name, of its id or of its protocol, regardless of case
    text: Option<String>,
}

/// A game, as in JSON.
#[derive(Debug, Serialize)]
struct GameRow<'g> {
    kind: &'static str,
    id: &'g str,
    aliases: &'g [String],
    name: &'g str,
    protocol: &'g str,
    port: u16,
    query_port: u16,
    /// Values of `game` in lists and boards.
    games: &'g [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    steam_app: Option<u32>,
    lacks: Vec<&'static str>,
    /// What proves that a reply is of the server that was asked.
    authentication: String,
    source: &'static str,
}

impl GameRow<'_> {
    fn new(game: &Game) -> GameRow<'_> {
        GameRow {
            kind: "known_game",
            id: &game.id,
            aliases: &game.aliases,
            name: &game.name,
            protocol: &game.protocol,
            port: game.port,
            query_port: game.query_port(game.port).unwrap_or(game.port),
            games: &game.values,
            steam_app: game.app,
            lacks: match game.lists {
                Lists::Points => vec![],
                Lists::Times => vec!["points"],
                Lists::Count => vec!["list"],
            },
            authentication: authentication(game).map_or_else(String::new, |grade| grade.to_string()),
            source: match game.source {
                FactSource::Gamedig => "gamedig",
                FactSource::Clqd => "clqd",
            },
        }
    }

    fn has(&self, text: &str) -> bool {
        let names = [self.id, self.name, self.protocol].into_iter().chain(self.aliases.iter().map(|alias| &alias[..]));
        names.chain(self.games.iter().map(|game| &game[..])).any(|name| name.to_lowercase().contains(text))
    }
}

fn authentication(game: &Game) -> Option<Authentication> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, game.port));
    Some(protocol_of(&game.protocol)?.start(Nonce(0), address).authentication())
}

pub fn run(args: &GamesArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let text = args.text.as_deref().unwrap_or_default().to_lowercase();
    let rows: Vec<GameRow> = games::all().iter().map(GameRow::new).filter(|row| row.has(&text)).collect();
    ensure!(!rows.is_empty(), "no game has {text:?} in its name; `clqd query host:port` tries all protocols");
    let mut out = Output::ending();
    if app.json() {
        for row in &rows {
            writeln!(out, "{}", json::to_string(row))?;
        }
    } else {
        print(&rows, &mut out)?;
    }
    note(format_args!("{} games", group_digits(rows.len() as u64)));
    Ok(ExitCode::SUCCESS)
}

fn print(rows: &[GameRow], out: &mut Output) -> std::io::Result<()> {
    let mut table = Table::new(&[
        ("id", Align::Left),
        ("name", Align::Truncate(40)),
        ("protocol", Align::Left),
        ("port", Align::Right),
        ("query", Align::Right),
        ("lacks", Align::Left),
    ])
    .with_optional(&["lacks", "query"]);
    for row in rows {
        let query = if row.query_port == row.port { String::new() } else { row.query_port.to_string() };
        let (id, name, protocol) = (row.id.to_owned(), row.name.to_owned(), row.protocol.to_owned());
        table.row(out, vec![id, name, protocol, row.port.to_string(), query, row.lacks.join(", ")])?;
    }
    table.flush(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_are_found_by_their_names_and_by_what_lists_call_them() {
        let find = |text: &str| -> Vec<&str> {
            games::all().iter().map(GameRow::new).filter(|row| row.has(text)).map(|row| row.id).collect()
        };
        assert_eq!(find("valheim"), ["valheim"]);
        assert_eq!(find("baseoa"), ["openarena"]);
        assert_eq!(find("unreal tournament 2004"), ["ut2004"]);
        assert_eq!(find("no such game"), [""; 0]);
        let row = games::by_name("rust").map(GameRow::new).unwrap();
        assert_eq!(
            json::to_string(&row),
            r#"{"kind":"known_game","id":"rust","aliases":[],"name":"Rust","protocol":"source","port":28015,"query_port":28017,"games":["rust"],"steam_app":252490,"lacks":["points"],"authentication":"challenge","source":"clqd"}"#
        );
    }
}
