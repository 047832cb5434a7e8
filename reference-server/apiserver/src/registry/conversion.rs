//! The versions of a custom resource whose objects a webhook converts.

use std::sync::{Arc, OnceLock};

use kubeproof_storage::Stored;

use super::ResourceType;
use super::crd::webhook::Webhook;
use crate::http::client::Client;

/// The conversion of a custom resource by a webhook.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub(crate) webhook: Webhook,
    /// The client of the webhook, which the first conversion creates.
    pub(crate) client: OnceLock<Arc<Client>>,
    /// All versions, also those that are not served.
    pub(super) versions: Vec<Arc<ResourceType>>,
    /// The version of new objects.
    pub(crate) storage: Arc<ResourceType>,
}

impl Conversion {
    /// Returns the version in which an object is stored.
    pub(super) fn version_of(&self, stored: &Stored) -> Option<&Arc<ResourceType>> {
        self.versions.iter().find(|ty| stored.object().starts_with(ty.head.as_bytes()))
    }
}
