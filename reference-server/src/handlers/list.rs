//! GET of a collection: one consistent version of it, whole or in pages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Call, get};
use crate::negotiate::Target;
use crate::present::{self, ListMeta};
use crate::query::Query;
use crate::respond::Answer;
use crate::schema::FieldError;
use crate::selection::Selection;
use crate::status::ApiError;
use crate::store::{Key, Page, Range, RevisionError};
use crate::{Cut, Cuts, Fault, Faults};

pub(super) fn handle(call: &Call) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::List)?;
    let (page, meta) = read(call)?;
    present::list(call, representation, &page.items, &meta)
}

/// Reads the page that the query asks for.
pub(super) fn read(call: &Call) -> Result<(Page, ListMeta), ApiError> {
    let selection = Selection::parse(&call.query, &call.ty, call.faults())?;
    read_selected(call, &selection)
}

/// Reads the page that the query asks for, of all objects.
pub(super) fn read_all(call: &Call) -> Result<(Page, ListMeta), ApiError> {
    read_selected(call, &Selection::all())
}

fn read_selected(call: &Call, selection: &Selection) -> Result<(Page, ListMeta), ApiError> {
    let faults = call.faults();
    let options = ListOptions::parse(&call.query, call.api.cuts, faults)?;
    let current = call.api.store.revision();
    if options.not_older > current && !faults.on(Fault::FutureVersionAccepted) {
        return Err(ApiError::future_version(options.not_older, current));
    }
    let limit = options.limit.map(|limit| if faults.on(Fault::LimitOffByOne) { limit + 1 } else { limit });
    let after = options.after.as_ref().map(|key| behind(key, call));
    let namespace = match &options.after {
        Some(key) if call.scope().is_some() && faults.on(Fault::ContinueCarriesItsNamespace) => {
            Some(key.namespace.as_str())
        }
        _ => call.scope(),
    };
    let revision = match options.revision {
        Some(_) if faults.on(Fault::ContinueReadsLatest) && options.after.is_some() => None,
        None if faults.on(Fault::ListLags) => call.api.store.last_change(&call.ty.table).map(|last| last - 1),
        revision => revision,
    };
    let range = Range { namespace, revision, after: after.as_ref(), limit };
    let scan = |range| call.api.store.list(&call.ty.table, range, |object| selection.matches(object));
    let page = match scan(range) {
        Err(RevisionError::Expired { .. }) if faults.on(Fault::ExpiredListShowsLatest) => {
            scan(Range { revision: None, ..range })
        }
        page => page,
    };
    let page = page.map_err(|error| refuse(error, &options, faults))?;
    let mut meta = ListMeta { revision: Some(page.revision), ..ListMeta::default() };
    if let (true, Some(last)) = (page.more, page.items.last()) {
        meta.resume = Some(token(Some(page.revision), &last.key, faults));
        if !selection.selects() || faults.on(Fault::RemainingCountWithSelector) {
            let page_too = if faults.on(Fault::RemainingCountWithPage) { page.items.len() } else { 0 };
            meta.remaining = Some(page.remaining + page_too);
        }
    }
    if faults.on(Fault::ListWithoutVersion) {
        meta.revision = None;
    }
    Ok((page, meta))
}

/// Where a list goes on, in the collection that is asked for: a token may come from another one.
fn behind(key: &Key, call: &Call) -> Key {
    let faults = call.faults();
    match call.scope() {
        Some(_) if faults.on(Fault::ContinueCarriesItsNamespace) => key.clone(),
        Some(own) => Key::new(own, &key.name),
        None if faults.on(Fault::ContinueForgetsNamespace) => Key::new("", &key.name),
        None => key.clone(),
    }
}

/// What a list is asked for.
#[derive(Debug, Default)]
struct ListOptions {
    /// This very version; the newest when absent.
    revision: Option<u64>,
    /// A version not older than this.
    not_older: u64,
    limit: Option<usize>,
    after: Option<Key>,
    /// The request goes on with an earlier list.
    continued: bool,
}

