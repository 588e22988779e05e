//! The protocol of the control socket, version 2: one JSON object per line.
//!
//! A request, with an `id` that its response repeats:
//!
//! ```json
//! {"v":2,"id":7,"cmd":"servers.show","url":"quake3://127.0.0.1:27960"}
//! ```
//!
//! The response is any number of rows, then one end or one error:
//!
//! ```json
//! {"v":2,"id":7,"progress":{}}
//! {"v":2,"id":7,"row":{"kind":"server_detail", ...}}
//! {"v":2,"id":7,"end":{"notes":[]}}
//! {"v":2,"id":7,"error":{"code":"not_found","message":"..."}}
//! ```
//!
//! While the daemon works on a response and has no row to send, it sends a progress line
//! at least every five seconds. Longer silence means that the daemon is not running.
//!
//! Requests of one connection are answered one after the other. Unknown fields of a
//! request are refused, so that a misspelt filter never widens a command. Unknown fields
//! of rows are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{ApiError, ErrorCode};
use super::request::{COMMANDS, Request};
use super::row::Row;
use super::validate;
use crate::nearest::nearest;

/// Version of the protocol. It is raised when an old client would misunderstand.
pub const PROTOCOL_VERSION: u64 = 2;

/// The end of a successful response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseEnd {
    /// Notes for the admin, besides the rows.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One line of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub v: u64,
    /// Absent if the request's id could not be read.
    pub id: Option<u64>,
    #[serde(flatten)]
    pub body: ResponseBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseBody {
    /// Before, between and after rows; not part of the result.
    Progress(Progress),
    Row(Row),
    End(ResponseEnd),
    Error(ApiError),
}

/// The daemon is working on the request. Empty unless the request says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// `rescan`, first line: number of servers being scanned, one row each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u64>,
    /// `rescan`, first line: how long it takes if no server responds, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
}

/// The line of a request, with its line end.
pub fn encode_request(id: u64, request: &Request) -> String {
    #[derive(Serialize)]
    struct Line<'r> {
        v: u64,
        id: u64,
        #[serde(flatten)]
        request: &'r Request,
    }
    let mut line = serde_json::to_string(&Line { v: PROTOCOL_VERSION, id, request }).expect("requests are plain data");
    line.push('\n');
    line
}

/// Parses the line of a request. Error: the response to send, with the id if there was
/// one.
pub fn decode_request(line: &[u8]) -> Result<(u64, Request), (Option<u64>, ApiError)> {
    let failure = |id, code, message: String| Err((id, ApiError { code, message }));
    let mut object = match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return failure(None, ErrorCode::MalformedLine, "expected a JSON object".to_owned()),
        Err(error) => return failure(None, ErrorCode::MalformedLine, format!("not JSON: {error}")),
    };
    let id = object.remove("id");
    let (id, has_id) = (id.as_ref().and_then(Value::as_u64), id.is_some());
    match object.remove("v") {
        Some(v) if v.as_u64() == Some(PROTOCOL_VERSION) => (),
        Some(v) => {
            let message = format!(
                "this daemon speaks version {PROTOCOL_VERSION} of the control protocol, not {v}; \
                 use the clqd program of the daemon"
            );
            return failure(id, ErrorCode::UnsupportedVersion, message);
        }
        None => {
            return failure(
                id,
                ErrorCode::UnsupportedVersion,
                format!("\"v\" is missing; expected \"v\":{PROTOCOL_VERSION}"),
            );
        }
    }
    let Some(number) = id else {
        let what = if has_id { "must be" } else { "is missing; expected" };
        return failure(None, ErrorCode::MalformedLine, format!("\"id\" {what} a whole number of at least 0"));
    };
    let Some(command) = object.get("cmd").and_then(Value::as_str) else {
        let message = format!("\"cmd\" is missing; the commands are {}", COMMANDS.join(", "));
        return failure(id, ErrorCode::BadRequest, message);
    };
    if !COMMANDS.contains(&command) {
        let suggestion = match nearest(command, COMMANDS) {
            Some(right) => format!("did you mean {right}?"),
            None => format!("the commands are {}", COMMANDS.join(", ")),
        };
        let shown: String = command.chars().take(40).collect();
        return failure(id, ErrorCode::UnknownCommand, format!("unknown command {shown:?}; {suggestion}"));
    }
    let command = command.to_owned();
    let request: Request = match serde_json::from_value(Value::Object(object)) {
        Ok(request) => request,
        Err(error) => return failure(id, ErrorCode::BadRequest, format!("{command}: {error}")),
    };
    match validate::check_size(&request) {
        Some(problem) => failure(id, ErrorCode::BadRequest, format!("{command}: {problem}")),
        None => Ok((number, request)),
    }
}

#[cfg(test)]
mod tests;
