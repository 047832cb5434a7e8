//! Descriptions of the built-in types for `kubectl explain`.
//!
//! Kinds and fields without a description have a clear name, or the Kubernetes documentation
//! describes them.

use serde_json::{Map, Value, json};

use super::definitions::Dialect;

/// Descriptions of kinds and their parts.
const TYPES: &[(&str, &str)] = &[
    ("Binding", "Assigns a pod to a node."),
    ("ClusterRole", "What may be done in the whole cluster, or wherever it is bound."),
    ("ClusterRoleBinding", "Gives a role to users in the whole cluster."),
    ("ConfigMap", "Configuration for programs, by key."),
    ("Container", "One program of a pod, in an image of its own."),
    ("CustomResourceDefinition", "A resource that the server learns to serve."),
    ("DeleteOptions", "How an object is to be deleted."),
    (
        "Deployment",
        "Keeps a number of equal pods running, and replaces them step by step when their template \
         changes.",
    ),
    ("DeploymentSpec", "The pods that a deployment is to keep running."),
    ("DeploymentStatus", "What a deployment was last seen to run."),
    ("Endpoints", "The addresses behind a service."),
    ("Event", "Something that happened to an object, kept for a while."),
    ("Lease", "A claim that somebody holds for a time and renews, as a leader does."),
    ("LeaseSpec", "Who holds a lease, and until when."),
    ("ListMeta", "What belongs to a list rather than to its items."),
    ("LocalSubjectAccessReview", "Asks whether a user may do something in a namespace."),
    ("Namespace", "A scope for names and for rights."),
    ("Node", "A machine that pods run on."),
    ("ObjectMeta", "What every stored object has: name, identity, version and labels."),
    ("OwnerReference", "An object without which this one is not wanted."),
    ("Pod", "Containers that run together on one node."),
    ("PodDisruptionBudget", "How many of some pods may be evicted at once."),
    ("PodSpec", "The containers of a pod and what they need."),
    ("PodStatus", "What became of a pod, as its node last reported."),
    ("PodTemplateSpec", "What pods are made from."),
    ("PolicyRule", "Verbs, and the resources or paths that they may be done to."),
    ("ReplicaSet", "Keeps a number of equal pods running."),
    (
        "ReplicationController",
        "Keeps a number of equal pods running; replica sets have taken its place.",
    ),
    ("Role", "What may be done in a namespace."),
    ("RoleBinding", "Gives a role to users in a namespace."),
    ("Scale", "How many copies something has and should have."),
    ("Secret", "Confidential data, by key."),
    ("SelfSubjectAccessReview", "Asks whether the asker may do something."),
    ("SelfSubjectReview", "Asks who the asker is."),
    ("SelfSubjectRulesReview", "Asks what the asker may do in a namespace."),
    ("Service", "One address for a changing set of pods."),
    ("ServiceAccount", "An identity for programs."),
    ("ServiceSpec", "Which pods a service leads to, and how."),
    ("Status", "The outcome of a request that has no object to return."),
    ("SubjectAccessReview", "Asks whether a user may do something."),
    ("TokenReview", "Asks whose token this is."),
];

/// Descriptions of fields that have the same meaning in every type.
const FIELDS: &[(&str, &str)] = &[
    ("annotations", "Any text about the object that nothing is selected by."),
    ("apiVersion", "The group and version of the schema that this object follows."),
    ("args", "Arguments of the command."),
    ("binaryData", "Values that are not text, in base64."),
    ("command", "The program to run instead of that of the image."),
    ("conditions", "What holds of the object at present, one entry for each type."),
    ("containers", "The programs of the pod; at least one."),
    ("creationTimestamp", "When the server stored the object first."),
    ("data", "Values by key."),
    (
        "deletionTimestamp",
        "When the object is to be gone; set by the server when a deletion begins.",
    ),
    ("env", "Variables of the environment."),
    (
        "finalizers",
        "What has to be done before the object can go; it stays until the list is empty.",
    ),
    ("generateName", "The beginning of a name that the server completes."),
    ("generation", "Counts the changes of the desired state."),
    ("image", "The image of the container."),
    ("immutable", "Whether the data can never be changed again."),
    ("items", "The objects of the list."),
    ("kind", "The name of the schema that this object follows."),
    ("labels", "Short values by which objects are selected."),
    ("managedFields", "Who set which fields."),
    ("metadata", "Name, identity, version and labels."),
    ("namespace", "The namespace that the object is in."),
    ("nodeName", "The node that the pod runs on."),
    ("observedGeneration", "The generation that this status is about."),
    ("ownerReferences", "The objects without which this one is not wanted."),
    ("replicas", "How many copies there are, or should be."),
    ("resourceVersion", "An opaque value that changes with every write."),
    ("restartPolicy", "Whether containers that end are started again: Always, OnFailure or Never."),
    ("selector", "Which objects are meant, by their labels."),
    ("spec", "The state that is wanted."),
    ("status", "The state that was last seen."),
    ("stringData", "Values as plain text; they are written into data and never read back."),
    ("template", "What new objects are made from."),
    ("uid", "Tells this object from all others, earlier ones of its name included."),
    ("volumes", "Storage that the containers can mount."),
];

/// Adds the descriptions to a definition of this name. Existing descriptions stay.
pub(super) fn describe(name: &str, definition: &mut Map<String, Value>, dialect: Dialect) {
    let kind = name.rsplit('.').next().unwrap_or_default();
    if let Some(text) = find(TYPES, kind) {
        definition.entry("description").or_insert_with(|| text.into());
    }
    for (field, schema) in
        definition.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        let (Some(text), Some(schema)) = (find(FIELDS, field), schema.as_object_mut()) else {
            continue;
        };
        if dialect == Dialect::V3
            && let Some(reference) = schema.remove("$ref")
        {
            // In v3, keywords beside a reference are ignored.
            schema.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
        }
        schema.entry("description").or_insert_with(|| text.into());
    }
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.binary_search_by(|(known, _)| (*known).cmp(name)).ok().map(|index| table[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order_and_hold_sentences() {
        for table in [TYPES, FIELDS] {
            assert!(table.is_sorted_by(|(one, _), (next, _)| one < next));
            assert!(table.iter().all(|(_, text)| text.ends_with('.')));
        }
    }

    #[test]
    fn references_and_own_words_survive() {
        let definition =
            json!({"properties": {"spec": {"$ref": "#/x"}, "kind": {"description": "Mine."}}});
        let describe = |dialect| {
            let mut definition = definition.as_object().cloned().unwrap_or_default();
            describe("io.k8s.api.core.v1.Pod", &mut definition, dialect);
            Value::Object(definition)
        };
        let (two, three) = (describe(Dialect::V2), describe(Dialect::V3));
        assert_eq!(two["properties"]["spec"]["$ref"], "#/x");
        assert_eq!(three["properties"]["spec"]["allOf"], json!([{"$ref": "#/x"}]));
        assert_eq!(three["properties"]["kind"]["description"], "Mine.");
        assert_eq!(two["description"], "Containers that run together on one node.");
    }
}
