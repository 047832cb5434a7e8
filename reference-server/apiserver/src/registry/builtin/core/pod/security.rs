//! The security context of a pod.

use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{boolean, definitions, int64, list, string};

definitions! {
    "io.k8s.api.core.v1"

    pod_security_context PodSecurityContext {
        appArmorProfile: app_armor_profile(), fsGroup: int64(), fsGroupChangePolicy: string(),
        runAsGroup: int64(), runAsNonRoot: boolean(), runAsUser: int64(),
        seLinuxChangePolicy: string(),
        seLinuxOptions: se_linux_options(), seccompProfile: seccomp_profile(),
        supplementalGroups: list(int64()), supplementalGroupsPolicy: string(),
        sysctls: list(sysctl()),
        windowsOptions: windows_security_context_options(),
    }
    security_context SecurityContext {
        allowPrivilegeEscalation: boolean(), appArmorProfile: app_armor_profile(),
        capabilities: capabilities(), privileged: boolean(), procMount: string(),
        readOnlyRootFilesystem: boolean(), runAsGroup: int64(), runAsNonRoot: boolean(),
        runAsUser: int64(), seLinuxOptions: se_linux_options(), seccompProfile: seccomp_profile(),
        windowsOptions: windows_security_context_options(),
    }
    app_armor_profile AppArmorProfile { localhostProfile: string(), need type: string() }
    capabilities Capabilities { add: list(string()), drop: list(string()) }
    se_linux_options SELinuxOptions {
        level: string(), role: string(), type: string(), user: string(),
    }
    seccomp_profile SeccompProfile { localhostProfile: string(), need type: string() }
    windows_security_context_options WindowsSecurityContextOptions {
        gmsaCredentialSpec: string(), gmsaCredentialSpecName: string(), hostProcess: boolean(),
        runAsUserName: string(),
    }
    sysctl Sysctl { need name: string(), value: string() }
}
