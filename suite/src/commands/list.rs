//! `kubeproof list`: the cases.

use std::io::Write;

use kubeproof_cases::case::{Case, Edition, Level, Scope, SubjectFilter, SubjectSet};
use kubeproof_harness::capability::name_of;
use serde::Serialize;

use super::write_json;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::table;

/// Prints the selected cases.
pub(super) fn list(list: &low::List, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = high::catalogue(&list.cases.directories)?;
    let selection = list.cases.selection();
    selection.check(&catalogue.cases)?;
    let edition = list.cases.edition.into();
    let cases: Vec<&Case> = catalogue
        .cases
        .iter()
        .filter(|case| selection.takes_case(case) && case.is_judged_by(edition))
        .collect();
    if cases.is_empty() {
        return Err(Error::NothingSelected);
    }
    if list.json {
        write_json(out, &cases.iter().map(|case| Line::of(case)).collect::<Vec<_>>())?;
    } else {
        let row = |case: &&Case| [case.id.clone(), case.level.to_string(), case.requirements.join(", ")];
        table::write(out, ["CASE", "LEVEL", "REQUIREMENTS"], &cases.iter().map(row).collect::<Vec<_>>())?;
    }
    Ok(Exit::CONFORMANT)
}

/// A case for programs.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    area: &'a str,
    summary: &'a str,
    level: Level,
    requirements: &'a [String],
    editions: &'a [Edition],
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    needs: Vec<String>,
    catches: &'a [String],
}

impl<'a> Line<'a> {
    fn of(case: &'a Case) -> Self {
        Self {
            id: &case.id,
            area: case.area(),
            summary: &case.summary,
            level: case.level,
            requirements: &case.requirements,
            editions: &case.editions,
            subject: case.subject.as_ref().map(subject),
            needs: case.needs.iter().map(|need| name_of(*need)).collect(),
            catches: &case.catches,
        }
    }
}

/// The resources that a case runs on, in words.
pub(super) fn subject(filter: &SubjectFilter) -> String {
    let of = match &filter.of {
        SubjectSet::Any => "every subject".to_owned(),
        SubjectSet::Builtin => "every built-in subject".to_owned(),
        SubjectSet::Custom => "every custom resource of the suite".to_owned(),
        SubjectSet::Named(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let once = if filter.once { "the first of: " } else { "" };
    let scope = match filter.scope {
        Some(Scope::Namespaced) => " that is namespaced",
        Some(Scope::Cluster) => " that is cluster-scoped",
        None => "",
    };
    let has = |between: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" with {between}{}", names.join(&format!(", {between}"))),
    };
    format!("{once}{of}{scope}{}{}", has("", &filter.verbs), has("/", &filter.subresources))
}
