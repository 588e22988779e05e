//! Applies a full and credible snapshot: compares its list with the previous one.

use super::partial::{last_counted, push_count};
use super::presence::{Gap, ListOrigin, PreviousSighting, prefetch_rows};
use super::screening::Credible;
use crate::engine::{GlobalState, ReadError, ServerState, StoreReader};
use crate::model::name::Name;
use crate::model::server::{LastSnapshot, PlayerEntry, ServerRecord};
use crate::model::snapshot::Snapshot;
use crate::model::{PlayerKey, ServerKey, WeekKey};
use crate::rank::estimate::Unseen;
use crate::rank::{INVISIBLE_GAP_MS, LEFT_AT_END_MS, SURE_GAP_MS, UNCHANGED_MS_MIN, player_list, round};
use crate::schedule::elastic::Transition;

/// How a list differs from the previous one of its server.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct ListChange {
    pub round: RoundEnd,
    pub transition: Transition,
    /// Time of the previous list; of this one, if there is none.
    pub previous_ms: i64,
    /// Best points in the previous list and in this one; 0 without players.
    pub best_before: i64,
    pub best: i64,
}

/// Whether a list revealed the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RoundEnd {
    /// No end, or one that is not rated.
    None,
    Rated {
        /// The round ended at most this long after its final list, ms; 0: the list shows the end.
        unseen_ms_max: i64,
    },
}

impl RoundEnd {
    /// Whether the final list shows the end of the round closely enough for its winner to be trusted.
    pub fn is_sure(self) -> bool {
        matches!(self, RoundEnd::Rated { unseen_ms_max: ..=SURE_GAP_MS })
    }
}

/// The previous list of a server.
struct Previous {
    list: LastSnapshot,
    by_name: player_list::EntriesByName,
    /// Players who left just before it, with their points.
    left: Vec<(PlayerKey, i64)>,
    /// Its points are those of the list just before it.
    unchanged: bool,
}

/// What the comparison of two lists shows.
struct Compared {
    round: RoundEnd,
    transition: Transition,
    /// How players who are only in the new list were seen before.
    before: PreviousSighting,
}

impl GlobalState {
    /// Applies a full and credible snapshot.
    pub(super) fn apply_snapshot(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        server_state: &mut ServerState,
        mut snapshot: Snapshot,
        credible: Credible,
        week: WeekKey,
    ) -> Result<ListChange, ReadError> {
        let t_ms = snapshot.t_ms;
        server_state.record.last_snapshot.iter().for_each(|last| prefetch_rows(&last.entries));
        let players = std::mem::take(&mut snapshot.players);
        let Credible { game, map, map_without_key, players: players_announced, family } = credible;
        self.update_server_info(server, server_state, &snapshot, Some(game), Some(map));
        let origin = ListOrigin { source, server, game, map, connected_step_ms: family.connected_step_ms };
        let record = &mut *server_state.record;

        let read = server_state.name_index.take();
        let before = record.last_snapshot.as_mut().zip(read.as_ref()).map(|(last, (family, by_name))| {
            player_list::PreviousList { entries: &mut last.entries, by_name, family: *family }
        });
        let mut list = player_list::read_list(players, &self.settings.rules.names, family, before);
        let ignored = record.greylist_reason.is_some();

        let counted = last_counted(record);
        record.recent.partial = None;
        record.recent.count_unverified = false;
        let (left, unchanged) = (std::mem::take(&mut record.recent.left), std::mem::take(&mut record.recent.unchanged));

        let previous = record.last_snapshot.take().filter(|_| !ignored).map(|list| {
            let by_name = read.map_or_else(|| player_list::EntriesByName::of(&list.entries), |(_, by_name)| by_name);
            Previous { list, by_name, left, unchanged }
        });
        let nothing =
            Compared { round: RoundEnd::None, transition: Transition::Unknown, before: PreviousSighting::Invisible };
        let (previous, compared) = match previous {
            Some(mut previous) => {
                let same_map = match (&previous.list.map_without_key, &map_without_key) {
                    (None, None) => previous.list.map == map,
                    // Compare the map as received: it may have got a key since the previous
                    // snapshot.
                    (name, _) => name.as_deref().unwrap_or_else(|| self.maps.name(previous.list.map.0)) == snapshot.map,
                };
                let compared = self.compare_lists(origin, &mut previous, &mut list, same_map, record, t_ms)?;
                (Some(previous.list), compared)
            }
            None => (None, nothing),
        };
        let entries_before = previous.as_ref().map_or(&[][..], |previous| &previous.entries);
        if !ignored {
            self.credit_counted_gap(source, server, record, counted, week, t_ms)?;
            self.credit_entries(origin, &mut list, entries_before, compared.before, record, t_ms)?;
            self.enqueue_changed_rows(week, server);
            self.update_boards(server, game, &record.tags, &list.entries, t_ms);
        }

        let player_list::PlayerList { entries, by_name, .. } = list;
        let total_points = entries.iter().filter_map(PlayerEntry::playing_points).sum();
        let change = ListChange {
            round: compared.round,
            transition: compared.transition,
            previous_ms: previous.as_ref().map_or(t_ms, |previous| previous.t_ms),
            best_before: best_points(entries_before),
            best: best_points(&entries),
        };
        let count = players_announced.unwrap_or(entries.len() as u32);
        push_count(record, count);
        record.count = count;
        record.total_points = total_points;
        record.last_snapshot = Some(LastSnapshot { t_ms, map, map_without_key, game, entries });
        server_state.name_index = Some((family, by_name));
        server_state.record.class = self.class_of_answer(server_state);
        if !ignored {
            self.add_sample(server, server_state, t_ms);
        }
        Ok(change)
    }

