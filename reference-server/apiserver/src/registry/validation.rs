//! Validation of objects: their schema, its rules, and the checks of their kind.

use kubeproof_apimachinery::schema::{FieldError, Judgement};
use serde_json::Value;

use super::ResourceType;

/// Why the rules of a custom resource were not evaluated.
const RULES_SKIPPED: &str = "some validation rules were not checked because the object was \
                             invalid; correct the existing errors to complete validation";

impl ResourceType {
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = self.schema.validate(object, None);
        errors.extend(self.check_rules(&errors, object, None).errors);
        errors.extend((self.hooks.validate)(object));
        errors.extend((self.hooks.validate_create)(object));
        self.schema.sort(&mut errors);
        self.name_root(&mut errors);
        errors
    }

    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Judgement {
        if !self.hooks.checks_updates {
            return only_errors((self.hooks.validate_update)(new, old));
        }
        let mut errors = self.schema.validate(new, Some(old));
        let mut judgement = self.check_rules(&errors, new, Some(old));
        errors.append(&mut judgement.errors);
        errors.extend((self.hooks.validate)(new));
        errors.extend((self.hooks.validate_update)(new, old));
        self.schema.sort(&mut errors);
        self.name_root(&mut errors);
        self.name_root(&mut judgement.warnings);
        Judgement { errors, ..judgement }
    }

    /// Returns the errors of a new status. Controllers write it, so that of a built-in type has
    /// only the ranges of its numbers in its schema.
    pub(crate) fn validate_status(&self, new: &Value, old: &Value) -> Judgement {
        let mut errors = (self.hooks.validate_status)(new, old);
        if self.custom {
            let mut judgement = self.validate_update(new, old);
            let found = std::mem::take(&mut judgement.errors);
            errors.extend(found.into_iter().map(|error| error.shown_within("status.")));
            return Judgement { errors, ..judgement };
        }
        let fields = self.schema.properties.get("status").into_iter();
        for (name, field) in fields.flat_map(|status| &status.properties) {
            let value = &new["status"][name];
            if let Some(minimum) = field.limits.minimum
                && value.as_f64().is_some_and(|number| number < minimum)
            {
                let why = format!("must be greater than or equal to {minimum}");
                errors.push(FieldError::invalid(format!("status.{name}"), value, &why));
            }
        }
        only_errors(errors)
    }

    /// Returns the violated rules. If the structure is wrong, rules are not evaluated.
    fn check_rules(&self, wrong: &[FieldError], new: &Value, old: Option<&Value>) -> Judgement {
        if !wrong.iter().any(|error| error.reason.is_structural()) {
            return self.schema.judge(new, old);
        }
        let is_custom = self.custom && self.schema.has_rules;
        let skipped = is_custom.then(|| FieldError::invalid("", &Value::Null, RULES_SKIPPED));
        only_errors(skipped.into_iter().collect())
    }

    /// Names the object itself in errors, as kube-apiserver does for custom resources.
    fn name_root(&self, errors: &mut [FieldError]) {
        for error in errors.iter_mut().filter(|error| self.custom && error.field.is_empty()) {
            "<nil>".clone_into(&mut error.field);
        }
    }
}

fn only_errors(errors: Vec<FieldError>) -> Judgement {
    Judgement { errors, warnings: Vec::new() }
}
