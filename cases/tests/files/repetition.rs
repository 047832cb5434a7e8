//! Cases name long expressions in `let` instead of repeating them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kubeproof_cases::yaml::{Content, Node, documents};
use regex::Regex;

use crate::data;

/// The most characters of an expression that a case may repeat.
const LONGEST: usize = 60;

const MACROS: [&str; 6] = ["all", "exists", "existsOne", "exists_one", "filter", "map"];

#[test]
fn no_case_repeats_a_long_expression() {
    let mut repeated = Vec::new();
    for file in data::cases() {
        let text = fs::read_to_string(&file).expect("a case file");
        let mut expressions = Vec::new();
        for document in documents(&text).expect("YAML") {
            collect(&document, &mut expressions);
        }
        repeated.extend(
            repetitions(&expressions).into_iter().map(|one| format!("{}: {one}", file.display())),
        );
    }
    assert!(repeated.is_empty(), "name these in `let`:\n{}", repeated.join("\n"));
}

#[test]
fn repetitions_are_found_anywhere() {
    let long =
        "listed.body.items.filter(item, item.metadata.name != name).map(item, item.metadata.uid)";
    let of = |expressions: &[String]| repetitions(expressions);
    assert_eq!(of(&[format!("{long} == [name]"), format!("size({long}) == 1")]).len(), 1);
    assert_eq!(of(&[format!("distinct({long}) && {long} != []")]).len(), 1);
    assert!(of(&[format!("{long} == []"), "listed.body.items.size() == 1".to_owned()]).is_empty());
    // Names that a macro binds have no value outside of it.
    let inner = "item.metadata.annotations.filter(other, other != item.metadata.name).size()";
    assert!(
        of(&[format!("listed.all(item, {inner} == 1)"), format!("listed.all(item, {inner} == 2)")])
            .is_empty()
    );
}

fn collect(node: &Node, found: &mut Vec<String>) {
    match &node.content {
        Content::Map(members) => {
            for (key, value) in members {
                match (key.value.as_str(), &value.content) {
                    ("cel" | "over" | "when", Content::String(text)) => found.push(text.clone()),
                    ("let", Content::Map(definitions)) => {
                        let texts =
                            definitions.iter().filter_map(|(_, value)| match &value.content {
                                Content::String(text) => Some(text.clone()),
                                _ => None,
                            });
                        found.extend(texts);
                    }
                    _ => collect(value, found),
                }
            }
        }
        Content::List(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// Chains of calls and members longer than [`LONGEST`] that occur more than once.
fn repetitions(expressions: &[String]) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for expression in expressions {
        let tokens = tokens(expression);
        let bound = bound(&tokens);
        for (start, end) in chains(&tokens) {
            let chain = &tokens[start..=end];
            let text = chain.concat();
            if text.len() > LONGEST && free(chain).is_disjoint(&bound) {
                *counts.entry(text).or_default() += 1;
            }
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(text, _)| text).collect()
}

fn tokens(text: &str) -> Vec<String> {
    let token = Regex::new(
        r#"(?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\d+(?:\.\d+)?|&&|\|\||[=!<>]=|\S"#,
    );
    let token = token.expect("a pattern");
    token.find_iter(text).map(|token| token.as_str().to_owned()).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !matches!(token, "in" | "true" | "false" | "null")
}

/// The index of the bracket that closes each opening one.
fn closing(tokens: &[String]) -> BTreeMap<usize, usize> {
    let mut open = Vec::new();
    let mut pairs = BTreeMap::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "(" | "[" | "{" => open.push(index),
            ")" | "]" | "}" => {
                if let Some(start) = open.pop() {
                    pairs.insert(start, index);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// Every `a.b(..)[..]`, as far as each of its parts.
fn chains(tokens: &[String]) -> Vec<(usize, usize)> {
    let closing = closing(tokens);
    let at = |index: usize| tokens.get(index).map_or("", String::as_str);
    let close = |index: usize| closing.get(&index).copied().unwrap_or(index);
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let follows_value =
            start > 0 && (matches!(at(start - 1), "." | ")" | "]" | "}") || is_name(at(start - 1)));
        if follows_value || !(is_name(at(start)) || matches!(at(start), "(" | "[")) {
            continue;
        }
        let mut end = if is_name(at(start)) { start } else { close(start) };
        found.push((start, end));
        loop {
            end = match (at(end + 1), at(end + 2)) {
                (".", member) if is_name(member) && at(end + 3) == "(" => close(end + 3),
                (".", member) if is_name(member) => end + 2,
                ("(" | "[", _) => close(end + 1),
                _ => break,
            };
            found.push((start, end));
        }
    }
    found
}

/// The names that macros bind.
fn bound(tokens: &[String]) -> BTreeSet<String> {
    let is_binding = |window: &&[String]| {
        MACROS.contains(&window[0].as_str()) && window[1] == "(" && window[3] == ","
    };
    tokens.windows(4).filter(is_binding).map(|window| window[2].clone()).collect()
}

/// The names that a chain reads and does not bind itself.
fn free(tokens: &[String]) -> BTreeSet<String> {
    let bound = bound(tokens);
    let is_free = |(index, token): &(usize, &String)| {
        let is_member = *index > 0 && tokens[index - 1] == ".";
        let is_call = tokens.get(index + 1).is_some_and(|next| next == "(");
        is_name(token) && !is_member && !is_call && !bound.contains(*token)
    };
    tokens.iter().enumerate().filter(is_free).map(|(_, token)| token.clone()).collect()
}
