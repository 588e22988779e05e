//! The key of each known server, by its URL.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::model::{ServerKey, ServerUrl};

/// Keys of servers by URL. Clones share it: a key is never removed.
#[derive(Clone, Debug, Default)]
pub(super) struct UrlTable(Arc<RwLock<FxHashMap<ServerUrl, ServerKey>>>);

impl UrlTable {
    pub fn get(&self, url: &ServerUrl) -> Option<ServerKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(url).copied()
    }

    pub fn insert(&self, url: ServerUrl, server: ServerKey) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(url, server);
    }

    /// All servers, in order of URL.
    pub fn sorted(&self) -> Vec<ServerKey> {
        let by_url = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut servers: Vec<(&ServerUrl, ServerKey)> = by_url.iter().map(|(url, key)| (url, *key)).collect();
        servers.sort_unstable();
        servers.into_iter().map(|(_, server)| server).collect()
    }
}
