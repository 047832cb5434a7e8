//! Generates objects from published schemas, and checks properties that hold for every resource of
//! every server.
//!
//! Each check has a number. Its objects follow from the seed and the number. A failing check is
//! repeated with smaller objects.

mod case_file;
mod compare;
mod generate;
mod managers;
mod mistakes;
mod patch;
mod prober;
mod property;
mod schema;
mod shrink;
mod stage;
mod text;
mod violation;

use kubeproof_cases::case::Property;

use crate::capability::Capabilities;
use crate::cleanup::Tracker;
use crate::transport::Client;

pub(crate) use self::prober::Budget;
pub(crate) use self::schema::Schema;
pub(crate) use self::stage::{Stage, Verdict};

pub use self::case_file::case_file;
pub use self::mistakes::Mistake;
pub use self::property::Input;
pub use self::text::text;
pub use self::violation::{Claim, Failure, Scope, Violation};

/// The target, and where checks create objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) client: &'a Client,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) namespace: &'a str,
    /// Records the objects for their removal.
    pub(crate) tracker: &'a Tracker,
    /// The beginning of the names of all objects.
    pub(crate) prefix: &'a str,
}

/// Checks a property with new objects. A violation has the smallest objects that show it.
pub(crate) async fn check(
    stage: &mut Stage<'_>,
    property: Property,
    (seed, turn): (u64, u64),
) -> Verdict {
    match stage.check(property, (seed, turn)).await {
        Verdict::Broken(first) => shrink::confirmed(stage, *first).await,
        verdict => verdict,
    }
}
