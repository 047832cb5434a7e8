//! The audit log: which user did what, in the format `audit.k8s.io/v1` of Kubernetes.
//!
//! A policy decides how much of a request the log contains. Each request has a [`Trail`], which
//! writes one event for each stage. The server writes an event before it sends the response.

mod policy;
mod trail;

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub(crate) use self::trail::{Origin, Outcome, Trail};
use crate::config::audit::{AuditOptions, AuditPolicy};

/// The path of the standard output.
const STANDARD_OUTPUT: &str = "-";

/// The reason why there is no audit log.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit log {}: {source}", path.display())]
pub struct AuditError {
    path: PathBuf,
    source: io::Error,
}

/// A policy with the place that its events go to.
pub(crate) struct AuditLog {
    policy: AuditPolicy,
    sink: Mutex<Box<dyn Write + Send>>,
    events: AtomicU64,
}

impl AuditLog {
    /// Opens the log.
    pub(crate) fn open(options: &AuditOptions) -> Result<Arc<Self>, AuditError> {
        let sink = sink(&options.path)
            .map_err(|source| AuditError { path: options.path.clone(), source })?;
        let (policy, sink) = (options.policy.clone(), Mutex::new(sink));
        Ok(Arc::new(Self { policy, sink, events: AtomicU64::new(0) }))
    }

    /// Begins the trail of a request, unless the policy leaves the request out.
    pub(crate) fn begin(self: &Arc<Self>, origin: &Origin<'_>) -> Option<Trail> {
        let scope = self.policy.scope(origin)?;
        Some(Trail::begin(Arc::clone(self), scope, origin))
    }

    /// Returns the number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    fn write(&self, event: &Value) {
        self.events.fetch_add(1, Ordering::Relaxed);
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests go on without a log, as in kube-apiserver.
        let _ = writeln!(sink, "{event}").and_then(|()| sink.flush());
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("policy", &self.policy).finish_non_exhaustive()
    }
}

fn sink(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    if path.as_os_str() == STANDARD_OUTPUT {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(OpenOptions::new().create(true).append(true).open(path)?))
}
