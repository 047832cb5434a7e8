//! Properties that hold for each resource of each server.

mod dry_run;
mod lists;
mod optional;
mod patches;
mod read_back;
mod rejection;
mod replacement;

use serde_json::Value;

use super::generate::Generator;
use super::mistakes::{self, Mistake};
use super::prober::{Halt, Prober};

/// Objects of a check of lists.
const LISTED: usize = 5;

/// A property.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Property {
    /// Each read returns what was written.
    ReadBack,
    /// A PUT of what GET returned changes nothing.
    Replacement,
    /// Patches that lead from one object to another produce it.
    Patches,
    /// A dry run predicts the response.
    DryRun,
    /// An invalid object is rejected in the same way by each verb.
    Rejection,
    /// Clients can leave out optional fields, and only those.
    Optional,
    /// Lists, pages and watches have the same objects.
    Lists,
}

/// What a check writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Valid objects. The last one is invalid if there is a mistake.
    pub objects: Vec<Value>,
    /// What is wrong with the last object.
    pub mistake: Option<Mistake>,
}

impl Property {
    /// All properties, in the order of their checks.
    pub const ALL: [Self; 7] = [
        Self::ReadBack,
        Self::Rejection,
        Self::Patches,
        Self::DryRun,
        Self::Replacement,
        Self::Optional,
        Self::Lists,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadBack => "read back",
            Self::Replacement => "replacement",
            Self::Patches => "patches",
            Self::DryRun => "dry run",
            Self::Rejection => "rejection",
            Self::Optional => "optional fields",
            Self::Lists => "lists",
        }
    }

    /// Returns the requirement of the conventions.
    pub(super) const fn requirement(self) -> &'static str {
        match self {
            Self::ReadBack => "spec.persisted",
            Self::Replacement => "put.idempotent",
            Self::Patches => "verbs.patch",
            Self::DryRun => "validation.on-receipt",
            Self::Rejection => "validation.failure-invalid",
            Self::Optional => "optional.openapi-reflects",
            Self::Lists => "verbs.list",
        }
    }

    /// Reports whether a resource with these verbs can be checked.
    pub(super) fn applies(self, prober: &Prober<'_>) -> bool {
        let verbs: &[&str] = match self {
            Self::ReadBack => &["create", "get", "list", "watch", "delete"],
            Self::Replacement | Self::Patches | Self::DryRun | Self::Rejection => {
                &["create", "get", "update", "delete"]
            }
            Self::Optional => &["create"],
            Self::Lists => &["create", "list", "delete"],
        };
        verbs.iter().all(|verb| prober.has_verb(verb))
    }

    /// Generates what a check writes. `None` if the resource offers nothing.
    pub(super) fn input(self, generator: &mut Generator<'_>) -> Option<Input> {
        let mut mistake = None;
        let objects = match self {
            Self::ReadBack | Self::Replacement | Self::Optional => vec![generator.object()],
            Self::Patches | Self::DryRun => {
                let object = generator.object();
                let variant = generator.variant(&object);
                vec![object, variant]
            }
            Self::Rejection => {
                let object = generator.object();
                let (invalid, made) = mistakes::make(generator, &object)?;
                mistake = Some(made);
                vec![object, invalid]
            }
            Self::Lists => (0..LISTED).map(|_| generator.object()).collect(),
        };
        Some(Input { objects, mistake })
    }

    /// Checks the property.
    pub(super) async fn check(self, prober: &mut Prober<'_>, input: &Input) -> Result<(), Halt> {
        let Input { objects, mistake } = input;
        match (self, objects.as_slice(), mistake) {
            (Self::ReadBack, [object], _) => read_back::check(prober, object).await,
            (Self::Replacement, [object], _) => replacement::check(prober, object).await,
            (Self::Optional, [object], _) => optional::check(prober, object).await,
            (Self::Patches, [from, to], _) => patches::check(prober, from, to).await,
            (Self::DryRun, [from, to], _) => dry_run::check(prober, from, to).await,
            (Self::Rejection, [valid, invalid], Some(mistake)) => {
                rejection::check(prober, valid, (invalid, mistake)).await
            }
            (Self::Lists, objects, _) => lists::check(prober, objects).await,
            _ => Ok(()),
        }
    }
}
