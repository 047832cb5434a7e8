//! The parser of definition files. It copies no text.

use std::collections::{HashMap, HashSet};

use super::{
    Definition, DefinitionsError, Field, GroupVersionKind, ListType, Problem, Type, Union,
};

type File = (&'static str, &'static str);

/// Parses the files of a version, and the changes of another one.
pub(super) fn files(base: &[File], changes: &[File]) -> Result<Vec<Definition>, DefinitionsError> {
    let hidden = changed(changes);
    let none = HashSet::new();
    let visible = base.iter().map(|file| (file, &hidden));
    let all: Vec<_> = visible.chain(changes.iter().map(|file| (file, &none))).collect();
    let mut names = HashMap::new();
    for ((file, text), hidden) in &all {
        collect_names(text, hidden, &mut names).map_err(|(line, problem)| DefinitionsError {
            file,
            line,
            problem,
        })?;
    }
    let mut definitions = Vec::with_capacity(names.len());
    for ((file, text), hidden) in all {
        let definitions = &mut definitions;
        let mut parser =
            Parser { names: &names, package: "", definitions, hidden, is_hidden: false };
        for (index, line) in text.lines().enumerate() {
            parser.line(line).map_err(|problem| DefinitionsError {
                file,
                line: index + 1,
                problem,
            })?;
        }
    }
    for definition in &mut definitions {
        definition.fields.sort_by_key(|field| field.number);
    }
    Ok(definitions)
}

/// The definitions by package and short name, with their full names.
type Names = HashMap<(&'static str, &'static str), &'static str>;

/// Returns the names that the changes define or remove.
fn changed(changes: &[File]) -> HashSet<&'static str> {
    let lines = changes.iter().flat_map(|(_, text)| text.lines());
    lines.filter_map(|line| line.strip_prefix(REMOVED).map(str::trim).or(defined(line))).collect()
}

/// The beginning of a line that removes a definition.
const REMOVED: &str = "removed ";

