//! Checks the documentation against the program: links and anchors lead somewhere, commands and their
//! options exist, and every message that docs/troubleshooting.md quotes is a message of the program.
//!
//! The tests read text, not Markdown: what they need of it is a heading, a link, a fence and a code span.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below `dir` with this extension, in order.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// README.md, CHANGELOG.md and docs/*.md.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), "md");
    pages.extend([root().join("README.md"), root().join("CHANGELOG.md")]);
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A line of a page, outside of fences, or inside of one with the language in its first line.
struct Line<'a> {
    number: usize,
    text: &'a str,
    fence: Option<&'a str>,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut fence = None;
    for (at, text) in text.lines().enumerate() {
        match (text.trim_start().strip_prefix("```"), fence) {
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) => fence = Some(language.trim()),
            (None, _) => lines.push(Line { number: at + 1, text, fence }),
        }
    }
    assert!(fence.is_none(), "a fence has no end");
    lines
}

/// The contents of the code spans of a line.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The line with its code spans emptied.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in lines(text).iter().filter(|line| line.fence.is_none()) {
        let title = line.text.trim_start_matches('#');
        if title.len() == line.text.len() || !title.starts_with(' ') {
            continue;
        }
        let mut title = title.trim().to_owned();
        // Of a link, only its text counts.
        while let Some((before, rest)) = title.split_once("](") {
            let before = before.replacen('[', "", 1);
            title = format!("{before}{}", rest.split_once(')').map_or("", |(_, after)| after));
        }
        let anchor: String = title
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let repeated = (1..).map(|n| format!("{anchor}-{n}"));
        let anchor = std::iter::once(anchor.clone()).chain(repeated).find(|name| !anchors.contains(name));
        anchors.extend(anchor);
    }
    anchors
}

