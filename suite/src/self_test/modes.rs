//! Modes: the whole suite against a conformant server, by users with few rights and with options
//! that limit the run. No case may fail.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Identity;
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection, plan};
use kubeproof_harness::run::results;
use kubeproof_harness::transport::{Client, Outgoing};
use kubeproof_reference_server::Config;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Bundled, CASE_TIMEOUT, JOBS, LONG_HISTORY, SelfTestError, explain, title};

/// The namespace in which the user of [`Mode::OneNamespace`] has all rights.
const NAMESPACE: &str = "team";

/// Time limit of a request that prepares the server.
const PREPARATION: Duration = Duration::from_secs(30);

/// A way to run the suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// `--namespace default`.
    NamespaceDefault,
    /// The token of a user without rights.
    NoRights,
    /// The token of a user with all rights in one namespace, and `--namespace`.
    OneNamespace,
    /// `--read-only`.
    ReadOnly,
}

/// The results of the cases in one mode.
#[derive(Clone, Debug)]
pub struct Row {
    /// The mode.
    pub mode: Mode,
    /// The number of results that are not skips.
    pub ran: usize,
    /// The number of skips.
    pub skipped: usize,
    /// Results that a conformant server must not get.
    pub findings: Vec<String>,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] =
        [Self::NamespaceDefault, Self::NoRights, Self::OneNamespace, Self::ReadOnly];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::NamespaceDefault => "namespace-default",
            Self::NoRights => "no-rights",
            Self::OneNamespace => "one-namespace",
            Self::ReadOnly => "read-only",
        }
    }

    /// Returns the mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Reports whether cases may end in errors, because the user lacks rights.
    fn lacks_rights(self) -> bool {
        matches!(self, Self::NoRights | Self::OneNamespace)
    }

    fn options(self, selection: &Selection) -> RunOptions {
        let namespace = match self {
            Self::NamespaceDefault => Some("default"),
            Self::OneNamespace => Some(NAMESPACE),
            Self::NoRights | Self::ReadOnly => None,
        };
        RunOptions {
            selection: selection.clone(),
            namespace: namespace.map(str::to_owned),
            read_only: self == Self::ReadOnly,
            case_timeout: CASE_TIMEOUT,
            jobs: JOBS,
            ..RunOptions::default()
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Runs the cases in one mode.
pub async fn row(
    catalogue: &Catalogue,
    mode: Mode,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..Config::default() }).await?;
    if mode == Mode::OneNamespace {
        grant_namespace(&server.client).await?;
    }
    let client = if mode.lacks_rights() { server.user()? } else { server.client.clone() };
    let options = mode.options(selection);
    let client = client.within(options.write_policy());
    let plan = plan(catalogue, &client, &options).await?;
    let results = results(plan, client, &options).await;
    server.stop().await;

    let mut row = Row { mode, ran: 0, skipped: 0, findings: Vec::new() };
    for result in &results {
        row.add(result);
    }
    if row.ran == 0 {
        row.findings.push("every case is skipped".to_owned());
    }
    Ok(row)
}

impl Row {
    fn add(&mut self, result: &Arc<CaseResult>) {
        match result.verdict {
            Verdict::Skip => self.skipped += 1,
            Verdict::Error if self.mode.lacks_rights() => self.ran += 1,
            Verdict::Fail | Verdict::Error => {
                self.ran += 1;
                self.findings.push(format!("{} {}", title(result), explain(result)));
            }
            Verdict::Pass | Verdict::Deviation | Verdict::Warn => self.ran += 1,
        }
    }
}

/// Creates the namespace, and grants all rights in it to every authenticated user.
async fn grant_namespace(admin: &Client) -> Result<(), SelfTestError> {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}");
    let group = "rbac.authorization.k8s.io";
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let users = json!([{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}]);
    let objects = [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        ),
        (
            format!("{rbac}/roles"),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "Role",
                "metadata": {"name": "everything"}, "rules": everything,
            }),
        ),
        (
            format!("{rbac}/rolebindings"),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "everything"}, "subjects": users,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "everything"},
            }),
        ),
    ];
    for (path, object) in objects {
        create(admin, &path, &object).await?;
    }
    Ok(())
}

async fn create(admin: &Client, path: &str, object: &Value) -> Result<(), SelfTestError> {
    let request = Outgoing {
        method: "POST".to_owned(),
        target: path.to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: object.to_string().into(),
        identity: Identity::Admin,
        exact: false,
    };
    let created = admin.send(request, Instant::now() + PREPARATION).await;
    if created.status() == 201 {
        return Ok(());
    }
    Err(SelfTestError::Preparation { path: path.to_owned(), response: created.in_words() })
}
