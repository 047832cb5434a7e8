//! Converts values between JSON and CEL.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Value as Cel;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::objects::{Key, Map};
use kubeproof_cases::expression::Need;
use serde_json::{Value, json};

use crate::values::Variable;

/// Converts the parts of a variable that an expression reads; all of them without a need.
pub(super) fn variable<'v>(from: &'v Variable, need: Option<Need<'_>>) -> Box<dyn Val + 'v> {
    let need = need.filter(|need| !need.is_whole());
    match (from.resolved(), need) {
        (Variable::Object(object), Some(need)) => {
            members(object.parts(), need, |member, need| variable(member, Some(need)))
        }
        (Variable::Object(object), None) => {
            let members = object.parts().iter();
            Box::new(map_of(members.map(|(name, member)| (name, variable(member, None)))))
        }
        (Variable::List(list), Some(need)) => {
            items(list.parts(), need, |item, need| variable(item, Some(need)))
        }
        (Variable::List(list), None) => {
            let items = list.parts().iter().map(|item| variable(item, None));
            Box::new(CelList::from(items.collect::<Vec<_>>()))
        }
        (other, Some(need)) => needed(other.value(), need),
        (other, None) => borrowed(other.value()),
    }
}

/// Converts only the members that the expression reads.
fn needed<'v>(value: &'v Value, need: Need<'_>) -> Box<dyn Val + 'v> {
    match value {
        _ if need.is_whole() => borrowed(value),
        Value::Array(list) => items(list, need, needed),
        Value::Object(object) => members(object, need, needed),
        scalar => borrowed(scalar),
    }
}

fn members<'v, 'n, T: 'v>(
    members: impl IntoIterator<Item = (&'v String, &'v T)>,
    need: Need<'n>,
    convert: impl Fn(&'v T, Need<'n>) -> Box<dyn Val + 'v>,
) -> Box<dyn Val + 'v> {
    let members = members.into_iter().filter_map(|(name, member)| match need.member(name) {
        Some(need) => Some((name, convert(member, need))),
        // The expression needs only the key.
        None => need.keys().then(|| (name, Box::new(CelNull) as Box<dyn Val>)),
    });
    Box::new(map_of(members))
}

fn items<'v, 'n, T: 'v>(
    items: &'v [T],
    need: Need<'n>,
    convert: impl Fn(&'v T, Need<'n>) -> Box<dyn Val + 'v>,
) -> Box<dyn Val + 'v> {
    let items = items.iter().map(|item| match need.items() {
        Some(need) => convert(item, need),
        // The expression needs only the length.
        None => Box::new(CelNull) as Box<dyn Val>,
    });
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

/// Converts a value without copies of its texts.
fn borrowed(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Box::new(CelInt::from(number)),
            (None, Some(number), _) => Box::new(CelUInt::from(number)),
            (None, None, number) => Box::new(CelDouble::from(number.unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().map(borrowed).collect::<Vec<_>>()))
        }
        Value::Object(members) => {
            Box::new(map_of(members.iter().map(|(name, value)| (name, borrowed(value)))))
        }
    }
}

fn map_of<'v>(members: impl Iterator<Item = (&'v String, Box<dyn Val + 'v>)>) -> CelMap<'v> {
    let members = members.map(|(name, value)| (CelMapKey::from(name.as_str()), value));
    CelMap::from(members.collect::<HashMap<_, _>>())
}

/// Converts a value with its texts.
pub(crate) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Cel::Int(number),
            (None, Some(number), _) => Cel::UInt(number),
            (None, None, number) => Cel::Float(number.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => Cel::Map(Map {
            map: Arc::new(
                members
                    .iter()
                    .map(|(name, value)| (Key::String(Arc::new(name.clone())), to_cel(value)))
                    .collect::<HashMap<_, _>>(),
            ),
        }),
    }
}

pub(crate) fn from_cel(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => json!(value),
        Cel::Int(value) => json!(value),
        Cel::UInt(value) => json!(value),
        Cel::Float(value) => json!(value),
        Cel::String(value) => json!(value.as_str()),
        Cel::List(items) => Value::Array(items.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(map) => {
            // serde_json sorts the members.
            let members =
                map.map.iter().map(|(name, value)| Some((name.to_string(), from_cel(value)?)));
            Value::Object(members.collect::<Option<serde_json::Map<_, _>>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::expression;

    fn converted(list: &Variable, text: &str) -> Value {
        let expression = expression(text);
        let value = variable(list, expression.needs.variable("list"));
        from_cel(&Cel::try_from(value.as_ref()).unwrap()).unwrap()
    }

    #[test]
    fn only_what_an_expression_looks_at_is_converted() {
        let value = json!({"items": [{"uid": "u", "data": 1}], "kind": "List", "rest": [2, 3]});
        let list = Variable::from(value.clone());
        assert_eq!(
            converted(&list, "list.items.map(item, item.uid) == ['u']"),
            json!({"items": [{"uid": "u"}]})
        );
        assert_eq!(converted(&list, "list.rest.size() == 2"), json!({"rest": [2, 3]}));
        assert_eq!(converted(&list, "has(list.rest)"), json!({"rest": [null, null]}));
        assert_eq!(
            converted(&list, "'kind' in list"),
            json!({"items": null, "kind": null, "rest": null})
        );
        assert_eq!(
            converted(&list, "list['it' + 'ems'][0].uid == 'u'"),
            json!({"items": [{"uid": "u"}], "kind": "List", "rest": [2, 3]})
        );
        assert_eq!(converted(&list, "list == {}"), value);
    }

    #[test]
    fn only_the_parts_that_an_expression_looks_at_are_computed() {
        let item = |status: u16| {
            let unread = Variable::deferred(|| panic!("no expression reads it"));
            let status = Variable::deferred(move || json!(status).into());
            let body = Arc::new(json!({"kind": "Pod", "spec": {}}));
            let members = [("text", unread), ("status", status), ("body", body.into())];
            Variable::object(members.map(|(name, value)| (name.to_owned(), value)).into())
        };
        let list = Variable::list(vec![item(200), item(404)]);
        assert_eq!(converted(&list, "list.size() == 2"), json!([{}, {}]));
        assert_eq!(
            converted(&list, "list.map(item, item.status) == []"),
            json!([{"status": 200}, {"status": 404}])
        );
        assert_eq!(
            converted(&list, "list[0].body.kind == 'Pod' && list[1].body == {}"),
            json!([
                {"body": {"kind": "Pod", "spec": {}}}, {"body": {"kind": "Pod", "spec": {}}}
            ])
        );
    }
}
