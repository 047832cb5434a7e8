//! Design rules over a published API, as pure functions: schemas in, places that break a rule out.
//!
//! A rule looks at one field or one type at a time and knows no level, no requirement and no history: those stand in
//! the case that asks for the rule. The same rules serve a server and files on disk.

mod conditions;
mod copies;
mod judge;
mod kinds;
mod lists;
mod load;
mod manifest;
mod model;
mod names;
mod numbers;
mod optional;
mod references;
mod tree;
mod units;
mod view;
mod walk;

pub use self::judge::judge;
pub(crate) use self::load::published;
pub use self::manifest::{Manifest, ManifestError, Whereabouts, read};
pub use self::model::{CrdError, Published};
pub use self::view::View;

/// A place that breaks a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The type and the path of the field, as `widgets.v1.example.com spec.items[].mode`.
    pub at: String,
    /// What is wrong there.
    pub message: String,
    /// Where in the document that it comes from: a JSON Pointer.
    pub pointer: String,
}

#[cfg(test)]
mod tests;
