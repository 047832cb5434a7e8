//! Explains conditions over the items of a list.

use cel::common::ast::{Expr, IdedExpr, operators};
use serde_json::{Value, json};

use super::Why;
use super::macros::{Kind, Macro, call, operands, reads};
use super::names::{leaf_name, leaves, relative};
use super::shown::{plain, tally};
use super::view::{Item, View};

/// Items whose exchanges are attached to a check.
const ATTACHED: usize = 4;

impl View<'_> {
    /// Explains a condition over a list that is false.
    pub(super) fn quantified(self, found: Macro<'_>) -> Why {
        let items = self.items(found.range).unwrap_or_default();
        let holds = |item: &&Item| self.with(found.variable, item, |inner| inner.holds(found.body));
        let (holding, breaking): (Vec<&Item>, Vec<&Item>) = items.iter().partition(holds);
        match found.kind {
            Kind::All => self.not_all(found, &items, &breaking),
            Kind::Exists => self.none(found, &items, "an item"),
            Kind::ExistsOne if holding.is_empty() => self.none(found, &items, "one item"),
            Kind::ExistsOne => {
                self.attach(found, &holding);
                let condition = self.condition(found.body, found.variable);
                let of = self.range_name(found.range, items.len());
                let condition = condition.map_or_else(String::new, |c| format!(" with {c}"));
                let text = format!("{of} include {}{condition}, expected exactly 1", holding.len());
                Why { text, ..Why::default() }
            }
            Kind::Filter | Kind::Map => Why::default(),
        }
    }

    /// Explains a condition over a list that is true and must be false.
    pub(super) fn quantified_not(self, found: Macro<'_>) -> Why {
        let items = self.items(found.range).unwrap_or_default();
        let holds = |item: &&Item| self.with(found.variable, item, |inner| inner.holds(found.body));
        let holding: Vec<&Item> = items.iter().filter(holds).collect();
        self.attach(found, &holding);
        let of = self.range_name(found.range, items.len());
        let condition = self.condition(found.body, found.variable);
        let text = match condition {
            Some(condition) => {
                format!("{of} include {} with {condition}, expected none", holding.len())
            }
            None => format!("{} of {of} match, expected none", holding.len()),
        };
        let values = self.tallied(found, &items);
        let text = values.map_or(text.clone(), |(leaf, values)| {
            format!("{text} ({leaf}{}{})", if leaf.is_empty() { "" } else { ": " }, tally(&values))
        });
        Why { text, ..Why::default() }
    }

    /// Explains a wrong number of items that match a condition.
    pub(super) fn counted_matches(self, found: Macro<'_>, expected: &str) -> Option<Why> {
        let items = self.items(found.range)?;
        let condition = self.condition(found.body, found.variable)?;
        let (leaf, values) = self.tallied(found, &items)?;
        let holds = |item: &&Item| self.with(found.variable, item, |inner| inner.holds(found.body));
        let (holding, others): (Vec<&Item>, Vec<&Item>) = items.iter().partition(holds);
        let some = holding.into_iter().take(ATTACHED).chain(others.into_iter().take(1));
        self.attach(found, &some.collect::<Vec<_>>());
        let of = self.range_name(found.range, items.len());
        let name = if leaf.is_empty() { of } else { format!("{leaf} of {of}") };
        let short = condition.strip_prefix(leaf.as_str()).map_or(condition.as_str(), str::trim);
        // `starting with "a"` needs no other preposition.
        let is_clause = short.split(' ').next().is_some_and(|word| word.ends_with("ing"));
        let with = if is_clause { "" } else { "with " };
        Some(Why {
            text: format!("{name}: {} (expected {expected} {with}{short})", tally(&values)),
            symptom: None,
            facts: vec![(name, json!(values))],
            differing: None,
        })
    }

    fn not_all(self, found: Macro<'_>, items: &[Item], breaking: &[&Item]) -> Why {
        self.attach(found, breaking);
        let Some(first) = breaking.first() else {
            return Why { text: "the items have no common value".to_owned(), ..Why::default() };
        };
        let of = self.range_name(found.range, items.len());
        let condition = self.with(found.variable, first, |inner| inner.failing(found.body));
        let why = self.with(found.variable, first, |inner| inner.explain(condition));
        if items.len() == 1 {
            return why;
        }
        if let Some((leaf, expected)) = self.single_leaf(condition, found.variable) {
            let values = self.leaf_values(&[leaf], found.variable, items);
            let leaf = leaf_name(leaf, found.variable);
            let name = if leaf.is_empty() { of } else { format!("{leaf} of {of}") };
            let text = format!("{name}: {}; expected {expected} for each", tally(&values));
            Why { text, facts: vec![(name, json!(values))], ..why }
        } else {
            let text = format!("{} ({} of {of})", why.text, breaking.len());
            Why { text, ..why }
        }
    }

    fn none(self, found: Macro<'_>, items: &[Item], expected: &str) -> Why {
        let condition = self.condition(found.body, found.variable);
        let with = condition.map_or_else(String::new, |condition| format!(" with {condition}"));
        if items.is_empty() {
            self.uses(found.range);
            let name = self.name(found.range);
            let text = format!("{name} is empty, expected {expected}{with}");
            return Why { text, facts: vec![(name, json!([]))], ..Why::default() };
        }
        self.attach(found, &items.iter().collect::<Vec<_>>());
        let of = self.range_name(found.range, items.len());
        if let Some((leaf, values)) = self.tallied(found, items).filter(|_| !with.is_empty()) {
            let leaf = if leaf.is_empty() { leaf } else { format!("{leaf} of ") };
            let name = format!("{leaf}{of}");
            let text = format!("{name}: {}; expected {expected}{with}", tally(&values));
            Why { text, facts: vec![(name, json!(values))], ..Why::default() }
        } else {
            let held = |item: &&Item| {
                self.with(found.variable, item, |inner| inner.count_held(found.body))
            };
            // The first of the items that come closest.
            let closest = items.iter().rev().max_by_key(held);
            let why = closest
                .map(|item| self.with(found.variable, item, |inner| inner.explain(found.body)));
            let why = why.unwrap_or_default();
            Why { text: format!("none of {of} is as expected: {}", why.text), ..why }
        }
    }

    /// Counts the operands of `&&` that hold.
    fn count_held(self, condition: &IdedExpr) -> usize {
        match call(condition).map(|call| (call.func_name.as_str(), operands(call))) {
            Some((operators::LOGICAL_AND, parts)) => {
                parts.iter().map(|part| self.count_held(part)).sum()
            }
            _ => usize::from(self.holds(condition)),
        }
    }

    /// Returns the operand of `&&` that does not hold.
    fn failing(self, condition: &IdedExpr) -> &IdedExpr {
        match call(condition).map(|call| (call.func_name.as_str(), operands(call))) {
            Some((operators::LOGICAL_AND, parts)) if parts.len() == 2 => {
                self.failing(if self.holds(parts[0]) { parts[1] } else { parts[0] })
            }
            _ => condition,
        }
    }

    /// Returns the only place of the items that a comparison reads, and what it expects there.
    fn single_leaf<'e>(
        self,
        condition: &'e IdedExpr,
        variable: &str,
    ) -> Option<(&'e IdedExpr, String)> {
        let call = call(condition)?;
        let [leaf, other] = operands(call)[..] else { return None };
        if relative(leaf, variable).is_none() || reads(other, variable) {
            return None;
        }
        let name = leaf_name(leaf, variable);
        let words = self.condition(condition, variable)?;
        let expected = words.strip_prefix(name.as_str()).unwrap_or(&words).trim();
        let expected = match call.func_name.as_str() {
            operators::IN => {
                format!("one {}", expected.strip_prefix("a value ").unwrap_or(expected))
            }
            operators::NOT_EQUALS | operators::EQUALS => expected.to_owned(),
            _ => format!("a value {expected}"),
        };
        Some((leaf, expected))
    }

    /// Returns the places of the items that a condition reads, and their values.
    fn tallied(self, found: Macro<'_>, items: &[Item]) -> Option<(String, Vec<Value>)> {
        let mut leaves = leaves(found.body, found.variable);
        // `has(a) && a == 1` reads one place.
        let tests_another = |leaf: &IdedExpr, name: &str, others: &[&IdedExpr]| {
            let is_test = |leaf: &IdedExpr| matches!(&leaf.expr, Expr::Select(s) if s.test);
            is_test(leaf)
                && others.iter().any(|o| !is_test(o) && leaf_name(o, found.variable) == name)
        };
        let all = leaves.clone();
        leaves.retain(|leaf| !tests_another(leaf, &leaf_name(leaf, found.variable), &all));
        if leaves.is_empty() || leaves.len() > 3 {
            return None;
        }
        let names: Vec<String> =
            leaves.iter().map(|leaf| leaf_name(leaf, found.variable)).collect();
        let values = self.leaf_values(&leaves, found.variable, items);
        Some((names.join(" and "), values))
    }

    fn leaf_values(self, leaves: &[&IdedExpr], variable: &str, items: &[Item]) -> Vec<Value> {
        let of_item = |item: &Item| {
            self.with(variable, item, |inner| {
                let mut values = leaves.iter().map(|leaf| match &leaf.expr {
                    Expr::Select(select) if select.test && inner.holds(leaf) => json!("present"),
                    _ if inner.value(leaf).is_err() => json!("missing"),
                    Expr::Select(select) if select.test => json!("missing"),
                    _ => inner.json(leaf),
                });
                match leaves.len() {
                    1 => values.next().unwrap_or_default(),
                    _ => json!(values.map(|value| plain(&value)).collect::<Vec<_>>().join("/")),
                }
            })
        };
        items.iter().map(of_item).collect()
    }

    /// Attaches the exchanges of some items.
    fn attach(self, found: Macro<'_>, items: &[&Item]) {
        for item in items.iter().take(ATTACHED) {
            self.with(found.variable, item, |inner| {
                for leaf in leaves(found.body, found.variable) {
                    inner.uses(leaf);
                }
            });
            self.shared.used.borrow_mut().extend(item.path.clone());
        }
    }
}
