//! Clients can leave out fields that the schema marks optional, and only those.

use serde_json::Value;

use super::rejection::rejected;
use crate::explore::generate::remove;
use crate::explore::mistakes::Mistake;
use crate::explore::prober::{Halt, JSON, Prober};
use crate::explore::schema::{escaped, required};

/// The most fields of one check.
const FIELDS: usize = 12;

pub(super) async fn check(prober: &mut Prober<'_>, object: &Value) -> Result<(), Halt> {
    let object = prober.named(object);
    let mut fields = Vec::new();
    collect(prober, "", &object, &mut fields);
    for (at, is_required) in spread(fields) {
        let mut without = object.clone();
        remove(&mut without, &at);
        let misfits = prober.schema.misfits(&without);
        let dry = format!("{}?dryRun=All", prober.collection);
        if is_required {
            // Other rules about the same object can hide the field.
            if prober.schema.is_complete && misfits.iter().any(|misfit| misfit.at != at) {
                continue;
            }
            let reply = prober.send("POST", &dry, JSON, Some(&without)).await?;
            let mistake = Mistake::missing(&at, !prober.schema.is_complete);
            rejected(prober, &reply, (&mistake, "a create"))?;
        } else if prober.schema.is_complete && misfits.is_empty() {
            let reply = prober.send("POST", &dry, JSON, Some(&without)).await?;
            prober.require(&reply, &format!("a create without the optional field {at}"))?;
        }
    }
    Ok(())
}

/// Returns some fields: the required ones, and others from all depths.
fn spread(fields: Vec<(String, bool)>) -> Vec<(String, bool)> {
    let (mut required, optional): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|(_, is_required)| *is_required);
    required.truncate(FIELDS);
    let step = (optional.len() / (FIELDS - required.len()).max(1)).max(1);
    let left = FIELDS - required.len();
    required.extend(optional.into_iter().step_by(step).take(left));
    required
}

/// Collects the declared fields of an object, and whether they are required.
fn collect(prober: &Prober<'_>, at: &str, value: &Value, found: &mut Vec<(String, bool)>) {
    let Some(node) = prober.schema.at(at) else { return };
    let required = required(node);
    for (name, member) in value.as_object().into_iter().flatten() {
        let is_managed = ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str());
        if (at.is_empty() && is_managed) || name == "metadata" {
            continue;
        }
        let place = format!("{at}/{}", escaped(name));
        if node["properties"].get(name).is_some() {
            found.push((place.clone(), required.contains(&name.as_str())));
        }
        collect(prober, &place, member, found);
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        collect(prober, &format!("{at}/{index}"), item, found);
    }
}
