//! A client that changes and reads the state of a daemon, and what must be true after a power cut or a
//! kill.
//!
//! A change is noted with the position before its request and after its response. After a cut at a
//! position, a subject has the value of the last change whose response came before that position, or of
//! a change that had been requested by then. What a response has shown counts as acknowledged, too:
//! times of scans and points of players only grow.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clqd::api::{ErrorCode, Request, requests};
use clqd::client::{Client, ClientError};
use clqd::fleet::Fleet;
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::model::ServerUrl;
use clqd::model::commit::WeekPhase;
use clqd::model::row::Ranking;
use clqd::view::board::PlayerSelector;

use crate::sandbox::{Sandbox, closed_port_url, copy, wait_until};

/// The game and the closed weeks of `tests/fixtures/scan-log.jsonl`.
const GAME: &str = "baseq3";
pub const CLOSED_WEEKS: [&str; 2] = ["2025-W47", "2025-W48"];

/// Backups of one run.
pub const BACKUPS_MAX: usize = 2;

/// A moment, such as the number of writes and flushes of a disk before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub usize);

/// Writes the state of two closed weeks.
pub fn prepare(state: &Path) {
    let sandbox = Sandbox::new("");
    // The servers of the log do not exist.
    sandbox.configure_scan("opt_out = [\"127.0.0.0/8\"]", "[clock]\nsynchronised = \"always\"");
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl");
    sandbox.ok(["replay".as_ref(), log.as_ref(), "--state".as_ref(), sandbox.state().as_os_str()]);
    let daemon = sandbox.start();
    wait_until("the weeks are closed", || {
        let status = sandbox.status();
        let weeks = status["engine"]["weeks"].as_array().expect("weeks");
        CLOSED_WEEKS.iter().all(|label| weeks.iter().any(|it| it["week"] == *label && it["phase"] == "closed"))
    });
    daemon.stop();
    copy(&sandbox.state(), state);
}

/// Something that a client changes, and that has one value at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// Whether a server is listed.
    Listed(String),
    Tags(String),
    GreylistReason(String),
    /// The key that a name leads to.
    Player(String),
    /// Whether a week is closed.
    Week(String),
    /// What a backup contains: the export of a week.
    Backup(String),
}

const ABSENT: &str = "absent";

struct Change {
    value: String,
    requested: Position,
    acknowledged: Option<Position>,
}

/// A value that only grows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Growing {
    LastScan(String),
    LastSeen(String),
    /// Points by server, week and player key.
    Points(String, String, u32),
}

#[derive(Default)]
pub struct History {
    /// In order of time; the first is the value at the beginning.
    changes: BTreeMap<Subject, Vec<Change>>,
    growing: BTreeMap<Growing, Vec<(Position, f64)>>,
    /// Values that were read after the last change. A read may show what is not on disk yet; the response to
    /// a later change acknowledges it.
    read: Vec<(Growing, f64)>,
    /// Positions after each response to a change.
    pub responses: Vec<Position>,
}

impl History {
    /// The values that a subject may have after a cut.
    fn possible(changes: &[Change], cut: Position) -> BTreeSet<&str> {
        let mut possible = BTreeSet::new();
        for change in changes {
            if change.acknowledged.is_some_and(|position| position <= cut) {
                possible.clear();
                possible.insert(change.value.as_str());
            } else if change.requested <= cut {
                possible.insert(change.value.as_str());
            }
        }
        possible
    }

    /// Number of changes that had been acknowledged at a cut.
    pub fn acknowledged(&self, cut: Position) -> usize {
        self.responses.iter().filter(|&&position| position <= cut).count()
    }

