//! Parses and checks the URL of a server to scan.

use super::protocol::{PROTOCOLS, protocol_of};
use crate::model::ServerUrl;
use crate::model::url::UrlError;
use crate::nearest::nearest;

/// Names of games and engines that are mistaken for a scheme, with the right scheme.
const SCHEME_SUGGESTIONS: &[(&str, &str)] = &[
    ("xonotic", "darkplaces"),
    ("nexuiz", "darkplaces"),
    ("openarena", "quake3"),
    ("ioquake3", "quake3"),
    ("urbanterror", "quake3"),
    ("q3a", "quake3"),
    ("goldsrc", "source"),
    ("steam", "source"),
    ("valve", "source"),
    ("a2s", "source"),
    ("csgo", "source"),
    ("cs2", "source"),
    ("tf2", "source"),
];

/// Why a server cannot be scanned under a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerUrlError {
    #[error("server URL {url:?}: scheme {scheme:?} is not known{advice}; known are {known}")]
    UnknownScheme { url: String, scheme: String, advice: String, known: String },
    #[error("{error}; known schemes are {known}")]
    Syntax { error: UrlError, known: String },
    #[error(transparent)]
    Url(UrlError),
}

/// Parses the URL of a server to scan. A missing port becomes the default port of
/// the scheme.
pub fn parse_server_url(text: &str) -> Result<ServerUrl, ServerUrlError> {
    let unknown = |scheme: &str| ServerUrlError::UnknownScheme {
        url: text.to_owned(),
        scheme: scheme.to_owned(),
        advice: suggestion(scheme),
        known: schemes(),
    };
    match ServerUrl::parse(text) {
        Ok(url) if protocol_of(url.scheme()).is_none() => Err(unknown(url.scheme())),
        Ok(url) => Ok(url),
        Err(UrlError::NoPort { scheme, .. }) if protocol_of(&scheme).is_none() => Err(unknown(&scheme)),
        Err(error @ UrlError::Form(_)) => Err(ServerUrlError::Syntax { error, known: schemes() }),
        Err(error) => Err(ServerUrlError::Url(error)),
    }
}

fn schemes() -> String {
    PROTOCOLS.iter().map(|protocol| protocol.scheme).collect::<Vec<_>>().join(", ")
}

fn suggestion(scheme: &str) -> String {
    let suggested = SCHEME_SUGGESTIONS.iter().find(|(name, _)| *name == scheme).map(|(_, right)| *right);
    let right = suggested.or_else(|| nearest(scheme, PROTOCOLS.iter().map(|protocol| protocol.scheme)));
    right.map_or_else(String::new, |right| format!("; did you mean {right}://?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_scheme_error_names_the_nearest_and_all_known() {
        for (text, want) in [
            (
                "xonotic://h:26000",
                "\"xonotic\" is not known; did you mean darkplaces://?; known are quake3, darkplaces",
            ),
            ("xonotic://h", "\"xonotic\" is not known; did you mean darkplaces://?"),
            ("quake://h:1", "did you mean quake3://?"),
            ("sources://h:1", "did you mean source://?"),
            ("gopher://h:1", "scheme \"gopher\" is not known; known are quake3"),
            ("h:27960", "scheme://host:port; known schemes are quake3"),
            ("quake3://h:0", "port \"0\""),
        ] {
            let error = parse_server_url(text).expect_err(text).to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
        assert_eq!(parse_server_url("quake3://h").map(|url| url.port()), Ok(27_960));
        for (name, scheme) in SCHEME_SUGGESTIONS {
            assert!(protocol_of(scheme).is_some() && protocol_of(name).is_none(), "{name}: {scheme}");
        }
    }
}
