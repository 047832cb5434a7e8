//! The admission plugins that a server runs, by their names in kube-apiserver.

use std::collections::BTreeSet;

/// The plugins that this server implements and kube-apiserver enables by default.
const DEFAULT: [&str; 24] = [
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "PodResizeValidator",
    "PodSecurity",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    SERVICE_ACCOUNT,
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ClaimStatusPermission",
    "RoleEscalation",
];

/// The plugins that are a part of the registry in kube-apiserver.
const UNNAMED: [&str; 2] = ["ClaimStatusPermission", "RoleEscalation"];

/// The plugins of kube-apiserver that have no effect here.
const WITHOUT_EFFECT: [&str; 21] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "SecurityContextDeny",
    "PersistentVolumeLabel",
];

const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// The plugins that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPlugins(BTreeSet<&'static str>);

/// A name that is not that of a plugin, or that is both enabled and disabled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionPluginError {
    /// No plugin has this name.
    #[error("plugin {0:?} is unknown; expected one of {names}", names = known().join(", "))]
    Unknown(String),
    /// One plugin is both enabled and disabled.
    #[error("plugin {0:?} is both enabled and disabled; name it once")]
    Both(String),
}

impl Default for AdmissionPlugins {
    /// Returns the defaults of kube-apiserver without `ServiceAccount`, so that pods need no
    /// account.
    fn default() -> Self {
        let mut plugins = Self::of_kube_apiserver();
        plugins.0.remove(SERVICE_ACCOUNT);
        plugins
    }
}

impl AdmissionPlugins {
    /// Returns the defaults of kube-apiserver.
    pub fn of_kube_apiserver() -> Self {
        Self(DEFAULT.into())
    }

    /// Enables some plugins, and disables others.
    pub fn change<'n>(
        mut self,
        enable: impl IntoIterator<Item = &'n str>,
        disable: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, AdmissionPluginError> {
        let enabled = enable.into_iter().map(find).collect::<Result<BTreeSet<_>, _>>()?;
        let disabled = disable.into_iter().map(find).collect::<Result<BTreeSet<_>, _>>()?;
        if let Some(both) = enabled.intersection(&disabled).next() {
            return Err(AdmissionPluginError::Both((*both).to_owned()));
        }
        self.0.extend(enabled);
        self.0.retain(|name| !disabled.contains(name));
        Ok(self)
    }

    /// Returns whether a plugin runs.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Returns the names of all plugins of kube-apiserver.
fn known() -> Vec<&'static str> {
    DEFAULT.into_iter().chain(WITHOUT_EFFECT).filter(|name| !UNNAMED.contains(name)).collect()
}

fn find(name: &str) -> Result<&'static str, AdmissionPluginError> {
    let unknown = || AdmissionPluginError::Unknown(name.to_owned());
    known().into_iter().find(|known| *known == name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_enabled_and_disabled_by_name() {
        let plugins = AdmissionPlugins::default();
        assert!(plugins.has("LimitRanger") && !plugins.has(SERVICE_ACCOUNT));
        let changed = plugins.change(["ServiceAccount"], ["LimitRanger"]).expect("known names");
        assert!(changed.has(SERVICE_ACCOUNT) && !changed.has("LimitRanger"));
        assert!(AdmissionPlugins::of_kube_apiserver().has(SERVICE_ACCOUNT));
    }

    #[test]
    fn wrong_names_are_errors() {
        let change = |enable: &'static str, disable: &'static str| {
            AdmissionPlugins::default().change([enable], [disable]).map(drop)
        };
        let unknown = change("Other", "LimitRanger").unwrap_err();
        assert!(unknown.to_string().starts_with("plugin \"Other\" is unknown; expected one of "));
        let both = change("LimitRanger", "LimitRanger");
        assert_eq!(both, Err(AdmissionPluginError::Both("LimitRanger".to_owned())));
        assert_eq!(change("NodeRestriction", "AlwaysDeny"), Ok(()));
    }
}
