//! The links of HTML pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A page that mdBook generates for other addresses than its own.
const NOT_FOUND: &str = "404.html";

/// The files of a site, with the anchors and the links of its pages.
pub(crate) struct Links {
    files: BTreeSet<String>,
    /// The pages by their path.
    pub(crate) pages: BTreeMap<String, Page>,
}

/// The anchors and the links of a page.
pub(crate) struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

impl Links {
    pub(crate) fn of(book: &Path) -> Self {
        let mut links = Self { files: BTreeSet::new(), pages: BTreeMap::new() };
        links.add(book, "");
        links
    }

    fn add(&mut self, directory: &Path, prefix: &str) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            let name = format!("{prefix}{name}");
            if path.is_dir() {
                self.add(&path, &format!("{name}/"));
                continue;
            }
            if path.extension().is_some_and(|it| it == "html") && name != NOT_FOUND {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let anchors = targets(&text, "id").into_iter().collect();
                let links = [targets(&text, "href"), targets(&text, "src")].concat();
                self.pages.insert(name.clone(), Page { anchors, links });
            }
            self.files.insert(name);
        }
    }

    /// Returns whether the site has a file, or a page with an anchor.
    pub(crate) fn has(&self, target: &str) -> bool {
        match target.split_once('#') {
            None => self.files.contains(target),
            Some((path, anchor)) => {
                let page = self.pages.get(path);
                page.is_some_and(|page| anchor.is_empty() || page.anchors.contains(anchor))
            }
        }
    }

    /// Returns the links that lead nowhere. Links to other sites must use HTTPS.
    pub(crate) fn broken(&self, site: &str) -> Vec<String> {
        let links = self.pages.iter().flat_map(|(path, page)| {
            page.links.iter().map(move |link| (path.as_str(), link.as_str()))
        });
        let broken = links.filter(|(path, link)| match link.strip_prefix(site) {
            Some(path) => !self.has(path.trim_start_matches('/')),
            None if link.starts_with("https://") => false,
            None if link.contains(':') => true,
            None => !self.has(&resolve(path, link)),
        });
        broken.map(|(path, link)| format!("{path}: {link}")).collect()
    }
}

/// Returns the path of a relative link, from the directory of the site.
fn resolve(page: &str, link: &str) -> String {
    if link.starts_with('#') {
        return format!("{page}{link}");
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Returns the values of an attribute. mdBook quotes all values, and escapes quotes in texts.
pub(crate) fn targets(page: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    let values = page.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}
