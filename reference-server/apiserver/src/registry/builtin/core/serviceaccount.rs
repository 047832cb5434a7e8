//! `serviceaccounts`.

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, CREATE_ONLY, Subresource};

pub(super) fn service_accounts() -> BuiltinType {
    BuiltinType {
        subresources: &[Subresource {
            name: "token",
            verbs: CREATE_ONLY,
            group: "authentication.k8s.io",
            version: "v1",
            kind: "TokenRequest",
            part: None,
        }],
        ..resource("", "v1", "serviceaccounts")
    }
}
