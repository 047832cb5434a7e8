//! `pods/log`: the output of a container.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kubeproof_streaming::{Protocol, websocket};
use serde_json::{Value, json};

use super::kubelets::{self, Kubelet};
use super::{Call, streams};
use crate::http::respond::{ApiResponse, Chunks};
use crate::kubelet_client::{PodLogError, PodLogOptions};
use crate::registry::backends;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::{ApiError, Subject};

/// Serves a GET.
pub(super) async fn handle(mut call: Call) -> Result<ApiResponse, ApiError> {
    let options = options(&call)?;
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.ty.load(&stored);
    let container = streams::container(&call, &pod)?;
    if pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Ok(ApiResponse::bare(StatusCode::NO_CONTENT));
    }
    if let Some(kubelet) = Kubelet::of_pod(&call, &pod)? {
        let parameters = parameters(&call, &options);
        let target = kubelets::target("containerLogs", &call, &container, parameters);
        return kubelet.log(&call, &target).await;
    }
    let chunks = open(&call, &pod, &container, options)?;
    match call.upgrade.take().filter(|upgrade| upgrade.protocol() == Protocol::Websocket) {
        Some(upgrade) => Ok(call.switch(websocket::serve_log(upgrade, chunks))),
        None => Ok(ApiResponse {
            content_type: "text/plain",
            may_pause: true,
            ..ApiResponse::stream(chunks)
        }),
    }
}

fn open(
    call: &Call,
    pod: &Value,
    container: &str,
    options: PodLogOptions,
) -> Result<Chunks, ApiError> {
    let name = &call.info.name;
    let Some(kubelet) = call.api.kubelet.get() else {
        return Err(ApiError::unreachable_node("no node of this name responds"));
    };
    kubelet.logs(&backends::pod_ref(pod), container, options).map_err(|error| {
        ApiError::bad_request(match error {
            PodLogError::ContainerCreating => {
                format!("container {container:?} in pod {name:?} {error}")
            }
            PodLogError::NoPrevious => {
                format!("previous terminated container {container:?} in pod {name:?} not found")
            }
            PodLogError::Other(message) => message,
        })
    })
}

/// Returns the parameters of the kubelet. Their order is that of kube-apiserver.
fn parameters(call: &Call, options: &PodLogOptions) -> Vec<(&'static str, String)> {
    let flag = |name, is_set: bool| is_set.then(|| (name, "true".to_owned()));
    let text = |name| call.query.text(name).map(|text| (name, text.to_owned()));
    let parameters = [
        flag("follow", options.follow),
        text("limitBytes"),
        flag("previous", options.previous),
        text("sinceSeconds"),
        text("sinceTime"),
        text("tailLines"),
        flag("timestamps", options.timestamps),
    ];
    parameters.into_iter().flatten().collect()
}

/// Reads `PodLogOptions`.
fn options(call: &Call) -> Result<PodLogOptions, ApiError> {
    let query = &call.query;
    let number = |name: &str| -> Result<Option<i64>, ApiError> {
        let Some(text) = query.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))),
        }
    };
    let (tail, seconds, limit) =
        (number("tailLines")?, number("sinceSeconds")?, number("limitBytes")?);
    let time =
        match query.text("sinceTime") {
            None => None,
            Some(text) => Some(text.parse::<Timestamp>().map_err(|error| {
                ApiError::bad_request(format!("parsing time {text:?}: {error}"))
            })?),
        };
    let mut errors = Vec::new();
    for (name, value, least) in
        [("tailLines", tail, 0), ("limitBytes", limit, 1), ("sinceSeconds", seconds, 1)]
    {
        if let Some(value) = value.filter(|value| *value < least) {
            let why = if least == 0 {
                "must be greater than or equal to 0"
            } else {
                "must be greater than 0"
            };
            errors.push(FieldError::invalid(name, &json!(value), why));
        }
    }
    if seconds.is_some() && time.is_some() {
        errors.push(FieldError::forbidden(
            "[]",
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ));
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(
            Subject { group: "", word: "PodLogOptions" },
            &call.info.name,
            &errors,
        ));
    }
    let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Ok(PodLogOptions {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        tail_lines: positive(tail),
        limit_bytes: positive(limit),
        since: seconds
            .and_then(|seconds| {
                Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).ok()
            })
            .or(time),
        timestamps: query.flag("timestamps"),
    })
}
