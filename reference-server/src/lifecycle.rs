//! The end of objects: at once, or later, when finalizers and grace periods have passed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::encode;
use crate::object::{Object, timestamp};
use crate::query::{self, Query};
use crate::registry::ResourceType;
use crate::schema::FieldError;
use crate::status::ApiError;
use crate::store::{Key, Stored};
use crate::{Fault, Faults, handlers};

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go first.
    Foreground,
    /// They go later.
    Background,
    /// They stay.
    Orphan,
}

/// `DeleteOptions`
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
}

/// The finalizers that stand for propagation.
pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that a CRD waits with for its objects.
pub(crate) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Namespaces that are part of the server.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];
/// How long a pod may take to stop when it does not say.
const DEFAULT_GRACE: i64 = 30;

impl DeleteOptions {
    /// Reads the options of a request: those of the body, or those of the query when there is no body.
    pub(crate) fn parse(query: &Query, body: &[u8], faults: Faults) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let mut options = Self::default();
        let (propagation, orphan) = if body.is_empty() {
            options.dry_run = query::dry_run(query.all("dryRun"), &mut errors);
            options.grace = query.number("gracePeriodSeconds")?;
            (
                query.text("propagationPolicy").map(str::to_owned),
                query.text("orphanDependents").map(|_| query.flag("orphanDependents")),
            )
        } else {
            let unread = faults.on(Fault::DeleteOptionsUnread);
            let given = Given::parse(body)
                .or_else(|error| if unread { Ok(Given::default()) } else { Err(error) })
                .map_err(|error| ApiError::bad_request(format!("the body is no DeleteOptions: {error}")))?;
            if !given.kind.is_empty() && given.kind != "DeleteOptions" && !unread {
                let kind = given.kind;
                return Err(ApiError::bad_request(format!("the body must be a DeleteOptions, not a {kind}")));
            }
            if !faults.on(Fault::DryRunInBodyIgnored) {
                options.dry_run = query::dry_run(given.dry_run.iter().map(String::as_str), &mut errors);
            }
            options.grace = given.grace_period_seconds;
            options.uid = given.preconditions.uid;
            options.version = given.preconditions.resource_version;
            (given.propagation_policy, given.orphan_dependents)
        };
        let orphan = orphan.filter(|_| !faults.on(Fault::OrphanDependentsIgnored));
        let both = orphan.is_some() && !faults.on(Fault::OrphanDependentsBesidePolicy);
        options.propagation = match propagation.as_deref() {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some(policy) if both => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &policy.into(), why));
                None
            }
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(_) if faults.on(Fault::UnknownPropagationAccepted) => None,
            Some(other) => {
                let supported = ["Foreground".into(), "Background".into(), "Orphan".into()];
                errors.push(FieldError::not_supported("propagationPolicy", &other.into(), &supported));
                None
            }
        };
        if errors.is_empty() { Ok(options) } else { Err(ApiError::invalid_options("DeleteOptions", &errors)) }
    }
}

/// The body of a deletion.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Given {
    kind: String,
    dry_run: Vec<String>,
    grace_period_seconds: Option<i64>,
    preconditions: Preconditions,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
}

impl Given {
    /// Null counts as absent.
    fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_slice(body)?;
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        serde_json::from_value(value)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// Whether finalizers hold the object on account of what it owns.
pub(crate) fn awaits_dependents(object: &Value) -> bool {
    object.meta_list("finalizers").iter().any(|name| [ORPHAN, FOREGROUND].contains(&name.as_str()))
}

/// What came of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is no more, or would be; this is how it was.
    Gone(Arc<Stored>),
    /// It waits for its finalizers or its grace period.
    Waiting(Arc<Stored>),
    /// It would wait.
    WouldWait(Value),
}

