//! Admission policies: expressions that check and change requests.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: &Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

/// Creates a policy for configmaps with a binding.
async fn policy(server: &TestServer, kind: &str, spec: &Value, binding: &Value) {
    let mut policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }]},
    }});
    merge(&mut policy["spec"], spec);
    let mut bound = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    if kind == "validating" {
        bound["spec"]["validationActions"] = json!(["Deny"]);
    } else {
        policy["spec"]["reinvocationPolicy"] = json!("Never");
    }
    merge(&mut bound["spec"], binding);
    server.post(&format!("{GROUP}/{kind}admissionpolicies"), &policy).await.expect(201);
    server.post(&format!("{GROUP}/{kind}admissionpolicybindings"), &bound).await.expect(201);
}

fn merge(target: &mut Value, changes: &Value) {
    for (field, value) in changes.as_object().into_iter().flatten() {
        target[field] = value.clone();
    }
}

async fn validating(spec: Value, binding: Value) -> TestServer {
    let server = TestServer::start().await;
    policy(&server, "validating", &spec, &binding).await;
    server
}

#[rstest]
#[case("Forbidden", 201)]
#[case("Unauthorized", 422)]
#[tokio::test]
async fn few_reasons_are_valid(#[case] reason: &str, #[case] code: u16) {
    let server = TestServer::start().await;
    let validation = json!({"expression": "true", "reason": reason});
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
    });
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "validations": [validation], "matchConstraints": {"resourceRules": [rule]},
    }});
    server.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy).await.expect(code);
}

fn warnings(reply: &Reply) -> Vec<&str> {
    reply.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok()).collect()
}

#[rstest]
#[case::message(json!({"message": "too large"}), (422, "Invalid", "too large"))]
#[case::no_message(json!({}), (422, "Invalid", "failed expression: object.data.size == 'small'"))]
#[case::expression(
    json!({"messageExpression": "'no ' + object.data.size", "reason": "Forbidden"}),
    (403, "Forbidden", "no large")
)]
#[case::failed_expression(
    json!({"messageExpression": "object.data.other + ''", "message": "fixed"}),
    (422, "Invalid", "fixed")
)]
#[case::too_large(
    json!({"message": "m", "reason": "RequestEntityTooLarge"}),
    (413, "RequestEntityTooLarge", "m")
)]
#[tokio::test]
async fn a_policy_denies_a_request(
    #[case] changes: Value,
    #[case] (code, reason, message): (u16, &str, &str),
) {
    let mut validation = json!({"expression": "object.data.size == 'small'"});
    merge(&mut validation, &changes);
    let server = validating(json!({"validations": [validation]}), json!({})).await;
    let reply = server.post(MAPS, &map("a", &json!({"size": "large"}))).await;
    let reply = reply.rejected(code, reason);
    let denied =
        format!("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {message}");
    assert_eq!(reply.text_at("/message"), format!("configmaps \"a\" is forbidden: {denied}"));
    assert_eq!(reply.text_at("/details/causes/0/message"), denied);
    server.post(MAPS, &map("a", &json!({"size": "small"}))).await.expect(201);
    server.merge(&format!("{MAPS}/a"), &json!({"data": {"size": "x"}})).await.expect(code);
}

#[tokio::test]
async fn a_binding_can_warn_instead() {
    let validations = json!({"validations": [{"expression": "false", "message": "bad"}]});
    let server = validating(validations, json!({"validationActions": ["Warn", "Audit"]})).await;
    let reply = server.post(MAPS, &map("a", &json!({}))).await.expect(201);
    let expected =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': bad\"";
    assert_eq!(warnings(&reply), [expected]);
}

#[rstest]
#[case("Fail", 422)]
#[case("Ignore", 201)]
#[tokio::test]
async fn the_failure_policy_decides_on_an_error(#[case] policy: &str, #[case] code: u16) {
    let spec = json!({
        "failurePolicy": policy, "validations": [{"expression": "object.data.size == 'small'"}],
    });
    let server = validating(spec, json!({})).await;
    let reply = server.post(MAPS, &map("a", &json!({}))).await.expect(code);
    if code == 422 {
        let message = reply.text_at("/message");
        let expected = "expression 'object.data.size == 'small'' resulted in error: no such key:";
        assert!(message.contains(expected), "{message}");
    }
}

/// Whether a policy with this expression permits a configmap with `data.size: large`.
#[rstest]
#[case::request("request.operation == 'CREATE' && request.resource.resource == 'configmaps'", true)]
#[case::user("'system:masters' in request.userInfo.groups", true)]
#[case::dry_run("request.dryRun", false)]
#[case::old("oldObject == null", true)]
#[case::namespace("namespaceObject.metadata.name == 'default'", true)]
#[case::variables("variables.large && !variables.small", true)]
#[tokio::test]
async fn expressions_have_variables(#[case] expression: &str, #[case] permitted: bool) {
    let spec = json!({
        "variables": [
            {"name": "large", "expression": "object.data.size == 'large'"},
            {"name": "small", "expression": "!variables.large"},
        ],
        "validations": [{"expression": expression}],
    });
    let server = validating(spec, json!({})).await;
    let code = if permitted { 201 } else { 422 };
    server.post(MAPS, &map("a", &json!({"size": "large"}))).await.expect(code);
}

