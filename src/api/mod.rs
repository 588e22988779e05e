//! Requests and responses, shared by the control socket, the commands and the website. [`protocol`]
//! is their form on the control socket.

mod archive;
mod error;
pub mod json;
pub mod protocol;
mod request;
mod row;
mod status;
pub mod validate;

pub use self::archive::{ArchiveDifference, DifferenceKind, ResendRow, VerifyRow, WeekRange};
pub use self::error::{ApiError, ErrorCode};
pub use self::protocol::{
    PROTOCOL_VERSION, Progress, Response, ResponseBody, ResponseEnd, decode_request, encode_request,
};
pub use self::request::{Request, RescanSelector, ServerFilter};
pub use self::row::{BackupRow, ChangeOutcome, RestoredRow, Row, ScanResult, ScanRow, ServerChange, ServersNext};
pub use self::status::{ArchiveFault, ArchiveStatus, DaemonStatus, LogFault, LogStatus, Status, StoreStatus};
pub use self::validate::{ROWS_PER_RESPONSE_MAX, URLS_PER_REQUEST_MAX, check_tag};