/// The targets of the links and images of a line.
fn link_targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let mut links = 0;
    for page in pages() {
        let text = read(&page);
        for line in lines(&text).iter().filter(|line| line.fence.is_none()) {
            for target in link_targets(line.text) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                links += 1;
                let (file, anchor) = target.split_once('#').map_or((&*target, None), |(file, at)| (file, Some(at)));
                let path = match file {
                    "" => page.clone(),
                    file => page.parent().expect("a directory").join(file),
                };
                let found = match anchor {
                    _ if !path.exists() => false,
                    Some(anchor) => anchors(&read(&path)).contains(anchor),
                    None => true,
                };
                if !found {
                    broken.push(format!("{}:{}: {target}", shown(&page), line.number));
                }
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(links > 100, "only {links} links were found");
}

/// Sources, settings and units name pages as `docs/page.md` or `docs/page.md#anchor`.
#[test]
fn every_page_that_a_source_names_exists() {
    let mut sources = files(&root().join("src"), "rs");
    for (dir, extension) in
        [("tests", "rs"), ("benches", "rs"), ("config", "toml"), ("monitoring", "yml"), ("systemd", "service")]
    {
        sources.extend(files(&root().join(dir), extension));
    }
    sources.extend([".ci/run", "tests/run", "tests/package", "schema.sql"].map(|name| root().join(name)));
    let mut broken = Vec::new();
    for source in sources.iter().filter(|path| !path.ends_with("tests/documentation.rs")) {
        for (at, line) in read(source).lines().enumerate() {
            for (from, _) in line.match_indices("docs/") {
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '#');
                let name: String = line[from..].chars().take_while(|&c| is_name(c)).collect();
                let (file, anchor) = name.split_once('#').unwrap_or((&name, ""));
                let Some((page, _)) = file.split_once(".md") else { continue };
                let path = root().join(format!("{page}.md"));
                let anchor = anchor.trim_end_matches('.');
                if !path.exists() || (!anchor.is_empty() && !anchors(&read(&path)).contains(anchor)) {
                    broken.push(format!("{}:{}: {name}", shown(source), at + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "pages or headings that do not exist:\n{}", broken.join("\n"));
}

/// The pages for developers name sources as `src/x/y.rs`, `x/y.rs` (below `src/`) or `x/y/`.
#[test]
fn every_source_that_a_page_names_exists() {
    let mut missing = Vec::new();
    for page in ["docs/architecture.md", "docs/contributing.md", "docs/rules.md", "docs/troubleshooting.md"] {
        let text = read(&root().join(page));
        for line in lines(&text) {
            let is_path = |span: &&str| {
                span.contains('/')
                    && (span.ends_with(".rs") || span.ends_with('/'))
                    && span.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
                    && !span.starts_with('/')
            };
            for path in code_spans(line.text).into_iter().filter(is_path) {
                if !root().join(path).exists() && !root().join("src").join(path).exists() {
                    missing.push(format!("{page}:{}: {path}", line.number));
                }
            }
        }
    }
    assert!(missing.is_empty(), "sources that do not exist:\n{}", missing.join("\n"));
}

/// The table of protocols names the packets that the program sends.
#[test]
fn numbers_of_packets_are_those_of_the_protocols() {
    let page = read(&root().join("docs/protocols.md"));
    for protocol in clqd::proto::PROTOCOLS {
        let start = format!("| `{}://` |", protocol.scheme);
        let row = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no row {start}"));
        let want = match (protocol.packets_typical, protocol.packets_max) {
            (typical, most) if typical == most => typical.to_string(),
            (typical, most) => format!("{typical}, at most {most}"),
        };
        assert_eq!(row.split('|').nth(4).map(str::trim), Some(want.as_str()), "{row}");
    }
}

#[test]
fn readme_and_the_index_link_every_page() {
    for (index, prefix) in [("README.md", "docs/"), ("docs/README.md", "")] {
        let text = read(&root().join(index));
        for page in files(&root().join("docs"), "md") {
            let name = page.file_name().expect("a name").to_str().expect("UTF-8");
            let link = format!("]({prefix}{name}");
            assert!(name == "README.md" || text.contains(&link), "{index} has no link to {prefix}{name}");
        }
    }
}

#[test]
fn the_ten_most_useful_commands_are_ten() {
    let text = read(&root().join("README.md"));
    let (_, section) = text.split_once("## The ten most useful commands\n").expect("the section");
    let rows: Vec<&str> = section.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2).collect();
    assert_eq!(rows.len(), 10, "{rows:#?}");
    for row in rows {
        let command = row.split('|').nth(1).expect("a column");
        assert_eq!(command.matches("`clqd ").count(), 1, "one command a row: {row}");
    }
}

/// What is wrong with a command line of a page, such as `clqd servers list --tag T`; `None` if its
/// commands and long options exist.
fn command_problem(text: &str) -> Option<String> {
    let mut command = clqd::cli::Cli::command();
    command.build();
    let mut words = text.split_whitespace().skip(1).peekable();
    let mut at = &command;
    while let Some(word) = words.peek().copied() {
        let word = word.trim_end_matches([',', ';', ':']);
        match at.find_subcommand(word) {
            Some(found) => {
                at = found;
                words.next();
            }
            // A value or an option follows; a lower-case word where a command is required is neither.
            None if at.is_subcommand_required_set() && word.starts_with(|c: char| c.is_ascii_lowercase()) => {
                return Some(format!("{} has no command {word:?}", at.get_name()));
            }
            None => break,
        }
    }
    for word in words {
        if word == "|" || word == "&&" || word == "#" {
            break;
        }
        let Some(option) = word.trim_start_matches(['[', '(']).strip_prefix("--") else { continue };
        let name = option.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
        let is_known = |name: &str| {
            name.is_empty()
                || matches!(name, "help" | "version")
                || at.get_arguments().chain(command.get_arguments()).any(|arg| arg.get_long() == Some(name))
        };
        if !is_known(name) {
            return Some(format!("{} has no option --{name}", at.get_display_name().unwrap_or("clqd")));
        }
    }
    None
}

/// The command lines in a piece of shell or a code span: from `clqd` to the end.
fn command_line(text: &str) -> Option<&str> {
    let text = text.trim();
    let at = text.match_indices("clqd ").map(|(at, _)| at).find(|&at| {
        let before = &text[..at];
        let is_command = before.is_empty()
            || ["$ ", "sudo ", "&& ", "bin/"].iter().any(|end| before.ends_with(end))
            || (before.starts_with("sudo ") && before.ends_with(' ') && !before.contains("systemctl"));
        // Not the user of `sudo -u clqd` and `journalctl -u clqd`.
        is_command && !before.ends_with("-u ")
    })?;
    Some(&text[at..])
}

/// Of every command of the pages, the settings, the alerts, and the messages of the program.
#[test]
fn every_command_that_a_text_names_exists() {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut note = |place: String, text: &str| {
        if let Some(line) = command_line(text)
            && line["clqd ".len()..].starts_with(|c: char| c.is_ascii_lowercase() || c == '-')
        {
            found.entry(line.to_owned()).or_insert(place);
        }
    };
    for page in pages().iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = read(page);
        for line in lines(&text) {
            let place = format!("{}:{}", shown(page), line.number);
            match line.fence {
                None => code_spans(line.text).into_iter().for_each(|span| note(place.clone(), span)),
                Some("sh") => note(place, line.text.split(" # ").next().unwrap_or_default()),
                Some(_) => (),
            }
        }
    }
    let mut others = files(&root().join("src"), "rs");
    others.extend(files(&root().join("monitoring"), "yml"));
    others.extend([root().join("config/clqd.toml"), root().join("schema.sql")]);
    for source in others.iter().filter(|path| !is_test_source(path)) {
        for (at, line) in read(source).lines().enumerate() {
            let place = format!("{}:{}", shown(source), at + 1);
            // A span that ends on another line is cut.
            code_spans(line).into_iter().for_each(|span| note(place.clone(), span));
        }
    }
    assert!(found.len() > 100, "only {} commands were found", found.len());
    let problems: Vec<String> =
        found.iter().filter_map(|(line, place)| Some(format!("{place}: {line}: {}", command_problem(line)?))).collect();
    assert!(problems.is_empty(), "commands that do not exist:\n{}", problems.join("\n"));
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    assert_eq!(command_problem("clqd servers list --tag T"), None);
    assert_eq!(command_problem("clqd --json status"), None);
    assert!(command_problem("clqd nosuch").is_some());
    assert!(command_problem("clqd servers nosuch URL").is_some());
    assert!(command_problem("clqd servers list --nosuch").is_some());
    assert_eq!(command_line("sudo -u clqd clqd replay LOG"), Some("clqd replay LOG"));
    assert_eq!(command_line("sudo systemctl stop clqd"), None);
}

fn is_test_source(path: &Path) -> bool {
    let path = path.display().to_string();
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The fixed parts of the string literals of Rust code: a literal is cut where a value is inserted
/// (`{...}`). Escapes and continued lines are resolved as the compiler does.
fn literal_parts(code: &str, into: &mut Vec<String>) {
    let bytes: Vec<char> = code.chars().collect();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            '/' if bytes.get(at + 1) == Some(&'/') => {
                while at < bytes.len() && bytes[at] != '\n' {
                    at += 1;
                }
            }
            // A character, not a lifetime.
            '\'' if bytes.get(at + 1) == Some(&'\\') => {
                at += 3;
                while at < bytes.len() && bytes[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if bytes.get(at + 2) == Some(&'\'') => at += 3,
            'r' if matches!(bytes.get(at + 1), Some('"' | '#'))
                && (at == 0 || !(bytes[at - 1].is_alphanumeric() || bytes[at - 1] == '_')) =>
            {
                let hashes = bytes[at + 1..].iter().take_while(|&&c| c == '#').count();
                if bytes.get(at + 1 + hashes) != Some(&'"') {
                    at += 1;
                    continue;
                }
                let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                let from = at + hashes + 2;
                let rest: String = bytes[from..].iter().collect();
                let raw = rest.split(&end).next().unwrap_or_default();
                into.push(raw.to_owned());
                at = from + raw.chars().count() + end.len();
            }
            '"' => {
                let mut text = String::new();
                at += 1;
                while at < bytes.len() && bytes[at] != '"' {
                    match bytes[at] {
                        '\\' => {
                            at += 1;
                            match bytes[at] {
                                'n' => text.push('\n'),
                                't' => text.push('\t'),
                                '\n' => {
                                    while bytes.get(at + 1).is_some_and(|c| c.is_whitespace()) {
                                        at += 1;
                                    }
                                }
                                other => text.push(other),
                            }
                        }
                        other => text.push(other),
                    }
                    at += 1;
                }
                at += 1;
                into.extend(fixed_parts(&text));
            }
            _ => at += 1,
        }
    }
}

/// A format string cut at its values. `{{` is a brace.
fn fixed_parts(format: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                parts.last_mut().expect("one").push('{');
            }
            '{' => {
                while chars.next().is_some_and(|c| c != '}') {}
                parts.push(String::new());
            }
            '}' => {
                chars.next_if_eq(&'}');
                parts.last_mut().expect("one").push('}');
            }
            c => parts.last_mut().expect("one").push(c),
        }
    }
    parts
}

/// The fixed parts of a quoted message: it is cut at `...`, which stands for a value, and the prefix of
/// every error of a command is removed. Parts of punctuation alone are left out.
fn quoted_parts(message: &str) -> Vec<&str> {
    let message = message.trim();
    let message = message.strip_prefix("clqd: ").unwrap_or(message);
    message.split("...").map(str::trim).filter(|part| part.chars().filter(|c| c.is_alphabetic()).count() >= 2).collect()
}

/// Whether the program prints a part: as one literal, or as an error and its cause, which are joined by
/// `: `.
fn is_printed(part: &str, literals: &[String]) -> bool {
    let part = part.trim_matches(|c: char| c == ':' || c.is_whitespace());
    let is_literal = |text: &str| literals.iter().any(|literal| literal.contains(text));
    is_literal(part)
        || part.match_indices(": ").any(|(at, _)| {
            let (error, cause) = (&part[..at], &part[at + 2..]);
            is_literal(error) && is_printed(cause, literals)
        })
}

/// In docs/troubleshooting.md, a fence with the language `message` quotes messages, one on each line;
/// `...` stands for what varies. If this fails, a message has changed: quote the new one.
#[test]
fn every_quoted_message_is_a_message_of_the_program() {
    let mut literals = Vec::new();
    for source in files(&root().join("src"), "rs").iter().filter(|path| !is_test_source(path)) {
        let code = read(source);
        literal_parts(code.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default(), &mut literals);
    }
    let page = root().join("docs/troubleshooting.md");
    let text = read(&page);
    let messages: Vec<Line> = lines(&text).into_iter().filter(|line| line.fence == Some("message")).collect();
    assert!(messages.len() > 20, "only {} messages are quoted", messages.len());
    let mut unknown = Vec::new();
    for line in messages {
        let parts = quoted_parts(line.text);
        assert!(!parts.is_empty(), "line {} has no fixed part: {}", line.number, line.text);
        for part in parts {
            if !is_printed(part, &literals) {
                unknown.push(format!("{}:{}: {part}", shown(&page), line.number));
            }
        }
    }
    assert!(unknown.is_empty(), "src/ has no string with:\n{}", unknown.join("\n"));
}

#[test]
fn parts_of_messages_are_found() {
    let mut literals = Vec::new();
    let code = r##"
        #[error("cannot {what} {} (setting a.b)", x)] // "a comment"
        bail!("the first half \
               and the second, \"{quoted}\""); let c = '"'; let d = b'\''; let raw = r#"a "raw" one"#;
    "##;
    literal_parts(code, &mut literals);
    for part in ["cannot", "(setting a.b)", "the first half and the second, \"", "a \"raw\" one"] {
        assert!(is_printed(part, &literals), "{part} in {literals:?}");
    }
    assert!(is_printed("the first half: a \"raw\" one", &literals));
    assert!(!is_printed("a comment", &literals));
    assert!(!is_printed("the first half: nothing", &literals));
    assert_eq!(quoted_parts("clqd: cannot open ... (setting a.b): ..."), ["cannot open", "(setting a.b):"]);
}

/// Each crate has a reason.
#[test]
fn every_dependency_has_its_reason() {
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().expect("TOML");
    let dependencies = manifest["dependencies"].as_table().expect("a table");
    let page = read(&root().join("docs/architecture.md"));
    let section = page.split("## Dependencies\n").nth(1).expect("a section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let described: BTreeSet<&str> = rows.filter(|(_, reason)| reason.len() > 5).map(|(name, _)| name).collect();
    let named: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(described, named);
}
