//! The files of this crate: the catalogue, the schemas, and what is said of files that are wrong.
//!
//! `KUBEPROOF_BLESS=1` writes anew what can be generated; read the difference before committing it.

mod any_text;
mod bless;
mod catalogue;
mod invalid;
mod reasons;
mod schema;
mod told;
mod understood;
