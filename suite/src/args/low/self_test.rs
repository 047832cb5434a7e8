//! Arguments of `kubeproof self-test`.

use clap::{Args, ValueEnum};

use super::Cases;
use super::values::{number, positive};

#[derive(Debug, Args)]
pub(in crate::args) struct SelfTest {
    /// Parts to run [default: all]
    #[arg(value_enum, value_name = "PART")]
    pub(in crate::args) parts: Vec<Part>,

    /// Test only these faults, in the parts `faults`, `degraded`, `stress` and `explore`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(in crate::args) fault: Vec<String>,

    /// Run all cases against each fault, not only the cases that list it; takes minutes
    #[arg(long)]
    pub(in crate::args) full: bool,

    /// Print the faults of each case too
    #[arg(long)]
    pub(in crate::args) by_case: bool,

    /// Print the matrix of faults, requirements and cases as Markdown, without running anything
    #[arg(long, conflicts_with_all = ["fault", "full", "by_case", "seed", "capability", "mode"])]
    pub(in crate::args) matrix: bool,

    /// Number of seeds for variations
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive::<u64>)]
    pub(in crate::args) seeds: u64,

    /// Test only the variations of these seeds
    #[arg(long, value_name = "SEED", num_args = 1.., value_parser = number::<u64>)]
    pub(in crate::args) seed: Vec<u64>,

    /// Disable only these capabilities; `writes` runs the cases with a read-only user
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(in crate::args) capability: Vec<String>,

    /// Run only these modes: `namespace-default`, `no-rights`, `one-namespace`, `read-only`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(in crate::args) mode: Vec<String>,

    #[command(flatten)]
    pub(in crate::args) cases: Cases,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(in crate::args) enum Part {
    /// Servers with one deliberate bug each: the cases that list the bug must catch it
    Faults,
    /// Servers that vary as the conventions permit: no case may fail or be skipped
    Variations,
    /// Conformant servers with one capability disabled: cases may skip, and must not fail
    Capabilities,
    /// A conformant server, users with few rights, and options that limit the run: no case may fail
    Modes,
    /// Servers whose one defect affects many cases: the summary has few causes, and most results
    /// have a verdict of their own
    Degraded,
    /// Servers with one deliberate bug each: `kubeproof stress` must find it without cases
    Stress,
    /// Servers with one deliberate bug each: `kubeproof explore` must find it without cases
    Explore,
}
