//! Names with numeric keys, such as games, maps and tags.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Names that are not shared with clones, at most: a clone copies them.
const RECENT_MAX: usize = 1_024;

/// Names with keys from 1 in order of appearance. Clones share all but the names that were added last, so that a new
/// one does not copy the others.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyTable {
    shared: Arc<Names>,
    /// With the keys after those.
    recent: Names,
}

#[derive(Clone, Debug, Default)]
struct Names {
    by_name: FxHashMap<Arc<str>, u32>,
    by_key: Vec<Arc<str>>,
}

impl KeyTable {
    pub fn load(entries: impl Iterator<Item = (u32, String)>) -> KeyTable {
        let mut names = Names::default();
        for (key, name) in entries {
            let (index, name) = (key as usize - 1, Arc::<str>::from(name));
            if names.by_key.len() <= index {
                names.by_key.resize(index + 1, Arc::default());
            }
            names.by_key[index].clone_from(&name);
            names.by_name.insert(name, key);
        }
        KeyTable { shared: Arc::new(names), recent: Names::default() }
    }

    /// Assigns keys from `next` on: earlier names may have been deleted, or are not known after a
    /// restore.
    pub fn with_next_key(mut self, next: u32) -> KeyTable {
        let len = (next as usize).saturating_sub(1);
        if len > self.len() as usize {
            self.share_recent().by_key.resize(len, Arc::default());
        }
        self
    }

    /// Moves the recent names to the others, which are copied if clones hold them.
    fn share_recent(&mut self) -> &mut Names {
        let shared = Arc::make_mut(&mut self.shared);
        shared.by_key.append(&mut self.recent.by_key);
        shared.by_name.extend(self.recent.by_name.drain());
        shared
    }

    /// The key of a name, and whether it is new.
    pub fn intern(&mut self, name: &str) -> (u32, bool) {
        if let Some(key) = self.find(name) {
            return (key, false);
        }
        if self.recent.by_key.len() == RECENT_MAX {
            self.share_recent();
        }
        let name = Arc::<str>::from(name);
        self.recent.by_key.push(name.clone());
        let key = self.len();
        self.recent.by_name.insert(name, key);
        (key, true)
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.shared.by_name.get(name).or_else(|| self.recent.by_name.get(name)).copied()
    }

    /// Whether a key has a name. Deleted names, and those that a restore did not find, have none.
    pub fn has_name(&self, key: u32) -> bool {
        self.find(self.name(key)) == Some(key)
    }

    /// Names that have ever had a key.
    pub fn len(&self) -> u32 {
        (self.shared.by_key.len() + self.recent.by_key.len()) as u32
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.shared.by_key.iter().chain(&self.recent.by_key);
        all.map(|name| &**name).filter(|name| !name.is_empty())
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.shared.by_name.values().chain(self.recent.by_name.values()).copied()
    }

    /// Deletes a name. Its key is never reused.
    pub fn remove(&mut self, name: &str) -> Option<u32> {
        self.find(name)?;
        let names = self.share_recent();
        let key = names.by_name.remove(name)?;
        names.by_key[key as usize - 1] = Arc::default();
        Some(key)
    }

    pub fn name(&self, key: u32) -> &str {
        let Some(index) = (key as usize).checked_sub(1) else { return "" };
        let recent = || self.recent.by_key.get(index - self.shared.by_key.len());
        self.shared.by_key.get(index).or_else(recent).map_or("", |name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_do_not_copy_those_that_clones_share() {
        let mut table = KeyTable::load((1..=5).map(|key| (key, format!("loaded {key}"))));
        let mut copies = 0;
        for n in 0..3_000 {
            let view = table.clone();
            assert_eq!(table.intern(&format!("new {n}")), (n + 6, true));
            copies += u32::from(!Arc::ptr_eq(&view.shared, &table.shared));
            assert_eq!((view.len(), view.find(&format!("new {n}")), view.name(n + 6)), (n + 5, None, ""));
        }
        assert_eq!(copies, 2);
        assert!((0..3_000).all(|n| table.find(&format!("new {n}")) == Some(n + 6)));
        assert!((0..3_000).all(|n| table.name(n + 6) == format!("new {n}") && table.has_name(n + 6)));
        assert_eq!((table.names().count(), table.keys().count(), table.name(0)), (3_005, 3_005, ""));
        assert_eq!(table.remove("new 2999"), Some(3_005));
        assert_eq!((table.name(3_005), table.has_name(3_005)), ("", false));
        assert_eq!(table.intern("new 2999"), (3_006, true));
        let table = table.with_next_key(5_000);
        assert_eq!((table.len(), table.find("new 2999")), (4_999, Some(3_006)));
    }
}
