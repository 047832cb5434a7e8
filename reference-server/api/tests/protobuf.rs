//! Converts random objects of all kinds to protobuf and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_api::Version;
use kubeproof_apimachinery::schema::definitions::{Definition, Definitions, Field, Type};
use kubeproof_apimachinery::serializer::protobuf;
use serde_json::{Map, Value, json};

/// The number of objects of each kind.
const OBJECTS: usize = 12;
/// The number of broken copies of an object.
const COPIES: usize = 12;

/// Writes random objects.
struct Writer<'d> {
    definitions: &'d Definitions,
    /// The state of the random numbers. The same objects appear in each run.
    state: u64,
}

impl Writer<'_> {
    fn below(&mut self, end: u32) -> u32 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let high = u32::try_from(self.state >> 32).expect("the upper half");
        high % end
    }

    fn object(&mut self, definition: &Definition, depth: usize) -> Value {
        let schema = |name: &str| definition.name.ends_with(name);
        if schema("JSONSchemaPropsOrBool") && self.below(2) == 0 {
            return (self.below(2) == 0).into();
        }
        let or =
            ["JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrStringArray"];
        if or.into_iter().any(schema) {
            let one = usize::from(schema("JSONSchemaPropsOrBool"));
            let which = if one == 1 { 2 } else { 1 + self.below(2) };
            let field = definition.numbered(which).expect("two fields");
            return self.value(&field.ty, true, depth);
        }
        let mut object = Map::new();
        for field in definition.fields.iter().filter(|field| field.number > 0) {
            self.field(field, depth, &mut object);
        }
        Value::Object(object)
    }

    fn field(&mut self, field: &Field, depth: usize, object: &mut Map<String, Value>) {
        // Deep objects would be very large.
        if self.below(2) == 0 || (depth > 4 && field.ty.message().is_some()) {
            return;
        }
        let value = self.value(&field.ty, field.keep_empty, depth);
        match value {
            Value::Object(fields) if field.inline => object.extend(fields),
            value => {
                object.insert(field.name.to_owned(), value);
            }
        }
    }

    /// Returns a value. It is not zero unless `zero` permits it.
    fn value(&mut self, ty: &Type, zero: bool, depth: usize) -> Value {
        let number = i32::try_from(self.below(100)).expect("a small number") - 50;
        let number = if number == 0 && !zero { 7 } else { number };
        let text = ["", "a", "ä", "a b\n"][usize::from(!zero) + self.below(3) as usize];
        match ty {
            Type::String => text.into(),
            Type::Bytes => STANDARD.encode(text).into(),
            Type::Boolean => (!zero || number > 0).into(),
            Type::Int32 => number.into(),
            Type::Int64 => (i64::from(number) << 40).into(),
            Type::Double => json!(f64::from(number) / 4.0),
            Type::Time => json!("2026-11-22T21:54:47Z"),
            Type::MicroTime => json!("1969-11-22T21:54:47.000120Z"),
            Type::Duration => json!("1h0m0.5s"),
            Type::Quantity => json!("100m"),
            Type::IntOrString if number % 2 == 0 => number.into(),
            Type::IntOrString => "http".into(),
            Type::RawExtension | Type::FieldsV1 => json!({"a": {"b": [number, null]}}),
            Type::Json => json!([text, number]),
            Type::Message(name) => {
                let definition = self.definitions.get(name).expect("a definition");
                self.object(definition, depth + 1)
            }
            Type::List(ty) => {
                let length = 1 + self.below(2);
                (0..length).map(|_| self.value(ty, true, depth + 1)).collect()
            }
            Type::WrappedList(ty) => {
                let length = self.below(3);
                (0..length).map(|_| self.value(ty, true, depth + 1)).collect()
            }
            Type::Map(ty) => {
                let keys = ["", "a", "b/c"].into_iter().take(1 + self.below(3) as usize);
                let entries = keys.map(|key| (key.to_owned(), self.value(ty, true, depth + 1)));
                Value::Object(entries.collect())
            }
        }
    }
}

/// Calls a function with random objects of all kinds of all versions.
fn for_each_object(mut check: impl FnMut(&Definitions, &Value, &mut Writer<'_>)) {
    for version in Version::ALL {
        for_each_object_of(version.definitions(), &mut check);
    }
}

fn for_each_object_of(
    definitions: &Definitions,
    check: &mut impl FnMut(&Definitions, &Value, &mut Writer<'_>),
) {
    let mut writer = Writer { definitions, state: 1 };
    let mut kinds = 0;
    for definition in definitions.iter() {
        let Some((group, version, kind)) = definition.group_version_kind.first() else { continue };
        kinds += 1;
        let api_version =
            if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") };
        for _ in 0..OBJECTS {
            let mut object = writer.object(definition, 0);
            object["apiVersion"] = api_version.as_str().into();
            object["kind"] = (*kind).into();
            check(definitions, &object, &mut writer);
        }
    }
    assert!(kinds > 100, "{kinds} kinds");
}

#[test]
fn objects_of_all_kinds_survive_a_round_trip() {
    for_each_object(|definitions, object, _| {
        let bytes = protobuf::encode(definitions, object).expect("an object of the kind");
        let decoded = protobuf::decode(definitions, &bytes, ("", "")).expect("what was written");
        assert_eq!(&decoded, object);
        assert_eq!(protobuf::encode(definitions, &decoded), Ok(bytes));
    });
}

#[test]
fn broken_bytes_of_all_kinds_are_an_object_or_an_error() {
    let mut errors = 0;
    for_each_object(|definitions, object, writer| {
        let bytes = protobuf::encode(definitions, object).expect("an object of the kind");
        let length = u32::try_from(bytes.len()).expect("a short object");
        for _ in 0..COPIES {
            let mut broken = bytes.clone();
            let at = writer.below(length) as usize;
            match writer.below(3) {
                0 => broken.truncate(at),
                1 => broken[at] ^= 1 << writer.below(8),
                _ => broken.extend_from_within(at..),
            }
            match protobuf::decode(definitions, &broken, ("v1", "Pod")) {
                Ok(object) => {
                    let encoded = protobuf::encode(definitions, &object).expect("what was read");
                    assert_eq!(protobuf::decode(definitions, &encoded, ("", "")), Ok(object));
                }
                Err(_) => errors += 1,
            }
        }
    });
    assert!(errors > 1000, "{errors} errors");
}
