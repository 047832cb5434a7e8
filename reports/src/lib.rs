#![doc = include_str!("../README.md")]

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
