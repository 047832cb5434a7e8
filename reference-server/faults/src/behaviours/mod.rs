//! The middleware of each fault, in a folder for each part of the API.
//!
//! | folder | faults of |
//! | --- | --- |
//! | `creates` | names, uids and defaults of new objects |
//! | `writes` | bodies of all writes, stored values, options such as dry runs |
//! | `validation` | limits, rules, immutable fields, and how rejections report mistakes |
//! | `responses` | objects and failures in responses, protobuf |
//! | `reads` | single objects, lists, pages, selectors, tables |
//! | `updates` | updates, versions, generations, timestamps |
//! | `subresources` | `scale`, `status` and other writes of a part of an object |
//! | `patches` | JSON patches, merge patches, strategic merge patches |
//! | `apply` | server-side apply |
//! | `admission` | admission plugins, policies, webhooks |
//! | `deletion` | deletions of objects, collections and namespaces, garbage collection |
//! | `watches` | starts, events and selections of watches |
//! | `definitions` | custom resource definitions, their schemas, rules and versions |
//! | `discovery` | discovery, OpenAPI, health endpoints, aggregated API servers |
//! | `access` | users, permissions, reviews, tokens |
//! | `protocol` | paths, methods, queries, media types, framing |
//! | `pods` | logs, proxies, evictions |
//! | `streams` | exec, attach, port-forward, and watches and logs over WebSocket |
//!
//! Each of these folders and of their files has a function `of`, which returns the middleware of
//! its faults and `None` for other faults. `support` has helpers for several folders.

mod access;
mod admission;
mod apply;
mod creates;
mod definitions;
mod deletion;
mod discovery;
mod patches;
mod pods;
mod protocol;
mod reads;
mod responses;
mod streams;
mod subresources;
mod support;
mod updates;
mod validation;
mod watches;
mod writes;

use crate::middleware::Middleware;

/// Defines [`Fault`] from the rows of all folders. Each macro `rows` adds its rows to those of the
/// folders before it, and calls this macro for the folders after it.
macro_rules! enumerated {
    ([] $($file:ident { $($row:tt)* })*) => {
        kubeproof_apimachinery::named! {
            /// A deliberate bug.
            Fault { $($($row)*)* }
        }
    };
    ([$folder:ident $($after:ident)*] $($before:tt)*) => {
        $folder::faults::rows! { enumerated [$($after)*] $($before)* }
    };
}

/// Returns the middleware of a fault from the file that the rows of the folder name.
macro_rules! handled {
    ($fault:ident $($file:ident { $($variant:ident $name:literal $summary:literal)* })*) => {
        match $fault {
            $($(Fault::$variant)|* => $file::of($fault),)*
            _ => None,
        }
    };
}
use handled;

// The middleware of several faults forms a chain in this order.
enumerated! {
    [creates writes validation responses reads updates subresources patches apply admission
     deletion watches definitions discovery access protocol pods streams]
}

/// Returns the middleware of the faults of one folder.
type Part = fn(Fault) -> Option<Box<dyn Middleware>>;

const PARTS: &[Part] = &[
    creates::of,
    writes::of,
    validation::of,
    responses::of,
    reads::of,
    updates::of,
    subresources::of,
    patches::of,
    apply::of,
    admission::of,
    deletion::of,
    watches::of,
    definitions::of,
    discovery::of,
    access::of,
    protocol::of,
    pods::of,
    streams::of,
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
    fn every_fault_has_middleware_in_the_file_that_its_row_names() {
        let missing: Vec<&str> =
            Fault::all().filter(|fault| of(*fault).is_none()).map(Fault::name).collect();
        assert!(
            missing.is_empty(),
            "faults without middleware in the file of the row: {missing:?}"
        );
    }
}