    /// Compares a daemon that was started after a cut. Returns what is lost.
    pub fn losses(&self, sandbox: &Sandbox, client: &mut Client, cut: Position) -> Vec<String> {
        let mut losses = Vec::new();
        let now = Snapshot::read(client).expect("a response");
        for (subject, changes) in &self.changes {
            let possible = History::possible(changes, cut);
            // A backup that is being written is of no use, but does no harm.
            if matches!(subject, Subject::Backup(_)) && (possible.len() > 1 || possible.contains(ABSENT)) {
                continue;
            }
            let found = now.find(subject, sandbox, client).expect("a response");
            if !possible.contains(found.as_str()) {
                losses.push(format!("{subject:?} is {found:.200}, not one of {possible:.200?}"));
            }
        }
        let listed = now.servers.keys().filter(|url| !self.changes.contains_key(&Subject::Listed((*url).clone())));
        losses.extend(listed.map(|url| format!("{url} is listed and was never added")));

        let mut tops = BTreeMap::new();
        for (what, values) in &self.growing {
            let acknowledged = values.iter().filter(|(position, _)| *position <= cut).map(|&(_, value)| value);
            let Some(least) = acknowledged.reduce(f64::max) else { continue };
            let server = |url: &String| now.servers.get(url);
            let found = match what {
                Growing::LastScan(url) => server(url).and_then(|it| it.public.last_scan_ms).map(|ms| ms as f64),
                Growing::LastSeen(url) => server(url).and_then(|it| it.public.last_seen_ms).map(|ms| ms as f64),
                Growing::Points(url, week, player) => tops
                    .entry((url.clone(), week.clone()))
                    .or_insert_with(|| points(client, url, Some(week)).expect("a response").unwrap_or_default().1)
                    .get(player)
                    .copied(),
            };
            if found.is_none_or(|found| found < least) {
                losses.push(format!("{what:?} is {found:?}, and was {least}"));
            }
        }
        losses
    }
}

/// The list of servers and the phases of weeks.
struct Snapshot {
    servers: BTreeMap<String, clqd::view::ServerSummary>,
    closed: BTreeMap<String, bool>,
}

impl Snapshot {
    fn read(client: &mut Client) -> Result<Snapshot, ClientError> {
        let list = client.lines(&requests::ServersList { filter: Default::default() })?;
        let servers = list.into_iter().map(|server| (server.public.url.clone(), server)).collect();
        let status = client.lines(&requests::Status {})?.pop().expect("a status");
        let closed = status.engine.weeks.iter().map(|week| (week.week.clone(), week.phase == WeekPhase::Closed));
        Ok(Snapshot { servers, closed: closed.collect() })
    }

    /// The value of any subject.
    fn find(&self, subject: &Subject, sandbox: &Sandbox, client: &mut Client) -> Result<String, ClientError> {
        match subject {
            Subject::Backup(dir) => Ok(export_of_backup(sandbox, dir)),
            Subject::Player(name) => resolve(client, name),
            _ => Ok(self.value(subject)),
        }
    }

    fn value(&self, subject: &Subject) -> String {
        let (url, value): (_, fn(&clqd::view::ServerSummary) -> String) = match subject {
            Subject::Listed(url) => (url, |_| "listed".to_owned()),
            Subject::Tags(url) => (url, |server| server.public.tags.join(",")),
            Subject::GreylistReason(url) => (url, |server| format!("{:?}", server.greylist_reason)),
            Subject::Week(week) => {
                return match self.closed.get(week) {
                    Some(true) => "closed".to_owned(),
                    Some(false) => "open".to_owned(),
                    None => ABSENT.to_owned(),
                };
            }
            Subject::Player(_) | Subject::Backup(_) => unreachable!("the list of servers does not contain it"),
        };
        self.servers.get(url).map_or_else(|| ABSENT.to_owned(), value)
    }
}

/// The key that a name leads to.
fn resolve(client: &mut Client, name: &str) -> Result<String, ClientError> {
    let players = match client.lines(&requests::Player { name: name.to_owned() }) {
        Err(ClientError::Failure(error)) if error.code == ErrorCode::NotFound => return Ok(ABSENT.to_owned()),
        players => players?,
    };
    let player = players.iter().find(|player| player.game == GAME);
    Ok(player.map_or_else(|| ABSENT.to_owned(), |player| format!("player {}", player.player_key)))
}

/// A week, and the points of players by key.
type Points = (String, BTreeMap<u32, f64>);

