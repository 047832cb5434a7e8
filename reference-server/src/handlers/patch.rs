//! PATCH: the body says how the object changes.

use hyper::body::Incoming;
use serde_json::Value;

use super::modify::{self, Manner};
use super::update::Part;
use super::{Call, create};
use crate::body;
use crate::json;
use crate::negotiate::Target;
use crate::patch::{self, PatchError};
use crate::query::WriteOptions;
use crate::respond::Answer;
use crate::schema::Schema;
use crate::status::ApiError;
use crate::{Fault, Faults};

/// The kinds of patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Merge,
    Strategic,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A patch as the client sent it.
pub(super) struct Patch {
    kind: Kind,
    document: Result<Value, ApiError>,
    pub(super) duplicates: Vec<String>,
}

pub(super) async fn handle(call: &Call, part: Part, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Object)?;
    let patch = read(call, body).await?;
    let options = WriteOptions::parse(&call.query, "PatchOptions", call.faults())?;
    let (ty, faults) = (&*call.ty, call.faults());
    let mut warnings = Vec::new();
    let manner = Manner { part, dry_run: options.dry_run, needs_version: false, owned: false };
    let changed = modify::modify(call, manner, |old| {
        let mut patched = patch.apply(old, &ty.schema, faults)?;
        if faults.on(Fault::HugeNumbersRoundedByPatches) {
            create::bend_values(&mut patched["spec"], Fault::LargeIntegersRounded.into());
        }
        let decoded = body::recast(ty, patched, &patch.duplicates, options.validation, faults)?;
        warnings = decoded.warnings;
        Ok(decoded.object)
    })
    .await?;
    Ok(modify::answer(call, representation, &changed)?.warnings(&warnings))
}

/// Reads a patch. One that is no JSON is refused only when there is an object for it: a missing one comes first.
pub(super) async fn read(call: &Call, body: &mut Incoming) -> Result<Patch, ApiError> {
    let kind = match kind(call) {
        Err(_) if call.faults().on(Fault::PatchOfUnknownTypeIgnored) => {
            return Ok(Patch {
                kind: Kind::Merge,
                document: Ok(Value::Object(serde_json::Map::new())),
                duplicates: Vec::new(),
            });
        }
        kind => kind?,
    };
    let bytes = call.body(body).await?;
    let (document, duplicates) = match json::decode(&bytes) {
        Ok(decoded) => (Ok(decoded.value), decoded.duplicates),
        Err(error) => (Err(ApiError::bad_request(format!("error decoding patch: {error}"))), Vec::new()),
    };
    Ok(Patch { kind, document, duplicates })
}

fn kind(call: &Call) -> Result<Kind, ApiError> {
    let custom = call.ty.custom;
    let faults = call.faults();
    let media_type = body::media_type(&call.headers);
    let taken = |known| call.ty.patch_types.contains(&known);
    match media_type.as_str() {
        JSON if taken(JSON) => Ok(Kind::Json),
        MERGE if faults.on(Fault::MergePatchAsStrategic) && !custom => Ok(Kind::Strategic),
        MERGE if faults.on(Fault::MergePatchRefused) => {
            let others: Vec<_> =
                call.ty.patch_types.iter().copied().filter(|known| *known != MERGE).collect();
            Err(ApiError::unsupported_media_type(&others))
        }
        MERGE if taken(MERGE) => Ok(Kind::Merge),
        STRATEGIC if faults.on(Fault::StrategicPatchAsMerge) => Ok(Kind::Merge),
        STRATEGIC if taken(STRATEGIC) => Ok(Kind::Strategic),
        _ if faults.on(Fault::ContentTypeIgnored) => Ok(Kind::Merge),
        _ => Err(ApiError::unsupported_media_type(&call.ty.patch_types)),
    }
}

impl Patch {
    /// The object with the patch applied.
    pub(super) fn apply(&self, object: &Value, schema: &Schema, faults: Faults) -> Result<Value, ApiError> {
        let document = self.document.as_ref().map_err(Clone::clone)?;
        let result = match self.kind {
            Kind::Json => patch::json::apply(object, document, faults),
            Kind::Merge => patch::merge::apply(object, document, faults),
            Kind::Strategic => patch::strategic::apply(object, document, schema, faults),
        };
        let patched = result.map_err(ApiError::from)?;
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(ApiError::unprocessable_patch("the patch leaves no object behind"))
        }
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => Self::bad_request(message),
            PatchError::Unprocessable(_) => Self::unprocessable_patch(message),
            PatchError::TooLarge(what) => Self::too_large(&what),
        }
    }
}