/// Deletes an object, or lets its deletion begin.
pub(crate) fn delete(
    api: &Arc<Api>,
    ty: &ResourceType,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let faults = api.faults;
    if ty.is_core("namespaces") && PROTECTED.contains(&key.name.as_str()) {
        return Err(ApiError::forbidden(ty.resource(), &key.name, "this namespace may not be deleted"));
    }
    let dry_run = options.dry_run && !faults.on(Fault::DryRunPersists);
    loop {
        let stored =
            api.store.get(&ty.table, key).ok_or_else(|| ApiError::not_found(ty.resource(), &key.name))?;
        check_preconditions(api, ty, &stored, options)?;
        let old = ty.load(&stored, faults);
        let owns = faults.on(Fault::BackgroundWaits) && !api.store.dependents(old.meta("uid")).is_empty();
        let new = doomed(ty, &old, options, owns, faults);
        let waits = new.as_ref().filter(|_| !faults.on(Fault::FinalizersIgnored));
        match waits {
            Some(new) if *new == old => return Ok(Deleted::Waiting(stored)),
            Some(_) if faults.on(Fault::DeletionNotMarked) => return Ok(Deleted::Waiting(stored)),
            Some(new) if dry_run => return Ok(Deleted::WouldWait(new.clone())),
            None if dry_run => return Ok(Deleted::Gone(stored)),
            _ => {}
        }
        let draft = waits.map(|new| encode::draft(ty, new));
        let written = api.store.write(|write| {
            if write.get(&ty.table, key)?.revision != stored.revision {
                return None;
            }
            match draft {
                Some(draft) => Some(Deleted::Waiting(write.put(&ty.table, draft))),
                None => write.delete(&ty.table, key).map(Deleted::Gone),
            }
        });
        if let Some(written) = written {
            match written {
                Deleted::Waiting(_) if !old.is_deleting() => handlers::deletion_began(api, ty, key),
                Deleted::Gone(_) => handlers::object_gone(api, ty, &old),
                _ => {}
            }
            return Ok(written);
        }
    }
}

fn check_preconditions(
    api: &Api,
    ty: &ResourceType,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let refuse = |what: &str, given: &str, found: &str| {
        let why =
            format!("the {what} in the precondition ({given}) does not match the {what} in record ({found})");
        Err(ApiError::conflict(ty.resource(), &stored.key.name, &why))
    };
    if let Some(uid) = &options.uid
        && *uid != stored.facts.uid
        && !api.faults.on(Fault::UidPreconditionIgnored)
    {
        return refuse("UID", uid, &stored.facts.uid);
    }
    let version = stored.revision.to_string();
    if let Some(given) = &options.version
        && *given != version
        && !api.faults.on(Fault::VersionPreconditionIgnored)
    {
        return refuse("ResourceVersion", given, &version);
    }
    Ok(())
}

