//! Requests and answers, shared by the commands, the control socket and the website.

mod access;
mod answer;
mod answer_line;
mod checks;
mod error;
mod host;
pub mod json;
mod machines;
mod request;
pub mod requests;
mod server_filter;
mod status;

pub use self::access::{Access, Permission};
pub use self::answer::{Answer, Done, Kind, Line, LineTypes, NoLine, Tagged};
pub use self::answer_line::{AnswerLine, Notes, Progress};
pub use self::checks::{ROWS_PER_RESPONSE_MAX, URLS_PER_REQUEST_MAX, check_tag};
pub use self::error::{ApiError, ErrorCode};
pub use self::host::{Host, StateView};
pub use self::machines::{EngineRole, EngineRow, ScannerRow};
pub use self::request::{LineOf, Read, Request, RequestInfo, RequestTypes, checked, decode, encode};
pub use self::requests::REQUESTS;
pub use self::server_filter::ServerFilter;
pub use self::status::{
    ArchiveStatus, ClusterStatus, DaemonStatus, Fault, LogStatus, PublicArchiveStatus, PublicDaemonStatus,
    PublicLogStatus, PublicStatus, PublicStoreStatus, Status, StoreStatus,
};
