//! Joins the messages, the Go structures and the published schemas.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::openapi::Schemas;
use super::proto::{self, Messages, Shape};
use super::source::{Source, directory};
use super::{golang, openapi};

pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The messages that have their own types in the data, and these types.
const SPECIAL: [(&str, &str); 9] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Duration", "duration"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "fieldsv1"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "microtime"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Timestamp", "time"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "rawextension"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intorstring"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "json"),
];

/// A package with its definitions.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) definitions: Vec<Definition>,
}

/// A definition.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    /// The keywords of the published schema.
    pub(crate) schema: Value,
    pub(crate) fields: Vec<Field>,
}

/// A field of a definition.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of a field")]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) required: bool,
    pub(crate) keep: bool,
    pub(crate) null: bool,
    pub(crate) inline: bool,
    pub(crate) enumeration: BTreeSet<String>,
    /// The keywords of the published schema.
    pub(crate) schema: Value,
}

/// The files of a package.
#[derive(Debug, Default)]
struct Files {
    messages: Messages,
    go: golang::Package,
}

/// Returns the packages of the published schemas, of metadata and of discovery.
pub(crate) fn packages(source: &Source, published: &Schemas) -> anyhow::Result<Vec<Package>> {
    let mut names: BTreeSet<&str> =
        published.keys().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
    names.retain(|name| source.files(directory(name)).is_ok() && !is_special(name));
    names.extend([META, "io.k8s.api.apidiscovery.v2"]);
    let mut all = BTreeMap::new();
    for name in names {
        all.insert(name.to_owned(), read(source, name)?);
    }
    let assembly = Assembly { published, all: &all };
    all.keys().map(|name| assembly.package(name)).collect()
}

/// Returns whether the package has no messages but those with their own types.
fn is_special(package: &str) -> bool {
    let mut special = SPECIAL.iter().filter_map(|(name, _)| Some(name.rsplit_once('.')?.0));
    package != META && !package.contains("apiextensions") && special.any(|known| known == package)
        || package.ends_with("pkg.version")
}

fn read(source: &Source, package: &str) -> anyhow::Result<Files> {
    let directory = directory(package);
    let text = source.read(directory.join("generated.proto"))?;
    let mut files = Files { messages: proto::parse(&text, package), ..Files::default() };
    for path in source.files(&directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_source = path.extension().is_some_and(|extension| extension == "go");
        if is_source && !name.ends_with("_test.go") && !name.contains("generated") {
            golang::parse(&source.read(&path)?, &mut files.go);
        }
    }
    Ok(files)
}

struct Assembly<'a> {
    published: &'a Schemas,
    all: &'a BTreeMap<String, Files>,
}

