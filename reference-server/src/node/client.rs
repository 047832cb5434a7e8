//! Connects the API server to the kubelet in this process.

use std::sync::{Arc, Weak};

use futures_util::future::{BoxFuture, FutureExt as _};
use kubeproof_kubelet::{Kubelet, LogError, LogOptions, PodKey, StartError};
use kubeproof_streaming::portforward::PortError;
use kubeproof_streaming::remotecommand::{ExecRequest, Process, Rejection};
use tokio::io::DuplexStream;

use kubeproof_apiserver::http::respond::Chunks;
use kubeproof_apiserver::kubelet_client::{
    KubeletClient, PodLogError, PodLogOptions, PodRef, stopped,
};

/// A kubelet in this process. The task of the node owns it, so it stops with the server.
pub(super) struct LocalKubelet {
    node: String,
    kubelet: Weak<Kubelet>,
}

impl LocalKubelet {
    pub(super) fn new(kubelet: &Arc<Kubelet>) -> Self {
        Self { node: kubelet.node().to_owned(), kubelet: Arc::downgrade(kubelet) }
    }
}

impl KubeletClient for LocalKubelet {
    fn node(&self) -> &str {
        &self.node
    }

    fn dial(&self) -> Option<DuplexStream> {
        self.kubelet.upgrade().map(|kubelet| kubelet.dial())
    }

    fn connect(
        &self,
        pod: PodRef,
        port: u16,
    ) -> BoxFuture<'static, Result<DuplexStream, PortError>> {
        let kubelet = self.kubelet.upgrade();
        async move {
            let kubelet = kubelet.ok_or(PortError::NoSuchPod)?;
            kubelet.connect(&key(&pod), port).await
        }
        .boxed()
    }

    fn rejection(&self, pod: &PodRef, container: &str) -> Option<Rejection> {
        match self.kubelet.upgrade() {
            Some(kubelet) => kubelet.rejection(&key(pod), container),
            None => Some(stopped()),
        }
    }

    fn exec(
        &self,
        pod: PodRef,
        container: String,
        request: ExecRequest,
    ) -> BoxFuture<'static, Result<Process, String>> {
        let kubelet = self.kubelet.upgrade();
        async move {
            let kubelet =
                kubelet.ok_or(StartError::NoSuchPod).map_err(|error| error.to_string())?;
            kubelet.exec(&key(&pod), &container, request).await.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn attach(
        &self,
        pod: PodRef,
        container: String,
        request: ExecRequest,
    ) -> BoxFuture<'static, Result<Process, String>> {
        let kubelet = self.kubelet.upgrade();
        async move {
            let kubelet =
                kubelet.ok_or(StartError::NoSuchPod).map_err(|error| error.to_string())?;
            kubelet.attach(&key(&pod), &container, request).await.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn logs(
        &self,
        pod: &PodRef,
        container: &str,
        options: PodLogOptions,
    ) -> Result<Chunks, PodLogError> {
        let kubelet = self.kubelet.upgrade().ok_or(PodLogError::ContainerCreating)?;
        let pod = key(pod);
        if kubelet.is_creating(&pod, container) {
            return Err(PodLogError::ContainerCreating);
        }
        let PodLogOptions { follow, previous, tail_lines, limit_bytes, since, timestamps } =
            options;
        let options = LogOptions { follow, previous, tail_lines, limit_bytes, since, timestamps };
        kubelet.logs(&pod, container, options).map_err(|error| match error {
            LogError::NoPrevious { .. } => PodLogError::NoPrevious,
            LogError::Missing(error) => PodLogError::Other(error.to_string()),
        })
    }
}

fn key(pod: &PodRef) -> PodKey {
    PodKey { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() }
}
