//! Properties that hold for each resource of each server.

mod dry_run;
mod lists;
mod optional;
mod patches;
mod read_back;
mod rejection;
mod replacement;

use kubeproof_cases::case::Property;
use serde_json::Value;

use super::generate::Generator;
use super::mistakes::{self, Mistake};
use super::prober::{Halt, Prober};

/// Objects of a check of lists.
const LISTED: usize = 5;

/// What a check writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Valid objects. The last one is invalid if there is a mistake.
    pub objects: Vec<Value>,
    /// What is wrong with the last object.
    pub mistake: Option<Mistake>,
}

/// Returns the requirement of the conventions.
pub(super) const fn requirement(property: Property) -> &'static str {
    match property {
        Property::ReadBack => "spec.persisted",
        Property::Replacement => "put.idempotent",
        Property::Patches => "verbs.patch",
        Property::DryRun => "validation.on-receipt",
        Property::Rejection => "validation.failure-invalid",
        Property::OptionalFields => "optional.openapi-reflects",
        Property::Lists => "verbs.list",
    }
}

/// Generates what a check writes. `None` if the resource offers nothing.
pub(super) fn input(property: Property, generator: &mut Generator<'_>) -> Option<Input> {
    let mut mistake = None;
    let objects = match property {
        Property::ReadBack | Property::Replacement | Property::OptionalFields => {
            vec![generator.object()]
        }
        Property::Patches | Property::DryRun => {
            let object = generator.object();
            let variant = generator.variant(&object);
            vec![object, variant]
        }
        Property::Rejection => {
            let object = generator.object();
            let (invalid, made) = mistakes::make(generator, &object)?;
            mistake = Some(made);
            vec![object, invalid]
        }
        Property::Lists => (0..LISTED).map(|_| generator.object()).collect(),
    };
    Some(Input { objects, mistake })
}

/// Checks a property.
pub(super) async fn check(
    property: Property,
    prober: &mut Prober<'_>,
    input: &Input,
) -> Result<(), Halt> {
    let Input { objects, mistake } = input;
    match (property, objects.as_slice(), mistake) {
        (Property::ReadBack, [object], _) => read_back::check(prober, object).await,
        (Property::Replacement, [object], _) => replacement::check(prober, object).await,
        (Property::OptionalFields, [object], _) => optional::check(prober, object).await,
        (Property::Patches, [from, to], _) => patches::check(prober, from, to).await,
        (Property::DryRun, [from, to], _) => dry_run::check(prober, from, to).await,
        (Property::Rejection, [valid, invalid], Some(mistake)) => {
            rejection::check(prober, valid, (invalid, mistake)).await
        }
        (Property::Lists, objects, _) => lists::check(prober, objects).await,
        _ => Ok(()),
    }
}
