//! The common schemas of operations: options, statuses, scales, list metadata.

use std::sync::{Arc, LazyLock};

use kubeproof_apimachinery::schema::build::{boolean, int32, int64, list, object, string};
use kubeproof_apimachinery::schema::{Schema, meta};

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// A schema, with its group, version and kind if it has one.
type Common = (Schema, Option<[&'static str; 3]>);

pub(super) fn schemas() -> &'static [Common] {
    static SCHEMAS: LazyLock<Vec<Common>> = LazyLock::new(|| {
        vec![
            (status(), Some(["", "v1", "Status"])),
            (delete_options(), Some(["", "v1", "DeleteOptions"])),
            (object(PATCH), None),
            (scale(), Some(["autoscaling", "v1", "Scale"])),
        ]
    });
    &SCHEMAS
}

/// The `metadata` of a list.
fn list_meta() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let schema = object(LIST_META)
            .field("selfLink", string())
            .field("resourceVersion", string())
            .field("continue", string())
            .field("remainingItemCount", int64());
        Arc::new(schema)
    });
    Arc::clone(&SCHEMA)
}

fn status() -> Schema {
    let cause = object("io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause")
        .field("reason", string())
        .field("message", string())
        .field("field", string());
    let details = object("io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails")
        .field("name", string())
        .field("group", string())
        .field("kind", string())
        .field("uid", string())
        .field("causes", list(cause))
        .field("retryAfterSeconds", int32());
    object(STATUS)
        .field("apiVersion", string())
        .field("kind", string())
        .field("metadata", list_meta())
        .field("status", string())
        .field("message", string())
        .field("reason", string())
        .field("details", details)
        .field("code", int32())
}

fn delete_options() -> Schema {
    let preconditions = object("io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions")
        .field("uid", string())
        .field("resourceVersion", string());
    object(DELETE_OPTIONS)
        .field("apiVersion", string())
        .field("kind", string())
        .field("gracePeriodSeconds", int64())
        .field("preconditions", preconditions)
        .field("orphanDependents", boolean())
        .field("propagationPolicy", string())
        .field("dryRun", list(string()))
}

fn scale() -> Schema {
    let spec = object("io.k8s.api.autoscaling.v1.ScaleSpec").field("replicas", int32());
    let status = object("io.k8s.api.autoscaling.v1.ScaleStatus")
        .need("replicas", int32())
        .field("selector", string());
    meta::with_type_meta(object(SCALE)).field("spec", spec).field("status", status)
}
