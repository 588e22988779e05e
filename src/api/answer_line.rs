//! The lines of an answer that are not part of the result.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Line, has_kind, kinds, lines};
use super::error::ApiError;

kinds! {
    Progress: "progress", "Progress";
    Notes: "notes", "Notes";
    ApiError: "error", "Error";
}

lines! {
    /// A line of an answer that is not part of the result: [`Progress`] comes before and between the others; the last line
    /// is [`Notes`] if there are any, or the error of an answer that failed after its first line.
    AnswerLine {
        Progress(Progress),
        Notes(Notes),
        Error(ApiError),
    }
}

/// The daemon is working on the request. Empty unless the request says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// `rescan`, first line: number of servers being scanned, one line each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u64>,
    /// `rescan`, first line: how long it takes if no server responds, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
}

/// For the admin, besides the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notes {
    /// One sentence each.
    pub notes: Vec<String>,
}

impl AnswerLine {
    /// `None`: the line is a part of the result.
    pub fn find(line: &[u8]) -> Option<Result<AnswerLine, serde_json::Error>> {
        let is_one = ["progress", "notes", "error"].iter().any(|kind| has_kind(line, kind));
        is_one.then(|| AnswerLine::parse(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ErrorCode;

    #[test]
    fn lines_are_told_from_rows() {
        let progress = AnswerLine::Progress(Progress { servers: Some(3), expected_ms: None });
        let notes = AnswerLine::Notes(Notes { notes: vec!["a note".to_owned()] });
        let error = AnswerLine::Error(ApiError::new(ErrorCode::Busy, "later"));
        for line in [progress, notes, error] {
            let text = line.to_json();
            assert_eq!(AnswerLine::find(&text).expect("no row").expect("a line"), line);
        }
        assert!(AnswerLine::find(b"{\"kind\":\"server\",\"notes\":[]}").is_none());
        assert!(AnswerLine::find(b"{\"kind\":\"notes\"").expect("no row").is_err());
    }
}
