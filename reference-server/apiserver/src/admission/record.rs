//! What admission reports about a request besides its decision.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::resource_quota::Charges;
use crate::audit::Trail;

/// The warnings for the client, the usage that was added to quotas, and the trail in the audit
/// log.
///
/// A rejected request has them, too.
#[derive(Debug, Default)]
pub(crate) struct Record {
    contents: Mutex<Contents>,
    charges: Mutex<Charges>,
    trail: OnceLock<Trail>,
}

#[derive(Debug, Default)]
struct Contents {
    warnings: Vec<String>,
}

impl Record {
    /// Adds a warning, which the response contains as a header. Equal warnings count once.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        let (mut contents, text) = (self.contents(), text.into());
        if !contents.warnings.contains(&text) {
            contents.warnings.push(text);
        }
    }

    /// Adds an annotation for the audit log. As in kube-apiserver, the first value of a key stays.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(trail) = self.trail.get() {
            trail.annotate(&key.into(), &value.into());
        }
    }

    /// Returns the warnings so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.contents().warnings.clone()
    }

    /// Sets the trail of the request in the audit log, once.
    pub(crate) fn set_trail(&self, trail: Trail) {
        // A request is dispatched once.
        let _ = self.trail.set(trail);
    }

    /// Returns the trail of the request in the audit log, if it has one.
    pub(crate) fn trail(&self) -> Option<&Trail> {
        self.trail.get()
    }

    /// Returns what the request added to quotas.
    pub(crate) fn charges(&self) -> MutexGuard<'_, Charges> {
        self.charges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
