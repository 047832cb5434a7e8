//! Tests of the files of this crate: catalogue, schemas, reference page, diagnostics.
//!
//! `KUBEPROOF_BLESS=1` writes generated files again. Read the difference before you commit it.

mod arbitrary_text;
mod bless;
mod catalogue;
mod checker;
mod data;
mod invalid;
mod parsing;
mod reasons;
mod reference;
mod repetition;
mod schema;
