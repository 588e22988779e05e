//! Requests that change servers. The answer says for each server what happened to it, and the log
//! has one line for each request that changed something.

use super::EngineThread;
use super::change::{Change, ChangeError};
use crate::api::requests::{
    Boost, ChangeOutcome, Greylist, ServerChange, ServersAdd, ServersBudget, ServersRemove, ServersTag, ServersTrust,
};
use crate::engine::{Added, AdminError, Boosted, Greylisted, KnownScan};
use crate::model::calendar::{DAY_MS, HOUR_MS, utc};
use crate::model::server::ScreenReason;
use crate::model::{AdminCommand, ScanBudget, ServerKey, ServerUrl};

/// A server that never answered is not imported again for this time after its last scan.
const FORGOTTEN_MS: i64 = 30 * DAY_MS;

/// Silent servers that are removed at once: some milliseconds.
const SILENT_REMOVED_MAX: usize = 500;

impl Change for ServersAdd {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Vec<ServerChange>, ChangeError> {
        let ServersAdd { urls, tags, import } = self;
        let t_ms = thread.begin_command(now_ms);
        let changes: Vec<ServerChange> = urls.iter().map(|url| thread.add(url, tags, *import, t_ms)).collect();
        let count = |wanted| changes.iter().filter(|change| change.outcome == wanted).count();
        let outcomes = [ChangeOutcome::Added, ChangeOutcome::Restored, ChangeOutcome::Tagged];
        let [added, restored, tagged] = outcomes.map(count);
        if let Some(servers) = list_servers(&changes, &outcomes) {
            tracing::info!(servers, added, restored, tagged, tags = tags.join(", "), "servers added");
        }
        if let Some(servers) = list_servers(&changes, &[ChangeOutcome::ScanRequested]) {
            tracing::info!(servers, "servers that do not answer were added again and are scanned");
        }
        Ok(changes)
    }
}

impl Change for ServersRemove {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Vec<ServerChange>, ChangeError> {
        let t_ms = thread.begin_command(now_ms);
        Ok(self.urls.iter().map(|url| thread.remove_server(url, t_ms)).collect())
    }
}

impl Change for ServersTag {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Vec<ServerChange>, ChangeError> {
        let ServersTag { urls, add, remove } = self;
        let t_ms = thread.begin_command(now_ms);
        let changes: Vec<ServerChange> = urls.iter().map(|url| thread.tag(url, add, remove, t_ms)).collect();
        if let Some(servers) = list_servers(&changes, &[ChangeOutcome::Tagged]) {
            tracing::info!(servers, add = add.join(", "), remove = remove.join(", "), "tags of servers changed");
        }
        Ok(changes)
    }
}

impl EngineThread {
    fn add(&mut self, text: &str, tags: &[String], import: bool, t_ms: i64) -> ServerChange {
        let refuse = |reason: String| change(text, ChangeOutcome::Refused, Some(reason));
        let url = match crate::proto::parse_server_url(text) {
            Ok(url) => url,
            Err(error) => return refuse(error.to_string()),
        };
        if url.ip().is_some_and(|ip| !self.allow_private && !crate::scan::is_public(ip)) {
            return refuse("the address is not a public one (setting scan.allow_private)".to_owned());
        }
        let is_listed = |url: &ServerUrl| self.state.engine.model().is_listed(url);
        if let Some(same) = crate::proto::same_server(&url).find(is_listed).filter(|_| !is_listed(&url)) {
            let remove = format!("clqd servers remove {same}");
            return refuse(format!("it is known as {same}; to change its protocol, remove that first: {remove}"));
        }
        if import && self.state.engine.model().was_removed_silent(&url, t_ms - FORGOTTEN_MS) {
            let reason = "it never answered and was removed; imports add it again 30 days after its last scan";
            return change(url, ChangeOutcome::NotAnswering, Some(reason.to_owned()));
        }
        let (key, added) = match self.state.engine.add_server(url.clone(), tags.to_vec(), t_ms) {
            Ok(added) => added,
            Err(error) => return refuse(error.to_string()),
        };
        if self.state.engine.mark_imported(key, added, import) {
            self.record_command(t_ms, AdminCommand::Add { server: url.clone(), tags: tags.to_vec(), import });
        }
        match added {
            Added::New => change(url, ChangeOutcome::Added, None),
            Added::Restored => change(url, ChangeOutcome::Restored, None),
            Added::AlreadyKnown { tags_added, scan } => {
                let tags = tags_added.then(|| self.describe_tags(&url));
                known_change(&url, tags, scan)
            }
        }
    }

    fn set_budget(&mut self, url: &ServerUrl, budget: Option<ScanBudget>, t_ms: i64) -> ServerChange {
        match self.state.engine.set_scan_budget(url, budget) {
            Ok(true) => {
                self.record_command(t_ms, AdminCommand::Budget { server: url.clone(), budget });
                change(url, ChangeOutcome::BudgetSet, Some(describe_budget(budget)))
            }
            Ok(false) => change(url, ChangeOutcome::Unchanged, Some(describe_budget(budget))),
            Err(error) => change(url, ChangeOutcome::NotFound, Some(error.to_string())),
        }
    }

