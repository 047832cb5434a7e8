//! Arguments of the commands about cases and requirements.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Cases, Edition};

#[derive(Debug, Args)]
pub(in crate::args) struct List {
    #[command(flatten)]
    pub(in crate::args) cases: Cases,

    /// Print JSON
    #[arg(long)]
    pub(in crate::args) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Explain {
    /// A case, such as `watch/resumes-from-every-version`, a requirement, a profile, a level, a
    /// capability, a fault or a variation
    pub(in crate::args) id: String,

    /// Print no example; the example runs the case against the bundled server
    #[arg(long)]
    pub(in crate::args) no_example: bool,

    /// Add a directory of case files
    #[arg(long = "cases", value_name = "DIR")]
    pub(in crate::args) directories: Vec<PathBuf>,
}

const COLUMNS: &str = "\
Columns:
  REQUIREMENTS  statements of the conventions in this section, of this level
  WITH CASES    requirements that at least one case tests
  PLANNED       requirements whose cases are not written yet
  CLIENT        requirements that only clients can follow
  PROCESS       requirements that only authors and reviewers of APIs can follow
  UNSEEN        requirements whose effect a client cannot see";

#[derive(Debug, Args)]
#[command(after_help = COLUMNS)]
pub(in crate::args) struct Coverage {
    /// Count only the requirements of this edition of the conventions
    #[arg(long, value_enum)]
    pub(in crate::args) edition: Option<Edition>,

    /// Add a directory of case files
    #[arg(long = "cases", value_name = "DIR")]
    pub(in crate::args) directories: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::args) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::args) struct CasePages {
    /// Directory to write
    #[arg(value_name = "DIR")]
    pub(in crate::args) dir: PathBuf,

    /// Add a directory of case files
    #[arg(long = "cases", value_name = "DIR")]
    pub(in crate::args) directories: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Lint {
    /// Directory with case files named AREA/NAME.yaml
    pub(in crate::args) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Schema {
    /// Kind of file
    #[arg(value_enum, default_value_t)]
    pub(in crate::args) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(in crate::args) enum SchemaOf {
    /// Case files
    #[default]
    Case,
    /// Steps that cases share
    Fragment,
    /// Subject files
    Subject,
    /// The requirements catalogue
    Requirements,
    /// The requirements that each fault of the bundled server breaks
    Faults,
    /// The profile of each case
    Profiles,
    /// The design rules that Kubernetes breaks for historical reasons
    SchemaHistory,
    /// JSON reports
    Report,
}
