//! Checks the text of a configuration file against the table of keys and reports every
//! problem with its line. Reads no file and fills no struct.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{IMPORT_KEYS, KEYS, KeySpec, TOKEN_KEYS, ValueType, WEBHOOK_KEYS, sections};
use crate::limits::TAGS_MAX;
use crate::master::{ListUrl, check_scheme};
use crate::model::ScanBudget;
use crate::nearest::nearest;

/// A problem in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// From 1.
    pub line: usize,
    /// `scan.timeout_ms`; empty if the text is not TOML.
    pub key: String,
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.key, self.message) }
    }
}

/// The lines of the keys, for checks of several keys together.
#[derive(Debug, Default)]
pub(super) struct KeyLines(BTreeMap<String, usize>);

impl KeyLines {
    /// The line of a key; 1 for an omitted key.
    pub(super) fn of(&self, key: &str) -> usize {
        self.0.get(key).copied().unwrap_or(1)
    }

    /// Converts findings about keys to problems with their lines.
    pub(super) fn problems(&self, findings: Vec<(&'static str, String)>) -> Vec<ConfigProblem> {
        let problem =
            |(key, message): (&str, String)| ConfigProblem { line: self.of(key), key: key.to_owned(), message };
        findings.into_iter().map(problem).collect()
    }
}

/// Sections that may occur several times, with their keys.
const LISTS: [(&str, &[KeySpec]); 3] = [(IMPORT, IMPORT_KEYS), (TOKEN, TOKEN_KEYS), (WEBHOOK, WEBHOOK_KEYS)];

const IMPORT: &str = "import";
const TOKEN: &str = "web.token";
const WEBHOOK: &str = "webhook";

/// Most syntax errors to report.
const SYNTAX_ERRORS_MAX: usize = 20;

/// Lines before a syntax error that are searched for the start of its statement.
const STATEMENT_LINES_MAX: usize = 100;

/// All problems of the text, by line; empty: it is valid.
pub(super) fn check(text: &str) -> (Vec<ConfigProblem>, KeyLines) {
    let (mut problems, rest) = syntax_errors(text);
    let mut lines = KeyLines::default();
    // After a syntax error the parsed values are unreliable, so they are not checked.
    if let Some(rest) = rest {
        let (table, _) = DeTable::parse_recoverable(&rest);
        let mut checker = Validator { text, problems: Vec::new(), lines };
        checker.top(table.get_ref());
        problems.append(&mut checker.problems);
        lines = checker.lines;
    }
    problems.sort_by_key(|p| p.line);
    problems.dedup();
    (problems, lines)
}

/// The value of a top-level key that is a string, from a file that may have problems. `None`: the
/// key is missing, or its own value has a problem.
pub(super) fn lenient_text(text: &str, name: &str) -> Option<String> {
    let key = KEYS.iter().find(|key| key.section.is_empty() && key.name == name)?;
    let (_, rest) = syntax_errors(text);
    let rest = rest?;
    let (table, _) = DeTable::parse_recoverable(&rest);
    let value = table.get_ref().get(name)?.get_ref();
    value_problem(&key.kind, value).ok()?;
    value.as_str().map(str::to_owned)
}

/// Returns the syntax errors, and the text with the invalid statements blanked. One error
/// causes further ones after it, so only the first is reported.
fn syntax_errors(text: &str) -> (Vec<ConfigProblem>, Option<String>) {
    let mut problems = Vec::new();
    let mut rest = text.to_owned();
    while let (Some((at, message)), _) = first_error(&rest) {
        if problems.len() == SYNTAX_ERRORS_MAX {
            return (problems, None);
        }
        let before = &text[..at];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before[before.rfind('\n').map_or(0, |feed| feed + 1)..].chars().count();
        let first = first_line_of_statement(&rest, line);
        let begins = if first < line { format!("; this begins on line {first}") } else { String::new() };
        let message = format!("not TOML: {message} at column {column}{begins}");
        problems.push(ConfigProblem { line, key: String::new(), message });
        let is_header = |line: usize| rest.lines().nth(line - 1).is_some_and(|text| text.trim_start().starts_with('['));
        let next_header = (line + 1..).find(|&next| next > rest.lines().count() || is_header(next));
        let section = next_header.expect("the text ends");
        // The section of keys after an invalid header is unknown.
        let ends = if is_header(first) { vec![section] } else { vec![first + 1, line + 1, section] };
        let blanked = ends.into_iter().map(|end| blank_lines(&rest, first..end));
        let Some(best) = blanked.min_by_key(|text| first_error(text).1) else { return (problems, None) };
        if best == rest {
            return (problems, None);
        }
        rest = best;
    }
    (problems, Some(rest))
}

/// Position and message of the first syntax error, and the number of errors.
fn first_error(text: &str) -> (Option<(usize, String)>, usize) {
    let (_, errors) = DeTable::parse_recoverable(text);
    let errors_at = errors.iter().map(|error| (error.span().map_or(0, |span| span.start.min(text.len())), error));
    let first = errors_at.min_by_key(|(at, _)| *at);
    let first = first.map(|(at, error)| {
        // The offset may be inside a character.
        let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        (at, error.message().trim().replace('\n', "; "))
    });
    (first, errors.len())
}

/// The line on which the invalid statement begins: all text before it can be parsed.
fn first_line_of_statement(text: &str, line: usize) -> usize {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let lines = (line.saturating_sub(STATEMENT_LINES_MAX).max(1)..=line).rev();
    let mut readable = lines.filter(|&line| first_error(&text[..starts[line - 1]]).1 == 0);
    readable.next().unwrap_or(line)
}

/// Replaces some lines, numbered from 1, by spaces.
fn blank_lines(text: &str, lines: Range<usize>) -> String {
    let blanked = text.split_inclusive('\n').enumerate().map(|(index, line)| {
        if !lines.contains(&(index + 1)) {
            return line.to_owned();
        }
        let feed = if line.ends_with('\n') { "\n" } else { "" };
        " ".repeat(line.len() - feed.len()) + feed
    });
    blanked.collect()
}

/// The problem of a text that is not UTF-8 after this many bytes.
pub(super) fn not_utf8(bytes: &[u8], valid: usize) -> ConfigProblem {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before[before.rfind('\n').map_or(0, |feed| feed + 1)..].chars().count();
    let message = format!("not UTF-8 at column {column} (byte {:#04x}); save the file as UTF-8", bytes[valid]);
    ConfigProblem { line, key: String::new(), message }
}

struct Validator<'t> {
    text: &'t str,
    problems: Vec<ConfigProblem>,
    lines: KeyLines,
}

