//! The objects that a run would create, by name, as far as that can be said before it runs.

use kubeproof_cases::case::{Body, Request};
use serde_json::json;

use super::{Home, Plan, PlannedRun, survey};
use crate::run::{RunPod, base_values};

/// An object that a run would create.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PlannedObject {
    /// The path it is posted to.
    pub collection: String,
    /// Its name. `*` stands for what only the run knows.
    pub name: String,
    /// The case, on its subject; empty for what the run itself needs.
    pub case: String,
}

impl Plan {
    /// What the run would create, and remove in the end.
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
            let pods = format!("/api/v1/namespaces/{}/pods", self.home.name());
            objects.push(of_run(&pods, &self.pod.name));
        }
        for install in &self.installs {
            let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            objects.push(of_run(collection, install.definition()));
        }
        for run in self.runs.iter().filter(|run| run.skip.is_none()) {
            for request in survey::requests(&run.case.steps) {
                objects.extend(object_of(run, request, (&self.home, &self.run, &self.pod)));
            }
        }
        objects.dedup();
        objects
    }
}

fn object_of(
    run: &PlannedRun,
    request: &Request,
    (home, run_id, pod): (&Home, &str, &RunPod),
) -> Option<PlannedObject> {
    let (Some(Body::Object(body) | Body::Json(body)), "POST") = (&request.body, request.method.as_str())
    else {
        return None;
    };
    let mut values = base_values(run, home.name(), run_id, pod);
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
    let case = if subject.is_empty() { run.case.id.clone() } else { format!("{}@{subject}", run.case.id) };
    Some(PlannedObject { collection: path.split('?').next()?.to_owned(), name, case })
}
