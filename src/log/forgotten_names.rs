//! Recognises forgotten names in the events of a log, by the rule that the engine uses for new
//! scans, and replaces them.

use rustc_hash::FxHashMap;

use super::LogEvent;
use crate::engine::Outcome;
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
            // Once the name is replaced, nothing of it is needed.
            LogEvent::Command { command: AdminCommand::Forget { key, hash, .. }, .. } => {
                let is_forgotten = hash.is_some_and(|hash| self.placeholders.contains_key(&hash));
                if is_forgotten {
                    (*key, *hash) = (None, None);
                }
                is_forgotten
            }
            LogEvent::Rebuild { step, .. } => {
                let mut found = false;
                for (game, name, display) in step.names_mut() {
                    let hash = NameHash::of(game, name);
                    let Some(placeholder) = self.placeholders.get(&hash) else { continue };
                    *name = Name::from(placeholder.to_string());
                    if let Some(display) = display {
                        display.clone_from(name);
                    }
                    found = true;
                }
                found
            }
            LogEvent::Command { .. }
            | LogEvent::Settings { .. }
            | LogEvent::Known { .. }
            | LogEvent::Archive { .. }
            | LogEvent::Tick { .. } => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PlayerKey;
    use crate::model::snapshot::{Completeness, Player, Snapshot};

    fn list(t_ms: i64, game: &str, names: &[&str]) -> LogEvent {
        let player = |name: &&str| Player { name: Name::from(*name), points: Some(3), ..Player::default() };
        let snapshot = Snapshot {
            t_ms,
            game: game.to_owned(),
            map: "q3dm17".to_owned(),
            hostname: "Visor".to_owned(),
            slots: 16,
            players: names.iter().map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        let server = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
        LogEvent::Scan { server, outcome: Outcome::Snapshot(snapshot) }
    }

    fn names_of(event: &LogEvent) -> Vec<&str> {
        let LogEvent::Scan { outcome: Outcome::Snapshot(snapshot), .. } = event else { panic!("a list") };
        snapshot.players.iter().map(|player| player.name.as_str()).collect()
    }

    #[test]
    fn names_are_replaced_as_the_engine_reads_them() {
        let names = ForgottenNames::new(vec![(NameHash::of("baseq3", "Visor"), 5_000)], NameRules::default());
        for (t_ms, game, listed, kept) in [
            (
                10,
                "baseq3",
                &["Klesk", "^1Vis^2or", "  Visor "][..],
                &["Klesk", "forgotten-5000-1", "forgotten-5000-1"][..],
            ),
            (5_000, "baseq3", &["Visor"], &["forgotten-5000-1"]),
            (5_001, "baseq3", &["Visor", "Klesk"], &["", "Klesk"]),
            (10, "baseoa", &["Visor"], &["Visor"]),
            (10, "baseq3", &["visor", "Visor2", ""], &["visor", "Visor2", ""]),
        ] {
            let mut event = list(t_ms, game, listed);
            assert_eq!(names.replace_in(&mut event), listed != kept, "{listed:?}");
            assert_eq!(names_of(&event), kept);
        }
        let (game, from, into) = ("baseq3".to_owned(), "Visor".to_owned(), "Klesk".to_owned());
        let mut merge = LogEvent::Command { t_ms: 1, command: AdminCommand::Merge { game, from, into } };
        assert!(names.replace_in(&mut merge));
        assert!(format!("{merge:?}").contains("forgotten-5000-1"), "{merge:?}");
        let request = |name, has_hash| AdminCommand::Forget {
            game: "baseq3".to_owned(),
            player: "forgotten-5000-1".to_owned(),
            key: Some(PlayerKey(7)).filter(|_| has_hash),
            hash: Some(NameHash::of("baseq3", name)).filter(|_| has_hash),
        };
        for (name, kept) in [("Visor", false), ("Klesk", true)] {
            let mut event = LogEvent::Command { t_ms: 5_000, command: request(name, true) };
            assert_eq!(names.replace_in(&mut event), !kept);
            let LogEvent::Command { command, .. } = event else { panic!("a command") };
            assert_eq!(command, request(name, kept));
        }
    }

    #[test]
    fn names_of_one_request_have_different_placeholders() {
        let hash = |name, forgotten_ms| (NameHash::of("baseq3", name), forgotten_ms);
        let names = ForgottenNames::new(vec![hash("a", 7), hash("b", 7), hash("c", 9)], NameRules::default());
        let mut event = list(1, "baseq3", &["a", "b", "c", "d"]);
        assert!(names.replace_in(&mut event));
        let mut found = names_of(&event);
        found.sort_unstable();
        assert_eq!(found, ["d", "forgotten-7-1", "forgotten-7-2", "forgotten-9-1"]);
        assert_eq!(names.times_ms(), [7, 7, 9]);
    }
}
