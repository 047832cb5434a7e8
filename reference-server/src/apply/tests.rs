use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn schema() -> Schema {
    let document = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}}}},
        }},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    crate::schema::meta::with_type_meta(Schema::from_openapi(&document).unwrap())
}

/// An object on its way through writes.
struct World {
    schema: Schema,
    object: Value,
}

impl World {
    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn created(by: &str, spec: Value) -> Self {
        let (schema, mut object) = (schema(), json!({"metadata": {"name": "w"}, "spec": spec}));
        write(&schema, by, Operation::Update).track(None, &mut object, None);
        Self { schema, object }
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn applied(by: &str, spec: Value) -> Self {
        let (schema, mut object) = (schema(), json!({"metadata": {"name": "w"}, "spec": spec}));
        write(&schema, by, Operation::Apply).claim(&object.clone(), &mut object).unwrap();
        Self { schema, object }
    }

    fn apply(&mut self, by: &str, spec: &Value, force: bool) -> Result<(), Refusal> {
        let config = json!({"metadata": {"name": "w"}, "spec": spec});
        self.object = write(&self.schema, by, Operation::Apply).apply(&self.object, &config, force, Ok)?;
        Ok(())
    }

    fn update(&mut self, by: &str, spec: Value) {
        let mut new = self.object.clone();
        new["spec"] = spec;
        write(&self.schema, by, Operation::Update).track(Some(&self.object), &mut new, None);
        self.object = new;
    }

    fn owns(&self, manager: &str) -> Value {
        let list = self.object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let entry = list.into_iter().find(|entry| entry["manager"] == manager);
        entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }
}

fn write<'a>(schema: &'a Schema, manager: &str, operation: Operation) -> Write<'a> {
    let owner = Owner {
        manager: manager.to_owned(),
        operation,
        api_version: "example.com/v1".to_owned(),
        subresource: String::new(),
    };
    Write { owner, reach: Reach::NoStatus, schema, faults: Faults::none() }
}

#[test]
fn what_the_applier_leaves_out_goes_unless_somebody_else_has_it() {
    let mut world =
        World::applied("a", json!({"size": 1, "tags": ["x", "y"], "items": [{"name": "i", "weight": 1}]}));
    world.apply("b", &json!({"tags": ["y"], "items": [{"name": "i"}]}), false).unwrap();
    world.apply("a", &json!({}), false).unwrap();
    assert_eq!(world.object["spec"], json!({"tags": ["y"], "items": [{"name": "i"}]}));
    world.apply("b", &json!({}), false).unwrap();
    assert_eq!(world.object["spec"], json!({}));
}

#[test]
fn another_value_of_an_owned_field_is_a_conflict_until_forced() {
    let mut world = World::applied("a", json!({"size": 1, "labels": {"l": "1"}}));
    let error = world.apply("b", &json!({"size": 2, "labels": {"l": "1"}}), false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"a\": .spec.size");
    let error = world.apply("b", &json!({"size": 2, "labels": {"l": "2"}}), false).unwrap_err();
    let list = "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.labels.l\n- .spec.size";
    assert_eq!(error.to_string(), list);
    world.apply("b", &json!({"size": 2, "labels": {"l": "1"}}), true).unwrap();
    assert_eq!(world.owns("a"), json!({"f:spec": {"f:labels": {"f:l": {}}}}));
    assert_eq!(world.owns("b"), json!({"f:spec": {"f:labels": {"f:l": {}}, "f:size": {}}}));
}

#[test]
fn an_update_owns_what_it_changed_and_conflicts_with_nobody() {
    let mut world = World::applied("a", json!({"size": 1, "labels": {"l": "1"}}));
    world.update("u", json!({"size": 2, "labels": {"l": "1"}}));
    assert_eq!(world.owns("u"), json!({"f:spec": {"f:size": {}}}));
    assert_eq!(world.owns("a"), json!({"f:spec": {"f:labels": {"f:l": {}}}}));
    let error = world.apply("a", &json!({"size": 1, "labels": {"l": "1"}}), false).unwrap_err();
    let text = "Apply failed with 1 conflict: conflict with \"u\" using example.com/v1: .spec.size";
    assert_eq!(error.to_string(), text);
    world.update("u", json!({"labels": {"l": "1"}}));
    assert_eq!(world.owns("u"), Value::Null);
}

#[test]
fn nothing_changes_when_the_same_is_applied_again() {
    let mut world = World::applied("a", json!({"size": 1}));
    let before = world.object.clone();
    world.apply("a", &json!({"size": 1}), false).unwrap();
    assert_eq!(world.object, before);
}

#[rstest]
#[case(json!([{}]), false)]
#[case(json!([]), true)]
#[case(json!(null), true)]
#[case(json!([{"operation": "nonsense"}]), true)]
fn only_one_empty_entry_forgets_the_owners(#[case] sent: Value, #[case] kept: bool) {
    let mut world = World::created("u", json!({"size": 1}));
    let mut new = world.object.clone();
    write(&world.schema, "u", Operation::Update).track(Some(&world.object), &mut new, Some(&sent));
    world.object = new;
    assert_eq!(world.owns("u") != Value::Null, kept);
}

#[test]
fn fields_of_nobody_belong_to_whoever_was_before_the_first_apply() {
    let mut world =
        World { schema: schema(), object: json!({"metadata": {"name": "w"}, "spec": {"size": 1}}) };
    let error = world.apply("a", &json!({"size": 2}), false).unwrap_err();
    assert!(error.to_string().contains("\"before-first-apply\" using example.com/v1"), "{error}");
}

#[test]
fn an_item_twice_is_no_configuration() {
    let mut world = World::applied("a", json!({}));
    let twice = json!({"items": [{"name": "i"}, {"name": "i"}]});
    assert!(matches!(world.apply("a", &twice, false), Err(Refusal::Ambiguous(_))));
}
