//! The Markdown of the pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_cases::requirements::Requirement;
use kubeproof_reference_server::Fault;

use crate::commands::explain::write_steps;
use crate::commands::report_files;
use crate::error::Error;

/// Returns the page that lists all cases, by area.
pub(super) fn index(areas: &BTreeMap<&str, Vec<&Case>>) -> String {
    let mut page = "# Cases\n\nEach area of cases has a page. It shows the rule of each case, an \
                    example from a correct server, and the\nfaults of the reference server that \
                    the case catches.\n"
        .to_owned();
    for (area, cases) in areas {
        _ = writeln!(page, "\n## {area}\n\n| case | level | rule |\n|---|---|---|");
        for case in cases {
            let name = name(case);
            let summary = escape(&case.summary);
            _ = writeln!(page, "| [{name}]({area}.md#{name}) | {} | {summary} |", case.level);
        }
    }
    page
}

/// Returns the page of an area. The heading of a case is its name, which is also its anchor.
pub(super) fn area(
    area: &str,
    cases: &[&Case],
    catalogue: &Catalogue,
    examples: &BTreeMap<String, String>,
) -> Result<String, Error> {
    let mut page = format!("# {area}\n");
    for case in cases {
        add_case(&mut page, case, catalogue)?;
        if let Some(example) = examples.get(&case.id) {
            add_block(&mut page, "Example of a correct server", example);
        }
    }
    Ok(page)
}

fn add_case(page: &mut String, case: &Case, catalogue: &Catalogue) -> Result<(), Error> {
    _ = writeln!(page, "\n## {}\n\n{} ({}).", name(case), escape(&case.summary), case.level);
    if let Some(why) = &case.why {
        _ = writeln!(page, "\n{}", escape(why.trim()));
    }
    let requirements = case.requirements.iter().filter_map(|id| catalogue.requirements.get(id));
    page.push_str("\n| requirement | level | text | section |\n|---|---|---|---|\n");
    for requirement in requirements {
        let Requirement { id, level, statement, .. } = requirement;
        let (statement, section) = (escape(statement), section(requirement));
        _ = writeln!(page, "| `{id}` | {level} | {statement} | {section} |");
    }
    if !case.catches.is_empty() {
        page.push_str("\nFaults that the case catches:\n\n");
        for fault in &case.catches {
            let summary = Fault::from_name(fault).map_or("", Fault::summary);
            _ = writeln!(page, "- `{fault}`: {}", escape(summary));
        }
    }
    let mut steps = Vec::new();
    write_steps(case, &mut steps)?;
    add_block(page, "Steps", &String::from_utf8_lossy(&steps));
    Ok(())
}

/// Returns the section of a requirement, as a link if it is a section of the conventions.
fn section(requirement: &Requirement) -> String {
    let section = escape(&requirement.section);
    let url = report_files::requirement(requirement).section_url();
    url.map_or(section.clone(), |url| format!("[{section}]({url})"))
}

/// Adds text that a reader can open. The fence is longer than any run of backticks in the text.
fn add_block(page: &mut String, title: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text = text.trim_end();
    _ = writeln!(
        page,
        "\n<details><summary>{title}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>"
    );
}

/// Returns the part of the id behind the area.
fn name(case: &Case) -> &str {
    case.id.split_once('/').map_or(&case.id, |(_, name)| name)
}

/// Escapes the characters that Markdown, its tables and HTML interpret, and joins the lines.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        if matches!(c, '\\' | '|' | '<' | '>' | '&' | '*' | '_' | '[' | ']' | '#' | '$' | '~') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_interpreted_as_markup() {
        assert_eq!(escape("a | <b>\n *c* _d_ `e`"), r"a \| \<b\> \*c\* \_d\_ `e`");
    }

    #[test]
    fn a_fence_is_longer_than_the_backticks_in_it() {
        let mut page = String::new();
        add_block(&mut page, "Steps", "a ``` b\n");
        assert!(page.contains("\n````text\na ``` b\n````\n"), "{page}");
    }
}
