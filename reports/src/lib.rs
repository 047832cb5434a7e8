//! Folds the events of a run into reports.
