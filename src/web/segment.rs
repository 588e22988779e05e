//! Names as segments of the path of a URL. Clients remove the segments `.` and `..` before they send a
//! request, also if the dots are percent-encoded. So these names are written as `~.` and `~..`. Names
//! that already have this form get one more `~`. All other names are unchanged.

use serde::{Deserialize, Deserializer};
use utoipa::openapi::{ObjectBuilder, Type};

use super::query::{NAME_CHARS_MAX, describe};

/// The name of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment(pub String);

impl Segment {
    /// The segment for a name, before it is percent-encoded.
    pub fn text_of(name: &str) -> String {
        if is_dots(name) { format!("~{name}") } else { name.to_owned() }
    }
}

impl<'de> Deserialize<'de> for Segment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Segment, D::Error> {
        let text = String::deserialize(deserializer)?;
        let name = text.strip_prefix('~').filter(|name| is_dots(name));
        Ok(Segment(name.map_or_else(|| text.clone(), str::to_owned)))
    }
}

// The maximum length is that of a name. Only the segment of a name of dots may be longer, by one
// `~`.
describe!(
    Segment,
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(NAME_CHARS_MAX)).into()
);

/// One or two dots after any number of `~`.
fn is_dots(text: &str) -> bool {
    matches!(text.trim_start_matches('~'), "." | "..")
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn every_name_has_a_segment_that_clients_keep() {
        for (name, segment) in [
            (".", "~."),
            ("..", "~.."),
            ("~.", "~~."),
            ("~~..", "~~~.."),
            ("...", "..."),
            ("~", "~"),
            ("~a", "~a"),
            (".a", ".a"),
            ("", ""),
        ] {
            assert_eq!(Segment::text_of(name), segment, "{name}");
            let deserializer: StrDeserializer<'_, Error> = segment.into_deserializer();
            assert_eq!(Segment::deserialize(deserializer), Ok(Segment(name.to_owned())), "{segment}");
        }
    }
}
