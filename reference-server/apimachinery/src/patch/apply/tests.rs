use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::schema::ListType;

fn schema() -> Schema {
    let document = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "items": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"}, "weight": {"type": "integer"},
                        "tags": {
                            "type": "array", "x-kubernetes-list-type": "set",
                            "items": {"type": "string"},
                        },
                    },
                },
            },
            "plain": {"type": "array", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    crate::schema::meta::with_type_meta(Schema::from_openapi(&document).unwrap())
}

/// An object in a sequence of writes.
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

    fn apply(&mut self, by: &str, spec: &Value, force: bool) -> Result<(), ApplyError> {
        let config = json!({"metadata": {"name": "w"}, "spec": spec});
        self.object =
            write(&self.schema, by, Operation::Apply).apply(&self.object, &config, force, Ok)?;
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
    Write { owner, reach: Reach::NoStatus, schema }
}

#[test]
fn omitted_fields_are_removed_unless_they_have_another_owner() {
    let mut world = World::applied(
        "a",
        json!({"size": 1, "tags": ["x", "y"], "items": [{"name": "i", "weight": 1}]}),
    );
    world.apply("b", &json!({"tags": ["y"], "items": [{"name": "i"}]}), false).unwrap();
    world.apply("a", &json!({}), false).unwrap();
    assert_eq!(world.object["spec"], json!({"tags": ["y"], "items": [{"name": "i"}]}));
    world.apply("b", &json!({}), false).unwrap();
    assert_eq!(world.object["spec"], json!({}));
}

#[test]
fn an_apply_that_drops_the_last_label_keeps_the_name() {
    let (schema, mut object) = (schema(), json!({"metadata": {"name": "w", "labels": {"a": "1"}}}));
    let write = write(&schema, "a", Operation::Apply);
    write.claim(&object.clone(), &mut object).unwrap();
    for config in [json!({"metadata": {"name": "w"}}), json!({})] {
        let new = write.apply(&object, &config, false, Ok).unwrap();
        assert_eq!(new["metadata"]["name"], "w");
        assert_eq!(new["metadata"].get("labels"), None);
    }
}

#[test]
fn a_different_value_of_an_owned_field_is_a_conflict_unless_forced() {
    let mut world = World::applied("a", json!({"size": 1, "labels": {"l": "1"}}));
    let error = world.apply("b", &json!({"size": 2, "labels": {"l": "1"}}), false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"a\": .spec.size");
    let error = world.apply("b", &json!({"size": 2, "labels": {"l": "2"}}), false).unwrap_err();
    let list =
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.labels.l\n- .spec.size";
    assert_eq!(error.to_string(), list);
    world.apply("b", &json!({"size": 2, "labels": {"l": "1"}}), true).unwrap();
    assert_eq!(world.owns("a"), json!({"f:spec": {"f:labels": {"f:l": {}}}}));
    assert_eq!(world.owns("b"), json!({"f:spec": {"f:labels": {"f:l": {}}, "f:size": {}}}));
}