impl Validator<'_> {
    fn line(&self, span: Range<usize>) -> usize {
        let at = span.start.min(self.text.len());
        1 + self.text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count()
    }

    fn problem(&mut self, span: Range<usize>, key: String, message: String) {
        let line = self.line(span);
        self.problems.push(ConfigProblem { line, key, message });
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let text = name.get_ref().as_ref();
            if sections().contains(&text) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.section(text, inner),
                    _ => self.problem(name.span(), text.to_owned(), format!("is a section; write [{text}]")),
                }
            } else if let Some(list) = [IMPORT, WEBHOOK].into_iter().find(|list| *list == text) {
                self.list(list, name, value);
            } else if let Some(list) = nearest(text, [IMPORT, WEBHOOK]).filter(|_| value.get_ref().is_array()) {
                self.problem(name.span(), text.to_owned(), format!("unknown section; did you mean [[{list}]]?"));
            } else if KEYS.iter().any(|k| k.section.is_empty() && k.name == text) {
                self.entry("", name, value);
            } else if value.get_ref().is_table() {
                let nearest = nearest(text, sections());
                let advice = match nearest {
                    Some(right) => format!("did you mean [{right}]?"),
                    None => format!("the sections are {}", sections().join(", ")),
                };
                self.problem(name.span(), text.to_owned(), format!("unknown section; {advice}"));
            } else {
                self.unknown("", name);
            }
        }
    }

    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            match format!("{section}.{}", name.get_ref()).as_str() {
                TOKEN => self.list(TOKEN, name, value),
                _ => self.entry(section, name, value),
            }
        }
    }

    /// Checks the sections of a list.
    fn list(&mut self, list: &str, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let tables = value
            .get_ref()
            .as_array()
            .map(|elements| elements.iter().map(|e| Some((e.span(), e.get_ref().as_table()?))));
        let Some(tables) = tables.and_then(Iterator::collect::<Option<Vec<_>>>) else {
            return self.problem(name.span(), list.to_owned(), format!("is a list of sections; write [[{list}]]"));
        };
        let (_, keys) = LISTS.into_iter().find(|(name, _)| *name == list).expect("a list");
        for (span, table) in tables {
            let problems = self.problems.len();
            self.list_keys(list, keys, table);
            match list {
                IMPORT => self.import(span, table, problems == self.problems.len()),
                WEBHOOK => self.webhook(span, table),
                _ => self.token(span, table),
            }
        }
    }

    fn list_keys(&mut self, list: &str, keys: &'static [KeySpec], table: &DeTable<'_>) {
        for (name, value) in table {
            let text = name.get_ref().as_ref();
            if let Some(key) = keys.iter().find(|key| key.name == text) {
                self.value(key, value);
                continue;
            }
            let names = || keys.iter().map(|key| key.name);
            let message = match nearest(text, names()) {
                Some(right) => format!("unknown key; did you mean {right}?"),
                None => format!("unknown key; the keys of [[{list}]] are {}", names().collect::<Vec<_>>().join(", ")),
            };
            self.problem(name.span(), format!("{list}.{text}"), message);
        }
    }

    fn token(&mut self, span: Range<usize>, table: &DeTable<'_>) {
        for key in TOKEN_KEYS {
            if !table.iter().any(|(name, _)| name.get_ref() == key.name) {
                let message = format!("has no key {}; `clqd token new` prints a whole section", key.name);
                self.problem(span.clone(), TOKEN.to_owned(), message);
            }
        }
    }

    fn webhook(&mut self, span: Range<usize>, table: &DeTable<'_>) {
        let value_of = |wanted: &str| table.iter().find(|(name, _)| name.get_ref() == wanted).map(|(_, value)| value);
        for name in ["name", "url", "events"].into_iter().filter(|name| value_of(name).is_none()) {
            self.problem(span.clone(), WEBHOOK.to_owned(), format!("has no key {name}"));
        }
        let events = value_of("events").and_then(|events| events.get_ref().as_array());
        if events.is_some_and(|events| events.is_empty()) {
            self.problem(span.clone(), WEBHOOK.to_owned(), "has no events".to_owned());
        }
        let is_of_servers = events
            .into_iter()
            .flatten()
            .any(|event| event.get_ref().as_str().is_some_and(|event| event.starts_with("server_")));
        let problem = match (value_of("tag"), value_of("game")) {
            (Some(_), Some(_)) => "has a tag and a game; expected one of them",
            (None, None) => "has neither a tag nor a game",
            (None, Some(_)) if is_of_servers => {
                "has events of servers, but no tag; only the servers of a tag are watched"
            }
            _ => return,
        };
        self.problem(span, WEBHOOK.to_owned(), problem.to_owned());
    }

    /// `is_valid`: no key has a problem.
    fn import(&mut self, span: Range<usize>, table: &DeTable<'_>, is_valid: bool) {
        let value_of = |wanted: &str| table.iter().find(|(name, _)| name.get_ref() == wanted).map(|(_, value)| value);
        if let Some(tags) = value_of("tags")
            && tags.get_ref().as_array().is_some_and(|tags| tags.len() > TAGS_MAX)
        {
            self.problem(tags.span(), format!("{IMPORT}.tags"), format!("expected at most {TAGS_MAX} tags"));
        }
        let Some(master) = value_of("master") else {
            return self.problem(
                span,
                IMPORT.to_owned(),
                "has no key master, the URL of a master server or of a list on a website".to_owned(),
            );
        };
        // If the section sets a scheme, the import does not depend on the kind of the master.
        if is_valid
            && value_of("scheme").is_none()
            && let Some(Ok(url)) = master.get_ref().as_str().map(str::parse::<ListUrl>)
            && let Some(scheme) = url.server_scheme()
            && let Err(error) = check_scheme(scheme)
        {
            self.problem(master.span(), format!("{IMPORT}.master"), error.to_string());
        }
    }

    fn entry(&mut self, section: &str, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let known = KEYS.iter().find(|k| k.section == section && k.name == name.get_ref().as_ref());
        let Some(key) = known else {
            self.unknown(section, name);
            return;
        };
        let line = self.line(name.span());
        self.lines.0.insert(key.path(), line);
        self.value(key, value);
    }

    /// Checks a value, and each element of a list.
    fn value(&mut self, key: &KeySpec, value: &Spanned<DeValue<'_>>) {
        let checked = match (&key.kind, value.get_ref()) {
            (ValueType::Texts(check), DeValue::Array(items)) => {
                items.iter().map(|item| (item.span(), element_problem(&key.kind, *check, item.get_ref()))).collect()
            }
            (kind, found) => vec![(value.span(), value_problem(kind, found))],
        };
        for (span, result) in checked {
            if let Err(message) = result {
                self.problem(span, key.path(), message);
            }
        }
    }

    fn unknown(&mut self, section: &str, name: &Spanned<std::borrow::Cow<'_, str>>) {
        let text = name.get_ref().as_ref();
        let path = if section.is_empty() { text.to_owned() } else { format!("{section}.{text}") };
        let message = match suggest_key(section, text) {
            Some(key) if key.section == section => format!("unknown key; did you mean {}?", key.name),
            Some(key) if key.section.is_empty() => {
                format!("unknown key; did you mean {}, a top-level key?", key.name)
            }
            Some(key) => format!("unknown key; did you mean {} in section [{}]?", key.name, key.section),
            None => {
                let names: Vec<_> = KEYS.iter().filter(|k| k.section == section).map(|k| k.name).collect();
                let subject =
                    if section.is_empty() { "top-level keys".to_owned() } else { format!("keys of [{section}]") };
                format!("unknown key; the {subject} are {}", names.join(", "))
            }
        };
        self.problem(name.span(), path, message);
    }
}

