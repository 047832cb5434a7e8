//! Validates a CRD manifest: its names, versions, subresources and columns.

use super::conversion;
use serde_json::{Value, json};

use super::structural;
use super::text;
use kubeproof_apimachinery::object::validation::names::{dns_subdomain, rfc1035_label};

use kubeproof_apimachinery::schema::{FieldError, Kind, Path, Schema};

/// The annotation that a protected group requires.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// The most selectable fields of one version.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Returns the errors in a manifest with defaults from [`super::complete`].
pub(crate) fn validate(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &definition["spec"];
    let root = Path::Root;
    let path = root.field("spec");
    validate_identity(definition, &mut errors);
    validate_names(&spec["names"], path.field("names"), &mut errors);
    if spec["preserveUnknownFields"] == true {
        let why = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(path.field("preserveUnknownFields"), &json!(true), why));
    }
    errors.extend(conversion::validate(&spec["conversion"], path.field("conversion")));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = path.field("versions");
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].iter().any(|other| other["name"] == version["name"]) {
            errors.push(FieldError::duplicate(at.index(index).field("name"), &version["name"]));
        }
        validate_version(version, at.index(index), &mut errors);
    }
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    if stored != 1 && !versions.is_empty() {
        let names: Vec<&Value> = versions.iter().map(|version| &version["name"]).collect();
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(at, &json!(names), why));
    }
    errors
}

/// Returns the errors of an update. Existing objects and clients depend on some fields.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for pointer in ["/spec/group", "/spec/scope", "/spec/names/plural", "/spec/names/kind"] {
        let (now, before) = (new.pointer(pointer), old.pointer(pointer));
        if now != before {
            let place = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(FieldError::invalid(
                place,
                now.unwrap_or(&Value::Null),
                "field is immutable",
            ));
        }
    }
    let stored = old["status"]["storedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, name) in stored.iter().enumerate() {
        let versions = new["spec"]["versions"].as_array().into_iter().flatten();
        if !versions.into_iter().any(|version| version["name"] == *name) {
            let name_text = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name_text} was previously a storage version, and \
                 must remain in spec.versions until no object is stored in it"
            );
            errors.push(FieldError::invalid(format!("status.storedVersions[{index}]"), name, &why));
        }
    }
    errors
}

fn validate_identity(definition: &Value, errors: &mut Vec<FieldError>) {
    let spec = &definition["spec"];
    let group = text(spec, "group");
    let name = &definition["metadata"]["name"];
    let plural = text(&spec["names"], "plural");
    if *name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid(
            "metadata.name",
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let wrong = if group.is_empty() { Vec::new() } else { dns_subdomain(group) };
    errors.extend(wrong.iter().map(|why| FieldError::invalid("spec.group", &json!(group), why)));
    if wrong.is_empty() && !group.is_empty() && !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &json!(group), why));
    }
    let is_protected = [".k8s.io", ".kubernetes.io"].iter().any(|suffix| group.ends_with(suffix));
    if is_protected && text(&definition["metadata"]["annotations"], APPROVAL).is_empty() {
        let why = format!("protected groups must have approval annotation \"{APPROVAL}\"");
        errors.push(FieldError::required(format!("metadata.annotations[{APPROVAL}]"), &why));
    }
}

fn validate_names(names: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let mut label = |at: Path<'_>, value: &Value, text: &str| {
        let wrong = if text.is_empty() { Vec::new() } else { rfc1035_label(text) };
        errors.extend(wrong.iter().map(|why| FieldError::invalid(at, value, why)));
    };
    for field in ["plural", "singular"] {
        label(path.field(field), &names[field], text(names, field));
    }
    for field in ["kind", "listKind"] {
        // A kind has upper-case letters, too. The other rules are the same.
        label(path.field(field), &names[field], &text(names, field).to_lowercase());
    }
    for field in ["shortNames", "categories"] {
        let at = path.field(field);
        for (index, name) in names[field].as_array().into_iter().flatten().enumerate() {
            label(at.index(index), name, name.as_str().unwrap_or_default());
        }
    }
    let kind = &names["kind"];
    if kind.is_string() && *kind == names["listKind"] {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.field("listKind"), kind, why));
    }
}

fn validate_version(version: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let name = text(version, "name");
    if !name.is_empty() {
        let wrong = rfc1035_label(name);
        errors.extend(
            wrong.iter().map(|why| FieldError::invalid(path.field("name"), &json!(name), why)),
        );
    }
    if version["deprecated"] != true && !text(version, "deprecationWarning").is_empty() {
        let why = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(
            path.field("deprecationWarning"),
            &version["deprecationWarning"],
            why,
        ));
    }
    let holder = path.field("schema");
    let at = holder.field("openAPIV3Schema");
    let document = &version["schema"]["openAPIV3Schema"];
    if !document.is_object() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    let wrong = structural::validate(document, at);
    let is_sound = wrong.is_empty();
    errors.extend(wrong);
    validate_scale(&version["subresources"]["scale"], path, errors);
    validate_columns(
        &version["additionalPrinterColumns"],
        path.field("additionalPrinterColumns"),
        errors,
    );
    if is_sound && let Ok(schema) = Schema::from_openapi(document) {
        validate_selectable(
            &version["selectableFields"],
            &schema,
            path.field("selectableFields"),
            errors,
        );
    }
}

