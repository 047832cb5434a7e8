//! JSON and `${..}` in the text of case files, with the place of everything.

pub(crate) mod json;
pub(crate) mod template;
