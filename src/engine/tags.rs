//! Tags: groups of servers, defined by an admin (docs/rules.md section 8).
//!
//! A server's record holds tag keys. The key of a deleted tag is unused from then on. No server is
//! shown with it, and its boards are deleted. Ratings of players in it are never read again, and
//! are deleted with their windows. A later tag of the same name gets another key. So the only
//! remaining work is to write the servers that had the tag, to the store and to the archive. Each
//! tick writes some of them. After a crash the records show which servers are left.

use std::collections::BTreeSet;

use super::{AdminError, Engine, GlobalState, ReadModel, ViewError};
use crate::engine::boards::group::Group;
use crate::limits::TAGS_MAX;
use crate::model::{ServerKey, ServerUrl, TagKey};

/// Steps to write a server: a record of 1 to 2 kB, and an outbox entry.
const STEPS_PER_UNTAG: usize = 6;

/// Tags of a server without duplicates. Error: there are too many.
pub(super) fn unique_tags(url: &ServerUrl, tags: impl Iterator<Item = String>) -> Result<Vec<String>, AdminError> {
    let mut all: Vec<String> = Vec::new();
    for tag in tags {
        if !all.contains(&tag) {
            all.push(tag);
        }
    }
    match all.len() <= TAGS_MAX {
        true => Ok(all),
        false => Err(AdminError::TooManyTags { url: url.clone(), tags: all.len() }),
    }
}

impl ReadModel {
    /// The tags of a server.
    pub fn tags_of(&self, url: &ServerUrl) -> Vec<String> {
        let server_state = self.find_key(url).ok().and_then(|key| self.servers.get(key));
        server_state.map_or_else(Vec::new, |server_state| self.global.tag_names(&server_state.record.tags))
    }

    /// Error: no server has the tag.
    pub(super) fn find_tag(&self, tag: &str) -> Result<TagKey, ViewError> {
        self.global.tags.find(tag).map(TagKey).ok_or_else(|| ViewError::UnknownTag {
            tag: tag.to_owned(),
            nearest: crate::nearest::nearest(tag, self.global.tags.names()).map(str::to_owned),
        })
    }

    /// Servers whose records contain a deleted tag.
    pub(super) fn servers_with_deleted_tags(&self) -> BTreeSet<ServerKey> {
        let is_deleted = |tag: &TagKey| !self.global.tag_exists(*tag);
        self.servers_where(|tags| tags.iter().any(is_deleted)).into_iter().collect()
    }

    fn servers_where(&self, wanted: impl Fn(&[TagKey]) -> bool) -> Vec<ServerKey> {
        self.servers.iter().filter(|(_, it)| wanted(&it.record.tags)).map(|(key, _)| key).collect()
    }
}

impl Engine {
    /// Adds tags to a server and removes others. Its rows start or stop counting in the groups
    /// of these tags; ratings do not change. Returns whether anything changed.
    pub fn tag_server(&mut self, url: &ServerUrl, add: &[String], remove: &[String]) -> Result<bool, AdminError> {
        let key = self.model.find_key(url)?;
        self.change_tags(key, add, remove)
    }

    /// As [`Engine::tag_server`], for a known server that may be removed.
    pub(super) fn change_tags(
        &mut self,
        server: ServerKey,
        add: &[String],
        remove: &[String],
    ) -> Result<bool, AdminError> {
        let record = &self.model.servers.get(server).expect("named servers exist").record;
        let before = self.model.global.tag_names(&record.tags);
        let kept = before.iter().filter(|tag| !remove.contains(tag));
        let tags = unique_tags(&record.url, kept.chain(add).cloned())?;
        if tags == before {
            return Ok(false);
        }
        let keys = self.model.global.tag_keys(&tags);
        let tags = &mut self.model.servers.get_mut(server).expect("named servers exist").record.tags;
        let before = std::mem::replace(tags, keys);
        self.model.global.server_changed(server);
        self.model.global.board_cache.mark_server_dirty(server, &before);
        let was_seen = self.model.servers.record(server).is_some_and(|record| record.last_seen_ms.is_some());
        self.model.global.enqueue_boards_of_ended(|_| was_seen);
        Ok(true)
    }

    /// Deletes a tag from all servers that have it, with its boards and ratings: a later tag of
    /// the same name is a different tag. Returns how many servers had it. The next ticks write
    /// them.
    pub fn delete_tag(&mut self, tag: &str) -> Result<usize, AdminError> {
        let Some(key) = self.model.global.tags.remove(tag).map(TagKey) else {
            let nearest = crate::nearest::nearest(tag, self.model.global.tags.names()).map(str::to_owned);
            return Err(AdminError::UnknownTag { tag: tag.to_owned(), nearest });
        };
        let tagged = self.model.servers_where(|tags| tags.contains(&key));
        let servers = tagged.len();
        self.servers_to_untag.extend(tagged);
        self.model.global.pending.tags.retain(|(it, _)| *it != key);
        self.model.global.pending.corrections.deleted_tags.push(key);
        self.model.global.board_cache.remove_group(Group::Tag(key));
        self.model.global.update_board_orders();
        self.model.global.enqueue_boards_of_ended(|_| true);
        Ok(servers)
    }

    /// Writes some of the servers that had a deleted tag.
    pub(super) fn untag_servers(&mut self) {
        for _ in 0..(self.model.global.settings.week_steps_per_tick / STEPS_PER_UNTAG).max(1) {
            let Some(server) = self.servers_to_untag.pop_first() else { return };
            let Some(server_state) = self.model.servers.get_mut(server) else { continue };
            server_state.record.tags.retain(|tag| self.model.global.tag_exists(*tag));
            self.model.global.server_changed(server);
        }
    }
}

impl GlobalState {
    /// The key of a tag; a new tag gets one.
    fn tag_key(&mut self, name: &str) -> TagKey {
        let (key, new) = self.tags.intern(name);
        if new {
            self.meta.next_tag = key + 1;
            self.pending.meta = true;
            self.pending.tags.push((TagKey(key), name.to_owned()));
            self.update_board_orders();
        }
        TagKey(key)
    }

    /// The keys of tags; new tags get one.
    pub(super) fn tag_keys(&mut self, names: &[String]) -> Vec<TagKey> {
        names.iter().map(|name| self.tag_key(name)).collect()
    }

    /// Whether a key belongs to a tag that exists.
    pub(super) fn tag_exists(&self, tag: TagKey) -> bool {
        !self.tags.name(tag.0).is_empty()
    }

    /// All existing tags.
    pub(super) fn all_tags(&self) -> impl Iterator<Item = TagKey> {
        self.tags.keys().map(TagKey)
    }

    /// The existing tags of a record, in the order in which the admin gave them.
    pub(super) fn tag_names(&self, tags: &[TagKey]) -> Vec<String> {
        self.borrowed_tag_names(tags).map(str::to_owned).collect()
    }

    pub(super) fn borrowed_tag_names<'a>(&'a self, tags: &'a [TagKey]) -> impl Iterator<Item = &'a str> {
        tags.iter().map(|tag| self.tags.name(tag.0)).filter(|name| !name.is_empty())
    }

    /// The existing tags of a record, in order of key.
    pub(super) fn existing_tags(&self, tags: &[TagKey]) -> Vec<TagKey> {
        let mut existing: Vec<TagKey> = tags.iter().copied().filter(|tag| self.tag_exists(*tag)).collect();
        existing.sort_unstable();
        existing
    }
}
