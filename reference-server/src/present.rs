//! How objects and lists look in the form that the client asked for.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::handlers::Call;
use crate::items::Items;
use crate::json::Bounded;
use crate::negotiate::{Encoding, Form, MetaVersion, Representation};
use crate::object::{Object as _, timestamp, uuid};
use crate::query::Query;
use crate::registry::ResourceType;
use crate::respond::{Answer, MAX_INDENTED};
use crate::status::ApiError;
use crate::store::Stored;
use crate::table::{IncludeObject, View};
use crate::{Fault, Faults};

/// `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: Option<u64>,
    pub(crate) resume: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    pub(crate) fn to_value(&self) -> Value {
        let mut meta = json!({});
        if let Some(revision) = self.revision {
            meta["resourceVersion"] = revision.to_string().into();
        }
        if let Some(resume) = &self.resume {
            meta["continue"] = resume.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = remaining.into();
        }
        meta
    }
}

/// Faults that change every object on its way out.
const OBJECT_FAULTS: [Fault; 8] = [
    Fault::AnswersWithoutKind,
    Fault::NamespaceNotStated,
    Fault::ClusterScopedInDefault,
    Fault::ApiVersionWithoutGroup,
    Fault::MetadataMisnamed,
    Fault::UidMissing,
    Fault::VersionMissing,
    Fault::VersionIsGeneration,
];

/// Faults that change lists and their items on their way out.
const LIST_FAULTS: [Fault; 6] = [
    Fault::ListKindIsList,
    Fault::EmptyListIsNull,
    Fault::ListLooksLikeObject,
    Fault::ItemsCarryListVersion,
    Fault::ItemsCarryListKind,
    Fault::ItemsAbridged,
];

/// An object of the store. In plain JSON that is a copy of its bytes.
pub(crate) fn stored(
    call: &Call,
    representation: Representation,
    status: StatusCode,
    object: &Stored,
) -> Result<Answer, ApiError> {
    let bent = call.faults().any(&OBJECT_FAULTS);
    if representation == Representation::JSON && call.ty.serves_as_stored(object) && !bent {
        let text = object.object();
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text);
        bytes.push(b'\n');
        return Ok(Answer::bytes(status, bytes));
    }
    value(call, representation, status, &call.ty.load(object, call.faults()))
}

/// An object that is not in the store, or not yet.
pub(crate) fn value(
    call: &Call,
    representation: Representation,
    status: StatusCode,
    object: &Value,
) -> Result<Answer, ApiError> {
    let mut bent = Value::Null;
    let object = if call.faults().any(&OBJECT_FAULTS) {
        bent.clone_from(object);
        bend_object(&call.ty, &mut bent, call.faults());
        &bent
    } else {
        object
    };
    let shown = match representation.form {
        Form::Table(version) => tables(call, std::slice::from_ref(object), &ListMeta::of(object), version)?,
        Form::Metadata(version) => partial_of(object, version, call.faults()),
        Form::Plain | Form::AggregatedDiscovery => return Ok(document(representation, status, object)),
    };
    Ok(document(representation, status, &shown))
}

/// A list of objects of the store. In plain JSON their bytes are copied.
pub(crate) fn list<'a, I>(
    call: &Call,
    representation: Representation,
    items: I,
    meta: &ListMeta,
) -> Result<Answer, ApiError>
where
    I: IntoIterator<Item = &'a Arc<Stored>>,
{
    let ty = &call.ty;
    let faults = call.faults();
    if representation == Representation::JSON && !faults.any(&LIST_FAULTS) && !faults.any(&OBJECT_FAULTS) {
        let head = format!(
            r#"{{"kind":"{}","apiVersion":"{}","metadata":{},"items":["#,
            ty.list_kind,
            ty.api_version(),
            meta.to_value()
        );
        // The items of a typed list need no type of their own; those of a custom one carry it.
        let item_head = if ty.custom { ty.head.clone() } else { "{".to_owned() };
        let mut text = Items::new(head, item_head, "]}\n");
        for item in items {
            if ty.serves_as_stored(item) {
                text.stored(item.clone());
            } else {
                text.bytes(ty.load(item, call.faults()).to_string().into());
            }
        }
        return Ok(Answer::items(text));
    }
    let mut objects: Vec<Value> = items.into_iter().map(|item| ty.load(item, faults)).collect();
    for object in &mut objects {
        bend_object(ty, object, faults);
        bend_item(ty, object, meta, faults);
    }
    let shown = match representation.form {
        Form::Table(version) => tables(call, &objects, meta, version)?,
        Form::Metadata(version) => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": version.api_version(),
            "metadata": meta.to_value(),
            "items": objects.iter().map(|object| partial_of(object, version, faults)).collect::<Vec<_>>(),
        }),
        Form::Plain | Form::AggregatedDiscovery => json!({
            "kind": ty.list_kind,
            "apiVersion": ty.api_version(),
            "metadata": meta.to_value(),
            "items": objects,
        }),
    };
    let mut shown = shown;
    bend_list(&mut shown, faults);
    Ok(document(representation, StatusCode::OK, &shown))
}

