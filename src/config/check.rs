//! Checks the text of a configuration file against the table of keys and tells
//! every problem of it, each with its line. Reads no file and fills no struct.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;

use super::keys::{KEYS, Key, Kind, sections};

/// Something that is wrong in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// `scan.timeout_ms`; empty where the text is not TOML.
    pub key: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.key, self.message) }
    }
}

/// Where the keys of a file stand, for checks of several keys together.
#[derive(Debug, Default)]
pub(super) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The line of a key; 1 for a key that the file leaves out.
    pub(super) fn of(&self, key: &str) -> usize {
        self.0.get(key).copied().unwrap_or(1)
    }
}

/// All problems of the text, by line; empty: it can be read.
pub(super) fn check(text: &str) -> (Vec<Problem>, Lines) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut checker = Checker { text, problems: Vec::new(), lines: Lines::default() };
    for error in &errors {
        let line = checker.line(error.span().unwrap_or(0..0));
        let message = error.message().trim().replace('\n', "; ");
        checker.problems.push(Problem { line, key: String::new(), message: format!("not TOML: {message}") });
    }
    let broken: Vec<usize> = checker.problems.iter().map(|p| p.line).collect();
    checker.top(table.get_ref());
    let Checker { mut problems, lines, .. } = checker;
    // What the parser made of a broken line is no evidence.
    problems.retain(|p| p.key.is_empty() || !broken.contains(&p.line));
    problems.sort_by_key(|p| p.line);
    problems.dedup();
    (problems, lines)
}

struct Checker<'t> {
    text: &'t str,
    problems: Vec<Problem>,
    lines: Lines,
}

impl Checker<'_> {
    fn line(&self, span: Range<usize>) -> usize {
        let at = span.start.min(self.text.len());
        1 + self.text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count()
    }

    fn problem(&mut self, span: Range<usize>, key: String, message: String) {
        let line = self.line(span);
        self.problems.push(Problem { line, key, message });
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let text = name.get_ref().as_ref();
            if sections().contains(&text) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.section(text, inner),
                    _ => self.problem(name.span(), text.to_owned(), format!("is a section; write [{text}]")),
                }
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
            self.entry(section, name, value);
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
        if let Err(message) = value_problem(&key.kind, value.get_ref()) {
            self.problem(value.span(), key.path(), message);
        }
    }

    fn unknown(&mut self, section: &str, name: &Spanned<std::borrow::Cow<'_, str>>) {
        let text = name.get_ref().as_ref();
        let path = if section.is_empty() { text.to_owned() } else { format!("{section}.{text}") };
        let message = match right_key(section, text) {
            Some(key) if key.section == section => format!("unknown key; did you mean {}?", key.name),
            Some(key) if key.section.is_empty() => {
                format!("unknown key; did you mean {}, which stands above the first section?", key.name)
            }
            Some(key) => format!("unknown key; did you mean {} in section [{}]?", key.name, key.section),
            None => {
                let names: Vec<_> = KEYS.iter().filter(|k| k.section == section).map(|k| k.name).collect();
                let of = if section.is_empty() { "the top".to_owned() } else { format!("[{section}]") };
                format!("unknown key; the keys of {of} are {}", names.join(", "))
            }
        };
        self.problem(name.span(), path, message);
    }
}

/// The key that was meant: the same name in another section, else the nearest
/// name of this section, else the nearest of any.
fn right_key(section: &str, name: &str) -> Option<&'static Key> {
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

fn value_problem(kind: &Kind, value: &DeValue<'_>) -> Result<(), String> {
    match (kind, value) {
        (Kind::Bool, DeValue::Boolean(_)) => Ok(()),
        (Kind::Whole { min, max, .. }, DeValue::Integer(n)) => {
            let n = i64::from_str_radix(n.as_str(), n.radix());
            if n.is_ok_and(|n| (*min..=*max).contains(&n)) {
                Ok(())
            } else {
                Err(format!("{} is out of range; expected {}", shown(value), kind.expected()))
            }
        }
        (Kind::Decimal { min, max }, DeValue::Integer(_) | DeValue::Float(_)) => {
            let n = match value {
                DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
                DeValue::Float(n) => n.as_str().parse::<f64>().ok(),
                _ => None,
            };
            if n.is_some_and(|n| (*min..=*max).contains(&n)) {
                Ok(())
            } else {
                Err(format!("{} is out of range; expected {}", shown(value), kind.expected()))
            }
        }
        (Kind::OneOf(names), DeValue::String(text)) => {
            if names.contains(&text.as_ref()) {
                Ok(())
            } else {
                Err(format!("{text:?} is none of its values; expected {}", kind.expected()))
            }
        }
        (Kind::Text(check), DeValue::String(text)) => check(text),
        (Kind::Texts(check), DeValue::Array(items)) => items.iter().try_for_each(|item| match item.get_ref() {
            DeValue::String(text) => check(text),
            other => Err(format!("expected {}; found {} among them", kind.expected(), noun(other))),
        }),
        _ => Err(format!("expected {}; found {}", kind.expected(), noun(value))),
    }
}

fn noun(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
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
