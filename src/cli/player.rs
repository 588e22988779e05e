//! `clqd player`: shows a player, and corrects what is known of players.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::admin::{send, send_counting_rows};
use crate::cli::context::CliContext;
use crate::cli::exit::UsageError;
use crate::control::Request;
use crate::model::NameHash;
use crate::model::view::board::PlayerSelector;

/// Show what is known of a player, in every game that the name is known in; merge, forget
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PlayerArgs {
    #[command(subcommand)]
    command: Option<PlayerCommand>,
    /// The name without colour codes; case matters
    #[arg(required = true)]
    name: Option<String>,
}

#[derive(Debug, Subcommand)]
enum PlayerCommand {
    /// Show a player, whatever the name is: also one called merge
    Show {
        /// The name without colour codes; case matters
        name: String,
    },
    /// Take two names of a game for one person, from now on and in all that is kept
    ///
    /// Points and time add up, the ten best come together, of two ratings the one of more rounds stays. There is no
    /// way back.
    Merge {
        /// A name, or a player's key such as #123; it leads to INTO from now on
        #[arg(value_parser = player_name)]
        from: PlayerSelector,
        /// A name, or a player's key such as #123
        #[arg(value_parser = player_name)]
        into: PlayerSelector,
        /// Such as baseq3
        #[arg(long)]
        game: String,
    },
    /// Take all that is known of a player away, and never store the name again
    ///
    /// Rows, positions and the name go, here and in MySQL; ratings of others stay. A hash of the name is kept, by which
    /// it is left out from now on: who bears it is counted, but not ranked or named. Scan logs that were recorded
    /// before still have the name. There is no way back.
    Forget {
        /// A name, or a player's key such as #123
        #[arg(value_parser = player_name)]
        player: PlayerSelector,
        /// Such as baseq3
        #[arg(long)]
        game: String,
        /// Really do it
        #[arg(long)]
        yes: bool,
    },
    /// List the hashes of names that are forgotten, with the day
    Forgotten,
    /// Let a name be known again; its past does not come back
    Remember {
        /// As `clqd player forgotten` lists it: SHA-256 of the game, a zero byte, the name
        hash: NameHash,
    },
}

pub fn player(args: PlayerArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    match args.command {
        None => send(app, &Request::Player { name: args.name.unwrap_or_default() }),
        Some(PlayerCommand::Show { name }) => send(app, &Request::Player { name }),
        Some(PlayerCommand::Merge { from, into, game }) => send(app, &Request::PlayerMerge { from, into, game }),
        Some(PlayerCommand::Forget { yes: false, .. }) => {
            let why = "all that is known of the player goes, and nothing brings it back; if so, add --yes";
            Err(UsageError(why.to_owned()).into())
        }
        Some(PlayerCommand::Forget { player, game, yes: true }) => send(app, &Request::PlayerForget { player, game }),
        Some(PlayerCommand::Forgotten) => {
            let (code, rows) = send_counting_rows(app, &Request::PlayerForgotten {})?;
            if rows == 0 {
                eprintln!("clqd: no name is forgotten");
            }
            Ok(code)
        }
        Some(PlayerCommand::Remember { hash }) => send(app, &Request::PlayerRemember { hash }),
    }
}

/// `#` and a number is a key, everything else a name.
fn player_name(text: &str) -> Result<PlayerSelector, std::convert::Infallible> {
    let key = text.strip_prefix('#').and_then(|key| key.parse().ok());
    Ok(key.map_or_else(|| PlayerSelector::Name(text.to_owned()), PlayerSelector::Key))
}
