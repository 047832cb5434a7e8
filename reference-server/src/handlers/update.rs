//! PUT: the body is the whole object.

use http::StatusCode;
use hyper::body::Incoming;

use super::Call;
use super::create::{self, Created, Origin};
use super::modify::{self, Manner};
use crate::Fault;
use crate::body::{self, Decoded};
use crate::negotiate::Target;
use crate::object::Object;
use crate::patch;
use crate::present;
use crate::query::WriteOptions;
use crate::respond::Answer;
use crate::status::{self, ApiError, Details};

/// Which part of an object an endpoint writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status, where the type has the subresource.
    Whole,
    /// The status.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// The node of a pod, which no other endpoint changes.
    Binding,
}

pub(super) async fn handle(call: &Call, part: Part, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Object)?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions", call.faults())?;
    let bytes = call.json_body(body).await?;
    let Decoded { object, warnings } = body::decode(&call.ty, &bytes, options.validation, call.faults())?;
    let missing = || call.api.store.get(&call.ty.table, &call.key()).is_none();
    let creates = call.ty.allows_create_on_update || call.faults().on(Fault::PutCreates);
    if part == Part::Whole && creates && missing() {
        let mut object = object;
        modify::check_identity(call, &mut object)?;
        object.unset_meta("resourceVersion");
        let answer = match create::create(call, object, Origin::Created, options.dry_run)? {
            Created::Stored(object) => present::stored(call, representation, StatusCode::CREATED, &object)?,
            Created::Dry(object) => present::value(call, representation, StatusCode::CREATED, &object)?,
        };
        return Ok(answer.warnings(&warnings));
    }
    if call.faults().on(Fault::PutOfNothingSucceeds) && missing() {
        return present::value(call, representation, StatusCode::OK, &object);
    }
    let manner = Manner { part, dry_run: options.dry_run, needs_version: true, owned: false };
    let changed = modify::modify(call, manner, |old| {
        if call.faults().on(Fault::PutMerges) {
            return patch::merge::apply(old, &object, call.faults()).map_err(ApiError::from);
        }
        Ok(object.clone())
    })
    .await?;
    if call.faults().on(Fault::UpdateAnswersStatus) {
        let details = Details { name: call.info.name.clone(), ..Details::default() };
        return Ok(present::document(representation, StatusCode::OK, &status::success(&details)));
    }
    Ok(modify::answer(call, representation, &changed)?.warnings(&warnings))
}
