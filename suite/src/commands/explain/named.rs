//! Explains everything that has a name and is no case or requirement.

use std::io::Write;

use kubeproof_cases::case::{Capability, Level};
use kubeproof_cases::{Catalogue, Profile};
use kubeproof_reference_server::{Fault, Variation};

use super::{explain_profile, fault, level, server_feature};
use crate::error::Error;

/// Something with a name.
enum Named {
    Profile(Profile),
    Level(Level),
    Fault(Fault),
    Capability(Capability),
    Variation(Variation),
}

/// Prints everything with this name: `crds` is a profile and a capability.
pub(super) fn explain(name: &str, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
    let found = [
        Profile::from_name(name).map(Named::Profile),
        level::from_name(name).map(Named::Level),
        Fault::from_name(name).map(Named::Fault),
        Capability::from_name(name).map(Named::Capability),
        Variation::from_name(name).map(Named::Variation),
    ];
    let found: Vec<Named> = found.into_iter().flatten().collect();
    match found.as_slice() {
        [] => return Err(unknown(name, catalogue)),
        [_] => {}
        // The first explanation can be longer than a screen.
        several => {
            let kinds: Vec<&str> = several.iter().map(Named::kind).collect();
            writeln!(out, "{name} is the name of a {}.\n", kinds.join(" and of a "))?;
        }
    }
    for (index, one) in found.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        one.write(catalogue, out)?;
    }
    Ok(())
}

impl Named {
    fn kind(&self) -> &'static str {
        match self {
            Self::Profile(_) => "profile",
            Self::Level(_) => "level",
            Self::Fault(_) => "fault",
            Self::Capability(_) => "capability",
            Self::Variation(_) => "variation",
        }
    }

    fn write(&self, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
        match self {
            Self::Profile(profile) => explain_profile(*profile, catalogue, out),
            Self::Level(level) => level::write(*level, catalogue, out),
            Self::Fault(fault) => fault::write(*fault, catalogue, out),
            Self::Capability(capability) => {
                server_feature::write_capability(*capability, catalogue, out)
            }
            Self::Variation(variation) => server_feature::write_variation(*variation, out),
        }
    }
}

fn unknown(id: &str, catalogue: &Catalogue) -> Error {
    if catalogue.cases.iter().any(|case| case.area() == id) {
        return Error::Area(id.to_owned());
    }
    let capabilities = Capability::all();
    let cases = catalogue.cases.iter().map(|case| case.id.as_str());
    let requirements = catalogue.requirements.iter().map(|requirement| requirement.id.as_str());
    let known = cases.chain(requirements).chain(Profile::ALL.map(Profile::name));
    let known = known.chain(Fault::all().map(|fault| -> &str { fault.name() }));
    let known = known.chain(Variation::all().map(|variation| -> &str { variation.name() }));
    let known = known.chain(capabilities.iter().map(|(_, name, _)| name.as_str()));
    let known = known.chain(level::ALL.map(level::name));
    let what = "case, requirement, profile, level, capability, fault or variation";
    Error::unknown(what, id, known, "`kubeproof list` prints all cases")
}
