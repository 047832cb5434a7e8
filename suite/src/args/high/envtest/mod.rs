//! The options of the commands for test suites that use envtest.

mod etcd;
mod flags;
mod kube_apiserver;

use std::path::PathBuf;

use kubeproof_reference_server::KubernetesVersion;

pub(crate) use self::etcd::{Etcd, EtcdOptions};
pub(crate) use self::kube_apiserver::{ApiserverOptions, KubeApiserver};

use crate::args::low;

/// What `kubeproof envtest-assets` writes.
pub(crate) struct EnvtestAssets {
    pub(crate) dir: PathBuf,
    pub(crate) kubectl: Option<PathBuf>,
    /// The version of Kubernetes that the program `kube-apiserver` serves.
    pub(crate) version: Option<KubernetesVersion>,
}

impl EnvtestAssets {
    pub(super) fn resolve(assets: low::EnvtestAssets) -> Self {
        let low::EnvtestAssets { dir, kubectl, kubernetes_version: version } = assets;
        Self { dir, kubectl, version }
    }
}
