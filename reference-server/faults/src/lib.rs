//! Deliberate bugs and permitted variations of the reference server, as middleware between the
//! client and the server.
//!
//! A [`Proxy`] accepts connections, passes each request through the middleware of the enabled
//! faults or variations, and forwards it to the server over a connection in memory. The middleware
//! edits requests, responses, watch events and stream frames, and can send requests of its own. The
//! server behind it has no code for faults.
//!
//! # Model
//!
//! - A [`Fault`] is one bug with a name, such as `lost-update`. [`Faults`] is a set of them.
//! - A [`Variation`] is a difference that the conventions permit. [`Variations`] is a set of them.
//! - The server behind the proxy is correct. A fault changes only the exchange with the client.
//! - A middleware handles a request and returns the response. In between it can send the request
//!   once, several times or not at all. It can also send requests as the administrator.
//! - The middleware of several faults forms a chain, in the order of the enumeration.
//! - The body of a response is complete in memory, a stream (watches and logs), or an upgraded
//!   connection (exec, attach and port-forward).
//!
//! # Add a fault
//!
//! 1. Find the folder and the file of the part of the API in `behaviours/`. Its `mod.rs` lists the
//!    folders.
//! 2. Add a row to `faults.rs` of the folder, below the name of the file: the variant, the name in
//!    kebab-case, and a sentence that describes the observable bug. Add an arm to the function `of`
//!    of the file. The constructors in `middleware.rs` cover the common forms: `requests`,
//!    `responses`, `objects`, `failures` and `events`. Use `around` for full control.
//! 3. A bug in stored state needs memory in the middleware: the server stores a valid object, and
//!    clients see another one. `behaviours/creates/overlays.rs` and
//!    `behaviours/support/overrides.rs` do this.
//! 4. Change only the behaviour that the summary describes, so that the cases for all other rules
//!    still pass. Run the self-test with the fault to see which cases fail.
//!
//! # Modules
//!
//! | module | content |
//! | --- | --- |
//! | `proxy`, `upstream` | the connections to the client and to the server |
//! | `middleware` | the trait of all faults, and constructors for its common forms |
//! | `exchange`, `body` | requests and responses |
//! | `document`, `headers`, `patch` | API objects, lists in headers, and patches |
//! | `frames`, `streams` | WebSocket and SPDY frames, and the events that they carry |
//! | `behaviours` | the enumeration of all faults, and the middleware of each |
//! | `set` | sets of faults |
//! | `variations` | the permitted differences and their middleware |

mod behaviours;
mod body;
mod document;
mod exchange;
mod frames;
mod headers;
mod middleware;
mod patch;
mod proxy;
mod set;
mod streams;
mod upstream;
mod variations;

pub use behaviours::Fault;
pub use proxy::Proxy;
pub use set::Faults;
pub use upstream::Upstream;
pub use variations::{Variation, Variations};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
