//! All servers that were ever added, by key and by URL. Keys are given from 1 on and never again.

use super::shared::Shared;
use super::url_table::UrlTable;
use crate::model::packed_series::PackedSeries;
use crate::model::server::ServerRecord;
use crate::model::{ServerKey, ServerUrl};
use crate::proto::Authentication;
use crate::rank::player_list::{EntriesByName, NameFamily};

/// One server in memory.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub record: Shared<ServerRecord>,
    pub series: Option<PackedSeries>,
    pub scan_requested: bool,
    /// When adding the server again last requested a scan, Unix ms. Not stored: at the start it is
    /// taken to be the last scan, unless that was the first one.
    pub added_again_ms: Option<i64>,
    /// Authentication of the last reply; `None` until the first reply after the start.
    pub authentication: Option<Authentication>,
    /// How the names of the last list were read; `None` until the first list after the start.
    pub name_index: Option<(NameFamily, EntriesByName)>,
    /// `None`: the schedule has it. Only a replica has some.
    pub plan: Option<ScanPlan>,
}

impl ServerState {
    pub fn new(record: ServerRecord) -> ServerState {
        ServerState {
            record: Shared::new(record),
            series: None,
            scan_requested: false,
            added_again_ms: None,
            authentication: None,
            name_index: None,
            plan: None,
        }
    }
}

/// When a server is scanned, as a replica shows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanPlan {
    /// `None`: no scan is planned, or it is in progress.
    pub due_ms: Option<i64>,
    pub in_progress: bool,
    pub boosted: bool,
}

#[derive(Debug, Default)]
pub(super) struct ServerTable {
    /// Index is the key; 0 is never used.
    states: Vec<Option<ServerState>>,
    by_url: UrlTable,
}

impl ServerTable {
    pub fn get(&self, server: ServerKey) -> Option<&ServerState> {
        self.states.get(server.0 as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, server: ServerKey) -> Option<&mut ServerState> {
        self.states.get_mut(server.0 as usize)?.as_mut()
    }

    pub fn record(&self, server: ServerKey) -> Option<&ServerRecord> {
        self.get(server).map(|server_state| &*server_state.record)
    }

    pub fn find(&self, url: &ServerUrl) -> Option<ServerKey> {
        self.by_url.get(url)
    }

    /// The server with a URL.
    pub fn named(&self, url: &ServerUrl) -> Option<(ServerKey, &ServerState)> {
        let server = self.find(url)?;
        Some((server, self.get(server)?))
    }

    /// A new server, or a newer state of a known one.
    pub fn put(&mut self, server: ServerKey, state: ServerState) {
        let index = server.0 as usize;
        if self.states.len() <= index {
            self.states.resize_with(index + 1, || None);
        }
        if self.states[index].is_none() {
            self.by_url.insert(state.record.url.clone(), server);
        }
        self.states[index] = Some(state);
    }

    /// All servers in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (ServerKey, &ServerState)> {
        (0..).map(ServerKey).zip(&self.states).filter_map(|(server, state)| Some((server, state.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ServerKey, &mut ServerState)> {
        (0..).map(ServerKey).zip(&mut self.states).filter_map(|(server, state)| Some((server, state.as_mut()?)))
    }

    pub fn records(&self) -> impl Iterator<Item = &ServerRecord> {
        self.iter().map(|(_, server_state)| &*server_state.record)
    }

    /// All keys that were given.
    pub fn keys(&self) -> impl Iterator<Item = ServerKey> + use<> {
        (1..self.end().0).map(ServerKey)
    }

    /// The key that the next new server gets.
    pub fn end(&self) -> ServerKey {
        ServerKey(self.states.len().max(1) as u32)
    }

    /// All servers in order of URL, removed ones too.
    pub fn sorted_by_url(&self) -> Vec<ServerKey> {
        self.by_url.sorted()
    }

    /// The same servers in other states, such as a replica has them.
    pub fn with(&self, state: impl Fn(ServerKey, &ServerState) -> ServerState) -> ServerTable {
        let states = (0..).map(ServerKey).zip(&self.states);
        let states = states.map(|(server, old)| Some(state(server, old.as_ref()?))).collect();
        ServerTable { states, by_url: self.by_url.clone() }
    }
}
