//! `kubeproof completions`: prints shell completions.
//!
//! The script completes the ids, areas and faults of this version. Only the script has these
//! values: the options themselves accept globs, and ids of other directories.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use kubeproof_cases::case::Case;
use kubeproof_cases::{Catalogue, Profile};
use kubeproof_reference_server::Fault;

use crate::args;
use crate::args::high::CatalogueSource;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) fn completions(shell: Shell, out: &mut dyn Write) -> Result<Exit, Error> {
    let values = Values::of(&CatalogueSource::default().load()?);
    let mut definition = args::definition().mut_subcommands(|command| values.complete(command));
    // The generator panics on write errors, so it must not write to a pipe that may be closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, "kubeproof", &mut script);
    out.write_all(&script)?;
    Ok(Exit::CONFORMANT)
}

/// The values that the script completes.
struct Values {
    cases: Vec<String>,
    areas: Vec<String>,
    requirements: Vec<String>,
    faults: Vec<String>,
    profiles: Vec<String>,
}

impl Values {
    fn of(catalogue: &Catalogue) -> Self {
        let areas: BTreeSet<&str> = catalogue.cases.iter().map(Case::area).collect();
        Self {
            cases: catalogue.cases.iter().map(|case| case.id.clone()).collect(),
            areas: areas.into_iter().map(str::to_owned).collect(),
            requirements: catalogue.requirements.iter().map(|one| one.id.clone()).collect(),
            faults: Fault::all().map(|fault| fault.name().to_owned()).collect(),
            profiles: Profile::ALL.map(|profile| profile.name().to_owned()).into(),
        }
    }

    /// Adds the values to the arguments of a command.
    fn complete(&self, command: Command) -> Command {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| {
            let values = match (name.as_str(), argument.get_id().as_str()) {
                ("explain", "id") => {
                    [&self.cases[..], &self.requirements, &self.profiles, &self.faults].concat()
                }
                (_, "only" | "skip") => self.cases.clone(),
                (_, "area") => self.areas.clone(),
                ("serve" | "self-test", "fault") => self.faults.clone(),
                _ => return argument,
            };
            argument.value_parser(PossibleValuesParser::new(values))
        })
    }
}
