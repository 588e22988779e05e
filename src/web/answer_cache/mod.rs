//! Equal requests share one computed answer. While an answer is computed, equal requests wait for it,
//! and for a moment it is used again. So any number of readers of a page cause one request to the
//! engine. [`COMPUTED_AT_ONCE_MAX`] limits clients that request many different pages. PNG banners
//! take the most time. They have a separate queue, so that they cannot delay pages.

pub(super) mod middleware;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use moka::future::Cache;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::limits::{
    ANSWER_BYTES_MAX, ANSWERS_AGE_MAX, ANSWERS_BYTES_MAX, COMPUTE_WAITING_MAX, COMPUTED_AT_ONCE_MAX,
    COMPUTED_PER_CLIENT_MAX, PNG_COMPUTE_WAITING_MAX, PNG_COMPUTED_AT_ONCE_MAX, REQUESTS_PER_CLIENT_MAX,
};
use super::texts::language::Chosen;

/// What an answer depends on.
#[derive(PartialEq, Eq, Hash)]
struct AnswerKey {
    path_and_query: String,
    is_compressed: bool,
    chosen: Chosen,
    /// An answer from before a correction is not used after it.
    changes: u64,
}

#[derive(Clone)]
struct CachedAnswer(Arc<Answer>);

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Memory of an answer besides its body: its headers, and its place in the cache.
const ANSWER_OVERHEAD_BYTES: usize = 1_024;

pub(super) struct AnswerCache {
    answers: Cache<AnswerKey, CachedAnswer>,
    others: ComputeQueue,
    png_banners: ComputeQueue,
}

/// The answers that are computed at once, and the requests that wait for that.
struct ComputeQueue {
    computing: Semaphore,
    waiting: Semaphore,
    /// Clients with requests that are computed or wait.
    of_clients: Mutex<FxHashMap<IpAddr, OfClient>>,
}

struct OfClient {
    /// [`COMPUTED_PER_CLIENT_MAX`]
    computing: Arc<Semaphore>,
    requests: usize,
}

/// A place in a queue.
struct Place<'q> {
    queue: &'q ComputeQueue,
    client: IpAddr,
    _computing: Option<(OwnedSemaphorePermit, SemaphorePermit<'q>)>,
}

impl ComputeQueue {
    fn new(computed_at_once_max: usize, waiting_max: usize) -> ComputeQueue {
        ComputeQueue {
            computing: Semaphore::new(computed_at_once_max),
            waiting: Semaphore::new(waiting_max),
            of_clients: Mutex::default(),
        }
    }

    /// A permit to compute an answer. `None`: too many requests wait, or too many of this client, or this one has waited
    /// too long.
    async fn enter(&self, client: IpAddr, wait_max: Duration) -> Option<Place<'_>> {
        let (mut place, of_client) = self.place_of(client)?;
        // A client that waits for a place of its own holds none of all, not even one to wait.
        let permits = async {
            let of_client = of_client.acquire_owned().await.ok()?;
            let computing = match self.computing.try_acquire() {
                Ok(computing) => computing,
                Err(_) => {
                    let _waiting = self.waiting.try_acquire().ok()?;
                    self.computing.acquire().await.ok()?
                }
            };
            Some((of_client, computing))
        };
        place._computing = Some(timeout(wait_max, permits).await.ok()??);
        Some(place)
    }

    /// The place of a request, which is not computed yet, and the permits of its client. `None`: the client has too many.
    fn place_of(&self, client: IpAddr) -> Option<(Place<'_>, Arc<Semaphore>)> {
        let (computed_max, requests_max) = match client.is_loopback() {
            true => (Semaphore::MAX_PERMITS, usize::MAX),
            false => (COMPUTED_PER_CLIENT_MAX, REQUESTS_PER_CLIENT_MAX),
        };
        let mut of_clients = self.of_clients.lock().expect("no code panics while holding the lock");
        let new = || OfClient { computing: Arc::new(Semaphore::new(computed_max)), requests: 0 };
        let of_client = of_clients.entry(client).or_insert_with(new);
        if of_client.requests >= requests_max {
            return None;
        }
        of_client.requests += 1;
        Some((Place { queue: self, client, _computing: None }, of_client.computing.clone()))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut of_clients = self.queue.of_clients.lock().expect("no code panics while holding the lock");
        if let Some(of_client) = of_clients.get_mut(&self.client) {
            of_client.requests -= 1;
            if of_client.requests == 0 {
                of_clients.remove(&self.client);
            }
        }
    }
}

