//! The namespace and the resources of a generated test, from their creation to their removal.

use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Capability;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capability::{Capabilities, outgoing};
use crate::cleanup::{Cleaner, Property, TimeLimits, Tracker};
use crate::explore::Ground;
use crate::plan::{Place, PlanError, RunNamespace, RunOptions, Subject, place};
use crate::run::setup;
use crate::transport::Client;

/// Time limits of the cleanup, as for the cases.
const CLEANUP: TimeLimits =
    TimeLimits { usual: Duration::from_mins(1), interrupted: Duration::from_secs(8) };

/// Why a generated test cannot run.
#[derive(Debug, thiserror::Error)]
pub enum GeneratedError {
    /// The target does not respond, or an option is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No selected resource can be tested.
    #[error("nothing ran: {0}")]
    NothingToTest(String),
    /// The namespace or a resource of the run cannot be created.
    #[error("{0}")]
    Setup(String),
    /// The server went away, or does not work well enough for a verdict.
    #[error("{0}")]
    Undecided(String),
    /// The restart command fails.
    #[error("the restart command {command:?} {problem}")]
    Restart {
        /// The command.
        command: String,
        /// What happened.
        problem: String,
    },
}

/// An open target with the namespace and the resources of a generated test.
#[derive(Debug)]
pub struct Session {
    pub(super) client: Client,
    pub(super) run: String,
    pub(super) namespace: String,
    pub(super) capabilities: Capabilities,
    pub(super) subjects: Vec<Arc<Subject>>,
    /// Facts for the user, such as resources that cannot be tested.
    pub notices: Vec<String>,
    pub(super) tracker: Tracker,
    cleaner: Cleaner,
}

impl Session {
    /// Finds the resources, and creates the namespace and the definitions that they need. `usual`
    /// names the resources that run without `--subject`, and `needs` what to probe. Returns `None`
    /// after an interrupt.
    pub(super) async fn open(
        catalogue: &Catalogue,
        client: &Client,
        options: &RunOptions,
        (usual, needs): (&[&str], &[Capability]),
        interrupt: &CancellationToken,
    ) -> Result<Option<Self>, GeneratedError> {
        let place = tokio::select! {
            place = place(catalogue, client, options, usual, needs) => place?,
            () = interrupt.cancelled() => return Ok(None),
        };
        let absent = place.absent.iter().map(|(name, why)| format!("{name}: {why}"));
        let absent: Vec<String> = absent.collect();
        if let RunNamespace::ReadOnly { reason, .. } = &place.namespace {
            return Err(GeneratedError::NothingToTest(reason.to_string()));
        }
        if place.subjects.is_empty() {
            return Err(GeneratedError::NothingToTest(absent.join("; ")));
        }
        let cleaner = Cleaner::start(client, property(&place));
        let Place { run, namespace, subjects, capabilities, .. } = place.clone();
        let session = Self {
            tracker: cleaner.tracker(),
            client: client.clone(),
            run,
            namespace: namespace.name().to_owned(),
            capabilities,
            subjects,
            notices: absent,
            cleaner,
        };
        match session.create(&place).await {
            Ok(()) => Ok(Some(session)),
            Err(message) => {
                session.close(interrupt).await;
                Err(GeneratedError::Setup(message))
            }
        }
    }

    async fn create(&self, place: &Place) -> Result<(), String> {
        let deadline = Instant::now() + setup::SERVE_TIMEOUT;
        if let RunNamespace::Created(name) = &place.namespace
            && let Some(failure) = setup::namespace(&self.client, name, deadline).await
        {
            return Err(failure.message().to_owned());
        }
        let outcome = setup::install(&self.client, &place.installs, deadline).await;
        match outcome.installs.values().next() {
            Some(failure) => Err(failure.message().to_owned()),
            None => Ok(()),
        }
    }

    /// Removes everything that the run created. Returns notices about objects that stay.
    pub async fn close(self, interrupt: &CancellationToken) -> Vec<String> {
        let Self { tracker, cleaner, .. } = self;
        drop(tracker);
        cleaner.finish(CLEANUP, interrupt).await
    }

    /// Returns where generated objects go. Their names begin with the prefix.
    pub(super) fn ground<'a>(&'a self, prefix: &'a str) -> Ground<'a> {
        Ground {
            client: &self.client,
            capabilities: &self.capabilities,
            namespace: &self.namespace,
            tracker: &self.tracker,
            prefix,
        }
    }

    /// Records an object that the run will create, for its removal.
    pub(super) fn track(&self, collection: &str, name: &str) {
        let body = json!({"metadata": {"name": name}});
        self.tracker.intend(&outgoing("POST", collection, "application/json", Some(&body)));
    }

    /// Returns the version of the server, if it reports one.
    pub fn server_version(&self) -> Option<&str> {
        self.capabilities.version.as_deref()
    }
}

fn property(place: &Place) -> Property {
    let created = match &place.namespace {
        RunNamespace::Created(name) => Some(name.clone()),
        RunNamespace::Existing(_) | RunNamespace::ReadOnly { .. } => None,
    };
    Property {
        namespace: created,
        groups: place.installs.iter().map(|install| install.group.clone()).collect(),
        definitions: place.installs.iter().map(|one| one.definition().to_owned()).collect(),
        keeps_failed: false,
    }
}
