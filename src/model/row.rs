//! Stored values of a player on a server in one window, of a player in one window on all
//! servers, and of a map on a server in one week (docs/rules.md sections 3 to 8 and 10).

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use smallvec::SmallVec;

use crate::limits::{BEST_MAX, REOPENABLE_WEEKS_MAX};
use crate::model::keys::{GameKey, ServerKey, TagKey, WeekKey};
use crate::model::varint::{Cursor, put_u64};

/// The five rankings, in the order in which they are always listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranking {
    Clq1,
    Clq2,
    Elo,
    Points,
    Time,
}

impl Ranking {
    pub const ALL: [Ranking; 5] = [Ranking::Clq1, Ranking::Clq2, Ranking::Elo, Ranking::Points, Ranking::Time];
    /// The rankings whose three best positions are kept permanently (docs/rules.md section 11).
    pub const WITH_BEST_POSITIONS: [Ranking; 3] = [Ranking::Clq1, Ranking::Clq2, Ranking::Elo];

    pub fn name(self) -> &'static str {
        ["clq1", "clq2", "elo", "points", "time"][self as usize]
    }

    pub fn from_name(name: &str) -> Option<Ranking> {
        Ranking::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// The ten highest values, highest first, each with its time (Unix ms); of equal values the
/// earlier is first.
///
/// So the ten best values of several servers, and the time at which their sum was reached,
/// follow from the ten best of each server, in any order of merging.
///
/// A row has two of these lists, and most lists are short. So only the first value is stored in the row itself. Ten there
/// would be 288 bytes more for each player online.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TopTen(SmallVec<[(u64, i64); 1]>);

/// The capacity grows by this: to 4, 7 and 10 values, which fit size classes of the allocator.
const TEN_GROWTH: usize = 3;

impl<'de> Deserialize<'de> for TopTen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TopTen, D::Error> {
        deserializer.deserialize_seq(TenVisitor)
    }
}

struct TenVisitor;

impl<'de> Visitor<'de> for TenVisitor {
    type Value = TopTen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {BEST_MAX} values, each with its time")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<TopTen, A::Error> {
        let mut ten = SmallVec::with_capacity(values.size_hint().unwrap_or(0).min(BEST_MAX));
        while let Some(value) = values.next_element()? {
            if ten.len() == BEST_MAX {
                return Err(A::Error::invalid_length(BEST_MAX + 1, &self));
            }
            ten.push(value);
        }
        Ok(TopTen(ten))
    }
}

impl TopTen {
    /// Adds a value if it is among the ten highest. 0 is ignored.
    pub fn insert(&mut self, value: u64, at_ms: i64) {
        if value == 0 {
            return;
        }
        let before = |&(kept, kept_ms): &(u64, i64)| kept > value || (kept == value && kept_ms <= at_ms);
        let place = self.0.partition_point(before);
        if place == BEST_MAX {
            return;
        }
        if self.0.len() == BEST_MAX {
            self.0.pop();
        } else if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(TEN_GROWTH);
        }
        self.0.insert(place, (value, at_ms));
    }

    /// Adds all values of another list.
    pub fn merge(&mut self, other: &TopTen) {
        other.0.iter().for_each(|&(value, at_ms)| self.insert(value, at_ms));
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().map(|&(value, _)| value).sum()
    }

    /// The time when the sum was reached, Unix ms: the latest time of the kept values. A
    /// removed value was replaced by a later one.
    pub fn at_ms(&self) -> Option<i64> {
        self.0.iter().map(|&(_, at_ms)| at_ms).max()
    }

    /// The values and their times, ms after `start_ms`, each as LEB128.
    pub fn to_bytes(&self, start_ms: i64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 * self.0.len());
        for &(value, at_ms) in &self.0 {
            put_u64(&mut bytes, value);
            put_u64(&mut bytes, at_ms.saturating_sub(start_ms).max(0).unsigned_abs());
        }
        bytes
    }

    /// `None`: the bytes are not those of [`TopTen::to_bytes`].
    pub fn from_bytes(bytes: &[u8], start_ms: i64) -> Option<TopTen> {
        let (mut cursor, mut ten, mut values) = (Cursor::new(bytes), TopTen::default(), 0);
        while !cursor.is_empty() && values <= BEST_MAX {
            let (value, after_ms) = (cursor.u64()?, i64::try_from(cursor.u64()?).ok()?);
            ten.insert(value, start_ms.checked_add(after_ms)?);
            values += 1;
        }
        // Not more, and none that is not kept.
        (cursor.is_empty() && ten.0.len() == values).then_some(ten)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Highest first.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|&(value, _)| value)
    }
}

