//! What a request is. Each request is a type in [`requests`](super::requests): its fields, the permission that it needs,
//! its checks, and the type of its answer. A request that only reads is answered there, too.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::access::Access;
use super::answer::{Answer, Line, LineTypes};
use super::error::{ApiError, ErrorCode};
use super::host::Host;
use super::json;
use crate::engine::Engine;
use crate::view::board::BoardsSelector;

/// A request to the daemon.
pub trait Request: Clone + Serialize + DeserializeOwned + ToSchema + Send + Sync + 'static {
    /// Such as `servers.add`.
    const NAME: &'static str;
    /// The permission that it needs.
    const ACCESS: Access;
    /// What it is answered with.
    type Answer: Answer;

    /// The error of an invalid value, or of too many URLs, tags or rows. It is checked before anything is done.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes a request of a type: its name, the permission that it needs, the type of its answer, and its checks if it has any.
macro_rules! request {
    ($request:ty: $name:literal, $access:expr => $answer:ty $(, |$this:ident| $check:expr)?) => {
        impl crate::api::request::Request for $request {
            const NAME: &'static str = $name;
            const ACCESS: Access = $access;
            type Answer = $answer;

            $(fn check(&self) -> Result<(), String> {
                let $this = self;
                $check
            })?
        }
    };
}
pub(super) use request;

/// A request that changes nothing: the daemon answers it beside the engine, and the commands from the state directory
/// if no daemon is running.
pub trait Read: Request {
    /// Boards of games or tags that are in memory before it is answered. If they are not there yet, the engine thread
    /// answers when they are: `answer` only reads the view then, and waits for nothing.
    fn boards(&self) -> Option<BoardsSelector> {
        None
    }

    /// What a process that only answers this request does before. A daemon does it all the time.
    fn prepare(&self, _: &mut Engine) {}

    fn answer(&self, host: &dyn Host) -> Result<Self::Answer, ApiError>;
}

/// A line of the answer to a request.
pub type LineOf<R> = <<R as Request>::Answer as Answer>::Line;

/// What is known of a request without its type.
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo {
    /// Such as `servers.add`.
    pub name: &'static str,
    pub access: Access,
    /// Whether bytes are a valid body.
    pub check: fn(&[u8]) -> Result<(), ApiError>,
    /// For the description of the API.
    pub describe: fn() -> RequestTypes,
}

/// The types of a request and its answer.
pub struct RequestTypes {
    pub body: RefOr<Schema>,
    /// The types that the body names, with their names.
    pub body_types: Vec<(String, RefOr<Schema>)>,
    pub answer: LineTypes,
}

impl RequestInfo {
    pub const fn of<R: Request>() -> RequestInfo {
        RequestInfo {
            name: R::NAME,
            access: R::ACCESS,
            check: |body| decode::<R>(body).map(drop),
            describe: || {
                let (mut body_types, mut answer) = (Vec::new(), LineTypes::default());
                R::schemas(&mut body_types);
                LineOf::<R>::describe(&mut answer);
                RequestTypes { body: R::schema(), body_types, answer }
            },
        }
    }

    /// Its path: `/api/v1/servers/add` of `servers.add`.
    pub fn path(&self) -> String {
        path_of(self.name)
    }
}

fn path_of(name: &str) -> String {
    format!("/api/v1/{}", name.replace('.', "/"))
}

/// The path of a request and its body, an object in JSON.
pub fn encode<R: Request>(request: &R) -> (String, String) {
    (path_of(R::NAME), json::to_string(request))
}

/// Parses and checks the body of a request. Without a body all fields have their defaults.
pub fn decode<R: Request>(body: &[u8]) -> Result<R, ApiError> {
    let bad = |message: String| ApiError::new(ErrorCode::BadRequest, message);
    let fields = match body.trim_ascii() {
        [] => Value::Object(Map::new()),
        body => match serde_json::from_slice(body) {
            Ok(fields @ Value::Object(_)) => fields,
            Ok(_) => return Err(bad("the body is not a JSON object".to_owned())),
            Err(error) => return Err(bad(format!("the body is not JSON: {error}"))),
        },
    };
    let request: R = serde_json::from_value(fields).map_err(|error| bad(format!("{}: {error}", R::NAME)))?;
    checked(&request).map(|()| request)
}

/// The error of a request with an invalid value.
pub fn checked(request: &impl Request) -> Result<(), ApiError> {
    request.check().map_err(|problem| ApiError::new(ErrorCode::BadRequest, problem))
}