/// Suggests a key: the same name in another section, else the nearest name of this
/// section, else the nearest of any.
fn suggest_key(section: &str, name: &str) -> Option<&'static KeySpec> {
    let same = || KEYS.iter().find(|k| k.name == name);
    let here = || {
        let near = nearest(name, KEYS.iter().filter(|k| k.section == section).map(|k| k.name))?;
        KEYS.iter().find(|k| k.section == section && k.name == near)
    };
    let anywhere = || {
        let near = nearest(name, KEYS.iter().map(|k| k.name))?;
        KEYS.iter().find(|k| k.name == near)
    };
    same().or_else(here).or_else(anywhere)
}

fn value_problem(kind: &ValueType, value: &DeValue<'_>) -> Result<(), String> {
    match (kind, value) {
        (ValueType::Bool, DeValue::Boolean(_)) => Ok(()),
        (ValueType::Whole { min, max, .. }, DeValue::Integer(n)) => {
            let n = i64::from_str_radix(n.as_str(), n.radix());
            if n.is_ok_and(|n| (*min..=*max).contains(&n)) {
                Ok(())
            } else {
                Err(format!("{} is out of range; expected {}", shown(value), kind.expected()))
            }
        }
        (ValueType::Decimal { .. } | ValueType::Budget, DeValue::Integer(_) | DeValue::Float(_)) => {
            let n = match value {
                DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
                DeValue::Float(n) => n.as_str().parse::<f64>().ok(),
                _ => None,
            };
            let is_valid = |n: f64| match kind {
                ValueType::Decimal { min, max } => (*min..=*max).contains(&n),
                _ => ScanBudget::try_from(n).is_ok(),
            };
            if n.is_some_and(is_valid) {
                Ok(())
            } else {
                Err(format!("{} is out of range; expected {}", shown(value), kind.expected()))
            }
        }
        (ValueType::OneOf(names), DeValue::String(text)) => {
            if names.contains(&text.as_ref()) {
                Ok(())
            } else {
                Err(format!("{text:?} is not a valid value; expected {}", kind.expected()))
            }
        }
        (ValueType::Text(check), DeValue::String(text)) => check(text),
        _ => Err(format!("expected {}; found {}", kind.expected(), type_name(value))),
    }
}

fn element_problem(
    list: &ValueType,
    check: fn(&str) -> Result<(), String>,
    element: &DeValue<'_>,
) -> Result<(), String> {
    match element {
        DeValue::String(text) => check(text),
        other => Err(format!("expected {}; an element is {}", list.expected(), type_name(other))),
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(n) => n.to_string(),
        _ => value.type_str().to_owned(),
    }
}