/// How uncertain the estimates of a row are, as variances that add up, and what connected times change (docs/rules.md
/// section 15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Of `time_est_ms`, s2.
    pub time_est_s2: u32,
    /// `time_connected_ms` less `time_est_ms`.
    pub connected_difference_ms: i64,
    /// Of `time_connected_ms`, s2.
    pub time_connected_s2: u32,
    /// Of `points_est`, thousandths of a point squared.
    pub points_est_thousandths: u64,
}

impl Uncertainty {
    /// The estimated time with connected times, ms, from the estimated time of the row.
    pub fn time_connected_ms(self, time_est_ms: u64) -> u64 {
        time_est_ms.saturating_add_signed(self.connected_difference_ms)
    }

    /// Adds that of another row.
    pub fn add(&mut self, other: Uncertainty) {
        self.time_est_s2 = self.time_est_s2.saturating_add(other.time_est_s2);
        self.connected_difference_ms = self.connected_difference_ms.saturating_add(other.connected_difference_ms);
        self.time_connected_s2 = self.time_connected_s2.saturating_add(other.time_connected_s2);
        self.points_est_thousandths = self.points_est_thousandths.saturating_add(other.points_est_thousandths);
    }
}

/// Half of the interval that contains 80 % of a normal distribution with this variance.
fn error_80(variance: f64) -> f64 {
    1.281_552 * variance.sqrt()
}

/// One player on one server in one window; after [`PlayerRow::merge`], on several servers. All
/// `_at` fields are Unix ms: the `t` of the snapshot that last changed the value.
///
/// The field order puts the fields that every snapshot changes next to each other in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[repr(C)]
pub struct PlayerRow {
    pub measured_ms: u64,
    pub time_at_ms: i64,
    pub points: i64,
    /// The time of the first sighting in the week, until the first point.
    pub points_at_ms: i64,
    pub starts: u32,
    pub elo_rounds: u32,
    pub elo: f64,
    pub elo_at_ms: i64,
    /// CLQ1: best complete segments, thousandths of a point.
    pub clq1_segments: TopTen,
    /// CLQ2: best games, their points.
    pub clq2_games: TopTen,
    /// Estimated time played, ms (docs/rules.md section 15). Never ranked.
    pub time_est_ms: u64,
    /// Estimated points that no scan saw, in thousandths (docs/rules.md section 15): `points_est` is
    /// `points` plus this. Never ranked.
    pub points_unseen_thousandths: u64,
    /// Whether the player's entries had points. If not, the player is on the time board only.
    pub has_points: bool,
    /// How many of `elo_rounds` were sure: the last list shows the end of the round (docs/rules.md section 4).
    #[serde(default)]
    pub elo_rounds_sure: u32,
    #[serde(default)]
    pub uncertainty: Uncertainty,
}

impl PlayerRow {
    /// A player first seen in the week at `t_ms`, with rating `elo`.
    pub fn new(t_ms: i64, elo: f64) -> PlayerRow {
        PlayerRow {
            measured_ms: 0,
            starts: 0,
            points: 0,
            points_at_ms: t_ms,
            time_at_ms: t_ms,
            clq1_segments: TopTen::default(),
            clq2_games: TopTen::default(),
            elo,
            elo_rounds: 0,
            elo_at_ms: t_ms,
            time_est_ms: 0,
            points_unseen_thousandths: 0,
            has_points: false,
            elo_rounds_sure: 0,
            uncertainty: Uncertainty::default(),
        }
    }

