//! The commands for test suites that use envtest, which starts programs in a directory.

mod assets;
mod etcd;
mod kube_apiserver;

pub(super) use self::assets::assets;
pub(super) use self::etcd::etcd;
pub(super) use self::kube_apiserver::kube_apiserver;

use std::io::{self, Write as _};

/// Prints warnings to standard error, where envtest expects the log of a program.
fn warn(warnings: &[String]) {
    for warning in warnings {
        // The server works without a reader of its log.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}
