//! Pages of the list of servers: their order, and where a page begins.

use std::fmt;
use std::str::FromStr;

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine as _, alphabet};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The order of a list of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ServerOrder {
    /// In the order in which they were added.
    #[default]
    Added,
    /// Online servers, those with most players first.
    Players,
    /// Ranked servers, the best first.
    Rank,
    /// Servers of class 1 to 5 by host name, regardless of case.
    Name,
}

impl ServerOrder {
    pub const ALL: [ServerOrder; 4] = [ServerOrder::Added, ServerOrder::Players, ServerOrder::Rank, ServerOrder::Name];

    /// The name in requests and URLs.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Where a list of servers continues: opaque bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerCursor(pub SmallVec<[u8; 24]>);

/// Longest cursor of a sorted list, in Base64: a host name in lower case, and the key of a server.
pub const CURSOR_CHARS_MAX: usize = (12 + crate::limits::TEXT_BYTES_MAX * 3 + 8).div_ceil(3) * 4;

/// Bits beyond the last byte are ignored, so a regular expression can describe the form of a
/// cursor.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, general_purpose::NO_PAD.with_decode_allow_trailing_bits(true));

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a list of servers")]
pub struct ServerCursorError;

impl fmt::Display for ServerCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl FromStr for ServerCursor {
    type Err = ServerCursorError;

    fn from_str(text: &str) -> Result<ServerCursor, ServerCursorError> {
        if text.len() > CURSOR_CHARS_MAX {
            return Err(ServerCursorError);
        }
        let bytes = BASE64.decode(text).map_err(|_| ServerCursorError)?;
        Ok(ServerCursor(bytes.into()))
    }
}

impl TryFrom<String> for ServerCursor {
    type Error = ServerCursorError;

    fn try_from(text: String) -> Result<ServerCursor, ServerCursorError> {
        text.parse()
    }
}

impl From<ServerCursor> for String {
    fn from(cursor: ServerCursor) -> String {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_text() {
        let cursor = ServerCursor([0, 0xFF, 7].as_slice().into());
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["=", "a b", "A", &"A".repeat(2_000)] {
            assert_eq!(text.parse::<ServerCursor>(), Err(ServerCursorError), "{text}");
        }
    }
}
