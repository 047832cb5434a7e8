//! Limit ranges: the amounts of an item fit each other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::resources::{can_overcommit, container_resource, resource_name};
use super::{Checks, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::quantity::Quantity;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[("io.k8s.api.core.v1.LimitRangeItem", limit)];

const RATIO: &str = "maxLimitRequestRatio";

fn limit(item: &Value, path: Path<'_>) -> Vec<FieldError> {
    let kind = text(item, "type");
    let mut errors = type_name(kind, path.field("type"));
    let check_name = match kind {
        "Pod" | "Container" => container_resource,
        _ => resource_name,
    };
    // A pod has no defaults: another check forbids them.
    let fields: &[&str] = match kind {
        "Pod" => &["max", "min", RATIO],
        _ => &["max", "min", "default", "defaultRequest", RATIO],
    };
    let mut names = BTreeSet::new();
    for field in fields {
        let place = path.field(field);
        for (name, _) in item[field].as_object().into_iter().flatten() {
            errors.extend(check_name(name, place.key(name)));
            names.insert(name.as_str());
        }
    }
    for name in names {
        let amounts = Amounts { item, fields, name };
        errors.extend(amounts.errors_of_order(path));
        errors.extend(amounts.errors_of_ratio(path));
    }
    errors
}

fn type_name(kind: &str, path: Path<'_>) -> Vec<FieldError> {
    if kind.is_empty() {
        return Vec::new();
    }
    let mut errors = Syntax::LabelKey.errors(kind, path);
    let is_standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.is_empty() && !kind.contains('/') && !is_standard {
        let why = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, &json!(kind), why));
    }
    errors
}

/// The amounts of one resource.
struct Amounts<'a> {
    item: &'a Value,
    /// The fields of the item with amounts.
    fields: &'a [&'a str],
    name: &'a str,
}

/// Two amounts. The first may not exceed the second.
struct Order {
    /// The field and the words of each amount.
    less: (&'static str, &'static str),
    more: (&'static str, &'static str),
    /// The field that the error names, and the field whose amount it shows.
    error: (&'static str, &'static str),
}

const ORDERS: [Order; 6] = [
    Order { less: MINIMUM, more: MAXIMUM, error: ("min", "min") },
    Order { less: MINIMUM, more: REQUEST, error: ("defaultRequest", "defaultRequest") },
    Order { less: REQUEST, more: MAXIMUM, error: ("defaultRequest", "defaultRequest") },
    Order { less: REQUEST, more: LIMIT, error: ("defaultRequest", "defaultRequest") },
    Order { less: MINIMUM, more: ("default", "default value"), error: ("default", "min") },
    Order { less: ("default", "default value"), more: MAXIMUM, error: ("default", "max") },
];
const MINIMUM: (&str, &str) = ("min", "min value");
const MAXIMUM: (&str, &str) = ("max", "max value");
const REQUEST: (&str, &str) = ("defaultRequest", "default request value");
const LIMIT: (&str, &str) = ("default", "default limit value");

impl Amounts<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.item[field][self.name].as_str().filter(|_| self.fields.contains(&field))
    }

    fn get(&self, field: &str) -> Option<Quantity> {
        Quantity::parse(self.text(field)?)
    }

    fn invalid(&self, path: Path<'_>, field: &str, shown: &str, why: &str) -> FieldError {
        let value = json!(self.text(shown));
        FieldError::invalid(path.field(field).key(self.name), &value, why)
    }

    fn errors_of_order(&self, path: Path<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for Order { less, more, error: (field, shown) } in &ORDERS {
            let (Some(low), Some(high)) = (self.get(less.0), self.get(more.0)) else { continue };
            if low > high {
                let why = format!("{} {low} is greater than {} {high}", less.1, more.1);
                errors.push(self.invalid(path, field, shown, &why));
            }
        }
        let (default, request) = (self.get("default"), self.get("defaultRequest"));
        if let (Some(default), Some(request), false) = (default, request, can_overcommit(self.name))
            && default != request
        {
            let why = format!(
                "default value {default} must equal to defaultRequest value {request} in {}",
                self.name
            );
            errors.push(self.invalid(path, "defaultRequest", "defaultRequest", &why));
        }
        errors
    }

    fn errors_of_ratio(&self, path: Path<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let Some(ratio) = self.get(RATIO) else { return errors };
        if ratio < Quantity::whole(1) {
            let why = format!("ratio {ratio} is less than 1");
            errors.push(self.invalid(path, RATIO, RATIO, &why));
        }
        if let (Some(min), Some(max)) = (self.get("min"), self.get("max")) {
            let most = max.ratio(min);
            if ratio.ratio(Quantity::whole(1)) > most {
                let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
                errors.push(self.invalid(path, RATIO, RATIO, &why));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!({"type": "Pod", "max": {"storage": "1"}}), &["x.max[storage]"])]
    #[case(json!({"type": "odd"}), &["x.type"])]
    #[case(json!({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}), &[])]
    #[case(json!({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "1000m"}}), &[])]
    #[case(json!({"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}), &["x.min[cpu]"])]
    #[case(
        json!({"type": "Container", "min": {"cpu": "2"}, "default": {"cpu": "1"},
               "defaultRequest": {"cpu": "3"}, "max": {"cpu": "2"}}),
        &["x.defaultRequest[cpu]", "x.defaultRequest[cpu]", "x.default[cpu]"]
    )]
    #[case(
        json!({"type": "Container", "default": {"example.com/a": "2"},
               "defaultRequest": {"example.com/a": "1"}}),
        &["x.defaultRequest[example.com/a]"]
    )]
    #[case(
        json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}}),
        &["x.maxLimitRequestRatio[cpu]"]
    )]
    #[case(
        json!({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3"},
               "maxLimitRequestRatio": {"cpu": "3"}}),
        &[]
    )]
    #[case(
        json!({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3"},
               "maxLimitRequestRatio": {"cpu": "3100m"}}),
        &["x.maxLimitRequestRatio[cpu]"]
    )]
    fn amounts_fit_each_other(#[case] item: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("LimitRangeItem", &item), expected);
    }
}
