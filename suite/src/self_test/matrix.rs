//! The matrix on paper: what the cases claim to catch, held against what each fault breaks.
//!
//! That a case catches a fault proves little by itself: a server whose every answer is wrong fails every case. So it is
//! written down, apart from the cases, which requirements a fault breaks (`cases/data/faults.yaml`), and a case may claim
//! those faults alone that break a requirement which it names. Nothing here talks to a server; that the claims are true is
//! shown by [`super::faults`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_reference_server::Fault;

use super::faults::Finding;

/// What is wrong about the case files themselves, whatever a server answers.
pub fn on_paper(catalogue: &Catalogue) -> BTreeSet<Finding> {
    let mut findings = BTreeSet::new();
    let mut proven = BTreeSet::new();
    for case in &catalogue.cases {
        let id = || case.id.clone();
        if case.catches.is_empty() {
            findings.insert(Finding::CatchesNothing(id()));
        }
        for name in &case.catches {
            let Some(fault) = Fault::from_name(name) else {
                findings.insert(Finding::Unknown { case: id(), fault: name.clone() });
                continue;
            };
            let shared = shared(catalogue, case, name);
            if shared.is_empty() {
                findings.insert(Finding::Beside { case: id(), fault: fault.name() });
            }
            proven.extend(shared);
        }
    }
    let told = |fault: &&'static str| catalogue.breakage.of(fault).is_empty();
    findings.extend(Fault::all().map(Fault::name).filter(told).map(Finding::Unexplained));
    let named: BTreeSet<&str> =
        catalogue.cases.iter().flat_map(|case| &case.requirements).map(String::as_str).collect();
    findings.extend(named.difference(&proven).map(|id| Finding::Unbroken((*id).to_owned())));
    findings
}

/// The requirements that a case names and a fault breaks.
fn shared<'a>(catalogue: &'a Catalogue, case: &Case, fault: &str) -> Vec<&'a str> {
    let broken = catalogue.breakage.of(fault).iter();
    broken.filter(|broken| case.requirements.contains(broken)).map(String::as_str).collect()
}

/// The matrix as a document: each fault with what it breaks and who catches it, each requirement, each case.
pub fn document(catalogue: &Catalogue) -> String {
    let mut catchers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut breakers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in &catalogue.cases {
        for fault in &case.catches {
            catchers.entry(fault).or_default().push(&case.id);
            for requirement in shared(catalogue, case, fault) {
                breakers.entry(requirement).or_default().insert(fault);
            }
        }
    }
    let none = Vec::new();
    let faults = Fault::all().map(|fault| {
        let name = fault.name();
        let broken = catalogue.breakage.of(name);
        [code([name]), cell(fault.summary()), code(broken), code(catchers.get(name).unwrap_or(&none))]
    });
    let requirements = catalogue.requirements.iter().filter_map(|requirement| {
        let faults = breakers.get(requirement.id.as_str())?;
        Some([code([&requirement.id]), cell(&requirement.statement), code(faults)])
    });
    let cases =
        catalogue.cases.iter().map(|case| [code([&case.id]), cell(&case.summary), code(&case.catches)]);
    let mut text = HEAD.to_owned();
    table(&mut text, "By fault", ["fault", "what the server does", "what it breaks", "caught by"], faults);
    table(&mut text, "By requirement", ["requirement", "what it asks for", "broken by"], requirements);
    table(&mut text, "By case", ["case", "what a correct server does", "catches"], cases);
    text
}

const HEAD: &str = "\
# Faults and the cases that catch them

Written by `KUBEPROOF_BLESS=1 cargo test -p kubeproof --test faults`, which also proves each line: every fault is switched
on, and every case that is named beside it fails. `kubeproof self-test faults` does the same without a checkout, and with
`--full` shows what else a fault makes fail.

What a fault breaks is judged from the fault and the requirement alone (`data/faults.yaml`); the requirements that have no
case, and why, are told by `kubeproof coverage`.
";

fn table<const N: usize>(
    text: &mut String,
    title: &str,
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {title}\n\n| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// Names, each as code.
fn code<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(" ")
}

/// A sentence on one line, in which nothing is markup.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}
