//! The answer to a request of an admin, as JSON lines: sent while it is computed.

use std::marker::PhantomData;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::api::{AnswerLine, ApiError, ErrorCode, Line, Notes, Progress};
use crate::web::problem::Problem;

/// Lines that wait for the connection.
const LINES_QUEUED_MAX: usize = 64;

/// Lines that are written at once, bytes.
const CHUNK_BYTES: usize = 64 * 1_024;

/// The client has disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has disconnected")]
pub struct Disconnected;

impl From<Disconnected> for ApiError {
    fn from(error: Disconnected) -> ApiError {
        ApiError::new(ErrorCode::Internal, error.to_string())
    }
}

/// A part of an answer.
#[derive(Debug)]
enum Part {
    Line(Vec<u8>),
    /// The last part: without it the answer is incomplete.
    End(Result<Vec<String>, ApiError>),
}

/// Sends the lines of one answer.
#[derive(Clone, Debug)]
pub struct LineSender(mpsc::Sender<Part>);

impl LineSender {
    /// For the lines of a type.
    pub fn of<L: Line>(self) -> Lines<L> {
        Lines { sender: self, line: PhantomData }
    }

    async fn send(&self, part: Part) -> Result<(), Disconnected> {
        self.0.send(part).await.map_err(|_| Disconnected)
    }
}

/// Sends the lines of one answer, which have this type.
#[derive(Clone, Debug)]
pub struct Lines<L> {
    sender: LineSender,
    line: PhantomData<fn(L)>,
}

impl<L: Line> Lines<L> {
    /// Waits for a slow client.
    pub async fn send(&self, line: L) -> Result<(), Disconnected> {
        self.sender.send(Part::Line(line.to_json())).await
    }

    /// Says that the request is being worked on.
    pub async fn progress(&self, progress: Progress) -> Result<(), Disconnected> {
        self.sender.send(Part::Line(AnswerLine::Progress(progress).to_json())).await
    }
}

/// The work on an answer. One that changes something is completed although nobody reads the answer, unless it ends
/// itself because it cannot send lines.
struct Work {
    task: JoinHandle<()>,
    changes: bool,
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.changes {
            self.task.abort();
        }
    }
}

/// Answers with the lines that `work` sends; it returns notes for the admin. `changes`: the work goes on when the client
/// disconnects.
pub(super) async fn answer<F>(changes: bool, work: impl FnOnce(LineSender) -> F) -> Response
where
    F: Future<Output = Result<Vec<String>, ApiError>> + Send + 'static,
{
    let (parts, mut received) = mpsc::channel(LINES_QUEUED_MAX);
    let sender = LineSender(parts);
    let working = work(sender.clone());
    let task = tokio::spawn(async move {
        let end = working.await;
        _ = sender.send(Part::End(end)).await;
    });
    let work = Work { task, changes };
    // An error without other lines has a status.
    match received.recv().await {
        Some(Part::End(Err(error))) => Problem::for_admin(error).into_response(),
        first => {
            // Many small lines are written at once.
            let chunks = lines(first, received, work).ready_chunks(LINES_QUEUED_MAX);
            let chunks = chunks.flat_map(|lines| stream::iter(join(lines)));
            let headers = [(CONTENT_TYPE, "application/jsonl"), (CACHE_CONTROL, "no-store")];
            (headers, Body::from_stream(chunks)).into_response()
        }
    }
}

/// The answer stopped before its end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer is incomplete")]
struct Incomplete;

/// Joins lines to chunks of at most some [`CHUNK_BYTES`]. An error is the last item.
fn join(lines: Vec<Result<Vec<u8>, Incomplete>>) -> Vec<Result<Bytes, Incomplete>> {
    let (mut chunks, mut chunk): (Vec<Result<Bytes, Incomplete>>, Vec<u8>) = (Vec::new(), Vec::new());
    for line in lines {
        match line {
            Ok(line) => chunk.extend(line),
            Err(error) => {
                chunks.push(Ok(std::mem::take(&mut chunk).into()));
                chunks.push(Err(error));
            }
        }
        if chunk.len() >= CHUNK_BYTES {
            chunks.push(Ok(std::mem::take(&mut chunk).into()));
        }
    }
    chunks.push(Ok(chunk.into()));
    chunks.retain(|chunk| !matches!(chunk, Ok(bytes) if bytes.is_empty()));
    chunks
}

/// The lines of an answer. The stream has the work: dropping it may stop that.
fn lines(
    first: Option<Part>,
    received: mpsc::Receiver<Part>,
    work: Work,
) -> impl Stream<Item = Result<Vec<u8>, Incomplete>> {
    stream::unfold(Some((first, received, work)), |state| async move {
        let (first, mut received, work) = state?;
        let part = if first.is_some() { first } else { received.recv().await };
        let (mut line, next) = match part {
            Some(Part::Line(line)) => (line, Some((None, received, work))),
            Some(Part::End(Ok(notes))) if notes.is_empty() => return None,
            Some(Part::End(Ok(notes))) => (AnswerLine::Notes(Notes { notes }).to_json(), None),
            Some(Part::End(Err(error))) => (AnswerLine::Error(error).to_json(), None),
            None => return Some((Err(Incomplete), None)),
        };
        line.push(b'\n');
        Some((Ok(line), next))
    })
}
