//! GET of one object: a copy of the bytes in the store.

use http::StatusCode;

use super::Call;
use crate::negotiate::Target;
use crate::present;
use crate::query::Query;
use crate::respond::Answer;
use crate::status::ApiError;
use crate::{Fault, Faults};

pub(super) fn handle(call: &Call) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Object)?;
    if let Some(asked) = version(&call.query, call.faults())? {
        // The store has no lag: a version that is not there now is not on its way either.
        let current = call.api.store.revision();
        if asked > current && !call.faults().on(Fault::FutureVersionAccepted) {
            return Err(ApiError::future_version(asked, current));
        }
    }
    match call.api.store.get(&call.ty.table, &call.key()) {
        Some(stored)
            if call.faults().on(Fault::GetAtExactVersion)
                && version(&call.query, call.faults())?.is_some_and(|asked| asked != stored.revision) =>
        {
            Err(call.not_found())
        }
        Some(stored)
            if call.info.subresource == "status" && call.faults().on(Fault::StatusAnswersItsPart) =>
        {
            let mut object = call.ty.load(&stored, call.faults());
            if let Some(fields) = object.as_object_mut() {
                fields.remove("spec");
            }
            present::value(call, representation, StatusCode::OK, &object)
        }
        Some(stored) if call.faults().on(Fault::ReadsAnswer203) => {
            present::stored(call, representation, StatusCode::NON_AUTHORITATIVE_INFORMATION, &stored)
        }
        Some(stored) => {
            let mut answer = present::stored(call, representation, StatusCode::OK, &stored)?;
            if call.faults().on(Fault::ProtobufWithoutEnvelope) && call.asks_for_protobuf() {
                answer.content_type = "application/vnd.kubernetes.protobuf";
            }
            Ok(answer)
        }
        None if call.faults().on(Fault::MissingObjectIsNull) => {
            Ok(Answer::json(StatusCode::OK, &serde_json::Value::Null))
        }
        None if call.faults().on(Fault::MissingObjectAsServerError) => Err(ApiError::internal("no such key")),
        None if call.faults().on(Fault::GetByPrefix) => {
            let (all, _) = call.api.store.snapshot(&call.ty.table, call.scope());
            match all.iter().find(|stored| stored.key.name.starts_with(&call.info.name)) {
                Some(stored) => present::stored(call, representation, StatusCode::OK, stored),
                None => Err(call.not_found()),
            }
        }
        None => Err(call.not_found()),
    }
}

/// The parameter `resourceVersion`; none when it is absent or leaves the choice to the server.
pub(super) fn version(query: &Query, faults: Faults) -> Result<Option<u64>, ApiError> {
    match query.text("resourceVersion") {
        None => Ok(None),
        Some(text) => match text.parse() {
            Ok(version) => Ok(Some(version)),
            Err(_) if faults.on(Fault::MalformedVersionIgnored) => Ok(None),
            Err(error) => Err(ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: {error}"
            ))),
        },
    }
}
