//! The table of figures as Markdown.

use std::io;

use crate::servers::Kind;

/// One row of the table: the values of all servers.
pub(crate) struct Row {
    /// The first cell.
    pub(crate) name: &'static str,
    unit: Unit,
    /// The other cells, in the order of the servers.
    pub(crate) values: Vec<f64>,
}

/// The unit of a value.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Less is better.
    Seconds,
    /// Less is better.
    Mebibytes,
    /// More is better.
    PerSecond,
}

impl Row {
    /// Returns a row without values.
    pub(crate) fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, values: Vec::new() }
    }

    /// Returns the row with its values.
    pub(crate) fn with(self, values: Vec<f64>) -> Self {
        Self { values, ..self }
    }

    /// Returns how many times better a value is than that of the last server.
    fn ratio(&self, value: f64) -> f64 {
        let last = self.values.last().copied().unwrap_or_default();
        match self.unit {
            Unit::Seconds | Unit::Mebibytes => last / value,
            Unit::PerSecond => value / last,
        }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1.0 => format!("{:.0} ms", value * 1000.0),
            Self::Seconds => format!("{value:.1} s"),
            Self::Mebibytes => format!("{value:.0} MiB"),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

/// Describes the machine and the programs.
pub(crate) fn conditions(kinds: &[Kind]) -> io::Result<String> {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.unwrap_or_default().trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism()?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut versions = Vec::new();
    for kind in kinds {
        versions.extend(kind.versions()?);
    }
    versions.sort();
    versions.dedup();
    Ok(format!("{cores} cores, {processor}; {profile} build; {}", versions.join(", ")))
}

/// Returns the table. If the last server is a kube-apiserver, the cells of the others have the
/// ratio to it.
pub(crate) fn table(kinds: &[Kind], rows: &[Row]) -> String {
    let names = kinds.iter().map(|kind| kind.name().to_owned());
    let head: Vec<String> = std::iter::once("figure".to_owned()).chain(names).collect();
    let mut alignment = vec!["--:"; head.len()];
    alignment[0] = "---";
    let lines = [head.join(" | "), alignment.join(" | ")];
    let has_peer = matches!(kinds.last(), Some(Kind::KubeApiserver { .. }));
    let rows = rows.iter().map(|row| {
        let mut cells = vec![row.name.to_owned()];
        for (index, value) in row.values.iter().enumerate() {
            let text = row.unit.show(*value);
            let is_compared = has_peer && index + 1 < row.values.len();
            let ratio = is_compared.then(|| format!(" ({:.1}x)", row.ratio(*value)));
            cells.push(text + &ratio.unwrap_or_default());
        }
        cells.join(" | ")
    });
    let lines = lines.into_iter().chain(rows).map(|line| format!("| {line} |"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the value in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
