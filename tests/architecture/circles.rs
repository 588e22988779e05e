//! Finds circles among files: files that need each other.
//!
//! A file needs those that define what its paths name. A path to a module that only imports a name leads on to where the
//! name comes from. What a file takes from the modules around it is not counted: a folder's `mod.rs` defines what
//! its files share.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, is_test_file};

/// A path in the code, such as `["crate", "model", "Name"]`, and the name that it has in this file.
struct NamedPath {
    path: Vec<String>,
    alias: String,
}

struct File<'s> {
    source: &'s Source,
    tokens: Vec<String>,
    /// What the file imports, as paths from the crate, by the name that it has here.
    imports: BTreeMap<String, Vec<String>>,
}

/// The files of each circle, with a reason for each pair: what the first takes from the second.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<String, File> = sources
        .iter()
        .filter(|source| !is_test_file(&source.path) && !source.module.is_empty())
        .map(|source| (module_of(source), File { source, tokens: tokens_of(&source.code), imports: BTreeMap::new() }))
        .collect();
    let modules: BTreeSet<String> = files.keys().cloned().collect();
    for (module, file) in &mut files {
        let imports = imports(&file.tokens).into_iter();
        file.imports =
            imports.filter_map(|named| Some((named.alias, absolute(&named.path, module, &modules)?))).collect();
    }
    let needed: BTreeMap<&str, BTreeMap<&str, String>> =
        files.iter().map(|(module, file)| (module.as_str(), needs(module, file, &files, &modules))).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        needed.keys().map(|module| (*module, reach(module, &needed))).collect();
    let mut circles = BTreeSet::new();
    for (module, from) in &reached {
        if from.contains(module) {
            let circle: Vec<&str> = from.iter().copied().filter(|other| reached[other].contains(module)).collect();
            circles.insert(describe(&circle, &needed, &files));
        }
    }
    circles.into_iter().collect()
}

fn describe(
    circle: &[&str],
    needed: &BTreeMap<&str, BTreeMap<&str, String>>,
    files: &BTreeMap<String, File>,
) -> String {
    let path = |module: &str| &files[module].source.path;
    let mut text = format!("{} files need each other:", circle.len());
    for module in circle {
        for (other, name) in needed[module].iter().filter(|(other, _)| circle.contains(other)) {
            text += &format!("\n  src/{} takes {name} from src/{}", path(module), path(other));
        }
    }
    text
}

fn module_of(source: &Source) -> String {
    source.path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::")
}

/// The modules that a file needs, each with one name that it takes from there.
fn needs<'f>(
    module: &str,
    file: &File,
    files: &'f BTreeMap<String, File>,
    modules: &BTreeSet<String>,
) -> BTreeMap<&'f str, String> {
    let in_code = paths(&file.tokens).into_iter().filter_map(|path| match file.imports.get(&path[0]) {
        Some(imported) => Some(imported.iter().chain(&path[1..]).cloned().collect()),
        None => absolute(&path, module, modules),
    });
    let mut needs = BTreeMap::new();
    for path in file.imports.values().cloned().chain(in_code) {
        let Some(other) = definer(&path, files) else { continue };
        let is_around = module == other || module.starts_with(&format!("{other}::"));
        if !is_around {
            needs.insert(other, path.last().cloned().unwrap_or_default());
        }
    }
    needs
}

/// The module with the definition of what a path names.
fn definer<'f>(path: &[String], files: &'f BTreeMap<String, File>) -> Option<&'f str> {
    let mut path = path.to_vec();
    // Imports of imports end before that.
    for _ in 0..9 {
        let (len, module) = (1..=path.len())
            .rev()
            .find_map(|len| Some((len, files.get_key_value(&path[..len].join("::"))?.0.as_str())))?;
        let Some(imported) = path.get(len).and_then(|name| files[module].imports.get(name)) else {
            return Some(module);
        };
        if path.starts_with(imported) {
            return Some(module);
        }
        path = imported.iter().chain(&path[len + 1..]).cloned().collect();
        if path.len() == imported.len() && !files.contains_key(&path[0]) {
            return None;
        }
    }
    None
}

fn reach<'n>(from: &str, needed: &BTreeMap<&'n str, BTreeMap<&'n str, String>>) -> BTreeSet<&'n str> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        for other in needed[module].keys() {
            if reached.insert(*other) {
                waiting.push(other);
            }
        }
    }
    reached
}

