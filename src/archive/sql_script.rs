//! Splits an SQL script into statements, as the `mysql` client does. Statements end at `;`. A
//! `DELIMITER` line sets another delimiter for the statements after it. This is not an SQL
//! parser: it only recognises quoted text and comments, because a delimiter inside them does not
//! end a statement.

/// Returns the statements of a script, without their delimiters and without preceding
/// comments.
pub fn statements(script: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let mut delimiter = ";";
    let mut rest = script;
    loop {
        rest = skip_blank(rest);
        if rest.is_empty() {
            return statements;
        }
        let line = rest.lines().next().unwrap_or("");
        if let Some(new_delimiter) = strip_word(line, "DELIMITER") {
            if !new_delimiter.is_empty() {
                delimiter = new_delimiter;
            }
            rest = &rest[line.len()..];
            continue;
        }
        let end = statement_len(rest, delimiter);
        let statement = rest[..end].trim_end();
        if !statement.is_empty() {
            statements.push(statement);
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

/// Length of the first statement in bytes, without its delimiter. Without a delimiter, the
/// statement extends to the end of the text.
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

/// Length in bytes of the quoted text at the start of `bytes`, including its quotes. A doubled
/// quote, as in `'a''b'`, is read as the end of one quoted text and the start of the next.
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

/// Length in bytes of the comment at the start of the text; 0 if there is none. `/*! ... */` is
/// not a comment: MySQL executes its content.
fn comment_len(text: &str) -> usize {
    let is_dash_comment =
        text.strip_prefix("--").is_some_and(|after| after.is_empty() || after.starts_with(char::is_whitespace));
    if is_dash_comment || text.starts_with('#') {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") && !text.starts_with("/*!") {
        text.find("*/").map_or(text.len(), |end| end + 2)
    } else {
        0
    }
}

/// If the line begins with `word` (in any case), returns the rest of the line, trimmed.
fn strip_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (head, tail) = (line.get(..word.len())?, line.get(word.len()..)?);
    let is_whole_word = tail.is_empty() || tail.starts_with(char::is_whitespace);
    (head.eq_ignore_ascii_case(word) && is_whole_word).then(|| tail.trim())
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
        assert_eq!(bodies, 3);
    }
}
