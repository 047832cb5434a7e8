//! Links to the site of the project, which has a page for each area of cases.

use kubeproof_cases::is_embedded_case;

/// The address of the site, without a slash at the end.
pub const SITE: &str = env!("CARGO_PKG_HOMEPAGE");

/// Returns the URL of a case on the site. Returns `None` for the cases of users.
///
/// `kubeproof case-pages` writes the page of an area, with the name of the case as the anchor.
pub fn case_url(id: &str) -> Option<String> {
    let (area, name) = id.split_once('/')?;
    is_embedded_case(id).then(|| format!("{SITE}/cases/{area}.html#{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_embedded_cases_have_a_page() {
        let url = case_url("create/taken-name-rejected").expect("an embedded case");
        assert_eq!(url.strip_prefix(SITE), Some("/cases/create.html#taken-name-rejected"));
        for id in ["ours/can-be-listed", "create/no-such-case", "subjects/configmaps", "faults"] {
            assert_eq!(case_url(id), None, "{id}");
        }
    }
}
