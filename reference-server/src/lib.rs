//! A small, real API server in memory that follows the Kubernetes API conventions.
//!
//! It is as strict as kube-apiserver, starts in milliseconds and stores nothing on disk, so each
//! test of a client or controller can have its own server. It is not a cluster. Its only
//! controllers are the garbage collector and the controllers that complete deletions of namespaces
//! and custom resource definitions. With [`Config::node`], pods run in a scripted runtime inside
//! the server.
//!
//! # Limits
//!
//! A slow, greedy or faulty client must not affect other clients. Requests beyond a limit get a 4xx
//! response, or the server closes the connection. Acknowledged writes stay. Tests can change
//! [`Limits`]:
//!
//! | | limit | beyond it |
//! | --- | --- | --- |
//! | TLS handshake, request head, idle time between requests | 30 s | closed |
//! | connections without a request | 1024 | the oldest are closed |
//! | request body | 60 s | 408 |
//! | request bodies in memory, without the first 64 KiB of each | 128 MiB | 429, `Retry-After` |
//! | response or watch without progress | 60 s | closed, except logs, commands and ports |
//!
//! Other limits are fixed:
//!
//! | | limit | beyond it |
//! | --- | --- | --- |
//! | URL and headers | 64 KiB, 400 KiB, 100 headers | 414, 431 |
//! | body | 3 MiB | 413 |
//! | JSON, also as YAML | 500 levels, 16 KiB of keys from the root to a value | 400 |
//! | JSON patch | 10,000 operations, 3 MiB of copies, 50 million items moved | 413 |
//! | label selector | 1,000 requirements | 400 |
//! | errors reported for an object | 200, each with 1 KiB of the value | the others are counted |
//! | warnings | 50, 4 KiB | omitted |
//! | indented text (`pretty`, YAML) | 16 MiB, or four times the plain text | plain JSON |
//! | patterns of a schema | 8 KiB of text each, 1 MiB compiled, 16 MiB in total | 422 |
//! | rules of a schema | 16 KiB and 300 links each, cost on the largest object | 422 |
//! | history | [`Config::history`] events of a resource, 32 MiB in total | 410 for older versions |
//! | streams of a SPDY connection | 1024, 64 headers each, 64 KiB of headers | reset, closed |
//! | message of a WebSocket | 32 MiB | closed with 1009 |
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kubeproof_reference_server::Server;
//!
//! let server = Server::builder()
//!     .tls()
//!     .user("jane-token", "jane", &["developers"])
//!     .manifest("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
//!     .start()
//!     .await?;
//! assert!(server.url().starts_with("https://127.0.0.1:"));
//! assert!(server.kubeconfig().contains("certificate-authority-data"));
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `kube`, [`Running`] has a method `client` that returns a `kube::Client`.

mod builder;
pub mod config;
mod front_end;
mod load;
pub mod node;
mod server;

pub use builder::ServerBuilder;
pub use config::{Config, Controllers};
pub use kubeproof_apiserver::config::disabled::{Capability, DisabledCapabilities};
pub use kubeproof_apiserver::config::{
    AdmissionPluginError, AdmissionPlugins, AuditMode, AuditOptions, AuditPolicy,
    AuthorizationMode, EtcdOptions, EtcdTls, KubernetesVersion, Limits, PolicyError, Rotation,
    ServiceAccountOptions, ServingCertificate, Storage, Tls, TokenFileError, TokenUser,
    UnknownVersion,
};
pub use kubeproof_apiserver::{SnapshotError, StorageError};
pub use kubeproof_faults::{Fault, Faults, Variation, Variations};
pub use kubeproof_kubelet as kubelet;
pub use load::{LoadError, Manifest};
#[cfg(feature = "kube")]
pub use server::ClientError;
pub use server::{Running, Server, StartError};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
