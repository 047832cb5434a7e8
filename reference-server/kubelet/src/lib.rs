//! A kubelet that runs pods in memory.
//!
//! A [`Kubelet`] runs the pods of one node and reports their status through a [`PodClient`]. The
//! caller watches the pods of the node, and passes them to [`Kubelet::observe`]. The same kubelet
//! therefore works with the bundled API server and with a server across the network.
//!
//! Containers are scripted: their programs are part of this crate and touch neither processes,
//! files nor sockets of the machine. Every image contains the same programs, such as `sh`, `cat`,
//! `nc` and `tar`. A container without a command runs until it is stopped.
//!
//! An [`Endpoint`] serves exec, attach, port-forward and logs over HTTPS, as the kubelet API does.
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr};
//! use std::sync::Arc;
//!
//! use kubeproof_kubelet::{BoxFuture, Kubelet, PodClient};
//! use serde_json::{Value, json};
//! use tokio::sync::mpsc;
//!
//! /// Passes each reported status to a channel.
//! struct Reports(mpsc::UnboundedSender<Value>);
//!
//! impl PodClient for Reports {
//!     fn patch_status<'a>(&'a self, _pod: &'a Value, status: Value) -> BoxFuture<'a, ()> {
//!         let _ = self.0.send(status);
//!         Box::pin(std::future::ready(()))
//!     }
//!
//!     fn delete<'a>(&'a self, _pod: &'a Value) -> BoxFuture<'a, ()> {
//!         Box::pin(std::future::ready(()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, mut statuses) = mpsc::unbounded_channel();
//! let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
//! let kubelet = Kubelet::new("node-1", host, Arc::new(Reports(sender)));
//! kubelet.observe(json!({
//!     "metadata": {"name": "hello", "namespace": "default", "uid": "1"},
//!     "spec": {
//!         "nodeName": "node-1",
//!         "restartPolicy": "Never",
//!         "containers": [{"name": "c", "image": "any", "command": ["echo", "hello"]}],
//!     },
//! }));
//! while let Some(status) = statuses.recv().await {
//!     if status["phase"] == "Succeeded" {
//!         break;
//!     }
//! }
//! # }
//! ```

mod agent;
mod endpoint;
pub mod node;
mod runtime;
mod status;
mod tls;

pub use agent::{Kubelet, PodClient};
pub use endpoint::{Endpoint, EndpointConfig, EndpointError};
pub use futures_util::future::BoxFuture;
pub use runtime::{LogError, LogOptions, PodKey, StartError};
pub use status::merge_status;
pub use tls::TlsError;