fn bend_object(ty: &ResourceType, object: &mut Value, faults: Faults) {
    if faults.on(Fault::AnswersWithoutKind)
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    if faults.on(Fault::NamespaceNotStated) {
        object.unset_meta("namespace");
    }
    if faults.on(Fault::ClusterScopedInDefault) && !ty.namespaced {
        object.set_meta("namespace", "default");
    }
    if faults.on(Fault::ApiVersionWithoutGroup) {
        object["apiVersion"] = ty.api_version().rsplit('/').next().unwrap_or_default().into();
    }
    if faults.on(Fault::VersionIsGeneration) && object.generation() > 0 {
        object.set_meta("resourceVersion", object.generation().to_string());
    }
    if ty.is_core("configmaps") {
        for (fault, field) in [(Fault::UidMissing, "uid"), (Fault::VersionMissing, "resourceVersion")] {
            if faults.on(fault) {
                object.unset_meta(field);
            }
        }
        if faults.on(Fault::MetadataMisnamed)
            && let Some(fields) = object.as_object_mut()
            && let Some(metadata) = fields.remove("metadata")
        {
            fields.insert("meta".to_owned(), metadata);
        }
    }
}

fn bend_item(ty: &ResourceType, item: &mut Value, meta: &ListMeta, faults: Faults) {
    if faults.on(Fault::ItemsCarryListVersion) {
        item.set_meta("resourceVersion", meta.revision.unwrap_or_default().to_string());
    }
    if faults.on(Fault::ItemsCarryListKind) {
        item["kind"] = ty.list_kind.as_str().into();
    }
    if faults.on(Fault::ItemsAbridged) {
        item.unset_meta("uid");
    }
}

fn bend_list(list: &mut Value, faults: Faults) {
    if faults.on(Fault::ListKindIsList) {
        list["kind"] = "List".into();
    }
    if faults.on(Fault::EmptyListIsNull) && list["items"] == json!([]) {
        list["items"] = Value::Null;
    }
    if faults.on(Fault::ListLooksLikeObject) {
        list.set_meta("uid", uuid());
        list.set_meta("creationTimestamp", timestamp(0));
    }
}

/// Any document, in the encoding of the representation.
pub(crate) fn document(representation: Representation, status: StatusCode, document: &Value) -> Answer {
    let mut answer = match representation.encoding {
        Encoding::Json => Answer::json(status, document),
        Encoding::Yaml => {
            let plain = document.to_string();
            let mut text = Bounded::new(MAX_INDENTED.max(4 * plain.len()));
            match serde_saphyr::to_io_writer(&mut text, document) {
                Ok(()) => Answer::bytes(status, text.into_bytes()),
                // JSON is YAML, and does not grow with its depth.
                Err(_) => Answer::bytes(status, plain),
            }
        }
    };
    answer.content_type = representation.content_type();
    answer
}

/// Type and metadata of an object, unless a fault lets the rest through.
fn partial_of(object: &Value, version: MetaVersion, faults: Faults) -> Value {
    let mut shown = partial(object, version);
    if let (true, Some(fields)) = (faults.on(Fault::PartialMetadataIsWhole), object.as_object()) {
        for (field, value) in
            fields.iter().filter(|(field, _)| !matches!(field.as_str(), "kind" | "apiVersion"))
        {
            shown[field.as_str()] = value.clone();
        }
    }
    shown
}

/// Type and metadata of an object.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object["metadata"],
    })
}

impl ListMeta {
    /// What the table of one object says about its list: the version of the object.
    fn of(object: &Value) -> Self {
        Self { revision: Some(object.revision()).filter(|revision| *revision > 0), ..Self::default() }
    }
}

/// A table of objects.
fn tables(call: &Call, objects: &[Value], meta: &ListMeta, version: MetaVersion) -> Result<Value, ApiError> {
    let include = include(&call.query)?;
    Ok(view(&call.ty, version, include, call.faults()).render(&meta.to_value(), objects))
}

/// What the rows of a table carry besides their cells.
pub(crate) fn include(query: &Query) -> Result<IncludeObject, ApiError> {
    IncludeObject::parse(query.get("includeObject").unwrap_or_default())
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

/// How objects of a type become tables.
pub(crate) fn view(
    ty: &ResourceType,
    version: MetaVersion,
    include: IncludeObject,
    faults: Faults,
) -> View<'_> {
    View { columns: &ty.columns, version, include, now: Timestamp::now(), faults }
}
