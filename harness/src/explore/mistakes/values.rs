//! Mistakes in values, by the schema.

use serde_json::{Value, json};

use super::{Mistake, with};
use crate::explore::generate::{Generator, member_names, remove};
use crate::explore::schema::{
    Schema, escaped, is_embedded, is_int_or_string, is_nullable, is_set, map_keys, preserves,
    required,
};

type Found = Vec<(Value, Mistake)>;

/// Collects the object with each mistake that its schema forbids.
pub(super) fn mistakes(generator: &mut Generator<'_>, object: &Value, all: &mut Found) {
    let schema = generator.schema;
    let root = schema.root();
    for (name, member) in object.as_object().into_iter().flatten() {
        let is_managed = ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str());
        if let Some(node) = schema.member(root, name).filter(|_| !is_managed) {
            visit(generator, object, (node, member, &format!("/{}", escaped(name))), all);
        }
    }
}

type Place<'a> = (&'a Value, &'a Value, &'a str);

fn visit(generator: &mut Generator<'_>, object: &Value, place: Place<'_>, all: &mut Found) {
    let (node, value, at) = place;
    let schema = generator.schema;
    let node = schema.resolve(node);
    for (wrong, mistake) in of_value(node, value, at) {
        all.extend(with(object, at, wrong).map(|invalid| (invalid, mistake)));
    }
    for name in required(node) {
        let at = format!("{at}/{}", escaped(name));
        let mut without = object.clone();
        if remove(&mut without, &at) {
            all.push((without, Mistake::new("without a required field", &at)));
        }
    }
    if node["x-kubernetes-validations"].is_array() {
        all.extend(breaking_rules(generator, node, at).and_then(|wrong| {
            Some((with(object, at, wrong)?, Mistake::new("against a rule", at).loose()))
        }));
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(node) = schema.member(node, name) {
            visit(generator, object, (node, member, &format!("{at}/{}", escaped(name))), all);
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        visit(generator, object, (&node["items"], item, &format!("{at}/{index}")), all);
    }
}

/// Returns wrong values for a place.
fn of_value(node: &Value, value: &Value, at: &str) -> Found {
    let mut all = Vec::new();
    let mut add = |rule, wrong: Value| all.push((wrong, Mistake::new(rule, at)));
    if is_int_or_string(node) {
        add("a boolean as number or text", json!(true));
        add("a list as number or text", json!(["80"]));
        return all;
    }
    // Servers remove other members with null.
    let is_item = at.rsplit('/').next().is_some_and(|name| name.parse::<usize>().is_ok());
    if is_item && !is_nullable(node) && !preserves(node) {
        add("null", Value::Null);
    }
    if node["enum"].is_array() && node["type"] == "string" {
        add("not in its enumeration", json!("Not-Listed"));
    }
    match node["type"].as_str() {
        Some("string") => of_text(node, value, &mut add),
        Some("integer") => {
            add("a text as integer", json!("7"));
            add("a fraction as integer", json!(1.5));
            of_number(node, &mut add);
        }
        Some("number") => {
            add("a text as number", json!("7"));
            of_number(node, &mut add);
        }
        Some("boolean") => {
            add("a text as boolean", json!("true"));
            add("a number as boolean", json!(1));
        }
        Some("array") => of_list(node, value, at, &mut all),
        Some("object") => of_object(node, value, at, &mut all),
        _ => {}
    }
    all
}

fn of_text(node: &Value, value: &Value, add: &mut impl FnMut(&'static str, Value)) {
    add("a number as text", json!(7));
    // kube-apiserver checks no list for a format that it knows.
    if !node["format"].is_string() {
        add("a list as text", json!([value]));
    }
    let size = |name: &str| node[name].as_u64().and_then(|size| usize::try_from(size).ok());
    if let Some(most) = size("maxLength").filter(|most| *most < 10_000) {
        add("too long", json!("x".repeat(most + 1)));
        add("too long", json!("é".repeat(most + 1)));
    }
    if let Some(least) = size("minLength").filter(|least| *least > 0) {
        add("too short", json!("x".repeat(least - 1)));
    }
    if node["pattern"].is_string() {
        for wrong in ["", "Upper", "under_score", " ", "x!"] {
            if !regex_matches(node, wrong) {
                add("against its pattern", json!(wrong));
            }
        }
    }
    if let Some("date-time" | "date" | "duration" | "byte" | "ipv4" | "ipv6" | "uuid") =
        node["format"].as_str()
    {
        add("not in its format", json!("!not in the format!"));
    }
}

fn regex_matches(node: &Value, text: &str) -> bool {
    let pattern = node["pattern"].as_str().map(regex::Regex::new);
    pattern.is_none_or(|pattern| pattern.is_ok_and(|pattern| pattern.is_match(text)))
}

fn of_number(node: &Value, add: &mut impl FnMut(&'static str, Value)) {
    let is_whole = node["type"] == "integer";
    let number = |number: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "bounds of integers are integers")]
        if is_whole { json!(number as i64) } else { json!(number) }
    };
    let narrow = |bound: &Value| bound.as_f64().filter(|bound| bound.abs() < 1e15);
    if let Some(least) = narrow(&node["minimum"]) {
        add("below its minimum", number(least - 1.0));
        if node["exclusiveMinimum"] == true {
            add("at its exclusive minimum", number(least));
        }
    }
    if let Some(most) = narrow(&node["maximum"]) {
        add("above its maximum", number(most + 1.0));
        if node["exclusiveMaximum"] == true {
            add("at its exclusive maximum", number(most));
        }
    }
    if node["multipleOf"].as_i64().is_some_and(|of| of > 1) {
        add("not a multiple", json!(1));
    }
}

