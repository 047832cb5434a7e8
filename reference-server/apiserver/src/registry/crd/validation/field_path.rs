//! Paths to fields of a schema: `.spec.size` and `.spec['a.b']`.

use serde_json::Value;

/// Returns the names in a path, and the schema of its field in `document`.
///
/// # Errors
///
/// Why the path does not name a field, in the words of kube-apiserver.
pub(super) fn resolve<'d>(
    path: &str,
    document: &'d Value,
    allows_brackets: bool,
) -> Result<(Vec<String>, &'d Value), String> {
    let mut names = Vec::new();
    let mut schema = document;
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let end = || "unexpected end of JSON path".to_owned();
        let name = match token {
            "[" if !allows_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let name = unquoted(quoted)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => name,
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        schema = child(schema, &name).ok_or("does not refer to a valid field")?;
        names.push(name);
    }
    Ok((names, schema))
}

fn child<'d>(schema: &'d Value, name: &str) -> Option<&'d Value> {
    match schema["properties"].as_object() {
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties").filter(|values| values.is_object()),
    }
}

fn unquoted(token: &str) -> Result<String, String> {
    let quoted = token.len() >= 2 && token.starts_with('\'') && token.ends_with('\'');
    let inside = if quoted { token.get(1..token.len() - 1) } else { None };
    let inside = inside.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    Ok(inside.replace("\\'", "'").replace("\\\\", "\\"))
}

/// Splits a path at `.`, `[` and `]`, outside of quotes.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let first = self.0.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => self.quoted(),
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

impl Tokens<'_> {
    /// Returns the end of the quoted text at the start.
    fn quoted(&self) -> usize {
        let mut is_escaped = false;
        for (at, letter) in self.0.char_indices().skip(1) {
            if letter == '\'' && !is_escaped {
                return at + 1;
            }
            is_escaped = letter == '\\';
        }
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(".a.b", Ok("a b"))]
    #[case(".a['b']", Ok("a b"))]
    #[case("['a'].b", Ok("a b"))]
    #[case(".a['x.y']", Ok("a x.y"))]
    #[case(r".a['it\'s']", Ok("a it's"))]
    #[case(".map.any", Ok("map any"))]
    #[case(".c", Err("does not refer to a valid field"))]
    #[case(".a.b.c", Err("does not refer to a valid field"))]
    #[case(".a.", Err("unexpected end of JSON path"))]
    #[case("a", Err("expected [ or . but got: a"))]
    #[case(".a[b]", Err("expected single quoted string but got b"))]
    #[case(".a['b'.", Err("expected ] but got ."))]
    #[case(".a['b", Err("expected single quoted string but got 'b"))]
    fn paths(#[case] path: &str, #[case] expected: Result<&str, &str>) {
        let text = json!({"type": "string"});
        let a = json!({"properties": {"b": text, "x.y": text, "it's": text}});
        let document = json!({"properties": {"a": a, "map": {"additionalProperties": text}}});
        let found = resolve(path, &document, true).map(|(names, _)| names.join(" "));
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }
}
