//! What reports say of a requirement: plain data, so that they need not know the ledger.

use std::collections::BTreeMap;

use kubeproof_cases::case::Level;

/// The requirements by id.
#[derive(Clone, Debug, Default)]
pub struct Requirements(BTreeMap<String, Requirement>);

/// One requirement.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// What the conventions ask for, in one sentence.
    pub statement: String,
    /// How strongly.
    pub level: Level,
    /// The section of the conventions.
    pub section: String,
}

impl Requirements {
    /// The requirement of this id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.0.get(id)
    }

    /// The statement of this requirement; its id when it is unknown, as in reports of another version.
    pub fn statement<'a>(&'a self, id: &'a str) -> &'a str {
        self.get(id).map_or(id, |requirement| &requirement.statement)
    }
}

impl FromIterator<(String, Requirement)> for Requirements {
    fn from_iter<I: IntoIterator<Item = (String, Requirement)>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}
