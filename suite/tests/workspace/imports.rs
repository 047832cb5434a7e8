//! The imports between the top-level modules of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rstest::rstest;

use crate::files::rust_files;

/// The modules that each module uses.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the imports between the top-level modules below `src`. Unit tests are left out.
pub(crate) fn module_graph(src: &Path) -> Graph {
    let mut graph = Graph::new();
    for file in rust_files(src) {
        let relative = file.strip_prefix(src).expect("a file of the crate");
        let is_top_level = relative.components().count() == 1;
        let module = relative.components().next().expect("a name").as_os_str();
        let module = module.to_str().expect("UTF-8").trim_end_matches(".rs").to_owned();
        if ["lib", "main", "bin"].contains(&module.as_str()) || relative.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        graph.entry(module).or_default().extend(used_modules(&text, is_top_level));
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, used) in &mut graph {
        used.retain(|other| other != module && modules.contains(other));
    }
    graph
}

/// Returns a circle of modules, if there is one. The first module is also the last one.
pub(crate) fn circle(graph: &Graph) -> Option<Vec<String>> {
    graph.keys().find_map(|start| {
        let mut path = vec![start.clone()];
        returns_to(start, graph, &mut path, &mut BTreeSet::new()).then_some(path)
    })
}

/// Extends the path until it returns to `start`.
fn returns_to(
    start: &str,
    graph: &Graph,
    path: &mut Vec<String>,
    visited: &mut BTreeSet<String>,
) -> bool {
    let Some(used) = path.last().and_then(|module| graph.get(module)) else { return false };
    for module in used {
        if module != start && !visited.insert(module.clone()) {
            continue;
        }
        path.push(module.clone());
        if module == start || returns_to(start, graph, path, visited) {
            return true;
        }
        path.pop();
    }
    false
}

/// Returns the first segments of all paths that start at the root of the crate.
fn used_modules(text: &str, is_top_level: bool) -> BTreeSet<String> {
    let text = without_comments(text);
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut used = BTreeSet::new();
    let prefixes: &[&str] = if is_top_level { &["crate::", "super::"] } else { &["crate::"] };
    for prefix in prefixes {
        for (at, _) in text.match_indices(prefix) {
            if !text[..at].ends_with(is_identifier) {
                used.extend(first_segments(&text[at + prefix.len()..]));
            }
        }
    }
    used
}

/// Returns the first segment of a path, or of each path in a group such as `{a::B, c}`.
fn first_segments(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else { return vec![identifier(path)] };
    let (mut depth, mut segments, mut is_start) = (1, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => is_start = true,
            _ if is_start && is_identifier(c) => {
                segments.push(identifier(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    segments
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| is_identifier(*c)).collect()
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the text without line comments.
pub(crate) fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

fn graph_of(edges: &[(&str, &[&str])]) -> Graph {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    edges.iter().map(|(from, to)| ((*from).to_owned(), names(to))).collect()
}

#[test]
fn a_circle_is_found() {
    let straight = graph_of(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
    assert_eq!(circle(&straight), None);
    let circular = graph_of(&[("a", &["d", "b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])]);
    assert_eq!(circle(&circular), Some(["b", "c", "b"].map(str::to_owned).to_vec()));
}

#[rstest]
#[case("use crate::a::B;\nuse crate::{c, d::{E, f}, G};", &["G", "a", "c", "d"])]
#[case("fn f() { crate::a::g(); } // crate::b", &["a"])]
#[case("use crate::a;\n#[cfg(test)]\nmod tests { use crate::b; }", &["a"])]
#[case("use super::a::B;", &["a"])]
fn imports_are_found(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(used_modules(text, true).into_iter().collect::<Vec<_>>(), expected);
}
