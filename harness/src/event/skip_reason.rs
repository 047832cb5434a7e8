//! Reasons for skipped cases.

use kubeproof_cases::case::{Capability, ResourceName};
use kubeproof_cases::plural;
use kubeproof_cases::protocol::Protocol;

/// Why a case is skipped. [`Self::code`] is stable; the text is for readers.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SkipReason {
    /// The target lacks a capability.
    #[error("{detail}")]
    MissingCapability {
        /// The capability.
        capability: Capability,
        /// What discovery or the probe found.
        detail: String,
    },
    /// The server does not list a resource.
    #[error("the server does not serve {resource}")]
    ResourceNotServed {
        /// The resource.
        resource: ResourceName,
    },
    /// A resource does not list a verb.
    #[error("{resource} does not list the verb {verb}")]
    MissingVerb {
        /// The resource.
        resource: ResourceName,
        /// The verb.
        verb: String,
    },
    /// No resource lists a verb that a probe needs.
    #[error("no resource lists the verb {verb}")]
    NoResourceWithVerb {
        /// The verb.
        verb: String,
    },
    /// A resource has no such subresource.
    #[error("{resource} has no subresource {subresource}")]
    MissingSubresource {
        /// The resource.
        resource: ResourceName,
        /// The subresource.
        subresource: String,
    },
    /// The server removed a subresource from a definition of the run.
    #[error("the server dropped the subresource {subresource} from the definition of {resource}")]
    SubresourceDropped {
        /// The resource.
        resource: ResourceName,
        /// The subresource.
        subresource: String,
    },
    /// The server rejected a dry-run create.
    #[error("a dry-run create in {collection} is rejected: {response}")]
    CreateRejected {
        /// The path of the collection.
        collection: String,
        /// The response.
        response: String,
    },
    /// The case needs a subject of the other scope.
    #[error("{resource} is {}", if *namespaced { "namespaced" } else { "not namespaced" })]
    WrongScope {
        /// The resource.
        resource: ResourceName,
        /// Whether the resource is namespaced.
        namespaced: bool,
    },
    /// The suite has no patch that changes the desired state of the subject.
    #[error("no change of {resource} is defined")]
    NoChangeDefined {
        /// The resource.
        resource: ResourceName,
    },
    /// The suite has no status for the subject.
    #[error("no status of {resource} is defined")]
    NoStatusDefined {
        /// The resource.
        resource: ResourceName,
    },
    /// The case needs a resource of a named group.
    #[error("{resource} belongs to no named group")]
    InCoreGroup {
        /// The resource.
        resource: ResourceName,
    },
    /// The case writes in a run with `--read-only`.
    #[error("the case changes objects, which --read-only forbids")]
    ReadOnly,
    /// The case needs a resource that the options forbid to install.
    #[error("the run would have to install the resource, which {option} forbids{advice}")]
    InstallForbidden {
        /// The option.
        option: &'static str,
        /// The next step; empty for none.
        advice: &'static str,
    },
    /// The write policy denies a request of the case.
    #[error("{request}")]
    WriteDenied {
        /// The request, and the option that forbids it.
        request: String,
    },
    /// The case would delete a collection that may contain objects of others.
    #[error("the case would delete everything in {path}, not only objects of the run")]
    DeletesForeignObjects {
        /// The path of the collection.
        path: String,
    },
    /// The run has no namespace.
    #[error("{cause}; use --namespace to name an existing one")]
    NoNamespace {
        /// Why it cannot create one.
        cause: Box<SkipReason>,
    },
    /// No subject fits the case.
    #[error("{}", join(causes))]
    NoSubject {
        /// Why each candidate does not fit.
        causes: Vec<SkipReason>,
    },
    /// The target rejects the handshake of a protocol.
    #[error("the target does not support {protocol}: {response}")]
    ProtocolNotSupported {
        /// The protocol.
        protocol: Protocol,
        /// The response to the handshake.
        response: String,
    },
    /// The published schemas contain nothing to judge.
    #[error("{detail}")]
    NoSchema {
        /// What is missing.
        detail: String,
    },
    /// A prerequisite of the case failed in another case, which reports the failure.
    #[error("the feature {prerequisite} does not work; see {case}")]
    Blocked {
        /// What the case needs, such as `create` or `watch`.
        prerequisite: String,
        /// The case that judges the prerequisite.
        case: String,
    },
    /// The case met a defect that another case reports, and has nothing else to judge.
    #[error("{defect}, which {case} reports")]
    Reported {
        /// The defect in one line.
        defect: String,
        /// The case that reports it.
        case: String,
    },
    /// The server has nothing that the checks of the case judge.
    #[error("the server has nothing that the checks of the case judge")]
    NothingToJudge,
    /// The run stopped, because the server went away or hangs.
    #[error("the run stopped: {0}")]
    Stopped(String),
    /// The run reached the limit of `--max-fail`.
    #[error("the run has {} (--max-fail)", plural(*limit, "failure"))]
    FailureLimit {
        /// The limit.
        limit: usize,
    },
}

