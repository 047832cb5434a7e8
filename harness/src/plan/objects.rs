//! Lists the objects that a run would create, as far as the plan determines them.

use kubeproof_cases::case::{Body, Request};
use serde_json::json;

use super::pod::RunPod;
use super::variables::base_values;
use super::{Plan, PlannedRun, RunNamespace, case_analysis};

/// An object that a run would create.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PlannedObject {
    /// The collection that it is posted to.
    pub collection: String,
    /// Its name, with `*` for parts that only the run determines.
    pub name: String,
    /// The case with its subject; empty for objects of the run itself.
    pub case: String,
}

impl Plan {
    /// Returns the objects that the run would create and finally remove.
    pub fn objects(&self) -> Vec<PlannedObject> {
        let of_run = |collection: &str, name: &str| PlannedObject {
            collection: collection.to_owned(),
            name: name.to_owned(),
            case: String::new(),
        };
        let mut objects = Vec::new();
        if let Some(namespace) = self.makes_namespace() {
            objects.push(of_run("/api/v1/namespaces", namespace));
        }
        if self.needs_pod() {
            let pods = format!("/api/v1/namespaces/{}/pods", self.namespace.name());
            objects.push(of_run(&pods, &self.pod.name));
        }
        for install in &self.installs {
            let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            objects.push(of_run(collection, install.definition()));
        }
        for run in self.runs.iter().filter(|run| run.skip.is_none()) {
            for request in case_analysis::requests(&run.case.steps) {
                objects.extend(object_of(run, request, (&self.namespace, &self.run, &self.pod)));
            }
        }
        objects.dedup();
        objects
    }
}

fn object_of(
    run: &PlannedRun,
    request: &Request,
    (namespace, run_id, pod): (&RunNamespace, &str, &RunPod),
) -> Option<PlannedObject> {
    let (Some(Body::Object(body) | Body::Json(body)), "POST") =
        (&request.body, request.method.as_str())
    else {
        return None;
    };
    let mut values = base_values(run, namespace.name(), run_id, pod);
    values.set("i", json!("*"));
    let path = values.render(&request.path).ok()?;
    let dry_run = path.contains("dryRun=") || request.query.iter().any(|(key, _)| key == "dryRun");
    if dry_run || request.identity != kubeproof_cases::case::Identity::Admin {
        return None;
    }
    let body = values.render_json(body).unwrap_or_default();
    let metadata = &body["metadata"];
    let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => "*".to_owned(),
    };
    let subject = run.subject_name();
    let case =
        if subject.is_empty() { run.case.id.clone() } else { format!("{}@{subject}", run.case.id) };
    Some(PlannedObject { collection: path.split('?').next()?.to_owned(), name, case })
}
