//! PATCH: the body describes a change of the object.

use hyper::body::Incoming;
use serde_json::Value;

use super::Call;
use super::admit::Admission;
use super::decode;
use super::modify::{self, UpdateOptions};
use super::update::Part;
use crate::http::body;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::patch::{self};
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Merge,
    Strategic,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) struct Patch {
    kind: Kind,
    document: Result<Value, ApiError>,
    pub(super) duplicates: Vec<String>,
}

pub(super) async fn handle(
    call: &Call,
    part: Part,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Object)?;
    let patch = read(call, body).await?;
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let ty = &*call.ty;
    let mut warnings = Vec::new();
    let admission = Admission::patch(call, options.dry_run);
    let change = UpdateOptions::new(part, options.dry_run, Some(&admission));
    let changed = modify::modify(call, change, |old| {
        let patched = patch.apply(old, &ty.schema)?;
        let decoded = decode::recast(ty, patched, &patch.duplicates, options.validation)?;
        warnings = decoded.warnings;
        Ok(decoded.object)
    })
    .await?;
    Ok(modify::respond(call, representation, &changed).await?.warnings(&warnings))
}

/// Reads a patch. Malformed JSON is rejected only if the object exists, so a missing object returns
/// 404.
pub(super) async fn read(call: &Call, body: &mut Incoming) -> Result<Patch, ApiError> {
    let kind = kind(call)?;
    let bytes = call.body(body).await?;
    let (document, duplicates) = match json::decode(&bytes) {
        Ok(decoded) => (Ok(decoded.value), decoded.duplicates),
        Err(error) => {
            (Err(ApiError::bad_request(format!("error decoding patch: {error}"))), Vec::new())
        }
    };
    Ok(Patch { kind, document, duplicates })
}

fn kind(call: &Call) -> Result<Kind, ApiError> {
    let media_type = body::media_type(&call.headers);
    let taken = |known| call.ty.patch_types.contains(&known);
    match media_type.as_str() {
        JSON if taken(JSON) => Ok(Kind::Json),
        MERGE if taken(MERGE) => Ok(Kind::Merge),
        STRATEGIC if taken(STRATEGIC) => Ok(Kind::Strategic),
        _ => Err(ApiError::unsupported_media_type(&call.ty.patch_types)),
    }
}

impl Patch {
    /// Returns the object with the patch applied.
    pub(super) fn apply(&self, object: &Value, schema: &Schema) -> Result<Value, ApiError> {
        let document = self.document.as_ref().map_err(Clone::clone)?;
        let result = match self.kind {
            Kind::Json => patch::json::apply(object, document),
            Kind::Merge => patch::merge::apply(object, document),
            Kind::Strategic => patch::strategic::apply(object, document, schema),
        };
        let patched = result.map_err(ApiError::from)?;
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(ApiError::unprocessable_patch("the patch leaves no object behind"))
        }
    }
}
