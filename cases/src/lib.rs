//! The case language, its checker, the ledger of requirements and the case files.
