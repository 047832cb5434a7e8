//! The case language, its checker, the ledger of requirements and the case files.
//!
//! A file becomes a [`case::Case`] or a diagnostic with file, line and column; nothing in between.
//! This crate knows no network and no server. The language is described in `LANGUAGE.md`.

#![doc = include_str!("../LANGUAGE.md")]

pub mod case;
pub mod cel;
pub mod pattern;
pub mod span;
pub mod template;
