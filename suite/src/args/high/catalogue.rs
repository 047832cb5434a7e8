//! The commands about cases and requirements.

use std::path::PathBuf;

use kubeproof_cases::case::{Edition, Level};
use kubeproof_cases::{Catalogue, Loader};
use kubeproof_harness::plan::Selection;

use crate::args::low;
use crate::error::Error;

/// The embedded case files, and those of further directories.
#[derive(Debug, Default)]
pub(crate) struct CatalogueSource {
    directories: Vec<PathBuf>,
}

impl CatalogueSource {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories }
    }

    /// Reads and checks all case files.
    pub(crate) fn load(&self) -> Result<Catalogue, Error> {
        self.load_with(Loader::embedded())
    }

    /// Leaves out the embedded cases whose ids `takes` rejects, which saves most of the time.
    pub(crate) fn load_only(&self, takes: impl Fn(&str) -> bool) -> Result<Catalogue, Error> {
        self.load_with(Loader::embedded().only(takes))
    }

    fn load_with(&self, mut loader: Loader) -> Result<Catalogue, Error> {
        for directory in &self.directories {
            loader = loader.directory(directory)?;
        }
        Ok(loader.load().map_err(kubeproof_cases::LoadError::from)?)
    }
}

/// The selected cases, and the edition that judges them.
pub(crate) struct CaseSelection {
    pub(crate) selection: Selection,
    pub(crate) edition: Edition,
}

impl CaseSelection {
    pub(super) fn resolve(cases: &low::Cases) -> Self {
        let selection = Selection {
            only: cases.only.clone(),
            skip: cases.skip.clone(),
            areas: cases.area.clone(),
            profiles: cases.profile.clone(),
            level: cases.level.map(Into::into),
            ..Selection::default()
        };
        Self { selection, edition: cases.edition.into() }
    }
}

/// The options of `kubeproof list`.
pub(crate) struct List {
    pub(crate) catalogue: CatalogueSource,
    pub(crate) cases: CaseSelection,
    pub(crate) json: bool,
}

impl List {
    pub(super) fn resolve(list: &low::List) -> Self {
        Self {
            catalogue: CatalogueSource::new(list.cases.directories.clone()),
            cases: CaseSelection::resolve(&list.cases),
            json: list.json,
        }
    }
}

/// The options of `kubeproof explain`.
pub(crate) struct Explain {
    pub(crate) catalogue: CatalogueSource,
    pub(crate) id: String,
    pub(crate) with_example: bool,
}

impl Explain {
    pub(super) fn resolve(explain: low::Explain) -> Self {
        Self {
            catalogue: CatalogueSource::new(explain.directories),
            id: explain.id,
            with_example: !explain.no_example,
        }
    }
}

/// The options of `kubeproof coverage`.
pub(crate) struct Coverage {
    pub(crate) catalogue: CatalogueSource,
    pub(crate) edition: Option<Edition>,
    pub(crate) json: bool,
}

impl Coverage {
    pub(super) fn resolve(coverage: low::Coverage) -> Self {
        Self {
            catalogue: CatalogueSource::new(coverage.directories),
            edition: coverage.edition.map(Into::into),
            json: coverage.json,
        }
    }
}

/// The options of `kubeproof case-pages`.
pub(crate) struct CasePages {
    pub(crate) catalogue: CatalogueSource,
    pub(crate) dir: PathBuf,
}

impl CasePages {
    pub(super) fn resolve(pages: low::CasePages) -> Self {
        Self { catalogue: CatalogueSource::new(pages.directories), dir: pages.dir }
    }
}

/// The options of `kubeproof lint`.
pub(crate) struct Lint {
    pub(crate) directory: PathBuf,
    pub(crate) colors: bool,
}

impl Lint {
    pub(super) fn resolve(lint: low::Lint, color: low::Color) -> Self {
        Self { directory: lint.directory, colors: color.on_stdout() }
    }
}

impl From<low::Level> for Level {
    fn from(level: low::Level) -> Self {
        match level {
            low::Level::Must => Self::Must,
            low::Level::Should => Self::Should,
            low::Level::May => Self::May,
        }
    }
}

impl From<low::Edition> for Edition {
    fn from(edition: low::Edition) -> Self {
        match edition {
            low::Edition::V1_0 => Self::V1_0,
            low::Edition::V1_3 => Self::V1_3,
            low::Edition::Y2022 => Self::Y2022,
            low::Edition::Y2024 => Self::Y2024,
            low::Edition::Head => Self::Head,
        }
    }
}
