//! Compares the usage of a request with a quota.

use serde_json::Value;

use super::scopes;
use super::usage::Evaluator;
use crate::admission::resources::{self, ResourceList};

/// An object that is created, or that replaces another one.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) evaluator: Evaluator<'a>,
    pub(super) new: &'a Value,
    pub(super) old: Option<&'a Value>,
}

/// Returns what a request adds to the usage of a quota; it is empty if the quota does not count it.
/// Returns the reason if the quota rejects the request.
pub(super) fn added(quota: &Value, request: Request<'_>) -> Result<ResourceList, String> {
    let Request { evaluator, new, old } = request;
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    let status = &quota["status"];
    let hard = resources::parse(&status["hard"]);
    let tracked: Vec<String> = hard.keys().filter(|name| evaluator.tracks(name)).cloned().collect();
    if tracked.is_empty() || !scopes::matches(quota, evaluator, new) {
        return Ok(ResourceList::new());
    }
    if let Some(why) = evaluator.constraint(new, &tracked) {
        return Err(format!("failed quota: {name}: {why}"));
    }
    let used = resources::parse(&status["used"]);
    if tracked.iter().any(|name| !used.contains_key(name)) {
        let names = tracked.join(",");
        return Err(format!("status unknown for quota: {name}, resources: {names}"));
    }
    let mut added = evaluator.usage(new);
    if let Some(old) = old.filter(|old| scopes::matches(quota, evaluator, old)) {
        let before = evaluator.usage(old);
        for (name, amount) in &mut added {
            if let Some(before) = before.get(name) {
                *amount = amount.minus(*before);
            }
        }
    }
    added.retain(|name, amount| amount.nanos() > 0 && hard.contains_key(name));
    let mut sum = used.clone();
    resources::add(&mut sum, &added);
    let is_exceeded = |name: &String| hard.get(name) < sum.get(name);
    let exceeded: Vec<&String> = added.keys().filter(|name| is_exceeded(name)).collect();
    if exceeded.is_empty() {
        return Ok(added);
    }
    let show = |list: &ResourceList| {
        let shown = exceeded.iter().filter_map(|name| Some((name, list.get(*name)?)));
        let shown: Vec<String> = shown.map(|(name, amount)| format!("{name}={amount}")).collect();
        shown.join(",")
    };
    Err(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        show(&added),
        show(&used),
        show(&hard)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(hard: &Value, used: &Value) -> Value {
        json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}})
    }

    fn create<'a>(plural: &'a str, new: &'a Value) -> Request<'a> {
        Request { evaluator: Evaluator::of("", plural), new, old: None }
    }

    #[test]
    fn usage_fits_up_to_the_limit() {
        let quota = quota(&json!({"configmaps": "2"}), &json!({"configmaps": "1"}));
        let map = json!({});
        let added = added(&quota, create("configmaps", &map)).expect("there is room");
        assert_eq!(resources::to_value(&added), json!({"configmaps": "1"}));
    }

    #[test]
    fn a_full_quota_names_the_amounts() {
        let quota = quota(
            &json!({"pods": "1", "requests.cpu": "1", "count/pods": "9"}),
            &json!({"pods": "1", "requests.cpu": "500m", "count/pods": "1"}),
        );
        let resources = json!({"requests": {"cpu": "1"}});
        let pod = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
        assert_eq!(
            added(&quota, create("pods", &pod)).unwrap_err(),
            "exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=1,requests.cpu=500m, \
             limited: pods=1,requests.cpu=1"
        );
    }

    #[test]
    fn usage_must_be_known() {
        let quota = quota(&json!({"secrets": "1"}), &Value::Null);
        let error = added(&quota, create("secrets", &Value::Null)).unwrap_err();
        assert_eq!(error, "status unknown for quota: q, resources: secrets");
        let other = added(&quota, create("configmaps", &Value::Null));
        assert_eq!(other, Ok(ResourceList::new()), "the quota is about others");
    }

    #[test]
    fn an_update_adds_the_difference() {
        let quota = quota(
            &json!({"services": "1", "services.nodeports": "3"}),
            &json!({"services": "1", "services.nodeports": "1"}),
        );
        let service =
            |count: usize| json!({"spec": {"type": "NodePort", "ports": vec![json!({}); count]}});
        let (old, new, large) = (service(1), service(3), service(4));
        let update = |new| Request { old: Some(&old), ..create("services", new) };
        let added_ports = added(&quota, update(&new)).expect("there is room");
        assert_eq!(resources::to_value(&added_ports), json!({"services.nodeports": "2"}));
        let error = added(&quota, update(&large)).unwrap_err();
        assert!(error.contains("requested: services.nodeports=3"), "{error}");
        let smaller = Request { old: Some(&new), ..create("services", &old) };
        assert_eq!(added(&quota, smaller), Ok(ResourceList::new()));
    }
}
