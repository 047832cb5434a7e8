//! The options of `kubeproof serve`.

use std::path::PathBuf;

use kubeproof_reference_server::{
    AdmissionPlugins, AuditMode, AuditOptions, Capability, Config, Controllers, EtcdOptions,
    EtcdTls, Fault, Manifest, ServiceAccountOptions, StartError, Storage, Tls, TokenUser,
    Variation, Variations,
};

use crate::args::high::credentials::{
    Pem, RotationFlags, audit_options, read_certificate, read_pem, service_account_options,
    token_users,
};
use crate::args::low;
use crate::error::Error;

/// What `kubeproof serve` does.
pub(crate) enum Serve {
    ListFaults,
    ListVariations,
    Start(Box<ServerOptions>),
}

/// The options of a server.
pub(crate) struct ServerOptions {
    pub(crate) config: Config,
    pub(crate) kubeconfig_out: Option<PathBuf>,
    /// Where the server writes its objects when it stops.
    pub(crate) snapshot: Option<PathBuf>,
    /// The variations of `--vary`, which the server prints.
    pub(crate) varied: Option<Variations>,
    /// The token was generated, and the server must print it.
    pub(crate) has_random_token: bool,
}

impl Serve {
    pub(super) fn resolve(serve: low::Serve) -> Result<Self, Error> {
        if serve.list_faults {
            return Ok(Self::ListFaults);
        }
        if serve.list_variations {
            return Ok(Self::ListVariations);
        }
        let only_resource = serve.only_resource.then_some(Capability::OtherResources);
        let manifests =
            serve.load.iter().map(|file| Manifest::read(file)).collect::<Result<_, _>>();
        let storage = storage(&serve)?;
        let users = serve.token_auth_file.as_deref().map(token_users).transpose()?;
        let users = users.unwrap_or_default();
        check_tokens(&serve, &users)?;
        let mut config = Config {
            admission_plugins: admission_plugins(&serve)?,
            listen: serve.listen,
            version: serve.kubernetes_version,
            tls: tls(&serve)?,
            users,
            controllers: serve.controllers.into(),
            audit: audit(&serve.audit)?,
            service_accounts: service_accounts(&serve.service_accounts)?,
            shutdown_delay: serve.shutdown_delay_duration,
            cluster_defaults: !serve.no_cluster_defaults,
            manifests: manifests.map_err(StartError::from)?,
            user_token: serve.user_token,
            storage,
            restore: serve.restore,
            history: serve.history,
            viewer_token: serve.viewer_token,
            node: true,
            sample: serve.sample,
            disabled_capabilities: serve.without.into_iter().chain(only_resource).collect(),
            faults: faults(&serve.fault)?,
            variations: variations(serve.vary, &serve.variation)?,
            ..Config::default()
        };
        let has_random_token = serve.token.is_none();
        if let Some(token) = serve.token {
            config.admin_token = token;
        }
        Ok(Self::Start(Box::new(ServerOptions {
            config,
            kubeconfig_out: serve.kubeconfig_out,
            snapshot: serve.snapshot,
            varied: serve.vary.map(Variations::from_seed),
            has_random_token,
        })))
    }
}

/// Checks that each token stands for one user.
fn check_tokens(serve: &low::Serve, users: &[TokenUser]) -> Result<(), Error> {
    let options = [
        ("--token", &serve.token),
        ("--user-token", &serve.user_token),
        ("--viewer-token", &serve.viewer_token),
    ];
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (name, token) in
        options.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    {
        if let Some((first, _)) = seen.iter().find(|(_, other)| other == token) {
            return Err(Error::EqualTokens(format!("{first} and {name}")));
        }
        if let Some(user) = users.iter().find(|user| user.token == *token) {
            let of_file = format!("{name} and the token of {:?} in the token file", user.name);
            return Err(Error::EqualTokens(of_file));
        }
        seen.push((name, token));
    }
    Ok(())
}

