//! Steps for the verbs of the API, with the defaults that clients use.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::RawCheck;
use super::forms::{Entries, RepeatableEntries, Texts, Yaml, YamlMapping};
use super::request::RawEdit;
use crate::case::Identity;
use crate::yaml::Located;

/// The keys that all verb steps share.
#[derive(Clone, Copy)]
pub(crate) struct Verb<'a> {
    pub(crate) id: &'a Located<String>,
    pub(crate) path: Option<&'a Located<String>>,
    pub(crate) query: Option<&'a Entries<Texts>>,
    pub(crate) headers: Option<&'a RepeatableEntries<String>>,
    pub(crate) accept: Option<&'a Located<String>>,
    pub(crate) identity: Identity,
    pub(crate) capture: Option<&'a Entries<String>>,
    pub(crate) expect: &'a [Located<RawCheck>],
}

/// serde's `flatten` would lose the places of the shared keys.
macro_rules! verb_step {
    ($(#[$meta:meta])* struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(crate) struct $name {
            /// The name of the exchange in expressions.
            pub(crate) id: Located<String>,
            /// Another path than the default.
            pub(crate) path: Option<Located<String>>,
            $($fields)*
            /// Further query parameters, which the harness encodes. A list repeats a parameter.
            pub(crate) query: Option<Entries<Texts>>,
            /// Headers. A list of single-key mappings may repeat one.
            pub(crate) headers: Option<RepeatableEntries<String>>,
            /// The media type of the response. The default is `application/json`; `""` sends no
            /// header.
            pub(crate) accept: Option<Located<String>>,
            /// The credential. The default is `admin`.
            #[serde(rename = "as", default)]
            pub(crate) identity: Identity,
            /// Values of the response body, by JSON Pointer. Later steps use them as `${NAME}`.
            pub(crate) capture: Option<Entries<String>>,
            /// Checks of the response.
            #[serde(default)]
            pub(crate) expect: Vec<Located<RawCheck>>,
        }

        impl $name {
            pub(crate) fn common(&self) -> Verb<'_> {
                Verb {
                    id: &self.id,
                    path: self.path.as_ref(),
                    query: self.query.as_ref(),
                    headers: self.headers.as_ref(),
                    accept: self.accept.as_ref(),
                    identity: self.identity,
                    capture: self.capture.as_ref(),
                    expect: &self.expect,
                }
            }
        }
    };
}

verb_step! {
    /// GET of one object. The path defaults to `${collection}/${name}`.
    struct RawGet {
        /// The object's name. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// A subresource, such as `status`.
        pub(crate) subresource: Option<Located<String>>,
        /// Query parameter.
        pub(crate) resource_version: Option<Located<Texts>>,
    }
}

verb_step! {
    /// GET of a collection. The path defaults to `${collection}`.
    struct RawList {
        /// Query parameter.
        pub(crate) label_selector: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_selector: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) limit: Option<Located<Texts>>,
        /// Query parameter.
        #[serde(rename = "continue")]
        pub(crate) continues: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) resource_version: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) resource_version_match: Option<Located<Texts>>,
    }
}

verb_step! {
    /// POST. The path defaults to `${collection}`, or to `${collection}/NAME/SUBRESOURCE`.
    struct RawCreate {
        /// The object that has the subresource. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// A subresource, such as `eviction`.
        pub(crate) subresource: Option<Located<String>>,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_manager: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_validation: Option<Located<Texts>>,
        /// Body: merged over the subject's template. apiVersion and kind are filled in.
        pub(crate) object: Option<YamlMapping>,
        /// Body: this value as JSON.
        pub(crate) body: Option<Yaml>,
        /// Body: this JSON with its spelling and order of members.
        pub(crate) json: Option<Located<String>>,
        /// Body: any text.
        pub(crate) text: Option<Located<String>>,
    }
}

verb_step! {
    /// PUT. The path defaults to `${collection}/${name}`.
    struct RawUpdate {
        /// The object's name. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// A subresource, such as `status`.
        pub(crate) subresource: Option<Located<String>>,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_manager: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_validation: Option<Located<Texts>>,
        /// Body: merged over the subject's template. apiVersion and kind are filled in.
        pub(crate) object: Option<YamlMapping>,
        /// Body: this value as JSON.
        pub(crate) body: Option<Yaml>,
        /// Body: this JSON with its spelling and order of members.
        pub(crate) json: Option<Located<String>>,
        /// Body: that of an earlier response with changes merged in.
        pub(crate) edit: Option<Located<RawEdit>>,
        /// Body: any text.
        pub(crate) text: Option<Located<String>>,
    }
}

verb_step! {
    /// PATCH. The path defaults to `${collection}/${name}`, the patch type to `merge`.
    struct RawPatch {
        /// The object's name. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// A subresource, such as `status`.
        pub(crate) subresource: Option<Located<String>>,
        /// The patch type, which chooses the media type. The default is `merge`.
        #[serde(rename = "type", default)]
        pub(crate) patch_type: PatchType,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_manager: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_validation: Option<Located<Texts>>,
        /// Body: the patch.
        pub(crate) body: Option<Yaml>,
        /// Body: this JSON with its spelling and order of members.
        pub(crate) json: Option<Located<String>>,
        /// Body: any text.
        pub(crate) text: Option<Located<String>>,
    }
}

verb_step! {
    /// Server-side apply. The path defaults to `${collection}/${name}`.
    struct RawApply {
        /// The object's name. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// A subresource, such as `status`.
        pub(crate) subresource: Option<Located<String>>,
        /// The field manager: query parameter `fieldManager`.
        pub(crate) manager: Option<Located<Texts>>,
        /// Query parameter: take over fields of other managers.
        pub(crate) force: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_validation: Option<Located<Texts>>,
        /// Body: merged over the subject's template. apiVersion and kind are filled in.
        pub(crate) object: Option<YamlMapping>,
        /// Body: this value as JSON.
        pub(crate) body: Option<Yaml>,
        /// Body: any text.
        pub(crate) text: Option<Located<String>>,
    }
}

verb_step! {
    /// DELETE of one object. The path defaults to `${collection}/${name}`.
    struct RawDelete {
        /// The object's name. The default is `${name}`.
        pub(crate) name: Option<Located<String>>,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) grace_period_seconds: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) propagation_policy: Option<Located<Texts>>,
        /// Body: `DeleteOptions`. apiVersion and kind are filled in.
        pub(crate) options: Option<YamlMapping>,
    }
}

verb_step! {
    /// DELETE of a collection. The path defaults to `${collection}`.
    struct RawDeleteCollection {
        /// Query parameter.
        pub(crate) label_selector: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) field_selector: Option<Located<Texts>>,
        /// Query parameter.
        pub(crate) dry_run: Option<Located<Texts>>,
        /// Body: `DeleteOptions`. apiVersion and kind are filled in.
        pub(crate) options: Option<YamlMapping>,
    }
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatchType {
    /// `application/merge-patch+json`
    #[default]
    Merge,
    /// `application/json-patch+json`
    Json,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

impl PatchType {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}
