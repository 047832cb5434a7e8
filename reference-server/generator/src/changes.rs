//! The changes between the definitions of two versions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the definitions of a file that are new or differ, and the names of removed ones.
pub(crate) fn between(old: &str, new: &str) -> Option<String> {
    let (package, new) = definitions(new);
    let (_, old) = definitions(old);
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let mut text = String::new();
    for name in removed {
        let _ = writeln!(text, "removed {name}");
    }
    for (name, definition) in &new {
        if old.get(name) != Some(definition) {
            let _ = write!(text, "\n{definition}\n");
        }
    }
    (!text.is_empty()).then(|| format!("{package}\n{text}"))
}

/// Returns the line of the package, and the definitions by name.
fn definitions(text: &str) -> (&str, BTreeMap<&str, &str>) {
    let mut blocks = text.split("\n\n").map(str::trim_end);
    let package = blocks.next().unwrap_or_default();
    (package, blocks.filter_map(|block| Some((block.split_whitespace().next()?, block))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_definitions_are_complete() {
        let old = "package p\n\np.A\n  1 a string\n\np.B\n  1 b string\n\np.C\n  1 c string\n";
        let new = "package p\n\np.A\n  1 a string\n\np.B\n  1 b int32\n\np.D kind=/v1/D\n";
        let expected = "package p\nremoved p.C\n\np.B\n  1 b int32\n\np.D kind=/v1/D\n";
        assert_eq!(between(old, new).as_deref(), Some(expected));
        assert_eq!(between(old, old), None);
    }
}
