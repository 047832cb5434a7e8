//! Binds a pod to a node.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use super::decode::{Decoded, decode_body};
use super::modify::{self, UpdateOptions};
use super::update::Part;
use super::{Call, admit::Admission, create};

use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::{ApiError, Subject};

/// Handles POST to `bindings`: the body names the pod.
pub(super) async fn bind_by_name(call: Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let bytes = call.json_body(body).await?;
    let Decoded { object: binding, warnings } = decode_binding(&call, &bytes)?;
    if binding.meta("name").is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let info = ResourceInfo {
        resource: "pods".to_owned(),
        name: binding.meta("name").to_owned(),
        subresource: "binding".to_owned(),
        ..call.info
    };
    let ty = call.api.find_core("pods")?;
    let response = assign_node(&Call { ty, info, ..call }, binding).await?;
    Ok(response.warnings(&warnings))
}

/// Handles POST to `pods/binding`.
pub(super) async fn bind(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let bytes = call.json_body(body).await?;
    let Decoded { object: binding, warnings } = decode_binding(call, &bytes)?;
    if binding.meta("name") != call.info.name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    Ok(assign_node(call, binding).await?.warnings(&warnings))
}

/// Decodes a binding in the namespace of the request.
fn decode_binding(call: &Call, bytes: &[u8]) -> Result<Decoded, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let validation = call.validation(options.validation);
    let mut decoded = decode_body(&["v1"], "Binding", bytes, validation)?;
    create::place(call, &mut decoded.object)?;
    Ok(decoded)
}

async fn assign_node(call: &Call, mut binding: Value) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let admission = Admission::create(call, options.dry_run);
    admission.mutate(&mut binding, None).await?;
    let node = target(call, &binding)?;
    admission.validate(&binding, None).await?;
    let change = UpdateOptions::new(Part::Binding, options.dry_run, None);
    modify::modify(call, change, |pod| assign(call, pod, &binding, node)).await?;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": Map::new(), "status": "Success",
        "code": 201,
    });
    Ok(present::document(representation, StatusCode::CREATED, &status))
}

/// Returns the node of a binding.
fn target<'a>(call: &Call, binding: &'a Value) -> Result<&'a str, ApiError> {
    let text = |field: &str| binding["target"][field].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        errors.push(FieldError::not_supported(
            "target.kind",
            &binding["target"]["kind"],
            &["Node".into(), "".into()],
        ));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if errors.is_empty() {
        return Ok(text("name"));
    }
    let subject = Subject { group: "", word: "Binding" };
    Err(ApiError::invalid(subject, &call.info.name, &errors))
}

fn assign(call: &Call, pod: &Value, binding: &Value, node: &str) -> Result<Value, ApiError> {
    let subject = Subject { group: "", word: "pods/binding" };
    let conflict = |why: String| Err(ApiError::conflict(subject, &call.info.name, &why));
    let uid = binding.meta("uid");
    if !uid.is_empty() && uid != pod.meta("uid") {
        return conflict(format!("the pod has another uid than {uid}"));
    }
    if pod.is_deleting() {
        return conflict(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            call.info.name
        ));
    }

    if let Some(assigned) =
        pod.pointer("/spec/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
    {
        return conflict(format!(
            "pod {} is already assigned to node {assigned:?}",
            call.info.name
        ));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {} has non-empty .spec.schedulingGates", call.info.name));
    }
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = node.into();
    for field in ["annotations", "labels"] {
        let given = binding.metadata().and_then(|metadata| metadata.get(field));
        for (name, value) in given.and_then(Value::as_object).into_iter().flatten() {
            pod["metadata"][field][name] = value.clone();
        }
    }
    let scheduled = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": timestamp(0),
    });
    match pod["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(scheduled);
        }
        None => pod["status"]["conditions"] = json!([scheduled]),
    }
    Ok(pod)
}
