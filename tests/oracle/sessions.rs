//! Sessions (docs/rules.md 16), from the players of successive lists.
//!
//! [open] A list of a later time than that to which the clock is set back ends the sessions of its players, with that
//! time. Sessions that end later than the present time are not exported.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Value, json};

use super::{Oracle, PlayerId, SEGMENT_MS};

const DAY_MS: i64 = 86_400_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub server: String,
    pub player: PlayerId,
    pub start: i64,
    pub end: i64,
    pub points: Option<i64>,
    pub map: String,
    pub seen: u32,
}

/// A player in a list.
pub struct Sighting {
    pub player: PlayerId,
    /// The player was in the previous list, which was not too long ago.
    pub stayed: bool,
    /// `None`: the entry has no points.
    pub gain: Option<i64>,
}

#[derive(Default)]
pub struct Sessions {
    /// By server and player.
    open: HashMap<(String, PlayerId), Session>,
    complete: Vec<Session>,
}

impl Sessions {
    /// A list of a server.
    pub fn add_list(&mut self, server: &str, t: i64, map: &str, sightings: Vec<Sighting>) {
        let stays = |of: &PlayerId| sightings.iter().any(|sighting| sighting.stayed && sighting.player == *of);
        self.complete.extend(self.open.extract_if(|(on, of), _| on == server && !stays(of)).map(|(_, ended)| ended));
        for Sighting { player, gain, .. } in sightings {
            let key = (server.to_owned(), player.clone());
            let session = self.open.entry(key).or_insert_with(|| Session {
                server: server.to_owned(),
                player,
                start: t,
                end: t,
                points: None,
                map: String::new(),
                seen: 0,
            });
            (session.end, session.map) = (t, map.to_owned());
            session.seen += 1;
            if let Some(gain) = gain {
                session.points = Some(session.points.unwrap_or(0) + gain);
            }
        }
    }

    pub fn end_all(&mut self, server: &str) {
        self.complete.extend(self.open.extract_if(|(on, _), _| on == server).map(|(_, ended)| ended));
    }

    /// The clock is set back: as [`Self::end_all`], and no session of the server starts or ends later.
    pub fn end_all_at(&mut self, server: &str, t: i64) {
        for session in self.open.values_mut().filter(|session| session.server == server) {
            (session.start, session.end) = (t.min(session.start), t.min(session.end));
        }
        self.end_all(server);
    }

    pub fn merge(&mut self, from: &PlayerId, into: &PlayerId) {
        for ((server, _), mut session) in self.open.extract_if(|(_, of), _| of == from).collect::<Vec<_>>() {
            session.player = into.clone();
            match self.open.entry((server, into.clone())) {
                Entry::Occupied(_) => self.complete.push(session),
                Entry::Vacant(place) => _ = place.insert(session),
            }
        }
        self.complete.iter_mut().filter(|it| it.player == *from).for_each(|it| it.player = into.clone());
    }

    pub fn forget(&mut self, player: &PlayerId) {
        self.open.retain(|(_, of), _| of != player);
        self.complete.retain(|session| session.player != *player);
    }

    /// Those that are complete at `now` and ended at most `keep_days` ago, in the order of an export.
    pub fn complete_at(&self, now: i64, keep_days: i64) -> Vec<&Session> {
        let invisible = self.open.values().filter(|session| now - session.end > SEGMENT_MS);
        let all = self.complete.iter().chain(invisible);
        let mut kept: Vec<&Session> =
            all.filter(|session| session.end <= now && session.end + keep_days * DAY_MS >= now).collect();
        // docs/rules.md leaves the order of equal sessions of merged players open.
        type Key<'s> = (&'s String, i64, i64, &'s String, &'s String, (Option<i64>, &'s String, u32));
        fn key(session: &Session) -> Key<'_> {
            let Session { server, player, start, end, points, map, seen } = session;
            (server, *end, *start, &player.name, &player.game, (*points, map, *seen))
        }
        kept.sort_by(|a, b| key(a).cmp(&key(b)));
        kept
    }

    /// The earliest start and the latest list with a player, by player.
    pub fn seen(&self) -> HashMap<&PlayerId, (i64, i64)> {
        let mut seen: HashMap<&PlayerId, (i64, i64)> = HashMap::new();
        for session in self.complete.iter().chain(self.open.values()) {
            let (first, last) = seen.entry(&session.player).or_insert((session.start, session.end));
            (*first, *last) = (session.start.min(*first), session.end.max(*last));
        }
        seen
    }
}

impl Session {
    /// The fields of a line of the export.
    pub fn export(&self) -> Value {
        let Session { server, player: PlayerId { game, name }, start, end, points, map, seen } = self;
        let mut line = json!({
            "server": server, "game": game, "player": name, "start": start, "end": end, "map": map, "seen": seen,
        });
        if let Some(points) = points {
            line["points"] = (*points).into();
        }
        line
    }
}

impl Oracle {
    /// The expected lines of `clqd export --sessions`.
    pub fn export_sessions(&self) -> Vec<Value> {
        self.export_sessions_at(self.history.times.last().copied().unwrap_or(0))
    }

    /// The same at a time after the end of the log.
    pub fn export_sessions_at(&self, now: i64) -> Vec<Value> {
        self.sessions.complete_at(now, self.settings.keep_sessions_days).into_iter().map(Session::export).collect()
    }
}
