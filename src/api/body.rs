//! Requests over HTTP: their paths and bodies.

use serde_json::{Map, Value};

use super::error::{ApiError, ErrorCode};
use super::request::Request;
use super::{json, validate};

/// The path of a request on the control socket: `/api/v1/servers/add` of `servers.add`.
pub fn path_of(command: &str) -> String {
    format!("/api/v1/{}", command.replace('.', "/"))
}

/// The path of a request and its body, an object in JSON.
pub fn encode_request(request: &Request) -> (String, String) {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(request) else { panic!("requests are objects") };
    let command = fields.remove("cmd").expect("the tag");
    (path_of(command.as_str().expect("a name")), json::to_string(&fields))
}

/// Parses the body of a request. Without a body all fields have their defaults.
pub fn decode_request(command: &str, body: &[u8]) -> Result<Request, ApiError> {
    let bad = |message: String| ApiError::new(ErrorCode::BadRequest, message);
    let mut fields = match body.trim_ascii() {
        [] => Map::new(),
        body => match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(bad("the body is not a JSON object".to_owned())),
            Err(error) => return Err(bad(format!("the body is not JSON: {error}"))),
        },
    };
    if fields.insert("cmd".to_owned(), command.into()).is_some() {
        return Err(bad(format!("{command}: unknown field `cmd`")));
    }
    let request = serde_json::from_value(Value::Object(fields)).map_err(|error| bad(format!("{command}: {error}")))?;
    validate::check(&request).map_or(Ok(request), |problem| Err(bad(problem)))
}

#[cfg(test)]
mod tests;