/// The object while it waits for its end; none when nothing keeps it.
fn doomed(
    ty: &ResourceType,
    old: &Value,
    options: &DeleteOptions,
    owns: bool,
    faults: Faults,
) -> Option<Value> {
    let mut new = old.clone();
    let mut finalizers = old.meta_list("finalizers");
    let (drop, add) = match options.propagation {
        _ if faults.on(Fault::PropagationPolicyIgnored) => (None, None),
        _ if old.is_deleting() && faults.on(Fault::FirstPolicyStays) => (None, None),
        None => (None, None),
        Some(Propagation::Orphan) => (Some([FOREGROUND, FOREGROUND]), Some(ORPHAN)),
        Some(Propagation::Foreground) => (Some([ORPHAN, ORPHAN]), Some(FOREGROUND)),
        Some(Propagation::Background) => (Some([ORPHAN, FOREGROUND]), None),
    };
    let add = add.or(owns.then_some(FOREGROUND));
    if let Some(drop) = drop {
        finalizers.retain(|name| !drop.contains(&name.as_str()));
    }
    finalizers.extend(add.filter(|add| !finalizers.iter().any(|name| name == add)).map(str::to_owned));
    if ty.table == handlers::CRD_TABLE
        && !old.is_deleting()
        && !finalizers.iter().any(|name| name == CRD_CLEANUP)
    {
        finalizers.push(CRD_CLEANUP.to_owned());
    }
    let namespace = ty.is_core("namespaces");
    let kept = namespace
        && old.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let grace =
        if ty.is_core("pods") && !faults.on(Fault::GracePeriodIgnored) { pod_grace(old, options) } else { 0 };
    if finalizers.is_empty() && grace == 0 && !kept {
        return None;
    }
    if finalizers.is_empty() {
        new.unset_meta("finalizers");
    } else {
        new.set_meta("finalizers", json!(finalizers));
    }
    let left = old.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let moves = old.is_deleting() && faults.on(Fault::SecondDeleteBumpsVersion);
    let fixed = grace > 0 && faults.on(Fault::GraceNeverShortened);
    if left.is_none_or(|left| grace < left && !fixed) || moves {
        new.set_meta("deletionTimestamp", timestamp(grace + i64::from(moves)));
        new.set_meta("deletionGracePeriodSeconds", grace);
        if old.generation() > 0 && !old.is_deleting() {
            new.set_meta("generation", old.generation() + 1);
        }
    }
    if namespace {
        let active = faults.on(Fault::TerminatingNamespaceIsActive);
        new["status"]["phase"] = if active { "Active" } else { "Terminating" }.into();
    }
    Some(new)
}

/// A pod on a node gets time to stop; one that never ran does not need it.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    match options.grace.or(own).unwrap_or(DEFAULT_GRACE) {
        negative if negative < 0 => 1,
        grace => grace,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::Cuts;
    use crate::registry::{Lookup, Registry};

    const PODS: (&str, &str) = ("", "pods");
    const MAPS: (&str, &str) = ("", "configmaps");
    const NAMESPACES: (&str, &str) = ("", "namespaces");
    const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

    /// What a deletion leaves of an object.
    fn left((group, plural): (&str, &str), old: &Value, grace: Option<i64>) -> Option<Value> {
        let Lookup::Found(ty) = Registry::new(Cuts::none()).current().find(group, "v1", plural) else {
            panic!("{plural} is served")
        };
        doomed(&ty, old, &DeleteOptions { grace, ..DeleteOptions::default() }, false, Faults::none())
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
        let (soonest, left, latest) = (timestamp(expected), left(PODS, &pod, asked), timestamp(expected));
        let Some(left) = left else { return assert_eq!(expected, 0) };
        assert_eq!(left["metadata"]["deletionGracePeriodSeconds"], expected);
        let end = left.meta("deletionTimestamp");
        assert!((soonest.as_str()..=latest.as_str()).contains(&end), "{end}");
    }

    #[test]
    fn a_second_deletion_may_only_hasten_the_end() {
        let end = "2020-01-01T00:00:30Z";
        let metadata = json!({"generation": 2, "deletionTimestamp": end, "deletionGracePeriodSeconds": 30});
        let pod = json!({"metadata": metadata, "spec": {"nodeName": "node"}, "status": {"phase": "Running"}});
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
    #[case(json!({}), &[CRD_CLEANUP])]
    #[case(json!({"finalizers": ["example.com/hold"]}), &["example.com/hold", CRD_CLEANUP])]
    #[case(json!({"finalizers": [CRD_CLEANUP]}), &[CRD_CLEANUP])]
    #[case(
        json!({"finalizers": ["example.com/hold"], "deletionTimestamp": "2020-01-01T00:00:00Z"}),
        &["example.com/hold"]
    )]
    fn a_definition_waits_for_its_objects_once(#[case] metadata: Value, #[case] expected: &[&str]) {
        let left = left(CRDS, &json!({ "metadata": metadata }), None).expect("it waits");
        assert_eq!(left.meta_list("finalizers"), expected);
    }
}
