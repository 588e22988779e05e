//! What all requests of the web interface share: the way to the engine, the request rates and
//! the metrics.

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;

use super::answer_cache::AnswerCache;
use super::client_address::Proxies;
use super::client_limit::ClientLimits;
use super::limits::{
    ANSWERS_AGE_MAX, BANNERS_RENDERED_AT_ONCE_MAX, BOARD_REQUESTS_MAX, ENGINE_REQUESTS_MAX, LIVE_STREAMS_MAX,
};
use super::live_streams::{LiveFeeds, LiveStreams};
use super::metrics::WebMetrics;
use super::problem::{Problem, ProblemKind};
use super::tokens::{Token, Tokens};
use super::{Backend, Identity, PublicUrl, WebLimits, WebSettings};
use crate::api::{Read, Status, json, requests};
use crate::model::Scope;

pub(super) struct WebContext {
    /// Empty until the state is open.
    backend: OnceLock<Arc<dyn Backend>>,
    is_stopping: AtomicBool,
    engine_requests: Arc<Semaphore>,
    board_requests: Arc<Semaphore>,
    /// Answers of the last second, by request: of the status, windows, and for clients that begin to watch changes.
    shared_answers: Cache<String, Arc<dyn Any + Send + Sync>>,
    /// Clients that watch changes.
    pub live_streams: Arc<LiveStreams>,
    /// What they watch.
    pub live_feeds: LiveFeeds,
    /// Permits to render a banner as PNG.
    pub banner_renders: Arc<Semaphore>,
    /// The start of links on other sites to this one.
    pub public_url: PublicUrl,
    /// `web.public_url` is set. Otherwise `public_url` is the address of the listener, which visitors of a proxy cannot reach,
    /// so search engines do not get it.
    pub has_public_url: bool,
    pub identity: Identity,
    /// Since when a server is known that is on the first page.
    pub front_page_days_min: u32,
    pub limits: WebLimits,
    pub proxies: Proxies,
    pub clients: ClientLimits,
    pub answers: AnswerCache,
    pub metrics: WebMetrics,
    tokens: RwLock<Arc<Tokens>>,
    /// `None`: the port has no TLS.
    tls: RwLock<Option<Arc<ServerConfig>>>,
}

impl WebContext {
    pub fn new(settings: &WebSettings, limits: WebLimits) -> WebContext {
        let of_listener = || {
            let address = settings.listen.unwrap_or((Ipv4Addr::LOCALHOST, 80).into());
            PublicUrl::of_listener(address, settings.has_tls)
        };
        WebContext {
            backend: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            engine_requests: Arc::new(Semaphore::new(ENGINE_REQUESTS_MAX)),
            board_requests: Arc::new(Semaphore::new(BOARD_REQUESTS_MAX)),
            shared_answers: Cache::builder()
                .max_capacity(LIVE_STREAMS_MAX as u64)
                .time_to_live(ANSWERS_AGE_MAX)
                .build(),
            live_streams: Arc::default(),
            live_feeds: LiveFeeds::default(),
            banner_renders: Arc::new(Semaphore::new(BANNERS_RENDERED_AT_ONCE_MAX)),
            has_public_url: settings.public_url.is_some(),
            public_url: settings.public_url.clone().unwrap_or_else(of_listener),
            identity: settings.identity.clone(),
            front_page_days_min: settings.front_page_days_min,
            limits,
            proxies: Proxies::new(&settings.proxies),
            clients: ClientLimits::new(settings),
            answers: AnswerCache::default(),
            metrics: WebMetrics::default(),
            tokens: RwLock::new(Arc::new(Tokens::new(&[]))),
            tls: RwLock::default(),
        }
    }

    /// The state is open: requests are answered from now on.
    pub fn set_backend(&self, backend: Arc<dyn Backend>) {
        assert!(self.backend.set(backend).is_ok(), "the state is opened once");
    }

    /// Who may send requests of admins over the port.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.tokens.read().expect("no code panics while holding the lock").clone()
    }

    pub fn set_tokens(&self, tokens: &[Token]) {
        *self.tokens.write().expect("no code panics while holding the lock") = Arc::new(Tokens::new(tokens));
    }

    /// The certificate of the port; `None`: it has no TLS.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.read().expect("no code panics while holding the lock").clone()
    }

    pub fn set_certificate(&self, tls: Arc<ServerConfig>) {
        *self.tls.write().expect("no code panics while holding the lock") = Some(tls);
    }

    /// Changes by admins until now.
    pub fn changes(&self) -> u64 {
        self.backend.get().map_or(0, |backend| backend.changes())
    }

    /// Requests are answered with the error `stopping` from now on.
    pub fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// The connection to the engine. Error: the daemon is starting or stopping.
    pub fn backend(&self) -> Result<Arc<dyn Backend>, Problem> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(Problem::new(ProblemKind::Stopping, "the daemon is stopping"));
        }
        let starting = || Problem::new(ProblemKind::Starting, "the daemon is opening its state");
        self.backend.get().cloned().ok_or_else(starting)
    }

    /// The answer to a request. At most [`ENGINE_REQUESTS_MAX`] requests, and [`BOARD_REQUESTS_MAX`] for boards of games and
    /// tags, are at the daemon at once; others wait here. After the timeout the request is withdrawn, and holds its place until no thread works on it.
    pub async fn ask<R: Read>(&self, request: R) -> Result<R::Answer, Problem> {
        let backend = self.backend()?;
        // The board of a server is sorted for each request, and waits for nothing.
        let may_wait = request.boards().is_some_and(|boards| !matches!(boards.scope, Scope::Server(_)));
        let places = if may_wait { &self.board_requests } else { &self.engine_requests };
        let answer = timeout(self.limits.engine_timeout, async {
            let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
            backend.answer_holding(request, place).await
        });
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(self.too_slow()),
        }
    }

    /// As [`WebContext::ask`], but equal requests within [`ANSWERS_AGE_MAX`] share one answer.
    pub async fn ask_shared<R: Read<Answer: Sync>>(&self, request: &R) -> Result<Arc<R::Answer>, Problem> {
        self.backend()?;
        let key = format!("{} {} {}", self.changes(), R::NAME, json::to_string(request));
        let asked = self.shared_answers.try_get_with(key, async {
            self.ask(request.clone()).await.map(|answer| Arc::new(answer) as Arc<dyn Any + Send + Sync>)
        });
        let answer = asked.await.map_err(|problem| (*problem).clone())?;
        Ok(answer.downcast().expect("the key has the name of the request"))
    }

    /// The status of the daemon, at most [`ANSWERS_AGE_MAX`] old.
    pub async fn status(&self) -> Result<Arc<Status>, Problem> {
        self.ask_shared(&requests::Status {}).await
    }

    fn too_slow(&self) -> Problem {
        let ms = self.limits.engine_timeout.as_millis();
        Problem::new(ProblemKind::Busy, format!("the engine did not answer within {ms} ms; try again"))
    }
}
