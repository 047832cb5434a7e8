//! Objects with one mistake each.

mod metadata;
mod values;

use serde_json::Value;

use super::generate::Generator;
use super::schema::Schema;

/// A mistake of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// What is wrong, such as `above its maximum`.
    pub rule: &'static str,
    /// JSON Pointer to the wrong value.
    pub at: String,
    /// Whether the error may be at a part or a parent of the value.
    pub is_loose: bool,
    /// Whether only a create can make the mistake.
    pub only_create: bool,
    /// Whether only `fieldValidation=Strict` rejects it.
    pub is_strict: bool,
}

impl Mistake {
    fn new(rule: &'static str, at: &str) -> Self {
        let at = at.to_owned();
        Self { rule, at, is_loose: false, only_create: false, is_strict: false }
    }

    /// Returns the mistake of a missing field.
    pub(super) fn missing(at: &str, is_loose: bool) -> Self {
        Self { is_loose, ..Self::new("without a required field", at) }
    }

    fn loose(self) -> Self {
        Self { is_loose: true, ..self }
    }

    fn of_create(self) -> Self {
        Self { only_create: true, ..self }
    }

    /// Reports whether a cause of a rejection names the field.
    pub(super) fn is_named_by(&self, field: &str) -> bool {
        let wanted = self.at.trim_start_matches('/').replace('/', ".");
        let wanted = wanted.replace("~1", "/").replace("~0", "~");
        let field = field.replace('[', ".").replace([']', '"', '\''], "");
        let is_part = |of: &str, part: &str| {
            of.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        field == wanted || (self.is_loose && (is_part(&field, &wanted) || is_part(&wanted, &field)))
    }
}

/// Makes one mistake in a valid object. Returns the object and the mistake.
pub(super) fn make(generator: &mut Generator<'_>, object: &Value) -> Option<(Value, Mistake)> {
    let mut all = Vec::new();
    all.extend(metadata::mistakes(object));
    if generator.schema.is_complete {
        values::mistakes(generator, object, &mut all);
    } else {
        all.extend(values::of_built_in(generator, object));
    }
    if generator.schema.has_field_validation {
        all.extend(values::unknown_fields(generator.schema, object));
    }
    // Each rule has its turn. Many mistakes of one kind must not hide the others.
    let mut rules: Vec<&str> = all.iter().map(|(_, mistake)| mistake.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let turn = usize::try_from(generator.turn).unwrap_or_default();
    let rule = *rules.get(turn % rules.len().max(1))?;
    all.retain(|(_, mistake)| mistake.rule == rule);
    let (invalid, mistake) = generator.one_of(&all)?;
    is_invalid(generator.schema, &invalid, &mistake).then_some((invalid, mistake))
}

/// A mistake must be one by the schema, too.
fn is_invalid(schema: &Schema, object: &Value, mistake: &Mistake) -> bool {
    if !schema.is_complete || mistake.at.starts_with("/metadata") || mistake.is_strict {
        return true;
    }
    let misfits = schema.misfits(object);
    !misfits.is_empty() && misfits.iter().all(|misfit| misfit.is_certain)
}

/// Returns the object with another value at a JSON Pointer, whose parent exists.
fn with(object: &Value, at: &str, value: Value) -> Option<Value> {
    let mut changed = object.clone();
    let (parent, name) = at.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    match changed.pointer_mut(parent)? {
        Value::Object(members) => drop(members.insert(name, value)),
        Value::Array(items) => *items.get_mut(name.parse::<usize>().ok()?)? = value,
        _ => return None,
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/spec/parts/0/name", "spec.parts[0].name", true)]
    #[case("/spec/parts/0/name", "spec.parts[1].name", false)]
    #[case("/spec/parts/0/name", ".spec.parts[0].name", false)]
    #[case("/spec/parts/0/name", "/spec/parts/0/name", false)]
    #[case("/spec/parts/0/name", "name", false)]
    #[case("/spec/limits/a.b~1c/least", "spec.limits[a.b/c].least", true)]
    #[case("/spec/limits/key/least", "spec.limits.key.least", true)]
    fn a_cause_names_the_field(#[case] at: &str, #[case] field: &str, #[case] expected: bool) {
        assert_eq!(Mistake::new("wrong", at).is_named_by(field), expected);
    }

    #[test]
    fn a_loose_mistake_may_be_found_nearby() {
        let mistake = Mistake::new("wrong", "/metadata/labels").loose();
        assert!(mistake.is_named_by("metadata.labels[a]") && mistake.is_named_by("metadata"));
        assert!(!mistake.is_named_by("metadata.labelsOf"));
    }
}
