//! Recognises forgotten names in the lines of a log, by the rule that the engine uses for new
//! scans, and replaces them.

use rustc_hash::FxHashMap;

use crate::engine::Outcome;
use crate::log::LogEvent;
use crate::model::name::Name;
use crate::model::{AdminCommand, ForgottenPlaceholder, NameHash, ServerUrl};
use crate::rank::NameRules;

/// The names to remove from a log.
#[derive(Clone, Debug, Default)]
pub struct ForgottenNames {
    placeholders: FxHashMap<NameHash, ForgottenPlaceholder>,
    rules: NameRules,
}

impl ForgottenNames {
    /// `forgotten`: hashes with the time of the request, Unix ms.
    pub fn new(mut forgotten: Vec<(NameHash, i64)>, rules: NameRules) -> ForgottenNames {
        forgotten.sort_unstable_by_key(|&(hash, forgotten_ms)| (forgotten_ms, hash));
        let mut placeholders = FxHashMap::default();
        let mut before = ForgottenPlaceholder { forgotten_ms: i64::MIN, number: 0 };
        for (hash, forgotten_ms) in forgotten {
            let number = if forgotten_ms == before.forgotten_ms { before.number + 1 } else { 1 };
            before = ForgottenPlaceholder { forgotten_ms, number };
            placeholders.insert(hash, before);
        }
        ForgottenNames { placeholders, rules }
    }

    /// Times of the requests, Unix ms, in order.
    pub fn times_ms(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.placeholders.values().map(|placeholder| placeholder.forgotten_ms).collect();
        times.sort_unstable();
        times
    }

    /// Replaces the forgotten names of an event. Returns whether there were any.
    pub fn replace_in(&self, event: &mut LogEvent) -> bool {
        match event {
            LogEvent::Scan { server, outcome } => self.replace_in_list(server, outcome),
            LogEvent::Command { command: AdminCommand::Merge { game, from, into }, .. } => {
                let replaced = [self.replace_name(game, from), self.replace_name(game, into)];
                replaced.contains(&true)
            }
            LogEvent::Command { .. } | LogEvent::Settings { .. } | LogEvent::Tick { .. } => false,
        }
    }

    /// Replaces a normalised name, if it is forgotten.
    fn replace_name(&self, game: &str, name: &mut String) -> bool {
        let placeholder = self.placeholders.get(&NameHash::of(game, name));
        placeholder.map(|placeholder| *name = placeholder.to_string()).is_some()
    }

    /// The placeholder of a forgotten name.
    pub fn placeholder(&self, hash: &NameHash) -> Option<ForgottenPlaceholder> {
        self.placeholders.get(hash).copied()
    }

    /// Replaces the forgotten names of a list. In scans until the request, the replacement is a
    /// placeholder. In later scans it is an empty name, as the daemon records it. Returns whether
    /// there were any.
    ///
    /// Every list has a game; a miss has no list. Host names and maps are not names of players.
    fn replace_in_list(&self, url: &ServerUrl, outcome: &mut Outcome) -> bool {
        let Outcome::Snapshot(snapshot) = outcome else { return false };
        let codes = self.rules.colour_codes(url.scheme(), url.is_quake3_family(), &snapshot.game);
        let mut found = false;
        for player in &mut snapshot.players {
            let hash = NameHash::of_listed(&snapshot.game, &player.name, codes);
            let Some(placeholder) = hash.and_then(|hash| self.placeholders.get(&hash)) else { continue };
            found = true;
            player.name = match snapshot.t_ms <= placeholder.forgotten_ms {
                true => Name::from(placeholder.to_string()),
                false => Name::default(),
            };
        }
        found
    }
}
