//! Explains the capabilities of targets and the variations of the reference server.

use std::io::Write;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Capability;
use kubeproof_reference_server::{Capability as Disabled, Variation};

use crate::error::Error;

/// Prints what a target with the capability offers, how to require it, and the cases that need it.
pub(super) fn write_capability(
    capability: Capability,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let all = Capability::all();
    let Some((_, name, summary)) = all.iter().find(|(one, ..)| *one == capability) else {
        return Ok(());
    };
    writeln!(out, "{name} (capability of the target)")?;
    writeln!(out, "{summary}")?;
    writeln!(out, "\nRequire it: kubeproof run --require {name}")?;
    if Disabled::from_name(name).is_some() {
        writeln!(out, "Serve without it: kubeproof serve --without {name}")?;
    }
    writeln!(out, "\nCases that need it:")?;
    for case in catalogue.cases.iter().filter(|case| case.needs.contains(&capability)) {
        writeln!(out, "  {} ({}): {}", case.id, case.level, case.summary)?;
    }
    Ok(())
}

/// Prints what a variation changes, and the command that shows it.
pub(super) fn write_variation(variation: Variation, out: &mut dyn Write) -> Result<(), Error> {
    let name = variation.name();
    writeln!(out, "{name} (variation of the reference server)")?;
    writeln!(out, "{}", variation.summary())?;
    writeln!(out, "\nThe conventions permit it, so no case may fail. Try it:")?;
    let listen = "--listen 127.0.0.1:8001 --token my-token";
    writeln!(out, "  kubeproof serve {listen} --variation {name}")?;
    writeln!(out, "  kubeproof run --server http://127.0.0.1:8001 --token my-token")?;
    Ok(writeln!(out, "\n`kubeproof serve --list-variations` prints all variations.")?)
}
