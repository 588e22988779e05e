//! Splits SQL text into statements, as the `mysql` client does: at `;`, or at the
//! delimiter of the last `DELIMITER` line. Not an SQL parser: it only recognises quotes
//! and comments, which can contain a delimiter.

/// Returns the statements of a script, without their delimiters and without preceding
/// comments.
pub fn statements(script: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut delimiter = ";";
    let mut rest = script;
    loop {
        rest = skip_blank(rest);
        if rest.is_empty() {
            return found;
        }
        let line = rest.lines().next().unwrap_or("");
        if let Some(word) = strip_word(line, "DELIMITER") {
            if !word.is_empty() {
                delimiter = word;
            }
            rest = &rest[line.len()..];
            continue;
        }
        let end = statement_len(rest, delimiter);
        let statement = rest[..end].trim_end();
        if !statement.is_empty() {
            found.push(statement);
        }
        rest = rest[end..].strip_prefix(delimiter).unwrap_or(&rest[end..]);
    }
}

/// Skips white space and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match comment_len(text) {
            0 => return text,
            len => text = &text[len..],
        }
    }
}

/// Bytes until the delimiter, or all bytes.
fn statement_len(text: &str, delimiter: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(delimiter.as_bytes()) {
            return at;
        }
        at += match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => quoted_len(&bytes[at..], quote),
            b'-' | b'#' | b'/' => comment_len(&text[at..]).max(1),
            _ => 1,
        };
    }
    bytes.len()
}

/// Length of a quoted text in bytes, including quotes. A doubled quote counts as two
/// adjacent texts, which has the same total length.
fn quoted_len(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of the comment at the start of the text, bytes; 0: none. `/*!` is code.
fn comment_len(text: &str) -> usize {
    let dashes =
        text.strip_prefix("--").is_some_and(|after| after.is_empty() || after.starts_with(char::is_whitespace));
    if dashes || text.starts_with('#') {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") && !text.starts_with("/*!") {
        text.find("*/").map_or(text.len(), |end| end + 2)
    } else {
        0
    }
}

/// The rest of a line after a word, trimmed; `None`: the line begins with another word.
fn strip_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (head, tail) = (line.get(..word.len())?, line.get(word.len()..)?);
    let whole = tail.is_empty() || tail.starts_with(char::is_whitespace);
    (head.eq_ignore_ascii_case(word) && whole).then(|| tail.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_split_at_delimiters() {
        for (script, want) in [
            ("", vec![]),
            ("a; b ;c", vec!["a", "b", "c"]),
            ("-- x;\na 'p;q''r' ; /* ; */ b", vec!["a 'p;q''r'", "b"]),
            ("a `;` \"\\\";\" -- ;\n z;", vec!["a `;` \"\\\";\" -- ;\n z"]),
            ("delimiter //\nx; y //\nDELIMITER ;\nz;", vec!["x; y", "z"]),
            ("a - b / c; # d;\n", vec!["a - b / c"]),
            ("é';é;", vec!["é';é;"]),
            (";;\n;", vec![]),
            ("DELIMITERS;", vec!["DELIMITERS"]),
        ] {
            assert_eq!(statements(script), want, "{script:?}");
        }
    }

    #[test]
    fn schema_splits_into_whole_statements() {
        let all = statements(crate::archive::SCHEMA_SQL);
        assert!(all.len() > 30);
        for statement in &all {
            let begins = ["CREATE ", "INSERT ", "DROP "].iter().any(|word| statement.starts_with(word));
            assert!(begins, "{statement}");
        }
        let bodies = all.iter().filter(|s| s.contains("BEGIN") && s.ends_with("END")).count();
        assert_eq!(bodies, 1);
    }
}
