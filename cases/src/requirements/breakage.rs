//! The requirements that each fault of the reference server breaks.
//!
//! A case lists the faults that it catches, so a mistaken case could list unrelated faults. This
//! file names the requirements that a fault breaks, independently of all cases. The self-test
//! compares the two.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;

use super::Requirements;
use crate::diagnostic::Diagnostic;
use crate::yaml::{Located, Source};

/// The file as it is written: the name of each fault with the ids of requirements.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(title = "kubeproof faults")]
pub(crate) struct RawBreakage(BTreeMap<String, Vec<Located<String>>>);

/// The requirements that each fault breaks.
#[derive(Clone, Debug, Default)]
pub struct Breakage {
    by_fault: BTreeMap<String, Vec<String>>,
}

impl Breakage {
    /// Returns the requirements that a fault breaks.
    pub fn of(&self, fault: &str) -> &[String] {
        self.by_fault.get(fault).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of all faults in the file.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.by_fault.keys().map(String::as_str)
    }

    /// Checks the names in a file of the right shape.
    pub(crate) fn lower(
        source: &Source,
        raw: &RawBreakage,
        requirements: &Requirements,
        faults: Option<&BTreeSet<String>>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        for (fault, broken) in &raw.0 {
            if let Some(faults) = faults.filter(|faults| !faults.contains(fault)) {
                let message = format!("no fault has the name `{fault}`");
                errors.push(
                    Diagnostic::new(source, entry(source, fault), "unknown-fault", message)
                        .suggest(fault, faults.iter().map(String::as_str)),
                );
            }
            if broken.is_empty() {
                let message = format!("`{fault}` breaks nothing");
                errors.push(
                    Diagnostic::new(source, entry(source, fault), "no-requirement", message)
                        .help("a fault that breaks no requirement is no fault"),
                );
            }
            for (index, id) in broken.iter().enumerate() {
                let error = |code, message: String| {
                    Diagnostic::new(source, id.place.clone(), code, message)
                };
                if requirements.get(&id.value).is_none() {
                    let message = format!("no requirement has the id `{}`", id.value);
                    let known = requirements.iter().map(|requirement| requirement.id.as_str());
                    errors.push(error("unknown-requirement", message).suggest(&id.value, known));
                }
                if broken[..index].iter().any(|other| other.value == id.value) {
                    errors.push(error("duplicate", format!("`{}` is named twice", id.value)));
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let ids =
            |broken: &Vec<Located<String>>| broken.iter().map(|id| id.value.clone()).collect();
        Ok(Self {
            by_fault: raw.0.iter().map(|(fault, broken)| (fault.clone(), ids(broken))).collect(),
        })
    }
}

/// Where the entry of a fault begins.
fn entry(source: &Source, fault: &str) -> std::ops::Range<usize> {
    let start = match source.text.find(&format!("\n{fault}:")) {
        Some(line) => line + 1,
        None => 0,
    };
    start..start + fault.len()
}
