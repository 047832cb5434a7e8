//! Builds a server step by step.

use std::path::PathBuf;

use crate::load::Manifest;
use crate::{
    Config, Controllers, EtcdOptions, KubernetesVersion, Running, Server, StartError, Storage, Tls,
    TokenUser,
};

/// Builds a server. [`Server::builder`] returns one. Each server has its own state, and by default
/// a free port on the loopback interface, so one process can have hundreds of servers.
#[derive(Clone, Debug, Default)]
pub struct ServerBuilder {
    config: Config,
    files: Vec<PathBuf>,
}

impl ServerBuilder {
    /// Selects the version of Kubernetes.
    #[must_use]
    pub fn version(mut self, version: KubernetesVersion) -> Self {
        self.config.version = version;
        self
    }

    /// Serves TLS with generated certificates.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.config.tls.get_or_insert_default();
        self
    }

    /// Serves TLS, and authenticates client certificates of these authorities, which are PEM. The
    /// common name is the user, and the organizations are the groups.
    #[must_use]
    pub fn client_ca(mut self, pem: impl Into<String>) -> Self {
        self.config.tls.get_or_insert_with(Tls::default).client_ca_pem = Some(pem.into());
        self
    }

    /// Sets the bearer token of the administrator.
    #[must_use]
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.config.admin_token = token.into();
        self
    }

    /// Adds a user with a bearer token. Roles and bindings grant permissions.
    #[must_use]
    pub fn user(mut self, token: &str, name: &str, groups: &[&str]) -> Self {
        self.config.users.push(TokenUser {
            token: token.to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        });
        self
    }

    /// Adds a node that runs pods in a scripted runtime.
    #[must_use]
    pub fn node(mut self) -> Self {
        self.config.node = true;
        self
    }

    /// Selects the controllers that run in the server.
    #[must_use]
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.config.controllers = controllers;
        self
    }

    /// Applies the objects of a text in YAML or JSON before the server is ready: definitions first,
    /// then namespaces, then the others in their order.
    #[must_use]
    pub fn manifest(mut self, text: impl Into<String>) -> Self {
        let source = format!("manifest {}", self.config.manifests.len() + 1);
        self.config.manifests.push(Manifest { source, text: text.into() });
        self
    }

    /// Applies the objects of a file, after those of [`Self::manifest`].
    #[must_use]
    pub fn load(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push(file.into());
        self
    }

    /// Keeps the objects in a directory. They survive a restart, and an acknowledged write survives
    /// a crash.
    #[must_use]
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.config.storage = Storage::Disk(directory.into());
        self
    }

    /// Keeps the objects in etcd, which other servers can share. `servers` has the URLs of its
    /// members.
    #[must_use]
    pub fn etcd<S: Into<String>>(mut self, servers: impl IntoIterator<Item = S>) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        self.config.storage = Storage::Etcd(EtcdOptions { servers, ..EtcdOptions::default() });
        self
    }

    /// Starts with the objects of a snapshot.
    #[must_use]
    pub fn restore(mut self, file: impl Into<PathBuf>) -> Self {
        self.config.restore = Some(file.into());
        self
    }

    /// Changes options that have no method of their own.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Reads the files and returns the configuration.
    pub fn build(self) -> Result<Config, StartError> {
        let Self { mut config, files } = self;
        for file in files {
            config.manifests.push(Manifest::read(&file)?);
        }
        Ok(config)
    }

    /// Starts the server. It is ready when this function returns.
    pub async fn start(self) -> Result<Running, StartError> {
        Server::start(self.build()?).await
    }
}