/// The path from the crate. `None`: it names another crate, or something in this file.
fn absolute(path: &[String], module: &str, modules: &BTreeSet<String>) -> Option<Vec<String>> {
    let mut base: Vec<String> = module.split("::").map(str::to_owned).collect();
    let steps = path.iter().take_while(|name| matches!(name.as_str(), "super" | "self")).count();
    let ups = path[..steps].iter().filter(|name| *name == "super").count();
    if path[0] == "crate" {
        base.clear();
        return Some(path[1..].to_vec());
    }
    let is_child = modules.contains(&format!("{module}::{}", path[0]));
    (steps > 0 || is_child).then(|| {
        base.truncate(base.len().saturating_sub(ups));
        base.extend_from_slice(&path[steps..]);
        base
    })
}

/// Names, `::` and single characters; no strings.
fn tokens_of(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let len = if c.is_whitespace() {
            c.len_utf8()
        } else if is_name(c) {
            let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            tokens.push(rest[..len].to_owned());
            len
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("#\"") && tokens.last().is_some_and(|token| token == "r") {
            2 + rest[2..].find("\"#").map_or(rest.len() - 2, |end| end + 2)
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else {
            tokens.push(c.to_string());
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    tokens
}

fn imports(tokens: &[String]) -> Vec<NamedPath> {
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| *token == "use") {
        let end = tokens[at..].iter().position(|token| token == ";").map_or(tokens.len(), |len| at + len);
        import_tree(&tokens[at + 1..end], &[], &mut found);
    }
    found
}

/// Adds the paths of `a::{b, c::d as e}`.
fn import_tree(tokens: &[String], prefix: &[String], found: &mut Vec<NamedPath>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tokens.len() && tokens[at] != "{" && tokens[at] != "as" {
        if tokens[at] != "::" {
            path.push(tokens[at].clone());
        }
        at += 1;
    }
    if tokens.get(at).is_none_or(|token| token == "as") {
        if path.last().is_some_and(|name| name == "self") && path.len() > 1 {
            path.pop();
        }
        let alias = tokens.get(at + 1).or(path.last()).cloned().unwrap_or_default();
        if !path.is_empty() {
            found.push(NamedPath { path, alias });
        }
        return;
    }
    let (mut depth, mut from) = (0, at + 1);
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.as_str() {
            "{" => depth += 1,
            "," | "}" if depth == 0 => {
                if from < index {
                    import_tree(&tokens[from..index], &path, found);
                }
                from = index + 1;
            }
            "}" => depth -= 1,
            _ => (),
        }
    }
}

/// The paths outside of imports.
fn paths(tokens: &[String]) -> Vec<Vec<String>> {
    let is_name =
        |at: usize| tokens.get(at).is_some_and(|token| token.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at += tokens[at..].iter().position(|token| token == ";").unwrap_or(1);
        } else if is_name(at) {
            let mut path = vec![tokens[at].clone()];
            while tokens.get(at + 1).is_some_and(|token| token == "::") && is_name(at + 2) {
                at += 2;
                path.push(tokens[at].clone());
            }
            if path.len() > 1 {
                found.push(path);
            }
        }
        at += 1;
    }
    found
}

#[test]
fn circles_are_found_and_imports_of_imports_are_followed() {
    let sources =
        |files: &[(&str, &str)]| -> Vec<Source> { files.iter().map(|(path, code)| Source::new(path, code)).collect() };
    let none = [
        ("a/mod.rs", "mod b;\nmod c;\npub use b::B;\npub struct A;"),
        ("a/b.rs", "use super::A;\npub struct B;"),
        ("a/c.rs", "use super::{A, B};\nuse std::fmt;\nfn f() { crate::d::g(\"crate::a::c::x\") }"),
        ("d.rs", "use crate::a::B as Other;\npub fn g() {}"),
    ];
    assert_eq!(circles(&sources(&none)), Vec::<String>::new());
    let mut files = none;
    files[3] = ("d.rs", "use crate::a::{A, c::{self, C}};\npub fn g() {}");
    let found = circles(&sources(&files));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2 files need each other:\n  src/a/c.rs takes g from src/d.rs\n  src/d.rs takes "));
    // By way of a module that only passes the name on.
    files[3] = ("d.rs", "pub fn g() {}");
    files[1] = ("a/b.rs", "pub struct B;\nfn f() { super::c::h(); }");
    assert_eq!(circles(&sources(&files)).len(), 1);
}
