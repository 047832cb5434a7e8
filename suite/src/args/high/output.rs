//! Reports, progress and colours.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use kubeproof_reports::console::{Options, Verbosity};
use kubeproof_reports::formats::Format;
use kubeproof_reports::paint::Paint;

use super::CatalogueSource;
use crate::args::low;

/// The files that reports are written to.
pub(crate) type ReportFiles = Vec<(PathBuf, Format)>;

/// The reports of a run.
pub(crate) struct RunReports {
    pub(crate) console: Options,
    pub(crate) progress: Progress,
    pub(crate) files: ReportFiles,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) github: bool,
}

/// The progress output on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    Hidden,
    Lines(Paint),
    Bar(Paint),
}

/// The output of `report` and `lint-api`.
pub(crate) struct RenderOutput {
    pub(crate) console: Options,
    pub(crate) files: ReportFiles,
}

/// The options of `kubeproof report`.
pub(crate) enum Report {
    Merge { reports: Vec<PathBuf>, output: RenderOutput },
    Render { report: PathBuf, output: RenderOutput },
    Diff { before: PathBuf, after: PathBuf, paint: Paint },
    Matrix(MatrixOptions),
    Verify { report: PathBuf, catalogue: CatalogueSource },
}

/// The options of `kubeproof report matrix`.
pub(crate) struct MatrixOptions {
    pub(crate) reports: Vec<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) verbose: bool,
    pub(crate) paint: Paint,
}

/// The options of `kubeproof next`.
pub(crate) struct Next {
    pub(crate) report: PathBuf,
    pub(crate) with_example: bool,
    pub(crate) paint: Paint,
}

impl Next {
    pub(super) fn resolve(next: low::Next, color: low::Color) -> Self {
        let paint = Paint::new(color.on_stdout());
        Self { report: next.report, with_example: !next.no_example, paint }
    }
}

impl RunReports {
    pub(super) fn resolve(
        reports: &low::Reports,
        color: low::Color,
        strict: bool,
        rerun_command: String,
    ) -> Self {
        let console = Options {
            verbosity: verbosity(reports.quiet, reports.verbose),
            paint: Paint::new(color.on_stdout()),
            command: rerun_command,
            json: reports.files.json.clone(),
            strict,
        };
        let paint = Paint::new(color.on_stderr());
        let progress = if reports.no_progress || reports.quiet {
            Progress::Hidden
        } else if io::stderr().is_terminal() {
            Progress::Bar(paint)
        } else {
            Progress::Lines(paint)
        };
        let (trace, github) = (reports.trace.clone(), reports.github);
        Self { console, progress, files: files(&reports.files), trace, github }
    }
}

impl RenderOutput {
    /// Resolves an output. No command repeats its results.
    pub(super) fn resolve(output: &low::RenderOutput, color: low::Color, strict: bool) -> Self {
        let console = Options {
            verbosity: verbosity(output.quiet, output.verbose),
            paint: Paint::new(color.on_stdout()),
            command: String::new(),
            json: output.files.json.clone(),
            strict,
        };
        Self { console, files: files(&output.files) }
    }
}

impl Report {
    pub(super) fn resolve(report: low::Report, color: low::Color) -> Self {
        let output = |output, strict| RenderOutput::resolve(output, color, strict);
        match report.command {
            low::ReportCommand::Merge(merge) => {
                let output = output(&merge.output, merge.strict);
                Self::Merge { reports: merge.reports, output }
            }
            low::ReportCommand::Render(render) => {
                Self::Render { report: render.report, output: output(&render.output, false) }
            }
            low::ReportCommand::Diff(diff) => {
                let paint = Paint::new(color.on_stdout());
                Self::Diff { before: diff.before, after: diff.after, paint }
            }
            low::ReportCommand::Matrix(low::Matrix { reports, html, markdown, verbose }) => {
                let paint = Paint::new(color.on_stdout());
                Self::Matrix(MatrixOptions { reports, html, markdown, verbose, paint })
            }
            low::ReportCommand::Verify(verify) => {
                let catalogue = CatalogueSource::new(verify.directories);
                Self::Verify { report: verify.report, catalogue }
            }
        }
    }
}

impl low::Color {
    pub(super) fn on_stdout(self) -> bool {
        self.is_on(io::stdout().is_terminal())
    }

    fn on_stderr(self) -> bool {
        self.is_on(io::stderr().is_terminal())
    }

    fn is_on(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            // https://no-color.org: the variable counts if it is set and not empty.
            Self::Auto => {
                let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !is_dumb && !no_color
            }
        }
    }
}

fn verbosity(quiet: bool, verbose: u8) -> Verbosity {
    match verbose {
        _ if quiet => Verbosity::Quiet,
        0 => Verbosity::Normal,
        1 => Verbosity::Passes,
        _ => Verbosity::Exchanges,
    }
}

fn files(files: &low::ReportFiles) -> ReportFiles {
    let all = [
        (&files.junit, Format::Junit),
        (&files.json, Format::Json),
        (&files.html, Format::Html),
        (&files.markdown, Format::Markdown),
        (&files.sarif, Format::Sarif),
        (&files.tap, Format::Tap),
    ];
    all.into_iter().filter_map(|(path, format)| Some((path.clone()?, format))).collect()
}
