//! Helpers that several folders share.
//!
//! | file | content |
//! | --- | --- |
//! | `requests` | what a request does, and edits of its body |
//! | `deletions` | deletions and their options |
//! | `identity` | who the client is, and what it may do |
//! | `objects` | API objects and the values inside them |
//! | `failures`, `causes` | failures, and the mistakes that they report |
//! | `events` | the events of watches |
//! | `overrides` | values that clients see instead of the stored ones |
//! | `selector_terms` | the terms of label and field selectors |
//! | `server`, `served` | requests of the middleware, and lookups of resources |

pub(crate) mod causes;
pub(crate) mod deletions;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod identity;
pub(crate) mod objects;
pub(crate) mod overrides;
pub(crate) mod requests;
pub(crate) mod selector_terms;
pub(crate) mod served;
pub(crate) mod server;
