//! Names with numeric keys, such as games, maps and tags.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Names with keys from 1 in order of appearance. A clone shares the names until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyTable(Arc<Names>);

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
        KeyTable(Arc::new(names))
    }

    /// Assigns keys from `next` on: earlier names may have been deleted, or are not known after a
    /// restore.
    pub fn with_next_key(mut self, next: u32) -> KeyTable {
        let names = Arc::make_mut(&mut self.0);
        let len = (next as usize).saturating_sub(1).max(names.by_key.len());
        names.by_key.resize(len, Arc::default());
        self
    }

    /// The key of a name, and whether it is new.
    pub fn intern(&mut self, name: &str) -> (u32, bool) {
        if let Some(key) = self.find(name) {
            return (key, false);
        }
        let names = Arc::make_mut(&mut self.0);
        let name = Arc::<str>::from(name);
        names.by_key.push(name.clone());
        let key = names.by_key.len() as u32;
        names.by_name.insert(name, key);
        (key, true)
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.0.by_name.get(name).copied()
    }

    /// Whether a key has a name. Deleted names, and those that a restore did not find, have none.
    pub fn has_name(&self, key: u32) -> bool {
        self.find(self.name(key)) == Some(key)
    }

    /// Names that have ever had a key.
    pub fn len(&self) -> u32 {
        self.0.by_key.len() as u32
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.by_key.iter().map(|name| &**name).filter(|name| !name.is_empty())
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.0.by_name.values().copied()
    }

    /// Deletes a name. Its key is never reused.
    pub fn remove(&mut self, name: &str) -> Option<u32> {
        self.find(name)?;
        let names = Arc::make_mut(&mut self.0);
        let key = names.by_name.remove(name)?;
        names.by_key[key as usize - 1] = Arc::default();
        Some(key)
    }

    pub fn name(&self, key: u32) -> &str {
        key.checked_sub(1).and_then(|i| self.0.by_key.get(i as usize)).map_or("", |name| &**name)
    }
}
