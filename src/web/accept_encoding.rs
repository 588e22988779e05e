//! Whether a client accepts gzip. `Accept-Encoding` is parsed once, before all routes: the answer
//! cache and the compression see only the result, so an answer in the cache has the encoding of
//! its key.

use axum::http::header::ACCEPT_ENCODING;
use axum::http::{HeaderMap, HeaderValue};

/// Replaces the header with `gzip` or `identity`.
pub(super) fn normalise(headers: &mut HeaderMap) {
    let encoding = if accepts_gzip(headers) { "gzip" } else { "identity" };
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
}

/// Whether an answer to a request with a normalised header is compressed.
pub(super) fn is_gzip(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT_ENCODING).is_some_and(|encoding| encoding == "gzip")
}

/// RFC 9110, section 12.5.3: `*` is any encoding that is not listed, and `q=0` refuses one.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any) = (None, false);
    let listed = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for element in listed.flat_map(|value| value.split(',')) {
        let (coding, weight) = element.split_once(';').unwrap_or((element, "q=1"));
        let is_accepted = is_positive(weight.trim());
        match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = Some(is_accepted),
            "*" => any = is_accepted,
            _ => (),
        }
    }
    gzip.unwrap_or(any)
}

/// Whether a weight, such as `q=0.5`, is above 0. Returns false for an invalid weight.
fn is_positive(weight: &str) -> bool {
    let digits = weight.strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
    digits.and_then(|digits| digits.trim().parse::<f32>().ok()).is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        for (values, want) in [
            (&[][..], false),
            (&[""], false),
            (&["gzip"], true),
            (&["GZIP"], true),
            (&["x-gzip"], true),
            (&["*"], true),
            (&["br, gzip;q=0.5"], true),
            (&["br", "deflate , Gzip ; Q=0.001"], true),
            (&["gzip;q=0"], false),
            (&["gzip;q=0.000, *"], false),
            (&["gzip, *;q=0"], true),
            (&["*;q=0"], false),
            (&["identity;q=0"], false),
            (&["gzip;q=x"], false),
            (&["gzipped, br"], false),
        ] {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| _ = headers.append(ACCEPT_ENCODING, value.parse().expect("a header")));
            normalise(&mut headers);
            assert_eq!(is_gzip(&headers), want, "{values:?}");
            assert_eq!(headers.get_all(ACCEPT_ENCODING).iter().count(), 1, "{values:?}");
        }
    }
}
