//! The picture of the modules in docs/architecture.md, drawn from their imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Source, is_test_file, layer_of, modules_named, sources};

const BEGIN: &str = "<!-- modules: drawn by tests/architecture/picture.rs -->\n";
const END: &str = "<!-- end of modules -->\n";

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules that each module imports.
fn imports(sources: &[Source]) -> Imports {
    let mut imports = Imports::new();
    for source in sources.iter().filter(|source| !is_test_file(&source.path) && !source.module.is_empty()) {
        let of = imports.entry(source.module.clone()).or_default();
        of.extend(modules_named(source).into_iter().filter(|module| *module != source.module));
    }
    imports
}

/// All that a module imports, directly or through others.
fn reached<'i>(imports: &'i Imports, from: &str, reached_before: &mut BTreeSet<&'i str>) {
    for module in imports.get(from).into_iter().flatten() {
        if reached_before.insert(module) {
            reached(imports, module, reached_before);
        }
    }
}

/// Without imports that follow from others. Modules may import each other, so they are removed one after the other.
fn reduced(imports: &Imports) -> Imports {
    let mut reduced = imports.clone();
    for (of, modules) in imports {
        for module in modules {
            reduced.get_mut(of).expect("a module").remove(module);
            let mut still = BTreeSet::new();
            reached(&reduced, of, &mut still);
            if !still.contains(module.as_str()) {
                reduced.get_mut(of).expect("a module").insert(module.clone());
            }
        }
    }
    reduced
}

fn picture(imports: &Imports) -> String {
    let mut lines = vec!["flowchart TD".to_owned()];
    for layer in (0..=5).rev() {
        let on_layer: Vec<&String> = imports.keys().filter(|module| layer_of(module) == Some(layer)).collect();
        lines.push(format!("    subgraph layer{layer} [layer {layer}]"));
        lines.extend(on_layer.iter().map(|module| format!("        {module}")));
        lines.push("    end".to_owned());
    }
    for (of, modules) in reduced(imports) {
        lines.extend(modules.iter().map(|module| format!("    {of} --> {module}")));
    }
    format!("```mermaid\n{}\n```\n", lines.join("\n"))
}

#[test]
fn picture_of_the_modules_is_that_of_their_imports() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let docs = std::fs::read_to_string(&path).expect("docs/architecture.md");
    let (before, rest) = docs.split_once(BEGIN).expect("the begin of the picture");
    let (_, after) = rest.split_once(END).expect("the end of the picture");
    let drawn = format!("{before}{BEGIN}{}{END}{after}", picture(&imports(&sources())));
    if std::env::var("CLQD_DRAW").is_ok() {
        std::fs::write(&path, &drawn).expect("written");
    }
    let same = drawn == docs || std::env::var("CLQD_DRAW").is_ok();
    assert!(same, "imports have changed; draw them with CLQD_DRAW=1 cargo test --test architecture picture");
}

#[test]
fn only_imports_that_follow_from_no_others_are_drawn() {
    let imports = |list: &[(&str, &[&str])]| -> Imports {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        list.iter().map(|(of, modules)| ((*of).to_owned(), owned(modules))).collect()
    };
    let all =
        imports(&[("cli", &["api", "model", "daemon"]), ("daemon", &["api"]), ("api", &["model"]), ("model", &[])]);
    let want = imports(&[("cli", &["daemon"]), ("daemon", &["api"]), ("api", &["model"]), ("model", &[])]);
    assert_eq!(reduced(&all), want);
    // Two that import each other.
    let all = imports(&[("cli", &["a", "b"]), ("a", &["b"]), ("b", &["a"])]);
    let want = imports(&[("cli", &["b"]), ("a", &["b"]), ("b", &["a"])]);
    assert_eq!(reduced(&all), want);
}
