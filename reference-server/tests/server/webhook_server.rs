//! An HTTPS server that responses the requests of admission webhooks.

use serde_json::{Value, json};

use crate::https::HttpsServer;

pub(crate) struct WebhookServer(HttpsServer);

impl WebhookServer {
    /// Starts a server whose handler returns the field `response` of the review.
    pub(crate) async fn start(respond: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::raw(move |review| {
            let mut response = respond(&review["request"]);
            if response["uid"].is_null() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let version = review["apiVersion"].clone();
            let body = json!({
                "kind": "AdmissionReview", "apiVersion": version, "response": response,
            });
            (200, body)
        })
        .await
    }

    /// Starts a server whose handler returns the whole response.
    pub(crate) async fn raw(
        handle: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        Self(HttpsServer::start(move |received| handle(&received.body)).await)
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port()
    }

    /// Returns the `clientConfig` of a webhook of this server.
    pub(crate) fn client_config(&self) -> Value {
        json!({"url": format!("{}/admit", self.0.url()), "caBundle": self.ca_bundle()})
    }

    pub(crate) fn ca_bundle(&self) -> String {
        self.0.ca_bundle()
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.0.received().iter().map(|review| review.body["request"].clone()).collect()
    }
}