#[test]
fn an_update_owns_the_fields_it_changed_and_never_conflicts() {
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
fn applying_the_same_configuration_again_changes_nothing() {
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
fn only_a_single_empty_entry_resets_the_owners(#[case] sent: Value, #[case] kept: bool) {
    let mut world = World::created("u", json!({"size": 1}));
    let mut new = world.object.clone();
    write(&world.schema, "u", Operation::Update).track(Some(&world.object), &mut new, Some(&sent));
    world.object = new;
    assert_eq!(world.owns("u") != Value::Null, kept);
}

#[test]
fn untracked_fields_belong_to_before_first_apply() {
    let mut world =
        World { schema: schema(), object: json!({"metadata": {"name": "w"}, "spec": {"size": 1}}) };
    let error = world.apply("a", &json!({"size": 2}), false).unwrap_err();
    assert!(error.to_string().contains("\"before-first-apply\" using example.com/v1"), "{error}");
}

#[test]
fn a_configuration_with_a_duplicate_item_is_rejected() {
    let mut world = World::applied("a", json!({}));
    let twice = json!({"items": [{"name": "i"}, {"name": "i"}]});
    assert!(matches!(world.apply("a", &twice, false), Err(ApplyError::Ambiguous(_))));
}

const LONG_AGO: &str = "2001-01-01T00:00:00Z";

impl World {
    /// Returns the object with old timestamps in all entries.
    fn aged(mut self) -> Self {
        let entries = self.object["metadata"]["managedFields"].as_array_mut().unwrap();
        for entry in entries.iter_mut() {
            entry["time"] = LONG_AGO.into();
        }
        // Entries with the same time are sorted by their managers.
        entries.sort_by_key(|entry| entry["manager"].to_string());
        self
    }

    fn time_of(&self, manager: &str) -> String {
        let list = self.object["metadata"]["managedFields"].as_array().unwrap();
        let entry = list.iter().find(|entry| entry["manager"] == manager).unwrap();
        entry["time"].as_str().unwrap().to_owned()
    }
}

/// The entry has the time of the last write that changed something, in whole seconds.
#[rstest]
#[case::the_same(json!({"size": 1, "labels": {"l": "1"}}), false)]
#[case::another_value(json!({"size": 2, "labels": {"l": "1"}}), true)]
#[case::one_field_more(json!({"size": 1, "labels": {"l": "1"}, "tags": ["x"]}), true)]
#[case::one_field_less(json!({"labels": {"l": "1"}}), true)]
fn an_entry_has_the_time_of_the_last_change(#[case] spec: Value, #[case] moves: bool) {
    let first = json!({"size": 1, "labels": {"l": "1"}});
    let mut applied = World::applied("m", first.clone()).aged();
    applied.apply("m", &spec, false).unwrap();
    let mut updated = World::created("m", first).aged();
    updated.update("m", spec);
    for time in [applied.time_of("m"), updated.time_of("m")] {
        assert_eq!(time != LONG_AGO, moves, "{time}");
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time.len() == LONG_AGO.len(), "{time}");
    }
}

#[rstest]
#[case(Reach::Whole, json!({"f:spec": {"f:size": {}}, "f:status": {"f:size": {}}}))]
#[case(Reach::NoStatus, json!({"f:spec": {"f:size": {}}}))]
#[case(Reach::Status, json!({"f:status": {"f:size": {}}}))]
#[case(Reach::StatusAndMetadata, json!({"f:status": {"f:size": {}}}))]
fn each_endpoint_owns_only_its_fields(#[case] reach: Reach, #[case] expected: Value) {
    let (schema, config) =
        (schema(), json!({"metadata": {"name": "w"}, "spec": {"size": 1}, "status": {"size": 1}}));
    let mut object = config.clone();
    Write { reach, ..write(&schema, "m", Operation::Apply) }.claim(&config, &mut object).unwrap();
    assert_eq!(World { schema, object }.owns("m"), expected);
}

#[test]
fn before_first_apply_has_no_subresource() {
    let (schema, live) = (schema(), json!({"metadata": {"name": "w"}, "status": {"size": 1}}));
    let mut status = Write { reach: Reach::Status, ..write(&schema, "m", Operation::Apply) };
    status.owner.subresource = "status".to_owned();
    let error = status
        .apply(&live, &json!({"metadata": {"name": "w"}, "status": {"size": 2}}), false, Ok)
        .unwrap_err();
    let text = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using \
                example.com/v1: .status.size";
    assert_eq!(error.to_string(), text);
}

#[rstest]
#[case("example.com/v1")]
#[case("example.com/v2")]
fn owners_are_the_same_across_api_versions(#[case] version: &str) {
    let world = World::applied("a", json!({"size": 1}));
    let mut other = write(&world.schema, "b", Operation::Apply);
    other.owner.api_version = version.to_owned();
    let config = json!({"metadata": {"name": "w"}, "spec": {"size": 2}});
    assert!(matches!(other.apply(&world.object, &config, false, Ok), Err(ApplyError::Conflict(_))));
}

/// Lists without a list type are owned as a whole. Lists with keys are owned item by item at each
/// depth.
#[test]
fn the_list_type_defines_the_owned_units() {
    let deep = |tag: &str| json!({"items": [{"name": "i", "tags": [tag]}]});
    let mut world = World::applied("a", deep("x"));
    world.apply("b", &deep("y"), false).unwrap();
    assert_eq!(world.object["spec"]["items"][0]["tags"], json!(["x", "y"]));
    world.apply("a", &json!({}), false).unwrap();
    assert_eq!(world.object["spec"], deep("y"));

    let mut world = World::applied("a", json!({"plain": ["x"]}));
    let error = world.apply("b", &json!({"plain": ["y"]}), false).unwrap_err();
    assert!(error.to_string().ends_with(": .spec.plain"), "{error}");
    assert_eq!(world.owns("a"), json!({"f:spec": {"f:plain": {}}}));
}

/// Lists of built-in types follow their patch strategy, unless they declare a list type.
#[rstest]
#[case::nothing(|_: &mut Schema| {}, json!(["x"]), json!({}))]
#[case::merged(
    |list: &mut Schema| list.patch_strategy.merge = true,
    json!(["x"]),
    json!({"v:\"x\"": {}})
)]
#[case::merged_and_whole(
    |list: &mut Schema| (list.patch_strategy.merge, list.list_type) = (true, ListType::Atomic),
    json!(["x"]),
    json!({})
)]
#[case::merged_by_key(
    |list: &mut Schema| (list.patch_strategy.merge, list.patch_merge_key) = (true, Some("k")),
    json!(["x"]),
    json!({})
)]
#[case::keyed(
    |list: &mut Schema| list.list_map_keys = vec!["k".to_owned()],
    json!([{"k": 1}]),
    json!({"k:{\"k\":1}": {".": {}, "f:k": {}}})
)]
#[case::keyed_and_whole(
    |list: &mut Schema| {
        list.list_map_keys = vec!["k".to_owned()];
        list.list_type = ListType::Atomic;
    },
    json!([{"k": 1}]),
    json!({})
)]
fn the_patch_strategy_defines_the_owned_units_of_built_in_lists(
    #[case] says: fn(&mut Schema),
    #[case] list: Value,
    #[case] expected: Value,
) {
    let mut schema = Schema::from_openapi(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": {}}}}),
    );
    let mut schema = Schema::clone(schema.as_mut().unwrap().properties.get("l").unwrap());
    says(&mut schema);
    assert_eq!(shape::stated(&list, Some(&schema)).to_fields_v1(), expected);
}

