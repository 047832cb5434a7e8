use rstest::rstest;

use super::*;
use crate::config::KubernetesVersion;
use crate::config::disabled::DisabledCapabilities;
use crate::registry::crd::strategy::CLEANUP_FINALIZER;
use crate::registry::encode::awaits_dependents;
use crate::registry::{Lookup, Registry};

const PODS: (&str, &str) = ("", "pods");
const MAPS: (&str, &str) = ("", "configmaps");
const NAMESPACES: (&str, &str) = ("", "namespaces");
const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Returns the object after a deletion, or null.
fn left((group, plural): (&str, &str), old: &Value, grace: Option<i64>) -> Option<Value> {
    let Lookup::Found(ty) =
        Registry::new(KubernetesVersion::default(), DisabledCapabilities::none())
            .current()
            .find(group, "v1", plural)
    else {
        panic!("{plural} is served")
    };
    marked_for_deletion(&ty, old, &DeleteOptions { grace, ..DeleteOptions::default() })
}

#[rstest]
#[case(json!([]), false)]
#[case(json!(["example.com/hold"]), false)]
#[case(json!(["example.com/hold", "orphan"]), true)]
#[case(json!(["foregroundDeletion"]), true)]
fn two_finalizers_are_about_what_is_owned(#[case] finalizers: Value, #[case] expected: bool) {
    assert_eq!(awaits_dependents(&json!({"metadata": {"finalizers": finalizers}})), expected);
}

#[rstest]
#[case("node", "Running", None, None, 30)]
#[case("node", "Running", Some(5), None, 5)]
#[case("node", "Running", Some(5), Some(9), 9)]
#[case("node", "Running", Some(5), Some(0), 0)]
#[case("node", "Running", Some(5), Some(-7), 1)]
#[case("node", "Succeeded", Some(5), Some(9), 0)]
#[case("node", "Failed", Some(5), None, 0)]
#[case("", "Pending", Some(5), Some(9), 0)]
fn a_pod_that_may_run_gets_time(
    #[case] node: &str,
    #[case] phase: &str,
    #[case] own: Option<i64>,
    #[case] asked: Option<i64>,
    #[case] expected: i64,
) {
    let spec = json!({"nodeName": node, "terminationGracePeriodSeconds": own});
    let pod = json!({"spec": spec, "status": {"phase": phase}});
    let (soonest, left, latest) =
        (timestamp(expected), left(PODS, &pod, asked), timestamp(expected));
    let Some(left) = left else { return assert_eq!(expected, 0) };
    assert_eq!(left["metadata"]["deletionGracePeriodSeconds"], expected);
    let end = left.meta("deletionTimestamp");
    assert!((soonest.as_str()..=latest.as_str()).contains(&end), "{end}");
}

#[test]
fn a_second_deletion_may_only_hasten_the_end() {
    let end = "2020-01-01T00:00:30Z";
    let metadata =
        json!({"generation": 2, "deletionTimestamp": end, "deletionGracePeriodSeconds": 30});
    let pod = json!({
        "metadata": metadata, "spec": {"nodeName": "node"}, "status": {"phase": "Running"},
    });
    for later in [None, Some(30), Some(40)] {
        assert_eq!(left(PODS, &pod, later).as_ref(), Some(&pod));
    }
    let sooner = left(PODS, &pod, Some(5)).expect("it waits");
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_ne!(sooner["metadata"]["deletionTimestamp"], end);
    assert_eq!(sooner["metadata"]["generation"], 2);
    assert_eq!(left(PODS, &pod, Some(0)), None);
}

#[rstest]
#[case(json!(null), json!(null))]
#[case(json!(3), json!(4))]
fn a_deletion_that_begins_is_a_generation_where_these_are_counted(
    #[case] old: Value,
    #[case] new: Value,
) {
    let old = json!({"metadata": {"finalizers": ["example.com/hold"], "generation": old}});
    assert_eq!(left(MAPS, &old, None).expect("it waits")["metadata"]["generation"], new);
}

#[rstest]
#[case(NAMESPACES, json!(["kubernetes"]), Some("Terminating"))]
#[case(NAMESPACES, json!([]), None)]
#[case(MAPS, json!(["kubernetes"]), None)]
fn a_spec_has_finalizers_in_namespaces_alone(
    #[case] ty: (&str, &str),
    #[case] finalizers: Value,
    #[case] phase: Option<&str>,
) {
    let left = left(ty, &json!({"metadata": {}, "spec": {"finalizers": finalizers}}), None);
    assert_eq!(left.as_ref().and_then(|left| left["status"]["phase"].as_str()), phase);
    assert_eq!(left.is_some(), phase.is_some());
}

#[rstest]
#[case(json!({}), &[CLEANUP_FINALIZER])]
#[case(json!({"finalizers": ["example.com/hold"]}), &["example.com/hold", CLEANUP_FINALIZER])]
#[case(json!({"finalizers": [CLEANUP_FINALIZER]}), &[CLEANUP_FINALIZER])]
#[case(
    json!({"finalizers": ["example.com/hold"], "deletionTimestamp": "2020-01-01T00:00:00Z"}),
    &["example.com/hold"]
)]
fn a_definition_waits_for_its_objects_once(#[case] metadata: Value, #[case] expected: &[&str]) {
    let left = left(CRDS, &json!({ "metadata": metadata }), None).expect("it waits");
    assert_eq!(left.meta_list("finalizers"), expected);
}
