#![doc = include_str!("../README.md")]

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