/// Returns the name of the definition that starts in this line.
fn defined(line: &'static str) -> Option<&'static str> {
    if is_field(line) || line.starts_with('#') || line.starts_with(REMOVED) {
        return None;
    }
    line.split_whitespace().next().filter(|word| *word != "package")
}

fn collect_names(
    text: &'static str,
    hidden: &HashSet<&'static str>,
    names: &mut Names,
) -> Result<(), (usize, Problem)> {
    for (index, line) in text.lines().enumerate() {
        let Some(name) = defined(line).filter(|name| !hidden.contains(name)) else { continue };
        if names.insert(split(name), name).is_some() {
            return Err((index + 1, Problem::RepeatedDefinition(name)));
        }
    }
    Ok(())
}

/// Splits a full name into the package and the short name.
fn split(name: &'static str) -> (&'static str, &'static str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

fn is_field(line: &str) -> bool {
    line.starts_with(' ')
}

struct Parser<'a> {
    names: &'a Names,
    package: &'static str,
    definitions: &'a mut Vec<Definition>,
    /// The names of definitions that changes replace or remove.
    hidden: &'a HashSet<&'static str>,
    /// The current definition is one of them.
    is_hidden: bool,
}

impl Parser<'_> {
    fn line(&mut self, line: &'static str) -> Result<(), Problem> {
        if line.trim().is_empty() || line.starts_with('#') || line.starts_with(REMOVED) {
            return Ok(());
        }
        if let Some(name) = defined(line) {
            self.is_hidden = self.hidden.contains(name);
        }
        if self.is_hidden {
            return Ok(());
        }
        if let Some(package) = line.strip_prefix("package ") {
            self.package = package.trim();
            return Ok(());
        }
        if self.package.is_empty() {
            return Err(Problem::NoPackage);
        }
        if is_field(line) {
            let field = self.field(line)?;
            let package = self.package;
            let Some(definition) =
                self.definitions.last_mut().filter(|last| split(last.name).0 == package)
            else {
                return Err(Problem::NoDefinition);
            };
            let number = field.number;
            if number != 0 && definition.fields.iter().any(|known| known.number == number) {
                return Err(Problem::RepeatedNumber(number));
            }
            definition.fields.push(field);
            return Ok(());
        }
        let mut words = line.split_whitespace().peekable();
        let name = words.next().unwrap_or_default();
        let atomic_map = words.next_if_eq(&"map=atomic").is_some();
        let union = words.next_if(|word| word.starts_with(UNION)).and_then(union);
        let group_version_kind = words.map(kind).collect::<Result<_, _>>()?;
        let fields = Vec::new();
        let definition = Definition { name, fields, group_version_kind, atomic_map, union };
        self.definitions.push(definition);
        Ok(())
    }

    fn field(&self, line: &'static str) -> Result<Field, Problem> {
        let (line, default) = match line.split_once(" default=") {
            Some((line, default)) => (line, Some(default.trim())),
            None => (line, None),
        };
        if let Some(text) = default
            && serde_json::from_str::<serde_json::Value>(text).is_err()
        {
            return Err(Problem::BadDefault(text));
        }
        // The values of an enumeration may contain spaces.
        let (line, values) = match line.split_once(" enum=") {
            Some((line, values)) => (line, values.split(',').collect()),
            None => (line, Vec::new()),
        };
        let mut words = line.split_whitespace();
        let (Some(number), Some(name), Some(ty)) = (words.next(), words.next(), words.next())
        else {
            return Err(Problem::IncompleteField);
        };
        let mut field = Field {
            name,
            number: number.parse().map_err(|_| Problem::BadNumber(number))?,
            ty: self.ty(ty)?,
            required: false,
            keep_empty: false,
            write_null: false,
            inline: false,
            default,
            enumeration: values,
            list_type: ListType::Unset,
            list_map_keys: Vec::new(),
            atomic_map: false,
            granular_map: false,
            patch_merge_key: None,
            patch_strategy: super::PatchStrategy::default(),
        };
        for word in words {
            attribute(&mut field, word)?;
        }
        Ok(field)
    }

    fn ty(&self, text: &'static str) -> Result<Type, Problem> {
        if let Some(inner) = text.strip_prefix("[]") {
            return Ok(Type::List(Box::new(self.ty(inner)?)));
        }
        if let Some(inner) = text.strip_prefix("{}") {
            return Ok(Type::Map(Box::new(self.ty(inner)?)));
        }
        if let Some(inner) = text.strip_prefix("wrapped[]") {
            return Ok(Type::WrappedList(Box::new(self.ty(inner)?)));
        }
        let scalar = match text {
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "bool" => Type::Boolean,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "double" => Type::Double,
            "time" => Type::Time,
            "microtime" => Type::MicroTime,
            "duration" => Type::Duration,
            "quantity" => Type::Quantity,
            "intorstring" => Type::IntOrString,
            "rawextension" => Type::RawExtension,
            "json" => Type::Json,
            "fieldsv1" => Type::FieldsV1,
            message => {
                let key = message.rsplit_once('.').unwrap_or((self.package, message));
                let name = self.names.get(&key).ok_or(Problem::UnknownType(message))?;
                Type::Message(name)
            }
        };
        Ok(scalar)
    }
}

fn attribute(field: &mut Field, word: &'static str) -> Result<(), Problem> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let words = || value.split(',').collect::<Vec<_>>();
    match (name, value) {
        ("required", "") => field.required = true,
        ("keep", "") => field.keep_empty = true,
        ("null", "") => field.write_null = true,
        ("inline", "") => field.inline = true,
        ("list", "set") => field.list_type = ListType::Set,
        ("list", "map") => field.list_type = ListType::Map,
        ("list", "atomic") => field.list_type = ListType::Atomic,
        ("keys", _) => field.list_map_keys = words(),
        ("map", "atomic") => field.atomic_map = true,
        ("map", "granular") => field.granular_map = true,
        ("merge", key) => field.patch_merge_key = Some(key),
        ("strategy", _) => {
            let strategies: HashSet<_> = words().into_iter().collect();
            field.patch_strategy.merge = strategies.contains("merge");
            field.patch_strategy.retain_keys = strategies.contains("retainKeys");
            field.patch_strategy.replace = strategies.contains("replace");
        }
        _ => return Err(Problem::UnknownAttribute(word)),
    }
    Ok(())
}

const UNION: &str = "union=";

/// Parses `union=DISCRIMINATOR:FIELD,FIELD`.
fn union(word: &'static str) -> Option<Union> {
    let (discriminator, fields) = word.strip_prefix(UNION)?.split_once(':')?;
    let discriminator = Some(discriminator).filter(|name| !name.is_empty());
    Some(Union { discriminator, fields: fields.split(',').collect() })
}

fn kind(word: &'static str) -> Result<GroupVersionKind, Problem> {
    let parts = || {
        let (group, rest) = word.strip_prefix("kind=")?.split_once('/')?;
        let (version, kind) = rest.split_once('/')?;
        Some((group, version, kind))
    };
    parts().ok_or(Problem::BadKind(word))
}
