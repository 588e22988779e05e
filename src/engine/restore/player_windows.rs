//! The records of players in a week on all servers, from their rows.
//!
//! The archive has no ratings of games and tags, except those of the 1,000 best players, which are
//! published. For others the rating is the mean of the ratings on the servers of the scope, each
//! with the weight of its rounds: exact if the scope has one server.

use rustc_hash::FxHashMap;

use crate::model::restored::PublishedRating;
use crate::model::row::{PlayerRow, PlayerWindow, Rating};
use crate::model::{GameKey, PlayerKey, ServerKey, TagKey};

/// The ratings of one week.
#[derive(Debug, Default)]
pub(super) struct WeekRatings {
    rows: Vec<RatedRow>,
    is_sorted: bool,
    published: FxHashMap<(Option<TagKey>, PlayerKey), Rating>,
}

/// 32 bytes for each row of a week.
#[derive(Clone, Copy, Debug)]
struct RatedRow {
    player: PlayerKey,
    server: ServerKey,
    rating: Rating,
}

/// The rows of one player.
#[derive(Debug)]
pub(super) struct RatedPlayer {
    pub player: PlayerKey,
    rows: Vec<RatedRow>,
}

#[derive(Debug, Default)]
pub(super) struct RatingCounts {
    pub estimated: u64,
    pub published: u64,
}

impl WeekRatings {
    pub fn push(&mut self, player: PlayerKey, server: ServerKey, row: &PlayerRow) {
        self.rows.push(RatedRow { player, server, rating: row.rating() });
        self.is_sorted = false;
    }

    pub fn publish(&mut self, scope: Option<TagKey>, rating: &PublishedRating) {
        let rating_of = Rating { elo: rating.elo, at_ms: rating.at_ms, ..Rating::UNRATED };
        if rating.elo.is_finite() {
            self.published.insert((scope, rating.player), rating_of);
        }
    }

    /// The next player; `None`: there are no more, and the next week may begin.
    pub fn pop_player(&mut self) -> Option<RatedPlayer> {
        if !self.is_sorted {
            // From the last player to the first.
            self.rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.player, row.server)));
            self.is_sorted = true;
        }
        let Some(player) = self.rows.last().map(|row| row.player) else {
            *self = WeekRatings::default();
            return None;
        };
        let mut rows = Vec::new();
        while let Some(row) = self.rows.pop_if(|row| row.player == player) {
            rows.push(row);
        }
        Some(RatedPlayer { player, rows })
    }

    pub fn player_window<'t>(
        &self,
        rated: &RatedPlayer,
        game: GameKey,
        tags_of: impl Fn(ServerKey) -> &'t [TagKey],
    ) -> (PlayerWindow, RatingCounts) {
        let mut window = PlayerWindow::new(game);
        window.servers = rated.rows.iter().map(|row| row.server).collect();
        let mut counts = RatingCounts::default();
        let mut tags: Vec<TagKey> = rated.rows.iter().flat_map(|row| tags_of(row.server)).copied().collect();
        tags.sort_unstable();
        tags.dedup();
        for scope in [None].into_iter().chain(tags.into_iter().map(Some)) {
            let is_in_scope = |row: &&RatedRow| scope.is_none_or(|tag| tags_of(row.server).contains(&tag));
            let ratings = rated.rows.iter().filter(is_in_scope).map(|row| row.rating);
            let ratings: Vec<Rating> = ratings.filter(|rating| rating.rounds > 0).collect();
            let Some(mean) = mean(&ratings) else { continue };
            let rating = match self.published.get(&(scope, rated.player)) {
                Some(published) => {
                    counts.published += 1;
                    Rating { elo: published.elo, at_ms: published.at_ms, ..mean }
                }
                None => {
                    counts.estimated += 1;
                    mean
                }
            };
            window.set_rating(scope, rating);
        }
        (window, counts)
    }
}

/// The mean of ratings; `None`: there are no rated rounds.
fn mean(ratings: &[Rating]) -> Option<Rating> {
    let at_ms = ratings.iter().map(|rating| rating.at_ms).max()?;
    let sum = |count: fn(&Rating) -> u32| ratings.iter().map(|rating| u64::from(count(rating))).sum::<u64>();
    let [rounds, sure] = [sum(|rating| rating.rounds), sum(|rating| rating.sure)];
    let elo = match ratings {
        [rating] => rating.elo,
        _ => ratings.iter().map(|rating| rating.elo * (f64::from(rating.rounds) / rounds as f64)).sum(),
    };
    let [rounds, sure] = [rounds, sure].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    Some(Rating { elo, rounds, sure, at_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(elo: f64, rounds: u32, at_ms: i64) -> PlayerRow {
        PlayerRow { elo_rounds: rounds, elo_at_ms: at_ms, ..PlayerRow::new(1, elo) }
    }

    #[test]
    fn ratings_of_scopes_are_published_ones_or_means_by_rounds() {
        let mut ratings = WeekRatings::default();
        let [one, two, three] = [1, 2, 3].map(PlayerKey);
        ratings.push(two, ServerKey(2), &row(1_100.0, 3, 50));
        ratings.push(one, ServerKey(1), &row(1_000.0, 0, 10));
        ratings.push(two, ServerKey(1), &row(900.0, 1, 60));
        ratings.push(three, ServerKey(1), &row(987.5, 2, 70));
        ratings.publish(None, &PublishedRating { player: three, elo: 991.25, at_ms: 69 });
        let tag = TagKey(1);
        let tags_of = |server: ServerKey| if server.0 == 2 { std::slice::from_ref(&TagKey(1)) } else { &[] };
        let mut found = Vec::new();
        while let Some(rated) = ratings.pop_player() {
            let (window, counts) = ratings.player_window(&rated, GameKey(7), tags_of);
            assert_eq!(window.game, GameKey(7));
            let rating = |tag| window.rating(tag).map(|rating| (rating.elo, rating.rounds, rating.at_ms));
            let servers: Vec<u32> = window.servers.iter().map(|server| server.0).collect();
            found.push((rated.player.0, servers, rating(None), rating(Some(tag)), counts.estimated, counts.published));
        }
        let want = [
            (1, vec![1], None, None, 0, 0),
            (2, vec![1, 2], Some((1_050.0, 4, 60)), Some((1_100.0, 3, 50)), 2, 0),
            (3, vec![1], Some((991.25, 2, 69)), None, 0, 1),
        ];
        assert_eq!(found, want);
        assert!(ratings.published.is_empty(), "the next week has ratings of its own");
    }
}
