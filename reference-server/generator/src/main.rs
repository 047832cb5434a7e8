//! The command line of the generator.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

/// Write the data of the built-in types from the published files of Kubernetes
#[derive(Debug, Parser)]
struct Arguments {
    /// The directory with a checkout of Kubernetes
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
    /// The directory for the written files
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// The directory with the data of another version; write only what differs
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let files = match &arguments.base {
        Some(base) => kubeproof_generator::changes(arguments.source, base)?,
        None => kubeproof_generator::generate(arguments.source)?,
    };
    fs::create_dir_all(&arguments.output).context("cannot create the output directory")?;
    for (name, text) in files {
        let path = arguments.output.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
