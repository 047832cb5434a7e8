//! Parses the subject of a request from its path alone.
//!
//! Authorization works on this, so it exists for every path, served or not.

use kubeproof_apimachinery::request::{ResourceInfo, decode};

/// The subject of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestInfo {
    /// A decoded non-resource path: discovery, health, documents.
    Path(String),
    /// A resource path. The resource may not exist.
    Resource(ResourceInfo),
}

impl RequestInfo {
    pub(crate) fn parse(path: &str) -> Self {
        ResourceInfo::parse(path).map_or_else(|| Self::Path(decode(path)), Self::Resource)
    }
}
