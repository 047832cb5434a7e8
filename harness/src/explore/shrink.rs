//! Finds the smallest objects that break a property in the same way.

use std::mem::discriminant;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::generate::remove;
use super::prober::Halt;
use super::property::Input;
use super::schema::escaped;
use super::stage::{Stage, Verdict};
use super::violation::Failure;

/// Time for all checks.
const TIME: Duration = Duration::from_secs(30);

/// The number of repetitions of a check that found a violation. One of them must fail, too.
const REPEATED: usize = 4;

/// Reports a violation only if it can be repeated. Another client may have interfered.
pub(super) async fn confirmed(stage: &mut Stage<'_>, first: Failure) -> Verdict {
    let property = first.violation.property;
    for _ in 0..REPEATED {
        let (result, exchanges, name) = stage.once(property, &first.input).await;
        match result {
            Err(Halt::Violation(violation)) => {
                let input = first.input.clone();
                let again = stage.failure(*violation, input, (exchanges, name));
                let smallest = smallest(stage, again).await;
                return Verdict::Broken(Box::new(smallest));
            }
            Err(Halt::Over) => return Verdict::Broken(Box::new(first)),
            _ => {}
        }
    }
    let message = format!("cannot be repeated: {}", first.violation.message);
    Verdict::Undecided(message)
}

/// Returns the smallest failure that these attempts find.
async fn smallest(stage: &mut Stage<'_>, failure: Failure) -> Failure {
    let end = Instant::now() + TIME;
    let mut attempts = 0;
    let mut smallest = failure;
    'again: loop {
        for candidate in candidates(&smallest.input, stage.fixed()) {
            if attempts >= stage.shrink || Instant::now() >= end || stage.budget.is_over() {
                return smallest;
            }
            if !is_sound(stage, &candidate) {
                continue;
            }
            attempts += 1;
            let property = smallest.violation.property;
            let (result, exchanges, name) = stage.once(property, &candidate).await;
            let Err(Halt::Violation(violation)) = result else { continue };
            let is_same = discriminant(&violation.claim) == discriminant(&smallest.violation.claim)
                && head(&violation.message) == head(&smallest.violation.message);
            if is_same {
                smallest = stage.failure(*violation, candidate, (exchanges, name));
                continue 'again;
            }
        }
        return smallest;
    }
}

/// Returns the message without the place in the object.
fn head(message: &str) -> &str {
    message.split('/').next().unwrap_or_default()
}

/// Valid objects must stay valid, and the mistake must stay one.
fn is_sound(stage: &Stage<'_>, input: &Input) -> bool {
    let Some(mistake) = &input.mistake else {
        return !stage.schema.is_complete
            || input.objects.iter().all(|object| stage.schema.fits(object));
    };
    let [valid, invalid] = input.objects.as_slice() else { return false };
    let is_of_schema = stage.schema.is_complete
        && !mistake.is_strict
        && !mistake.at.starts_with("/metadata")
        && !["/kind", "/apiVersion"].contains(&mistake.at.as_str());
    if !stage.schema.is_complete {
        return true;
    }
    let misfits = stage.schema.misfits(invalid);
    stage.schema.fits(valid) && (!is_of_schema || !misfits.is_empty())
}

/// Returns smaller inputs, the smallest first. The parts of the template stay.
fn candidates(input: &Input, template: &Value) -> Vec<Input> {
    let mut all = Vec::new();
    if input.objects.len() > 2 {
        for index in 0..input.objects.len() {
            let mut fewer = input.clone();
            fewer.objects.remove(index);
            all.push(fewer);
        }
    }
    let mut places = Vec::new();
    for object in &input.objects {
        collect(object, "", &mut places);
    }
    places.sort_by_key(|place| (place.matches('/').count(), place.clone()));
    places.dedup();
    let is_kept = |place: &&String| {
        let fixed = ["/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"];
        let of_mistake = input.mistake.as_ref().is_some_and(|mistake| {
            // Items before the mistake fix its index.
            let list = place.rsplit_once('/').filter(|(_, name)| name.parse::<usize>().is_ok());
            let is_sibling = list.is_some_and(|(list, _)| mistake.at.starts_with(list));
            mistake.at.starts_with(place.as_str()) || place.starts_with(&mistake.at) || is_sibling
        });
        fixed.contains(&place.as_str()) || of_mistake || template.pointer(place).is_some()
    };
    for place in places.iter().filter(|place| !is_kept(place)) {
        let mut without = input.clone();
        for object in &mut without.objects {
            remove(object, place);
        }
        all.push(without);
    }
    for place in places.iter().filter(|place| !is_kept(place)) {
        for (index, object) in input.objects.iter().enumerate() {
            let Some(value) = object.pointer(place) else { continue };
            for smaller in smaller(value) {
                let mut changed = input.clone();
                if let Some(value) = changed.objects[index].pointer_mut(place) {
                    *value = smaller;
                    all.push(changed);
                }
            }
        }
    }
    all.retain(|candidate| candidate != input);
    all
}

/// Collects the JSON Pointers of all parts.
fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    if !at.is_empty() {
        places.push(at.to_owned());
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        collect(member, &format!("{at}/{}", escaped(name)), places);
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        collect(item, &format!("{at}/{index}"), places);
    }
}

fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) if text.chars().count() > 1 => {
            let half = text.chars().count() / 2;
            let first: String = text.chars().take(half).collect();
            let second: String = text.chars().skip(half).collect();
            vec![json!("a"), json!(first), json!(second)]
        }
        Value::Number(number) if number.as_f64() != Some(1.0) => vec![json!(1)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_inputs_keep_the_name_and_the_mistake() {
        let object = json!({"kind": "A", "metadata": {"name": "x"}, "spec": {"a": "text", "b": 2}});
        let mistake = super::super::Mistake::missing("/spec/b", false);
        let input = Input { objects: vec![object], mistake: Some(mistake) };
        let all = candidates(&input, &Value::Null);
        assert!(!all.is_empty());
        for candidate in &all {
            let [object] = candidate.objects.as_slice() else { panic!("one object") };
            assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("A"), &json!("x")));
            assert_eq!(object["spec"]["b"], 2);
        }
        assert!(all.iter().any(|candidate| candidate.objects[0]["spec"].get("a").is_none()));
        assert!(all.iter().any(|candidate| candidate.objects[0]["spec"]["a"] == "te"));
    }
}
