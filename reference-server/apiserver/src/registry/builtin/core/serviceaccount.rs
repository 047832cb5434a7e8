//! `serviceaccounts`.

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, CREATE_ONLY, Hooks, Subresource, warnings};

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
        hooks: Hooks {
            checks_prefix: true,
            warn: warnings::cluster::service_account,
            prepare_create: keep_names,
            prepare_update: |new, _| keep_names(new),
            ..Hooks::NONE
        },
        ..resource("", "v1", "serviceaccounts")
    }
}

/// A reference to a secret has only its name.
fn keep_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let name = secret["name"].as_str().filter(|name| !name.is_empty());
        *secret = name.map_or_else(|| json!({}), |name| json!({ "name": name }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_only_its_name() {
        let mut account = json!({"secrets": [{"kind": "Secret", "name": "a"}, {"kind": "Secret"}]});
        keep_names(&mut account);
        assert_eq!(account, json!({"secrets": [{"name": "a"}, {}]}));
    }
}
