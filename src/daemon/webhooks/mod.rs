//! The `[[webhook]]` sections of the configuration: messages about servers and boards to Discord or to a program. A task for
//! each looks every [`LOOK_INTERVAL`] at its servers and boards, and sends in one message what has changed. What happens
//! while the daemon does not run is not told.
//!
//! - [`look`]: what has changed. - [`message`]: the text. - [`post`]: sends it.

mod look;
mod message;
mod post;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use self::look::{ClosedWeek, Happened, Leader, Look, Seen, Server};
use self::message::Sender;
use super::Shared;
use super::section_tasks::SectionTasks;
use crate::api::{ApiError, ErrorCode, ServerFilter, requests};
use crate::config::{Config, WebhookConfig, WebhookEvent};
use crate::master::user_agent;
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::model::server_page::ServerOrder;
use crate::model::shown_text::shown_name;
use crate::view::PublicServer;
use crate::view::board::{BoardAnswer, BoardEntryView, BoardQuery, BoardRow, BoardSelector, BoardsSelector};
use crate::web;

/// At most one message in this time: Discord allows 30 a minute.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The wait after a failed attempt: it doubles up to the largest.
const RETRY_MIN: Duration = Duration::from_secs(10);
const RETRY_MAX: Duration = Duration::from_secs(600);

/// A server is down after so many scans in a row without an answer.
const MISSES_DOWN: u32 = 3;

/// Most servers of a tag that are watched.
const SERVERS_MAX: u32 = 1_000;

/// Most events that wait while the receiver is away; the oldest are dropped.
const WAITING_MAX: usize = 100;

/// Of each ranking of a closed week.
const WINNERS: u32 = 3;

/// The running webhooks. Dropping them stops them.
#[derive(Debug)]
pub(super) struct Webhooks {
    tasks: SectionTasks<Webhook>,
    daemon: Weak<Shared>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
struct Webhook {
    config: WebhookConfig,
    site: String,
    public_url: Option<String>,
    user_agent: String,
}

impl Webhooks {
    pub(super) fn new(daemon: Weak<Shared>) -> Webhooks {
        Webhooks { tasks: SectionTasks::default(), daemon }
    }

    /// Starts and stops webhooks so that exactly those of the configuration run. Unchanged ones continue. Must be called
    /// inside a tokio runtime.
    pub(super) fn apply(&mut self, config: &Config) {
        let web = config.web_settings();
        let public_url = web.public_url.map(|url| url.to_string());
        let webhook = |section: &WebhookConfig| Webhook {
            config: section.clone(),
            site: web.identity.title.clone(),
            public_url: public_url.clone(),
            user_agent: user_agent(&config.scan.contact),
        };
        let daemon = &self.daemon;
        self.tasks
            .apply(config.webhook.iter().map(webhook), |webhook| tokio::spawn(run(webhook.clone(), daemon.clone())));
    }

