//! The part of the conversation about what the server says of itself, and whether it is so.

use super::Record;

pub(super) async fn ask(talk: &mut Record) {
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    talk.send("GET", "/apis", &[("accept", aggregated)], "").await;
    talk.get("/apis/apps").await;
    talk.get("/openapi/v2").await;
    talk.get("/openapi/v3").await;
    talk.get("/openapi/v3/apis/apps/v1").await;
    talk.patch("merge", "/apis/coordination.k8s.io/v1/namespaces/default/leases/none", &"{}".into()).await;
    talk.delete("/api/v1/namespaces?labelSelector=none&dryRun=All", "").await;
    talk.get("/api/v1/namespaces/default/nodes").await;
}
