//! A cluster in use keeps everything that is not the run's.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::kubeproof::{kubeproof, whole_run};
use crate::recorder::{Recorder, Seen};
use crate::served::{Served, TOKEN, USER_TOKEN};

/// Others' objects: of each kind of place, with names that begin like a run's. Pods among them wait for a scheduler that does not
/// come, so that nothing changes by itself.
pub(crate) fn populate(server: &Served) {
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
    let pod = json!({"spec": {"schedulerName": "example.com/none", "containers": [{"name": "main", "image": "registry.example.com/app"}]}});
    let labels = json!({"app": "blue"});
    let deployment = json!({"spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
    }});
    let definition = json!({"spec": {
        "group": "things.example.com", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
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
    server.create("/apis/things.example.com/v1/things", &of("Thing", "kp-thing", json!({"spec": {"a": 1}})));
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

/// What the others' Secrets hold.
pub(crate) const SECRET: &str = "the-password-of-production";

/// Everything that is there, byte for byte, by the collection that lists it.
pub(crate) fn snapshot(server: &Served) -> BTreeMap<String, String> {
    let groups = server.get("/apis");
    let versions =
        groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
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
        let paths = listed.map(|resource| format!("{root}/{}", resource["name"].as_str().expect("a name")));
        paths.collect::<Vec<_>>()
    });
    collections.map(|path| (path.clone(), server.get(&path)["items"].to_string())).collect()
}

/// Fails, with the names of what is missing, new, or changed.
#[track_caller]
pub(crate) fn assert_unchanged(server: &Served, before: &BTreeMap<String, String>) {
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
    assert_eq!((only(&was, &is), only(&is, &was)), (vec![], vec![]), "gone, and come");
    assert_eq!(&after, before);
}

/// Which run made these requests, by the namespace or the custom resources that it creates.
fn run_of(writes: &[Seen]) -> String {
    let made = writes.iter().filter(|write| write.method == "POST" && write.path() == "/api/v1/namespaces");
    let own = made.map(Seen::named).find(|name| name.starts_with("kubeproof-") && !name.ends_with("-probe"));
    own.expect("the run made its namespace").trim_start_matches("kubeproof-").to_owned()
}

/// Whether a request writes what is the run's alone, or asks a question.
fn keeps_to_its_own(write: &Seen, run: &str) -> bool {
    let own = |name: &str| {
        let name = name.trim_start_matches('-');
        ["kp-", "kubeproof-"]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(run)))
    };
    let own_group = |group: &str| {
        group.strip_suffix(".kubeproof.dev").is_some_and(|first| {
            first == run || own(first) || first.strip_prefix("probe-").is_some_and(|rest| rest == run)
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
    let made = write.named();
    match rest {
        ["namespaces", namespace, _, ..] if own(namespace) => true,
        // Whether it may, is asked beforehand, by dry runs in a namespace that is there.
        ["namespaces", "default", _] => dry && write.method == "POST" && own(&made),
        ["namespaces", "default", _, name] => dry && write.method == "PATCH" && own(name),
        ["customresourcedefinitions"] if write.method == "POST" && !made.is_empty() => {
            made.split_once('.').is_some_and(|(_, group)| own_group(group))
        }
        ["customresourcedefinitions", name, ..] => {
            own(name) || name.split_once('.').is_some_and(|(_, group)| own_group(group))
        }
        // Of no object at all: an empty body, for the refusal of it.
        [_] => write.method == "POST" && (own(&made) || (dry && write.body == b"{}")),
        [_, name, ..] => own(name),
        [] => false,
    }
}

/// Writes that others' objects could suffer from.
fn trespasses<'w>(writes: &'w [Seen], keeps: impl Fn(&Seen) -> bool) -> Vec<String> {
    let shown = |write: &'w Seen| {
        format!("{} {} {}", write.method, write.target, String::from_utf8_lossy(&write.body))
    };
    writes.iter().filter(|write| !keeps(write)).map(shown).collect()
}

