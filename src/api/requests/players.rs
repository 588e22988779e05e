//! Players: reads and corrections.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::checks;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::model::search_text::Match;
use crate::model::{NameHash, PlayerKey};
use crate::view::board::PlayerSelector;
use crate::view::{Correction, ForgottenName, PlayerNameView, PlayerView};

kinds! {
    PlayerView: "player", "Player";
    PlayerNameView: "player_name", "PlayerName";
    ForgottenName: "forgotten_name", "ForgottenName";
}

/// The player of a name in each game in which it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Player {
    /// The name, with or without colour codes.
    pub name: String,
}

request!(Player: "player", Access::Read => Vec<PlayerView>);

impl Read for Player {
    fn answer(&self, host: &dyn Host) -> Result<Vec<PlayerView>, ApiError> {
        Ok(host.read(|view| view.model.players(view.reader, &self.name))??)
    }
}

/// The name of the player in each game in which it is known; none if it is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerNamed {
    /// The name, with or without colour codes.
    pub name: String,
}

request!(PlayerNamed: "player.named", Access::Read => Vec<PlayerNameView>);

impl Read for PlayerNamed {
    fn answer(&self, host: &dyn Host) -> Result<Vec<PlayerNameView>, ApiError> {
        Ok(host.read(|view| view.model.names_in_games(view.reader, &self.name))??)
    }
}

/// Players whose name has all words of the text, the best matches first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerSearch {
    /// Words of a name.
    pub text: String,
    /// Most players.
    pub count: u32,
}

/// Most names that are sorted by when their players were last seen, which takes some reads for each. If more match, only the
/// newest players are sorted.
const CANDIDATES: usize = 200;

/// The same for each row of a short list, such as the five suggestions while a visitor types.
const CANDIDATES_PER_ROW: usize = 10;

request!(PlayerSearch: "player.search", Access::Read => Vec<PlayerNameView>, |request| checks::rows(request.count));

impl Read for PlayerSearch {
    fn answer(&self, host: &dyn Host) -> Result<Vec<PlayerNameView>, ApiError> {
        let count = self.count as usize;
        let candidates = count.saturating_mul(CANDIDATES_PER_ROW).min(CANDIDATES);
        let found = host.find_players(&self.text, count.max(candidates))?;
        let how: BTreeMap<u32, Match> = found.iter().map(|(how, player)| (player.0, *how)).collect();
        let found = found.into_iter().map(|(_, player)| player).collect();
        let mut players = host.read(|view| view.player_names(found))??;
        players.sort_by_key(|player| (how.get(&player.player_key).copied(), Reverse(player.last_seen_ms)));
        players.truncate(count);
        Ok(players)
    }
}

/// A player by key; the one into whom they were merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerShow {
    /// The number of the player.
    pub player_key: u32,
    /// Rows of weeks to leave out.
    #[serde(default)]
    pub skip: u32,
}

request!(PlayerShow: "player.show", Access::Read => PlayerView);

impl Read for PlayerShow {
    fn answer(&self, host: &dyn Host) -> Result<PlayerView, ApiError> {
        let (player, skip) = (PlayerKey(self.player_key), self.skip as usize);
        Ok(host.read(|view| view.model.player(view.reader, player, skip))??)
    }
}

/// Merges a player into another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerMerge {
    /// The player whose data and name move to the other one.
    pub from: PlayerSelector,
    /// The player who remains.
    pub into: PlayerSelector,
    /// The game of both.
    pub game: String,
}

request!(PlayerMerge: "player.merge", Access::CORRECTIONS => Correction);

/// Deletes all data of a player; the name is never stored again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerForget {
    /// The player.
    pub player: PlayerSelector,
    /// The game.
    pub game: String,
}

request!(PlayerForget: "player.forget", Access::CORRECTIONS => Correction);

/// The forgotten names, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerForgotten {}

request!(PlayerForgotten: "player.forgotten", Access::Read => Vec<ForgottenName>);

impl Read for PlayerForgotten {
    fn answer(&self, host: &dyn Host) -> Result<Vec<ForgottenName>, ApiError> {
        let name = |(hash, forgotten_ms)| ForgottenName { hash, forgotten_ms };
        host.read(|view| view.model.forgotten().into_iter().map(name).collect())
    }
}

/// Allows a forgotten name again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerAllow {
    /// The hash of the name, as `player.forgotten` lists it.
    #[schema(value_type = String)]
    pub hash: NameHash,
}

request!(PlayerAllow: "player.allow", Access::CORRECTIONS => Correction);
