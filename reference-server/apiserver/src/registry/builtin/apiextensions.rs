//! The group `apiextensions.k8s.io/v1`: the definitions of custom resources.

use std::sync::Arc;

use serde_json::json;

use super::{BuiltinType, Hooks, restore};
use crate::registry::crd;
use crate::registry::crd::strategy::DefinitionStrategy;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    anything, boolean, bytes, choice, definitions, int32, int64, list, object, string, time,
};
use kubeproof_apimachinery::schema::meta::with_type_meta;
use kubeproof_apimachinery::table::column::{Cell, column};

definitions! {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

    spec CustomResourceDefinitionSpec {
        conversion: conversion(), need group: string(), need names: names(),
        preserveUnknownFields: boolean(), need scope: choice(&["Cluster", "Namespaced"]),
        need versions: list(version()),
    }
    names CustomResourceDefinitionNames {
        categories: list(string()), need kind: string(), listKind: string(), need plural: string(),
        shortNames: list(string()), singular: string(),
    }
    conversion CustomResourceConversion {
        need strategy: choice(&["None", "Webhook"]), webhook: webhook_conversion(),
    }
    webhook_conversion WebhookConversion {
        clientConfig: webhook_client_config(), conversionReviewVersions: list(string()),
    }
    webhook_client_config WebhookClientConfig {
        caBundle: bytes(), service: service_reference(), url: string(),
    }
    service_reference ServiceReference {
        need name: string(), need namespace: string(), path: string(), port: int32().or(443),
    }
    version CustomResourceDefinitionVersion {
        additionalPrinterColumns: list(printer_column()), deprecated: boolean(),
        deprecationWarning: string(), need name: string(), schema: validation(),
        selectableFields: list(selectable_field()), always served: boolean(),
        always storage: boolean(),
        subresources: subresources(),
    }
    printer_column CustomResourceColumnDefinition {
        description: string(), format: string(), need jsonPath: string(), need name: string(),
        priority: int32(), need type: string(),
    }
    validation CustomResourceValidation { openAPIV3Schema: json_schema_props() }
    selectable_field SelectableField { need jsonPath: string() }
    subresources CustomResourceSubresources { scale: scale(), status: status_subresource() }
    scale CustomResourceSubresourceScale {
        labelSelectorPath: string(), need specReplicasPath: string(),
        need statusReplicasPath: string(),
    }
    status CustomResourceDefinitionStatus {
        acceptedNames: names_accepted(), conditions: list(crd_condition()).keyed(&["type"]),
        observedGeneration: int64(), storedVersions: list(string()),
    }
    crd_condition CustomResourceDefinitionCondition {
        lastTransitionTime: time(), message: string(), observedGeneration: int64(),
        reason: string(),
        always status: string(), always type: string(),
    }
}

pub(super) fn types() -> Vec<BuiltinType> {
    let schema = with_type_meta(object(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    ))
    .field("spec", spec().or_empty())
    .field("status", status());
    vec![BuiltinType {
        namespaced: false,
        has_status: true,
        has_generation: true,
        allows_unconditional_update: false,
        columns: vec![column("Created At", "date", Cell::Pointer("/metadata/creationTimestamp"))],
        strategy: || Arc::new(DefinitionStrategy),
        hooks: Hooks {
            default: crd::complete,
            validate: crd::validate,
            validate_update: crd::validate_update,
            prepare_create: |definition| {
                definition["status"] =
                    json!({"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []});
            },
            prepare_update: |new, old| restore(new, old, "status"),
            ..Hooks::NONE
        },
        ..BuiltinType::namespaced(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            Arc::new(schema),
        )
    }]
}

/// Returns the schema of a schema in the manifest. It is recursive, so [`crd::validate`] checks the
/// content.
fn json_schema_props() -> Schema {
    Schema {
        name: Some("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"),
        kind: Some(kubeproof_apimachinery::schema::Kind::Object),
        ..anything()
    }
}

/// Only the presence of the field matters.
fn status_subresource() -> Schema {
    object(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus",
    )
}

/// The names are empty before they are accepted.
fn names_accepted() -> Schema {
    let mut names = names();
    names.required.clear();
    for field in ["kind", "plural"] {
        names.properties.insert(field.to_owned(), Arc::new(string().written_when_empty()));
    }
    names
}
