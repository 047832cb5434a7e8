//! Converts objects between the stored version and the version of a request.
//!
//! Most types need no conversion, or one without waiting. A definition with a webhook stores its
//! objects in the storage version, and the webhook converts them for each read and write of another
//! version.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use kubeproof_apimachinery::object::uuid;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Draft, Stored};
use serde_json::Value;

use crate::http::client::Client;
use crate::registry::crd::webhook::{Address, ConversionError, shown_kind};
use crate::registry::services::ServicePort;
use crate::registry::{Conversion, ResourceType, encode};
use crate::server::ApiServer;

/// The time that a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a stored object in the version of a type.
pub(crate) async fn load(
    api: &Arc<ApiServer>,
    ty: &ResourceType,
    stored: &Stored,
) -> Result<Value, ApiError> {
    let Some(conversion) = ty.conversion_of(stored) else { return Ok(ty.load(stored)) };
    let converted = convert(api, conversion, vec![parse(stored)], ty).await?;
    Ok(converted.into_iter().next().unwrap_or_default())
}

/// Returns stored objects in the version of a type. One request converts all of them.
pub(crate) async fn load_all(
    api: &Arc<ApiServer>,
    ty: &ResourceType,
    stored: &[Arc<Stored>],
) -> Result<Vec<Value>, ApiError> {
    let foreign: Vec<Value> = stored
        .iter()
        .filter(|stored| ty.conversion_of(stored).is_some())
        .map(|stored| parse(stored))
        .collect();
    let mut converted = match &ty.conversion {
        Some(conversion) if !foreign.is_empty() => convert(api, conversion, foreign, ty).await?,
        _ => Vec::new(),
    }
    .into_iter();
    let objects = stored.iter().map(|stored| match ty.conversion_of(stored) {
        Some(_) => converted.next().unwrap_or_default(),
        None => ty.load(stored),
    });
    Ok(objects.collect())
}

/// Encodes an object in the storage version of its type.
pub(crate) async fn draft(
    api: &Arc<ApiServer>,
    ty: &ResourceType,
    object: &Value,
) -> Result<Draft, ApiError> {
    let Some(conversion) = &ty.conversion else { return Ok(encode::draft(ty, object)) };
    let storage = &*conversion.storage;
    if storage.version == ty.version {
        return Ok(encode::draft(ty, object));
    }
    let converted = convert(api, conversion, vec![object.clone()], storage).await?;
    Ok(encode::draft(storage, &converted.into_iter().next().unwrap_or_default()))
}

fn parse(stored: &Stored) -> Value {
    // This server wrote the stored text, so it is valid and its depth is limited.
    json::parse(stored.object()).unwrap_or_default()
}

/// Converts objects of any version, and removes the fields that the schema does not have.
async fn convert(
    api: &Arc<ApiServer>,
    conversion: &Conversion,
    objects: Vec<Value>,
    ty: &ResourceType,
) -> Result<Vec<Value>, ApiError> {
    let desired = ty.api_version();
    let called = call(api, conversion, &objects, &desired).await;
    let mut converted = called.map_err(|error| ApiError::unknown(error.to_string()))?;
    for object in &mut converted {
        ty.schema.prune(object);
        ty.schema.apply_defaults(object);
    }
    Ok(converted)
}

async fn call(
    api: &Arc<ApiServer>,
    conversion: &Conversion,
    objects: &[Value],
    desired: &str,
) -> Result<Vec<Value>, ConversionError> {
    let kind = objects.first().map(shown_kind).unwrap_or_default();
    let failed = |why: &dyn std::fmt::Display| {
        ConversionError(format!("conversion webhook for {kind} failed: {why}"))
    };
    let (uri, shown) = uri(&conversion.webhook.address).map_err(|why| failed(&why))?;
    let client = if let Some(client) = conversion.client.get() {
        Arc::clone(client)
    } else {
        let client = connect(api, conversion, &uri).map_err(|why| failed(&why))?;
        Arc::clone(conversion.client.get_or_init(|| client))
    };
    let uid = uuid();
    let review = conversion.webhook.review(&uid, objects, desired);
    let seconds = TIMEOUT.as_secs();
    let path = format!("{}?timeout={seconds}s", uri.path());
    let response = client.post_json(&path, review.to_string().into(), TIMEOUT).await;
    let (status, body) = response
        .map_err(|error| failed(&format!("Post \"{shown}?timeout={seconds}s\": {error}")))?;
    if !status.is_success() {
        let why = match status.as_u16() {
            404 => "the server could not find the requested resource",
            _ => "an error on the server (\"unknown\") has prevented the request from succeeding",
        };
        return Err(failed(&why));
    }
    let review = json::decode(&body).map_err(|error| failed(&error))?;
    conversion.webhook.converted(&uid, (objects, desired), review.value)
}

/// Returns the URL of the webhook, also as text for messages.
fn uri(address: &Address) -> Result<(Uri, String), http::uri::InvalidUri> {
    let text = match address {
        Address::Url(url) => url.clone(),
        Address::Service { namespace, name, port, path } => {
            let slash = if path.starts_with('/') { "" } else { "/" };
            format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
        }
    };
    Ok((text.parse()?, text))
}

fn connect(
    api: &Arc<ApiServer>,
    conversion: &Conversion,
    uri: &Uri,
) -> Result<Arc<Client>, crate::http::client::ClientError> {
    let dialer = match &conversion.webhook.address {
        Address::Url(_) => None,
        Address::Service { namespace, name, port, .. } => {
            let service =
                ServicePort { namespace: namespace.clone(), name: name.clone(), port: *port };
            Some(super::services::dialer(api, service))
        }
    };
    Client::new(uri, &conversion.webhook.ca_pem, dialer).map(Arc::new)
}