/// A configuration with few names, so that two configurations often overlap. Its lists are never
/// empty: a kube-apiserver removes a list when all its items are given up, and creates it again at
/// the next apply.
fn spec() -> impl Strategy<Value = Value> {
    let labels = btree_map(select(vec!["a", "b", "c"]), select(vec!["1", "2"]), 0..3);
    let tags = btree_set(select(vec!["x", "y", "z"]), 1..3);
    let items = btree_map(select(vec!["i", "j", "k"]), option::of(0..3), 1..3);
    (option::of(0..3), option::of(labels), option::of(tags), option::of(items)).prop_map(
        |(size, labels, tags, items)| {
            let mut spec = serde_json::Map::new();
            spec.extend(size.map(|size: i32| ("size".to_owned(), size.into())));
            spec.extend(labels.map(|labels| ("labels".to_owned(), json!(labels))));
            spec.extend(tags.map(|tags| ("tags".to_owned(), json!(tags))));
            let item = |(name, weight): (&str, Option<i32>)| match weight {
                Some(weight) => json!({"name": name, "weight": weight}),
                None => json!({"name": name}),
            };
            spec.extend(
                items.map(|items| ("items".to_owned(), items.into_iter().map(item).collect())),
            );
            spec.into()
        },
    )
}

/// Returns the fields of a configuration and their values. Only the names in the configuration
/// identify the fields.
fn places(spec: &Value) -> BTreeMap<String, Value> {
    let mut places = BTreeMap::new();
    for (field, value) in spec.as_object().unwrap() {
        match (field.as_str(), value) {
            ("labels", Value::Object(labels)) => {
                places.extend(
                    labels.iter().map(|(key, value)| (format!("labels {key}"), value.clone())),
                );
            }
            ("tags", Value::Array(tags)) => {
                places.extend(tags.iter().map(|tag| (format!("tags {tag}"), tag.clone())));
            }
            ("items", Value::Array(items)) => {
                for item in items {
                    places.insert(format!("items {}", item["name"]), item["name"].clone());
                    if let Some(weight) = item.get("weight") {
                        places.insert(format!("items {} weight", item["name"]), weight.clone());
                    }
                }
            }
            _ => {
                places.insert(field.clone(), value.clone());
            }
        }
    }
    places
}

proptest! {
    #[test]
    fn apply_is_idempotent(first in spec(), others in spec(), spec in spec(), force: bool) {
        let mut world = World::applied("b", first);
        world.apply("a", &others, true).unwrap();
        if world.apply("a", &spec, force).is_ok() {
            let once = World { schema: schema(), object: world.object }.aged();
            let mut twice = World { schema: schema(), object: once.object.clone() };
            twice.apply("a", &spec, false).unwrap();
            prop_assert_eq!(twice.object, once.object);
        }
    }

    /// Two appliers conflict exactly where both set a field to different values. The result
    /// contains the fields of both.
    #[test]
    fn appliers_conflict_exactly_where_their_values_differ(one in spec(), other in spec()) {
        let mut world = World::applied("a", one.clone());
        let (of_one, of_other) = (places(&one), places(&other));
        let disputed = of_other
            .iter()
            .any(|(place, value)| of_one.get(place).is_some_and(|theirs| theirs != value));
        let before = world.object.clone();
        let applied = world.apply("b", &other, false);
        prop_assert_eq!(applied.is_err(), disputed, "{:?}", applied);
        if disputed {
            prop_assert_eq!(&world.object, &before, "a conflict changes nothing");
            world.apply("b", &other, true).unwrap();
        }
        let mut both = of_one;
        both.extend(of_other);
        prop_assert_eq!(places(&world.object["spec"]), both);
    }

    /// A field without an owner is removed. A field with another owner keeps its value.
    #[test]
    fn given_up_fields_are_removed_unless_they_have_another_owner(
        one in spec(), other in spec(), less in spec()
    ) {
        let mut world = World::applied("a", one);
        world.apply("b", &other, true).unwrap();
        world.apply("a", &less, true).unwrap();
        let mut both = places(&other);
        both.extend(places(&less));
        prop_assert_eq!(places(&world.object["spec"]), both);
        world.apply("a", &json!({}), false).unwrap();
        let mut left = places(&other);
        left.retain(|place, value| places(&less).get(place).is_none_or(|taken| taken == value));
        prop_assert_eq!(places(&world.object["spec"]), left);
        prop_assert_eq!(world.owns("a"), json!({"f:spec": {}}));
    }
}
