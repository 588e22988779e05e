//! Suggests the most similar of some names for a mistyped one.

/// The name most similar to `text`; `None`: no name is similar.
pub fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let text = text.to_ascii_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&text, name).max(strsim::normalized_damerau_levenshtein(&text, name)), name))
        .filter(|&(score, _)| score >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["timeout_ms", "retries", "enabled"];
        for (text, want) in [
            ("timeout_ms", Some("timeout_ms")),
            ("timeout", Some("timeout_ms")),
            ("RETRY", Some("retries")),
            ("retires", Some("retries")),
            ("enabeld", Some("enabled")),
            ("zone", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, names), want, "{text}");
        }
    }
}