    /// Removes servers of imports that have not answered for so long. They are looked for once an hour.
    pub(super) fn remove_silent_imports(&mut self, now_ms: i64) {
        // The clock may have been set back.
        let waits = (self.silent_removed_ms..self.silent_removed_ms + HOUR_MS).contains(&now_ms);
        if self.forget_silent_days == 0 || waits {
            return;
        }
        let until_ms = now_ms - i64::from(self.forget_silent_days) * DAY_MS;
        let silent = self.state.engine.model().silent_imports(until_ms, SILENT_REMOVED_MAX);
        // More of them are removed at the next tick.
        self.silent_removed_ms = if silent.len() < SILENT_REMOVED_MAX { now_ms } else { self.silent_removed_ms };
        if silent.is_empty() {
            return;
        }
        let (t_ms, servers) = (self.begin_command(now_ms), silent.len());
        for server in silent {
            let Ok(key) = self.state.engine.remove_server(&self.state.store, &server) else { continue };
            self.rescans.cancel(key);
            self.record_command(t_ms, AdminCommand::Remove { server });
        }
        tracing::info!(servers, "imported servers that never answered were removed");
    }

    /// Removes servers that are known under two protocols with the same wire format: earlier versions added them
    /// twice, and their players were counted twice. The one that was added first stays.
    pub(super) fn remove_servers_known_twice(&mut self, now_ms: i64) {
        let engine = &self.state.engine;
        let later = |url: &ServerUrl| {
            let added_ms = engine.model().added_ms(url)?;
            let is_earlier = |same: &ServerUrl| {
                engine
                    .model()
                    .added_ms(same)
                    .is_some_and(|other_ms| (other_ms, same.as_str()) < (added_ms, url.as_str()))
            };
            crate::proto::same_server(url).find(is_earlier).map(|same| (url.clone(), same))
        };
        let urls = (0..engine.model().next_server().0).filter_map(|server| engine.model().url_of(ServerKey(server)));
        let twice: Vec<(ServerUrl, ServerUrl)> = urls.filter_map(later).collect();
        for (url, same) in twice {
            let t_ms = self.begin_command(now_ms);
            tracing::warn!("{url} is the same server as {same}, so it is removed; its history is kept");
            self.remove_server(url.as_str(), t_ms);
        }
    }

    fn remove_server(&mut self, text: &str, t_ms: i64) -> ServerChange {
        let url = match ServerUrl::parse(text) {
            Ok(url) => url,
            Err(error) => return change(text, ChangeOutcome::Refused, Some(error.to_string())),
        };
        match self.state.engine.remove_server(&self.state.store, &url) {
            Ok(server) => {
                // Its scans are no longer reported.
                self.rescans.cancel(server);
                tracing::info!(%url, "server removed");
                self.record_command(t_ms, AdminCommand::Remove { server: url.clone() });
                change(url, ChangeOutcome::Removed, None)
            }
            Err(error) => not_changed(url, error),
        }
    }

    fn tag(&mut self, url: &ServerUrl, add: &[String], remove: &[String], t_ms: i64) -> ServerChange {
        match self.state.engine.tag_server(url, add, remove) {
            Ok(true) => {
                let [add, remove] = [add, remove].map(<[String]>::to_vec);
                self.record_command(t_ms, AdminCommand::Tag { server: url.clone(), add, remove });
                change(url, ChangeOutcome::Tagged, Some(self.describe_tags(url)))
            }
            Ok(false) => {
                let has = (!add.is_empty()).then(|| format!("it has {} already", tag_list(add)));
                let lacks = (!remove.is_empty()).then(|| format!("it does not have {}", tag_list(remove)));
                let reason: Vec<String> = has.into_iter().chain(lacks).collect();
                change(url, ChangeOutcome::Unchanged, Some(reason.join(", and ")))
            }
            Err(error) => not_changed(url, error),
        }
    }

    /// `it has the tags ctf, duel`
    fn describe_tags(&self, url: &ServerUrl) -> String {
        match &self.state.engine.model().tags_of(url)[..] {
            [] => "it has no tags".to_owned(),
            tags => format!("it has {}", tag_list(tags)),
        }
    }
}

impl Change for Greylist {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<ServerChange, ChangeError> {
        let url = &self.url;
        let t_ms = thread.begin_command(now_ms);
        let done = thread.state.engine.greylist(&thread.state.store, url, self.reason.clone())?;
        let (outcome, reason) = match (done, self.reason.as_deref()) {
            (Greylisted::Changed, Some(reason)) => {
                tracing::info!(%url, reason, "server greylisted");
                thread.record_command(t_ms, AdminCommand::Greylist { server: url.clone(), reason: reason.to_owned() });
                (ChangeOutcome::Greylisted, Some(reason))
            }
            (Greylisted::Changed, None) => {
                tracing::info!(%url, "server removed from the greylist");
                thread.record_command(t_ms, AdminCommand::Lift { server: url.clone() });
                (ChangeOutcome::Lifted, None)
            }
            (Greylisted::Unchanged, Some(_)) => {
                (ChangeOutcome::Unchanged, Some("it is greylisted already, for the same reason"))
            }
            (Greylisted::Unchanged, None) => (ChangeOutcome::Unchanged, Some("it is not greylisted")),
        };
        Ok(change(url, outcome, reason.map(str::to_owned)))
    }
}

