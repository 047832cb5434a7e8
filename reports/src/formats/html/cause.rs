//! Causes as the page shows them.

use std::collections::BTreeMap;

use super::anchor;
use super::result::{CheckView, ExchangeView, RuleView};
use crate::causes::Cause;
use crate::document::Record;
use crate::paint::verdict_name;
use crate::requirements::Requirements;
use crate::site::case_url;
use crate::text::printable;
use kubeproof_cases::plural;

/// Why results fail.
pub(super) struct CauseView {
    pub(super) verdict: &'static str,
    pub(super) title: String,
    /// How much it affects.
    pub(super) weight: String,
    pub(super) open: bool,
    pub(super) example: Link,
    pub(super) summary: Option<String>,
    pub(super) explain: String,
    /// The URL of the page of the example case.
    pub(super) page: Option<String>,
    pub(super) check: Option<CheckView>,
    /// The exchanges of a case that ended before its first check.
    pub(super) exchanges: Vec<ExchangeView>,
    pub(super) rules: Vec<RuleView>,
    pub(super) affected: Vec<CaseLinks>,
    pub(super) affects: String,
    pub(super) blocked: Vec<CaseLinks>,
    pub(super) blocks: String,
}

/// Links to the results of a case.
pub(super) struct CaseLinks {
    pub(super) case: String,
    pub(super) links: Vec<Link>,
}

/// A link to a result.
pub(super) struct Link {
    pub(super) anchor: String,
    pub(super) text: String,
}

impl CauseView {
    /// Returns all causes. The first one is open.
    pub(super) fn all(causes: &[Cause<'_>], requirements: &Requirements) -> Vec<Self> {
        let views = causes.iter().enumerate();
        views.map(|(at, cause)| Self::new(cause, at == 0, requirements)).collect()
    }

    fn new(cause: &Cause<'_>, open: bool, requirements: &Requirements) -> Self {
        let (example, results) = (cause.example, plural(cause.results.len(), "result"));
        let last = example.exchanges.last().filter(|_| cause.check.is_none());
        let rules = cause.requirement().map(|id| RuleView::new(id, example, requirements));
        let blocks = plural(cause.blocked.len(), "result");
        let weight = match cause.blocked.len() {
            0 => results.clone(),
            count => format!("{results}, blocks {count}"),
        };
        Self {
            verdict: verdict_name(cause.verdict),
            title: printable(&cause.title),
            weight,
            open,
            example: Link { anchor: anchor(example), text: printable(&example.title()) },
            summary: Some(printable(&example.summary)).filter(|rule| !cause.title.ends_with(rule)),
            explain: example.id.clone(),
            page: case_url(&example.id),
            check: cause.check.map(|check| CheckView::new(check, example)),
            exchanges: last.into_iter().map(ExchangeView::new).collect(),
            rules: rules.into_iter().collect(),
            affected: links(&cause.results),
            affects: results,
            blocked: links(&cause.blocked),
            blocks,
        }
    }
}

fn links(records: &[&Record]) -> Vec<CaseLinks> {
    let mut cases: BTreeMap<&str, Vec<Link>> = BTreeMap::new();
    for record in records {
        let links = cases.entry(&record.id).or_default();
        let anchor = anchor(record);
        if links.iter().all(|link| link.anchor != anchor) {
            let text = if record.subject.is_empty() { "result" } else { &record.subject };
            links.push(Link { anchor, text: printable(text) });
        }
    }
    cases.into_iter().map(|(case, links)| CaseLinks { case: printable(case), links }).collect()
}
