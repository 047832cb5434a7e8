//! The command line on two levels: [`low`] is what was typed, [`high`] what it means.

pub(crate) mod again;
pub(crate) mod high;
pub(crate) mod low;
