//! Suggests the most similar of some names for a mistyped one.

/// Longer texts and names are not compared: the time grows with the product of both lengths.
const TEXT_BYTES_MAX: usize = 64;

/// Names that are looked at: with a text of 12 characters it takes 7 ms. Strangers choose names and texts.
const NAMES_MAX: usize = 5_000;

/// The name most similar to `text`; `None`: no name is similar.
pub fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let text = text.to_ascii_lowercase();
    names
        .into_iter()
        .take(NAMES_MAX)
        .filter(|name| name.len() <= TEXT_BYTES_MAX)
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
        let long = "timeout_ms".repeat(7);
        assert_eq!(nearest(&long, [&*long]), None, "it would take long with many names");
        let many = || std::iter::repeat_n("timeout_s", NAMES_MAX).chain(["timeout_ms"]);
        assert_eq!(nearest("timeout_ms", many()), Some("timeout_s"));
    }
}