/// The week and the points of all players of a server.
fn points(client: &mut Client, url: &str, week: Option<&str>) -> Result<Option<Points>, ClientError> {
    let server = ServerUrl::parse(url).expect("a URL");
    let week = week.map(str::to_owned);
    let request = requests::Top { server, ranking: Ranking::Points, week, count: 10_000 };
    match client.lines(&request) {
        // Nobody has points yet.
        Err(ClientError::Failure(error)) if error.code == ErrorCode::NotFound => Ok(None),
        tops => {
            let top = tops?.pop().expect("a top list");
            Ok(Some((top.week, top.rows.into_iter().map(|row| (row.player_key, row.score)).collect())))
        }
    }
}

fn export_of_backup(sandbox: &Sandbox, dir: &str) -> String {
    let export = sandbox.run(["export", "--state", dir, "--week", CLOSED_WEEKS[1]]);
    match export.status.success() {
        true => export.out,
        false => format!("{}: {}", export.status, export.err),
    }
}

/// The present position.
type Now<'a> = Box<dyn Fn() -> Position + 'a>;

/// A client of a daemon.
pub struct Load<'a> {
    sandbox: &'a Sandbox,
    now: Now<'a>,
    client: Client,
    history: History,
    rng: SplitMix64,
    /// Servers of the fleet that are not added yet.
    not_added: Vec<String>,
    added: Vec<String>,
    /// Addresses without a listener: one is greylisted again and again, one is removed.
    greylist_url: String,
    removal_url: String,
    /// Players whom no server lists any more.
    names: Vec<String>,
    backups: usize,
}

