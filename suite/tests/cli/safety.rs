//! A run changes only its own objects.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::program::{complete_run, kubeproof};
use crate::recorder::{RecordedRequest, Recorder};
use crate::server::{TOKEN, TestServer, USER_TOKEN};

/// Creates objects in several namespaces and at cluster scope. Some names start like those of a
/// run. The pods use an unknown scheduler, so that no controller changes them.
pub(crate) fn create_foreign_objects(server: &TestServer) {
    let of = |kind: &str, name: &str, more: Value| {
        let version = match kind {
            "Deployment" => "apps/v1",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            "Thing" => "things.example.com/v1",
            _ => "v1",
        };
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        for (member, value) in more.as_object().expect("members") {
            object[member] = value.clone();
        }
        object
    };
    let container = json!({"name": "main", "image": "registry.example.com/app"});
    let pod = json!({"spec": {"schedulerName": "example.com/none", "containers": [container]}});
    let labels = json!({"app": "blue"});
    let deployment = json!({"spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
    }});
    let definition = json!({"spec": {
        "group": "things.example.com", "scope": "Cluster",
        "names": {
            "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
        },
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }}}],
    }});
    server.create("/api/v1/namespaces", &of("Namespace", "production", json!({})));
    server.create("/api/v1/namespaces", &of("Namespace", "kp-team-blue", json!({})));
    server.create("/api/v1/nodes", &of("Node", "worker-1", json!({})));
    server.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &of("CustomResourceDefinition", "things.things.example.com", definition),
    );
    server.create(
        "/apis/things.example.com/v1/things",
        &of("Thing", "kp-thing", json!({"spec": {"a": 1}})),
    );
    for namespace in ["production", "default", "kp-team-blue"] {
        let home = format!("/api/v1/namespaces/{namespace}");
        let data = json!({"data": {"a": "b"}});
        for name in ["kp-settings-1", "settings"] {
            server.create(&format!("{home}/configmaps"), &of("ConfigMap", name, data.clone()));
        }
        let secret = json!({"stringData": {"password": SECRET}});
        server.create(&format!("{home}/secrets"), &of("Secret", "login", secret));
        server.create(&format!("{home}/pods"), &of("Pod", "kp-waiting-1", pod.clone()));
        let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        server.create(&deployments, &of("Deployment", "blue", deployment.clone()));
    }
}

/// The data of the created Secrets.
pub(crate) const SECRET: &str = "the-password-of-production";

/// Returns the JSON of all objects by collection.
pub(crate) fn snapshot(server: &TestServer) -> BTreeMap<String, String> {
    let groups = server.get("/apis");
    let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
        group["versions"].as_array().expect("versions").iter().map(|version| {
            format!("/apis/{}", version["groupVersion"].as_str().expect("a group version"))
        })
    });
    let roots: Vec<String> = versions.chain(["/api/v1".to_owned()]).collect();
    let collections = roots.iter().flat_map(|root| {
        let list = server.get(root);
        let resources = list["resources"].as_array().expect("resources").clone();
        let listed = resources.into_iter().filter(|resource| {
            resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")))
        });
        let paths =
            listed.map(|resource| format!("{root}/{}", resource["name"].as_str().expect("a name")));
        paths.collect::<Vec<_>>()
    });
    collections.map(|path| (path.clone(), server.get(&path)["items"].to_string())).collect()
}

/// Asserts that all objects are unchanged. A failure prints the changed ones.
#[track_caller]
pub(crate) fn assert_unchanged(server: &TestServer, before: &BTreeMap<String, String>) {
    let after = snapshot(server);
    let objects = |all: &BTreeMap<String, String>| {
        all.iter()
            .flat_map(|(path, items)| {
                let items: Vec<Value> = serde_json::from_str(items).expect("a list");
                items.into_iter().map(|item| format!("{path}: {item}")).collect::<Vec<_>>()
            })
            .collect::<Vec<String>>()
    };
    let (was, is) = (objects(before), objects(&after));
    let only = |these: &[String], those: &[String]| {
        these.iter().filter(|one| !those.contains(one)).cloned().collect::<Vec<_>>()
    };
    assert_eq!((only(&was, &is), only(&is, &was)), (vec![], vec![]), "removed, and added");
    assert_eq!(&after, before);
}

