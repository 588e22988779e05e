//! Tags: the groups that an admin makes of servers (RULES section 8).
//!
//! A server's record holds keys, and a dropped tag's key is nobody's from that
//! moment on: no server is shown with it, its boards are gone, and what players are
//! rated in it is never looked at again; it goes with their windows. A tag of the
//! same name that comes later has another key. So what is left to do is to write
//! the servers that had it, here and in the archive. That goes in steps, some
//! servers each tick, and after a crash the records themselves tell who is left.

use std::collections::BTreeSet;

use super::{AdminError, Engine, GlobalState};
use crate::engine::boards::cache::Group;
use crate::limits::TAGS_MAX;
use crate::model::{ServerKey, ServerUrl, TagKey};

/// Steps of writing a server: a record of 1 to 2 kB, and one in the outbox.
const STEPS_PER_UNTAG: usize = 6;

/// Tags of a server, each once. Error: they are too many.
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

impl Engine {
    /// Puts a server in the groups of some tags and takes it out of others. Its
    /// rows count there, or no longer do; ratings stay as they were. Returns
    /// whether that changed anything.
    pub fn tag_server(&mut self, url: &ServerUrl, add: &[String], remove: &[String]) -> Result<bool, AdminError> {
        let key = self.find_key(url)?;
        self.change_tags(key, add, remove)
    }

    /// The same of a server that is known, which may be removed.
    pub(super) fn change_tags(
        &mut self,
        server: ServerKey,
        add: &[String],
        remove: &[String],
    ) -> Result<bool, AdminError> {
        let record = &self.server_state(server).expect("named servers exist").record;
        let before = self.global.tag_names(&record.tags);
        let kept = before.iter().filter(|tag| !remove.contains(tag));
        let tags = unique_tags(&record.url, kept.chain(add).cloned())?;
        if tags == before {
            return Ok(false);
        }
        let keys = self.global.tag_keys(&tags);
        let tags = &mut self.server_state_mut(server).expect("named servers exist").record.tags;
        let before = std::mem::replace(tags, keys);
        self.global.server_changed(server);
        self.global.shelf.server_changed(server, &before);
        Ok(true)
    }

    /// Takes a tag from every server that has it, and its boards and ratings with
    /// it: a tag of that name is another one from now on. Returns how many servers
    /// had it. They are written by the ticks that follow.
    pub fn delete_tag(&mut self, tag: &str) -> Result<usize, AdminError> {
        let Some(key) = self.global.tags.remove(tag).map(TagKey) else {
            let nearest = crate::nearest::nearest(tag, self.global.tags.names()).map(str::to_owned);
            return Err(AdminError::UnknownTag { tag: tag.to_owned(), nearest });
        };
        let had = self.servers_where(|tags| tags.contains(&key));
        let servers = had.len();
        self.servers_to_untag.extend(had);
        self.global.pending.tags.retain(|(it, _)| *it != key);
        self.global.pending.corrections.deleted_tags.push(key);
        self.global.shelf.drop_group(Group::Tag(key));
        self.global.see_order();
        Ok(servers)
    }

    /// Servers whose records name a tag that was dropped.
    pub(super) fn servers_with_deleted_tags(&self) -> BTreeSet<ServerKey> {
        let is_gone = |tag: &TagKey| !self.global.is_tag(*tag);
        self.servers_where(|tags| tags.iter().any(is_gone)).into_iter().collect()
    }

    fn servers_where(&self, wanted: impl Fn(&[TagKey]) -> bool) -> Vec<ServerKey> {
        let slots = self.servers.iter().zip(0..).filter_map(|(slot, key)| Some((slot.as_ref()?, ServerKey(key))));
        slots.filter(|(slot, _)| wanted(&slot.record.tags)).map(|(_, key)| key).collect()
    }

    /// Writes some of the servers that had a tag which was dropped.
    pub(super) fn untag_servers(&mut self) {
        for _ in 0..(self.global.settings.week_steps_per_tick / STEPS_PER_UNTAG).max(1) {
            let Some(server) = self.servers_to_untag.pop_first() else { return };
            let Some(slot) = self.servers[server.0 as usize].as_mut() else { continue };
            slot.record.tags.retain(|tag| self.global.is_tag(*tag));
            self.global.server_changed(server);
        }
    }
}

impl GlobalState {
    /// The key of a tag, handed out where it is new.
    fn tag_key(&mut self, name: &str) -> TagKey {
        let (key, new) = self.tags.intern(name);
        if new {
            self.meta.next_tag = key + 1;
            self.pending.meta = true;
            self.pending.tags.push((TagKey(key), name.to_owned()));
            self.see_order();
        }
        TagKey(key)
    }

    /// The keys of tags, handed out where they are new.
    pub(super) fn tag_keys(&mut self, names: &[String]) -> Vec<TagKey> {
        names.iter().map(|name| self.tag_key(name)).collect()
    }

    /// Whether a key is that of a tag, and not of one that was dropped.
    pub(super) fn is_tag(&self, tag: TagKey) -> bool {
        !self.tags.name(tag.0).is_empty()
    }

    /// All tags there are.
    pub(super) fn all_tags(&self) -> impl Iterator<Item = TagKey> {
        self.tags.keys().map(TagKey)
    }

    /// Those of a record that are there, as the admin gave them.
    pub(super) fn tag_names(&self, tags: &[TagKey]) -> Vec<String> {
        tags.iter().map(|tag| self.tags.name(tag.0)).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Those of a record that are there, in order of key.
    pub(super) fn tags_there(&self, tags: &[TagKey]) -> Vec<TagKey> {
        let mut there: Vec<TagKey> = tags.iter().copied().filter(|tag| self.is_tag(*tag)).collect();
        there.sort_unstable();
        there
    }
}
