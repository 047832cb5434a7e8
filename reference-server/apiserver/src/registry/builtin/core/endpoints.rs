//! `endpoints`.

use serde_json::{Value, json};

use crate::registry::builtin::data::{hooks, resource};
use crate::registry::builtin::{BuiltinType, Hooks, warnings};
use kubeproof_apimachinery::table::column::{Cell, age, column};

pub(super) fn endpoints() -> BuiltinType {
    BuiltinType {
        columns: vec![column("Endpoints", "string", Cell::Computed(addresses)), age()],
        deprecation: Some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        hooks: Hooks { warn: warnings::services::endpoints, ..hooks(false) },
        ..resource("", "v1", "endpoints")
    }
}

/// The number of addresses in a cell.
const SHOWN: usize = 3;

/// Lists the first addresses, port by port.
fn addresses(endpoints: &Value) -> Value {
    let mut all = Vec::new();
    let Some(subsets) = endpoints["subsets"].as_array().filter(|subsets| !subsets.is_empty())
    else {
        return json!("<none>");
    };
    for subset in subsets {
        let ips = || {
            let addresses = subset["addresses"].as_array().into_iter().flatten();
            addresses.map(|address| address["ip"].as_str().unwrap_or_default())
        };
        match subset["ports"].as_array().filter(|ports| !ports.is_empty()) {
            None => all.extend(ips().map(str::to_owned)),
            Some(ports) => {
                for port in ports {
                    all.extend(ips().map(|ip| host_and_port(ip, &port["port"])));
                }
            }
        }
    }
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let shown = all.join(",");
    json!(if more == 0 { shown } else { format!("{shown} + {more} more...") })
}

fn host_and_port(ip: &str, port: &Value) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), "<none>")]
    #[case(json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}), "10.0.0.1")]
    #[case(
        json!({"subsets": [{
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 81}],
        }]}),
        "10.0.0.1:80,[::1]:80,10.0.0.1:81 + 1 more..."
    )]
    fn the_first_addresses_are_shown(#[case] endpoints: Value, #[case] expected: &str) {
        assert_eq!(addresses(&endpoints), expected);
    }
}
