//! Stateful sets, daemon sets and controller revisions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::registry::builtin::core::pod::complete_spec;
use crate::registry::builtin::core::{round_up_resources, validate_claim_spec};
use crate::registry::builtin::data::{container_columns, hooks, of_containers, resource};
use crate::registry::builtin::{
    BuiltinType, Hooks, NameRule, immutable, restore, warnings, workload,
};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![controller_revisions(), daemon_sets(), stateful_sets()]
}

fn controller_revisions() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column("Controller", "string", Cell::Computed(controller)),
            column("Revision", "string", Cell::Pointer("/revision")),
            age(),
        ],
        hooks: Hooks {
            validate: |revision| {
                let error = || FieldError::required("data", "data is mandatory");
                revision["data"].is_null().then(error).into_iter().collect()
            },
            validate_update: |new, old| immutable(new, old, &["data"]),
            ..Hooks::NONE
        },
        ..resource("apps", "v1", "controllerrevisions")
    }
}

/// The annotation with the number of the template of a daemon set.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn daemon_sets() -> BuiltinType {
    let number = |name, pointer| column(name, "integer", Cell::Computed(pointer));
    let mut columns = vec![
        number("Desired", |set| workload::number(set, "/status/desiredNumberScheduled")),
        number("Current", |set| workload::number(set, "/status/currentNumberScheduled")),
        number("Ready", |set| workload::number(set, "/status/numberReady")),
        number("Up-to-date", |set| workload::number(set, "/status/updatedNumberScheduled")),
        number("Available", |set| workload::number(set, "/status/numberAvailable")),
        column("Node Selector", "string", Cell::Computed(node_selector)),
        age(),
    ];
    columns.extend(template_columns());
    columns.push(wide("Selector", "string", Cell::Computed(super::selector)));
    BuiltinType {
        columns,
        hooks: Hooks {
            default: complete_daemon_set,
            validate: validate_daemon_set,
            validate_update: super::validate_update,
            validate_status: workload::validate_status,
            warn: warnings::workloads::daemon_set,
            prepare_create: |set| set["metadata"]["annotations"][TEMPLATE_GENERATION] = json!("1"),
            prepare_update: |new, old| {
                restore(new, old, "status");
                let number = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
                let number = number.and_then(|text| text.parse::<i64>().ok()).unwrap_or(1);
                let changed = new["spec"]["template"] != old["spec"]["template"];
                let number = (number + i64::from(changed)).to_string();
                new["metadata"]["annotations"][TEMPLATE_GENERATION] = json!(number);
            },
            ..hooks(true)
        },
        ..resource("apps", "v1", "daemonsets")
    }
}

fn stateful_sets() -> BuiltinType {
    let mut columns = vec![column("Ready", "string", Cell::Computed(super::ready)), age()];
    columns.extend(template_columns());
    BuiltinType {
        name_rule: NameRule::DnsLabel,
        columns,
        hooks: Hooks {
            default: complete_stateful_set,
            validate: validate_stateful_set,
            validate_update: validate_stateful_set_update,
            validate_status: workload::validate_status,
            warn: warnings::workloads::stateful_set,
            prepare_create: |set| set["status"] = json!({"replicas": 0}),
            ..hooks(true)
        },
        ..resource("apps", "v1", "statefulsets")
    }
}

fn complete_daemon_set(set: &mut Value) {
    complete_spec(&mut set["spec"]["template"]["spec"]);
    let strategy = &mut set["spec"]["updateStrategy"];
    if strategy["type"] == "RollingUpdate" {
        for (field, default) in [("maxUnavailable", 1), ("maxSurge", 0)] {
            if strategy["rollingUpdate"][field].is_null() {
                strategy["rollingUpdate"][field] = json!(default);
            }
        }
    }
}

fn complete_stateful_set(set: &mut Value) {
    complete_spec(&mut set["spec"]["template"]["spec"]);
    let strategy = &mut set["spec"]["updateStrategy"];
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
        if strategy["rollingUpdate"].is_null() {
            strategy["rollingUpdate"] = json!({});
        }
    }
    if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut) {
        rolling.entry("partition").or_insert_with(|| json!(0));
    }
    // An index would add a missing field.
    let claims = set.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        claim["apiVersion"] = json!("v1");
        claim["kind"] = json!("PersistentVolumeClaim");
        round_up_resources(&mut claim["spec"]);
    }
}

