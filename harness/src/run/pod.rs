//! The pod of a run: made once for all cases that need a running pod, shared among those that do not change it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::setup::Obstacle;
use crate::capability::Asker;
use crate::cleanup::Tracker;
use crate::event::Verdict;
use crate::transport::Client;

/// What runs where no image is named: the bundled runtime takes any name, and knows what the suite asks for.
pub(crate) const SCRIPTED_IMAGE: &str = "kubeproof.dev/scripted";

/// Serves the ports where nothing else does, with what a busybox has. Its `nc` goes on listening with `-lk` or with `-ll`,
/// as it was built.
const SERVE: &str = "{ nc -lk -p 7 -e cat || nc -ll -p 7 -e cat; } 2>/dev/null & mkdir -p /tmp/www; echo hello > /tmp/www/index.html; \
                     httpd -f -p 8080 -h /tmp/www & ";

/// The only container.
const CONTAINER: &str = "main";

/// The shortest and the longest pause between two looks at the pod.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// The pod of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunPod {
    pub(crate) name: String,
    pub(crate) image: String,
}

impl RunPod {
    pub(crate) fn new(run: &str, image: Option<&str>) -> Self {
        Self { name: format!("kp-{run}-pod"), image: image.unwrap_or(SCRIPTED_IMAGE).to_owned() }
    }

    /// `pod`, `pod.path`, ... as cases read them.
    pub(crate) fn variables(&self, namespace: &str) -> [(&'static str, Value); 4] {
        [
            ("pod", json!(self.name)),
            ("pod.path", json!(format!("/api/v1/namespaces/{namespace}/pods/{}", self.name))),
            ("pod.container", json!(CONTAINER)),
            ("pod.image", json!(self.image)),
        ]
    }

    /// The main process writes a line and then gives back what it reads, so that there is a log, and something to
    /// attach to. The ports are served by the bundled runtime itself; a real image has to serve them, and is ready once
    /// it does.
    fn manifest(&self) -> Value {
        let scripted = self.image == SCRIPTED_IMAGE;
        let serve = if scripted { "" } else { SERVE };
        let mut manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "labels": {"app": self.name}},
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "restartPolicy": "Never",
                "containers": [{
                    "name": CONTAINER, "image": self.image, "stdin": true,
                    "command": ["sh", "-c", format!("{serve}echo started; cat")],
                    "ports": [{"name": "echo", "containerPort": 7}, {"name": "http", "containerPort": 8080}],
                }],
            },
        });
        if !scripted {
            manifest["spec"]["containers"][0]["readinessProbe"] =
                json!({"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1});
        }
        manifest
    }

    /// Creates the pod, and waits until it runs and is ready.
    pub(super) async fn start(
        &self,
        client: &Client,
        namespace: &str,
        tracker: &Tracker,
        deadline: Instant,
    ) -> Option<Obstacle> {
        // Cases run meanwhile, as with resources.
        let client = &client.apart();
        let asker = Asker { client, deadline };
        let collection = format!("/api/v1/namespaces/{namespace}/pods");
        let request =
            crate::capability::outgoing("POST", &collection, "application/json", Some(&self.manifest()));
        let intent = tracker.intend(&request);
        let created = client.send(request, deadline).await;
        tracker.settle(&intent, &created);
        if created.status() != 201 {
            return Some(Obstacle::new(
                "pod-created",
                created,
                "the pod of the run must be created with 201",
            ));
        }
        let mut pause = PAUSES.0;
        loop {
            let seen = asker.get(&format!("{collection}/{}", self.name), "application/json").await;
            let status = seen.json().map(|pod| pod["status"].clone()).unwrap_or_default();
            let running = &status["containerStatuses"][0]["state"]["running"];
            let ready = status["conditions"].as_array().is_some_and(|conditions| {
                conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            if status["phase"] == "Running" && running.is_object() && ready {
                return None;
            }
            pause = pause.mul_f64(1.5).min(PAUSES.1);
            if Instant::now() + pause > deadline
                || matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"))
            {
                let expected = "the pod of the run must run and get ready (is its image there, and has it what a busybox \
                                has? --pod-image names another)";
                return Some(Obstacle::new("pod-runs", seen, expected).at(Verdict::Error));
            }
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_image_serves_the_ports_itself_and_says_when_it_does() {
        let image = "registry.example/busybox:1";
        let manifest = RunPod::new("r", Some(image)).manifest();
        let container = &manifest["spec"]["containers"][0];
        assert_eq!(container["image"], image);
        assert_eq!(container["readinessProbe"]["httpGet"]["port"], "http");
        let script = container["command"][2].as_str().unwrap();
        assert!(script.contains("nc -lk -p 7") && script.contains("httpd -f -p 8080"), "{script}");
        assert!(script.ends_with("& echo started; cat"), "{script}");
    }

    #[test]
    fn a_scripted_image_is_left_to_its_runtime() {
        let manifest = RunPod::new("r", None).manifest();
        let container = &manifest["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["sh", "-c", "echo started; cat"]));
        assert!(container["readinessProbe"].is_null());
    }
}
