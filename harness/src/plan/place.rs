//! Where generated tests run: the namespace, the resources and the installed definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Capability, ResourceName};
use tokio::time::Instant;

use super::adoption::adopt;
use super::subject::{Subject, SubjectArgument, filled};
use super::subjects::ResolvedSubjects;
use super::{
    Install, PlanError, RunNamespace, RunOptions, install_of, require_namespace, run_id,
    run_namespace, user_subjects, wanted,
};
use crate::capability::{Capabilities, ProbeOptions, Requester};
use crate::event::SkipReason;
use crate::transport::Client;

/// The place of a generated test. Unlike a [`Plan`](super::Plan), it has no cases.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The id of the run.
    pub(crate) run: String,
    /// The namespace for objects.
    pub(crate) namespace: RunNamespace,
    /// The resources to test.
    pub(crate) subjects: Vec<Arc<Subject>>,
    /// Selected resources that the target does not serve, with the reason.
    pub(crate) absent: Vec<(String, SkipReason)>,
    /// Resources to install first.
    pub(crate) installs: Vec<Install>,
    pub(crate) capabilities: Capabilities,
}

/// Finds the place of a generated test: the resources of `--subject`, or else those of the suite
/// with these names.
pub(crate) async fn place(
    catalogue: &Catalogue,
    client: &Client,
    options: &RunOptions,
    usual: &[&str],
    needs: &[Capability],
) -> Result<Place, PlanError> {
    let run = options.id.clone().unwrap_or_else(|| run_id(options.seed));
    let own_namespace = format!("kubeproof-{run}");
    let probe = catalogue.subjects.iter().find_map(|definition| {
        let group = format!("probe-{run}.{}", definition.name.group);
        Some(filled(definition.crd.as_ref()?, "group", &group))
    });
    let mut all_needs: BTreeSet<Capability> = needs.iter().copied().collect();
    all_needs.extend([Capability::Namespaces, Capability::Crds]);
    let probe_options = ProbeOptions {
        pod_image: None,
        jobs: options.jobs,
        needs: all_needs,
        wanted: wanted::resources(catalogue, &[], &options.subjects),
        write_policy: options.write_policy(),
        plans_only: false,
        namespace: options.namespace.as_deref(),
        probe_name: &format!("{own_namespace}-probe"),
        crd: probe.as_ref(),
    };
    let deadline = Instant::now() + options.case_timeout;
    let capabilities = Capabilities::discover(client, &probe_options, deadline).await?;
    let requester = Requester { client, deadline };
    require_namespace(&requester, &capabilities, options).await?;

    let (mut subjects, absent) = resolve(catalogue, &capabilities, options, &run, usual)?;
    let probe_options = &ProbeOptions { namespace: Some(&capabilities.home), ..probe_options };
    if subjects.is_empty() && options.subjects.is_empty() {
        let adopted = adopt(&requester, &capabilities.resources, probe_options).await;
        subjects.extend(adopted.into_iter().map(Arc::new));
    }
    user_subjects::check_kinds(&subjects, &options.subjects)?;
    let installs = catalogue.subjects.iter().filter_map(|definition| {
        let subject = subjects.iter().find(|subject| subject.name == definition.name)?;
        install_of(definition, subject)
    });
    let installs = installs.collect();
    let namespace = run_namespace(&capabilities, options, own_namespace);
    Ok(Place { run, namespace, subjects, absent, installs, capabilities })
}

/// The resources to test, and the selected ones that the target lacks.
type Resolved = (Vec<Arc<Subject>>, Vec<(String, SkipReason)>);

fn resolve(
    catalogue: &Catalogue,
    capabilities: &Capabilities,
    options: &RunOptions,
    run: &str,
    usual: &[&str],
) -> Result<Resolved, PlanError> {
    // The run installs the custom resources of the suite, so discovery does not list them.
    let is_own = |argument: &SubjectArgument| {
        let mut own = catalogue.subjects.iter().filter(|definition| definition.crd.is_some());
        own.any(|definition| definition.name == argument.name)
    };
    let (own, others): (Vec<_>, Vec<_>) = options.subjects.iter().cloned().partition(is_own);
    let of_server = RunOptions { subjects: others.clone(), ..options.clone() };
    let mut resolved = ResolvedSubjects::new(&catalogue.subjects, capabilities, &of_server, run)?;
    let is_given = |subject: &&Arc<Subject>| others.iter().any(|one| one.name == subject.name);
    let mut subjects: Vec<_> = resolved.subjects.iter().filter(is_given).cloned().collect();
    let mut absent = Vec::new();
    let usual = usual.iter().filter_map(|name| Some(name.parse::<SubjectArgument>().ok()?.name));
    let named: Vec<ResourceName> = match options.subjects.as_slice() {
        [] => usual.collect(),
        _ => own.into_iter().map(|argument| argument.name).collect(),
    };
    for name in named {
        match resolved.named(&name) {
            Ok(subject) => subjects.push(subject),
            Err(why) => absent.push((name.to_string(), why)),
        }
    }
    Ok((subjects, absent))
}