/// Returns where the objects are.
fn storage(serve: &low::Serve) -> Result<Storage, Error> {
    let low::Etcd { servers, prefix, ca, certificate, key, compaction_interval } = &serve.etcd;
    if servers.is_empty() {
        return Ok(serve.data_dir.clone().map_or(Storage::Memory, Storage::Disk));
    }
    let pair = certificate.as_deref().zip(key.as_deref());
    let client_pem = pair.map(|(chain, key)| {
        Ok::<_, Error>((read_pem(chain, Pem::Certificate)?, read_pem(key, Pem::PrivateKey)?))
    });
    let tls = EtcdTls {
        ca_pem: ca.as_deref().map(|path| read_pem(path, Pem::Certificate)).transpose()?,
        client_pem: client_pem.transpose()?,
    };
    Ok(Storage::Etcd(EtcdOptions {
        servers: servers.clone(),
        prefix: prefix.clone(),
        tls: Some(tls),
        compaction_interval: Some(*compaction_interval).filter(|interval| !interval.is_zero()),
    }))
}

/// Returns the options of the audit log. It needs a file and a policy.
fn audit(flags: &low::Audit) -> Result<Option<AuditOptions>, Error> {
    let mode = match flags.mode {
        low::AuditMode::Batch => AuditMode::Batch,
        low::AuditMode::Blocking => AuditMode::Blocking,
        low::AuditMode::BlockingStrict => AuditMode::BlockingStrict,
    };
    let rotation =
        RotationFlags { megabytes: flags.max_size, backups: flags.max_backup, days: flags.max_age };
    let files = flags.path.as_deref().zip(flags.policy.as_deref());
    files.map(|(log, policy)| audit_options(log, policy, (mode, rotation))).transpose()
}

fn service_accounts(flags: &low::ServiceAccounts) -> Result<ServiceAccountOptions, Error> {
    let names = (flags.issuers.clone(), flags.audiences.clone());
    service_account_options(names, flags.signing_key.as_deref(), &flags.keys)
}

/// Returns the admission plugins. Pods need no service account unless the plugin is enabled.
fn admission_plugins(serve: &low::Serve) -> Result<AdmissionPlugins, Error> {
    let enable = serve.enable_admission_plugins.iter().map(String::as_str);
    let disable = serve.disable_admission_plugins.iter().map(String::as_str);
    Ok(AdmissionPlugins::default().change(enable, disable)?)
}

/// Returns the options of TLS. A certificate, or an authority of clients, needs TLS.
fn tls(serve: &low::Serve) -> Result<Option<Tls>, Error> {
    let pair = serve.tls_cert_file.as_deref().zip(serve.tls_private_key_file.as_deref());
    let certificate = pair.map(|(chain, key)| read_certificate(chain, key)).transpose()?;
    let client_ca = serve.client_ca_file.as_deref();
    let client_ca_pem = client_ca.map(|path| read_pem(path, Pem::Certificate)).transpose()?;
    let names = serve.tls_san.clone();
    let is_on = serve.tls || certificate.is_some() || client_ca_pem.is_some() || !names.is_empty();
    Ok(is_on.then_some(Tls { names, certificate, client_ca_pem }))
}

impl From<low::Controllers> for Controllers {
    fn from(controllers: low::Controllers) -> Self {
        match controllers {
            low::Controllers::All => Self::All,
            low::Controllers::None => Self::None,
        }
    }
}

/// Returns the faults with these names.
pub(super) fn faults<C: FromIterator<Fault>>(names: &[String]) -> Result<C, Error> {
    let fault = |name: &String| {
        let all = || Fault::all().map(Fault::name);
        let list = "`kubeproof serve --list-faults` prints all faults";
        let unknown = || Error::unknown("fault", name, all(), list);
        Fault::from_name(name).ok_or_else(unknown)
    };
    names.iter().map(fault).collect()
}

/// Returns the variations that the seed selects, and those with these names.
fn variations(seed: Option<u64>, names: &[String]) -> Result<Variations, Error> {
    let seeded = seed.map_or(Variations::none(), Variations::from_seed);
    names.iter().try_fold(seeded, |variations, name| {
        let all = || Variation::all().map(Variation::name);
        let list = "`kubeproof serve --list-variations` prints all variations";
        let unknown = || Error::unknown("variation", name, all(), list);
        let variation = Variation::from_name(name).ok_or_else(unknown)?;
        Ok(variations.with(variation))
    })
}
