//! Sends a message of a webhook. Its URL is a secret: no error contains it.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use ureq::http::StatusCode;
use ureq::http::header::RETRY_AFTER;

use crate::config::SecretUrl;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time that the receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// Why a message was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    #[error("the request failed: {0}")]
    Request(String),
    #[error("the receiver responded with status {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
}

impl PostError {
    /// Whether the same message may be accepted later.
    pub fn is_temporary(&self) -> bool {
        match self {
            PostError::Thread(_) | PostError::Request(_) => true,
            PostError::Status { status, .. } => {
                status.is_server_error()
                    || matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            }
        }
    }

    /// How long the receiver asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            PostError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Sends a message. It blocks a thread of its own, not a runtime; a process that ends does not wait for it.
pub(super) async fn post(url: &SecretUrl, user_agent: &str, body: &Value) -> Result<(), PostError> {
    let (done, result) = oneshot::channel();
    let (url, user_agent, body) = (url.clone(), user_agent.to_owned(), body.to_string());
    // If the webhook was stopped, nobody waits for the result.
    let send = move || _ = done.send(send(&url, &user_agent, &body));
    std::thread::Builder::new().name("webhook".to_owned()).spawn(send).map_err(PostError::Thread)?;
    result.await.expect("the thread sends its result")
}

fn send(url: &SecretUrl, user_agent: &str, body: &str) -> Result<(), PostError> {
    let agent = ureq::Agent::config_builder()
        .user_agent(user_agent)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(TIMEOUT))
        // A redirect could send it elsewhere.
        .max_redirects(0)
        .http_status_as_error(false)
        .build()
        .new_agent();
    let request = agent.post(url.secret()).header("Content-Type", "application/json");
    let response = request.send(body).map_err(|error| match error {
        // The messages of these errors contain the URL.
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => PostError::Request("the URL is not valid".to_owned()),
        error => PostError::Request(error.to_string()),
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Err(PostError::Status { status, retry_after: retry_after.map(|wait| wait.min(RETRY_AFTER_MAX)) })
}