    /// Adds a gain of at least 0. Returns false if the sum saturates.
    pub fn add_points(&mut self, gain: i64, at_ms: i64) -> bool {
        let (sum, overflowed) = self.points.overflowing_add(gain);
        self.points = if overflowed { i64::MAX } else { sum };
        self.points_at_ms = at_ms;
        !overflowed
    }

    /// Estimated points, to thousandths (docs/rules.md section 15).
    pub fn points_est(&self) -> f64 {
        self.points as f64 + self.points_unseen_thousandths as f64 / 1_000.0
    }

    /// Estimated time with connected times, where the protocol has them, ms (docs/rules.md section 15).
    pub fn time_connected_ms(&self) -> u64 {
        self.uncertainty.time_connected_ms(self.time_est_ms)
    }

    /// By how much `time_est_ms` is wrong at most in four cases of five, ms.
    pub fn time_est_error_ms(&self) -> u64 {
        error_80(f64::from(self.uncertainty.time_est_s2) * 1e6).round() as u64
    }

    /// As `time_est_error_ms`, of `time_connected_ms`.
    pub fn time_connected_error_ms(&self) -> u64 {
        error_80(f64::from(self.uncertainty.time_connected_s2) * 1e6).round() as u64
    }

    /// As `time_est_error_ms`, of `points_est`.
    pub fn points_est_error(&self) -> f64 {
        error_80(self.uncertainty.points_est_thousandths as f64 / 1_000.0)
    }

    /// Measured time and 60 s for each start, ms (docs/rules.md section 3).
    pub fn time_ms(&self) -> u64 {
        self.measured_ms + 60_000 * u64::from(self.starts)
    }

    /// Sum of the ten best segments, thousandths of a point (docs/rules.md section 5).
    pub fn clq1(&self) -> u64 {
        self.clq1_segments.sum()
    }

    /// Sum of the ten best games (docs/rules.md section 6).
    pub fn clq2(&self) -> u64 {
        self.clq2_games.sum()
    }

    /// Adds the row of the same player on another server: points and time add up, the ten best
    /// segments and games merge (docs/rules.md section 8). The rating does not change: a scope has a
    /// separate rating, see [`PlayerWindow`].
    pub fn merge(&mut self, other: &PlayerRow) {
        // A player who is only in a final list has no time, so `time_at_ms` does not count.
        self.time_at_ms = match (self.time_ms() > 0, other.time_ms() > 0) {
            (true, true) => self.time_at_ms.max(other.time_at_ms),
            (false, false) => self.time_at_ms.min(other.time_at_ms),
            (true, false) => self.time_at_ms,
            (false, true) => other.time_at_ms,
        };
        self.measured_ms += other.measured_ms;
        self.starts = self.starts.saturating_add(other.starts);
        self.points_at_ms = match (self.points > 0, other.points > 0) {
            (true, true) => self.points_at_ms.max(other.points_at_ms),
            (false, false) => self.points_at_ms.min(other.points_at_ms),
            (true, false) => self.points_at_ms,
            (false, true) => other.points_at_ms,
        };
        self.points = self.points.saturating_add(other.points);
        self.clq1_segments.merge(&other.clq1_segments);
        self.clq2_games.merge(&other.clq2_games);
        self.time_est_ms += other.time_est_ms;
        self.points_unseen_thousandths = self.points_unseen_thousandths.saturating_add(other.points_unseen_thousandths);
        self.has_points |= other.has_points;
        self.uncertainty.add(other.uncertainty);
    }

