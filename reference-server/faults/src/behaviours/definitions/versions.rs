//! Versions of custom resource definitions that declare more than the server does, and the status.

use serde_json::Value;

use super::edits::{definitions, remove};
use crate::behaviours::Fault;
use crate::middleware::{Middleware, objects, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DefaultsOfOneVersion => definitions(|crd| {
            let schema = crd.pointer("/spec/versions/0/schema").cloned();
            for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
                version["schema"] = schema.clone().unwrap_or_default();
            }
        }),
        Fault::SelectableFieldsOfTheStoredVersion => other_versions(|version| {
            remove(version, "selectableFields");
            // Versions with one schema must have the same selectable fields.
            version["schema"]["openAPIV3Schema"]["description"] = "no selectable fields".into();
        }),
        Fault::ColumnsOfTheStoredVersion => other_versions(|version| {
            remove(version, "additionalPrinterColumns");
        }),
        Fault::ScaleOfTheStoredVersion => other_versions(|version| {
            if version["subresources"].is_object() {
                remove(&mut version["subresources"], "scale");
            }
        }),
        Fault::ListsWithoutDeprecationWarning => responses(|request, response| {
            if request.verb() == "list" {
                response.headers.remove(http::header::WARNING);
            }
        }),
        Fault::StoredVersionsDropped => objects(|_, object| {
            let versions = object["spec"]["versions"].as_array().into_iter().flatten();
            let stored = versions.filter(|version| version["storage"] == true);
            let stored: Vec<Value> = stored.map(|version| version["name"].clone()).collect();
            if object["status"].get("storedVersions").is_some() {
                object["status"]["storedVersions"] = stored.into();
            }
        }),
        Fault::DefinitionsWithoutAcceptedNames => objects(|_, object| {
            if object["kind"] == "CustomResourceDefinition" && object["status"].is_object() {
                remove(&mut object["status"], "acceptedNames");
            }
        }),
        Fault::CustomColumnsIgnored => definitions(|crd| {
            for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
                remove(version, "additionalPrinterColumns");
            }
        }),
        _ => return None,
    })
}

/// Edits the versions of each definition that are not stored.
fn other_versions(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    definitions(move |crd| {
        let versions = crd["spec"]["versions"].as_array_mut().into_iter().flatten();
        versions.filter(|version| version["storage"] != true).for_each(edit);
    })
}