#[test]
fn a_whole_run_writes_what_is_its_own_and_leaves_the_rest() {
    let server = Served::start(&[]);
    populate(&server);
    let before = snapshot(&server);
    let recorder = Recorder::before(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    let ended = whole_run(&[&target[..], &["--case-timeout", "1m"]].concat()).with(0);
    let writes = recorder.writes();
    assert!(writes.len() > 1000, "{} writes: {}", writes.len(), ended.stdout);
    let run = run_of(&writes);
    assert_eq!(trespasses(&writes, |write| keeps_to_its_own(write, &run)), [""; 0]);
    assert_unchanged(&server, &before);
}

/// The bundled server does not look for the node, so the streams that lead to it fail; what the node writes does not depend on that.
#[test]
fn a_node_that_is_brought_takes_the_pods_of_its_run_alone() {
    let server = Served::start(&["--without", "node"]);
    populate(&server);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kp-waiting-2"},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/app"}]},
    });
    server.create("/api/v1/namespaces/production/pods", &pod);
    let before = snapshot(&server);
    let recorder = Recorder::before(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--only", "exec/stdout-alone"];
    kubeproof(&[&["run", "--with-node"], &target[..]].concat()).with(1);
    let writes = recorder.writes();
    let run = run_of(&writes);
    assert!(writes.iter().any(|write| write.path().ends_with("-pod/binding")), "{writes:?}");
    assert!(writes.iter().any(|write| write.path() == format!("/api/v1/nodes/kp-{run}-node")));
    assert_eq!(trespasses(&writes, |write| keeps_to_its_own(write, &run)), [""; 0]);
    assert_unchanged(&server, &before);
}

/// On a server that is as wrong as can be: it overlooks selectors, and stores what was to be tried out.
#[test]
fn in_a_namespace_that_is_lent_nothing_else_is_written() {
    let wrong = ["delete-collection-ignores-selector", "label-selector-ignored", "dry-run-persists"];
    let server = Served::start(&[&["--without", "node", "--fault"], &wrong[..]].concat());
    populate(&server);
    let before = snapshot(&server);
    let recorder = Recorder::before(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    let ended =
        whole_run(&[&["--namespace", "production", "--case-timeout", "5s"], &target[..]].concat()).with(1);
    let inside = |write: &Seen| {
        let segments: Vec<&str> = write.path().split('/').collect();
        let is_review =
            write.method == "POST" && segments.last().is_some_and(|last| last.ends_with("reviews"));
        is_review || (segments.contains(&"production") && segments.len() > 5)
    };
    let writes = recorder.writes();
    assert!(writes.len() > 300, "{} writes: {}", writes.len(), ended.stdout);
    assert_eq!(trespasses(&writes, inside), [""; 0]);
    assert_unchanged(&server, &before);
}

#[test]
fn a_read_only_run_sends_reads_alone_and_passes() {
    let server = Served::start(&[]);
    let recorder = Recorder::before(&server.url);
    let target = ["--server", &recorder.url, "--token", TOKEN, "--second-token", USER_TOKEN];
    for more in [&[][..], &["--namespace", "default"], &["--dry-run"]] {
        let ended = kubeproof(&[&["run", "--read-only"], &target[..], more].concat()).with(0);
        assert!(more.contains(&"--dry-run") || ended.stdout.contains(" pass"), "{}", ended.stdout);
    }
    kubeproof(&[&["run", "--dry-run"], &target[..]].concat()).with(0);
    assert_eq!(trespasses(&recorder.writes(), |_| false), [""; 0]);
    assert!(recorder.seen().len() > 100);
}

/// However many requests have come, the time since the start had room for them: no load can break this, only a run that is too fast.
#[test]
fn requests_a_second_are_kept_by_cases_streams_and_the_node() {
    const RATE: f64 = 150.0;
    let server = Served::start(&["--without", "node"]);
    let recorder = Recorder::before(&server.url);
    let begun = Instant::now();
    let rate = RATE.to_string();
    let run = ["run", "--with-node", "--max-rps", &rate, "--case-timeout", "1m", "--only"];
    // Streams of the bundled server find no way to the node, which is as well: what is asked for counts.
    let cases = ["exec/exit-*", "watch/*@configmaps.v1", "create/*"];
    let target = ["--server", &recorder.url, "--token", TOKEN];
    kubeproof(&[&run[..], &cases, &target].concat()).with(1);
    let seen = recorder.seen();
    assert!(seen.len() > 300, "{}", seen.len());
    for (before, request) in seen.iter().enumerate() {
        let room = RATE * (request.at - begun).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let sent = before as f64;
        assert!(
            sent <= room,
            "{sent} requests came before {} {}, in the time for {room}",
            request.method,
            request.target
        );
    }
}
