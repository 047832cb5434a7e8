//! Checks which cases would write outside of the allowed places, as far as their files show. Pure
//! functions.

use std::sync::Arc;

use kubeproof_cases::case::Case;
use kubeproof_cases::template::{Part, Template};

use super::pod::RunPod;
use super::subject::Subject;
use super::variables::base_values;
use super::{PlannedRun, RunNamespace, case_analysis};
use crate::cleanup::Collection;
use crate::event::SkipReason;
use crate::transport::write_policy::{WritePolicy, is_safe};
use crate::values::Values;

/// A placeholder for values that only the run determines. No object name contains it.
const UNKNOWN: &str = "*";

/// The suffix of groups that runs create.
const OWN_GROUPS: &str = ".kubeproof.dev";

/// The places that a run may write to.
pub(super) struct WriteBounds<'a> {
    pub(super) namespace: &'a RunNamespace,
    pub(super) write_policy: WritePolicy,
    pub(super) run: &'a str,
    pub(super) pod: &'a RunPod,
}

impl WriteBounds<'_> {
    /// Returns why a case must not run, or `None`.
    ///
    /// A case may delete whole collections only where all objects belong to the run. A selector is
    /// no protection, because the server under test may ignore it.
    pub(super) fn violation_by(
        &self,
        case: &Arc<Case>,
        subject: Option<&Arc<Subject>>,
    ) -> Option<SkipReason> {
        let planned = PlannedRun {
            case: Arc::clone(case),
            subject: subject.cloned(),
            protocol: None,
            name: UNKNOWN.to_owned(),
            skip: None,
        };
        let values = base_values(&planned, self.namespace.name(), self.run, self.pod);
        let writes = case_analysis::requests(&case.steps)
            .into_iter()
            .filter(|request| !is_safe(&request.method));
        let mut paths = writes.map(|request| (&request.method, known_part(&request.path, &values)));
        paths.find_map(|(method, path)| self.violation_at(method, &path))
    }

    fn violation_at(&self, method: &str, path: &str) -> Option<SkipReason> {
        if let Some(request) = self.write_policy.denial(method, path) {
            return Some(SkipReason::WriteDenied { request });
        }
        let empties = method == "DELETE" && !self.owns(path);
        empties.then(|| SkipReason::DeletesForeignObjects { path: path.to_owned() })
    }

    /// Reports whether a deletion addresses one object, or a collection of the run.
    fn owns(&self, path: &str) -> bool {
        let own_home = matches!(self.namespace, RunNamespace::Created(_));
        let Some(collection) = Collection::of(path) else {
            // The path may be anything.
            return own_home || !path.starts_with(UNKNOWN);
        };
        let in_own_namespace = collection.namespace.as_deref().is_some_and(|namespace| {
            namespace.starts_with(UNKNOWN) || (own_home && namespace == self.namespace.name())
        });
        in_own_namespace || collection.group.ends_with(OWN_GROUPS)
    }
}

/// Renders a template with placeholders for unknown values.
fn known_part(template: &Template, values: &Values) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Fill(_) | Part::Name(_) => UNKNOWN.to_owned(),
        Part::Variable(name) => {
            values.get(name).and_then(|value| value.as_str()).unwrap_or(UNKNOWN).to_owned()
        }
    };
    template.parts.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::an_object("/api/v1/namespaces/default/configmaps/*", true, true)]
    #[case::the_own_namespace(
        "/api/v1/namespaces/kubeproof-a1b2c3/configmaps?labelSelector=a",
        true,
        false
    )]
    #[case::one_of_a_case("/api/v1/namespaces/*-space/configmaps", true, true)]
    #[case::own_resources("/apis/a1b2c3.kubeproof.dev/v1/gauges", true, true)]
    #[case::another_namespace("/api/v1/namespaces/default/configmaps", false, false)]
    #[case::selected("/api/v1/namespaces/default/configmaps?labelSelector=a", false, false)]
    #[case::all_namespaces("/api/v1/configmaps", false, false)]
    #[case::namespaces("/api/v1/namespaces?dryRun=All", false, false)]
    #[case::cluster_scoped("/apis/example.com/v1/things", false, false)]
    #[case::known_to_the_run("*", true, false)]
    fn whole_collections_are_deleted_where_they_are_the_runs(
        #[case] path: &str,
        #[case] in_an_own_home: bool,
        #[case] in_a_borrowed_one: bool,
    ) {
        let pod = RunPod::new("a1b2c3", None);
        for (namespace, may) in [
            (RunNamespace::Created("kubeproof-a1b2c3".to_owned()), in_an_own_home),
            (RunNamespace::Existing("kubeproof-a1b2c3".to_owned()), in_a_borrowed_one),
        ] {
            let bounds = WriteBounds {
                namespace: &namespace,
                write_policy: WritePolicy::AllowAll,
                run: "a1b2c3",
                pod: &pod,
            };
            let crossed = bounds.violation_at("DELETE", path);
            assert_eq!(crossed.is_none(), may, "{namespace:?}: {crossed:?}");
            assert_eq!(bounds.violation_at("POST", path), None);
        }
    }
}
