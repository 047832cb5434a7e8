//! The protection of volumes and claims in use, and the growth of claims.

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::quantity::Quantity;
use serde_json::{Value, json};

use super::default_class::CLASS;
use super::resources::parse;
use super::{Attributes, Decision, Operation, Plugin, decided};

const CLAIMS: &str = "persistentvolumeclaims";
/// The groups, resources and finalizers of what volumes and pods use. A controller removes the
/// finalizers.
const PROTECTIONS: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", CLAIMS, "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

/// Adds a finalizer to volumes, claims and classes of attributes, so that they stay while something
/// uses them.
pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && protection(request).is_some()
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        if let Some(finalizer) = protection(&request) {
            let mut finalizers = object.meta_list("finalizers");
            if !finalizers.iter().any(|known| known == finalizer) {
                finalizers.push(finalizer.to_owned());
                object.set_meta("finalizers", json!(finalizers));
            }
        }
        decided(Ok(()))
    }
}

/// Returns the finalizer of the object of a request.
fn protection(request: &Attributes<'_>) -> Option<&'static str> {
    let is = |group: &str, plural: &str| request.ty.group == group && request.ty.plural == plural;
    let mut known = PROTECTIONS.iter().filter(|_| request.info.subresource.is_empty());
    known.find(|(group, plural, _)| is(group, plural)).map(|(.., finalizer)| *finalizer)
}

/// Rejects the growth of a claim whose class does not permit it.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Update && request.is_core(CLAIMS)
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let Some(old) = request.old else { return decided(Ok(())) };
        let classes = || request.context.objects("storage.k8s.io", "storageclasses", None);
        let checked = check_growth(object, old, classes);
        decided(checked.map_err(|why| request.forbidden(object, why)))
    }
}

fn check_growth(
    new: &Value,
    old: &Value,
    classes: impl FnOnce() -> Vec<Value>,
) -> Result<(), &'static str> {
    let size = |claim: &Value| {
        let mut requests = parse(&claim["spec"]["resources"]["requests"]);
        requests.remove("storage").map_or(0, Quantity::nanos)
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err("Only bound persistent volume claims can be expanded");
    }
    let class = class_of(new);
    let permits = |found: &Value| found.meta("name") == class;
    let is_permitted = !class.is_empty()
        && class == class_of(old)
        && classes().iter().any(|one| permits(one) && one["allowVolumeExpansion"] == true);
    if is_permitted {
        return Ok(());
    }
    Err("only dynamically provisioned pvc can be resized and the storageclass that provisions the \
         pvc must support resize")
}

/// Returns the class of a claim. The annotation of old claims comes first.
fn class_of(claim: &Value) -> &str {
    let annotation = claim["metadata"]["annotations"][CLASS].as_str();
    annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn claim(size: &str, class: &str, phase: &str) -> Value {
        let requests = json!({"storage": size});
        json!({
            "spec": {"resources": {"requests": requests}, "storageClassName": class},
            "status": {"phase": phase},
        })
    }

    #[rstest]
    #[case::same("1Gi", "fixed", "Pending", None)]
    #[case::smaller("1Mi", "fixed", "Bound", None)]
    #[case::larger("2Gi", "elastic", "Bound", None)]
    #[case::unbound("2Gi", "elastic", "Pending", Some("Only bound"))]
    #[case::fixed("2Gi", "fixed", "Bound", Some("only dynamically"))]
    #[case::unknown("2Gi", "other", "Bound", Some("only dynamically"))]
    #[case::none("2Gi", "", "Bound", Some("only dynamically"))]
    fn a_claim_grows_if_its_class_permits_it(
        #[case] size: &str,
        #[case] class: &str,
        #[case] phase: &str,
        #[case] why: Option<&str>,
    ) {
        let classes = vec![
            json!({"metadata": {"name": "elastic"}, "allowVolumeExpansion": true}),
            json!({"metadata": {"name": "fixed"}}),
        ];
        let (new, old) = (claim(size, class, phase), claim("1Gi", class, phase));
        let result = check_growth(&new, &old, || classes);
        match why {
            None => assert_eq!(result, Ok(())),
            Some(why) => assert!(result.unwrap_err().starts_with(why)),
        }
    }
}
