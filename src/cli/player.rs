//! `clqd player`: shows players and corrects their data.

use std::cmp::Reverse;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};

use super::admin::{send, show_list, show_with};
use super::arguments::{PlayerArg, selector_of};
use super::not_found::explain_players;
use crate::api::{ApiError, ErrorCode, ROWS_PER_RESPONSE_MAX, requests};
use crate::cli::context::{CliContext, Source};
use crate::cli::exit::{UsageError, api_code};
use crate::cli::output::Printer;
use crate::cli::output::player::print_games;
use crate::cli::stdio::{Output, confirm, is_interactive, note};
use crate::client::ClientError;
use crate::clock::system_ms;
use crate::model::NameHash;
use crate::nearest::nearest;
use crate::view::board::PlayerSelector;

const EXAMPLES: &str = "Examples:
  clqd player search visor
  clqd player Visor --game baseq3
  clqd player sessions Visor
  clqd player merge Visor2 Visor --game baseq3";

/// Show a player, find players by name, merge or forget them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = ArgGroup::new("who").args(["name", "key"]).required(true))]
pub struct PlayerArgs {
    #[command(subcommand)]
    command: Option<PlayerCommand>,
    /// The name without colour codes; case matters
    ///
    /// A name that equals a command follows two hyphens: clqd player -- merge
    name: Vec<String>,
    /// The player's key, as lists show it
    #[arg(long)]
    key: Option<u32>,
    /// Only the player of this game, such as baseq3
    #[arg(long)]
    game: Option<String>,
}