fn of_list(node: &Value, value: &Value, at: &str, all: &mut Found) {
    let items = value.as_array().cloned().unwrap_or_default();
    let mut add = |rule, wrong: Value, at: &str| all.push((wrong, Mistake::new(rule, at)));
    add("a text as list", json!("x"), at);
    add("an object as list", json!({}), at);
    let Some(first) = items.first() else { return };
    let mut doubled = items.clone();
    doubled.push(first.clone());
    if is_set(node) || !map_keys(node).is_empty() {
        let is_within = node["maxItems"].as_u64().is_none_or(|most| doubled.len() as u64 <= most);
        if is_within {
            let item = format!("{at}/{}", items.len());
            add("a duplicate", json!(doubled), &item);
        }
    } else if let Some(most) = node["maxItems"].as_u64().filter(|most| *most < 100) {
        let many = vec![first.clone(); usize::try_from(most).unwrap_or(0) + 1];
        add("too many items", json!(many), at);
    }
    if node["minItems"].as_u64().is_some_and(|least| least > 0) {
        add("too few items", json!([]), at);
    }
}

fn of_object(node: &Value, value: &Value, at: &str, all: &mut Found) {
    if is_embedded(node) {
        for name in ["apiVersion", "kind"] {
            let mut without = value.clone();
            without[name] = json!("");
            let at = format!("{at}/{name}");
            all.push((without, Mistake::new("an embedded object without a kind", &at)));
        }
        return;
    }
    let mut add = |rule, wrong: Value| all.push((wrong, Mistake::new(rule, at)));
    add("a text as object", json!("x"));
    add("a list as object", json!([]));
    let most = node["maxProperties"].as_u64().filter(|most| *most < 100);
    let some = value.as_object().and_then(|members| members.values().next());
    if let (Some(most), Some(some)) = (most, some) {
        let many = (0..=most).map(|n| (format!("key-{n}"), some.clone())).collect();
        add("too many members", Value::Object(many));
    }
    for name in ["oneOf", "anyOf", "not"].into_iter().filter(|name| !node[*name].is_null()) {
        let declared = member_names(&node["properties"]);
        let whole = declared.iter().map(|name| (name.clone(), json!("both"))).collect();
        let rule = match name {
            "oneOf" => "not exactly one of its forms",
            "anyOf" => "none of its forms",
            _ => "a forbidden form",
        };
        let wrong = if name == "anyOf" { json!({}) } else { Value::Object(whole) };
        all.push((wrong, Mistake::new(rule, at).loose()));
    }
}

