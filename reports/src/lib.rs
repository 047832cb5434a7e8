//! Turns the events of a run into reports.
//!
//! [`Reports`] takes each event, removes secrets, and collects the results in a
//! [`Document`](document::Document). A [`Report`] receives single results during the run, and the
//! whole document at its end. All reports see the same redacted data, so none of them can leak what
//! another one hides. `kubeproof report` renders the same document from the JSON report of an
//! earlier run.

pub mod atomic;
mod causes;
mod collect;
pub mod compare;
pub mod console;
pub mod document;
mod exchange_budget;
pub mod formats;
mod github;
mod matrix;
mod oracle;
pub mod paint;
pub mod redact;
mod report;
pub mod requirements;
mod sections;
mod site;
mod text;
mod trace;
mod verify;

pub use self::causes::{Cause, CauseRecord, ResultName, causes, compressed};
pub use self::collect::{Finished, Reports};
pub use self::github::Github;
pub use self::matrix::Matrix;
pub use self::oracle::OracleComparison;
pub use self::report::{Exchanges, Report, ReportError};
pub use self::site::{SITE, case_url};
pub use self::trace::Trace;
pub use self::verify::{CatalogueCase, CatalogueCases, Mismatch, verify};