impl<'a> Load<'a> {
    pub fn new(sandbox: &'a Sandbox, now: Now<'a>, client: Client, fleet: &Fleet, rng: SplitMix64) -> Load<'a> {
        let mut load = Load {
            sandbox,
            now,
            client,
            history: History::default(),
            rng,
            not_added: fleet.urls(),
            added: Vec::new(),
            greylist_url: closed_port_url(),
            removal_url: closed_port_url(),
            names: Vec::new(),
            backups: 0,
        };
        load.note_beginning();
        load
    }

    fn note_beginning(&mut self) {
        let now = Snapshot::read(&mut self.client).expect("a response");
        let urls = self.not_added.iter().chain([&self.greylist_url, &self.removal_url]).chain(now.servers.keys());
        let mut subjects: Vec<Subject> = CLOSED_WEEKS.map(|week| Subject::Week(week.to_owned())).to_vec();
        for url in urls {
            subjects
                .extend([Subject::Listed, Subject::Tags, Subject::GreylistReason].map(|subject| subject(url.clone())));
        }
        for subject in subjects {
            let value = now.value(&subject);
            self.begin(subject, value);
        }
        let mut names = BTreeSet::new();
        for week in CLOSED_WEEKS {
            for row in self.client.lines(&requests::Export { week: week.to_owned() }).expect("an export") {
                // No player of the fleet has such a name.
                let is_numbered = row.player.strip_prefix('p').is_some_and(|rest| rest.parse::<u32>().is_ok());
                names.extend((is_numbered && row.game == GAME).then_some(row.player));
            }
        }
        for name in names {
            let value = resolve(&mut self.client, &name).expect("a response");
            self.begin(Subject::Player(name.clone()), value);
            self.names.push(name);
        }
        // Several loads after each other forget and merge some of them.
        assert!(self.names.len() > 2, "the fixture has players: {:?}", self.names);
    }

    /// Continues with a daemon that was started after a kill. Returns what is lost.
    pub fn reconnect(&mut self, mut client: Client) -> Vec<String> {
        self.history.read.clear();
        let losses = self.history.losses(self.sandbox, &mut client, (self.now)());
        let now = Snapshot::read(&mut client).expect("a response");
        self.history.changes.retain(|subject, _| match subject {
            // It was compared.
            Subject::Backup(dir) => {
                _ = std::fs::remove_dir_all(dir);
                false
            }
            _ => true,
        });
        self.backups = 0;
        for (subject, changes) in &mut self.history.changes {
            let value = now.find(subject, self.sandbox, &mut client).expect("a response");
            let requested = (self.now)();
            *changes = vec![Change { value, requested, acknowledged: Some(requested) }];
        }
        self.client = client;
        losses
    }

    fn begin(&mut self, subject: Subject, value: String) {
        let beginning = Position(0);
        let change = Change { value, requested: beginning, acknowledged: Some(beginning) };
        self.history.changes.insert(subject, vec![change]);
    }

    /// Number of acknowledged changes.
    pub fn changes(&self) -> usize {
        self.history.responses.len()
    }

    pub fn finish(self) -> History {
        self.history
    }

    /// The value after the last change.
    fn value(&self, subject: &Subject) -> &str {
        &self.history.changes[subject].last().expect("at least the value at the beginning").value
    }

    /// Sends a request that gives these subjects these values.
    fn change<R: Request>(&mut self, request: &R, values: Vec<(Subject, String)>) -> Result<(), ClientError> {
        let requested = (self.now)();
        let shown_before = std::mem::take(&mut self.history.read);
        let response = self.client.lines(request);
        let acknowledged = response.is_ok().then(|| (self.now)());
        for (subject, value) in values {
            self.history.changes.entry(subject).or_default().push(Change { value, requested, acknowledged });
        }
        self.history.responses.extend(acknowledged);
        for (what, value) in shown_before {
            self.history.growing.entry(what).or_default().extend(acknowledged.map(|position| (position, value)));
        }
        response.map(|_| ())
    }

    /// Sends one or two requests.
    pub fn step(&mut self) -> Result<(), ClientError> {
        match self.rng.below(16) {
            0..3 => self.add(),
            3..5 if !self.added.is_empty() => self.tag(),
            5..7 => self.greylist(),
            7..9 => self.toggle_presence(),
            9 => self.forget(),
            10 => self.merge(),
            11 if self.backups < BACKUPS_MAX => self.back_up(),
            12 => self.reopen(),
            13 if !self.added.is_empty() => self.read_points(),
            _ => self.read_servers(),
        }
    }

    fn add(&mut self) -> Result<(), ClientError> {
        let Some(url) = self.not_added.pop() else { return self.read_servers() };
        let request = requests::ServersAdd { urls: vec![url.clone()], tags: vec!["power".to_owned()], import: false };
        let values = vec![
            (Subject::Listed(url.clone()), "listed".to_owned()),
            (Subject::Tags(url.clone()), "power".to_owned()),
            (Subject::GreylistReason(url.clone()), format!("{:?}", None::<String>)),
        ];
        self.change(&request, values)?;
        self.added.push(url);
        Ok(())
    }

    fn tag(&mut self) -> Result<(), ClientError> {
        let url = self.added[self.rng.below(self.added.len())].clone();
        let subject = Subject::Tags(url.clone());
        // The daemon lists tags in the order in which they were added.
        let mut tags: Vec<String> = self.value(&subject).split(',').map(str::to_owned).collect();
        let tag = format!("tag{}", self.rng.below(4));
        let urls = vec![ServerUrl::parse(&url).expect("a URL")];
        let (add, remove) = match tags.iter().position(|it| *it == tag) {
            Some(index) => (Vec::new(), vec![tags.remove(index)]),
            None => {
                tags.push(tag.clone());
                (vec![tag], Vec::new())
            }
        };
        let request = requests::ServersTag { urls, add, remove };
        let value = tags.join(",");
        self.change(&request, vec![(subject, value)])
    }

    fn greylist(&mut self) -> Result<(), ClientError> {
        let url = self.greylist_url.clone();
        let subject = Subject::GreylistReason(url.clone());
        let none = format!("{:?}", None::<String>);
        if self.value(&subject) == ABSENT {
            let values = vec![
                (Subject::Listed(url.clone()), "listed".to_owned()),
                (Subject::Tags(url.clone()), String::new()),
                (subject.clone(), none.clone()),
            ];
            self.change(&requests::ServersAdd { urls: vec![url.clone()], tags: Vec::new(), import: false }, values)?;
        }
        let reason = (self.value(&subject) == none).then(|| format!("reason {}", self.rng.bits()));
        let value = format!("{reason:?}");
        let request = requests::Greylist { url: ServerUrl::parse(&url).expect("a URL"), reason };
        self.change(&request, vec![(subject, value)])
    }

    fn toggle_presence(&mut self) -> Result<(), ClientError> {
        let urls = vec![self.removal_url.clone()];
        let [listed, tags, reason] =
            [Subject::Listed, Subject::Tags, Subject::GreylistReason].map(|subject| subject(self.removal_url.clone()));
        let is_absent = self.value(&listed) == ABSENT;
        let subjects = [listed, tags, reason].into_iter();
        if is_absent {
            let values = ["listed".to_owned(), String::new(), format!("{:?}", None::<String>)];
            let request = requests::ServersAdd { urls, tags: Vec::new(), import: false };
            self.change(&request, subjects.zip(values).collect())
        } else {
            let values = [ABSENT; 3].map(str::to_owned);
            self.change(&requests::ServersRemove { urls }, subjects.zip(values).collect())
        }
    }

    fn forget(&mut self) -> Result<(), ClientError> {
        let Some(name) = self.take_name() else { return self.read_servers() };
        let request = requests::PlayerForget { player: PlayerSelector::Name(name.clone()), game: GAME.to_owned() };
        self.change(&request, vec![(Subject::Player(name), ABSENT.to_owned())])
    }

    fn merge(&mut self) -> Result<(), ClientError> {
        let (Some(from), Some(into)) = (self.take_name(), self.take_name()) else { return self.read_servers() };
        let key = self.value(&Subject::Player(into.clone())).to_owned();
        let [from_player, into_player] = [from.clone(), into].map(PlayerSelector::Name);
        let request = requests::PlayerMerge { from: from_player, into: into_player, game: GAME.to_owned() };
        self.change(&request, vec![(Subject::Player(from), key)])
    }

    /// A name that no request has changed.
    fn take_name(&mut self) -> Option<String> {
        match self.names.len() {
            0 => None,
            count => Some(self.names.swap_remove(self.rng.below(count))),
        }
    }

    fn back_up(&mut self) -> Result<(), ClientError> {
        self.backups += 1;
        let dir = self.sandbox.state().with_file_name(format!("backup-{}", self.backups));
        let dir = dir.to_str().expect("UTF-8").to_owned();
        let subject = Subject::Backup(dir.clone());
        self.begin(subject.clone(), ABSENT.to_owned());
        self.change(&requests::Backup { dir: dir.clone() }, vec![(subject.clone(), String::new())])?;
        let export = export_of_backup(self.sandbox, &dir);
        assert!(export.lines().count() > 10, "the backup {dir}: {export}");
        self.history.changes.get_mut(&subject).expect("a backup").last_mut().expect("a change").value = export;
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), ClientError> {
        let week = CLOSED_WEEKS[self.rng.below(2)].to_owned();
        let request = requests::WeekReopen { week: week.clone() };
        self.change(&request, vec![(Subject::Week(week), "open".to_owned())])
    }

    fn read_points(&mut self) -> Result<(), ClientError> {
        let url = self.added[self.rng.below(self.added.len())].clone();
        let Some((week, points)) = points(&mut self.client, &url, None)? else { return Ok(()) };
        for (player, points) in points {
            self.history.read.push((Growing::Points(url.clone(), week.clone(), player), points));
        }
        Ok(())
    }

    fn read_servers(&mut self) -> Result<(), ClientError> {
        let now = Snapshot::read(&mut self.client)?;
        for url in &self.added {
            let server = &now.servers[url];
            let times = [
                (Growing::LastScan(url.clone()), server.public.last_scan_ms),
                (Growing::LastSeen(url.clone()), server.public.last_seen_ms),
            ];
            for (what, ms) in times {
                self.history.read.extend(ms.map(|ms| (what, ms as f64)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_change_may_have_either_value() {
        let change = |value: &str, requested, acknowledged: Option<usize>| Change {
            value: value.to_owned(),
            requested: Position(requested),
            acknowledged: acknowledged.map(Position),
        };
        let changes = [change("a", 0, Some(0)), change("b", 3, Some(5)), change("c", 8, Some(9))];
        let possible = |cut| History::possible(&changes, Position(cut)).into_iter().collect::<String>();
        assert_eq!([2, 3, 4, 5, 7, 8, 9].map(possible), ["a", "ab", "ab", "b", "b", "bc", "c"]);
    }
}