impl Default for AnswerCache {
    fn default() -> AnswerCache {
        let weight = |key: &AnswerKey, answer: &CachedAnswer| {
            (key.path_and_query.len() + answer.0.body.len() + ANSWER_OVERHEAD_BYTES) as u32
        };
        let answers = Cache::builder().max_capacity(ANSWERS_BYTES_MAX).weigher(weight).time_to_live(ANSWERS_AGE_MAX);
        AnswerCache {
            answers: answers.build(),
            others: ComputeQueue::new(COMPUTED_AT_ONCE_MAX, COMPUTE_WAITING_MAX),
            png_banners: ComputeQueue::new(PNG_COMPUTED_AT_ONCE_MAX, PNG_COMPUTE_WAITING_MAX),
        }
    }
}

impl CachedAnswer {
    async fn from_response(response: Response) -> CachedAnswer {
        let (parts, body) = response.into_parts();
        match to_bytes(body, ANSWER_BYTES_MAX).await {
            Ok(body) => CachedAnswer(Arc::new(Answer { status: parts.status, headers: parts.headers, body })),
            Err(error) => {
                tracing::error!(%error, "an answer of the web interface could not be compressed");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                CachedAnswer(Arc::new(Answer { status, headers: HeaderMap::new(), body: Bytes::new() }))
            }
        }
    }

    /// The answer to a request with these headers; without a body if the client has it already.
    fn to_response(&self, request: &HeaderMap) -> Response {
        let Answer { status, headers, body } = &*self.0;
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        let is_known = etag.is_some_and(|etag| is_known(request, etag));
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => (*status, Body::from(body.clone())).into_response(),
        };
        *response.headers_mut() = headers.clone();
        if is_known {
            // They describe a body.
            for name in [CONTENT_TYPE, CONTENT_ENCODING] {
                response.headers_mut().remove(name);
            }
        }
        response
    }
}

/// Whether `If-None-Match` names the ETag.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let opaque = etag.trim_start_matches("W/");
    let listed = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    listed
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_client_does_not_take_all_places() {
        let queue = ComputeQueue::new(COMPUTED_PER_CLIENT_MAX + 2, 2 * REQUESTS_PER_CLIENT_MAX);
        let [greedy, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let mut places = Vec::new();
        for _ in 0..COMPUTED_PER_CLIENT_MAX {
            places.push(queue.enter(greedy, Duration::ZERO).await.expect("a place"));
        }
        assert!(queue.enter(greedy, Duration::ZERO).await.is_none());
        assert!(queue.enter(other, Duration::ZERO).await.is_some());
        places.pop();
        assert!(queue.enter(greedy, Duration::ZERO).await.is_some());
        drop(places);
        assert!(queue.of_clients.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn page_with_many_banners_gets_all_of_them() {
        let queue = ComputeQueue::new(4, REQUESTS_PER_CLIENT_MAX);
        let requests = (0..REQUESTS_PER_CLIENT_MAX + 1).map(async |_| {
            let place = queue.enter(IpAddr::from([192, 0, 2, 1]), Duration::MAX).await;
            tokio::task::yield_now().await;
            usize::from(place.is_some())
        });
        let served: usize = futures_util::future::join_all(requests).await.into_iter().sum();
        assert_eq!(served, REQUESTS_PER_CLIENT_MAX, "only the last one is refused");
        assert!(queue.of_clients.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn known_answer_has_no_body() {
        let etag = "W/\"00ab\"";
        let answer = CachedAnswer::from_response(([(ETAG, etag)], "body").into_response()).await;
        let check = |if_none_match: &[&str], want: StatusCode| {
            let mut request = HeaderMap::new();
            if_none_match.iter().for_each(|text| _ = request.append(IF_NONE_MATCH, text.parse().expect("a header")));
            let response = answer.to_response(&request);
            assert_eq!(response.status(), want, "{if_none_match:?}");
            assert_eq!(response.headers()[ETAG], etag);
        };
        check(&[], StatusCode::OK);
        check(&["W/\"00ac\""], StatusCode::OK);
        check(&[etag], StatusCode::NOT_MODIFIED);
        check(&["\"00ab\""], StatusCode::NOT_MODIFIED);
        check(&[&format!("\"x\", {etag}")], StatusCode::NOT_MODIFIED);
        check(&["\"x\"", etag], StatusCode::NOT_MODIFIED);
        check(&["*"], StatusCode::NOT_MODIFIED);
    }
}
