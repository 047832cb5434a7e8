//! The case language, its checker, the requirements catalogue and the case files.
//!
//! A file becomes a [`case::Case`] or diagnostics with file, line and column. This crate does no
//! network I/O. The language is described in `docs/case-language.md`.

pub mod case;
mod catalogue;
mod diagnostic;
pub mod expression;
mod lower;
pub mod pattern;
mod plural;
mod profile;
pub mod protocol;
mod raw;
mod reference;
pub mod requirements;
pub mod rule;
mod schema;
mod shape;
mod subject;
mod syntax;
pub mod template;
pub mod yaml;

pub use catalogue::{Catalogue, LoadError, Loader, is_embedded_case, lint};
pub use diagnostic::{CODES, Diagnostic, Diagnostics};
pub use plural::plural;
pub use profile::Profile;
pub use reference::reference;
pub use schema::{FileSchema, schemas};
pub use subject::SubjectDefinition;
