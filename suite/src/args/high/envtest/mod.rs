//! The options of the commands for test suites that use envtest.

mod etcd;
mod flags;
mod kube_apiserver;

use std::path::PathBuf;

pub(crate) use self::etcd::{Etcd, EtcdOptions};
pub(crate) use self::kube_apiserver::{ApiserverOptions, KubeApiserver};

use crate::args::low;

/// What `kubeproof envtest-assets` writes.
pub(crate) struct EnvtestAssets {
    pub(crate) dir: PathBuf,
    pub(crate) kubectl: Option<PathBuf>,
}

impl EnvtestAssets {
    pub(super) fn resolve(assets: low::EnvtestAssets) -> Self {
        Self { dir: assets.dir, kubectl: assets.kubectl }
    }
}
