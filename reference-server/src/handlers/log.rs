//! `pods/log`: what a container has written, in pieces as it comes.

use futures_util::stream;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Call;
use super::streams;
use crate::Fault;
use crate::respond::{Answer, Chunks};
use crate::runtime::{LogOptions, LogStream, StartError, State};
use crate::schema::FieldError;
use crate::status::{ApiError, Subject};
use crate::streams::{self as framing, Wish};

/// Answers a GET.
pub(super) fn handle(mut call: Call) -> Result<Answer, ApiError> {
    let faults = call.faults();
    let options = options(&call)?;
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.ty.load(&stored, faults);
    let container = streams::container(&call, &pod)?;
    if pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Ok(Answer::bare(http::StatusCode::NO_CONTENT));
    }
    let log = open(&call, &pod, &container, options)?;
    let chunks: Chunks = Box::pin(stream::unfold(log, |mut log| async move {
        let piece = log.next().await?;
        Some((piece, log))
    }));
    match call.upgrade.take().filter(|upgrade| upgrade.wish() == Wish::Websocket) {
        Some(upgrade) => Ok(call.switch(framing::log(upgrade, chunks, faults))),
        None => Ok(Answer { content_type: "text/plain", patient: true, ..Answer::stream(chunks) }),
    }
}

/// Finds the log. A node answers for a container that has none.
fn open(call: &Call, pod: &Value, container: &str, mut options: LogOptions) -> Result<LogStream, ApiError> {
    let name = &call.info.name;
    let Some(runtime) = call.api.runtime.get() else {
        return Err(ApiError::unreachable_node("no node of this name answers"));
    };
    let key = streams::key(pod);
    let waits = |reason: &str| {
        ApiError::bad_request(format!(
            "container {container:?} in pod {name:?} is waiting to start: {reason}"
        ))
    };
    match runtime.pod(&key).and_then(|pod| pod.container(container).map(|container| container.view())) {
        Err(StartError::NoSuchPod) => return Err(waits("ContainerCreating")),
        Ok(view) if view.id.is_empty() && matches!(view.state, State::Waiting { .. }) => {
            return Err(waits("ContainerCreating"));
        }
        Ok(view)
            if options.follow
                && matches!(view.state, State::Terminated(_))
                && call.faults().on(Fault::LogOfEndedUnfollowed) =>
        {
            options.tail_lines = Some(0);
        }
        _ => {}
    }
    runtime.logs(&key, container, options).map_err(|error| match error {
        crate::runtime::LogError::NoPrevious { .. } => ApiError::bad_request(format!(
            "previous terminated container {container:?} in pod {name:?} not found"
        )),
        crate::runtime::LogError::Missing(error) => ApiError::bad_request(error.to_string()),
    })
}

/// `PodLogOptions`
fn options(call: &Call) -> Result<LogOptions, ApiError> {
    let (query, faults) = (&call.query, call.faults());
    let number = |name: &str| -> Result<Option<i64>, ApiError> {
        let Some(text) = query.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
            }
        }
    };
    let (tail, seconds, limit) = (number("tailLines")?, number("sinceSeconds")?, number("limitBytes")?);
    let time = match query.text("sinceTime") {
        None => None,
        Some(text) => Some(
            text.parse::<Timestamp>()
                .map_err(|error| ApiError::bad_request(format!("parsing time {text:?}: {error}")))?,
        ),
    };
    let mut errors = Vec::new();
    for (name, value, least) in
        [("tailLines", tail, 0), ("limitBytes", limit, 1), ("sinceSeconds", seconds, 1)]
    {
        if let Some(value) = value.filter(|value| *value < least) {
            let why =
                if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            errors.push(FieldError::invalid(name, &json!(value), why));
        }
    }
    if seconds.is_some() && time.is_some() {
        errors.push(FieldError::forbidden(
            "[]",
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ));
    }
    if !errors.is_empty() && !faults.on(Fault::LogOptionsUnchecked) {
        return Err(ApiError::invalid(
            Subject { group: "", word: "PodLogOptions" },
            &call.info.name,
            &errors,
        ));
    }
    let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Ok(LogOptions {
        follow: query.flag("follow") && !faults.on(Fault::LogFollowEnds),
        previous: query.flag("previous") && !faults.on(Fault::LogPreviousIgnored),
        tail_lines: positive(tail).filter(|_| !faults.on(Fault::LogTailIgnored)),
        limit_bytes: positive(limit).filter(|_| !faults.on(Fault::LogLimitIgnored)),
        since: seconds
            .and_then(LogOptions::since_seconds)
            .or(time)
            .filter(|_| !faults.on(Fault::LogSinceIgnored)),
        timestamps: query.flag("timestamps") && !faults.on(Fault::LogTimestampsMissing),
    })
}
