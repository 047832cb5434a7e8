//! Any text becomes a case or diagnostics. It never causes a panic.

use kubeproof_cases::Loader;
use proptest::prelude::*;

const CASES: [&str; 4] = [
    include_str!("../../data/watch/resumes-from-every-version.yaml"),
    include_str!("../../data/exec/binary-both-ways.yaml"),
    include_str!("../../data/list/pages-under-concurrent-writes.yaml"),
    include_str!("../../data/schema/conditions-are-a-map-by-type.yaml"),
];

/// Pieces of cases, and pieces that break YAML, JSON, CEL and templates.
const PIECES: [&str; 24] = [
    "\n",
    "  ",
    "- ",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "${",
    "}",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "null",
    "\u{0}",
    "é",
    "${name}",
    "cel: a.b(",
    "0x_",
];

fn load(text: &str) {
    if let Err(diagnostics) = Loader::without_cases().file("a/b.yaml", "a/b.yaml", text).load() {
        assert!(!diagnostics.to_string().is_empty());
    }
}

/// A case with random pieces in it.
fn broken_case() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..20_usize, prop::sample::select(PIECES.to_vec()));
    (prop::sample::select(CASES.to_vec()), prop::collection::vec(edit, 1..6)).prop_map(
        |(case, edits)| {
            let mut text: Vec<char> = case.chars().collect();
            for (at, length, piece) in edits {
                let at = at.index(text.len() + 1);
                text.splice(at..(at + length).min(text.len()), piece.chars());
            }
            text.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn cases_with_random_pieces_do_not_panic(text in broken_case()) {
        load(&text);
    }

    #[test]
    fn any_text_does_not_panic(text in any::<String>()) {
        load(&text);
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("[{until: {steps: ", "}}]")] {
        for levels in [8, 16, 24, 32, 20_000] {
            load(&format!("steps: {}{}", open.repeat(levels), close.repeat(levels)));
        }
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("a.all(b, ", ")")] {
        let expression = format!("{}true{}", open.repeat(5000), close.repeat(5000));
        let expect = format!("[{{id: a, cel: '{expression}'}}]");
        load(&format!(
            "summary: It works\nrequirements: [general.rest-verbs]\nsteps:\n- expect: {expect}\n"
        ));
    }
}