impl Assembly<'_> {
    fn package(&self, name: &str) -> anyhow::Result<Package> {
        let files = &self.all[name];
        let mut definitions = Vec::new();
        for message in files.messages.keys() {
            let full = format!("{name}.{message}");
            let is_special = SPECIAL.iter().any(|(special, _)| *special == full);
            // Types that are another name of a structure have no structure of their own.
            if !is_special && files.go.structs.contains_key(message) {
                let definition = self.definition(name, message);
                definitions.push(definition.with_context(|| format!("in {full}"))?);
            }
        }
        Ok(Package { name: name.to_owned(), definitions })
    }

    fn definition(&self, package: &str, message: &str) -> anyhow::Result<Definition> {
        let files = &self.all[package];
        let name = format!("{package}.{message}");
        let schema = self.schema(package, message);
        let mut fields = self.type_meta(package, message);
        for field in &files.messages[message] {
            fields.push(self.field(package, message, field, &schema)?);
        }
        let definition = Definition { name, schema, fields };
        self.check(&definition)?;
        Ok(definition)
    }

    /// Returns the published schema. An inlined message has that of the message around it.
    fn schema(&self, package: &str, message: &str) -> Value {
        if let Some(schema) = self.published.get(&format!("{package}.{message}")) {
            return schema.clone();
        }
        let structs = &self.all[package].go.structs;
        let host = structs
            .iter()
            .find(|(_, fields)| fields.iter().any(|field| field.inline && field.ty == message));
        let mut schema = host.map_or(Value::Null, |(host, _)| self.schema(package, host));
        if let Some(keywords) = schema.as_object_mut() {
            keywords.remove(openapi::KINDS);
            keywords.remove(openapi::UNIONS);
        }
        schema
    }

    /// Returns `kind` and `apiVersion`, which protobuf writes outside the message.
    fn type_meta(&self, package: &str, message: &str) -> Vec<Field> {
        let fields = self.all[package].go.structs.get(message).into_iter().flatten();
        let mut embedded = fields.filter(|field| field.inline && field.number.is_none());
        if !embedded.any(|field| field.ty.ends_with("TypeMeta")) {
            return Vec::new();
        }
        let field = |name: &str| Field {
            number: 0,
            name: name.to_owned(),
            ty: "string".to_owned(),
            required: false,
            keep: false,
            null: false,
            inline: false,
            enumeration: BTreeSet::new(),
            schema: Value::Null,
        };
        vec![field("kind"), field("apiVersion")]
    }

    fn field(
        &self,
        package: &str,
        message: &str,
        field: &proto::Field,
        schema: &Value,
    ) -> anyhow::Result<Field> {
        let structs = &self.all[package].go.structs;
        let go = structs
            .get(message)
            .and_then(|fields| fields.iter().find(|go| go.number == Some(field.number)))
            .with_context(|| format!("no Go field has the number {}", field.number))?;
        let is_named = !go.json.is_empty() && go.json != "-";
        let name = if is_named { go.json.clone() } else { field.name.clone() };
        let ty = self.ty(package, field);
        let writes_null =
            go.collection && !go.omit_empty || is_time(&ty) && !go.pointer && !go.omit_zero;
        let required = schema["required"].as_array().into_iter().flatten();
        Ok(Field {
            number: field.number,
            required: required.into_iter().any(|required| *required == name),
            keep: go.pointer || !go.omit_empty && !go.collection && !go.inline,
            null: writes_null,
            inline: go.inline,
            enumeration: self.enumeration(package, &go.ty),
            schema: schema["properties"][&name].clone(),
            name,
            ty,
        })
    }

    fn ty(&self, package: &str, field: &proto::Field) -> String {
        let special = SPECIAL.iter().find(|(name, _)| *name == field.ty);
        let inner = match (special, field.ty.rsplit_once('.')) {
            (Some((_, special)), _) => (*special).to_owned(),
            (None, Some((home, name))) => {
                let is_list = |files: &Files| files.go.lists.contains(name);
                if self.all.get(home).is_some_and(is_list) {
                    "wrapped[]string".to_owned()
                } else if home == package {
                    name.to_owned()
                } else {
                    field.ty.clone()
                }
            }
            (None, None) => field.ty.clone(),
        };
        match field.shape {
            Shape::Single => inner,
            Shape::Repeated => format!("[]{inner}"),
            Shape::Map => format!("{{}}{inner}"),
        }
    }

    /// Returns the values of a Go type that is an enumeration.
    fn enumeration(&self, package: &str, ty: &str) -> BTreeSet<String> {
        let (home, name) = self.resolve(package, ty);
        let Some(files) = self.all.get(&home) else { return BTreeSet::new() };
        let Some(values) = files.go.enums.get(name) else { return BTreeSet::new() };
        let mut values = values.clone();
        for (_, constant) in files.go.conversions.iter().filter(|(ty, _)| ty == name) {
            let (home, name) = self.resolve(&home, constant);
            values.extend(
                self.all.get(&home).and_then(|files| files.go.constants.get(name)).cloned(),
            );
        }
        values
    }

    /// Returns the package and the name of a Go name such as `v1.Protocol`.
    fn resolve<'n>(&self, package: &str, name: &'n str) -> (String, &'n str) {
        let Some((import, name)) = name.split_once('.') else { return (package.to_owned(), name) };
        let imports = self.all.get(package).map(|files| &files.go.imports);
        let path = imports.and_then(|imports| imports.get(import)).map_or("", String::as_str);
        (format!("io.{}", path.replacen("k8s.io", "k8s", 1).replace('/', ".")), name)
    }

    /// Checks that the data has each field of the published schema.
    fn check(&self, definition: &Definition) -> anyhow::Result<()> {
        let Some(schema) = self.published.get(&definition.name) else { return Ok(()) };
        let (package, message) = definition.name.rsplit_once('.').unwrap_or_default();
        let mut known = BTreeSet::new();
        self.collect_names(package, message, &mut known);
        for name in schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
            let is_known =
                known.contains(name) || definition.fields.iter().any(|it| it.name == *name);
            if !is_known {
                bail!("the published field `{name}` is missing in generated.proto");
            }
        }
        Ok(())
    }

    /// Collects the JSON names of a Go structure and the structures in it.
    fn collect_names(&self, package: &str, message: &str, known: &mut BTreeSet<String>) {
        let fields = self.all[package].go.structs.get(message).into_iter().flatten();
        for field in fields.filter(|field| field.number.is_some()) {
            if field.inline {
                self.collect_names(package, &field.ty, known);
            } else {
                known.insert(field.json.clone());
            }
        }
    }
}

fn is_time(ty: &str) -> bool {
    ty == "time" || ty == "microtime"
}
