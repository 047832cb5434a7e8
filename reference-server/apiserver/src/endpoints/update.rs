//! PUT: the body is the whole object.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::Value;

use super::Call;
use super::admit::Admission;
use super::create::{self, Created, Origin};
use super::decode::{self, Decoded};
use super::modify::{self, UpdateOptions};
use crate::authorization::authorize_create;
use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use crate::registry::ResourceType;
use crate::registry::builtin::PartHooks;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::Judgement;
use kubeproof_apimachinery::status::ApiError;

/// The part of an object that an endpoint writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// Everything except the status, if the type has the status subresource.
    Whole,
    Status,
    /// The node of a pod. Other endpoints must not change it.
    Binding,
    /// The part of another subresource, which has hooks for it.
    Subresource(&'static PartHooks),
}

impl Part {
    /// Validates an object in which the part has changed.
    pub(super) fn judge(self, ty: &ResourceType, new: &Value, old: &Value) -> Judgement {
        match self {
            Self::Status => ty.validate_status(new, old),
            Self::Whole => ty.validate_update(new, old),
            Self::Subresource(hooks) => {
                let mut errors = ty.schema.validate(new, Some(old));
                errors.extend((hooks.validate)(new, old));
                Judgement { errors, ..Judgement::default() }
            }
            Self::Binding => Judgement::default(),
        }
    }
}

pub(super) async fn handle(
    call: &Call,
    part: Part,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Object)?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let bytes = call.json_body(body).await?;
    let validation = call.validation(options.validation);
    let Decoded { mut object, warnings } = decode::decode(&call.ty, &bytes, validation)?;
    // A name in the body that differs from the URL is a mistake even if no such object exists.
    modify::check_identity(call, &mut object)?;
    let missing = || call.api.store.get(&call.ty.table, &call.key()).is_none();
    let creates = call.ty.allows_create_on_update;
    if matches!(part, Part::Whole) && creates && missing() {
        authorize_create(&call.user, &call.info, call.api.rights())?;
        if !object.meta("uid").is_empty() {
            return Err(modify::other_object(call, object.meta("uid"), ""));
        }
        object.unset_meta("resourceVersion");
        let response = match create::create(call, object, Origin::Created, options.dry_run).await? {
            Created::Stored(object) => {
                present::stored(call, representation, StatusCode::CREATED, &object).await?
            }
            Created::Dry(object) => {
                present::value(call, representation, StatusCode::CREATED, &object)?
            }
        };
        return Ok(response.warnings(&warnings));
    }
    let admission = Admission::update(call, options.dry_run);
    let change = UpdateOptions {
        needs_version: true,
        ..UpdateOptions::new(part, options.dry_run, Some(&admission))
    };
    let changed = modify::modify(call, change, |_| Ok(object.clone())).await?;
    Ok(modify::respond(call, representation, &changed).await?.warnings(&warnings))
}
