//! What admission reports about a request besides its decision.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::resource_quota::Charges;

/// The warnings for the client, the usage that was added to quotas, and the annotations for an
/// audit log.
///
/// A rejected request has them, too.
#[derive(Debug, Default)]
pub(crate) struct Record {
    contents: Mutex<Contents>,
    charges: Mutex<Charges>,
}

#[derive(Debug, Default)]
struct Contents {
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
}

impl Record {
    /// Adds a warning, which the response contains as a header.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.contents().warnings.push(text.into());
    }

    /// Adds an annotation for the audit log. As in kube-apiserver, the first value of a key stays.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.contents().annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Returns the warnings so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.contents().warnings.clone()
    }

    #[expect(dead_code, reason = "the audit log reads them")]
    /// Returns the audit annotations so far.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        self.contents().annotations.clone()
    }

    /// Returns what the request added to quotas.
    pub(crate) fn charges(&self) -> MutexGuard<'_, Charges> {
        self.charges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