#[rstest]
#[case::name(json!({"name": "limits", "namespace": "default"}), 422)]
#[case::selector(json!({"selector": {"matchLabels": {"role": "limits"}}}), 422)]
#[case::missing(json!({"name": "other"}), 422)]
#[case::missing_and_allowed(json!({"name": "x", "parameterNotFoundAction": "Allow"}), 201)]
#[tokio::test]
async fn a_binding_has_parameters(#[case] param_ref: Value, #[case] code: u16) {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "object.data.size == params.metadata.labels.size"}],
    });
    let mut param_ref = param_ref;
    if param_ref["parameterNotFoundAction"].is_null() {
        param_ref["parameterNotFoundAction"] = json!("Deny");
    }
    let server = validating(spec, json!({"paramRef": param_ref})).await;
    let labels = json!({"role": "limits", "size": "small"});
    let secret = json!({"metadata": {"name": "limits", "labels": labels}});
    server.post("/api/v1/namespaces/default/secrets", &secret).await.expect(201);
    server.post(MAPS, &map("a", &json!({"size": "large"}))).await.expect(code);
    let found = code == 422 && param_ref["name"] != "other";
    let code = if found { 201 } else { code };
    server.post(MAPS, &map("b", &json!({"size": "small"}))).await.expect(code);
}

#[rstest]
#[case::constraints(
    json!({"matchConstraints": {
        "resourceRules": [{
            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        }],
        "excludeResourceRules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["*"],
            "resources": ["configmaps"], "resourceNames": ["a"],
        }],
    }}),
    json!({})
)]
#[case::conditions(
    json!({"matchConditions": [{"name": "x", "expression": "object.metadata.name != 'a'"}]}),
    json!({})
)]
#[case::binding(
    json!({}),
    json!({"matchResources": {"resourceRules": [{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        "resourceNames": ["b"],
    }]}})
)]
#[tokio::test]
async fn a_policy_applies_to_the_requests_that_match(#[case] spec: Value, #[case] binding: Value) {
    let mut spec = spec;
    spec["validations"] = json!([{"expression": "false"}]);
    let server = validating(spec, binding).await;
    server.post(MAPS, &map("a", &json!({}))).await.expect(201);
    server.post(MAPS, &map("b", &json!({}))).await.rejected(422, "Invalid");
}

#[rstest]
#[case::apply(
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {
        "expression": "Object{metadata: Object.metadata{labels: {'by': object.metadata.name}}}",
    }})
)]
#[case::json_patch(
    json!({"patchType": "JSONPatch", "jsonPatch": {
        "expression": "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'by': 'a'}}]",
    }})
)]
#[tokio::test]
async fn a_policy_changes_an_object(#[case] mutation: Value) {
    let server = TestServer::start().await;
    policy(&server, "mutating", &json!({"mutations": [mutation]}), &json!({})).await;
    let reply = server.post(MAPS, &map("a", &json!({"x": "y"}))).await.expect(201);
    assert_eq!(reply.json["metadata"]["labels"], json!({"by": "a"}));
    assert_eq!(reply.json["data"], json!({"x": "y"}));
}

#[tokio::test]
async fn a_mutation_that_fails_rejects_the_request() {
    let server = TestServer::start().await;
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {
        "expression": "Object{missing: 1}",
    }});
    policy(&server, "mutating", &json!({"mutations": [mutation]}), &json!({})).await;
    let reply = server.post(MAPS, &map("a", &json!({}))).await.rejected(403, "Invalid");
    let message = reply.text_at("/message");
    assert!(message.starts_with("policy 'p' with binding 'b' denied request: "), "{message}");
}

#[rstest]
#[case::of_the_user("authorizer.requestResource.check('create').allowed()", true)]
#[case::of_an_account(
    "authorizer.serviceAccount('default', 'reader').group('').resource('configmaps')
     .namespace('default').check('get').allowed()",
    true
)]
#[case::of_another_verb(
    "authorizer.serviceAccount('default', 'reader').group('').resource('configmaps')
     .namespace('default').check('delete').allowed()",
    false
)]
#[case::of_a_path(
    "authorizer.serviceAccount('a', 'b').path('/metrics').check('get').allowed()",
    false
)]
#[tokio::test]
async fn expressions_check_permissions(#[case] expression: &str, #[case] permitted: bool) {
    let spec = json!({"validations": [{"expression": expression}]});
    let server = validating(spec, json!({})).await;
    server.bind_reader().await;
    let reply = server.post(MAPS, &map("a", &json!({}))).await;
    assert_eq!(reply.status == 201, permitted, "{}", reply.text);
}

#[tokio::test]
async fn the_status_shows_fields_that_the_matched_types_lack() {
    let spec = json!({"validations": [{"expression": "object.spec.size > 1"}]});
    let server = validating(spec, json!({})).await;
    let path = format!("{GROUP}/validatingadmissionpolicies/p");
    let checked = |reply: &Reply| reply.json["status"]["observedGeneration"] == 1;
    let reply = server.until(&path, checked).await;
    let warning = "v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n \
                   | object.spec.size > 1\n | ......^";
    let expected = json!([{"fieldRef": "spec.validations[0].expression", "warning": warning}]);
    assert_eq!(reply.json["status"]["typeChecking"]["expressionWarnings"], expected);
    let change = json!({"spec": {"validations": [{"expression": "object.data.size() > 1"}]}});
    server.merge(&path, &change).await.expect(200);
    let checked = |reply: &Reply| reply.json["status"]["observedGeneration"] == 2;
    let reply = server.until(&path, checked).await;
    assert_eq!(reply.json["status"]["typeChecking"], json!({}));
}
