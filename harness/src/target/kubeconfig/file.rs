//! Reads the file, and checks its parts that the loader would report without their names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::config::{Cluster, Context, Kubeconfig, KubeconfigError};
use url::Url;

use super::{TargetError, unusable};
use crate::yaml;

/// The variable with the default paths.
const VARIABLE: &str = "KUBECONFIG";

/// The content of a kubeconfig.
pub(super) struct KubeconfigFile {
    /// The path for messages.
    pub(super) name: String,
    pub(super) content: Kubeconfig,
}

impl KubeconfigFile {
    /// Reads this file, or the default ones.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, TargetError> {
        let read = match path {
            Some(path) => Kubeconfig::read_from(path),
            None => read_existing(),
        };
        let name = path.map_or_else(default_name, |path| path.display().to_string());
        match read {
            Ok(content) => Ok(Self { name, content }),
            Err(KubeconfigError::ReadConfig(source, path)) => {
                Err(TargetError::File { what: "kubeconfig", path, source })
            }
            Err(KubeconfigError::Parse(error)) => {
                Err(TargetError::Kubeconfig { file: name, reason: yaml::mistake(&error) })
            }
            Err(error) => Err(unusable(&name, &error)),
        }
    }

    /// Checks that the file has this context, or the current one, and its cluster.
    pub(super) fn check_context(&self, wanted: Option<&str>) -> Result<(), TargetError> {
        if self.content.contexts.is_empty() {
            return Err(self.error("it has no contexts".to_owned()));
        }
        let Some(wanted) = self.context_name(wanted) else {
            let known = self.known_contexts();
            return Err(self.error(format!("it has no current context; use --context NAME{known}")));
        };
        let Some(context) = self.context(wanted) else {
            let known = self.known_contexts();
            return Err(self.error(format!("it has no context {wanted:?}{known}")));
        };
        match self.cluster(&context.cluster) {
            Some(Cluster { server: Some(_), .. }) => Ok(()),
            Some(_) => {
                let name = &context.cluster;
                Err(self.error(format!("its cluster {name:?} has no server")))
            }
            None => Err(self.error(format!(
                "its context {wanted:?} names the cluster {:?}, which it does not define",
                context.cluster
            ))),
        }
    }

    /// Returns the proxy of the file. The loader would also use the environment.
    pub(super) fn proxy(&self, wanted: Option<&str>) -> Result<Option<Url>, TargetError> {
        let context = self.context_name(wanted).and_then(|name| self.context(name));
        let cluster = context.and_then(|context| self.cluster(&context.cluster));
        let proxy = cluster.and_then(|cluster| cluster.proxy_url.as_deref());
        let proxy = proxy.filter(|url| !url.is_empty());
        proxy.map(Url::parse).transpose().map_err(|error| self.error(format!("proxy-url: {error}")))
    }

    fn context_name<'a>(&'a self, wanted: Option<&'a str>) -> Option<&'a str> {
        wanted.or(self.content.current_context.as_deref()).filter(|name| !name.is_empty())
    }

    fn context(&self, name: &str) -> Option<&Context> {
        self.content.contexts.iter().find(|named| named.name == name)?.context.as_ref()
    }

    fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.content.clusters.iter().find(|named| named.name == name)?.cluster.as_ref()
    }

    /// Returns the end of a message.
    fn known_contexts(&self) -> String {
        let names: Vec<_> = self.content.contexts.iter().map(|named| named.name.as_str()).collect();
        format!("; its contexts are {}", names.join(", "))
    }

    fn error(&self, reason: String) -> TargetError {
        TargetError::Kubeconfig { file: self.name.clone(), reason }
    }
}

/// Merges the files of the variable. Like kubectl, it passes over missing ones.
fn read_existing() -> Result<Kubeconfig, KubeconfigError> {
    let paths = of_variable().unwrap_or_default();
    let mut existing = std::env::split_paths(&paths).filter(|path| path.exists());
    let Some(first) = existing.next() else { return Kubeconfig::read() };
    existing.try_fold(Kubeconfig::read_from(first)?, |merged, path| {
        merged.merge(Kubeconfig::read_from(path)?)
    })
}

fn default_name() -> String {
    let path = of_variable().map_or_else(|| PathBuf::from("~/.kube/config"), PathBuf::from);
    path.display().to_string()
}

fn of_variable() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|paths| !paths.is_empty())
}
