//! The requirements catalogue: every requirement of the conventions, with its cases or with the
//! reason why it has none.

mod breakage;
mod coverage;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Edition, Level};

pub use breakage::Breakage;
pub(crate) use breakage::RawBreakage;
pub use coverage::{Counts, Coverage, Row, Share};

/// All requirements, in the order of the conventions.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    requirements: Vec<Requirement>,
    by_id: BTreeMap<String, usize>,
}

impl Requirements {
    /// Builds the catalogue; of two with the same id the later one counts.
    pub(crate) fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut all = Self::default();
        for requirement in requirements {
            if let Some(index) = all.by_id.get(&requirement.id) {
                all.requirements[*index] = requirement;
            } else {
                all.by_id.insert(requirement.id.clone(), all.requirements.len());
                all.requirements.push(requirement);
            }
        }
        all
    }

    /// One by its id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.by_id.get(id).map(|index| &self.requirements[*index])
    }

    /// All of them, in the order of the conventions.
    pub fn iter(&self) -> std::slice::Iter<'_, Requirement> {
        self.requirements.iter()
    }

    /// The number of requirements.
    pub fn len(&self) -> usize {
        self.requirements.len()
    }

    /// Returns whether the catalogue is empty.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl<'a> IntoIterator for &'a Requirements {
    type Item = &'a Requirement;
    type IntoIter = std::slice::Iter<'a, Requirement>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One checkable statement of the conventions.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// As `metadata.uid-unique`.
    pub id: String,
    /// The heading in the conventions.
    pub section: String,
    /// The level.
    pub level: Level,
    /// The text implies the level without naming it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// The kind of evidence.
    pub testability: Testability,
    /// The editions that have it.
    pub editions: Vec<Edition>,
    /// The statement, in the project's own words.
    pub statement: String,
    /// The texts of editions that differ from `statement`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<Edition, String>,
    /// Why the text changed, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// Who relies on it, and what breaks without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Behaviour that the conventions permit, although it may look like a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal: Option<String>,
    /// Why no case proves it; absent when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Without>,
}

impl Requirement {
    /// Returns the text of an edition, if it has the requirement.
    pub fn text_of(&self, edition: Edition) -> Option<&str> {
        let statement = || self.editions.contains(&edition).then_some(self.statement.as_str());
        self.texts.get(&edition).map(String::as_str).or_else(statement)
    }
}

/// The kind of evidence for a requirement.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Testability {
    /// In requests and responses.
    Wire,
    /// In upgraded connections.
    Stream,
    /// In the published schemas.
    Schema,
    /// In what clients do, not in what a server does.
    Client,
    /// In how people design and document APIs.
    Process,
}

/// Why a requirement has no case.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// The kind of reason.
    pub kind: WithoutKind,
    /// The reason.
    pub reason: String,
}

/// Kinds of reasons for having no case.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum WithoutKind {
    /// It binds clients.
    Client,
    /// It binds people.
    Process,
    /// Cases for it are yet to come.
    Planned,
    /// It cannot be observed from outside.
    Unseen,
}