/// Returns the id of the run that sent these requests, from the name of its namespace.
fn run_of(writes: &[RecordedRequest]) -> String {
    let made = writes
        .iter()
        .filter(|write| write.method == "POST" && write.path() == "/api/v1/namespaces");
    let own = made
        .map(RecordedRequest::object_name)
        .find(|name| name.starts_with("kubeproof-") && !name.ends_with("-probe"));
    own.expect("the run created its namespace").trim_start_matches("kubeproof-").to_owned()
}

/// Returns whether a request writes an object of the run, or only reviews permissions.
fn writes_own_object(write: &RecordedRequest, run: &str) -> bool {
    let own = |name: &str| {
        let name = name.trim_start_matches('-');
        ["kp-", "kubeproof-"]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(run)))
    };
    let own_group = |group: &str| {
        group.strip_suffix(".kubeproof.dev").is_some_and(|first| {
            first == run
                || own(first)
                || first.strip_prefix("probe-").is_some_and(|rest| rest == run)
        })
    };
    let dry = write.target.contains("dryRun=All");
    let path = write.path().trim_start_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    let (group, rest) = match segments.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return false,
    };
    if write.method == "POST" && rest.last().is_some_and(|resource| resource.ends_with("reviews")) {
        return true;
    }
    if own_group(group) {
        return true;
    }
    let made = write.object_name();
    match rest {
        ["namespaces", namespace, _, ..] if own(namespace) => true,
        // The run checks its permissions with dry runs in an existing namespace.
        ["namespaces", "default", _] => dry && write.method == "POST" && own(&made),
        ["namespaces", "default", _, name] => dry && write.method == "PATCH" && own(name),
        ["customresourcedefinitions" | "apiservices"]
            if write.method == "POST" && !made.is_empty() =>
        {
            made.split_once('.').is_some_and(|(_, group)| own_group(group))
        }
        ["customresourcedefinitions" | "apiservices", name, ..] => {
            own(name) || name.split_once('.').is_some_and(|(_, group)| own_group(group))
        }
        // A case sends an empty body, which the server must reject.
        [_] => write.method == "POST" && (own(&made) || (dry && write.body == b"{}")),
        [_, name, ..] => own(name),
        [] => false,
    }
}

/// Returns the writes that are not allowed.
fn forbidden_writes<'w>(
    writes: &'w [RecordedRequest],
    is_allowed: impl Fn(&RecordedRequest) -> bool,
) -> Vec<String> {
    let shown = |write: &'w RecordedRequest| {
        format!("{} {} {}", write.method, write.target, String::from_utf8_lossy(&write.body))
    };
    writes.iter().filter(|write| !is_allowed(write)).map(shown).collect()
}

#[test]
fn a_complete_run_writes_only_its_own_objects() {
    let server = TestServer::start(&[]);
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let recorder = Recorder::start(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    let output = complete_run(&[&target[..], &["--case-timeout", "1m"]].concat()).with(0);
    let writes = recorder.writes();
    assert!(writes.len() > 1000, "{} writes: {}", writes.len(), output.stdout);
    let run = run_of(&writes);
    assert_eq!(forbidden_writes(&writes, |write| writes_own_object(write, &run)), [""; 0]);
    assert_unchanged(&server, &before);
}

#[test]
fn a_registered_node_binds_only_the_pods_of_its_run() {
    let server = TestServer::start(&["--without", "node"]);
    create_foreign_objects(&server);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kp-waiting-2"},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/app"}]},
    });
    server.create("/api/v1/namespaces/production/pods", &pod);
    let before = snapshot(&server);
    let recorder = Recorder::start(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--only", "exec/stdout-alone"];
    kubeproof(&[&["run", "--with-node"], &target[..]].concat()).with(0);
    let writes = recorder.writes();
    let run = run_of(&writes);
    assert!(writes.iter().any(|write| write.path().ends_with("-pod/binding")), "{writes:?}");
    assert!(writes.iter().any(|write| write.path() == format!("/api/v1/nodes/kp-{run}-node")));
    assert_eq!(forbidden_writes(&writes, |write| writes_own_object(write, &run)), [""; 0]);
    assert_unchanged(&server, &before);
}

