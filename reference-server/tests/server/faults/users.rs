//! The part of the conversation about who asks, and as whom.

use serde_json::{Value, json};

use super::{JSON, Record};
use crate::support::CONFIG_MAPS;

const OWN: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const USER: (&str, &str) = ("authorization", "Bearer user");
const JIM: (&str, &str) = ("impersonate-user", "jim");
const GROUP: (&str, &str) = ("impersonate-group", "g");

pub(super) async fn ask(talk: &mut Record) {
    impersonate(talk).await;
    refuse(talk).await;
    review(talk).await;
}

async fn impersonate(talk: &mut Record) {
    let account = ("impersonate-user", "system:serviceaccount:ns:sa");
    let extra = ("impersonate-extra-a%2fb", "c");
    for headers in
        [&[JSON, JIM][..], &[JSON, JIM, GROUP, extra], &[JSON, account], &[JSON, GROUP], &[JSON, USER, JIM]]
    {
        talk.send("POST", OWN, headers, "{}").await;
    }
}

async fn refuse(talk: &mut Record) {
    for token in ["Bearer nobody", "Basic YTpi"] {
        let reply = talk.send("GET", "/apis", &[("authorization", token)], "").await;
        talk.note(&format!("{:?}", reply.headers.get("www-authenticate")));
    }
    talk.send("GET", "/apis/nope.io/v1/x", &[USER], "").await;
    talk.send("GET", "/apis/apps/v1/deployments", &[USER], "").await;
    talk.send("POST", CONFIG_MAPS, &[USER, ("content-type", "text/plain")], "{}").await;
}

async fn review(talk: &mut Record) {
    let post = async |talk: &mut Record, kind: &str, user: bool, spec: Value| {
        let headers = if user { &[JSON, USER][..] } else { &[JSON] };
        talk.send("POST", &format!("{ACCESS}/{kind}"), headers, &json!({ "spec": spec }).to_string()).await;
    };
    let pods = json!({ "verb": "get", "resource": "pods", "namespace": "other" });
    talk.send("POST", OWN, &[JSON, USER], "{}").await;
    post(talk, "selfsubjectaccessreviews", false, json!({})).await;
    post(talk, "subjectaccessreviews", false, json!({ "user": "jim", "resourceAttributes": pods })).await;
    let local = "namespaces/default/localsubjectaccessreviews";
    post(talk, local, false, json!({ "user": "jim", "resourceAttributes": pods })).await;
    post(talk, "selfsubjectrulesreviews", true, json!({ "namespace": "default" })).await;
    post(talk, "selfsubjectrulesreviews", true, json!({})).await;
    let token = json!({ "spec": { "token": "nobody" } });
    talk.post("/apis/authentication.k8s.io/v1/tokenreviews", &token).await;
}
