//! The user of a client certificate: the common name is the user, the organizations are the groups.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::AttributeTypeAndValue;

use super::{AUTHENTICATED, CREDENTIAL_ID, User};
use crate::certificates::PeerCertificates;

/// Returns the user of a verified certificate. A certificate without a common name has none.
pub(super) fn user(peer: &PeerCertificates) -> Option<User> {
    let leaf = peer.leaf()?;
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let subject = certificate.subject();
    let text = |attribute: &AttributeTypeAndValue<'_>| attribute.as_str().ok().map(str::to_owned);
    let name = subject.iter_common_name().last().and_then(text).filter(|name| !name.is_empty())?;
    let mut groups: Vec<String> = subject.iter_organization().filter_map(text).collect();
    groups.push(AUTHENTICATED.to_owned());
    let id = format!("X509SHA256={:x}", Sha256::digest(leaf));
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
    Some(User { name, uid: String::new(), groups, extra })
}
