//! The error of a failed request.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::board::cursor::BadCursor;
use crate::engine::ViewError;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into() }
    }

    /// A failure of the daemon or of its disk.
    pub fn internal(error: impl std::error::Error) -> ApiError {
        ApiError::new(ErrorCode::Internal, error.to_string())
    }
}

impl From<ViewError> for ApiError {
    fn from(error: ViewError) -> ApiError {
        let code = match error {
            ViewError::Store(_) => ErrorCode::Internal,
            ViewError::BadCursor(BadCursor::Form(_)) | ViewError::BadWindow(_) | ViewError::AmbiguousName { .. } => {
                ErrorCode::BadRequest
            }
            ViewError::BadCursor(_) | ViewError::Stale(_) => ErrorCode::Refused,
            ViewError::Rebuilding(_) => ErrorCode::Busy,
            ViewError::RemovedServer(_) => ErrorCode::Removed,
            _ => ErrorCode::NotFound,
        };
        ApiError::new(code, error.to_string())
    }
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Fields of the request are invalid.
    BadRequest,
    /// The server, week or player does not exist.
    NotFound,
    /// The server was removed by an admin.
    Removed,
    /// The request is valid but is not executed, such as a reload of a broken file.
    Refused,
    /// Too many connections, or a full queue: try again.
    Busy,
    /// The daemon is stopping.
    Stopping,
    /// Another engine leads the cluster: only that one executes the request.
    NotLeader,
    Internal,
    /// An error code of a newer daemon.
    #[serde(other)]
    Other,
}
