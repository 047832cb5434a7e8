//! Design rules over a published API, as pure functions: schemas in, places that break a rule out.
//!
//! A rule looks at one field or one type at a time and knows no level, no requirement and no history: those stand in
//! the case that asks for the rule. The same rules serve a server and files on disk.

mod conditions;
mod judge;
mod kinds;
mod lists;
mod load;
mod model;
mod names;
mod numbers;
mod optional;
mod references;
mod units;
mod walk;

use kubeproof_cases::rule::{Rule, SchemaSet};

pub use self::judge::judge;
pub(crate) use self::load::published;
pub use self::model::{CrdError, Published};

/// A place that breaks a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The type and the path of the field, as `widgets.v1.example.com spec.items[].mode`.
    pub at: String,
    /// What is wrong there.
    pub message: String,
}

/// Every place that breaks a rule.
pub fn findings(rule: Rule, of: SchemaSet, published: &Published) -> Vec<Finding> {
    let types = published.types.iter().filter(|ty| of == SchemaSet::Published || ty.custom);
    let mut found: Vec<Finding> = types.flat_map(|ty| judge::findings(rule, published, ty)).collect();
    found.sort_by(|a, b| a.at.cmp(&b.at));
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
