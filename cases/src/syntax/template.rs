//! `${...}` in text.

use std::ops::Range;

use crate::template::Part;

/// The parts of a text, and the places of its variables in it.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) parts: Vec<Part>,
    /// Name and bytes of each variable.
    pub(crate) variables: Vec<(String, Range<usize>)>,
    /// What is wrong.
    pub(crate) errors: Vec<(String, Range<usize>)>,
}

/// More than any server's limit on a body that a case has to exceed.
const MAX_FILL: usize = 16 << 20;

/// Takes a text apart.
pub(crate) fn parse(text: &str) -> Parsed {
    let mut out = Parsed::default();
    let mut literal_from = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        let Some(len) = text[start..].find('}') else {
            out.errors.push(("`${` is never closed by `}`".into(), start..text.len()));
            break;
        };
        let end = start + len + 1;
        match part(&text[start + 2..end - 1]) {
            Ok(part) => {
                if literal_from < start {
                    out.parts.push(Part::Text(text[literal_from..start].to_owned()));
                }
                if let Part::Variable(name) = &part {
                    out.variables.push((name.clone(), start..end));
                }
                out.parts.push(part);
            }
            Err(message) => out.errors.push((message, start..end)),
        }
        literal_from = end;
        at = end;
    }
    if literal_from < text.len() {
        out.parts.push(Part::Text(text[literal_from..].to_owned()));
    }
    out
}

fn part(name: &str) -> Result<Part, String> {
    if let Some((kind @ ("fill" | "name"), count)) = name.split_once(':') {
        return match count.parse() {
            Ok(count) if count <= MAX_FILL => {
                Ok(if kind == "fill" { Part::Fill(count) } else { Part::Name(count) })
            }
            Ok(_) => Err(format!("`${{{kind}:{count}}}` is longer than {MAX_FILL}")),
            Err(_) => Err(format!("`${{{kind}:N}}` takes a number, found `{count}`")),
        };
    }
    let well_formed = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if well_formed {
        Ok(Part::Variable(name.to_owned()))
    } else {
        Err(format!("`{name}` is not the name of a variable: letters, digits, `_` and `.`"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    fn variable(name: &str) -> Part {
        Part::Variable(name.into())
    }

    #[rstest]
    #[case::empty("", vec![])]
    #[case::plain("a$b{}", vec![text("a$b{}")])]
    #[case::alone("${x}", vec![variable("x")])]
    #[case::mixed(
        "a-${x}${subject.kind}/z",
        vec![text("a-"), variable("x"), variable("subject.kind"), text("/z")]
    )]
    #[case::fill("${fill:3}", vec![Part::Fill(3)])]
    #[case::name("${name:63}", vec![Part::Name(63)])]
    fn text_is_taken_apart(#[case] input: &str, #[case] parts: Vec<Part>) {
        assert_eq!(parse(input).parts, parts);
    }

    #[rstest]
    #[case::open("a${x")]
    #[case::empty("${}")]
    #[case::expression("${a + b}")]
    #[case::too_long("${fill:99999999}")]
    #[case::no_number("${fill:many}")]
    #[case::no_length("${name:}")]
    #[case::of_another("${ns:63}")]
    fn malformed_variables_are_errors(#[case] input: &str) {
        assert_eq!(parse(input).errors.len(), 1);
    }
}
