//! The pod that cases of a run share. Cases must not change it.

use serde_json::{Value, json};

/// The image without `--pod-image`. The bundled runtime accepts any name and has the commands of
/// the suite.
pub(crate) const SCRIPTED_IMAGE: &str = "kubeproof.dev/scripted";

/// Serves the ports with the tools of a busybox. Builds of `nc` listen repeatedly with either `-lk`
/// or `-ll`.
const SERVE: &str = "{ nc -lk -p 7 -e cat || nc -ll -p 7 -e cat; } 2>/dev/null & mkdir -p \
                     /tmp/www; echo hello > /tmp/www/index.html; httpd -f -p 8080 -h /tmp/www & ";

const CONTAINER: &str = "main";

#[derive(Clone, Debug)]
pub(crate) struct RunPod {
    pub(crate) name: String,
    pub(crate) image: String,
}

impl RunPod {
    pub(crate) fn new(run: &str, image: Option<&str>) -> Self {
        Self { name: format!("kp-{run}-pod"), image: image.unwrap_or(SCRIPTED_IMAGE).to_owned() }
    }

    /// Returns the variables `pod`, `pod.path` and so on.
    pub(crate) fn variables(&self, namespace: &str) -> [(&'static str, Value); 4] {
        [
            ("pod", json!(self.name)),
            ("pod.path", json!(format!("/api/v1/namespaces/{namespace}/pods/{}", self.name))),
            ("pod.container", json!(CONTAINER)),
            ("pod.image", json!(self.image)),
        ]
    }

    /// The main process prints a line and then copies its input, so cases have a log and a process
    /// to attach to.
    ///
    /// The bundled runtime serves the ports itself. A real image serves them by a script, with a
    /// readiness probe.
    pub(crate) fn manifest(&self) -> Value {
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
                    "ports": [
                        {"name": "echo", "containerPort": 7},
                        {"name": "http", "containerPort": 8080},
                    ],
                }],
            },
        });
        if !scripted {
            manifest["spec"]["containers"][0]["readinessProbe"] =
                json!({"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1});
        }
        manifest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_image_serves_the_ports_itself_and_reports_when_it_does() {
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
