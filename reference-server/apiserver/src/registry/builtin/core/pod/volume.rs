//! The volumes of a pod.

use super::container::{object_field_selector, resource_field_selector};
use super::spec::local_object_reference;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    boolean, definitions, int32, int64, list, map, quantity, string,
};
use kubeproof_apimachinery::schema::meta::{label_selector, object_meta};

definitions! {
    "io.k8s.api.core.v1"

    volume Volume {
        awsElasticBlockStore: aws_elastic_block_store_volume_source(),
        azureDisk: azure_disk_volume_source(), azureFile: azure_file_volume_source(),
        cephfs: ceph_fs_volume_source(), cinder: cinder_volume_source(),
        configMap: config_map_volume_source(), csi: csi_volume_source(),
        downwardAPI: downward_api_volume_source(), emptyDir: empty_dir_volume_source(),
        ephemeral: ephemeral_volume_source(), fc: fc_volume_source(),
        flexVolume: flex_volume_source(),
        flocker: flocker_volume_source(), gcePersistentDisk: gce_persistent_disk_volume_source(),
        gitRepo: git_repo_volume_source(), glusterfs: glusterfs_volume_source(),
        hostPath: host_path_volume_source(), image: image_volume_source(),
        iscsi: iscsi_volume_source(),
        need name: string(), nfs: nfs_volume_source(),
        persistentVolumeClaim: persistent_volume_claim_volume_source(),
        photonPersistentDisk: photon_persistent_disk_volume_source(),
        portworxVolume: portworx_volume_source(), projected: projected_volume_source(),
        quobyte: quobyte_volume_source(), rbd: rbd_volume_source(),
        scaleIO: scale_io_volume_source(),
        secret: secret_volume_source(), storageos: storage_os_volume_source(),
        vsphereVolume: vsphere_virtual_disk_volume_source(),
    }
    aws_elastic_block_store_volume_source AWSElasticBlockStoreVolumeSource {
        fsType: string(), partition: int32(), readOnly: boolean(), need volumeID: string(),
    }
    azure_disk_volume_source AzureDiskVolumeSource {
        cachingMode: string(), need diskName: string(), need diskURI: string(), fsType: string(),
        kind: string(), readOnly: boolean(),
    }
    azure_file_volume_source AzureFileVolumeSource {
        readOnly: boolean(), need secretName: string(), need shareName: string(),
    }
    csi_volume_source CSIVolumeSource {
        need driver: string(), fsType: string(), nodePublishSecretRef: local_object_reference(),
        readOnly: boolean(), volumeAttributes: map(string()),
    }
    ceph_fs_volume_source CephFSVolumeSource {
        need monitors: list(string()), path: string(), readOnly: boolean(), secretFile: string(),
        secretRef: local_object_reference(), user: string(),
    }
    cinder_volume_source CinderVolumeSource {
        fsType: string(), readOnly: boolean(), secretRef: local_object_reference(),
        need volumeID: string(),
    }
    config_map_volume_source ConfigMapVolumeSource {
        defaultMode: int32().between(0, 0o777).or(0o644), items: list(key_to_path()),
        name: string(),
        optional: boolean(),
    }
    key_to_path KeyToPath { need key: string(), mode: int32(), need path: string() }
    downward_api_volume_source DownwardAPIVolumeSource {
        defaultMode: int32().between(0, 0o777).or(0o644), items: list(downward_api_volume_file()),
    }
    downward_api_volume_file DownwardAPIVolumeFile {
        fieldRef: object_field_selector(), mode: int32(), need path: string(),
        resourceFieldRef: resource_field_selector(),
    }
    empty_dir_volume_source EmptyDirVolumeSource { medium: string(), sizeLimit: quantity() }
    ephemeral_volume_source EphemeralVolumeSource {
        volumeClaimTemplate: persistent_volume_claim_template(),
    }
    persistent_volume_claim_template PersistentVolumeClaimTemplate {
        metadata: object_meta(), need spec: persistent_volume_claim_spec(),
    }
    persistent_volume_claim_spec PersistentVolumeClaimSpec {
        accessModes: list(string()), dataSource: typed_local_object_reference(),
        dataSourceRef: typed_object_reference(), resources: volume_resource_requirements(),
        selector: label_selector(), storageClassName: string(), volumeAttributesClassName: string(),
        volumeMode: string().or("Filesystem"), volumeName: string(),
    }
    typed_local_object_reference TypedLocalObjectReference {
        apiGroup: string(), need kind: string(), need name: string(),
    }
    typed_object_reference TypedObjectReference {
        apiGroup: string(), need kind: string(), need name: string(), namespace: string(),
    }
    volume_resource_requirements VolumeResourceRequirements {
        limits: map(quantity()), requests: map(quantity()),
    }
    fc_volume_source FCVolumeSource {
        fsType: string(), lun: int32(), readOnly: boolean(), targetWWNs: list(string()),
        wwids: list(string()),
    }
    flex_volume_source FlexVolumeSource {
        need driver: string(), fsType: string(), options: map(string()), readOnly: boolean(),
        secretRef: local_object_reference(),
    }
    flocker_volume_source FlockerVolumeSource { datasetName: string(), datasetUUID: string() }
    gce_persistent_disk_volume_source GCEPersistentDiskVolumeSource {
        fsType: string(), partition: int32(), need pdName: string(), readOnly: boolean(),
    }
    git_repo_volume_source GitRepoVolumeSource {
        directory: string(), need repository: string(), revision: string(),
    }
    glusterfs_volume_source GlusterfsVolumeSource {
        need endpoints: string(), need path: string(), readOnly: boolean(),
    }
    host_path_volume_source HostPathVolumeSource {
        need path: string(), type: string().written_when_empty().or(""),
    }
    iscsi_volume_source ISCSIVolumeSource {
        chapAuthDiscovery: boolean(), chapAuthSession: boolean(), fsType: string(),
        initiatorName: string(), need iqn: string(), iscsiInterface: string(), need lun: int32(),
        portals: list(string()), readOnly: boolean(), secretRef: local_object_reference(),
        need targetPortal: string(),
    }
    image_volume_source ImageVolumeSource { pullPolicy: string(), reference: string() }
    nfs_volume_source NFSVolumeSource {
        need path: string(), readOnly: boolean(), need server: string(),
    }
    persistent_volume_claim_volume_source PersistentVolumeClaimVolumeSource {
        need claimName: string(), readOnly: boolean(),
    }
    photon_persistent_disk_volume_source PhotonPersistentDiskVolumeSource {
        fsType: string(), need pdID: string(),
    }
    portworx_volume_source PortworxVolumeSource {
        fsType: string(), readOnly: boolean(), need volumeID: string(),
    }
    projected_volume_source ProjectedVolumeSource {
        defaultMode: int32().between(0, 0o777).or(0o644), sources: list(volume_projection()),
    }
    volume_projection VolumeProjection {
        clusterTrustBundle: cluster_trust_bundle_projection(), configMap: config_map_projection(),
        downwardAPI: downward_api_projection(), secret: secret_projection(),
        serviceAccountToken: service_account_token_projection(),
    }
    cluster_trust_bundle_projection ClusterTrustBundleProjection {
        labelSelector: label_selector(), name: string(), optional: boolean(), need path: string(),
        signerName: string(),
    }
    config_map_projection ConfigMapProjection {
        items: list(key_to_path()), name: string(), optional: boolean(),
    }
    downward_api_projection DownwardAPIProjection { items: list(downward_api_volume_file()) }
    secret_projection SecretProjection {
        items: list(key_to_path()), name: string(), optional: boolean(),
    }
    service_account_token_projection ServiceAccountTokenProjection {
        audience: string(), expirationSeconds: int64().at_least(600).or(3600), need path: string(),
    }
    quobyte_volume_source QuobyteVolumeSource {
        group: string(), readOnly: boolean(), need registry: string(), tenant: string(),
        user: string(),
        need volume: string(),
    }
    rbd_volume_source RBDVolumeSource {
        fsType: string(), need image: string(), keyring: string(), need monitors: list(string()),
        pool: string(), readOnly: boolean(), secretRef: local_object_reference(), user: string(),
    }
    scale_io_volume_source ScaleIOVolumeSource {
        fsType: string(), need gateway: string(), protectionDomain: string(), readOnly: boolean(),
        need secretRef: local_object_reference(), sslEnabled: boolean(), storageMode: string(),
        storagePool: string(), need system: string(), volumeName: string(),
    }
    secret_volume_source SecretVolumeSource {
        defaultMode: int32().between(0, 0o777).or(0o644), items: list(key_to_path()),
        optional: boolean(),
        secretName: string(),
    }
    storage_os_volume_source StorageOSVolumeSource {
        fsType: string(), readOnly: boolean(), secretRef: local_object_reference(),
        volumeName: string(),
        volumeNamespace: string(),
    }
    vsphere_virtual_disk_volume_source VsphereVirtualDiskVolumeSource {
        fsType: string(), storagePolicyID: string(), storagePolicyName: string(),
        need volumePath: string(),
    }
}
