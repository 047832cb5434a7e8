//! The middleware of each fault, with one file for each part of the API.
//!
//! | files | faults of |
//! | --- | --- |
//! | `creates`, `generated_names`, `write_options`, `validation`, `decoding` | creates |
//! | `strictness` | strict validation of fields |
//! | `builtin_rules`, `defaults`, `dry_runs` | rules and defaults of built-in kinds, dry runs |
//! | `repairs`, `limits`, `matching` | values that are changed, limits, spelling |
//! | `reads`, `lists`, `pages`, `selectors`, `tables`, `negotiation` | reads and lists |
//! | `updates`, `scale`, `parts`, `versions`, `generation` | updates |
//! | `patches`, `patch_forms`, `json_patches` | patches |
//! | `status_parts`, `status_writes`, `subresource_writes` | writes to subresources |
//! | `apply`, `configurations` | server-side apply |
//! | `admission` | admission plugins |
//! | `deletion`, `delete_options`, `collections` | deletions |
//! | `garbage`, `evictions`, `namespaces` | what follows a deletion |
//! | `watches`, `watch_starts`, `watch_streams`, `selections` | watches |
//! | `objects`, `timestamps`, `values`, `uids`, `statuses`, `config_maps` | stored objects |
//! | `definitions`, `definition_versions`, `conversion` | custom resource definitions |
//! | `definition_life`, `service_ports` | deleted definitions, ports of services |
//! | `schemas`, `rules`, `rule_costs`, `formats` | the schemas of custom resources |
//! | `discovery`, `openapi`, `caches`, `paths`, `routing` | discovery and paths |
//! | `health`, `server_documents` | the health endpoints, documents about the server |
//! | `authentication`, `authorization`, `roles`, `reviews`, `tokens` | users and permissions |
//! | `logs`, `proxies`, `proxy_credentials`, `streams` | pods |
//! | `admission_policies`, `policy_operations` | admission policies and webhooks |
//! | `flashes`, `unchecked`, `timeouts` | short-lived states and missing validation |
//!
//! The folder `support` has helpers for several files. Each other file has a function `of`, which
//! returns the middleware of its faults and `None` for other faults.

mod admission;
mod admission_policies;
mod api_services;
mod apply;
mod apply_merges;
mod authentication;
mod authorization;
mod builtin_rules;
mod caches;
mod collections;
mod config_maps;
mod configurations;
mod conversion;
mod creates;
mod decoding;
mod defaults;
mod definition_life;
mod definition_versions;
mod definitions;
mod delete_options;
mod deletion;
mod discovery;
mod dry_runs;
mod evictions;
mod flashes;
mod formats;
mod framing;
mod garbage;
mod generated_names;
mod generation;
mod health;
mod json_patches;
mod limits;
mod lists;
mod logs;
mod matching;
mod namespaces;
mod negotiation;
mod objects;
mod openapi;
mod overlays;
mod pages;
mod parts;
mod patch_forms;
mod patches;
mod paths;
mod policy_operations;
mod protobuf;
mod proxies;
mod proxy_credentials;
mod reads;
mod repairs;
mod reviews;
mod roles;
mod routing;
mod rule_costs;
mod rules;
mod scale;
mod schemas;
mod selections;
mod selectors;
mod server_documents;
mod service_ports;
mod status_parts;
mod status_writes;
mod statuses;
mod streams;
mod strictness;
mod subresource_writes;
mod support;
mod tables;
mod timeouts;
mod timestamps;
mod tokens;
mod uids;
mod unchecked;
mod updates;
mod validation;
mod values;
mod versions;
mod watch_starts;
mod watch_streams;
mod watches;
mod write_options;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of the faults of one file.
type Part = fn(Fault) -> Option<Box<dyn Middleware>>;

const PARTS: &[Part] = &[
    admission::of,
    admission_policies::of,
    api_services::of,
    apply::of,
    apply_merges::of,
    authentication::of,
    authorization::of,
    builtin_rules::of,
    caches::of,
    collections::of,
    config_maps::of,
    configurations::of,
    conversion::of,
    flashes::of,
    framing::of,
    overlays::of,
    uids::of,
    watch_starts::of,
    watch_streams::of,
    creates::of,
    decoding::of,
    defaults::of,
    definition_life::of,
    definition_versions::of,
    definitions::of,
    delete_options::of,
    deletion::of,
    discovery::of,
    dry_runs::of,
    evictions::of,
    garbage::of,
    generated_names::of,
    generation::of,
    health::of,
    json_patches::of,
    limits::of,
    lists::of,
    logs::of,
    matching::of,
    namespaces::of,
    negotiation::of,
    objects::of,
    openapi::of,
    pages::of,
    parts::of,
    patch_forms::of,
    patches::of,
    paths::of,
    policy_operations::of,
    protobuf::of,
    proxies::of,
    proxy_credentials::of,
    reads::of,
    repairs::of,
    reviews::of,
    roles::of,
    routing::of,
    rule_costs::of,
    formats::of,
    rules::of,
    scale::of,
    schemas::of,
    selections::of,
    selectors::of,
    server_documents::of,
    service_ports::of,
    status_parts::of,
    status_writes::of,
    statuses::of,
    streams::of,
    strictness::of,
    subresource_writes::of,
    tables::of,
    timeouts::of,
    timestamps::of,
    tokens::of,
    unchecked::of,
    updates::of,
    validation::of,
    values::of,
    versions::of,
    watches::of,
    write_options::of,
];

/// Returns the middleware of a fault; `None` if no part has one.
pub(crate) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    PARTS.iter().find_map(|part| part(fault))
}

/// Returns the request that a middleware passes on.
#[cfg(test)]
pub(crate) async fn sent(
    middleware: Option<Box<dyn Middleware>>,
    request: crate::exchange::Request,
) -> Option<crate::exchange::Request> {
    use std::sync::{Arc, Mutex};

    use crate::exchange::Response;
    use crate::middleware::{Next, around};

    let seen = Arc::new(Mutex::new(None));
    let keeper = Arc::clone(&seen);
    let server = crate::upstream::Upstream::new("token", |_, _| ()).ok()?;
    let rest = [around(move |request, _| {
        *keeper.lock().expect("no test panicked") = Some(request);
        Box::pin(async { Response::text(http::StatusCode::OK, "") })
    })];
    middleware?.handle(request, Next { rest: &rest, server: &server }).await;
    seen.lock().expect("no test panicked").take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_middleware() {
        let missing: Vec<&str> =
            Fault::all().filter(|fault| of(*fault).is_none()).map(Fault::name).collect();
        assert!(missing.is_empty(), "faults without middleware: {missing:?}");
    }
}
