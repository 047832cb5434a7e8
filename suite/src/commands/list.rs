//! `kubeproof list`: prints the cases.

use std::io::Write;

use kubeproof_cases::Profile;
use kubeproof_cases::case::{Case, Edition, Level, Scope, SubjectFilter, SubjectSet};
use kubeproof_harness::plan::capability_name;
use serde::Serialize;

use super::{nothing_selected, write_json};
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::table;

pub(super) fn list(list: &high::List, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::CaseSelection { selection, edition } = &list.cases;
    let catalogue = list.catalogue.load_only(|id| selection.takes_id(id))?;
    selection.check(&catalogue.ids)?;
    let cases: Vec<&Case> = catalogue
        .cases
        .iter()
        .filter(|case| selection.takes_case(case) && case.is_judged_by(*edition))
        .collect();
    if cases.is_empty() {
        return Err(nothing_selected(&catalogue, selection, *edition));
    }
    if list.json {
        write_json(out, &cases.iter().map(|case| ListedCase::of(case)).collect::<Vec<_>>())?;
    } else {
        let row =
            |case: &&Case| [case.id.clone(), case.level.to_string(), case.requirements.join(", ")];
        table::write(
            out,
            ["CASE", "LEVEL", "REQUIREMENTS"],
            &cases.iter().map(row).collect::<Vec<_>>(),
        )?;
    }
    Ok(Exit::CONFORMANT)
}

/// A case in the JSON output.
#[derive(Serialize)]
struct ListedCase<'a> {
    id: &'a str,
    area: &'a str,
    summary: &'a str,
    level: Level,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Profile>,
    requirements: &'a [String],
    editions: &'a [Edition],
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    needs: Vec<String>,
    catches: &'a [String],
}

impl<'a> ListedCase<'a> {
    fn of(case: &'a Case) -> Self {
        Self {
            id: &case.id,
            area: case.area(),
            summary: &case.summary,
            level: case.level,
            profile: case.profile,
            requirements: &case.requirements,
            editions: &case.editions,
            subject: case.subject.as_ref().map(describe_subjects),
            needs: case.needs.iter().map(|need| capability_name(*need)).collect(),
            catches: &case.catches,
        }
    }
}

/// Describes the resources that a case runs on.
pub(super) fn describe_subjects(filter: &SubjectFilter) -> String {
    let of = match &filter.of {
        SubjectSet::Any => "every subject".to_owned(),
        SubjectSet::Builtin => "every built-in subject".to_owned(),
        SubjectSet::Custom => "every custom resource of the suite".to_owned(),
        SubjectSet::Named { names, of_user } => {
            let of_user = of_user.then(|| "every subject of the user".to_owned());
            let all = names.iter().map(ToString::to_string).chain(of_user);
            all.collect::<Vec<_>>().join(", ")
        }
    };
    let once = if filter.once { "the first of: " } else { "" };
    let scope = match filter.scope {
        Some(Scope::Namespaced) => " that is namespaced",
        Some(Scope::Cluster) => " that is cluster-scoped",
        None => "",
    };
    let list = |between: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" with {between}{}", names.join(&format!(", {between}"))),
    };
    format!("{once}{of}{scope}{}{}", list("", &filter.verbs), list("/", &filter.subresources))
}
