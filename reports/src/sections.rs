//! Links to sections of the API conventions.

pub(crate) const DOCUMENT: &str = concat!(
    "https://github.com/kubernetes/community/blob/master/",
    "contributors/devel/sig-architecture/api-conventions.md"
);

/// Returns the URL of a section. Returns `None` if it is not a section of the conventions:
/// requirements of users have sections of their own.
///
/// The section is a heading, with its parent where the heading alone is unclear: `Objects /
/// Metadata`. GitHub shows the head edition. So a requirement that the head edition lacks links to
/// the document without an anchor.
pub(crate) fn url(section: &str, is_in_head: bool) -> Option<String> {
    let heading = section.rsplit(" / ").next().unwrap_or(section);
    if WITHOUT_HEADING.contains(&heading) {
        Some(DOCUMENT.to_owned())
    } else if !HEADINGS.contains(&heading) {
        None
    } else if is_in_head {
        Some(format!("{DOCUMENT}#{}", slug(heading)))
    } else {
        Some(DOCUMENT.to_owned())
    }
}

/// Returns the anchor that GitHub gives to a heading: lower-case letters, digits, hyphens and
/// underscores. Spaces become hyphens, and other characters are removed.
fn slug(heading: &str) -> String {
    let characters = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    characters.collect()
}

/// Sections of requirements that have no heading in the head edition.
const WITHOUT_HEADING: [&str; 2] = ["Introduction", "(removed after v1.0)"];

/// The headings of the head edition.
const HEADINGS: [&str; 68] = [
    "Types (Kinds)",
    "Resources",
    "Objects",
    "Metadata",
    "Spec and Status",
    "Typical status properties",
    "References to related objects",
    "Lists of named subobjects preferred over maps",
    "Primitive types",
    "Constants",
    "Unions",
    "Lists and Simple kinds",
    "Differing Representations",
    "Verbs on Resources",
    "PATCH operations",
    "Short-names and Categories",
    "Short-names",
    "Categories",
    "Idempotency",
    "Optional vs. Required",
    "Serialization of optional/required fields",
    "Serialization of custom resources",
    "Nullable",
    "Defaulting",
    "Static Defaults",
    "Admission Controlled Defaults",
    "Controller-Assigned Defaults (aka Late Initialization)",
    "What May Be Defaulted",
    "Considerations For PUT Operations",
    "Concurrency Control and Consistency",
    "Serialization Format",
    "Units",
    "Selecting Fields",
    "Object references",
    "Naming of the reference field",
    "Referencing resources with multiple versions",
    "Handling of resources that do not exist",
    "Validation of fields",
    "Do not modify the referred object",
    "Minimize copying or printing values to the referrer object",
    "Object References Examples",
    "Single resource reference",
    "Multiple resource reference",
    "Generic object reference",
    "Field reference",
    "HTTP Status codes",
    "Success codes",
    "Error codes",
    "Response Status Kind",
    "Events",
    "Naming conventions",
    "Namespace Names",
    "Label, selector, and annotation conventions",
    "WebSockets and SPDY",
    "Validation",
    "Requiredness",
    "Type-specific validation guidelines",
    "String fields",
    "Numeric fields",
    "List fields",
    "Map fields",
    "Error messages",
    "Automatic Resource Allocation And Deallocation",
    "Representing Allocated Values",
    "When to use a `spec` field",
    "When to use a `status` field",
    "Sequencing operations",
    "When to use a different type",
];

#[cfg(test)]
mod tests {
    use kubeproof_cases::case::Edition;

    use super::*;

    #[test]
    fn a_heading_becomes_the_anchor_of_github() {
        let anchors = [
            ("Types (Kinds)", "types-kinds"),
            ("Objects / Metadata", "metadata"),
            (
                "Label, selector, and annotation conventions",
                "label-selector-and-annotation-conventions",
            ),
            (
                "Optional vs. Required / Serialization of optional/required fields",
                "serialization-of-optionalrequired-fields",
            ),
            (
                "Defaulting / Controller-Assigned Defaults (aka Late Initialization)",
                "controller-assigned-defaults-aka-late-initialization",
            ),
        ];
        for (section, anchor) in anchors {
            let url = url(section, true).expect("a section of the conventions");
            assert_eq!(url.strip_prefix(DOCUMENT), Some(format!("#{anchor}").as_str()));
        }
    }

    #[test]
    fn only_sections_of_the_head_edition_have_an_anchor() {
        assert_eq!(url("Idempotency", false).as_deref(), Some(DOCUMENT));
        assert_eq!(url("Introduction", true).as_deref(), Some(DOCUMENT));
        assert_eq!(url("Rules of our company", true), None);
    }

    #[test]
    fn each_requirement_of_the_catalogue_has_a_link() {
        let catalogue = kubeproof_cases::Loader::embedded().load().expect("the catalogue");
        for requirement in &catalogue.requirements {
            let is_in_head = requirement.editions.contains(&Edition::Head);
            let url = url(&requirement.section, is_in_head);
            let url = url.unwrap_or_else(|| panic!("{}: {}", requirement.id, requirement.section));
            let has_anchor = is_in_head && requirement.section != "Introduction";
            assert_eq!(url.contains('#'), has_anchor, "{}: {url}", requirement.id);
        }
    }
}
