//! Rates the end of a round: ELO and CLQ2 (docs/rules.md sections 4, 6, 7).

use std::hint::black_box;

use super::presence::{ListOrigin, rows_of};
use crate::engine::{GlobalState, ReadError, StoreReader};
use crate::model::row::Rating;
use crate::model::server::PlayerEntry;
use crate::model::{GameKey, PlayerKey, TagKey, WindowKey};
use crate::rank::{clq2, elo, round};

/// A final list, in the order of the server.
struct Round<'r> {
    /// `None`: without a presence.
    players: &'r [Option<PlayerKey>],
    points: &'r [i64],
    sure: bool,
    t_ms: i64,
}

impl GlobalState {
    /// Rates a final list: ELO and CLQ2 (docs/rules.md sections 4, 6, 7), credited to the windows of the
    /// snapshot that revealed the restart. `game` is the game of the list. `sure`: the list shows the end of the
    /// round.
    pub(super) fn rate_round(
        &mut self,
        origin: ListOrigin<'_>,
        tags: &[TagKey],
        entries: &mut [PlayerEntry],
        sure: bool,
        t_ms: i64,
    ) -> Result<bool, ReadError> {
        let Some(order) = round::final_list(entries) else { return Ok(false) };
        for &(at, _) in &order {
            if let Some(presence) = &mut entries[usize::from(at)].presence {
                self.current_rows(origin, presence, t_ms)?;
            }
        }
        // Prefetched, as in `prefetch_rows`: these fields are reached through a pointer in the
        // rows.
        black_box(rows_of(entries).fold(0, |all, row| all ^ row.clq2_games.sum()));
        let descending: Vec<i64> = order.iter().map(|&(_, points)| points).collect();
        let games = clq2::game_points(&descending, self.settings.rules.clq2_quarter);
        for (&(at, _), game) in order.iter().zip(games) {
            let Some(presence) = &mut entries[usize::from(at)].presence else { continue };
            for (_, row) in &mut presence.rows {
                row.clq2_games.insert(game, t_ms);
                row.has_points = true;
            }
        }
        // Ratings are computed in the order of the server's player list.
        let mut order = order;
        order.sort_unstable_by_key(|&(at, _)| at);
        let points: Vec<i64> = order.iter().map(|&(_, points)| points).collect();
        let elo = self.settings.rules.elo;
        let tags = self.existing_tags(tags);
        for at in 0..self.current_windows.keys.len() {
            let window = self.current_windows.keys[at];
            let presence = |&(i, _): &(u16, i64)| entries[usize::from(i)].presence.as_ref();
            let players: Vec<_> = order.iter().map(|entry| presence(entry).map(|p| p.player)).collect();
            let before = |entry| presence(entry).map_or(elo::ELO_START, |p| p.rows[at].1.elo);
            let ratings: Vec<f64> = order.iter().map(before).collect();
            let ratings = elo::new_ratings(&points, &ratings, elo);
            for (&(i, _), rating) in order.iter().zip(ratings) {
                let Some(presence) = &mut entries[usize::from(i)].presence else { continue };
                let row = &mut presence.rows[at].1;
                row.set_rating(row.rating().after_round(rating, sure, t_ms));
            }
            let round = Round { players: &players, points: &points, sure, t_ms };
            for tag in std::iter::once(None).chain(tags.iter().copied().map(Some)) {
                self.rate_scope(origin.source, window, origin.game, tag, &round)?;
            }
        }
        Ok(true)
    }

    /// Rates the same round for the separate rating of a scope: the game, or a tag.
    fn rate_scope(
        &mut self,
        source: &dyn StoreReader,
        window: WindowKey,
        game: GameKey,
        tag: Option<TagKey>,
        round: &Round<'_>,
    ) -> Result<(), ReadError> {
        let &Round { players, points, sure, t_ms } = round;
        self.player_windows.prefetch(players.iter().flatten().map(|player| (window, *player)));
        let mut before = Vec::with_capacity(players.len());
        for player in players {
            let rating = match *player {
                Some(player) => match self.player_window(source, window, game, player)?.rating(tag) {
                    Some(rating) => Some(rating),
                    None => self.carried_over_rating(source, window, game, tag, player)?,
                },
                None => None,
            };
            before.push(rating.unwrap_or(Rating { elo: elo::ELO_START, ..Rating::UNRATED }));
        }
        let ratings: Vec<f64> = before.iter().map(|rating| rating.elo).collect();
        let ratings = elo::new_ratings(points, &ratings, self.settings.rules.elo);
        for ((player, before), elo) in players.iter().zip(before).zip(ratings) {
            let Some(player) = *player else { continue };
            let rating = before.after_round(elo, sure, t_ms);
            self.change_player_window(source, window, game, player, |it| it.set_rating(tag, rating))?;
        }
        Ok(())
    }

    /// With `elo.carry_over`, the last rating of the player in the scope in an earlier week.
    fn carried_over_rating(
        &mut self,
        source: &dyn StoreReader,
        window: WindowKey,
        game: GameKey,
        tag: Option<TagKey>,
        player: PlayerKey,
    ) -> Result<Option<Rating>, ReadError> {
        if !self.settings.rules.elo.carry_over || window.week().is_none() {
            return Ok(None);
        }
        for older in self.weeks_before(window) {
            if let Some(rating) = self.player_window(source, older, game, player)?.rating(tag) {
                return Ok(Some(Rating { rounds: 0, sure: 0, ..rating }));
            }
        }
        Ok(None)
    }
}
