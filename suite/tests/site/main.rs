//! The site: `docs/build` builds it with mdBook, and a browser opens it.
//!
//! The tests skip a missing program and print a message. With `KUBEPROOF_REQUIRE_PEERS=1` a missing
//! program is a failure.
//!
//! - `KUBEPROOF_MDBOOK`: mdBook. Default: `mdbook`.
//! - `KUBEPROOF_CHROMIUM`: a Chromium. Default: `chromium`.

#![cfg(unix)]

#[path = "../../../reports/tests/consumers/browser.rs"]
mod browser;
mod links;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use kubeproof_cases::Catalogue;
use kubeproof_reports::{SITE, case_url};
use serde_json::json;
use tempfile::TempDir;

use self::browser::Browser;
use self::links::{Links, targets};

/// Returns the texts whose contrast to their background is below 4.5, and the number of all texts.
const CONTRASTS: &str = include_str!("../../../reports/tests/consumers/contrast.js");

/// The built site. It is `None` if mdBook is missing and not required.
static BOOK: LazyLock<Option<TempDir>> = LazyLock::new(|| {
    let mdbook = program("KUBEPROOF_MDBOOK", "mdbook")?;
    let book = TempDir::new().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/build");
    let output = Command::new(script)
        .arg(book.path())
        .env("MDBOOK", mdbook)
        .env("KUBEPROOF", env!("CARGO_BIN_EXE_kubeproof"))
        .output()
        .expect("docs/build runs");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !log.contains("WARN"), "{log}");
    Some(book)
});

#[test]
fn all_links_lead_to_a_page_or_an_anchor() {
    let Some(book) = book() else { return };
    let links = Links::of(&book);
    assert!(links.pages.len() > 40, "{}", links.pages.len());
    assert_eq!(links.broken(SITE), [""; 0]);
}

/// Failures link to these anchors.
#[test]
fn each_case_has_an_anchor_a_rule_and_an_example() {
    let Some(book) = book() else { return };
    let links = Links::of(&book);
    for case in &Catalogue::embedded().expect("the catalogue").cases {
        let url = case_url(&case.id).unwrap_or_else(|| panic!("{} has no URL", case.id));
        let path = url.strip_prefix(SITE).expect("a page of the site").trim_start_matches('/');
        assert!(links.has(path), "{path} does not exist");
    }
    let page = std::fs::read_to_string(book.join("cases/create.html")).expect("a page");
    let start = page.find("id=\"taken-name-rejected\"").expect("a case");
    let case = page[start..].split("<h2").next().expect("the text of the case");
    for expected in [
        "idempotency.post-existing-409",
        "api-conventions.md#idempotency\">Idempotency</a>",
        "<code>create-overwrites</code>: A POST with a taken name replaces the object",
        "second: POST ${collection}",
        "-&gt; 409",
        "\"reason\": \"AlreadyExists\"",
    ] {
        assert!(case.contains(expected), "{expected} is not in {case}");
    }
}

#[test]
fn pages_are_readable_at_each_width_and_in_each_scheme() {
    let (Some(book), Some(mut browser)) = (book(), browser()) else { return };
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")] {
        browser.emulate(width, "screen", scheme);
        for page in ["index", "gate-ci", "cases/index", "cases/generation"] {
            browser.open(&book.join(format!("{page}.html")), "");
            browser
                .evaluate("document.querySelectorAll('details').forEach((it) => it.open = true)");
            let place = format!("{page}, {width} px, {scheme}");
            let overflow = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(browser.evaluate(overflow), false, "{place}");
            let contrasts = browser.evaluate(CONTRASTS);
            assert_eq!(contrasts["low"], json!([]), "{place}");
            assert!(contrasts["texts"].as_u64() > Some(30), "{place}: {contrasts}");
        }
    }
    assert_eq!(browser.exceptions, [""; 0]);
}

#[test]
fn a_link_of_a_failure_shows_the_case() {
    let (Some(book), Some(mut browser)) = (book(), browser()) else { return };
    browser.open(&book.join("cases/create.html"), "taken-name-rejected");
    let top = "document.querySelector(':target').getBoundingClientRect().top";
    let is_visible = format!("{top} >= 0 && {top} < innerHeight");
    assert_eq!(browser.evaluate(&is_visible), true, "{}", browser.evaluate(top));
}

#[test]
fn the_search_finds_a_case() {
    let (Some(book), Some(mut browser)) = (book(), browser()) else { return };
    browser.open(&book.join("index.html"), "");
    browser.press("s", 83, "s");
    browser.evaluate(
        "new Promise((done) => { const ready = () =>
            document.activeElement.id === 'mdbook-searchbar' ? done() : setTimeout(ready, 20);
            ready(); })",
    );
    browser.type_text("taken-name-rejected");
    let link = browser.evaluate(
        "new Promise((done) => { const find = () => {
            const link = document.querySelector('#mdbook-searchresults a');
            return link ? done(link.getAttribute('href')) : setTimeout(find, 20); }; find(); })",
    );
    let link = link.as_str().expect("a link");
    assert!(link.contains("cases/") && link.contains("taken-name-rejected"), "{link}");
    assert_eq!(browser.exceptions, [""; 0]);
}

#[test]
fn broken_links_are_found() {
    let book = TempDir::new().expect("a directory");
    let page = "<h1 id=\"a\"></h1><a href=\"b.html#c\"></a><a href=\"#a\"></a><a href=\"#d\"></a>\
                <a href=\"https://site/e.html\"></a><img src=\"a.html\"><a href=\"http://f\"></a>";
    std::fs::write(book.path().join("a.html"), page).expect("written");
    assert_eq!(targets(page, "id"), ["a"]);
    let expected =
        ["b.html#c", "#d", "https://site/e.html", "http://f"].map(|link| format!("a.html: {link}"));
    assert_eq!(Links::of(book.path()).broken("https://site"), expected);
}

fn book() -> Option<PathBuf> {
    BOOK.as_ref().map(|book| book.path().to_owned())
}

fn browser() -> Option<Browser> {
    Some(Browser::start(&program("KUBEPROOF_CHROMIUM", "chromium")?))
}

/// Returns the name of a program. Returns `None` if it is missing and not required.
#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn program(variable: &str, default: &str) -> Option<String> {
    let named = std::env::var(variable).ok();
    let is_required = std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    let name = named.clone().unwrap_or_else(|| default.to_owned());
    let version = Command::new(&name).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some(name);
    }
    assert!(named.is_none() && !is_required, "{name} does not run; {variable} names another one");
    eprintln!("not run: {name} is missing");
    None
}
