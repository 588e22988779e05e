//! The lines of an answer that are not rows.

use serde::{Deserialize, Serialize};

use super::answer::has_kind;
use super::error::ApiError;

/// A line of an answer that is not a row. Rows have other kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerLine {
    /// Before and between rows; not part of the result.
    Progress(Progress),
    /// The last line of an answer with notes.
    Notes(Notes),
    /// The last line of an answer that failed after its first row.
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

/// For the admin, besides the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    pub notes: Vec<String>,
}

impl AnswerLine {
    /// `None`: the line is a row.
    pub fn parse(line: &[u8]) -> Option<Result<AnswerLine, serde_json::Error>> {
        let is_one = ["progress", "notes", "error"].iter().any(|kind| has_kind(line, kind));
        is_one.then(|| serde_json::from_slice(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ErrorCode, json};

    #[test]
    fn lines_are_told_from_rows() {
        let progress = AnswerLine::Progress(Progress { servers: Some(3), expected_ms: None });
        let notes = AnswerLine::Notes(Notes { notes: vec!["a note".to_owned()] });
        let error = AnswerLine::Error(ApiError::new(ErrorCode::Busy, "later"));
        for line in [progress, notes, error] {
            let text = json::to_vec(&line);
            assert_eq!(AnswerLine::parse(&text).expect("no row").expect("a line"), line);
        }
        assert!(AnswerLine::parse(b"{\"kind\":\"server\",\"notes\":[]}").is_none());
        assert!(AnswerLine::parse(b"{\"kind\":\"notes\"").expect("no row").is_err());
    }
}