fn validate_daemon_set(set: &Value) -> Vec<FieldError> {
    let mut errors = super::validate(set);
    let strategy = &set["spec"]["updateStrategy"];
    if !matches!(strategy["type"].as_str(), Some("RollingUpdate" | "OnDelete")) {
        let supported = [json!("RollingUpdate"), json!("OnDelete")];
        errors.push(FieldError::not_supported("spec.updateStrategy", strategy, &supported));
    }
    let rolling = &strategy["rollingUpdate"];
    for field in ["maxUnavailable", "maxSurge"] {
        if let Some(why) = super::wrong_amount(&rolling[field]) {
            let place = format!("spec.updateStrategy.rollingUpdate.{field}");
            errors.push(FieldError::invalid(place, &rolling[field], why));
        }
    }
    let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    let place = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    if super::is_zero(unavailable) && super::is_zero(surge) {
        let why = "cannot be 0 when maxSurge is 0";
        errors.push(FieldError::invalid(place, unavailable, why));
    }
    let is_set = |amount: &Value| !amount.is_null() && !super::is_zero(amount);
    if is_set(unavailable) && is_set(surge) {
        let why = "may not be set when maxUnavailable is non-zero";
        let place = "spec.updateStrategy.rollingUpdate.maxSurge";
        errors.push(FieldError::invalid(place, surge, why));
    }
    errors
}

fn validate_stateful_set(set: &Value) -> Vec<FieldError> {
    let mut errors = super::validate(&as_controlled(set));
    let policy = &set["spec"]["podManagementPolicy"];
    if !matches!(policy.as_str(), Some("OrderedReady" | "Parallel")) {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid("spec.podManagementPolicy", policy, why));
    }
    let strategy = &set["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" && !strategy["rollingUpdate"].is_null() {
        let place = "spec.updateStrategy.rollingUpdate";
        let why = "only allowed for updateStrategy 'RollingUpdate'";
        errors.push(FieldError::invalid(place, &strategy["rollingUpdate"], why));
    }
    let amount = &strategy["rollingUpdate"]["maxUnavailable"];
    let place = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    if super::is_zero(amount) {
        errors.push(FieldError::invalid(place, amount, "cannot be 0"));
    } else if let Some(why) = super::wrong_amount(amount) {
        errors.push(FieldError::invalid(place, amount, why));
    }
    let root = Path::Root;
    let spec = root.field("spec");
    let claims = spec.field("volumeClaimTemplates");
    for (index, claim) in
        set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten().enumerate()
    {
        let at = claims.index(index);
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            let metadata = at.field("metadata");
            errors.push(FieldError::required(metadata.field("name"), ""));
        } else {
            // The pods have a volume with the name of the claim.
            let place = format!("spec.template.spec.volumes[{index}].name");
            let wrong = Syntax::DnsLabel.check(name);
            let error = |why| FieldError::invalid(&place, &json!(name), why);
            errors.extend(wrong.iter().map(|why| error(why)));
        }
        errors.extend(validate_claim_spec(&claim["spec"], at.field("spec")));
    }
    errors
}

/// Returns the set with the volumes of its pods: those of the claims, then those of the template
/// that have other names. The controller sets the names of the hosts.
fn as_controlled(set: &Value) -> Value {
    let mut set = set.clone();
    if let Some(spec) = set.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) {
        spec.remove("hostname");
        spec.remove("subdomain");
    }
    let claims = set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    let names: BTreeSet<&str> =
        claims.filter_map(|claim| claim["metadata"]["name"].as_str()).collect();
    let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let mut volumes: Vec<Value> = names.iter().map(volume).collect();
    let is_claimed = |volume: &Value| volume["name"].as_str().is_some_and(|it| names.contains(it));
    let spec = &set["spec"]["template"]["spec"];
    let own = spec["volumes"].as_array().into_iter().flatten();
    volumes.extend(own.filter(|volume| !is_claimed(volume)).cloned());
    if spec.is_object() {
        set["spec"]["template"]["spec"]["volumes"] = volumes.into();
    }
    set
}

/// The fields of a stateful set that may change.
const MUTABLE: [&str; 8] = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
    "status",
];

fn validate_stateful_set_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let fixed = |spec: &Value| {
        let mut spec = spec.as_object().cloned().unwrap_or_default();
        spec.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        spec
    };
    if fixed(&new["spec"]) == fixed(&old["spec"]) {
        return Vec::new();
    }
    let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
               'template', 'updateStrategy', 'revisionHistoryLimit', \
               'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    vec![FieldError::forbidden("spec", why)]
}

fn template_columns() -> [kubeproof_apimachinery::table::Column; 2] {
    container_columns(
        |set| of_containers(&set["spec"]["template"], "name"),
        |set| of_containers(&set["spec"]["template"], "image"),
    )
}

fn node_selector(set: &Value) -> Value {
    crate::registry::builtin::core::selector_text(&set["spec"]["template"]["spec"]["nodeSelector"])
}

