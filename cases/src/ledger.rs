//! The ledger: every requirement of the conventions, with its cases or with the reason why it has none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Edition, Level};

/// All requirements, in the order of the conventions.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    requirements: Vec<Requirement>,
    by_id: BTreeMap<String, usize>,
}

impl Ledger {
    /// A ledger of these; of two with the same id the later one counts.
    pub(crate) fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut ledger = Self::default();
        for requirement in requirements {
            if let Some(index) = ledger.by_id.get(&requirement.id) {
                ledger.requirements[*index] = requirement;
            } else {
                ledger.by_id.insert(requirement.id.clone(), ledger.requirements.len());
                ledger.requirements.push(requirement);
            }
        }
        ledger
    }

    /// One by its id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.by_id.get(id).map(|index| &self.requirements[*index])
    }

    /// All of them, in the order of the conventions.
    pub fn iter(&self) -> std::slice::Iter<'_, Requirement> {
        self.requirements.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.requirements.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl<'a> IntoIterator for &'a Ledger {
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
    /// The heading under which the conventions say it.
    pub section: String,
    /// How strongly they ask for it.
    pub level: Level,
    /// The text does not use the word of its level, but means it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// Where it shows.
    pub testability: Testability,
    /// The editions that ask for it.
    pub editions: Vec<Edition>,
    /// What it asks for, in the project's own words.
    pub statement: String,
    /// What an edition asks for whose text is not that of `statement`, whether the requirement stands in it or another one instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<Edition, String>,
    /// Why the text changed, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// What relies on it: who, and what breaks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What a server is free to do, and what looks like a breach and is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal: Option<String>,
    /// Why no case proves it; absent when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Without>,
}

impl Requirement {
    /// What an edition asks for; `None`: it is silent.
    pub fn says(&self, edition: Edition) -> Option<&str> {
        let statement = || self.editions.contains(&edition).then_some(self.statement.as_str());
        self.texts.get(&edition).map(String::as_str).or_else(statement)
    }
}

/// Where a requirement shows.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Testability {
    /// In requests and answers.
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
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WithoutKind {
    /// It binds clients.
    Client,
    /// It binds people.
    Process,
    /// Cases for it are yet to come.
    Planned,
    /// A server shows nothing of it from outside.
    Unseen,
}
