//! Explains the levels of cases and requirements.

use std::io::Write;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Edition, Level};

use crate::error::Error;

/// The levels, the strongest one first.
pub(super) const ALL: [Level; 3] = [Level::Must, Level::Should, Level::May];

/// Returns the level with this name, or with its synonym in RFC 2119.
pub(super) fn from_name(name: &str) -> Option<Level> {
    ALL.into_iter().find(|level| {
        let (_, synonym) = words(*level);
        name.eq_ignore_ascii_case(self::name(*level)) || name.eq_ignore_ascii_case(synonym)
    })
}

/// Returns the name, as case files spell it.
pub(super) fn name(level: Level) -> &'static str {
    match level {
        Level::Must => "must",
        Level::Should => "should",
        Level::May => "may",
    }
}

/// Prints what the level means, and counts its cases.
pub(super) fn write(level: Level, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
    let (meaning, verdict) = match level {
        Level::Must => ("every server needs the behaviour", "a failure, which fails the run"),
        Level::Should => {
            ("a server needs a good reason to differ", "a warning, which fails only --strict runs")
        }
        Level::May => ("a server is free to differ", "a warning, which fails only --strict runs"),
    };
    let (word, synonym) = words(level);
    writeln!(out, "{level} (level)")?;
    writeln!(out, "{word}, or {synonym}, as RFC 2119 defines it: {meaning}.")?;
    writeln!(out, "A failed check of a case at this level is {verdict}.")?;
    // As `kubeproof list` does.
    let cases = || catalogue.cases.iter().filter(|case| case.is_judged_by(Edition::Head));
    let of_level = cases().filter(|case| case.level == level).count();
    let requirements = || {
        let all = catalogue.requirements.iter();
        all.filter(|requirement| requirement.text_of(Edition::Head).is_some())
    };
    let required = requirements().filter(|requirement| requirement.level == level).count();
    writeln!(out, "\nIn the edition {}:", Edition::Head)?;
    writeln!(out, "  Cases: {of_level} of {}", cases().count())?;
    writeln!(out, "  Requirements: {required} of {}", requirements().count())?;
    let and_stronger = if level == Level::Must { "" } else { " (and those of stronger levels)" };
    writeln!(out, "\nList the cases{and_stronger}: kubeproof list --level {level}")?;
    writeln!(out, "Run them: kubeproof run --level {level}")?;
    Ok(())
}

/// Returns the words of RFC 2119.
fn words(level: Level) -> (&'static str, &'static str) {
    match level {
        Level::Must => ("MUST", "REQUIRED"),
        Level::Should => ("SHOULD", "RECOMMENDED"),
        Level::May => ("MAY", "OPTIONAL"),
    }
}
