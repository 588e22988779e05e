//! The error of a failed request.

use serde::{Deserialize, Serialize};

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    Internal,
    /// An error code of a newer daemon.
    #[serde(other)]
    Other,
}
