//! The requirements as reports show them: plain data, independent of the requirements catalogue.

use std::collections::BTreeMap;

use kubeproof_cases::case::{Edition, Level};

use crate::sections;

/// The requirements by id.
#[derive(Clone, Debug, Default)]
pub struct Requirements(BTreeMap<String, Requirement>);

/// One requirement.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The rule of the conventions in one sentence.
    pub statement: String,
    /// The level: must, should or may.
    pub level: Level,
    /// The section of the conventions.
    pub section: String,
    /// The editions that contain the requirement.
    pub editions: Vec<Edition>,
}

impl Requirement {
    /// Returns the URL of the section in the conventions on GitHub. Returns `None` for the
    /// requirements of users.
    pub fn section_url(&self) -> Option<String> {
        sections::url(&self.section, self.editions.contains(&Edition::Head))
    }
}

impl Requirements {
    /// Returns the requirement with this id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.0.get(id)
    }

    /// Returns the statement of a requirement, or its id if it is unknown. Reports of other
    /// versions can contain unknown ids.
    pub fn statement<'a>(&'a self, id: &'a str) -> &'a str {
        self.get(id).map_or(id, |requirement| &requirement.statement)
    }
}

impl FromIterator<(String, Requirement)> for Requirements {
    fn from_iter<I: IntoIterator<Item = (String, Requirement)>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}
