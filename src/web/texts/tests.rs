//! Every language has every text that the code uses, and no other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fluent_bundle::FluentArgs;
use maud::html;

use super::*;

/// The texts of a language, and the names of their values.
fn texts(language: Language) -> BTreeMap<String, BTreeSet<String>> {
    let names = |text: &str| {
        let names = text.split('$').skip(1);
        let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        names.map(name).collect::<BTreeSet<String>>()
    };
    let mut texts = BTreeMap::new();
    let mut last = String::new();
    for line in language.file().lines().filter(|line| !line.starts_with('#')) {
        if let Some((id, text)) = line.split_once(" =").filter(|_| line.starts_with(|c: char| c.is_ascii_lowercase())) {
            last = id.to_owned();
            assert!(texts.insert(last.clone(), names(text)).is_none(), "{language:?} has {last} twice");
        } else if !line.trim().is_empty() {
            texts.get_mut(&last).expect("a text begins at the start of a line").extend(names(line));
        }
    }
    texts
}

/// The texts that the code uses, and the names of the values that it gives.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let mut used = BTreeMap::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with("texts") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let code = fs::read_to_string(&path).expect("a source file");
                for (at, start) in code.match_indices("text!(") {
                    let Some(call) = code[at + start.len()..].trim_start().strip_prefix('"') else { continue };
                    let (id, rest) = call.split_once('"').expect("the end of the name");
                    let names = names_of_values(rest);
                    let before: &mut BTreeSet<String> = used.entry(id.to_owned()).or_default();
                    before.extend(names);
                }
            }
        }
    }
    used
}

/// The names before ` = ` in the rest of a call, at its own level.
fn names_of_values(rest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut depth, mut from) = (1, 0);
    let mut in_string = false;
    let mut last = ' ';
    for (at, c) in rest.char_indices() {
        match c {
            '"' if last != '\\' => in_string = !in_string,
            _ if in_string => (),
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 1 => from = at + 1,
            '=' if depth == 1 => _ = names.insert(rest[from..at].trim().to_owned()),
            _ => (),
        }
        last = c;
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    names
}

#[test]
fn every_language_has_every_text() {
    let used = used();
    assert!(used.len() > 300, "only {} texts were found in the code", used.len());
    for language in Language::iter() {
        let texts = texts(language);
        let missing: Vec<_> = used.keys().filter(|id| !texts.contains_key(*id)).collect();
        assert!(missing.is_empty(), "{language:?} has no text for {missing:?}");
        let unused: Vec<_> = texts.keys().filter(|id| !used.contains_key(*id)).collect();
        assert!(unused.is_empty(), "no code uses these texts of {language:?}: {unused:?}");
        for (id, names) in &texts {
            let given = &used[id];
            assert!(names.is_subset(given), "{id} of {language:?} has {names:?}, but the code gives {given:?}");
            // A number may be written as a word: `one player`.
            let lost: Vec<_> = given.difference(names).filter(|name| name.as_str() != "count").collect();
            assert!(lost.is_empty(), "{id} of {language:?} lacks {lost:?}");
        }
    }
}

#[test]
fn every_text_can_be_written() {
    for language in Language::iter() {
        for (id, names) in texts(language) {
            for number in [0, 1, 2, 5, 11, 21, 100] {
                let args: FluentArgs<'_> = names.iter().map(|name| (name.clone(), FluentValue::from(number))).collect();
                let bundle = &BUNDLES[language as usize];
                let pattern = bundle.get_message(&id).and_then(|message| message.value()).expect("the text");
                let mut errors = Vec::new();
                let text = bundle.format_pattern(pattern, Some(&args), &mut errors);
                assert!(errors.is_empty() && !text.is_empty(), "{id} of {language:?}: {errors:?}");
                assert!(!text.contains(['<', '>']), "{id} of {language:?} has HTML: {text}");
            }
        }
    }
}

#[test]
fn values_are_escaped_and_html_is_kept() {
    let hostile = "<i>\u{E000}0\u{E001}&";
    let link = || html! { a href="/x" { "<" } };
    let text = html_with(
        "mover-new",
        [("player", link().into()), ("position", hostile.into()), ("game", html! { b { "g" } }.into())],
    );
    let text = text.into_string();
    assert!(text.starts_with("<a href=\"/x\">&lt;</a> is"), "{text}");
    assert!(text.contains("&lt;i&gt;0&amp;") && text.contains("<b>g</b>"), "{text}");
}

#[test]
fn numbers_are_grouped_as_in_the_language() {
    for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567")] {
        assert_eq!(grouped(number), want);
    }
    assert_eq!(
        Language::German.within(|| (grouped(1_234), decimal("0.25".to_owned()))),
        ("1.234".into(), "0,25".into())
    );
    assert_eq!(Language::Russian.within(|| grouped(1_234)), "1\u{A0}234");
    assert_eq!(Language::Polish.within(|| text!("sessions-players", count = 22_u32)), "22 graczy.");
}