#[derive(Debug, Subcommand)]
enum PlayerCommand {
    /// Find players by words of their names, in any order
    #[command(alias = "find")]
    Search {
        /// Part of a name; one or two characters match only the beginning
        text: String,
        /// Most players
        #[arg(short = 'n', long, alias = "limit", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_PER_RESPONSE_MAX)))]
        count: u32,
    },
    /// List when and where a player was, the newest first
    Sessions {
        #[command(flatten)]
        player: PlayerArg,
        /// Most sessions
        #[arg(short = 'n', long, alias = "limit", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_PER_RESPONSE_MAX)))]
        count: u32,
    },
    /// Merge player FROM into INTO, in all stored windows and later
    ///
    /// Points and time are added, the ten best positions are merged, and of two ratings the one with more rounds is
    /// kept. This cannot be undone.
    Merge {
        /// A name, or a player's key such as #123; becomes a name of INTO
        #[arg(value_parser = player_name)]
        from: PlayerSelector,
        /// A name, or a player's key such as #123
        #[arg(value_parser = player_name)]
        into: PlayerSelector,
        /// Such as baseq3
        #[arg(long)]
        game: String,
        /// Do not ask on a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Delete all data of a player and never store the name again
    ///
    /// Rows, positions and the name are deleted, here and in MySQL, and later from the log. A player with that name is
    /// counted from then on, but not ranked or named. This cannot be undone.
    Forget {
        /// A name, or a player's key such as #123
        #[arg(value_parser = player_name)]
        player: PlayerSelector,
        /// Such as baseq3
        #[arg(long)]
        game: String,
        /// Confirm the deletion
        #[arg(long)]
        yes: bool,
    },
    /// List the hashes and dates of forgotten names
    Forgotten,
    /// Allow a forgotten name again; its old data remain deleted
    Allow {
        /// Hash that `clqd player forgotten` lists
        ///
        /// SHA-256 of the game, a zero byte and the name.
        hash: NameHash,
    },
}

pub fn player(args: PlayerArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    match args.command {
        None => show_player(args, app),
        Some(PlayerCommand::Search { text, count }) => {
            show_list(app, &requests::PlayerSearch { text, count }, "no player found")
        }
        Some(PlayerCommand::Sessions { player, count }) => {
            let player = player.selector();
            let request = requests::PlayerSessions { player: player.clone(), count };
            let printer = Printer::new(app.json(), Output::ending());
            let explain = |error, source: &mut Source| explain_players(error, [&player], source);
            let (code, sessions) = show_with(app, printer, &request, explain)?;
            if sessions == 0 {
                note("clqd: no session is kept");
            }
            Ok(code)
        }
        Some(PlayerCommand::Merge { from, into, game, yes }) => {
            if !yes && !confirm_merge(&from, &into, &game, app)? {
                note("clqd: nothing was merged");
                return Ok(ExitCode::FAILURE);
            }
            let request = requests::PlayerMerge { from: from.clone(), into: into.clone(), game };
            send(app, &request).map_err(|error| match api_code(&error) {
                Some(ErrorCode::NotFound) => match app.daemon_or_state() {
                    Ok(mut source) => explain_players(error, [&from, &into], &mut source),
                    Err(_) => error,
                },
                _ => error,
            })
        }
        Some(PlayerCommand::Forget { yes: false, .. }) => {
            let why = "this deletes all data of the player permanently; confirm with --yes";
            Err(UsageError(why.to_owned()).into())
        }
        Some(PlayerCommand::Forget { player, game, yes: true }) => send(app, &requests::PlayerForget { player, game }),
        Some(PlayerCommand::Forgotten) => show_list(app, &requests::PlayerForgotten {}, "no forgotten names"),
        Some(PlayerCommand::Allow { hash }) => send(app, &requests::PlayerAllow { hash }),
    }
}

/// Shows the player of a key, or the players of a name. If it is a name in several games, the weeks of one are shown on
/// request.
fn show_player(args: PlayerArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let PlayerArgs { command: _, name, key, game } = args;
    let commands = command_names();
    let command = match &name[..] {
        [word, _, ..] => nearest(word, commands.iter().map(String::as_str)),
        _ => None,
    };
    let name = name.join(" ");
    let mut source = app.daemon_or_state()?;
    let mut selector = key.map_or_else(|| selector_of(&name), PlayerSelector::Key);
    let named = requests::PlayerNamed { name: name.clone() };
    // A name may look like a key.
    if key.is_none() && matches!(selector, PlayerSelector::Key(_)) && !source.lines(&named)?.is_empty() {
        selector = PlayerSelector::Name(name.clone());
    }
    let found = match (&selector, &game) {
        (PlayerSelector::Key(key), _) => source.lines(&requests::PlayerShow { player_key: *key, skip: 0 }),
        (PlayerSelector::Name(_), Some(game)) => source.lines(&named).and_then(|named| {
            // The weeks of a single player need not share an answer with those in other games.
            match named.iter().find(|player| player.game == *game) {
                Some(player) => source.lines(&requests::PlayerShow { player_key: player.player_key, skip: 0 }),
                None => source.lines(&requests::Player { name: name.clone() }),
            }
        }),
        (PlayerSelector::Name(_), None) => source.lines(&requests::Player { name: name.clone() }),
    };
    let mut players = found.map_err(|error| match (command, api_code(&error)) {
        (Some(command), Some(ErrorCode::NotFound)) => {
            let message = format!("{error}; did you mean: clqd player {command}");
            ApiError::new(ErrorCode::NotFound, message).into()
        }
        _ => explain_players(error, [&selector], &mut source),
    })?;
    if source.is_stopped() && !app.json() {
        players.iter_mut().for_each(|player| player.online_on.clear());
    }
    if let Some(game) = game {
        let known = players.iter().map(|player| &*player.game).collect::<Vec<_>>().join(", ");
        players.retain(|player| player.game == game);
        if players.is_empty() {
            let of = key.map_or_else(|| format!("{name:?}"), |key| format!("player {key}"));
            let message = format!("{of} is no player of {game:?}; known in: {known}");
            return Err(ApiError::new(ErrorCode::NotFound, message).into());
        }
    }
    if players.len() > 1 && !app.json() {
        players.sort_by_key(|player| Reverse((!player.online_on.is_empty(), player.last_seen_ms)));
        print_games(&mut Output::ending(), &name, commands.contains(&name), &players, system_ms())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut printer = Printer::new(app.json(), Output::ending());
    players.into_iter().try_for_each(|player| printer.line(player))?;
    printer.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The commands below `clqd player`.
fn command_names() -> Vec<String> {
    let command = PlayerCommand::augment_subcommands(clap::Command::new("player"));
    command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Asks on a terminal whether these players should be merged, which cannot be undone. If one of them is unknown, the
/// request says so.
fn confirm_merge(from: &PlayerSelector, into: &PlayerSelector, game: &str, app: &CliContext) -> anyhow::Result<bool> {
    if !is_interactive() {
        return Ok(true);
    }
    let mut client = app.connect()?;
    let mut named = |player: &PlayerSelector| match player {
        PlayerSelector::Key(key) => {
            let players = match client.lines(&requests::PlayerShow { player_key: *key, skip: 0 }) {
                Err(ClientError::Failure(error)) if error.code == ErrorCode::NotFound => Vec::new(),
                players => players?,
            };
            Ok(players.into_iter().next().map(|player| format!("{} (player {key})", player.name)))
        }
        PlayerSelector::Name(name) => {
            let players = client.lines(&requests::PlayerNamed { name: name.clone() })?;
            let player = players.into_iter().find(|player| player.game == game);
            Ok(player.map(|player| format!("{name} (player {})", player.player_key)))
        }
    };
    let named = [named(from), named(into)].into_iter().collect::<Result<Vec<_>, ClientError>>()?;
    let [Some(from), Some(into)] = &named[..] else { return Ok(true) };
    Ok(confirm(format_args!("merge {from} into {into} in {game}?"))?.unwrap_or(true))
}

fn player_name(text: &str) -> Result<PlayerSelector, std::convert::Infallible> {
    Ok(selector_of(text))
}
