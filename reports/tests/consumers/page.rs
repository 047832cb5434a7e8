//! The HTML page in a headless Chromium.

use std::process::Command;

use kubeproof_reports::document::Document;
use kubeproof_reports::formats::Format;
use serde_json::json;

use super::browser::Browser;
use super::{File, document, required};

/// Results that pass, in addition to those of the goldens.
const PASSES: usize = 1500;

/// Returns the names of the visible results.
const VISIBLE: &str = "[...document.querySelectorAll('.result:not([hidden])')].map((it) => it.id)";

/// Returns the texts whose contrast to their background is below 4.5, and the number of all texts.
const CONTRASTS: &str = include_str!("contrast.js");

/// Opens everything, so that all texts have a size and a colour.
const OPEN_ALL: &str = "document.getElementById('tools').reset(); new Promise((done) => setTimeout(
    () => { document.querySelectorAll('details').forEach((it) => { it.open = true; }); done(); }))";

#[test]
fn search_and_filters_select_results() {
    let Some(mut browser) = browser() else { return };
    let page = File::new(Format::Html, &large());
    browser.open(&page.path, "");
    assert_eq!(
        browser.evaluate(VISIBLE),
        json!([
            "create/known@configmaps.v1",
            "create/taken-name-rejected@secrets.v1",
            "schema/no-floats-in-spec@widgets.v1.example.com",
            "status/code",
            "status/reason@configmaps.v1",
            "watch/ends@widgets.v1.kubeproof.dev"
        ])
    );
    browser.evaluate("document.querySelector('input[value=fail]').click()");
    assert_eq!(browser.evaluate(&format!("{VISIBLE}.length")), 3);
    browser.evaluate("document.querySelector('input[value=fail]').click()");
    browser.evaluate("search.focus()");
    browser.type_text("FLOATING ratio");
    let floats = json!(["schema/no-floats-in-spec@widgets.v1.example.com"]);
    assert_eq!(browser.evaluate(VISIBLE), floats);
    browser.type_text(" no such text");
    assert_eq!(browser.evaluate("document.getElementById('nothing').hidden"), false);

    browser.evaluate("new Promise((done) => { form.reset(); setTimeout(done); })");
    assert_eq!(browser.evaluate(&format!("{VISIBLE}.length")), PASSES + 9);
    for (filter, value, count) in [("area", "status", 2), ("profile", "crud", 9)] {
        let select = format!(
            "form.reset(); form.{filter}.value = '{value}'; \
             form.dispatchEvent(new Event('input')); apply(); {VISIBLE}.length"
        );
        assert_eq!(browser.evaluate(&select), count, "{filter}");
    }
    assert_eq!(browser.exceptions, [""; 0]);
}

#[test]
fn a_deep_link_opens_a_result() {
    let Some(mut browser) = browser() else { return };
    let page = File::new(Format::Html, &large());
    // The result is hidden at first, because it passes.
    browser.open(&page.path, "get/reads-back@configmaps.v1");
    let state = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
        const it = document.getElementById('get/reads-back@configmaps.v1');
        const is_in_view = it.getBoundingClientRect().top < innerHeight;
        done([it.open, it.hidden, it.contains(document.activeElement), is_in_view]);
    })))";
    assert_eq!(browser.evaluate(state), json!([true, false, true, true]));
    browser.evaluate("document.querySelector('.cause a').click()");
    let hash = browser.evaluate("location.hash");
    let opened = "document.activeElement.parentElement.id === location.hash.slice(1)";
    let opened = format!("new Promise((done) => setTimeout(() => done({opened}), 100))");
    assert_eq!(browser.evaluate(&opened), true, "{hash}");
    assert_eq!(browser.exceptions, [""; 0]);
}

#[test]
fn the_page_is_readable_on_each_medium() {
    let Some(mut browser) = browser() else { return };
    let page = File::new(Format::Html, &document());
    for (width, media, scheme) in [
        (1280, "screen", "light"),
        (1280, "screen", "dark"),
        (390, "screen", "light"),
        (390, "screen", "dark"),
        (700, "print", "light"),
        (700, "print", "dark"),
    ] {
        browser.emulate(width, media, scheme);
        browser.open(&page.path, "");
        browser.evaluate(OPEN_ALL);
        let overflow = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(overflow, false, "{width} px, {media}, {scheme}");
        let contrasts = browser.evaluate(CONTRASTS);
        assert_eq!(contrasts["low"], json!([]), "{width} px, {media}, {scheme}");
        assert!(contrasts["texts"].as_u64() > Some(100), "{contrasts}");
        let tools = browser.evaluate("getComputedStyle(document.getElementById('tools')).display");
        assert_eq!(tools == "none", media == "print", "{tools}");
    }
    assert_eq!(browser.evaluate("performance.getEntriesByType('resource').length"), 0);
    assert_eq!(browser.exceptions, [""; 0]);
}

#[test]
fn the_page_works_by_keyboard() {
    let Some(mut browser) = browser() else { return };
    let page = File::new(Format::Html, &document());
    browser.open(&page.path, "");
    browser.press("/", 191, "/");
    assert_eq!(browser.evaluate("document.activeElement.id"), "search");
    // The focus reaches each visible result, is visible, and Enter opens the result.
    let mut opened = 0;
    for _ in 0..100 {
        browser.press("Tab", 9, "");
        let outline = "getComputedStyle(document.activeElement).outlineStyle";
        assert_ne!(browser.evaluate(outline), "none");
        let is_result = "document.activeElement.matches('.result > summary')";
        if browser.evaluate(is_result) == true {
            browser.press("Enter", 13, "\r");
            assert_eq!(browser.evaluate("document.activeElement.parentElement.open"), true);
            opened += 1;
            if opened == 6 {
                return;
            }
        }
    }
    panic!("the focus reached {opened} of 6 results");
}

/// Returns the results of the goldens, and many that pass.
fn large() -> Document {
    let mut document = document();
    let passed = document.results.iter().find(|record| record.id == "get/reads-back").cloned();
    let passed = passed.expect("a result that passes");
    for number in 0..PASSES {
        let mut record = passed.clone();
        record.id = format!("many/case-{number}");
        record.profile = None;
        document.add(record);
    }
    document
}

/// Starts Chromium. Returns `None` if it is missing and not required.
#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn browser() -> Option<Browser> {
    let named = std::env::var("KUBEPROOF_CHROMIUM").ok();
    let chromium = named.as_deref().unwrap_or("chromium");
    let version = Command::new(chromium).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some(Browser::start(chromium));
    }
    assert!(named.is_none() && !required(), "{chromium} does not run");
    eprintln!("not run: {chromium} is missing");
    None
}
