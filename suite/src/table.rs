//! Tables with aligned columns.

use std::io::{self, Write};

/// Writes headings and rows in columns as wide as their longest cell.
pub(crate) fn write<const N: usize>(
    out: &mut dyn Write,
    headings: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let widths: [usize; N] = std::array::from_fn(|n| {
        let cells = rows.iter().map(|row| row[n].chars().count());
        cells.chain([headings[n].chars().count()]).max().unwrap_or_default()
    });
    line(out, widths, headings)?;
    rows.iter().try_for_each(|row| line(out, widths, row.each_ref().map(String::as_str)))
}

fn line<const N: usize>(
    out: &mut dyn Write,
    widths: [usize; N],
    cells: [&str; N],
) -> io::Result<()> {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())
}
