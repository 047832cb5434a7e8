//! `ValidatingAdmissionPolicy`.

use kubeproof_apimachinery::schema::rules::expression::{EvaluationError, Scope};
use kubeproof_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::super::{Attributes, Decision, Plugin, decided};
use super::definition::Validation;
use super::{Invocation, Misconfigured, Policies, rejection};

/// The maximum cost of the expressions of a policy.
pub(super) const BUDGET: u64 = 10_000_000;
/// The code and the reason of a rejection without a reason.
pub(super) const INVALID: (u16, &str) = (422, "Invalid");
/// The longest message and annotation of an expression, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;
const MAX_ANNOTATION: usize = 10 * 1024;

/// Checks requests with expressions.
pub(in super::super) struct ValidatingPolicies(Policies);

impl Default for ValidatingPolicies {
    fn default() -> Self {
        Self(Policies::new(
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        ))
    }
}

impl Plugin for ValidatingPolicies {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        self.0.handles(request)
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        decided(self.check(&request, object))
    }
}

/// A validation that does not hold.
struct Denial {
    message: String,
    code: (u16, &'static str),
    /// The index of the validation in the policy.
    index: usize,
}

impl ValidatingPolicies {
    fn check(&self, request: &Attributes<'_>, object: &Value) -> Result<(), ApiError> {
        let (invocations, mistakes) = self.0.find(request, object);
        let mut first = None;
        for Misconfigured { policy, binding, why } in mistakes {
            let binding = binding.map(|binding| binding.name.clone());
            first.get_or_insert((denied(&policy.name, binding.as_deref(), &why), INVALID));
        }
        for invocation in &invocations {
            let denials = invocation.evaluate(request, object);
            for denial in denials {
                let (policy, binding) = (&invocation.policy.name, &invocation.binding.name);
                if invocation.acts("Deny") {
                    let message = denied(policy, Some(binding), &denial.message);
                    first.get_or_insert((message, denial.code));
                }
                if invocation.acts("Warn") {
                    request.record.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                         '{binding}': {}",
                        denial.message
                    ));
                }
                if invocation.acts("Audit") {
                    invocation.audit(request, &denial);
                }
            }
        }
        let Some((message, code)) = first else { return Ok(()) };
        let mut error = rejection(request, object, &message, code);
        if let Some(status) = &mut error.given {
            status["details"]["causes"] = json!([{ "message": message }]);
        }
        Err(error)
    }
}

fn denied(policy: &str, binding: Option<&str>, why: &str) -> String {
    let binding = binding.map(|name| format!(" with binding '{name}'")).unwrap_or_default();
    format!("ValidatingAdmissionPolicy '{policy}'{binding} denied request: {why}")
}

impl Invocation {
    fn acts(&self, action: &str) -> bool {
        self.binding.actions.iter().any(|known| known == action)
    }

    /// Returns the validations that do not hold, and records the annotations of the policy.
    fn evaluate(&self, request: &Attributes<'_>, object: &Value) -> Vec<Denial> {
        let policy = &*self.policy;
        let failed = |message: String, index| {
            let denial = Denial { message, code: INVALID, index };
            (!policy.ignores_failures).then_some(denial)
        };
        if let Some(mistake) = &policy.mistake {
            return failed(mistake.clone(), 0).into_iter().collect();
        }
        let shown = self.found.shown(request, object);
        let roots = self.roots(request, &shown);
        match policy.conditions.hold(&roots, &[]) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return failed(why, 0).into_iter().collect(),
        }
        let scope = Scope::new(&roots, &policy.variables);
        let mut budget = BUDGET;
        let mut denials = Vec::new();
        for (index, validation) in policy.validations.iter().enumerate() {
            match validation.expression.evaluate(&scope, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let message = validation.message(&scope, &mut budget);
                    denials.push(Denial { message, code: validation.code, index });
                }
                Err(error) => {
                    denials.extend(failed(error.to_string(), index));
                    if matches!(error, EvaluationError::Budget) {
                        return denials;
                    }
                }
            }
        }
        let mut budget = BUDGET;
        for annotation in &policy.annotations {
            match annotation.value.evaluate(&scope, &mut budget) {
                Ok(Value::String(text)) if !text.trim().is_empty() => {
                    let key = format!("{}/{}", policy.name, annotation.key);
                    request.record.annotate(key, shortened(text.trim(), MAX_ANNOTATION));
                }
                Ok(_) => {}
                Err(error) => denials.extend(failed(error.to_string(), 0)),
            }
        }
        denials
    }

    fn audit(&self, request: &Attributes<'_>, denial: &Denial) {
        let failure = json!([{
            "message": denial.message,
            "policy": self.policy.name,
            "binding": self.binding.name,
            "expressionIndex": denial.index,
            "validationActions": self.binding.actions,
        }]);
        let key = "validation.policy.admission.k8s.io/validation_failure";
        request.record.annotate(key, failure.to_string());
    }
}

impl Validation {
    /// Returns the message of a failed validation: that of the expression, the fixed one, or the
    /// text of the validation.
    fn message(&self, scope: &Scope<'_>, budget: &mut u64) -> String {
        let evaluated = self.message_expression.as_ref().map(|text| text.evaluate(scope, budget));
        if let Some(Ok(Value::String(text))) = evaluated {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                return text.to_owned();
            }
        }
        if self.message.is_empty() {
            format!("failed expression: {}", self.expression.text().trim())
        } else {
            self.message.clone()
        }
    }
}

fn shortened(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
