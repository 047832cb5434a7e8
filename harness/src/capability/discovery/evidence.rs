//! Finds out by a few requests whether a server without discovery serves anything, so that a run
//! against the URL of something else ends at once.

use futures_util::future::{join_all, join4};

use super::redirects::{self, Document};
use super::unlisted::{self, Search, WantedResource};
use super::{AGGREGATED, JSON, documents, openapi, resources_of};
use crate::capability::{ProbeOptions, Requester};

/// The root of a group version that most servers have, and a resource of it.
const CORE: &str = "/api/v1";
const CONFIG_MAPS: &str = "/api/v1/configmaps?limit=1";

/// Reports whether a server serves OpenAPI, the core group, config maps, or a resource that the
/// user named. If it redirects, discovery may be behind a redirect.
pub(crate) async fn serves_anything(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
    is_redirected: bool,
) -> bool {
    let discovery: &[&str] = if is_redirected { &["/api", "/apis"] } else { &[] };
    let discovery =
        join_all(discovery.iter().map(|path| redirects::get(requester, path, AGGREGATED)));
    if discovery.await.iter().any(is_discovery) {
        return true;
    }
    let named = options.wanted.iter().filter(|wanted| wanted.search == Search::Named);
    let named = join_all(named.map(async |wanted| {
        let wanted = WantedResource { search: Search::Always, ..wanted.clone() };
        unlisted::look_up(requester, options, &wanted).await.is_some()
    }));
    let (roots, core, config_maps, named) = join4(
        openapi::roots(requester),
        redirects::get(requester, CORE, JSON),
        requester.get(CONFIG_MAPS, JSON),
        named,
    )
    .await;
    !roots.is_empty()
        || resources_of(&core, CORE).is_some()
        || unlisted::shows_resource(&config_maps)
        || named.contains(&true)
}

fn is_discovery(document: &Document) -> bool {
    let is_known = |json| documents::is_aggregated(json) || documents::roots(json).is_some();
    document.exchange.json().is_some_and(is_known)
}
