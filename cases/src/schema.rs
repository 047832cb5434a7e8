//! JSON Schemas of the files that people write, generated from the types that read them.
//!
//! They are committed in `cases/schema`, so that editors complete and check case files.

use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::diagnostic::Diagnostic;
use crate::profile::RawProfiles;
use crate::protocol::PROTOCOL_SETS;
use crate::raw::{RawCase, RawFragment};
use crate::requirements::{RawBreakage, Requirement};
use crate::rule::Exemption;
use crate::shape;
use crate::subject::RawSubjectDefinition;
use crate::yaml::Source;

/// The schema of one kind of file.
#[derive(Clone, Debug)]
pub struct FileSchema {
    /// `case`, `subject` and so on; the committed file is `NAME.schema.json`.
    pub name: &'static str,
    /// The document.
    pub schema: Value,
}

impl FileSchema {
    /// Compares the text of a file with the schema.
    pub fn check(&self, name: &str, text: &str) -> Vec<Diagnostic> {
        shape::compare(&Source::new(name, text), &self.schema)
    }
}

/// Returns all schemas, with the names of a catalogue for completion. The schema of cases comes
/// first.
pub fn schemas(catalogue: &Catalogue) -> [FileSchema; 7] {
    let known = KnownNames::of(catalogue);
    [
        FileSchema { name: "case", schema: known.in_schema(schemars::schema_for!(RawCase)) },
        FileSchema {
            name: "fragment",
            schema: known.in_schema(schemars::schema_for!(RawFragment)),
        },
        FileSchema {
            name: "subject",
            schema: known.in_schema(schemars::schema_for!(RawSubjectDefinition)),
        },
        FileSchema {
            name: "requirements",
            schema: known.in_schema(schemars::schema_for!(Vec<Requirement>)),
        },
        FileSchema { name: "faults", schema: known.in_schema(schemars::schema_for!(RawBreakage)) },
        FileSchema {
            name: "profiles",
            schema: known.in_schema(schemars::schema_for!(RawProfiles)),
        },
        FileSchema {
            name: "schema-history",
            schema: known.in_schema(schemars::schema_for!(Vec<Exemption>)),
        },
    ]
}

/// Names that editors complete, by the definition that stands for them.
struct KnownNames(Vec<(&'static str, Vec<String>)>);

impl KnownNames {
    fn of(catalogue: &Catalogue) -> Self {
        let owned =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let subjects = catalogue.subjects.iter().map(|subject| subject.name.to_string());
        let protocols = PROTOCOL_SETS.iter().map(|(name, _)| *name);
        let members = PROTOCOL_SETS.iter().flat_map(|(_, members)| members.iter().copied());
        let mut protocols: Vec<String> = owned(&protocols.chain(members).collect::<Vec<_>>());
        let mut seen = std::collections::BTreeSet::new();
        protocols.retain(|name| seen.insert(name.clone()));
        Self(vec![
            ("RequirementId", catalogue.requirements.iter().map(|one| one.id.clone()).collect()),
            ("FaultName", catalogue.breakage.faults().map(str::to_owned).collect()),
            (
                "SubjectName",
                owned(&["any", "builtin", "custom", "user"]).into_iter().chain(subjects).collect(),
            ),
            ("ProtocolName", protocols),
            ("FragmentName", catalogue.fragments.keys().cloned().collect()),
        ])
    }

    /// Offers the names without rejecting others: users have requirements and subjects of their
    /// own.
    fn in_schema(&self, schema: schemars::Schema) -> Value {
        let mut schema = schema.to_value();
        for (definition, names) in &self.0 {
            if let Some(found) = schema.pointer_mut(&format!("/$defs/{definition}")) {
                *found = json!({"anyOf": [{"enum": names}, {"type": "string"}]});
            }
        }
        schema
    }
}
