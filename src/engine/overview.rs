//! The whole site at a glance: servers and players online, by game and tag.

use std::collections::BTreeMap;

use super::ReadModel;
use crate::model::calendar::week_label;
use crate::model::{GameKey, TagKey};
use crate::view::{GroupOverview, Overview, TagSummary};

impl ReadModel {
    pub fn overview(&self) -> Overview {
        let mut overview = Overview {
            now_ms: self.now_ms(),
            week: week_label(self.global.calendar.week(self.now_ms())),
            players_known: self.players_known(),
            ..Overview::default()
        };
        let count = |group: &mut GroupOverview, players: u64| {
            group.servers_online += 1;
            group.players_online += players;
        };
        let mut games: BTreeMap<GameKey, GroupOverview> = BTreeMap::new();
        let mut tags: BTreeMap<TagKey, GroupOverview> = BTreeMap::new();
        for (_, server) in self.listed_servers() {
            overview.servers += 1;
            if !self.is_online(&server.record) {
                continue;
            }
            let players = u64::from(server.record.believed_count());
            overview.servers_online += 1;
            overview.players_online += players;
            if let Some(game) = server.record.game {
                count(games.entry(game).or_default(), players);
            }
            for &tag in &server.record.tags {
                count(tags.entry(tag).or_default(), players);
            }
        }
        let most_players_first = |mut groups: Vec<GroupOverview>| {
            groups.sort_by(|a, b| {
                (b.players_online, b.servers_online, &a.name).cmp(&(a.players_online, a.servers_online, &b.name))
            });
            groups
        };
        let named = |name: &str, group| GroupOverview { name: name.to_owned(), ..group };
        let games = games.into_iter().map(|(key, group)| named(self.global.games.name(key.0), group));
        overview.games = most_players_first(games.collect());
        let tags = tags.into_iter().map(|(key, group)| named(self.global.tags.name(key.0), group));
        overview.tags = most_players_first(tags.filter(|group| !group.name.is_empty()).collect());
        overview
    }

    /// The tags of listed servers, by name.
    pub fn tags(&self) -> Vec<TagSummary> {
        let mut tags: BTreeMap<&str, TagSummary> = BTreeMap::new();
        for (_, server) in self.listed_servers() {
            for tag in server.record.tags.iter().map(|tag| self.global.tags.name(tag.0)) {
                let summary =
                    tags.entry(tag).or_insert_with(|| TagSummary { tag: tag.to_owned(), ..Default::default() });
                summary.servers += 1;
                if self.is_online(&server.record) {
                    summary.servers_online += 1;
                    summary.players_online += u64::from(server.record.believed_count());
                }
            }
        }
        // A tag that was deleted has no name.
        tags.remove("");
        tags.into_values().collect()
    }
}
