//! GET of a collection: one consistent version, complete or in pages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::commit::storage_error;
use super::{Call, get};
use crate::config::disabled::Capability;
use crate::config::disabled::DisabledCapabilities;
use crate::endpoints::present::{self, ListMeta};
use crate::endpoints::selection::Selection;
use crate::http::negotiate::Target;
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Key, Page, Range, RevisionError, Stored};

pub(super) async fn handle(call: &Call) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::List)?;
    let (page, meta) = read(call).await?;
    present::list(call, representation, &page.items, &meta).await
}

/// Reads the page of the query.
pub(super) async fn read(call: &Call) -> Result<(Page, ListMeta), ApiError> {
    let selection = Selection::parse(&call.query, &call.ty)?;
    let options = ListOptions::parse(&call.query, call.api.disabled_capabilities)?;
    let current = call.api.store.revision();
    if options.not_older > current {
        return Err(ApiError::future_version(options.not_older, current));
    }
    let after = options.after.as_ref().map(|key| start_after(key, call));
    let range = Range {
        namespace: call.scope(),
        revision: options.revision,
        after: after.as_ref(),
        limit: options.limit,
    };
    let page = call.api.store.list(&call.ty.table, range, |object| selection.matches(object));
    let page = match page {
        // Another server may have created the continue token.
        Err(error @ RevisionError::Expired { .. }) => {
            let revision = options.revision.unwrap_or_default();
            let matches = |object: &Stored| selection.matches(object);
            let past = call.api.store.list_past(&call.ty.table, (range, revision), matches).await;
            let past = past.map_err(|error| storage_error(&error))?;
            past.ok_or_else(|| reject(error, &options))?
        }
        page => page.map_err(|error| reject(error, &options))?,
    };
    let mut meta = ListMeta { revision: Some(page.revision), ..ListMeta::default() };
    if let (true, Some(last)) = (page.more, page.items.last()) {
        meta.resume = Some(token(Some(page.revision), &last.key));
        if !selection.selects() {
            meta.remaining = Some(page.remaining);
        }
    }
    Ok((page, meta))
}

/// Returns the start of the next page in the requested collection. The token may be from another
/// collection.
fn start_after(key: &Key, call: &Call) -> Key {
    match call.scope() {
        Some(own) => Key::new(own, &key.name),
        None => key.clone(),
    }
}

#[derive(Debug, Default)]
struct ListOptions {
    /// Exactly this version, or the newest if absent.
    revision: Option<u64>,
    /// A version at least as new as this.
    not_older: u64,
    limit: Option<usize>,
    after: Option<Key>,
    /// The request continues an earlier list.
    continued: bool,
}

impl ListOptions {
    fn parse(query: &Query, disabled: DisabledCapabilities) -> Result<Self, ApiError> {
        // Only watches have a timeout, but the number must be readable.
        query.number("timeoutSeconds")?;
        let token = query.text("continue");
        validate(query, token.is_some())?;
        let mut options = Self { continued: token.is_some(), ..Self::default() };
        if let Some(limit) = query.number("limit")?.filter(|_| !disabled.on(Capability::Paging)) {
            options.limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        }
        let asked = get::version(query)?;
        if let Some(token) = token {
            if asked.is_some_and(|version| version != 0) {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let (revision, after) = read_token(token).map_err(|why| {
                ApiError::bad_request(format!(
                    "invalid continue token: continue key is not valid: {why}"
                ))
            })?;
            options.revision = revision;
            options.after = Some(after);
            return Ok(options);
        }
        // Without a match, a version is exact for a page and a minimum for a complete list.
        let exact = match query.text("resourceVersionMatch") {
            Some(found) => found == "Exact",
            None => options.limit.is_some(),
        };
        options.revision = asked.filter(|version| *version > 0).filter(|_| exact);
        options.not_older = asked.unwrap_or_default();
        Ok(options)
    }
}

/// Rejects invalid combinations.
fn validate(query: &Query, continued: bool) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let version = query.text("resourceVersion").unwrap_or_default();
    if let Some(found) = query.text("resourceVersionMatch") {
        if continued {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            );
        } else if version.is_empty() {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        } else if found == "Exact" && version == "0" {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
        if !matches!(found, "Exact" | "NotOlderThan") {
            let supported = ["Exact".into(), "NotOlderThan".into(), "".into()];
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &found.into(),
                &supported,
            ));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid_options("ListOptions", &errors)) }
}

fn reject(error: RevisionError, options: &ListOptions) -> ApiError {
    match error {
        RevisionError::Future { current } => {
            ApiError::future_version(options.revision.unwrap_or_default(), current)
        }
        RevisionError::Expired { .. } if options.continued => {
            let mut error = ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue \
                 token in this response to retrieve the remainder of the results. Continuing with \
                 the provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            );
            error.resume = options.after.as_ref().map(|key| token(None, key));
            error
        }
        RevisionError::Expired { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
    }
}

