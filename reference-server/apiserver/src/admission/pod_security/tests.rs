use rstest::rstest;
use serde_json::json;

use super::*;

const NEWEST: u32 = 36;

fn labels(enforce: &str) -> Value {
    json!({"pod-security.kubernetes.io/enforce": enforce})
}

fn rejection(enforce: &str, spec: &Value) -> String {
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let subject = Subject::of("", "pods", &pod).expect("a pod");
    evaluate(subject, &labels(enforce), NEWEST).rejection.unwrap_or_default()
}

fn container(context: &Value) -> Value {
    json!({"containers": [{"name": "c", "securityContext": context}]})
}

#[rstest]
#[case(container(&json!({"privileged": true})),
       r#"privileged (container "c" must not set securityContext.privileged=true)"#)]
#[case(json!({"hostNetwork": true, "hostPID": true}),
       "host namespaces (hostNetwork=true, hostPID=true)")]
#[case(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
       r#"hostPath volumes (volume "v")"#)]
#[case(json!({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}),
       r#"hostPort (container "c" uses hostPort 80)"#)]
#[case(
    container(&json!({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}})),
    "non-default capabilities (container \"c\" must not include \"NET_ADMIN\" in \
     securityContext.capabilities.add)"
)]
#[case(
    container(&json!({"procMount": "Unmasked"})),
    r#"procMount (container "c" must not set securityContext.procMount to "Unmasked")"#
)]
#[case(
    json!({"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u"}}}),
    "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may \
     not be set)"
)]
#[case(
    json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
    "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"
)]
#[case(json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}),
       "forbidden sysctls (kernel.msgmax)")]
#[case(
    container(&json!({"windowsOptions": {"hostProcess": true}})),
    r#"hostProcess (container "c" must not set securityContext.windowsOptions.hostProcess=true)"#
)]
#[case(
    container(&json!({"appArmorProfile": {"type": "Unconfined"}})),
    "forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to \
     \"Unconfined\")"
)]
#[case(
    json!({"containers": [{"name": "c", "livenessProbe": {"httpGet": {"host": "a.example"}}}]}),
    r#"probe or lifecycle host (container "c" uses probe or lifecycle host "a.example")"#
)]
fn the_baseline_forbids_privileges(#[case] spec: Value, #[case] expected: &str) {
    assert_eq!(
        rejection("baseline", &spec),
        format!("violates PodSecurity \"baseline:latest\": {expected}")
    );
    assert_eq!(rejection("privileged", &spec), "");
}

#[test]
fn the_restricted_level_requires_every_restriction() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(rejection("baseline", &spec), "");
    assert_eq!(
        rejection("restricted", &spec),
        "violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false \
         (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (containers \"a\", \"b\" must set \
         securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \
         \"a\", \"b\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or \
         containers \"a\", \"b\" must set securityContext.seccompProfile.type to \
         \"RuntimeDefault\" or \"Localhost\")"
    );
    let mut sound = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        }}],
    });
    assert_eq!(rejection("restricted", &sound), "");
    sound["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    sound["securityContext"]["runAsUser"] = json!(0);
    assert_eq!(
        rejection("restricted", &sound),
        "violates PodSecurity \"restricted:latest\": restricted volume types (volume \"v\" uses \
         restricted volume type \"hostPath\"), runAsUser=0 (pod must not set runAsUser=0)"
    );
}

#[test]
fn templates_only_get_warnings() {
    let template = json!({"metadata": {}, "spec": container(&json!({"privileged": true}))});
    let deployment = json!({"spec": {"template": template}});
    let subject = Subject::of("apps", "deployments", &deployment).expect("a template");
    let evaluation = evaluate(subject, &labels("baseline"), NEWEST);
    assert_eq!(evaluation.rejection, None);
    let [warning] = evaluation.warnings.as_slice() else { panic!("{evaluation:?}") };
    assert!(warning.starts_with("would violate PodSecurity \"baseline:latest\": privileged ("));
    assert_eq!(Subject::of("", "configmaps", &deployment).map(|it| it.is_pod), None);
}

#[test]
fn versions_select_the_checks_of_their_time() {
    let sysctls = json!([{"name": "net.ipv4.tcp_rmem"}]);
    let pod = json!({"metadata": {}, "spec": {"securityContext": {"sysctls": sysctls}}});
    let subject = Subject::of("", "pods", &pod).expect("a pod");
    let with = |version: &str| {
        let mut labels = labels("baseline");
        labels["pod-security.kubernetes.io/enforce-version"] = json!(version);
        evaluate(subject, &labels, NEWEST).rejection.is_some()
    };
    assert_eq!([with("v1.31"), with("v1.32"), with("v1.99")], [true, false, false]);
}

#[test]
fn a_new_policy_warns_about_existing_pods() {
    let namespace = |level: &str| json!({"metadata": {"name": "n", "labels": labels(level)}});
    let spec = container(&json!({"privileged": true}));
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": spec});
    let pods = || vec![pod("b"), pod("a"), pod("c")];
    let warn =
        |new: &str, old: &str| namespace_warnings(&namespace(new), &namespace(old), pods, NEWEST);
    assert_eq!(
        warn("baseline", "privileged"),
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "a (and 2 other pods): privileged",
        ]
    );
    assert_eq!(warn("baseline", "restricted"), [""; 0]);
    assert_eq!(warn("baseline", "baseline"), [""; 0]);
}

#[test]
fn wrong_labels_are_errors_when_they_are_new() {
    let namespace = json!({"metadata": {"name": "n", "labels": labels("strict")}});
    let errors = label_errors(&namespace, None);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(label_errors(&namespace, Some(&namespace)), []);
}

#[test]
fn only_new_images_are_significant() {
    let pod = |image: &str| json!({"spec": {"containers": [{"name": "c", "image": image}]}});
    assert!(is_significant(&pod("a"), &pod("b")));
    assert!(!is_significant(&pod("a"), &pod("a")));
}
