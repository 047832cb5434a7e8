//! Bodies that are not objects of a resource: what subresources and deletions take and give.

use crate::schema::Schema;
use crate::schema::build::{definitions, int32, object, string};
use crate::schema::meta::{self, with_type_meta};

definitions! {
    "io.k8s.api.autoscaling.v1"

    scale_spec ScaleSpec { replicas: int32().at_least(0) }
    scale_status ScaleStatus { always replicas: int32(), selector: string() }
}

/// `autoscaling/v1` Scale, the body of every `/scale`.
pub fn scale() -> Schema {
    with_type_meta(object("io.k8s.api.autoscaling.v1.Scale"))
        .field("spec", scale_spec().or_empty())
        .field("status", scale_status())
}

/// `v1` Binding, the body of `pods/binding`.
pub fn binding() -> Schema {
    with_type_meta(object("io.k8s.api.core.v1.Binding")).need("target", super::core::object_reference())
}

/// `v1` `DeleteOptions`, the body of a deletion.
pub fn delete_options() -> Schema {
    meta::delete_options()
}

/// The definitions that published documents have besides those of the resources.
pub fn definitions() -> Vec<Schema> {
    vec![scale(), binding(), meta::delete_options(), meta::list_meta(), meta::status()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::faults::Faults;

    #[test]
    fn a_scale_counts() {
        let scale = scale();
        assert!(scale.check_types(&json!({"spec": {"replicas": "3"}})).is_err());
        let errors = scale.validate(&json!({"spec": {"replicas": -1}}), None, Faults::none());
        assert_eq!(errors[0].field, "spec.replicas");
    }
}