    /// Adds the row of the same person under another name on the same server: as
    /// [`PlayerRow::merge`], and the rating with more rounds is kept.
    pub fn merge_person(&mut self, other: &PlayerRow) {
        self.merge(other);
        if other.elo_rounds > self.elo_rounds {
            self.set_rating(other.rating());
        }
    }

    pub fn rating(&self) -> Rating {
        Rating { elo: self.elo, rounds: self.elo_rounds, sure: self.elo_rounds_sure, at_ms: self.elo_at_ms }
    }

    pub fn set_rating(&mut self, rating: Rating) {
        (self.elo, self.elo_rounds, self.elo_rounds_sure, self.elo_at_ms) =
            (rating.elo, rating.rounds, rating.sure, rating.at_ms);
    }
}

/// A rating of a player in one scope and window (docs/rules.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    pub elo: f64,
    /// Rated rounds. 0: absent from the board.
    pub rounds: u32,
    /// Those of them whose last list shows the end of the round.
    #[serde(default)]
    pub sure: u32,
    /// The last rated round, Unix ms.
    pub at_ms: i64,
}

/// A player in one window on all servers: values that do not follow from their rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerWindow {
    pub game: GameKey,
    /// Servers on which the player has rows, in order of appearance.
    pub servers: SmallVec<[ServerKey; 4]>,
    /// Updated by every round on every server of the game.
    pub game_rating: Option<Rating>,
    /// Updated by every round on servers that had the tag at that time; in order of tag.
    pub tag_ratings: Box<[(TagKey, Rating)]>,
}

impl Rating {
    /// The rating of an unrated player.
    pub const UNRATED: Rating = Rating { elo: 0.0, rounds: 0, sure: 0, at_ms: 0 };

    /// The rating after a further round. `sure`: its last list shows the end of the round.
    pub fn after_round(self, elo: f64, sure: bool, at_ms: i64) -> Rating {
        let (rounds, sure) = (self.rounds.saturating_add(1), self.sure.saturating_add(u32::from(sure)));
        Rating { elo, rounds, sure, at_ms }
    }
}

impl PlayerWindow {
    pub fn new(game: GameKey) -> PlayerWindow {
        PlayerWindow { game, servers: SmallVec::new(), game_rating: None, tag_ratings: Box::default() }
    }

    /// The rating in the tag group, or without a tag in the game.
    pub fn rating(&self, tag: Option<TagKey>) -> Option<Rating> {
        match tag {
            None => self.game_rating,
            Some(tag) => self.tag_ratings.binary_search_by_key(&tag, |(t, _)| *t).ok().map(|at| self.tag_ratings[at].1),
        }
    }

    pub fn set_rating(&mut self, tag: Option<TagKey>, rating: Rating) {
        let Some(tag) = tag else {
            self.game_rating = Some(rating);
            return;
        };
        match self.tag_ratings.binary_search_by_key(&tag, |(t, _)| *t) {
            Ok(at) => self.tag_ratings[at].1 = rating,
            Err(at) => {
                let mut by_tag = std::mem::take(&mut self.tag_ratings).into_vec();
                by_tag.insert(at, (tag, rating));
                self.tag_ratings = by_tag.into_boxed_slice();
            }
        }
    }
}

impl PlayerWindow {
    /// Adds the record of the same person under another name: all servers, and in each scope
    /// the rating with more rounds.
    pub fn merge_person(&mut self, other: &PlayerWindow) {
        for server in &other.servers {
            if !self.servers.contains(server) {
                self.servers.push(*server);
            }
        }
        let by_tag = other.tag_ratings.iter().map(|(tag, rating)| (Some(*tag), *rating));
        for (tag, other_rating) in other.game_rating.into_iter().map(|rating| (None, rating)).chain(by_tag) {
            if self.rating(tag).is_none_or(|own| other_rating.rounds > own.rounds) {
                self.set_rating(tag, other_rating);
            }
        }
    }
}

