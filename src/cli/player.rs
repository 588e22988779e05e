//! `clqd player`: shows players and corrects their data.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::admin::{send, show, show_list};
use crate::api::{ROWS_PER_RESPONSE_MAX, requests};
use crate::cli::context::CliContext;
use crate::cli::exit::UsageError;
use crate::model::NameHash;
use crate::view::board::PlayerSelector;

/// Show a player, find players by name, merge or forget them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PlayerArgs {
    #[command(subcommand)]
    command: Option<PlayerCommand>,
    /// The name without colour codes; case matters
    ///
    /// A name that equals a command follows two hyphens: clqd player -- merge
    #[arg(required = true)]
    name: Option<String>,
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
        /// A name, or a player's key such as #123
        #[arg(value_parser = player_name)]
        player: PlayerSelector,
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
        None => show(app, &requests::Player { name: args.name.unwrap_or_default() }),
        Some(PlayerCommand::Search { text, count }) => {
            show_list(app, &requests::PlayerSearch { text, count }, "no player found")
        }
        Some(PlayerCommand::Sessions { player, count }) => {
            show_list(app, &requests::PlayerSessions { player, count }, "no session is kept")
        }
        Some(PlayerCommand::Merge { from, into, game }) => send(app, &requests::PlayerMerge { from, into, game }),
        Some(PlayerCommand::Forget { yes: false, .. }) => {
            let why = "this deletes all data of the player permanently; confirm with --yes";
            Err(UsageError(why.to_owned()).into())
        }
        Some(PlayerCommand::Forget { player, game, yes: true }) => send(app, &requests::PlayerForget { player, game }),
        Some(PlayerCommand::Forgotten) => show_list(app, &requests::PlayerForgotten {}, "no forgotten names"),
        Some(PlayerCommand::Allow { hash }) => send(app, &requests::PlayerAllow { hash }),
    }
}

/// `#` followed by a number is a key, anything else a name.
fn player_name(text: &str) -> Result<PlayerSelector, std::convert::Infallible> {
    let key = text.strip_prefix('#').and_then(|key| key.parse().ok());
    Ok(key.map_or_else(|| PlayerSelector::Name(text.to_owned()), PlayerSelector::Key))
}
