//! Checks and what they claim.

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::{Entries, HeaderExpectation, OneOrMany, Yaml};
use crate::case::{Edition, Level};
use crate::yaml::Located;

/// serde's `flatten` would lose the places of the claims, which three types share.
macro_rules! with_claims {
    ($(#[$meta:meta])* struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(crate) struct $name {
            $($fields)*
            /// The HTTP status code is this, or one of these.
            pub(crate) status: Option<Located<OneOrMany<u16>>>,
            /// The server rejects the request for this reason.
            pub(crate) rejected: Option<RawRejected>,
            /// The body is JSON and matches this pattern.
            pub(crate) body: Option<Yaml>,
            /// Headers that are present and match, or are absent.
            pub(crate) header: Option<Located<Entries<HeaderExpectation>>>,
            /// A regular expression that the raw body matches.
            pub(crate) text: Option<Located<String>>,
            /// A CEL expression that is true.
            pub(crate) cel: Option<Located<String>>,
            /// At least one of these sets holds. All are equally valid.
            pub(crate) any_of: Option<Located<Vec<Located<RawClaims>>>>,
        }

        impl $name {
            pub(crate) fn claims(&self) -> Claims<'_> {
                Claims {
                    status: self.status.as_ref(),
                    rejected: self.rejected.as_ref(),
                    body: self.body.as_ref(),
                    header: self.header.as_ref(),
                    text: self.text.as_ref(),
                    cel: self.cel.as_ref(),
                    any_of: self.any_of.as_ref(),
                }
            }
        }
    };
}

/// The claims of a check, a deviation, or a member of `anyOf`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims<'a> {
    pub(crate) status: Option<&'a Located<OneOrMany<u16>>>,
    pub(crate) rejected: Option<&'a RawRejected>,
    pub(crate) body: Option<&'a Yaml>,
    pub(crate) header: Option<&'a Located<Entries<HeaderExpectation>>>,
    pub(crate) text: Option<&'a Located<String>>,
    pub(crate) cel: Option<&'a Located<String>>,
    pub(crate) any_of: Option<&'a Located<Vec<Located<RawClaims>>>>,
}

with_claims! {
    /// One expectation. All of its claims must hold.
    struct RawCheck {
        /// Unique in the case. It stays when the case is edited.
        pub(crate) id: Located<String>,
        /// At most the level of the case and the strongest level among the requirements of the
        /// check. The default is the lower of the two. A failed check is a failure at `must`, else
        /// a warning.
        pub(crate) level: Option<Located<Level>>,
        /// The requirements of the case that the check judges. The default is all of them.
        #[serde(default)]
        #[schemars(schema_with = "super::names::requirement_ids")]
        pub(crate) requirements: Vec<Located<String>>,
        /// The editions that judge the check. The default is every edition that has one of its
        /// requirements.
        #[serde(default)]
        pub(crate) editions: Vec<Edition>,
        /// What a failure means for users, in one line.
        pub(crate) means: Option<String>,
        /// What a failed `cel` shows, with the values that decide it as CEL in `${..}`. Equal items
        /// of a list are counted: `statuses of 20 updates: ${writers.map(w, w.put.status)}` shows
        /// `statuses of 20 updates: 200 ×2, 409 ×18`. The default describes the values by itself.
        pub(crate) message: Option<Located<String>>,
        /// The behaviour of deployed servers that the suite accepts. The verdict is a deviation,
        /// and a failure under `--letter`.
        pub(crate) deviation: Option<Located<RawDeviation>>,
    }
}

with_claims! {
    /// A behaviour of deployed servers that differs from the strict text of the conventions.
    struct RawDeviation {
        /// Why the suite accepts it.
        pub(crate) because: String,
    }
}

with_claims! {
    /// One set of claims. All of them must hold.
    struct RawClaims {}
}

/// A rejection: this HTTP status code, and a v1 Status with `status: Failure`, the same code and
/// this reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRejected {
    /// The HTTP status code, or several.
    pub(crate) code: Located<OneOrMany<u16>>,
    /// The reason, or several.
    pub(crate) reason: Located<OneOrMany<String>>,
    /// A pattern for the details.
    pub(crate) details: Option<Yaml>,
    /// A regular expression for the message.
    pub(crate) message: Option<Located<String>>,
}
