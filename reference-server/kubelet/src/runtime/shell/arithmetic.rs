//! `$((…))`: integers, variables, and the C operators that scripts use.

use std::collections::BTreeMap;

/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 50;

/// Binary operators by increasing precedence. Each line has one precedence.
const LEVELS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// Evaluates an expression. Returns none for an invalid one.
pub(super) fn evaluate(text: &str, variables: &BTreeMap<String, String>) -> Option<i64> {
    let mut parser = Parser { rest: text, variables, depth: 0 };
    let value = parser.binary(0)?;
    parser.rest.trim_start().is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    variables: &'a BTreeMap<String, String>,
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        match self.rest.trim_start().strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().copied().find(|operator| self.take(operator)) {
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = if self.take("-") {
            self.unary()?.wrapping_neg()
        } else if self.take("!") {
            i64::from(self.unary()? == 0)
        } else if self.take("(") {
            let value = self.binary(0)?;
            if !self.take(")") {
                return None;
            }
            value
        } else {
            self.operand()?
        };
        self.depth -= 1;
        Some(value)
    }

    fn operand(&mut self) -> Option<i64> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok();
        }
        if word.is_empty() {
            return None;
        }
        // Unset and empty variables count as 0.
        let value = self.variables.get(word).map_or("", |value| value.trim());
        if value.is_empty() { Some(0) } else { value.parse().ok() }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1 + 2 * 3", Some(7))]
    #[case("(1+2)*3 - -1", Some(10))]
    #[case("i % 4 == 1 && !0", Some(1))]
    #[case("unset", Some(0))]
    #[case("1 / 0", None)]
    #[case("1 +", None)]
    fn expressions(#[case] text: &str, #[case] value: Option<i64>) {
        assert_eq!(evaluate(text, &BTreeMap::from([("i".to_owned(), "5".to_owned())])), value);
    }
}
