//! Design rules over published schemas, as pure functions.
//!
//! A rule looks at one field or one type. Its level, requirement and exceptions are part of the
//! case. The same rules apply to servers and to files.

mod conditions;
mod embedded_types;
mod fields;
mod kinds;
mod lists;
mod load;
mod manifest;
mod model;
mod names;
mod numbers;
mod optional;
mod references;
mod rules;
mod units;
mod view;

pub(crate) use self::load::published;
pub use self::manifest::{FileLocation, Manifest, ManifestError, read};
pub use self::model::{CrdError, Published};
pub use self::rules::judge;
pub use self::view::View;

/// A violation of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The type and the path of the field, such as `widgets.v1.example.com spec.items[].mode`.
    pub at: String,
    /// The violation.
    pub message: String,
    /// JSON Pointer to the place in its document.
    pub pointer: String,
}

#[cfg(test)]
mod tests;