impl ListOptions {
    fn parse(query: &Query, cuts: Cuts, faults: Faults) -> Result<Self, ApiError> {
        let token = query.text("continue");
        let token = token.filter(|token| !faults.on(Fault::ContinueStartsOver) || read_token(token).is_ok());
        if !faults.on(Fault::VersionMatchUnchecked) {
            validate(query, token.is_some())?;
        }
        let mut options = Self { continued: token.is_some(), ..Self::default() };
        if let Some(limit) = query.number("limit")?.filter(|_| !cuts.on(Cut::Paging)) {
            let none = faults.on(Fault::LimitZeroIsEmpty);
            options.limit = usize::try_from(limit).ok().filter(|limit| none || *limit > 0);
        }
        let asked = get::version(query, faults)?;
        if let Some(token) = token {
            if asked.is_some_and(|version| version != 0) && !faults.on(Fault::ContinueWithVersionAccepted) {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let (revision, after) = read_token(token).map_err(|why| {
                ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
            })?;
            options.revision = revision;
            options.after = Some(after);
            return Ok(options);
        }
        // A version without a match means that one for a page, and one not older for a whole list.
        let exact = match query.text("resourceVersionMatch") {
            Some(found) => found == "Exact" && !faults.on(Fault::ExactVersionIgnored),
            None => options.limit.is_some(),
        };
        options.revision = asked.filter(|version| *version > 0).filter(|_| exact);
        if options.limit.is_none() && faults.on(Fault::HistoryOffByOne) {
            options.revision = options.revision.map(|version| version - 1);
        }
        options.not_older = asked.unwrap_or_default();
        Ok(options)
    }
}

/// Refuses combinations that mean nothing.
fn validate(query: &Query, continued: bool) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let version = query.text("resourceVersion").unwrap_or_default();
    if let Some(found) = query.text("resourceVersionMatch") {
        if continued {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
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
            errors.push(FieldError::not_supported("resourceVersionMatch", &found.into(), &supported));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid_options("ListOptions", &errors)) }
}

fn refuse(error: RevisionError, options: &ListOptions, faults: Faults) -> ApiError {
    match error {
        RevisionError::Future { current } => {
            ApiError::future_version(options.revision.unwrap_or_default(), current)
        }
        RevisionError::Expired { .. } if options.continued => {
            let mut error = ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and \
                 now may show up in the list.",
            );
            if !faults.on(Fault::ExpiredContinueIsFinal) {
                error.resume = options.after.as_ref().map(|key| token(None, key, Faults::none()));
            }
            error
        }
        RevisionError::Expired { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
    }
}

/// The format of the tokens; another one is refused.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Where to go on: behind `key`, at this version or the newest.
pub(super) fn token(revision: Option<u64>, key: &Key, faults: Faults) -> String {
    // The smallest key behind `key` is that name with a zero byte; skipping further would lose objects.
    let end = if faults.on(Fault::ContinueSkipsAnObject) { "zzzz" } else { "\0" };
    let start = format!("{}/{}{end}", key.namespace, key.name);
    let revision = revision.map_or(json!(-1), |revision| json!(revision));
    URL_SAFE_NO_PAD.encode(json!({ "v": TOKEN_VERSION, "rv": revision, "start": start }).to_string())
}

fn read_token(token: &str) -> Result<(Option<u64>, Key), String> {
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| error.to_string())?;
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
        assert_eq!(read_token(&token(Some(7), &key, Faults::none())), Ok((Some(7), key.clone())));
        assert_eq!(read_token(&token(None, &key, Faults::none())), Ok((None, key)));
    }

    fn options(query: &str) -> Result<ListOptions, String> {
        ListOptions::parse(&Query::parse(query), Cuts::none(), Faults::none())
            .map_err(|error| error.to_string())
    }

    /// Which version a list shows at least or exactly, and how much of it at most.
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
    #[case(&format!("resourceVersion=7&continue={}", token(None, &Key::new("", "a"), Faults::none())))]
    #[case(&format!("resourceVersion=7&resourceVersionMatch=Exact&continue={}", token(None, &Key::new("", "a"), Faults::none())))]
    fn a_list_that_means_nothing_is_refused(#[case] query: &str) {
        assert!(options(query).is_err());
    }

    #[test]
    fn a_list_that_goes_on_may_do_so_when_its_version_is_gone() {
        let key = Key::new("n", "a");
        let gone = RevisionError::Expired { oldest: 9 };
        for (query, resume) in [
            (
                format!("continue={}&resourceVersion=0", token(Some(7), &key, Faults::none())),
                Some(token(None, &key, Faults::none())),
            ),
            ("resourceVersion=7&resourceVersionMatch=Exact".to_owned(), None),
        ] {
            let options = options(&query).expect("a list that means something");
            assert_eq!((options.revision, options.continued), (Some(7), resume.is_some()));
            let refusal = refuse(gone, &options, Faults::none());
            assert_eq!(refusal.message.contains("continue"), resume.is_some(), "{}", refusal.message);
            assert_eq!((refusal.code.as_u16(), refusal.resume), (410, resume));
        }
    }

    #[test]
    fn a_token_of_somebody_else_is_refused() {
        assert!(read_token("garbage!").is_err());
        let other = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a/b"}"#);
        assert!(read_token(&other).is_err());
        for start in ["../../x", "../x", "a/b/c", "a", ""] {
            let climbing = json!({"v": TOKEN_VERSION, "rv": 1, "start": format!("{start}\0")});
            assert!(read_token(&URL_SAFE_NO_PAD.encode(climbing.to_string())).is_err(), "{start}");
        }
    }
}