impl SkipReason {
    /// Returns the stable code, such as `missing-capability`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingCapability { .. } => "missing-capability",
            Self::ResourceNotServed { .. } => "resource-not-served",
            Self::MissingVerb { .. } => "missing-verb",
            Self::NoResourceWithVerb { .. } => "no-resource-with-verb",
            Self::MissingSubresource { .. } => "missing-subresource",
            Self::SubresourceDropped { .. } => "subresource-dropped",
            Self::CreateRejected { .. } => "create-rejected",
            Self::WrongScope { .. } => "wrong-scope",
            Self::NoChangeDefined { .. } => "no-change-defined",
            Self::NoStatusDefined { .. } => "no-status-defined",
            Self::InCoreGroup { .. } => "in-core-group",
            Self::ReadOnly => "read-only",
            Self::InstallForbidden { .. } => "install-forbidden",
            Self::WriteDenied { .. } => "write-denied",
            Self::DeletesForeignObjects { .. } => "deletes-foreign-objects",
            Self::NoNamespace { .. } => "no-namespace",
            Self::NoSubject { .. } => "no-subject",
            Self::ProtocolNotSupported { .. } => "protocol-not-supported",
            Self::NoSchema { .. } => "no-schema",
            Self::Blocked { .. } => "blocked",
            Self::Reported { .. } => "already-reported",
            Self::NothingToJudge => "nothing-to-judge",
            Self::Stopped(_) => "run-stopped",
            Self::FailureLimit { .. } => "failure-limit",
        }
    }

    /// Returns the underlying reasons: causes of a missing subject or namespace, else the reason.
    pub fn causes(&self) -> Vec<&Self> {
        match self {
            Self::NoSubject { causes } => causes.iter().flat_map(Self::causes).collect(),
            Self::NoNamespace { cause } => cause.causes(),
            other => vec![other],
        }
    }
}

fn join(causes: &[SkipReason]) -> String {
    if causes.is_empty() {
        return "the run has no subject".to_owned();
    }
    causes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_subject_lists_the_reasons_of_all_candidates() {
        let resource =
            ResourceName { resource: "pods".into(), version: "v1".into(), group: String::new() };
        let not_served = SkipReason::ResourceNotServed { resource };
        let no_namespace = SkipReason::NoNamespace { cause: Box::new(not_served.clone()) };
        let reason = SkipReason::NoSubject { causes: vec![no_namespace, SkipReason::ReadOnly] };
        assert_eq!(
            reason.to_string(),
            "the server does not serve pods.v1; use --namespace to name an existing one; \
             the case changes objects, which --read-only forbids"
        );
        assert_eq!(reason.causes(), [&not_served, &SkipReason::ReadOnly]);
        assert_eq!(SkipReason::NoSubject { causes: vec![] }.to_string(), "the run has no subject");
    }
}
