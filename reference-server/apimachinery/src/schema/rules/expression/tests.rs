use rstest::rstest;
use serde_json::json;

use super::super::authorizer::{Authorize, Decision, Subject, Target};
use super::*;
use crate::resource::ResourceInfo;

fn names() -> Names {
    Names {
        roots: vec![
            "object",
            "oldObject",
            "request",
            "params",
            "namespaceObject",
            AUTHORIZER,
            REQUEST_RESOURCE,
        ],
        variables: vec!["size".to_owned(), "broken".to_owned()],
        types: Vec::new(),
    }
}

/// Permits `get` on what it repeats as the reason.
#[derive(Debug)]
struct Echo;

impl Authorize for Echo {
    fn decide(&self, subject: &Subject, verb: &str, target: &Target) -> Decision {
        let subject = match subject {
            Subject::Requester => String::new(),
            Subject::ServiceAccount { namespace, name } => format!("{namespace}/{name} "),
        };
        let target = match target {
            Target::Path(path) => path.clone(),
            Target::Resource(info) => {
                let ResourceInfo { group, resource, subresource, namespace, name, .. } = info;
                format!("{group}|{resource}|{subresource}|{namespace}|{name}")
            }
        };
        Decision { allowed: verb == "get", reason: format!("{subject}{target}") }
    }
}

fn evaluate(text: &str) -> Result<Value, String> {
    let compile = |text| Expression::compile(text, &names(), Wanted::Any);
    let variables = [
        ("size".to_owned(), compile("object.spec.replicas * 2")?),
        ("broken".to_owned(), compile("object.missing.field")?),
    ];
    let mut roots = Roots::default();
    let object = json!({
        "metadata": {"name": "a", "namespace": "n", "labels": {"x-y": "z"}},
        "spec": {"replicas": 3, "ratio": 0.5},
    });
    roots.set("object", &object);
    roots.set("oldObject", &Value::Null);
    roots.set("request", &json!({"operation": "CREATE", "namespace": "n"}));
    let resource = ResourceInfo { resource: "pods".to_owned(), ..ResourceInfo::default() };
    roots.set_authorizer(Arc::new(Echo), resource);
    let scope = Scope::new(&roots, &variables);
    compile(text)?.evaluate(&scope, &mut 10_000_000).map_err(|error| error.to_string())
}

#[rstest]
#[case("object.metadata.namespace == request.namespace", json!(true))]
#[case("object.metadata.labels['x-y']", json!("z"))]
#[case("has(object.metadata.annotations)", json!(false))]
#[case("oldObject == null", json!(true))]
#[case("variables.size > 5 && variables.size < 7", json!(true))]
#[case("has(object.missing) ? variables.broken : variables.size", json!(6))]
#[case("[1, 2].all(x, x < variables.size)", json!(true))]
#[case("object.spec.ratio", json!(0.5))]
#[case(
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    json!({"metadata": {"labels": {"a": "b"}}})
)]
#[case(
    "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), \
     value: 1}]",
    json!([{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": 1}])
)]
#[case("object.?spec.?other.orValue('none')", json!("none"))]
#[case("authorizer.path('/healthz').check('get').reason()", json!("/healthz"))]
#[case(
    "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n')
     .name('a').check('get').reason()",
    json!("apps|deployments|scale|n|a")
)]
#[case("authorizer.group('').resource('pods').check('list').allowed()", json!(false))]
#[case("authorizer.requestResource.check('get').reason()", json!("|pods|||"))]
#[case(
    "authorizer.serviceAccount('n', 'robot').path('/x').check('get').reason()",
    json!("n/robot /x")
)]
fn expressions_about_requests(#[case] text: &str, #[case] expected: Value) {
    assert_eq!(evaluate(text), Ok(expected));
}

#[rstest]
#[case("unknown == 1", "undeclared reference to 'unknown'")]
#[case("variables.other == 1", "ERROR: <input>:1:10: undefined field 'other'\n | variables")]
#[case("request.other == 1", "undefined field 'other'")]
#[case("object.a.b == 1", "no such key: a")]
#[case("variables.broken == 1", "composited variable \"broken\" fails to evaluate")]
#[case("object.", "compilation failed")]
#[case("authorizer.group('').resource(' ')", "resource must not be empty")]
#[case("authorizer.serviceAccount('N', 'a')", "Invalid service account namespace")]
#[case("int('a') == 1", "program instantiation failed: type conversion error from 'string'")]
#[case("authorizer.resource('pods')", "found no matching overload for 'resource'")]
#[case(
    "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())",
    "actual cost limit exceeded"
)]
fn mistakes_have_a_reason(#[case] text: &str, #[case] expected: &str) {
    let error = evaluate(text).expect_err("an error");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_expression_has_the_wanted_type() {
    let compile = |text, wanted| Expression::compile(text, &names(), wanted).map(drop);
    assert_eq!(compile("object.a == 1", Wanted::Bool), Ok(()));
    let why = "must evaluate to bool but got dyn".to_owned();
    assert_eq!(compile("object.a", Wanted::Bool), Err(why));
    let why = "must evaluate to one of [string null_type] but got int".to_owned();
    assert_eq!(compile("1 + 1", Wanted::OptionalText), Err(why));
    assert_eq!(compile("'a' + object.b", Wanted::Text), Ok(()));
    let configuration = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
    assert_eq!(compile(configuration, Wanted::Object), Ok(()));
    let why = "must evaluate to Object but got int".to_owned();
    assert_eq!(compile("1", Wanted::Object), Err(why));
    let patches = "[JSONPatch{op: 'add', path: '/a', value: 1}]";
    assert_eq!(compile(patches, Wanted::Patches), Ok(()));
    assert!(compile(configuration, Wanted::Patches).is_err());
}
