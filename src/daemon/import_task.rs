//! The `[[import]]` sections of the configuration: lists of master servers and websites, fetched
//! at regular intervals. A task for each; the servers are added like those of `clqd servers import`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::engine_thread::EngineHandle;
use super::list_lengths::ListLengths;
use super::section_tasks::SectionTasks;
use super::views::Views;
use crate::api::requests::{ChangeOutcome, ServersAdd};
use crate::api::{ApiError, URLS_PER_REQUEST_MAX};
use crate::config::{Config, ImportConfig};
use crate::master::{AddressRules, Selection, fetch, user_agent};
use crate::model::ServerUrl;

/// Time from the start, or from a reload, to the first import of a section, and between the
/// first imports of two sections. A daemon that is restarted repeatedly does not query
/// masters each time.
const FIRST_DELAY: Duration = Duration::from_secs(10);

/// The running imports. Dropping them stops them.
#[derive(Debug)]
pub(super) struct ImportTasks {
    tasks: SectionTasks<Import>,
    context: Context,
}

/// What the tasks use.
#[derive(Clone, Debug)]
struct Context {
    engine: EngineHandle,
    views: Arc<Views>,
    lengths: Arc<Mutex<ListLengths>>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
struct Import {
    config: ImportConfig,
    rules: AddressRules,
    user_agent: String,
}

impl ImportTasks {
    pub(super) fn new(state_dir: &Path, engine: EngineHandle, views: Arc<Views>) -> ImportTasks {
        let lengths = Arc::new(Mutex::new(ListLengths::open(state_dir)));
        ImportTasks { tasks: SectionTasks::default(), context: Context { engine, views, lengths } }
    }

    /// Starts and stops imports so that exactly those of the configuration run. Unchanged ones
    /// continue. Must be called inside a tokio runtime.
    pub(super) fn apply(&mut self, config: &Config) {
        let import = |section: &ImportConfig| Import {
            config: section.clone(),
            rules: AddressRules { servers_max: section.servers_max, ..config.address_rules() },
            user_agent: user_agent(&config.scan.contact),
        };
        let mut first_delay = FIRST_DELAY;
        let context = &self.context;
        self.tasks.apply(config.import.iter().map(import), |import| {
            let task = tokio::spawn(run(import.clone(), first_delay, context.clone()));
            first_delay += FIRST_DELAY;
            task
        });
    }

    pub(super) fn stop(&mut self) {
        self.tasks.stop();
    }
}

async fn run(import: Import, first_delay: Duration, context: Context) {
    tokio::time::sleep(first_delay).await;
    loop {
        import_once(&import, &context).await;
        tokio::time::sleep(Duration::from_secs(import.config.every_s)).await;
    }
}

/// Imports the list once and logs the result.
async fn import_once(import: &Import, Context { engine, views, lengths }: &Context) {
    let Import { config, rules, user_agent } = import;
    let master = &config.master;
    let list = match fetch(master, user_agent, |_| ()).await {
        Ok(list) => list,
        Err(error) => {
            let error = anyhow::Error::new(error);
            return tracing::warn!(%master, "import of servers failed: {error:#}");
        }
    };
    for text in &list.invalid {
        tracing::debug!(%master, text, "not an address with a port");
    }
    let selection = match Selection::new(list.with_scheme(config.scheme.as_deref()), rules) {
        Ok(selection) => selection,
        Err(error) => return tracing::error!(%master, "import of servers failed: {error}"),
    };
    let servers = selection.urls.len();
    let urls = selection.urls.clone();
    let Ok(known) = views.read(move |view| view.model().count_known(&urls)).await else { return };
    let checked = lengths.lock().expect("nobody panics with the lock").check(master, servers, known);
    if let Err(last) = checked {
        return tracing::warn!(
            %master,
            servers,
            last,
            "the list is more than ten times as long as the last one, so it is not imported; if it is right, accept it: \
             clqd servers import --master URL --force"
        );
    }
    let added = match add(&selection.urls, &config.tags, engine).await {
        Some(Ok(added)) => added,
        Some(Err(error)) => return tracing::warn!(%master, "import of servers failed: {error}"),
        // The daemon is stopping.
        None => return,
    };
    lengths.lock().expect("nobody panics with the lock").set(master, servers, list.is_complete);
    let dropped = if selection.dropped.is_empty() { "none".to_owned() } else { selection.dropped.to_string() };
    tracing::info!(
        %master,
        new = added.new,
        known = added.known,
        refused = added.refused + list.invalid.len() as u64,
        dropped,
        incomplete = !list.is_complete,
        scans_requested = added.scans_requested,
        not_answering = added.not_answering,
        "servers imported"
    );
}

#[derive(Debug, Default)]
struct AddedCounts {
    new: u64,
    known: u64,
    /// Known servers that do not answer: those that are scanned now, and the others.
    scans_requested: u64,
    not_answering: u64,
    refused: u64,
}

/// Adds the servers. `None`: the engine thread has ended.
async fn add(urls: &[ServerUrl], tags: &[String], engine: &EngineHandle) -> Option<Result<AddedCounts, ApiError>> {
    let mut counts = AddedCounts::default();
    for chunk in urls.chunks(URLS_PER_REQUEST_MAX) {
        let urls = chunk.iter().map(ServerUrl::to_string).collect();
        let request = ServersAdd { urls, tags: tags.to_vec(), import: true };
        let changes = match engine.change(request).await.ok()? {
            Ok(changes) => changes,
            Err(error) => return Some(Err(error)),
        };
        for change in changes {
            match change.outcome {
                ChangeOutcome::Added | ChangeOutcome::Restored => counts.new += 1,
                ChangeOutcome::Refused => {
                    counts.refused += 1;
                    tracing::debug!(url = change.url, reason = change.reason, "imported server refused");
                }
                outcome => {
                    counts.known += 1;
                    counts.scans_requested += u64::from(outcome == ChangeOutcome::ScanRequested);
                    counts.not_answering += u64::from(outcome == ChangeOutcome::NotAnswering);
                }
            }
        }
    }
    Some(Ok(counts))
}