/// One map on one server in one week (docs/rules.md section 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapRow {
    /// Sum of gaps of at most 720 s, ms.
    pub played_ms: u64,
    /// Sum of gap x assumed count, player-milliseconds.
    pub player_ms: u64,
}

/// Positions in one ranking, each with its week, best first.
type Places = SmallVec<[(u32, WeekKey); 3]>;

/// Best positions of a (player, server) in closed weeks, kept permanently.
///
/// The three best positions count. Further positions are kept as long as one of the three may
/// still be removed: the last [`REOPENABLE_WEEKS_MAX`] weeks can be reopened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BestPositions {
    /// In clq1, clq2 and elo: smaller position first, then the earlier week.
    places: [Places; 3],
    /// The rating at the end of the last closed week, for `elo.carry_over`.
    pub elo: Option<f64>,
    /// The last closed week with a row of the player. Records of earlier versions end before it.
    last_week: Option<WeekKey>,
    /// Positions of earlier weeks may have been dropped (`store.keep_players_weeks`).
    pub since: Option<WeekKey>,
}

impl BestPositions {
    /// `since`: positions of earlier weeks may have been dropped.
    pub fn known_since(since: Option<WeekKey>) -> BestPositions {
        BestPositions { since, ..BestPositions::default() }
    }

    /// The last closed week with a row of the player; of a record of an earlier version, the last week with a
    /// position.
    pub fn last_week(&self) -> WeekKey {
        let of_places = || self.places.iter().flatten().map(|(_, week)| *week).max();
        self.last_week.or_else(of_places).unwrap_or(WeekKey(0))
    }

    /// Notes that the player has a row in a closed week.
    pub fn note_week(&mut self, week: WeekKey) {
        self.last_week = Some(self.last_week().max(week));
    }

    /// The three best positions in clq1, clq2 and elo, each best first.
    pub fn top_three(&self) -> [Vec<(u32, WeekKey)>; 3] {
        self.top_three_where(|_| true)
    }

    /// The three best positions of the weeks that fulfil a condition.
    pub fn top_three_where(&self, counts: impl Fn(WeekKey) -> bool) -> [Vec<(u32, WeekKey)>; 3] {
        let three = |places: &Places| places.iter().filter(|(_, week)| counts(*week)).take(3).copied().collect();
        self.places.each_ref().map(three)
    }

    /// Adds the positions of the same person under another name; of two positions in one week
    /// the better is kept.
    pub fn merge(&mut self, other: &BestPositions) {
        for (own, other_places) in self.places.iter_mut().zip(&other.places) {
            let mut all: Places = own.iter().chain(other_places).copied().collect();
            all.sort_unstable();
            let mut weeks = Vec::with_capacity(all.len());
            all.retain(|&mut (_, week)| {
                let new = !weeks.contains(&week);
                weeks.push(week);
                new
            });
            trim(&mut all);
            *own = all;
        }
        self.elo = self.elo.or(other.elo);
        self.last_week = self.last_week.max(other.last_week);
        self.since = self.since.max(other.since);
    }

    /// Sets the position of a closed week and replaces the previous one; `None`: not ranked.
    /// `which` is an index into [`Ranking::WITH_BEST_POSITIONS`].
    pub fn set(&mut self, which: usize, position: Option<u32>, week: WeekKey) {
        let list = &mut self.places[which];
        list.retain(|&mut (_, of)| of != week);
        if let Some(position) = position {
            let at = list.partition_point(|&kept| kept < (position, week));
            list.insert(at, (position, week));
        }
        trim(list);
    }

    /// Removes the positions of a week. Returns whether there were any.
    pub fn remove_week(&mut self, week: WeekKey) -> bool {
        let before: usize = self.places.iter().map(|list| list.len()).sum();
        self.places.iter_mut().for_each(|list| list.retain(|&mut (_, of)| of != week));
        self.places.iter().map(|list| list.len()).sum::<usize>() < before
    }
}