    /// Finds out whether a round has ended, rates it, credits the players who are in both lists, and ends the
    /// presences of the others.
    fn compare_lists(
        &mut self,
        origin: ListOrigin<'_>,
        Previous { list: prev, by_name, left, unchanged }: &mut Previous,
        list: &mut player_list::PlayerList,
        same_map: bool,
        record: &mut ServerRecord,
        t_ms: i64,
    ) -> Result<Compared, ReadError> {
        let same_game = prev.game == origin.game;
        let origin = ListOrigin { game: prev.game, ..origin };
        let common = list.unique_pairs(&prev.entries, by_name);
        let repeats = || list.shares_duplicate_name(&prev.entries, by_name);
        let rules = self.settings.rules.round;
        let restarted = !same_map || round::restarted(&prev.entries, &list.entries, &common, repeats, rules);
        let gap = Gap { from_ms: prev.t_ms, to_ms: t_ms, restarted };
        let is_visible = gap.ms() <= INVISIBLE_GAP_MS;
        let transition = match () {
            () if !is_visible || !same_game => Transition::Unknown,
            () if !same_map => Transition::NewRound,
            () if common.is_empty() => Transition::Unknown,
            () if restarted => Transition::NewRound,
            () => Transition::SameRound,
        };
        let is_shortly_after = same_game && !restarted && gap.ms() <= LEFT_AT_END_MS;
        record.recent.unchanged = is_shortly_after && gap.ms() >= UNCHANGED_MS_MIN && {
            let points =
                |&(p, c): &(u16, u16)| (prev.entries[usize::from(p)].points, list.entries[usize::from(c)].points);
            !common.is_empty() && best_points(&prev.entries) > 0 && common.iter().map(points).all(|(p, c)| p == c)
        };
        let mut stays = Vec::new();
        if is_visible {
            if same_game {
                stays = common;
                stays.retain(|&(_, c)| list.usable[usize::from(c)]);
            }
            for presence in prev.entries.iter_mut().filter_map(|entry| entry.presence.as_mut()) {
                self.load_missing_rows(origin, presence)?;
            }
            self.estimate_unseen(&mut prev.entries, &list.entries, &stays, gap);
        }
        let listed = prev.entries.len();
        let mut round = RoundEnd::None;
        if restarted {
            add_those_who_left(&mut prev.entries, std::mem::take(left));
            // In a long gap several rounds may have ended.
            let shows_end = is_visible && *unchanged;
            let rated = RoundEnd::Rated { unseen_ms_max: if shows_end { 0 } else { gap.ms() } };
            if self.rate_round(origin, &record.tags, &mut prev.entries, rated.is_sure(), t_ms)? {
                round = rated;
            }
        }
        for (p, c) in stays {
            let (before, now) = (&mut prev.entries[usize::from(p)], &mut list.entries[usize::from(c)]);
            self.credit_stay(origin, before, now, gap, &mut record.screening)?;
        }
        if self.settings.rules.are_of_2() && is_shortly_after {
            record.recent.left = those_who_left(&prev.entries, &list.entries);
        }
        for entry in &mut prev.entries {
            self.end_presence(origin.source, origin.server, entry.presence.take(), (prev.t_ms, prev.map))?;
        }
        prev.entries.truncate(listed);
        let before = if is_visible { PreviousSighting::Visible(gap, None) } else { PreviousSighting::Invisible };
        Ok(Compared { round, transition, before })
    }