    pub(super) fn stop(&mut self) {
        self.tasks.stop();
    }
}

async fn run(webhook: Webhook, shared: Weak<Shared>) {
    let (mut seen, mut waiting) = (Seen::default(), VecDeque::new());
    let (mut wait, mut not_before) = (RETRY_MIN, Instant::now());
    loop {
        // A daemon that stops drops what the task looks at.
        let Some(daemon) = shared.upgrade() else { return };
        let now_ms = daemon.clock.now_ms();
        match webhook.look(daemon.clone()).await {
            Ok(look) => {
                let down = look.servers.iter().filter(|server| server.is_down).count();
                let servers = look.servers.len();
                tracing::debug!(webhook = webhook.config.name, servers, down, "looked at");
                let mut happened = seen.look(look);
                for happened in &mut happened {
                    if let Happened::Closed(ClosedWeek { week, winners }) = happened {
                        *winners = webhook.winners(daemon.clone(), week).await;
                    }
                }
                webhook.keep(happened, &mut waiting);
            }
            Err(error) => tracing::debug!(webhook = webhook.config.name, "not looked at: {error}"),
        }
        drop(daemon);
        if !waiting.is_empty() && Instant::now() >= not_before {
            let events: Vec<Happened> = waiting.iter().cloned().collect();
            let (body, sent) = message::body(webhook.config.kind, &webhook.sender(), now_ms, &events);
            match post::post(&webhook.config.url, &webhook.user_agent, &body).await {
                Ok(()) => {
                    // The others are sent after the next look.
                    waiting.drain(..sent);
                    wait = RETRY_MIN;
                    tracing::debug!(webhook = webhook.config.name, events = sent, "sent");
                }
                Err(error) if error.is_temporary() => {
                    let pause = error.retry_after().unwrap_or(wait);
                    tracing::warn!(
                        webhook = webhook.config.name,
                        again_in_s = pause.as_secs(),
                        "a message could not be sent: {error}"
                    );
                    not_before = Instant::now() + pause;
                    wait = (wait * 2).min(RETRY_MAX);
                }
                Err(error) => {
                    tracing::error!(
                        webhook = webhook.config.name,
                        events = sent,
                        "a message was refused and is dropped: {error}; check webhook.url"
                    );
                    waiting.drain(..sent);
                }
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

impl Webhook {
    fn wants(&self, event: WebhookEvent) -> bool {
        self.config.events.contains(&event)
    }

    /// Adds what the webhook tells to what is to be sent.
    fn keep(&self, happened: Vec<Happened>, waiting: &mut VecDeque<Happened>) {
        waiting.extend(happened.into_iter().filter(|happened| self.wants(happened.event())));
        let dropped = waiting.len().saturating_sub(WAITING_MAX);
        if dropped > 0 {
            waiting.drain(..dropped);
            tracing::warn!(webhook = self.config.name, dropped, "too many events wait; the oldest are dropped");
        }
    }

    fn scope(&self) -> Scope {
        match (&self.config.tag, &self.config.game) {
            (Some(tag), _) => Scope::Tag(tag.clone()),
            (None, game) => Scope::Game(game.clone().unwrap_or_default()),
        }
    }

    fn sender(&self) -> Sender {
        let (scope, path) = match self.scope() {
            Scope::Tag(tag) => (shown_name(&tag), web::tag_path(&tag)),
            Scope::Game(game) => (web::plain_game(&game, None), web::game_path(&game)),
            Scope::Server(url) => (url.to_string(), String::new()),
        };
        Sender { site: self.site.clone(), public_url: self.public_url.clone(), scope, path }
    }

    /// Reads what the events of the webhook need.
    async fn look(&self, daemon: Arc<Shared>) -> Result<Look, ApiError> {
        let mut look = Look::default();
        if self.wants(WebhookEvent::ServerDown) || self.wants(WebhookEvent::ServerUp) {
            let filter = ServerFilter { tag: self.config.tag.clone(), ..ServerFilter::default() };
            let mut request = requests::ServersPage {
                filter,
                after: None,
                count: SERVERS_MAX,
                order: ServerOrder::Added,
                recent: false,
            };
            // A page examines some of the servers.
            loop {
                let page = daemon.clone().read(request.clone()).await?;
                request.count -= u32::try_from(page.servers.len()).unwrap_or(u32::MAX).min(request.count);
                // A server that has not answered yet is neither up nor down.
                let seen = page.servers.into_iter().filter(|server| server.public.last_seen_ms.is_some());
                look.servers.extend(seen.map(|server| watched(server.public)));
                request.after = page.next;
                if request.after.is_none() || request.count == 0 {
                    break;
                }
            }
        }
        if self.wants(WebhookEvent::WeekClosed) {
            let windows = daemon.clone().read(requests::Windows { bytes: false }).await?;
            look.closed = windows.iter().find(|window| window.is_closed_week()).map(|week| week.window.window.clone());
        }
        if self.wants(WebhookEvent::NewLeader) {
            let board = BoardSelector { scope: self.scope(), ranking: Ranking::Clq1, window: None, at_ms: None };
            let request = requests::Board { board, query: BoardQuery::Top { count: 1 } };
            look.leader = known(daemon.read(request).await)?.and_then(leader);
        }
        Ok(look)
    }

    /// The first players of a closed week; none if its boards cannot be read now.
    async fn winners(&self, daemon: Arc<Shared>, week: &str) -> Vec<(Ranking, Vec<String>)> {
        let boards = BoardsSelector { scope: self.scope(), window: Some(week.to_owned()), at_ms: None };
        let request = requests::Boards { boards, query: BoardQuery::Top { count: WINNERS } };
        let names = |board: BoardAnswer| {
            let names = entries(&board).map(|entry| shown_name(&entry.name)).collect();
            (board.head.ranking, names)
        };
        daemon.read(request).await.unwrap_or_default().into_iter().map(names).collect()
    }
}

/// `None`: no player has a row in the scope yet.
fn known<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Err(error) if error.code == ErrorCode::NotFound => Ok(None),
        answer => answer.map(Some),
    }
}

fn entries(board: &BoardAnswer) -> impl Iterator<Item = &BoardEntryView> {
    board.rows.iter().filter_map(|row| match row {
        BoardRow::Entry(entry) => Some(entry),
        _ => None,
    })
}

fn leader(board: BoardAnswer) -> Option<Leader> {
    let first = entries(&board).next()?;
    Some(Leader {
        week: board.head.window.window.clone(),
        player_key: first.player_key,
        name: shown_name(&first.name),
        score: format!("{:.2} points/min", first.at.score * 60.0),
    })
}

fn watched(server: PublicServer) -> Server {
    let name = web::plain_hostname(&server.hostname, &server.url);
    Server { key: server.key, url: server.url, name, is_down: server.missed >= MISSES_DOWN }
}
