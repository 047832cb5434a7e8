//! The resources that a run looks for where discovery has gaps. Pure functions.

use kubeproof_cases::case::{Case, ResourceName, Scope, SubjectSet};
use kubeproof_cases::{Catalogue, SubjectDefinition};

use super::subject::SubjectArgument;
use crate::capability::{Search, WantedResource};

const ADMISSION: &str = "admissionregistration.k8s.io";

/// Resources that probes use: name, group, kind, and whether they are namespaced. All have version
/// v1.
const OF_PROBES: [(&str, &str, &str, bool); 9] = [
    ("apiservices", "apiregistration.k8s.io", "APIService", false),
    ("customresourcedefinitions", "apiextensions.k8s.io", "CustomResourceDefinition", false),
    ("roles", "rbac.authorization.k8s.io", "Role", true),
    ("rolebindings", "rbac.authorization.k8s.io", "RoleBinding", true),
    ("validatingadmissionpolicies", ADMISSION, "ValidatingAdmissionPolicy", false),
    ("validatingadmissionpolicybindings", ADMISSION, "ValidatingAdmissionPolicyBinding", false),
    ("mutatingadmissionpolicies", ADMISSION, "MutatingAdmissionPolicy", false),
    ("mutatingadmissionpolicybindings", ADMISSION, "MutatingAdmissionPolicyBinding", false),
    ("validatingwebhookconfigurations", ADMISSION, "ValidatingWebhookConfiguration", false),
];

/// Returns the resources of the suite, of the cases and of the user.
pub(super) fn resources(
    catalogue: &Catalogue,
    cases: &[&Case],
    arguments: &[SubjectArgument],
) -> Vec<WantedResource> {
    let mut wanted: Vec<WantedResource> =
        arguments.iter().map(|argument| of_user(argument, &catalogue.subjects)).collect();
    // The run installs the other ones.
    let builtin = catalogue.subjects.iter().filter(|definition| definition.crd.is_none());
    wanted.extend(builtin.map(defined));
    wanted.extend(OF_PROBES.iter().map(|(resource, group, kind, namespaced)| WantedResource {
        kind: Some((*kind).to_owned()),
        namespaced: Some(*namespaced),
        ..unknown(ResourceName {
            resource: (*resource).to_owned(),
            version: "v1".to_owned(),
            group: (*group).to_owned(),
        })
    }));
    let is_installed =
        |name: &ResourceName| catalogue.subjects.iter().any(|definition| definition.name == *name);
    for case in cases {
        if let Some(SubjectSet::Named { names, .. }) =
            case.subject.as_ref().map(|filter| &filter.of)
        {
            let names = names.iter().filter(|name| !is_installed(name));
            wanted.extend(names.cloned().map(unknown));
        }
    }
    // Stable, so the most specific description comes first.
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    wanted.dedup_by(|later, first| later.name == first.name);
    wanted
}

fn of_user(argument: &SubjectArgument, definitions: &[SubjectDefinition]) -> WantedResource {
    let definition = definitions.iter().find(|definition| definition.name == argument.name);
    let wanted = definition.map_or_else(|| unknown(argument.name.clone()), defined);
    let kind = argument.kind.clone().or(wanted.kind);
    WantedResource { kind, search: Search::Named, ..wanted }
}

fn defined(definition: &SubjectDefinition) -> WantedResource {
    WantedResource {
        name: definition.name.clone(),
        kind: Some(definition.kind.clone()),
        namespaced: Some(definition.scope == Scope::Namespaced),
        has_status: definition.status.is_some(),
        search: if definition.standard { Search::Always } else { Search::InGaps },
    }
}

fn unknown(name: ResourceName) -> WantedResource {
    WantedResource { name, kind: None, namespaced: None, has_status: false, search: Search::InGaps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_decides_which_resources_are_searched_for() {
        let catalogue = Catalogue::embedded().unwrap();
        let cases: Vec<&Case> = catalogue.cases.iter().collect();
        let arguments: Vec<SubjectArgument> =
            ["v1/configmaps", "example.org/v1/things"].map(|text| text.parse().unwrap()).to_vec();
        let wanted = resources(&catalogue, &cases, &arguments);
        let only = |name: &str| {
            let mut found = wanted.iter().filter(|wanted| wanted.name.to_string() == name);
            let only = found.next().unwrap_or_else(|| panic!("{name} is wanted"));
            assert!(found.next().is_none(), "{name} is wanted once");
            only
        };
        let config_maps = only("configmaps.v1");
        assert_eq!(config_maps.search, Search::Named);
        assert_eq!(config_maps.kind.as_deref(), Some("ConfigMap"));
        assert_eq!(only("things.v1.example.org").search, Search::Named);
        assert_eq!(only("secrets.v1").search, Search::Always);
        assert_eq!(only("namespaces.v1").namespaced, Some(false));
        assert_eq!(only("roles.v1.rbac.authorization.k8s.io").search, Search::InGaps);
        // The run installs this one.
        assert!(wanted.iter().all(|wanted| wanted.name.resource != "widgets"));
    }
}
