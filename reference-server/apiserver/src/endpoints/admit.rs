//! Runs admission for a request.

use std::borrow::Cow;

use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;
use serde_json::{Map, Value, json};

use super::Call;
use super::lifecycle::DeleteOptions;
use crate::admission::{Attributes, Kind, Operation, Reinvocation};

/// The admission of one request.
pub(super) struct Admission<'c> {
    call: &'c Call,
    operation: Operation,
    is_patch: bool,
    info: Cow<'c, ResourceInfo>,
    kind: Kind,
    options: Value,
    dry_run: bool,
}

impl<'c> Admission<'c> {
    /// Returns the admission of a create, which may come from PUT or PATCH, too.
    pub(super) fn create(call: &'c Call, dry_run: bool) -> Self {
        Self::new(call, Operation::Create, write_options(call, "CreateOptions", dry_run), dry_run)
    }

    /// Returns the admission of an update.
    pub(super) fn update(call: &'c Call, dry_run: bool) -> Self {
        Self::new(call, Operation::Update, write_options(call, "UpdateOptions", dry_run), dry_run)
    }

    /// Returns the admission of an update by PATCH.
    pub(super) fn patch(call: &'c Call, dry_run: bool) -> Self {
        Self { is_patch: true, ..Self::update(call, dry_run) }
    }

    /// Returns the admission of a deletion.
    pub(super) fn delete(call: &'c Call, options: &DeleteOptions) -> Self {
        Self::new(call, Operation::Delete, options.to_value(), options.dry_run)
    }

    /// Returns the admission of a connection.
    pub(super) fn connect(call: &'c Call) -> Self {
        Self::new(call, Operation::Connect, Value::Null, false)
    }

    fn new(call: &'c Call, operation: Operation, options: Value, dry_run: bool) -> Self {
        let (api_version, kind) = call.body_type();
        let kind = Kind { api_version, kind: kind.to_owned() };
        let info = Cow::Borrowed(&call.info);
        Self { call, operation, is_patch: false, info, kind, options, dry_run }
    }

    /// Returns whether a plugin may change the object.
    pub(super) fn mutates(&self, old: Option<&Value>) -> bool {
        let reinvocation = Reinvocation::default();
        self.call.api.admission.mutates(&self.attributes(old, &reinvocation))
    }

    /// Runs the mutating phase.
    pub(super) async fn mutate(
        &self,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let reinvocation = Reinvocation::default();
        self.call.api.admission.mutate(self.attributes(old, &reinvocation), object).await
    }

    /// Runs the validating phase.
    pub(super) async fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let reinvocation = Reinvocation::default();
        self.call.api.admission.validate(self.attributes(old, &reinvocation), object).await
    }

    /// Runs both phases, one after the other.
    pub(super) async fn admit(
        &self,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        self.mutate(object, old).await?;
        self.validate(object, old).await
    }

    fn attributes<'a>(
        &'a self,
        old: Option<&'a Value>,
        reinvocation: &'a Reinvocation,
    ) -> Attributes<'a> {
        let api = &self.call.api;
        Attributes {
            operation: self.operation,
            is_patch: self.is_patch,
            ty: &self.call.ty,
            info: &self.info,
            kind: &self.kind,
            old,
            options: &self.options,
            dry_run: self.dry_run,
            user: &self.call.user,
            rights: api.rights(),
            context: api.context(),
            kubelet: api.kubelet.get(),
            metrics: &api.metrics.admission,
            record: &self.call.record,
            reinvocation,
        }
    }
}

/// Runs both phases for a connection. The object is the options in the query.
pub(super) async fn connect(call: &Call) -> Result<(), ApiError> {
    let admission = Admission::connect(call);
    let mut options = connect_options(call);
    options["kind"] = admission.kind.kind.as_str().into();
    options["apiVersion"] = admission.kind.api_version.as_str().into();
    admission.admit(&mut options, None).await
}

fn connect_options(call: &Call) -> Value {
    let query = &call.query;
    let mut options = Map::new();
    match call.info.subresource.as_str() {
        "proxy" => {
            let (_, path) = super::proxy::split(&call.uri);
            if !path.is_empty() {
                options.insert("path".to_owned(), path.into());
            }
        }
        "portforward" => {
            let ports = query.all("ports").flat_map(|ports| ports.split(','));
            let ports: Vec<i64> = ports.filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                options.insert("ports".to_owned(), json!(ports));
            }
        }
        _ => {
            let flags = ["stdin", "stdout", "stderr", "tty"].into_iter();
            options.extend(
                flags.filter(|flag| query.flag(flag)).map(|flag| (flag.to_owned(), true.into())),
            );
            if let Some(container) = query.text("container") {
                options.insert("container".to_owned(), container.into());
            }
            let command: Vec<&str> = query.all("command").collect();
            if !command.is_empty() {
                options.insert("command".to_owned(), json!(command));
            }
        }
    }
    Value::Object(options)
}

fn write_options(call: &Call, kind: &str, dry_run: bool) -> Value {
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    if dry_run {
        options["dryRun"] = json!(["All"]);
    }
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = call.query.text(field) {
            options[field] = value.into();
        }
    }
    options
}
