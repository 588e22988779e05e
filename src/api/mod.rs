//! Requests and answers, shared by the commands, the control socket and the website.

mod access;
mod answer_line;
mod archive;
mod body;
mod error;
pub mod json;
mod request;
mod row;
mod status;
pub mod validate;

pub use self::access::{Access, Permission};
pub use self::answer_line::{AnswerLine, Notes, Progress};
pub use self::archive::{ArchiveDifference, DifferenceKind, ResendRow, VerifyRow, WeekRange};
pub use self::body::{decode_request, encode_request, path_of};
pub use self::error::{ApiError, ErrorCode};
pub use self::request::{COMMANDS, Request, RescanSelector, ServerFilter};
pub use self::row::{BackupRow, ChangeOutcome, RestoredRow, Row, ScanResult, ScanRow, ServerChange, ServersNext};
pub use self::status::{ArchiveFault, ArchiveStatus, DaemonStatus, LogFault, LogStatus, Status, StoreStatus};
pub use self::validate::{ROWS_PER_RESPONSE_MAX, URLS_PER_REQUEST_MAX, check_tag};