impl Change for Boost {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<ServerChange, ChangeError> {
        let Boost { url, for_s } = self;
        let (outcome, reason) = match thread.state.engine.boost(url, *for_s, now_ms)? {
            Boosted::Until(until_ms) => {
                let until = utc(until_ms);
                tracing::info!(%url, for_s, until, "server boosted");
                (ChangeOutcome::Boosted, Some(format!("until {until}")))
            }
            Boosted::Ended => {
                tracing::info!(%url, "boost of a server ended");
                (ChangeOutcome::BoostEnded, None)
            }
            Boosted::WasNotBoosted => (ChangeOutcome::Unchanged, Some("it is not boosted".to_owned())),
        };
        Ok(change(url, outcome, reason))
    }
}

impl Change for ServersTrust {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<ServerChange, ChangeError> {
        let ServersTrust { url, except, revoke } = self;
        let t_ms = thread.begin_command(now_ms);
        let changed = thread.state.engine.trust_server(url, except, revoke)?;
        let names = |reasons: &[ScreenReason]| reasons.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        let exempt = names(&thread.state.engine.model().exempt_checks(url));
        let now = if exempt.is_empty() { "all checks apply to it".to_owned() } else { format!("exempt from {exempt}") };
        if changed {
            tracing::info!(%url, except = names(except), revoke = names(revoke), "screening of a server changed");
            let [except, revoke] = [except, revoke].map(Vec::clone);
            thread.record_command(t_ms, AdminCommand::Trust { server: url.clone(), except, revoke });
        }
        let outcome = if changed { ChangeOutcome::Trusted } else { ChangeOutcome::Unchanged };
        Ok(change(url, outcome, Some(now)))
    }
}

impl Change for ServersBudget {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Vec<ServerChange>, ChangeError> {
        let t_ms = thread.begin_command(now_ms);
        let changes: Vec<ServerChange> =
            self.urls.iter().map(|url| thread.set_budget(url, self.budget, t_ms)).collect();
        if let Some(servers) = list_servers(&changes, &[ChangeOutcome::BudgetSet]) {
            tracing::info!(servers, budget = describe_budget(self.budget), "budget of scans changed");
        }
        Ok(changes)
    }
}

fn describe_budget(budget: Option<ScanBudget>) -> String {
    budget.map_or_else(|| "as scan.budget says".to_owned(), |budget| budget.scans().to_string())
}

fn change(url: impl ToString, outcome: ChangeOutcome, reason: Option<String>) -> ServerChange {
    ServerChange { url: url.to_string(), outcome, reason }
}

/// A known server was added again. `tags`: those that it has now, if tags were added.
fn known_change(url: &ServerUrl, tags: Option<String>, scan: KnownScan) -> ServerChange {
    let (outcome, mut reason) = match scan {
        KnownScan::AsPlanned => match tags {
            Some(tags) => return change(url, ChangeOutcome::Tagged, Some(tags)),
            None => (ChangeOutcome::Unchanged, "it is already known".to_owned()),
        },
        KnownScan::Requested => (ChangeOutcome::ScanRequested, "it is already known and does not answer".to_owned()),
        KnownScan::RequestedEarlier { next_scan_ms } => {
            let next = next_scan_ms.map_or_else(String::new, |t_ms| format!("the next one is at {}; ", utc(t_ms)));
            let reason = format!(
                "it is already known, and adding it again requested a scan less than a day ago; {next}scan it now with: \
                 clqd rescan {url}"
            );
            (ChangeOutcome::NotAnswering, reason)
        }
    };
    if let Some(tags) = tags {
        reason = format!("{tags}; {reason}");
    }
    change(url, outcome, Some(reason))
}

fn not_changed(url: impl ToString, error: AdminError) -> ServerChange {
    match error {
        AdminError::UnknownServer(_) => change(url, ChangeOutcome::NotFound, None),
        AdminError::RemovedServer(_) => change(url, ChangeOutcome::NotFound, Some("it was removed earlier".to_owned())),
        error => change(url, ChangeOutcome::Refused, Some(error.to_string())),
    }
}

/// `the tags ctf, duel`
fn tag_list(tags: &[String]) -> String {
    let noun = if tags.len() == 1 { "tag" } else { "tags" };
    format!("the {noun} {}", tags.join(", "))
}

/// The servers with these outcomes, for the log: `quake3://a:1 and 41 others`. `None`: there are none.
fn list_servers(changes: &[ServerChange], outcomes: &[ChangeOutcome]) -> Option<String> {
    let mut listed = changes.iter().filter(|change| outcomes.contains(&change.outcome));
    let first = listed.next()?;
    Some(match listed.count() {
        0 => first.url.clone(),
        1 => format!("{} and another", first.url),
        others => format!("{} and {others} others", first.url),
    })
}
