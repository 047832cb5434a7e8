//! The controller that a server without controllers still needs: it empties namespaces that are being deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::encode;
use crate::lifecycle::{self, DeleteOptions, Propagation};
use crate::object::Object;
use crate::registry::{Lookup, ResourceType};
use crate::store::Key;
use crate::{Fault, Faults};

/// Removes the content of a namespace, and then the namespace.
pub(super) async fn terminate(api: Arc<Api>, name: String) {
    let mut changes = api.store.subscribe_all();
    loop {
        changes.mark_unchanged();
        if !api.faults.on(Fault::NamespaceContentStays) {
            empty(&api, &name);
        }
        if finalize(&api, &name) {
            return;
        }
        // What is left waits for a finalizer, and its removal is a write.
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn empty(api: &Arc<Api>, namespace: &str) {
    let options = DeleteOptions {
        grace: Some(0),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    let mut seen = BTreeSet::new();
    for ty in api.registry.current().types() {
        if !ty.namespaced || !seen.insert(ty.table.clone()) {
            continue;
        }
        for object in api.store.snapshot(&ty.table, Some(namespace)).0 {
            // A refusal means that it is gone already, or that it waits.
            let _ = lifecycle::delete(api, ty, &object.key, &options);
        }
    }
}

/// Lets the namespace go when nothing is left in it; true when there is nothing more to do.
fn finalize(api: &Arc<Api>, name: &str) -> bool {
    let Lookup::Found(ty) = api.registry.current().find("", "v1", "namespaces") else { return true };
    let key = Key::new("", name);
    let Some(stored) = api.store.get(&ty.table, &key) else { return true };
    let mut namespace = ty.load(&stored, Faults::none());
    if !namespace.is_deleting() {
        return true;
    }
    drop_finalizer(&mut namespace);
    let waits = !namespace.meta_list("finalizers").is_empty()
        || namespace
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
    let draft = encode::draft(&ty, &namespace);
    let leave_content = api.faults.on(Fault::NamespaceContentStays);
    api.store.write(|write| {
        let current = write.get(&ty.table, &key).is_some_and(|current| current.revision == stored.revision);
        if !current || (write.has_namespace(name) && !leave_content) {
            return false;
        }
        if waits {
            if !stored.same_content(&draft) {
                write.put(&ty.table, draft);
            }
            // What else holds the namespace is a client's, whose update will complete the deletion.
            return true;
        }
        write.delete(&ty.table, &key).is_some()
    })
}

fn drop_finalizer(namespace: &mut Value) {
    if let Some(list) = namespace.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        list.retain(|finalizer| finalizer != "kubernetes");
    }
}

/// The namespaces that a server begins with.
pub(crate) fn create_initial(api: &Api, ty: &ResourceType) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        if name == "default" && api.faults.on(Fault::DefaultNamespaceMissing) {
            continue;
        }
        let mut namespace =
            serde_json::json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name } });
        namespace.set_meta("uid", crate::object::uuid());
        namespace.set_meta("creationTimestamp", crate::object::timestamp(0));
        ty.prepare_create(&mut namespace, Faults::none());
        ty.default(&mut namespace, Faults::none());
        let draft = encode::draft(ty, &namespace);
        api.store.write(|write| write.put(&ty.table, draft));
    }
}
