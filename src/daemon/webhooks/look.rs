//! What has happened between two looks at the servers and boards of a webhook. Pure.

use std::collections::BTreeMap;

use crate::config::WebhookEvent;
use crate::model::Ranking;

/// What a webhook is about, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// The servers of its tag.
    pub servers: Vec<Server>,
    /// The newest closed week.
    pub closed: Option<String>,
    /// The first player of the running week.
    pub leader: Option<Leader>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Server {
    pub key: u32,
    pub url: String,
    /// As people see it.
    pub name: String,
    /// It has not answered for [`MISSES_DOWN`](super::MISSES_DOWN) scans. That it is not online says less: after a stop of the
    /// daemon no server is, before it is scanned.
    pub is_down: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClosedWeek {
    pub week: String,
    /// The first players of each ranking, names as people see them; they are read when the week has been closed.
    pub winners: Vec<(Ranking, Vec<String>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leader {
    pub week: String,
    pub player_key: u32,
    pub name: String,
    /// With its unit.
    pub score: String,
}

/// Something that a webhook says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Happened {
    Down(Server),
    Up(Server),
    Closed(ClosedWeek),
    Leads(Leader),
}

impl Happened {
    pub fn event(&self) -> WebhookEvent {
        match self {
            Happened::Down(_) => WebhookEvent::ServerDown,
            Happened::Up(_) => WebhookEvent::ServerUp,
            Happened::Closed(_) => WebhookEvent::WeekClosed,
            Happened::Leads(_) => WebhookEvent::NewLeader,
        }
    }
}

/// What was seen until now. The first look is no news.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether each server was down.
    is_down: BTreeMap<u32, bool>,
    /// `None`: nothing was looked at yet; `Some(None)`: no week was closed.
    closed: Option<Option<String>>,
    leader: Option<Option<(String, u32)>>,
}

impl Seen {
    /// What is new. A server that is new to the tag is none.
    pub fn look(&mut self, look: Look) -> Vec<Happened> {
        let mut happened = Vec::new();
        let mut is_down = BTreeMap::new();
        for server in look.servers {
            is_down.insert(server.key, server.is_down);
            match (self.is_down.get(&server.key), server.is_down) {
                (Some(false), true) => happened.push(Happened::Down(server)),
                (Some(true), false) => happened.push(Happened::Up(server)),
                _ => (),
            }
        }
        self.is_down = is_down;
        let was = self.closed.replace(look.closed.clone());
        // Labels of weeks are in the order of time. A week that was reopened is closed again.
        if let (Some(was), Some(week)) = (was, look.closed)
            && was.is_none_or(|was| was < week)
        {
            happened.push(Happened::Closed(ClosedWeek { week, winners: Vec::new() }));
        }
        let leader = look.leader.as_ref().map(|leader| (leader.week.clone(), leader.player_key));
        let was = self.leader.replace(leader.clone());
        if let (Some(was), Some(leader_now)) = (was, look.leader)
            && was != leader
        {
            happened.push(Happened::Leads(leader_now));
        }
        happened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(key: u32, is_up: bool) -> Server {
        Server { key, url: format!("quake3://192.0.2.{key}:27960"), name: format!("s{key}"), is_down: !is_up }
    }

    fn look(servers: &[Server], closed: Option<&str>, leader: Option<(&str, u32)>) -> Look {
        Look {
            servers: servers.to_vec(),
            closed: closed.map(str::to_owned),
            leader: leader.map(|(week, player_key)| Leader {
                week: week.to_owned(),
                player_key,
                name: "a".to_owned(),
                score: "1".to_owned(),
            }),
        }
    }

    #[test]
    fn only_changes_are_news() {
        let mut seen = Seen::default();
        let mut kinds = |look| seen.look(look).iter().map(Happened::event).collect::<Vec<_>>();
        let first = look(&[server(1, true), server(2, false)], Some("2026-W46"), Some(("2026-W47", 7)));
        assert_eq!(kinds(first.clone()), []);
        assert_eq!(kinds(first), []);
        assert_eq!(
            kinds(look(&[server(1, false), server(2, true), server(3, true)], Some("2026-W46"), Some(("2026-W47", 8)))),
            [WebhookEvent::ServerDown, WebhookEvent::ServerUp, WebhookEvent::NewLeader]
        );
        assert_eq!(kinds(look(&[server(3, true)], Some("2026-W47"), None)), [WebhookEvent::WeekClosed]);
        let next = look(&[server(1, true), server(3, true)], Some("2026-W47"), Some(("2026-W48", 8)));
        assert_eq!(kinds(next), [WebhookEvent::NewLeader], "the first leader of a week; server 1 is new to the tag");
        assert_eq!(kinds(look(&[], Some("2026-W46"), Some(("2026-W48", 8)))), [], "a week was reopened");
    }

    #[test]
    fn the_first_closed_week_is_news() {
        let mut seen = Seen::default();
        assert_eq!(seen.look(look(&[], None, None)), []);
        let closed = look(&[], Some("2026-W47"), Some(("2026-W48", 1)));
        assert_eq!(seen.look(closed).len(), 2);
    }
}
