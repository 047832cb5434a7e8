//! Lists, pages, streaming lists and the replay of a watch have the same objects.

use std::collections::BTreeMap;

use kubeproof_cases::case::Capability;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::read_back::{same_item, stored};
use crate::explore::prober::{Halt, JSON, Prober, version};
use crate::explore::violation::{Claim, Scope};

/// The most pages of a list.
const PAGES: usize = 200;

/// The least objects of a page.
const LIMIT: usize = 2;

/// The pages of a large collection.
const FEW: usize = 40;

/// The objects of a list by name, each with the request that returned it.
type Found = BTreeMap<String, (usize, Value)>;

pub(super) async fn check(prober: &mut Prober<'_>, objects: &[Value]) -> Result<(), Halt> {
    let list = prober.send("GET", &prober.collection.clone(), JSON, None).await?;
    prober.require(&list, "a list")?;
    let start = list.version().to_owned();
    let mut expected = BTreeMap::new();
    let first = prober.name.clone();
    for (number, object) in objects.iter().enumerate() {
        // Each name is a prefix of the next one.
        prober.name = format!("{first}{}", "-x".repeat(number));
        let mut object = prober.named(object);
        // The selector must not select the first object.
        if number > 0 {
            object["metadata"]["labels"]["kubeproof-explore"] = json!(first);
        }
        let created = stored(prober, &object).await?;
        expected.insert(prober.name.clone(), created.body);
    }
    prober.name = first;
    let total = all(prober, &expected).await?;
    paged(prober, &expected, LIMIT.max(total / FEW)).await?;
    if prober.has_verb("watch") && !start.is_empty() {
        replayed(prober, &expected, &format!("resourceVersion={start}")).await?;
        if prober.offers(Capability::StreamingLists) {
            let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                         &allowWatchBookmarks=true";
            replayed(prober, &expected, query).await?;
        }
    }
    Ok(())
}

/// Checks lists without pages. Returns the number of all objects in the collection.
async fn all(prober: &mut Prober<'_>, expected: &BTreeMap<String, Value>) -> Result<usize, Halt> {
    let mut total = 0;
    let label = format!("?labelSelector=kubeproof-explore%3D{}", prober.name);
    for query in ["", "?resourceVersion=0", &label] {
        let target = format!("{}{query}", prober.collection);
        let list = prober.send("GET", &target, JSON, None).await?;
        prober.require(&list, "a list")?;
        let mut found = Found::new();
        add_items(prober, (&list.body, list.step), &mut found)?;
        total = total.max(list.body["items"].as_array().map_or(0, Vec::len));
        // A list at version 0 may be older than the objects.
        let selected: BTreeMap<String, Value> = if query.contains("label") {
            expected.iter().skip(1).map(|(k, v)| (k.clone(), v.clone())).collect()
        } else {
            expected.clone()
        };
        if query != "?resourceVersion=0" || found.len() == expected.len() {
            agree(prober, &selected, &found, ("a list", list.step))?;
        }
    }
    Ok(total)
}

async fn paged(
    prober: &mut Prober<'_>,
    expected: &BTreeMap<String, Value>,
    limit: usize,
) -> Result<(), Halt> {
    if !prober.offers(Capability::Paging) {
        return Ok(());
    }
    let mut found = Found::new();
    let mut query = format!("limit={limit}");
    let mut last = 0;
    for _ in 0..PAGES {
        let target = format!("{}?{query}", prober.collection);
        let page = prober.send("GET", &target, JSON, None).await?;
        if page.status == 410 {
            return Err(Halt::Undecided("the continue token expired".to_owned()));
        }
        prober.require(&page, "a page of a list")?;
        last = page.step;
        let items = page.body["items"].as_array().map_or(0, Vec::len);
        if items > limit {
            let message = format!("expected at most {limit} items in a page, got {items}");
            return Err(prober.violation(page.step, message, Claim::Accepted));
        }
        add_items(prober, (&page.body, page.step), &mut found)?;
        let token = page.body["metadata"]["continue"].as_str().unwrap_or_default();
        if token.is_empty() {
            break;
        }
        let token = utf8_percent_encode(token, NON_ALPHANUMERIC);
        query = format!("limit={limit}&continue={token}");
    }
    agree(prober, expected, &found, ("the pages of a list", last))
}

/// Reads the objects of a watch: those since a version, or the initial ones.
async fn replayed(
    prober: &mut Prober<'_>,
    expected: &BTreeMap<String, Value>,
    query: &str,
) -> Result<(), Halt> {
    let is_initial = query.contains("sendInitialEvents");
    let Some(mut watching) = prober.watch(query).await? else { return Ok(()) };
    let mut found = Found::new();
    // The set may be complete too early.
    while found.len() < expected.len() || is_initial {
        let Some(event) = prober.event(&mut watching).await? else { break };
        if event.kind == "BOOKMARK" {
            let ends = &event.object["metadata"]["annotations"]["k8s.io/initial-events-end"];
            if is_initial && *ends == json!("true") {
                break;
            }
            continue;
        }
        if event.kind != "ADDED" {
            let may_change = !prober.schema.is_complete;
            if may_change && event.kind == "MODIFIED" {
                continue;
            }
            let message = format!("expected ADDED for each object, got {}", event.kind);
            let claim = Claim::Event("ADDED".to_owned());
            return Err(prober.violation(watching.step, message, claim));
        }
        add(prober, (&event.object, watching.step), &mut found)?;
    }
    let what = if is_initial { "a streaming list" } else { "the replay of a watch" };
    agree(prober, expected, &found, (what, watching.step))
}

fn add_items(
    prober: &Prober<'_>,
    (list, step): (&Value, usize),
    found: &mut Found,
) -> Result<(), Halt> {
    let items = list["items"].as_array().into_iter().flatten();
    items.into_iter().try_for_each(|item| add(prober, (item, step), found))
}

/// Adds an object of this check.
fn add(
    prober: &Prober<'_>,
    (object, step): (&Value, usize),
    found: &mut Found,
) -> Result<(), Halt> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !name.starts_with(&prober.name) {
        return Ok(());
    }
    if let Some((_, before)) = found.insert(name.to_owned(), (step, object.clone()))
        && version(&before) == version(object)
    {
        let message = format!("{name} is listed twice");
        return Err(prober.violation(step, message, Claim::Names(vec![name.to_owned()])));
    }
    Ok(())
}

/// Requires exactly the expected objects.
fn agree(
    prober: &Prober<'_>,
    expected: &BTreeMap<String, Value>,
    found: &Found,
    (what, step): (&str, usize),
) -> Result<(), Halt> {
    let missing: Vec<&str> =
        expected.keys().filter(|name| !found.contains_key(*name)).map(String::as_str).collect();
    let extra = found.keys().find(|name| !expected.contains_key(*name));
    if let Some(problem) = match (missing.as_slice(), extra) {
        ([], None) => None,
        ([], Some(extra)) => Some(format!("{what} has {extra}, which was not created")),
        (missing, _) => Some(format!("{what} lacks {}", missing.join(", "))),
    } {
        let claim = Claim::Names(expected.keys().cloned().collect());
        return Err(prober.violation(step, problem, claim));
    }
    expected.iter().try_for_each(|(name, object)| match found.get(name) {
        Some((step, item)) => same_item(prober, *step, item, (object, Scope::Item(name.clone()))),
        None => Ok(()),
    })
}
