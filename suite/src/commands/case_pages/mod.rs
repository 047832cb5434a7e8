//! `kubeproof case-pages`: writes a Markdown page for each area of cases.
//!
//! The site of the project contains these pages, and failures link to them.

mod examples;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use kubeproof_cases::case::Case;
use kubeproof_cases::plural;

use self::examples::examples;
use crate::args::high::CasePages;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn case_pages(pages: &CasePages, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = pages.catalogue.load()?;
    let examples = examples(&catalogue).await?;
    let mut areas: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &catalogue.cases {
        areas.entry(case.area()).or_default().push(case);
    }
    fs::create_dir_all(&pages.dir)
        .map_err(|source| Error::Write { path: pages.dir.clone(), source })?;
    write_file(&pages.dir, "index", &page::index(&areas))?;
    for (area, cases) in &areas {
        write_file(&pages.dir, area, &page::area(area, cases, &catalogue, &examples)?)?;
    }
    let (pages_written, cases) = (plural(areas.len() + 1, "page"), catalogue.cases.len());
    writeln!(
        out,
        "wrote {pages_written} about {} to {}",
        plural(cases, "case"),
        pages.dir.display()
    )?;
    Ok(Exit::CONFORMANT)
}

fn write_file(dir: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = dir.join(format!("{name}.md"));
    fs::write(&path, text).map_err(|source| Error::Write { path, source })
}
