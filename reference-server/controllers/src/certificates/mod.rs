//! The controllers of `CertificateSigningRequest` objects: the approval of nodes, and the signers
//! of Kubernetes.

mod policy;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use kubeproof_apimachinery::object::timestamp;
use kubeproof_apiserver::certificates::{
    CertificateAuthority, CertificateRequest, Usages, Validity,
};
use kubeproof_apiserver::loopback::{Access, Client, FieldManager, Object, UserInfo};
use serde_json::{Value, json};

use self::policy::Signer;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const MANAGER: &str = "kube-controller-manager";
/// The lifetime of a certificate, in seconds, and the longest that a request can have.
const LIFETIME: i64 = 365 * 24 * 3600;
/// The shortest lifetime, in seconds.
const SHORTEST: i64 = 600;

/// Starts the controllers, which run until the server stops.
pub(crate) fn start(client: &Client, authority: CertificateAuthority) {
    let Some(requests) = client.resource(GROUP, "v1", PLURAL) else { return };
    let mut changes = client.subscribe(&requests);
    let looped = client.clone();
    client.spawn(async move {
        loop {
            changes.reset();
            for request in looped.list(&requests, None).items {
                reconcile(&looped, &authority, &request).await;
            }
            changes.changed().await;
        }
    });
}

/// Approves a request of a node, or signs an approved request.
async fn reconcile(client: &Client, authority: &CertificateAuthority, object: &Object) {
    let request = object.value();
    let has = |kind: &str| {
        let mut conditions = request["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == kind)
    };
    let is_signed = request["status"]["certificate"].as_str().is_some_and(|it| !it.is_empty());
    let Some(signer) = Signer::named(request["spec"]["signerName"].as_str().unwrap_or_default())
    else {
        return;
    };
    if is_signed || has("Denied") || has("Failed") {
        return;
    }
    let text = request["spec"]["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(text).unwrap_or_default();
    // The server has verified the request when it was created.
    let Ok(parsed) = CertificateRequest::from_pem(&pem) else { return };
    if has("Approved") {
        sign(client, authority, object, signer, &parsed).await;
    } else {
        approve(client, object, signer, &parsed).await;
    }
}

/// Approves a request for the certificate of a node if its user may have it.
async fn approve(client: &Client, object: &Object, signer: Signer, parsed: &CertificateRequest) {
    let request = object.value();
    if signer != Signer::KubeletClient || signer.check(parsed, &usages(&request)).is_err() {
        return;
    }
    let user = user(&request["spec"]);
    let own = (
        "selfnodeclient",
        "Auto approving self kubelet client certificate after SubjectAccessReview.",
    );
    let other =
        ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");
    let recognized = if user.name == parsed.common_name { vec![own, other] } else { vec![other] };
    let granted = recognized.into_iter().find(|(subresource, _)| {
        let access = Access { verb: "create", group: GROUP, resource: PLURAL, subresource };
        client.may_access(user.clone(), access)
    });
    if let Some((_, message)) = granted {
        let manager = FieldManager { name: MANAGER, subresource: "approval" };
        let approve = |request: &mut Value| {
            add_condition(request, "Approved", "AutoApproved", message);
        };
        client.modify(object, Some(manager), approve).await;
    }
}

/// Signs an approved request, or records why the signer rejects it.
async fn sign(
    client: &Client,
    authority: &CertificateAuthority,
    object: &Object,
    signer: Signer,
    parsed: &CertificateRequest,
) {
    let request = object.value();
    let manager = Some(FieldManager { name: MANAGER, subresource: "status" });
    let usages = usages(&request);
    if let Err(error) = signer.check(parsed, &usages) {
        let reject = |request: &mut Value| {
            add_condition(request, "Failed", "SignerValidationFailure", &error.to_string());
        };
        return client.modify(object, manager, reject).await;
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(LIFETIME);
    let validity = Validity::of(SignedDuration::from_secs(seconds.clamp(SHORTEST, LIFETIME)));
    let usages = Usages::named(usages);
    // Without random numbers, the next change of a request tries again.
    let Ok(pem) = authority.sign(parsed, &usages, validity) else { return };
    let store = |request: &mut Value| {
        // Another server may have signed the request in the meantime.
        if request["status"]["certificate"].as_str().is_none_or(str::is_empty) {
            request["status"]["certificate"] = STANDARD.encode(&pem).into();
        }
    };
    client.modify(object, manager, store).await;
}

fn usages(request: &Value) -> Vec<&str> {
    let usages = request["spec"]["usages"].as_array().into_iter().flatten();
    usages.filter_map(Value::as_str).collect()
}

fn user(spec: &Value) -> UserInfo {
    let groups = spec["groups"].as_array().into_iter().flatten();
    UserInfo {
        name: spec["username"].as_str().unwrap_or_default().to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// Adds a condition unless another server has added it in the meantime.
fn add_condition(request: &mut Value, kind: &str, reason: &str, message: &str) {
    let conditions = request["status"]["conditions"].as_array();
    if conditions.into_iter().flatten().any(|condition| condition["type"] == kind) {
        return;
    }
    let now = timestamp(0);
    let condition = json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastUpdateTime": now, "lastTransitionTime": now,
    });
    match request["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => request["status"]["conditions"] = json!([condition]),
    }
}
