//! The audit log: which user did what, in the format `audit.k8s.io/v1` of Kubernetes.
//!
//! A policy decides how much of a request the log contains. Each request has a [`Trail`], which
//! writes one event for each stage. The server writes an event before it sends the response.

mod file;
mod policy;
mod sink;
mod trail;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use self::sink::Sink;
pub(crate) use self::trail::{AUDIT_ID, Origin, Outcome, Trail, identify};
use crate::config::audit::{AuditMode, AuditOptions, AuditPolicy};

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
    sink: Sink,
    /// A request fails if its first event cannot be written.
    is_strict: bool,
    events: AtomicU64,
    /// The events that the log does not have.
    lost: AtomicU64,
}

impl AuditLog {
    /// Opens the log.
    pub(crate) fn open(options: &AuditOptions) -> Result<Arc<Self>, AuditError> {
        let sink = Sink::open(options)
            .map_err(|source| AuditError { path: options.path.clone(), source })?;
        Ok(Arc::new(Self {
            policy: options.policy.clone(),
            sink,
            is_strict: options.mode == AuditMode::BlockingStrict,
            events: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }

    /// Begins the trail of a request, unless the policy leaves the request out.
    pub(crate) fn begin(self: &Arc<Self>, origin: &Origin<'_>) -> Result<Option<Trail>, ApiError> {
        let Some(scope) = self.policy.scope(origin) else { return Ok(None) };
        let (trail, is_written) = Trail::begin(Arc::clone(self), scope, origin);
        if self.is_strict && !is_written {
            return Err(ApiError::internal("failed to store audit event".to_owned()));
        }
        Ok(Some(trail))
    }

    /// Returns the number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Returns the number of events that the log does not have.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes an event. Returns whether the log has it, or will have it.
    fn write(&self, event: &Value) -> bool {
        self.events.fetch_add(1, Ordering::Relaxed);
        let is_written = self.sink.write(format!("{event}\n"));
        if !is_written {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        is_written
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("policy", &self.policy).finish_non_exhaustive()
    }
}