/// Two nodes would compete for the pods.
#[test]
fn a_target_with_a_node_gets_no_other_one() {
    let server = TestServer::start(&[]);
    let recorder = Recorder::start(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--only", "exec/stdout-alone"];
    let run = kubeproof(&[&["run", "--with-node"], &target[..]].concat()).with(0);
    assert!(run.stderr.contains("note: the target has the ready node kubeproof"), "{}", run.stderr);
    let writes = recorder.writes();
    assert!(writes.iter().any(|write| write.path().ends_with("/pods")), "{writes:?}");
    assert!(!writes.iter().any(|write| write.path().starts_with("/api/v1/nodes")), "{writes:?}");
}

/// The server ignores selectors and stores dry runs, which makes mistakes of the run visible.
#[test]
fn a_run_in_an_existing_namespace_writes_nothing_outside() {
    let faults =
        ["delete-collection-ignores-selector", "label-selector-ignored", "dry-run-persists"];
    let server = TestServer::start(&[&["--without", "node", "--fault"], &faults[..]].concat());
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let recorder = Recorder::start(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    let output = complete_run(
        &[&["--namespace", "production", "--case-timeout", "5s"], &target[..]].concat(),
    )
    .with(1);
    let inside = |write: &RecordedRequest| {
        let segments: Vec<&str> = write.path().split('/').collect();
        let is_review =
            write.method == "POST" && segments.last().is_some_and(|last| last.ends_with("reviews"));
        is_review || (segments.contains(&"production") && segments.len() > 5)
    };
    let writes = recorder.writes();
    assert!(writes.len() > 300, "{} writes: {}", writes.len(), output.stdout);
    assert_eq!(forbidden_writes(&writes, inside), [""; 0]);
    assert_unchanged(&server, &before);
}

#[test]
fn a_read_only_run_sends_only_reads_and_passes() {
    let server = TestServer::start(&[]);
    let recorder = Recorder::start(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    for more in [&[][..], &["--namespace", "default"], &["--dry-run"]] {
        let output = kubeproof(&[&["run", "--read-only"], &target[..], more].concat()).with(0);
        assert!(
            more.contains(&"--dry-run") || output.stdout.contains(" pass"),
            "{}",
            output.stdout
        );
    }
    kubeproof(&[&["run", "--dry-run"], &target[..]].concat()).with(0);
    assert_eq!(forbidden_writes(&recorder.writes(), |_| false), [""; 0]);
    assert!(recorder.requests().len() > 100);
}

/// At each request, the rate since the start is within the limit. A slow machine cannot break this
/// test.
#[test]
fn cases_streams_and_the_node_share_the_rate_limit() {
    const RATE: f64 = 150.0;
    let server = TestServer::start(&["--without", "node"]);
    let recorder = Recorder::start(&server.url);
    let started = Instant::now();
    let rate = RATE.to_string();
    let run = ["run", "--with-node", "--max-rps", &rate, "--case-timeout", "1m", "--only"];
    let cases = ["exec/exit-*", "watch/*@configmaps.v1", "create/*"];
    let target = ["--server", &recorder.url, "--token", TOKEN];
    kubeproof(&[&run[..], &cases, &target].concat()).with(0);
    let seen = recorder.requests();
    assert!(seen.len() > 300, "{}", seen.len());
    for (before, request) in seen.iter().enumerate() {
        let allowed = RATE * (request.at - started).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let sent = before as f64;
        assert!(
            sent <= allowed,
            "{sent} requests before {} {}, expected at most {allowed}",
            request.method,
            request.target
        );
    }
}
