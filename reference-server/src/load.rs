//! Applies manifests before the server is ready.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apiserver::ApiServer;
use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::Value;

/// The buffer of the connection in memory, in bytes.
const PIPE: usize = 64 * 1024;
/// The manager of the fields of loaded objects.
const MANAGER: &str = "kubeproof-load";

/// Objects in YAML or JSON, one or several documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The name for error messages, such as the path of a file.
    pub source: String,
    /// The documents.
    pub text: String,
}

impl Manifest {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Read { path: file.to_owned(), source };
        let text = fs::read_to_string(file).map_err(failed)?;
        Ok(Self { source: file.display().to_string(), text })
    }
}

/// The reason why a manifest could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The text is neither YAML nor JSON.
    #[error("{manifest}: expected YAML or JSON: {reason}")]
    Syntax {
        /// The manifest.
        manifest: String,
        /// The error of the parser.
        reason: String,
    },
    /// The server ended the connection.
    #[error("cannot connect to the server in memory: {0}")]
    Connection(#[from] hyper::Error),
    /// A document cannot be applied.
    #[error("{manifest}: {what}: {reason}")]
    Object {
        /// The manifest.
        manifest: String,
        /// The object, or the number of the document.
        what: String,
        /// The reason, usually the message of the server.
        reason: String,
    },
}

/// An object of a manifest.
struct Document {
    manifest: String,
    /// The number of the document in its manifest, from 1.
    number: usize,
    object: Value,
}

/// Applies all objects: definitions, then namespaces, then the others in their order.
pub(crate) async fn apply(
    api: &Arc<ApiServer>,
    admin_token: &str,
    manifests: &[Manifest],
) -> Result<(), LoadError> {
    let mut documents = Vec::new();
    for manifest in manifests {
        documents.extend(parse(manifest)?);
    }
    if documents.is_empty() {
        return Ok(());
    }
    documents.sort_by_key(|document| order(&document.object));
    let mut session = Session::open(api, admin_token).await?;
    for document in &documents {
        session.apply(document).await?;
    }
    Ok(())
}

/// Returns the position of a kind: others may need it.
fn order(object: &Value) -> usize {
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    }
}

/// Parses the documents of a manifest. Empty documents are ignored, and lists are their items.
fn parse(manifest: &Manifest) -> Result<Vec<Document>, LoadError> {
    let values: Vec<Value> = serde_saphyr::from_multiple(&manifest.text).map_err(|error| {
        LoadError::Syntax { manifest: manifest.source.clone(), reason: error.to_string() }
    })?;
    let mut documents = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let document =
            |object| Document { manifest: manifest.source.clone(), number: index + 1, object };
        let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match value {
            Value::Null => {}
            Value::Object(mut list) if is_list && list.contains_key("items") => {
                let items = list.remove("items").unwrap_or_default();
                let items = items.as_array().cloned().unwrap_or_default();
                documents.extend(items.into_iter().map(document));
            }
            object => documents.push(document(object)),
        }
    }
    Ok(documents)
}

impl Document {
    fn error(&self, reason: impl Into<String>) -> LoadError {
        let Self { manifest, number, object } = self;
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object.meta("name"));
        let what = match (object.meta("namespace"), kind) {
            (_, "") => format!("document {number}"),
            ("", kind) => format!("document {number}, {kind} {name:?}"),
            (namespace, kind) => format!("document {number}, {kind} \"{namespace}/{name}\""),
        };
        LoadError::Object { manifest: manifest.clone(), what, reason: reason.into() }
    }
}

/// A connection to the server in memory.
struct Session {
    client: Client,
    sender: SendRequest<Full<Bytes>>,
    credential: String,
}

impl Session {
    async fn open(api: &Arc<ApiServer>, admin_token: &str) -> Result<Self, LoadError> {
        let (near, far) = tokio::io::duplex(PIPE);
        tokio::spawn(api.clone().serve_connection(far, None));
        let (sender, connection) = http1::handshake(TokioIo::new(near)).await?;
        tokio::spawn(connection);
        let credential = format!("Bearer {admin_token}");
        Ok(Self { client: Client::new(api), sender, credential })
    }

    async fn apply(&mut self, document: &Document) -> Result<(), LoadError> {
        let object = &document.object;
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(document.error("expected an object with apiVersion and kind"));
        }
        let resource = self.client.resource_of_kind(api_version, kind);
        let resource = resource.ok_or_else(|| {
            document.error(format!("the server has no kind {kind:?} in {api_version:?}"))
        })?;
        let request = self.request(object, api_version, &resource);
        let request = request.map_err(|error| document.error(error.to_string()))?;
        let (status, body) =
            self.send(request).await.map_err(|error| document.error(error.to_string()))?;
        if status.is_success() {
            return Ok(());
        }
        let parsed: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = parsed["message"].as_str().map(str::to_owned);
        Err(document.error(message.unwrap_or_else(|| format!("HTTP {status}"))))
    }

    /// Returns the request that applies an object. It creates an object with a generated name.
    fn request(
        &self,
        object: &Value,
        api_version: &str,
        resource: &Resource,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let mut path = format!("/{root}/{api_version}");
        if resource.is_namespaced() {
            let namespace = Some(object.meta("namespace")).filter(|name| !name.is_empty());
            let _ = write!(path, "/namespaces/{}", namespace.unwrap_or("default"));
        }
        let _ = write!(path, "/{}", resource.plural());
        let (method, path, media_type) = if object.meta("name").is_empty() {
            let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict");
            (Method::POST, path, "application/json")
        } else {
            let query = format!("fieldManager={MANAGER}&force=true&fieldValidation=Strict");
            let path = format!("{path}/{}?{query}", object.meta("name"));
            (Method::PATCH, path, "application/apply-patch+yaml")
        };
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(AUTHORIZATION, &self.credential)
            .header(CONTENT_TYPE, media_type)
            .body(Full::from(object.to_string()))
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), hyper::Error> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