fn validate_scale(scale: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    if !scale.is_object() {
        return;
    }
    let subresources = path.field("subresources");
    let path = subresources.field("scale");
    let below =
        |value: &str, parents: &[&str]| parents.iter().any(|parent| value.starts_with(parent));
    for (field, parents, why) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let value = text(scale, field);
        if !value.is_empty() && (!below(value, parents) || value.contains('[')) {
            errors.push(FieldError::invalid(path.field(field), &json!(value), why));
        }
    }
}

fn validate_columns(columns: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = path.index(index);
        let kind = &column["type"];
        if kind.is_string() && !TYPES.iter().any(|known| kind == known) {
            errors.push(FieldError::not_supported(
                path.field("type"),
                kind,
                &TYPES.map(Value::from),
            ));
        }
        let expression = text(column, "jsonPath");
        if !expression.is_empty() && !expression.starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(path.field("jsonPath"), &json!(expression), why));
        }
    }
}

fn validate_selectable(
    fields: &Value,
    schema: &Schema,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let fields = fields.as_array().map(Vec::as_slice).unwrap_or_default();
    if fields.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError::too_many(path, fields.len(), MAX_SELECTABLE_FIELDS as u64));
    }
    for (index, field) in fields.iter().enumerate() {
        let expression = text(field, "jsonPath");
        let at = path.index(index);
        if fields[..index].contains(field) {
            errors.push(FieldError::duplicate(at.field("jsonPath"), &json!(expression)));
        }
        let names = expression.strip_prefix('.').unwrap_or_default();
        let target = names.split('.').try_fold(schema, |schema, name| {
            schema.properties.get(name).map(AsRef::as_ref).filter(|_| !name.is_empty())
        });
        let is_scalar = |schema: &Schema| {
            matches!(schema.kind, Some(Kind::String | Kind::Boolean | Kind::Integer))
        };
        if !target.is_some_and(is_scalar) || expression.starts_with(".metadata") {
            let why = "must name a string, boolean or integer of the schema, outside of metadata";
            errors.push(FieldError::invalid(at.field("jsonPath"), &json!(expression), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::registry::crd::tests::manifest;
    use kubeproof_apimachinery::schema::CauseReason::{self, *};

    fn mistakes(vary: fn(&mut Value)) -> Vec<(String, CauseReason)> {
        let mut definition = manifest();
        vary(&mut definition);
        crate::registry::crd::complete(&mut definition);
        validate(&definition).into_iter().map(|error| (error.field, error.reason)).collect()
    }

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(
        |d: &mut Value| d["metadata"]["name"] = json!("other.example.com"),
        &[("metadata.name", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("x.k8s.io");
            d["metadata"]["name"] = json!("widgets.x.k8s.io");
        },
        &[("metadata.annotations[api-approved.kubernetes.io]", FieldValueRequired)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("x");
            d["metadata"]["name"] = json!("widgets.x");
        },
        &[("spec.group", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["names"]["shortNames"] = json!(["ok", "No_"]),
        &[("spec.names.shortNames[1]", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["names"]["listKind"] = json!("Widget"),
        &[("spec.names.listKind", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["versions"][0]["storage"] = json!(false),
        &[("spec.versions", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            let version = d["spec"]["versions"][0].clone();
            d["spec"]["versions"] = json!([version, version]);
        },
        &[("spec.versions[1].name", FieldValueDuplicate), ("spec.versions", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["preserveUnknownFields"] = json!(true),
        &[("spec.preserveUnknownFields", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["conversion"] = json!({"strategy": "Webhook"}),
        &[
            ("spec.conversion.webhookClientConfig", FieldValueRequired),
            ("spec.conversion.conversionReviewVersions", FieldValueRequired),
        ]
    )]
    #[case(|d: &mut Value| d["spec"]["versions"][0]["schema"] = Value::Null,
           &[("spec.versions[0].schema.openAPIV3Schema", FieldValueRequired)])]
    #[case(
        |d: &mut Value| {
            let scale = &mut d["spec"]["versions"][0]["subresources"]["scale"];
            scale["specReplicasPath"] = json!("spec.replicas");
        },
        &[("spec.versions[0].subresources.scale.specReplicasPath", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            let columns = json!([{"name": "A", "type": "text", "jsonPath": "a"}]);
            d["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
        },
        &[
            ("spec.versions[0].additionalPrinterColumns[0].type", FieldValueNotSupported),
            ("spec.versions[0].additionalPrinterColumns[0].jsonPath", FieldValueInvalid),
        ]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec"}]);
        },
        &[("spec.versions[0].selectableFields[0].jsonPath", FieldValueInvalid)]
    )]
    fn mistakes_name_their_field(
        #[case] vary: fn(&mut Value),
        #[case] expected: &[(&str, CauseReason)],
    ) {
        let expected: Vec<_> =
            expected.iter().map(|(field, reason)| ((*field).to_owned(), *reason)).collect();
        assert_eq!(mistakes(vary), expected);
    }

    #[rstest]
    #[case(|d: &mut Value| d["spec"]["scope"] = json!("Cluster"), &["spec.scope"])]
    #[case(|d: &mut Value| d["spec"]["group"] = json!("other.example.com"), &["spec.group"])]
    #[case(
        |d: &mut Value| d["spec"]["versions"][0]["name"] = json!("v2"),
        &["status.storedVersions[0]"]
    )]
    #[case(|d: &mut Value| d["spec"]["names"]["shortNames"] = json!(["wd"]), &[])]
    fn what_clients_rely_on_stays(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let mut old = manifest();
        old["status"] = json!({"storedVersions": ["v1"]});
        let mut new = old.clone();
        vary(&mut new);
        let errors = validate_update(&new, &old);
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }
}
