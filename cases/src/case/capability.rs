//! Names and summaries of capabilities. The doc comments of the type are the summaries.

use serde_json::Value;

use super::Capability;

impl Capability {
    /// Returns all capabilities in alphabetical order, with their names and summaries.
    pub fn all() -> Vec<(Self, String, String)> {
        let schema = schemars::schema_for!(Self);
        let variants = schema.get("oneOf").and_then(Value::as_array);
        let documented = |variant: &Value| {
            let name = variant.get("const")?.clone();
            let summary = variant.get("description")?.as_str()?.replace('\n', " ");
            let text = name.as_str()?.to_owned();
            Some((serde_json::from_value(name).ok()?, text, summary))
        };
        variants.into_iter().flatten().filter_map(documented).collect()
    }

    /// Returns the capability with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_has_a_name_and_a_summary() {
        let all = Capability::all();
        let last = Capability::WebsocketWatches;
        assert_eq!(all.len(), last as usize + 1);
        for (capability, name, summary) in all {
            assert_eq!(Capability::from_name(&name), Some(capability));
            assert!(summary.ends_with('.') && !summary.contains('\n'), "{name}: {summary}");
        }
        assert_eq!(Capability::from_name("watch"), None);
    }
}
