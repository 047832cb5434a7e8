//! Admission: checks of a write that need the namespace or the permissions of the user.

pub(crate) mod escalation;
pub(crate) mod namespace_lifecycle;
pub(crate) mod signers;

use crate::authentication::User;
use crate::authorization::Rights;
use crate::registry::ResourceType;
use kubeproof_apimachinery::request::ResourceInfo;

/// The request that admission checks.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) ty: &'a ResourceType,
    pub(crate) info: &'a ResourceInfo,
    pub(crate) user: &'a User,
    pub(crate) rights: Rights<'a>,
}