/// Drops positions that cannot become one of the three best, even if weeks are reopened.
fn trim(places: &mut Places) {
    let newest = places.iter().map(|(_, week)| week.0).max().unwrap_or(0);
    let mut final_ones = 0;
    places.retain(|&mut (_, week)| {
        let wanted = final_ones < 3;
        final_ones += usize::from(week.0 + REOPENABLE_WEEKS_MAX < newest);
        wanted
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WeekKey;

    #[test]
    fn top_ten_keeps_the_ten_best() {
        let mut top = TopTen::default();
        top.insert(0, 1);
        assert_eq!(top.at_ms(), None);
        for v in 1..=12 {
            top.insert(v, 100 + v as i64);
        }
        top.insert(2, 200);
        assert_eq!(top.at_ms(), Some(112), "smaller than all ten");
        top.insert(3, 201);
        assert_eq!(top.at_ms(), Some(112), "equal to the least changes nothing");
        assert_eq!(top.values().collect::<Vec<_>>(), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
        assert_eq!(top.sum(), 75);
    }

    proptest::proptest! {
        #[test]
        fn ten_best_are_read_from_their_bytes(
            values in proptest::collection::vec((1_u64.., 0_i64..1 << 40), 0..12),
            start_ms in -(1_i64 << 40)..1 << 40,
            noise in proptest::collection::vec(proptest::num::u8::ANY, 0..30),
        ) {
            let mut ten = TopTen::default();
            values.iter().for_each(|&(value, after_ms)| ten.insert(value >> (value % 64), start_ms + after_ms));
            let bytes = ten.to_bytes(start_ms);
            proptest::prop_assert!(bytes.len() <= 200);
            proptest::prop_assert_eq!(TopTen::from_bytes(&bytes, start_ms), Some(ten));
            // What somebody wrote by hand is read or refused.
            if let Some(ten) = TopTen::from_bytes(&noise, start_ms) {
                proptest::prop_assert_eq!(TopTen::from_bytes(&ten.to_bytes(start_ms), start_ms), Some(ten));
            }
        }
    }

    /// For any distribution over servers, the ten best, and the time when their sum last
    /// changed, equal those of one list with all values.
    #[test]
    fn merged_top_tens_equal_one_top_ten() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut servers = [TopTen::default(), TopTen::default(), TopTen::default()];
            let (mut kept, mut sum, mut changed_ms) = (Vec::new(), 0, None);
            for t in 0..random(60) as i64 {
                let value = random(8);
                servers[random(3) as usize].insert(value, t);
                kept.push(value);
                kept.sort_unstable_by(|a, b| b.cmp(a));
                kept.truncate(BEST_MAX);
                if kept.iter().sum::<u64>() != sum {
                    (sum, changed_ms) = (kept.iter().sum(), Some(t));
                }
            }
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                let mut merged = TopTen::default();
                order.iter().for_each(|&i: &usize| merged.merge(&servers[i]));
                assert_eq!((merged.sum(), merged.at_ms()), (sum, changed_ms));
            }
        }
    }

    #[test]
    fn merge_person_adds_rows_and_keeps_the_rating_of_more_rounds() {
        let rated = |elo: f64, rounds: u32| {
            let mut row = PlayerRow::new(5, elo);
            (row.elo_rounds, row.starts, row.points) = (rounds, 1, 3);
            row
        };
        for (own, other, kept) in [((900.0, 2), (1100.0, 2), 900.0), ((900.0, 2), (1100.0, 3), 1100.0)] {
            let mut row = rated(own.0, own.1);
            row.merge_person(&rated(other.0, other.1));
            assert_eq!((row.elo, row.elo_rounds, row.starts, row.points), (kept, own.1.max(other.1), 2, 6));
        }
        let rating = |elo: f64, rounds| Rating { elo, rounds, sure: rounds / 2, at_ms: 1 };
        let mut own = PlayerWindow::new(GameKey(1));
        own.servers.extend([ServerKey(2), ServerKey(1)]);
        own.game_rating = Some(rating(1.0, 3));
        own.tag_ratings = [(TagKey(2), rating(2.0, 1))].into();
        let mut other = PlayerWindow::new(GameKey(1));
        other.servers.extend([ServerKey(3), ServerKey(2)]);
        other.game_rating = Some(rating(7.0, 3));
        other.tag_ratings = [(TagKey(1), rating(8.0, 1)), (TagKey(2), rating(9.0, 2))].into();
        own.merge_person(&other);
        assert_eq!(own.servers[..], [ServerKey(2), ServerKey(1), ServerKey(3)]);
        assert_eq!(own.game_rating, Some(rating(1.0, 3)), "a tie keeps the own rating");
        assert_eq!(*own.tag_ratings, [(TagKey(1), rating(8.0, 1)), (TagKey(2), rating(9.0, 2))]);

        let best = |places: &[(u32, u32)], elo| {
            let mut best = BestPositions { elo, ..BestPositions::default() };
            places.iter().for_each(|&(position, week)| best.set(0, Some(position), WeekKey(week)));
            best
        };
        let mut merged = best(&[(2, 9), (3, 8), (4, 7)], None);
        merged.merge(&best(&[(1, 8), (3, 9), (4, 6)], Some(5.0)));
        assert_eq!((merged.top_three(), merged.elo), (best(&[(1, 8), (2, 9), (4, 6)], None).top_three(), Some(5.0)));
    }

    #[test]
    fn sums_of_points_saturate() {
        let mut row = PlayerRow::new(1, 1000.0);
        assert!(row.add_points(i64::MAX - 5, 2) && row.add_points(5, 3));
        assert!(!row.add_points(1, 4));
        assert_eq!((row.points, row.points_at_ms), (i64::MAX, 4));
        let mut merged = row.clone();
        merged.merge(&row);
        assert_eq!(merged.points, i64::MAX);
    }

    #[test]
    fn best_positions_prefer_smaller_then_earlier() {
        let mut best = BestPositions::default();
        for (position, week) in [(3, 10), (1, 12), (3, 9), (2, 11), (1, 12)] {
            best.set(0, Some(position), WeekKey(week));
        }
        let got: Vec<_> = best.top_three()[0].iter().map(|&(p, w)| (p, w.0)).collect();
        assert_eq!(got, [(1, 12), (2, 11), (3, 9)]);
    }

    /// Compares with a list of all positions. The three best are right for any removed or replaced
    /// positions of the last weeks.
    #[test]
    fn three_best_positions_are_exact_after_weeks_are_reopened() {
        let mut seed = 3_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % below) as u32
        };
        for _ in 0..300 {
            let (mut best, mut all) = (BestPositions::default(), std::collections::BTreeMap::new());
            for week in 100..130 {
                if random(4) > 0 {
                    let position = 1 + random(9);
                    best.set(1, Some(position), WeekKey(week));
                    all.insert(week, position);
                }
                for back in 0..REOPENABLE_WEEKS_MAX {
                    let reopened = week - back;
                    if !all.contains_key(&reopened) || random(3) > 0 {
                        continue;
                    }
                    let position = (random(5) > 0).then(|| 1 + random(9));
                    best.set(1, position, WeekKey(reopened));
                    all.remove(&reopened);
                    all.extend(position.map(|position| (reopened, position)));
                }
                let hidden = week - random(u64::from(REOPENABLE_WEEKS_MAX));
                for hidden in [0, hidden] {
                    let shown = all.iter().filter(|(week, _)| **week != hidden);
                    let mut want: Vec<_> = shown.map(|(&week, &position)| (position, WeekKey(week))).collect();
                    want.sort_unstable();
                    want.truncate(3);
                    assert_eq!(best.top_three_where(|week| week.0 != hidden)[1], want);
                }
            }
            assert!(best.places[1].len() <= 3 + REOPENABLE_WEEKS_MAX as usize + 1);
        }
    }
}
