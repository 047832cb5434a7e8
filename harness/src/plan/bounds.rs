//! What a case would write where it must not, as far as its file tells. Pure.

use std::sync::Arc;

use kubeproof_cases::case::Case;
use kubeproof_cases::template::{Part, Template};

use super::{Home, PlannedRun, survey};
use crate::cleanup::Collection;
use crate::fence::{Fence, is_safe};
use crate::run::{RunPod, base_values};
use crate::subject::Subject;
use crate::values::Values;

/// Stands for what only the run knows. No name of an object holds it.
const UNKNOWN: &str = "*";

/// What the groups of definitions that runs make end with.
const OWN_GROUPS: &str = ".kubeproof.dev";

/// The places of a run.
pub(super) struct Bounds<'a> {
    pub(super) home: &'a Home,
    pub(super) fence: Fence,
    pub(super) run: &'a str,
    pub(super) pod: &'a RunPod,
}

impl Bounds<'_> {
    /// Why a case is not to run; `None`: it keeps within bounds. Whole collections are deleted only where everything in them is
    /// the run's: a selector in the request is for the server to follow, and whether it does is what is being tested.
    pub(super) fn crossed_by(&self, case: &Arc<Case>, subject: Option<&Arc<Subject>>) -> Option<String> {
        let planned = PlannedRun {
            case: Arc::clone(case),
            subject: subject.cloned(),
            protocol: None,
            name: UNKNOWN.to_owned(),
            skip: None,
        };
        let values = base_values(&planned, self.home.name(), self.run, self.pod);
        let writes = survey::requests(&case.steps).into_iter().filter(|request| !is_safe(&request.method));
        let mut paths = writes.map(|request| (&request.method, known_part(&request.path, &values)));
        paths.find_map(|(method, path)| self.crossed_to(method, &path))
    }

    fn crossed_to(&self, method: &str, path: &str) -> Option<String> {
        if let Some(reason) = self.fence.holds_back(method, path) {
            return Some(reason);
        }
        let empties = method == "DELETE" && !self.owns(path);
        empties.then(|| format!("it would delete all that is in {path}, not only its own"))
    }

    /// Whether what a deletion addresses is one object, or a collection of the run's own.
    fn owns(&self, path: &str) -> bool {
        let own_home = matches!(self.home, Home::Own(_));
        let Some(collection) = Collection::of(path) else {
            // A path that is known only to the run may be anything.
            return own_home || !path.starts_with(UNKNOWN);
        };
        let in_own_namespace = collection.namespace.as_deref().is_some_and(|namespace| {
            namespace.starts_with(UNKNOWN) || (own_home && namespace == self.home.name())
        });
        in_own_namespace || collection.group.ends_with(OWN_GROUPS)
    }
}

/// The template with what is known filled in.
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
    #[case::the_own_namespace("/api/v1/namespaces/kubeproof-a1b2c3/configmaps?labelSelector=a", true, false)]
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
        for (home, may) in [
            (Home::Own("kubeproof-a1b2c3".to_owned()), in_an_own_home),
            (Home::Borrowed("kubeproof-a1b2c3".to_owned()), in_a_borrowed_one),
        ] {
            let bounds = Bounds { home: &home, fence: Fence::Open, run: "a1b2c3", pod: &pod };
            let crossed = bounds.crossed_to("DELETE", path);
            assert_eq!(crossed.is_none(), may, "{home:?}: {crossed:?}");
            assert_eq!(bounds.crossed_to("POST", path), None);
        }
    }
}
