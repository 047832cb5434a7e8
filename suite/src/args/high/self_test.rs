//! The options of `kubeproof self-test`.

use kubeproof::self_test::capabilities::MissingCapability;
use kubeproof::self_test::degraded::{DEGRADED, Degraded};
use kubeproof::self_test::faults::Breadth;
use kubeproof::self_test::modes::Mode;
use kubeproof::self_test::{explore, stress};
use kubeproof_harness::plan::Selection;
use kubeproof_reference_server::Fault;

use super::serve::faults;
use super::{CaseSelection, CatalogueSource};
use crate::args::low;
use crate::error::Error;

/// The options of `kubeproof self-test`.
pub(crate) struct SelfTest {
    pub(crate) catalogue: CatalogueSource,
    pub(crate) selection: Selection,
    /// Whether to print the matrix of faults and cases instead of running them.
    pub(crate) matrix: bool,
    pub(crate) faults: Option<FaultOptions>,
    /// The seeds of the variations. Empty if variations are not tested.
    pub(crate) seeds: Vec<u64>,
    /// The capabilities to disable. Empty if capabilities are not tested.
    pub(crate) capabilities: Vec<MissingCapability>,
    /// The modes to run the suite in. Empty if modes are not tested.
    pub(crate) modes: Vec<Mode>,
    /// The degraded servers to test. Empty if they are not tested.
    pub(crate) degraded: Vec<Degraded>,
    /// The faults that `kubeproof stress` must find. Empty if it is not tested.
    pub(crate) stress: Vec<Fault>,
    /// The faults that `kubeproof explore` must find. Empty if it is not tested.
    pub(crate) explore: Vec<Fault>,
}

/// The faults to test.
pub(crate) struct FaultOptions {
    pub(crate) faults: Vec<Fault>,
    /// `faults` are all faults. The command then checks the claims of all cases too.
    pub(crate) are_all: bool,
    pub(crate) breadth: Breadth,
    pub(crate) by_case: bool,
}

impl SelfTest {
    pub(super) fn resolve(test: low::SelfTest) -> Result<Self, Error> {
        let includes = |part| test.parts.is_empty() || test.parts.contains(&part);
        let faults =
            if includes(low::Part::Faults) { Some(FaultOptions::resolve(&test)?) } else { None };
        let seeds = match test.seed.as_slice() {
            _ if !includes(low::Part::Variations) => Vec::new(),
            [] => (1..=test.seeds).collect(),
            seeds => seeds.to_vec(),
        };
        let capabilities = if includes(low::Part::Capabilities) {
            capabilities(&test.capability)?
        } else {
            Vec::new()
        };
        let modes = if includes(low::Part::Modes) { modes(&test.mode)? } else { Vec::new() };
        let degraded =
            if includes(low::Part::Degraded) { degraded(&test.fault)? } else { Vec::new() };
        let found_by = |part, all: &[Fault]| {
            if includes(part) { generated(all, &test.fault) } else { Ok(Vec::new()) }
        };
        let stress = found_by(low::Part::Stress, &stress::FAULTS)?;
        let explore = found_by(low::Part::Explore, &explore::FAULTS)?;
        let selection = CaseSelection::resolve(&test.cases).selection;
        let catalogue = CatalogueSource::new(test.cases.directories);
        let matrix = test.matrix;
        Ok(Self {
            catalogue,
            selection,
            matrix,
            faults,
            seeds,
            capabilities,
            modes,
            degraded,
            stress,
            explore,
        })
    }
}

impl FaultOptions {
    fn resolve(test: &low::SelfTest) -> Result<Self, Error> {
        let are_all = test.fault.is_empty();
        Ok(Self {
            faults: if are_all { Fault::all().collect() } else { faults(&test.fault)? },
            are_all,
            breadth: if test.full { Breadth::Full } else { Breadth::Claimed },
            by_case: test.by_case,
        })
    }
}

/// Returns the degraded servers with these faults, or all of them. Names of other faults concern
/// other parts.
fn degraded(names: &[String]) -> Result<Vec<Degraded>, Error> {
    let chosen: Vec<Fault> = faults(names)?;
    let is_asked = |one: &&Degraded| names.is_empty() || chosen.contains(&one.fault);
    Ok(DEGRADED.iter().filter(is_asked).copied().collect())
}

/// Returns the faults of a generated test with these names, or all of them.
fn generated(all: &[Fault], names: &[String]) -> Result<Vec<Fault>, Error> {
    let chosen: Vec<Fault> = faults(names)?;
    let is_asked = |fault: &Fault| names.is_empty() || chosen.contains(fault);
    Ok(all.iter().copied().filter(is_asked).collect())
}

/// Returns the capabilities with these names, or all capabilities.
fn capabilities(names: &[String]) -> Result<Vec<MissingCapability>, Error> {
    if names.is_empty() {
        return Ok(MissingCapability::all().collect());
    }
    let capability = |name: &String| {
        let all = MissingCapability::all().map(MissingCapability::name);
        MissingCapability::from_name(name).ok_or_else(|| Error::unlisted("capability", name, all))
    };
    names.iter().map(capability).collect()
}

/// Returns the modes with these names, or all modes.
fn modes(names: &[String]) -> Result<Vec<Mode>, Error> {
    if names.is_empty() {
        return Ok(Mode::ALL.to_vec());
    }
    let mode = |name: &String| {
        let all = Mode::ALL.into_iter().map(Mode::name);
        Mode::from_name(name).ok_or_else(|| Error::unlisted("mode", name, all))
    };
    names.iter().map(mode).collect()
}
