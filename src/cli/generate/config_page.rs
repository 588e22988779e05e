//! The manual page `clqd.toml(5)`, from the shipped configuration file, whose comments
//! describe every key.
//!
//! In that file a comment stands before its section or key, and ends with the range of the
//! key. Other comments are followed by an empty line.

use clap_mangen::roff::{Roff, bold, roman};

/// Returns the page in roff for this text of the configuration file.
pub fn config_page(defaults: &str) -> String {
    let mut page = Roff::new();
    page.control("TH", ["clqd.toml", "5", "", concat!("clqd ", env!("CARGO_PKG_VERSION")), ""]);
    page.control("SH", ["NAME"]).text([roman("clqd.toml - settings of the daemon clqd")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman("This page is the text of the file as it is shipped.")]).control("PP", []);
    let mut comment: Vec<&str> = Vec::new();
    let mut in_description = true;
    for line in defaults.lines().chain([""]) {
        if let Some(text) = line.strip_prefix('#') {
            comment.push(text.strip_prefix(' ').unwrap_or(text));
            continue;
        }
        if line.starts_with('[') {
            page.control("SH", [line]);
            add_prose(&mut page, &comment);
            in_description = false;
        } else if let Some((key, default)) = line.split_once(" = ") {
            if in_description {
                page.control("SH", ["KEYS WITHOUT A SECTION"]);
                in_description = false;
            }
            let (range, prose) = comment.split_last().expect("a key has a comment with its range");
            page.control("TP", []).text([bold(key), roman(format!(" = {default}"))]);
            add_prose(&mut page, prose);
            page.control("br", []).text([roman(format!("({range})"))]);
        } else if let Some(example) = comment.iter().position(|line| line.starts_with("[[")) {
            page.control("SH", [comment[example]]);
            add_prose(&mut page, &comment[..example]);
            page.control("PP", []).control("nf", []);
            for line in &comment[example..] {
                page.text([roman(*line)]);
            }
            page.control("fi", []);
        } else {
            add_prose(&mut page, &comment);
        }
        comment.clear();
    }
    page.to_roff()
}

/// Adds lines of text; an empty one separates paragraphs, and list items have their own lines.
fn add_prose(page: &mut Roff, lines: &[&str]) {
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    for line in &lines[..last] {
        if line.is_empty() {
            page.control("PP", []);
            continue;
        }
        if line.starts_with("- ") {
            page.control("br", []);
        }
        page.text([roman(*line)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULTS;
    use crate::config::keys::KEYS;

    #[test]
    fn every_key_is_in_page_with_default_and_range() {
        let page = config_page(DEFAULTS);
        assert_eq!(page.matches("\n.TP\n").count(), KEYS.len());
        assert!(page.contains("\\fBtimeout_ms\\fR = 2000\nTimeout of one query."), "{page}");
        assert!(page.contains("\n.br\n(100 to 30000 ms; reload)\n"), "{page}");
    }

    #[test]
    fn comments_become_sections_entries_and_examples() {
        let file = "# First\n# file.\n#\n# - a\n\n# Top.\n# text; restart\na = \"x\"\n\n# About scans.\n[scan]\n\
                    # 'B' is\n# .b.\n# 1 to 2; reload\nb = 1\n\n# Imports.\n#\n# [[import]]\n# master = \"m\"\n";
        let page = config_page(file);
        let body = page.split_once(" shipped.\n.PP\n").expect("a description").1;
        let expected = "First\nfile.\n.PP\n.br\n\\- a\n.SH \"KEYS WITHOUT A SECTION\"\n.TP\n\\fBa\\fR = \"x\"\nTop.\n.br\n\
                        (text; restart)\n.SH [scan]\nAbout scans.\n.TP\n\\fBb\\fR = 1\n\\&'B' is\n\\&.b.\n.br\n\
                        (1 to 2; reload)\n.SH [[import]]\nImports.\n.PP\n.nf\n[[import]]\nmaster = \"m\"\n.fi\n";
        assert_eq!(body, expected);
    }
}
