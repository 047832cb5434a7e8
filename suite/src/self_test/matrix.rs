//! The matrix on paper: what the cases claim to catch, held against what each fault breaks.
//!
//! That a case catches a fault proves little by itself: a server whose every answer is wrong fails every case. So it is written down, apart
//! from the cases, which requirements a fault breaks (`cases/data/faults.yaml`), and a claim counts only for those that the
//! case names too. Nothing here talks to a server; that the claims are true is shown by [`super::faults`].

use std::collections::BTreeSet;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_reference_server::Fault;

use super::faults::Finding;

/// What is wrong about the case files themselves, whatever a server answers.
pub fn on_paper(catalogue: &Catalogue) -> BTreeSet<Finding> {
    let mut findings = BTreeSet::new();
    for case in &catalogue.cases {
        if case.catches.is_empty() {
            findings.insert(Finding::CatchesNothing(case.id.clone()));
        }
        for fault in case.catches.iter().filter(|fault| Fault::from_name(fault).is_none()) {
            findings.insert(Finding::Unknown { case: case.id.clone(), fault: fault.clone() });
        }
    }
    for fault in Fault::all().map(Fault::name) {
        let claims = claims(catalogue, fault);
        if catalogue.breakage.of(fault).is_empty() {
            findings.insert(Finding::Unexplained(fault));
        } else if !claims.is_empty() && claims.iter().all(|case| proven(catalogue, case, fault).is_empty()) {
            findings.insert(Finding::CaughtBeside(fault));
        }
    }
    findings
}

/// The cases that say they catch a fault.
fn claims<'a>(catalogue: &'a Catalogue, fault: &str) -> Vec<&'a Case> {
    catalogue.cases.iter().filter(|case| case.catches.iter().any(|name| name == fault)).collect()
}

/// The requirements that a case names and a fault breaks.
fn proven<'a>(catalogue: &'a Catalogue, case: &Case, fault: &str) -> Vec<&'a str> {
    let broken = catalogue.breakage.of(fault).iter();
    broken.filter(|broken| case.requirements.contains(broken)).map(String::as_str).collect()
}