/// The format of continue tokens. Other formats are rejected.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Returns a continue token: after `key`, at this version or the newest.
pub(super) fn token(revision: Option<u64>, key: &Key) -> String {
    // The next possible key is the name with a zero byte. A larger one would skip objects.
    let start = format!("{}/{}\0", key.namespace, key.name);
    let revision = revision.map_or(json!(-1), |revision| json!(revision));
    URL_SAFE_NO_PAD
        .encode(json!({ "v": TOKEN_VERSION, "rv": revision, "start": start }).to_string())
}

fn read_token(token: &str) -> Result<(Option<u64>, Key), String> {
    let bytes =
        URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| error.to_string())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if token["v"] != TOKEN_VERSION {
        return Err(format!("server does not recognize this encoded version {}", token["v"]));
    }
    let revision = match token["rv"].as_i64() {
        Some(-1) => None,
        Some(revision) => Some(u64::try_from(revision).map_err(|error| error.to_string())?),
        None => return Err(format!("incorrect encoded start resourceVersion {}", token["rv"])),
    };
    let start = token["start"].as_str().unwrap_or_default();
    match start.split_once('/') {
        Some((namespace, name)) if !name.contains('/') && !namespace.starts_with('.') => {
            let name = name.strip_suffix('\0').unwrap_or(name);
            Ok((revision, Key::new(namespace, name)))
        }
        _ => Err(start.escape_default().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_token_leads_back_behind_the_key_it_was_made_for() {
        let key = Key::new("default", "a");
        assert_eq!(read_token(&token(Some(7), &key)), Ok((Some(7), key.clone())));
        assert_eq!(read_token(&token(None, &key)), Ok((None, key)));
    }

    fn options(query: &str) -> Result<ListOptions, String> {
        ListOptions::parse(&Query::parse(query), DisabledCapabilities::none())
            .map_err(|error| error.to_string())
    }

    /// Which version a list returns, at least or exactly, and the limit of its items.
    #[rstest]
    #[case("", (None, 0, None))]
    #[case("limit=5", (None, 0, Some(5)))]
    #[case("limit=0", (None, 0, None))]
    #[case("limit=-1", (None, 0, None))]
    #[case("resourceVersion=7", (None, 7, None))]
    #[case("resourceVersion=7&limit=5", (Some(7), 7, Some(5)))]
    #[case("resourceVersion=0&limit=5", (None, 0, Some(5)))]
    #[case("resourceVersion=7&resourceVersionMatch=Exact", (Some(7), 7, None))]
    #[case("resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5", (None, 7, Some(5)))]
    #[case("resourceVersion=0&resourceVersionMatch=NotOlderThan", (None, 0, None))]
    fn a_version_is_exact_for_a_page(
        #[case] query: &str,
        #[case] expected: (Option<u64>, u64, Option<usize>),
    ) {
        let options = options(query).expect("a list that means something");
        assert_eq!((options.revision, options.not_older, options.limit), expected);
        assert!(options.after.is_none() && !options.continued);
    }

    #[rstest]
    #[case("resourceVersionMatch=Exact")]
    #[case("resourceVersion=0&resourceVersionMatch=Exact")]
    #[case("resourceVersion=7&resourceVersionMatch=Bogus")]
    #[case("sendInitialEvents=true")]
    #[case("continue=x")]
    #[case(&format!("resourceVersion=7&continue={}", token(None, &Key::new("", "a"))))]
    #[case(&format!(
        "resourceVersion=7&resourceVersionMatch=Exact&continue={}",
        token(None, &Key::new("", "a"))
    ))]
    fn invalid_combinations_are_rejected(#[case] query: &str) {
        assert!(options(query).is_err());
    }

    #[test]
    fn a_list_that_goes_on_may_do_so_when_its_version_is_gone() {
        let key = Key::new("n", "a");
        let gone = RevisionError::Expired { oldest: 9 };
        for (query, resume) in [
            (
                format!("continue={}&resourceVersion=0", token(Some(7), &key)),
                Some(token(None, &key)),
            ),
            ("resourceVersion=7&resourceVersionMatch=Exact".to_owned(), None),
        ] {
            let options = options(&query).expect("a list that means something");
            assert_eq!((options.revision, options.continued), (Some(7), resume.is_some()));
            let rejection = reject(gone, &options);
            assert_eq!(
                rejection.message.contains("continue"),
                resume.is_some(),
                "{}",
                rejection.message
            );
            assert_eq!((rejection.code.as_u16(), rejection.resume), (410, resume));
        }
    }

    #[test]
    fn a_foreign_token_is_rejected() {
        assert!(read_token("garbage!").is_err());
        let other = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a/b"}"#);
        assert!(read_token(&other).is_err());
        for start in ["../../x", "../x", "a/b/c", "a", ""] {
            let climbing = json!({"v": TOKEN_VERSION, "rv": 1, "start": format!("{start}\0")});
            assert!(read_token(&URL_SAFE_NO_PAD.encode(climbing.to_string())).is_err(), "{start}");
        }
    }
}
