//! Finds the definition of a kind.

use crate::schema::definitions::{Definition, Definitions};

/// The prefix of the types that all API groups share.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The prefix of the types of aggregated discovery, which no published kind names.
const DISCOVERY: &str = "io.k8s.api.apidiscovery.";

/// Returns whether the kind has a protobuf encoding.
pub fn is_known(definitions: &Definitions, api_version: &str, kind: &str) -> bool {
    find(definitions, api_version, kind).is_some()
}

/// Returns the definition of a kind.
pub(super) fn find<'d>(
    definitions: &'d Definitions,
    api_version: &str,
    kind: &str,
) -> Option<&'d Definition> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    definitions.kind(group, version, kind).or_else(|| {
        // Options are kinds of all groups. PartialObjectMetadata has a group of its own.
        let shared = kind.ends_with("Options")
            || matches!((group, version), ("meta.k8s.io", _) | ("", "" | "v1"));
        let name = match group {
            "apidiscovery.k8s.io" => format!("{DISCOVERY}{version}.{kind}"),
            _ if shared => format!("{META}{kind}"),
            _ => return None,
        };
        let definition = definitions.get(&name)?;
        definition.field("kind").map(|_| definition)
    })
}