fn controller(revision: &Value) -> Value {
    let owners = revision["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let controller = owners.into_iter().find(|owner| owner["controller"] == true);
    let Some(owner) = controller else { return json!("<none>") };
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map(|(group, _)| group);
    let kind = text("kind").to_lowercase();
    json!(match group {
        Some(group) => format!("{kind}.{group}/{}", text("name")),
        None => format!("{kind}/{}", text("name")),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn set(ty: &BuiltinType, vary: fn(&mut Value)) -> Value {
        let mut set = json!({"metadata": {"name": "s"}, "spec": {
            "selector": {"matchLabels": {"app": "s"}},
            "template": {
                "metadata": {"labels": {"app": "s"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        }});
        vary(&mut set);
        ty.schema().prune(&mut set);
        (ty.hooks.prepare_create)(&mut set);
        ty.schema().apply_defaults(&mut set);
        (ty.hooks.default)(&mut set);
        set
    }

    fn mistakes(ty: &BuiltinType, object: &Value) -> Vec<String> {
        let mut errors = ty.schema().validate(object, None);
        errors.extend((ty.hooks.validate)(object));
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn sets_are_filled_in() {
        let mut daemons = set(&daemon_sets(), |_| ());
        assert_eq!(daemons["metadata"]["annotations"][TEMPLATE_GENERATION], "1");
        daemons["spec"].as_object_mut().unwrap().remove("template");
        let rolling = json!({"maxSurge": 0, "maxUnavailable": 1});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        let selector = json!({"matchLabels": {"app": "s"}});
        let expected = json!({
            "revisionHistoryLimit": 10, "selector": selector, "updateStrategy": strategy,
        });
        assert_eq!(daemons["spec"], expected);
        let state = set(&stateful_sets(), |_| ());
        assert_eq!(state["spec"]["podManagementPolicy"], "OrderedReady");
        let policy = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        assert_eq!(state["spec"]["persistentVolumeClaimRetentionPolicy"], policy);
        assert_eq!(state["spec"]["updateStrategy"]["rollingUpdate"], json!({"partition": 0}));
        let state = set(&stateful_sets(), |s| {
            s["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
        });
        assert_eq!(state["spec"]["updateStrategy"], json!({"type": "RollingUpdate"}));
    }

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(|s: &mut Value| s["spec"]["selector"] = json!({}), &["spec.selector"])]
    #[case(|s: &mut Value| s["spec"]["replicas"] = json!(-1), &["spec.replicas"])]
    #[case(
        |s: &mut Value| s["spec"]["template"]["metadata"]["labels"] = json!({"a": "b"}),
        &["spec.template.metadata.labels"]
    )]
    #[case(
        |s: &mut Value| {
            let strategy = json!({"type": "OnDelete", "rollingUpdate": {}});
            s["spec"]["updateStrategy"] = strategy;
        },
        &["spec.updateStrategy.rollingUpdate"]
    )]
    #[case(
        |s: &mut Value| s["spec"]["volumeClaimTemplates"] = json!([{"spec": {}}]),
        &["spec.volumeClaimTemplates[0].metadata.name",
          "spec.volumeClaimTemplates[0].spec.accessModes",
          "spec.volumeClaimTemplates[0].spec.resources[storage]"]
    )]
    #[case(
        |s: &mut Value| {
            let spec = json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            });
            let claim = json!({"metadata": {"name": "v"}, "spec": spec});
            s["spec"]["volumeClaimTemplates"] = json!([claim]);
            s["spec"]["template"]["spec"]["volumes"] = json!([{"name": "w"}, {"name": "v"}]);
            let mounts = ["v", "w", "x"].map(|name| json!({"name": name, "mountPath": name}));
            s["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!(mounts);
        },
        &["spec.template.spec.containers[0].volumeMounts[2].name"]
    )]
    fn stateful_sets_are_validated(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let ty = stateful_sets();
        assert_eq!(mistakes(&ty, &set(&ty, vary)), expected);
    }

    #[test]
    fn daemon_sets_have_either_surge_or_unavailable_pods() {
        let ty = daemon_sets();
        let both = |s: &mut Value| {
            let rolling = json!({"maxSurge": 1, "maxUnavailable": 1});
            s["spec"]["updateStrategy"]["rollingUpdate"] = rolling;
        };
        let expected = ["spec.updateStrategy.rollingUpdate.maxSurge"];
        assert_eq!(mistakes(&ty, &set(&ty, both)), expected);
    }

    #[test]
    fn most_of_a_stateful_set_is_immutable() {
        let ty = stateful_sets();
        let old = set(&ty, |_| ());
        let scaled = set(&ty, |s| s["spec"]["replicas"] = json!(3));
        assert_eq!(validate_stateful_set_update(&scaled, &old), []);
        let renamed = set(&ty, |s| s["spec"]["serviceName"] = json!("other"));
        assert_eq!(validate_stateful_set_update(&renamed, &old)[0].field, "spec");
    }

    #[test]
    fn a_new_template_has_a_new_number() {
        let ty = daemon_sets();
        let old = set(&ty, |_| ());
        let mut new = set(&ty, |s| s["spec"]["template"]["spec"]["dnsPolicy"] = json!("Default"));
        (ty.hooks.prepare_update)(&mut new, &old);
        assert_eq!(new["metadata"]["annotations"][TEMPLATE_GENERATION], "2");
    }
}