    /// Credits the players of a list who are not credited for a stay.
    fn credit_entries(
        &mut self,
        origin: ListOrigin<'_>,
        list: &mut player_list::PlayerList,
        entries_before: &[PlayerEntry],
        before: PreviousSighting,
        record: &mut ServerRecord,
        t_ms: i64,
    ) -> Result<(), ReadError> {
        for at in (0..list.entries.len()).filter(|&at| list.usable[at]) {
            if list.entries[at].presence.is_some() {
                continue;
            }
            let entry = &list.entries[at];
            let player = match self.player_key(origin.source, origin.game, entry)? {
                Some(player) => player,
                None if self.may_introduce_name(&mut record.screening, origin.game, &entry.name, t_ms)? => {
                    self.new_player(origin.game, entry)
                }
                None => continue, // over the quota of new names: unusable in this snapshot
            };
            // Two names of a list may belong to one player. The entry that has the presence
            // keeps it; without one, the first entry of the list gets it.
            let mut present = list.entries.iter().filter_map(|entry| Some(entry.presence.as_ref()?.player));
            if present.any(|other| other == player) {
                continue;
            }
            let before = match before {
                PreviousSighting::Visible(gap, _) if list.was_spectator(at, entries_before) => {
                    PreviousSighting::Spectating(gap)
                }
                PreviousSighting::Visible(gap, _) => {
                    let connected_ms = list.connected_ms.get(at).copied().flatten();
                    let connected =
                        connected_ms.and_then(|ms| Unseen::connected(ms, gap.ms(), origin.connected_step_ms));
                    PreviousSighting::Visible(gap, connected)
                }
                before => before,
            };
            self.credit_entry(origin, player, &mut list.entries[at], before, t_ms, &mut record.screening)?;
        }
        Ok(())
    }
}

/// The players who were in the previous list and are not in this one, with their points. Presences of
/// those who stayed were moved to the new list.
fn those_who_left(prev: &[PlayerEntry], cur: &[PlayerEntry]) -> Vec<(PlayerKey, i64)> {
    let is_listed = |name: &Name| cur.iter().any(|entry| !entry.spectator && entry.name == *name);
    let left = prev.iter().filter(|entry| !is_listed(&entry.name));
    left.filter_map(|entry| Some((entry.presence.as_ref()?.player, entry.playing_points()?))).collect()
}

/// Adds players who left just before the final list, unless they are in it under another name.
fn add_those_who_left(entries: &mut Vec<PlayerEntry>, left: Vec<(PlayerKey, i64)>) {
    for (player, points) in left {
        if !entries.iter().any(|entry| entry.presence.as_ref().is_some_and(|presence| presence.player == player)) {
            entries.push(PlayerEntry::who_left(player, points));
        }
    }
}

/// The most points of a player; 0 without one.
pub(in crate::engine) fn best_points(entries: &[PlayerEntry]) -> i64 {
    entries.iter().filter_map(PlayerEntry::playing_points).max().unwrap_or(0)
}
