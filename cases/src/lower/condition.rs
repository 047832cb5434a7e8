//! `when`: steps that run under a condition.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Lowering;
use super::scope::Kind;
use crate::expression::Expression;
use crate::yaml::Located;

impl Lowering<'_> {
    /// The condition of a step. Names that the step defines are known to exist only under it.
    pub(super) fn when(&mut self, raw: Option<&Located<String>>) -> Option<Expression> {
        self.condition(raw?)
    }

    /// Enters a condition, if there is one.
    pub(super) fn enter_condition(&mut self, raw: Option<&Located<String>>) {
        if let Some(text) = raw {
            self.scopes.conditions.push(normal(&text.value));
        }
    }

    pub(super) fn leave_condition(&mut self, raw: Option<&Located<String>>) {
        if raw.is_some() {
            self.scopes.conditions.pop();
        }
    }

    /// Reports a name that may not exist here, since its step runs under a condition.
    pub(super) fn is_unconditional(
        &mut self,
        name: &str,
        place: &Range<usize>,
        compared: &BTreeSet<String>,
    ) {
        let Some(known) = self.scopes.get(name) else { return };
        let is_value = matches!(known.kind, Kind::Capture);
        let is_open = |condition: &&String| !self.scopes.conditions.contains(condition);
        let Some(condition) = known.conditions.iter().find(is_open).cloned() else { return };
        if compared.contains(name) && !is_value {
            return;
        }
        let help = if is_value {
            format!("give this step the same condition: `when: {condition}`")
        } else {
            format!(
                "compare it with null, as `{name} != null && ..`, or give this step the same \
                 condition"
            )
        };
        let message = format!("`{name}` exists only when `{condition}`");
        self.error(place, "conditional-step", message).set_help(help);
    }
}

/// Conditions are the same if they differ in white space only.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
