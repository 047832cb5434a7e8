//! The case language, its checker, the ledger of requirements and the case files.
//!
//! A file becomes a [`case::Case`] or a diagnostic with file, line and column; nothing in between.
//! This crate knows no network and no server. The language is described in `LANGUAGE.md`.

#![doc = include_str!("../LANGUAGE.md")]

mod breakage;
pub mod case;
mod catalogue;
pub mod cel;
pub mod coverage;
mod diagnostic;
mod forms;
pub mod ledger;
mod lower;
pub mod needs;
mod parallel;
pub mod pattern;
mod raw;
mod raw_stream;
pub mod rule;
pub mod schema;
mod shape;
pub mod span;
pub mod stream;
mod subject;
mod syntax;
pub mod template;

pub use breakage::Breakage;
pub use catalogue::{Catalogue, LoadError, Loader, lint};
pub use diagnostic::{CODES, Diagnostic, Diagnostics};
pub use ledger::{Ledger, Requirement};
pub use subject::SubjectDefinition;
