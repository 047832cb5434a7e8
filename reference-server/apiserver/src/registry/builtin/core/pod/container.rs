//! The containers of a pod.

use super::security::security_context;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    boolean, choice, definitions, int_or_string, int32, int64, list, map, port, protocol, quantity,
    string,
};

definitions! {
    "io.k8s.api.core.v1"

    container Container {
        args: list(string()), command: list(string()), env: list(env_var()).merge_by("name"),
        envFrom: list(env_from_source()), need image: string(),
        imagePullPolicy: choice(&["Always", "IfNotPresent", "Never"]), lifecycle: lifecycle(),
        livenessProbe: probe(), need name: string(),
        ports: list(container_port())
            .merge_by("containerPort").keyed(&["containerPort", "protocol"]),
        readinessProbe: probe(), resizePolicy: list(container_resize_policy()),
        resources: resource_requirements().or_empty(), restartPolicy: string(),
        restartPolicyRules: list(container_restart_rule()),
        securityContext: security_context(), startupProbe: probe(), stdin: boolean(),
        stdinOnce: boolean(), terminationMessagePath: string().or("/dev/termination-log"),
        terminationMessagePolicy: choice(&["FallbackToLogsOnError", "File"]).or("File"),
        tty: boolean(),
        volumeDevices: list(volume_device()).merge_by("devicePath"),
        volumeMounts: list(volume_mount()).merge_by("mountPath"), workingDir: string(),
    }
    container_port ContainerPort {
        need containerPort: port(), hostIP: string(), hostPort: int32().between(0, 65535),
        name: string(),
        protocol: protocol().or("TCP"),
    }
    container_resize_policy ContainerResizePolicy {
        need resourceName: string(), need restartPolicy: string(),
    }
    container_restart_rule ContainerRestartRule {
        need action: choice(&["Restart"]), exitCodes: container_restart_rule_on_exit_codes(),
    }
    container_restart_rule_on_exit_codes ContainerRestartRuleOnExitCodes {
        need operator: choice(&["In", "NotIn"]), values: list(int32()),
    }
    env_from_source EnvFromSource {
        configMapRef: config_map_env_source(), prefix: string(), secretRef: secret_env_source(),
    }
    config_map_env_source ConfigMapEnvSource { name: string(), optional: boolean() }
    secret_env_source SecretEnvSource { name: string(), optional: boolean() }
    env_var EnvVar { need name: string(), value: string(), valueFrom: env_var_source() }
    env_var_source EnvVarSource {
        configMapKeyRef: config_map_key_selector(), fieldRef: object_field_selector(),
        fileKeyRef: file_key_selector(),
        resourceFieldRef: resource_field_selector(), secretKeyRef: secret_key_selector(),
    }
    config_map_key_selector ConfigMapKeySelector {
        need key: string(), name: string(), optional: boolean(),
    }
    file_key_selector FileKeySelector {
        need key: string(), optional: boolean(), need path: string(), need volumeName: string(),
    }
    object_field_selector ObjectFieldSelector {
        apiVersion: string().or("v1"), need fieldPath: string(),
    }
    resource_field_selector ResourceFieldSelector {
        containerName: string(), divisor: quantity(), need resource: string(),
    }
    secret_key_selector SecretKeySelector {
        need key: string(), name: string(), optional: boolean(),
    }
    lifecycle Lifecycle {
        postStart: lifecycle_handler(), preStop: lifecycle_handler(), stopSignal: string(),
    }
    lifecycle_handler LifecycleHandler {
        exec: exec_action(), httpGet: http_get_action(), sleep: sleep_action(),
        tcpSocket: tcp_socket_action(),
    }
    exec_action ExecAction { command: list(string()) }
    http_get_action HTTPGetAction {
        host: string(), httpHeaders: list(http_header()), path: string().or("/"),
        need port: int_or_string(), scheme: choice(&["HTTP", "HTTPS"]).or("HTTP"),
    }
    http_header HTTPHeader { need name: string(), value: string() }
    sleep_action SleepAction { need seconds: int64() }
    tcp_socket_action TCPSocketAction { host: string(), need port: int_or_string() }
    probe Probe {
        exec: exec_action(), failureThreshold: int32().at_least(0).or(3), grpc: grpc_action(),
        httpGet: http_get_action(), initialDelaySeconds: int32().at_least(0),
        periodSeconds: int32().at_least(0).or(10), successThreshold: int32().at_least(0).or(1),
        tcpSocket: tcp_socket_action(), terminationGracePeriodSeconds: int64(),
        timeoutSeconds: int32().at_least(0).or(1),
    }
    grpc_action GRPCAction { need port: int32(), service: string().written_when_empty().or("") }
    resource_requirements ResourceRequirements {
        claims: list(resource_claim()).merge_by("name"), limits: map(quantity()),
        requests: map(quantity()),
    }
    resource_claim ResourceClaim { need name: string(), request: string() }
    volume_device VolumeDevice { need devicePath: string(), need name: string() }
    volume_mount VolumeMount {
        need mountPath: string(),
        mountPropagation: choice(&["Bidirectional", "HostToContainer", "None"]),
        need name: string(), readOnly: boolean(), recursiveReadOnly: string(), subPath: string(),
        subPathExpr: string(),
    }
    ephemeral_container EphemeralContainer {
        args: list(string()), command: list(string()), env: list(env_var()).merge_by("name"),
        envFrom: list(env_from_source()), need image: string(),
        imagePullPolicy: choice(&["Always", "IfNotPresent", "Never"]), lifecycle: lifecycle(),
        livenessProbe: probe(), need name: string(),
        ports: list(container_port())
            .merge_by("containerPort").keyed(&["containerPort", "protocol"]),
        readinessProbe: probe(), resizePolicy: list(container_resize_policy()),
        resources: resource_requirements().or_empty(), restartPolicy: string(),
        restartPolicyRules: list(container_restart_rule()),
        securityContext: security_context(), startupProbe: probe(), stdin: boolean(),
        stdinOnce: boolean(), targetContainerName: string(),
        terminationMessagePath: string().or("/dev/termination-log"),
        terminationMessagePolicy: choice(&["FallbackToLogsOnError", "File"]).or("File"),
        tty: boolean(),
        volumeDevices: list(volume_device()).merge_by("devicePath"),
        volumeMounts: list(volume_mount()).merge_by("mountPath"), workingDir: string(),
    }
}