/// Returns a value that fits the schema except for its rules.
fn breaking_rules(generator: &mut Generator<'_>, node: &Value, at: &str) -> Option<Value> {
    let mut plain = node.clone();
    plain.as_object_mut()?.remove("x-kubernetes-validations");
    // Deeper rules would hide this one.
    let depth = at.matches('/').count();
    (0..40).find_map(|_| {
        let value = generator.value(&plain, depth)?;
        let misfits = generator.schema.misfits_at(node, &value);
        let only_rules = misfits.iter().all(|misfit| misfit.at.is_empty() && misfit.is_certain);
        (!misfits.is_empty() && only_rules).then_some(value)
    })
}

/// Returns the object with undeclared fields at several depths.
pub(super) fn unknown_fields(schema: &Schema, object: &Value) -> Found {
    let places = ["", "/spec", "/spec/must", "/spec/parts/0", "/spec/template/spec"];
    let has_fields = |place: &&&str| {
        let node = schema.at(place).filter(|node| node["properties"].is_object());
        node.is_some_and(|node| !preserves(node))
            && object.pointer(place).is_some_and(Value::is_object)
    };
    let places = places.iter().filter(has_fields);
    let unknown = places.filter_map(|place| {
        let at = format!("{place}/unknownField");
        let invalid = with(object, &at, json!("x"))?;
        let mistake = Mistake::new("an unknown field", &at).loose();
        Some((invalid, Mistake { is_strict: true, ..mistake }))
    });
    unknown.collect()
}

/// Returns mistakes that every server rejects in built-in types.
pub(super) fn of_built_in(generator: &Generator<'_>, object: &Value) -> Found {
    let mut all = Vec::new();
    let mut add = |at: &str, value: Value, rule| {
        let invalid = with(object, at, value);
        all.extend(invalid.map(|invalid| (invalid, Mistake::new(rule, at).loose())));
    };
    match generator.resource() {
        "configmaps.v1" => {
            add("/data", json!({"has space": "x"}), "a key with a space");
            add("/data", json!({"..": "x"}), "a key of two dots");
            add("/data", json!({"x".repeat(254): "x"}), "a key of 254 characters");
            add("/data", json!({"key": 1}), "a number as text");
            add("/data", json!("x"), "a text as map");
            add("/binaryData", json!({"key": "not base64!"}), "not base64");
            add("/immutable", json!("true"), "a text as boolean");
        }
        "secrets.v1" => {
            add("/data", json!({"key": "not base64!"}), "not base64");
            add("/data", json!({"has space": ""}), "a key with a space");
        }
        "deployments.v1.apps" => {
            add("/spec/replicas", json!("1"), "a text as integer");
            add("/spec/replicas", json!(-1), "a negative number");
            add("/spec/replicas", json!(1.5), "a fraction as integer");
            add("/spec/replicas", json!(4_294_967_297_i64), "an integer above 32 bits");
            add("/spec/minReadySeconds", json!(-1), "a negative number");
            let containers = "/spec/template/spec/containers";
            add(containers, json!([]), "without a required field");
            add(&format!("{containers}/0/name"), json!("Upper"), "a name in upper case");
            let template = "/spec/template/metadata/labels";
            add(template, json!({"app": "other"}), "a selector that selects nothing");
            let policy = "/spec/template/spec/restartPolicy";
            add(policy, json!("Sometimes"), "not in its enumeration");
            add(&format!("{containers}/0/imagePullPolicy"), json!("never"), "in lower case");
        }
        "leases.v1.coordination.k8s.io" => {
            add("/spec/leaseDurationSeconds", json!(0), "not positive");
            add("/spec/leaseTransitions", json!(-1), "a negative number");
            add("/spec/renewTime", json!("yesterday"), "not in its format");
        }
        "roles.v1.rbac.authorization.k8s.io" => {
            let rule = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": []}]);
            add("/rules", rule, "without a required field");
        }
        _ => {}
    }
    all
}
