//! `let`: named expressions of a case.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::Lowering;
use super::expression::{Names, Parsed};
use super::scope::Kind;
use crate::expression::{Expression, Let};
use crate::raw::forms::Entries;

/// A named expression. Its names are checked wherever it is used, since they may be those of steps.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) name: String,
    place: Range<usize>,
    pub(super) parsed: Parsed<'a>,
}

impl Definition<'_> {
    pub(super) fn to_let(&self) -> Let {
        Let {
            name: self.name.clone(),
            text: self.parsed.text.value.trim().to_owned(),
            program: Arc::clone(&self.parsed.program),
        }
    }
}

impl<'a> Lowering<'a> {
    /// Parses the definitions of a case and reports circular ones.
    pub(super) fn define_lets(&mut self, raw: Option<&Entries<String>>) {
        for (name, text) in raw.into_iter().flat_map(|raw| &raw.0) {
            self.new_name(name, Kind::Let);
            if let Some(parsed) = self.parse(text) {
                let place = name.place.clone();
                let definition = Definition { name: name.value.clone(), place, parsed };
                self.lets.insert(name.value.clone(), Arc::new(definition));
            }
        }
        let mut reported = BTreeSet::new();
        for name in self.lets.keys().cloned().collect::<Vec<_>>() {
            if let Some(circle) = self.circle(&name, &mut vec![name.clone()])
                && circle.iter().all(|member| reported.insert(member.clone()))
                && let Some(definition) = self.lets.get(&name).cloned()
            {
                let way = [circle.as_slice(), std::slice::from_ref(&name)].concat().join("` -> `");
                let message = format!("`{name}` is defined by itself: `{way}`");
                self.error(&definition.place, "circular-let", message);
            }
        }
    }

    /// The way from a definition back to itself.
    fn circle(&self, start: &str, way: &mut Vec<String>) -> Option<Vec<String>> {
        let definition = self.lets.get(way.last()?)?;
        for (name, _) in &definition.parsed.names.variables {
            if name == start {
                return Some(way.clone());
            }
            if self.lets.contains_key(name) && !way.contains(name) {
                way.push(name.clone());
                if let Some(found) = self.circle(start, way) {
                    return Some(found);
                }
                way.pop();
            }
        }
        None
    }

    pub(super) fn is_let(&self, name: &str) -> bool {
        self.scopes.get(name).is_some_and(|known| known.kind == Kind::Let)
    }

    /// The definitions that names use, in the order of evaluation.
    pub(super) fn lets_of(&mut self, names: &Names) -> Vec<Arc<Definition<'a>>> {
        let mut found = Vec::new();
        self.collect_lets(names, &mut BTreeSet::new(), &mut found);
        found
    }

    fn collect_lets(
        &mut self,
        names: &Names,
        seen: &mut BTreeSet<String>,
        found: &mut Vec<Arc<Definition<'a>>>,
    ) {
        for (name, _) in &names.variables {
            if !self.is_let(name) || !seen.insert(name.clone()) {
                continue;
            }
            self.used_lets.insert(name.clone());
            if let Some(definition) = self.lets.get(name).cloned() {
                self.collect_lets(&definition.parsed.names, seen, found);
                found.push(definition);
            }
        }
    }

    /// Notes that a template reads a definition, so that the harness evaluates it first.
    pub(super) fn let_in_template(&mut self, name: &str) {
        self.used_lets.insert(name.to_owned());
        if let Some(definition) = self.lets.get(name).cloned() {
            let expression = self.resolve(&definition.parsed);
            self.template_lets.insert(name.to_owned(), expression);
        }
    }

    /// The definitions that templates read since `outer` was put aside.
    pub(super) fn take_lets(&mut self) -> Vec<(String, Expression)> {
        std::mem::take(&mut self.template_lets).into_iter().collect()
    }

    pub(super) fn unused_lets(&mut self) {
        for (name, definition) in self.lets.clone() {
            if !self.used_lets.contains(&name) {
                self.error(&definition.place, "unused-let", format!("nothing uses `{name}`"))
                    .set_help("remove the definition, or use it in an expression or as `${..}`");
            }
        }
    }
}
