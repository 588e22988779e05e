//! Names with numeric keys, such as games, maps and tags.

use rustc_hash::FxHashMap;

/// Names with keys from 1 in order of appearance.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    by_name: FxHashMap<String, u32>,
    names: Vec<String>,
}

impl KeyTable {
    pub fn load(entries: impl Iterator<Item = (u32, String)>) -> KeyTable {
        let mut table = KeyTable::default();
        for (key, name) in entries {
            let index = key as usize - 1;
            if table.names.len() <= index {
                table.names.resize(index + 1, String::new());
            }
            table.names[index].clone_from(&name);
            table.by_name.insert(name, key);
        }
        table
    }

    /// Assigns keys from `next` on: earlier names may have been deleted, or are not known after a
    /// restore.
    pub fn with_next_key(mut self, next: u32) -> KeyTable {
        let len = (next as usize).saturating_sub(1).max(self.names.len());
        self.names.resize(len, String::new());
        self
    }

    /// The key of a name, and whether it is new.
    pub fn intern(&mut self, name: &str) -> (u32, bool) {
        if let Some(&key) = self.by_name.get(name) {
            return (key, false);
        }
        self.names.push(name.to_owned());
        let key = self.names.len() as u32;
        self.by_name.insert(name.to_owned(), key);
        (key, true)
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Whether a key has a name. Deleted names, and those that a restore did not find, have none.
    pub fn has_name(&self, key: u32) -> bool {
        self.find(self.name(key)) == Some(key)
    }

    /// Names that have ever had a key.
    pub fn len(&self) -> u32 {
        self.names.len() as u32
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.by_name.values().copied()
    }

    /// Deletes a name. Its key is never reused.
    pub fn remove(&mut self, name: &str) -> Option<u32> {
        let key = self.by_name.remove(name)?;
        self.names[key as usize - 1].clear();
        Some(key)
    }

    pub fn name(&self, key: u32) -> &str {
        key.checked_sub(1).and_then(|i| self.names.get(i as usize)).map_or("", String::as_str)
    }
}
