//! The options of pod logs.

use kubeproof_apimachinery::request::Query;

use crate::middleware::{Middleware, requests};
use crate::set::Fault;

/// Options with the least value that is valid.
const LEAST: [(&str, i64); 3] = [("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignored: &'static [&'static str] = match fault {
        Fault::LogFollowEnds => &["follow"],
        Fault::LogPreviousIgnored => &["previous"],
        Fault::LogTailIgnored => &["tailLines"],
        Fault::LogLimitIgnored => &["limitBytes"],
        Fault::LogSinceIgnored => &["sinceSeconds", "sinceTime"],
        Fault::LogTimestampsMissing => &["timestamps"],
        Fault::LogOptionsUnchecked => return Some(options(without_invalid)),
        _ => return None,
    };
    Some(options(move |query| {
        for name in ignored {
            query.remove(name);
        }
    }))
}

/// Edits the options of requests for logs.
fn options(edit: impl Fn(&mut Query) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        let target = request.target();
        if target.is_core("pods") && target.subresource == "log" {
            request.edit_query(&edit);
        }
    })
}

/// Removes the options that the server rejects.
fn without_invalid(query: &mut Query) {
    for (name, least) in LEAST {
        let value: Option<i64> = query.get(name).and_then(|value| value.parse().ok());
        if value.is_some_and(|value| value < least) {
            query.remove(name);
        }
    }
    if query.get("sinceSeconds").is_some() {
        query.remove("sinceTime");
    }
}
