//! Expansion of words: parameters, command substitution, arithmetic and field splitting.

use super::arithmetic;
use super::run::{Shell, Stop};
use super::syntax::{Form, List, Part, Word};
use crate::runtime::io::Output;

/// Collects the fields of a word.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    /// The current field. None between fields.
    open: Option<String>,
}

impl Fields {
    fn push(&mut self, text: &str, quoted: bool) {
        if quoted {
            self.open.get_or_insert_default().push_str(text);
            return;
        }
        for (index, piece) in text.split([' ', '\t', '\n']).enumerate() {
            if index > 0 {
                self.done.extend(self.open.take());
            }
            if !piece.is_empty() {
                self.open.get_or_insert_default().push_str(piece);
            }
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.done.extend(self.open);
        self.done
    }
}

impl Shell {
    /// Expands words to fields.
    pub(super) async fn fields(&mut self, words: &[Word]) -> Result<Vec<String>, Stop> {
        let mut all = Vec::new();
        for word in words {
            let mut fields = Fields::default();
            for part in &word.0 {
                match part {
                    // Only expansions are split. Literal text is not.
                    Part::Text { text, .. } => fields.push(text, true),
                    Part::Parameter { name, form: Form::Plain, quoted: true } if name == "@" => {
                        for (index, argument) in self.positional.clone().into_iter().enumerate() {
                            if index > 0 {
                                fields.done.extend(fields.open.take());
                            }
                            fields.push(&argument, true);
                        }
                    }
                    Part::Parameter { quoted, .. }
                    | Part::Output { quoted, .. }
                    | Part::Number { quoted, .. } => {
                        let value = Box::pin(self.value(part)).await?;
                        fields.push(&value, *quoted);
                    }
                }
            }
            all.extend(fields.finish());
        }
        Ok(all)
    }

    /// Expands a word to one text without splitting.
    pub(super) async fn text(&mut self, word: &Word) -> Result<String, Stop> {
        let mut text = String::new();
        for part in &word.0 {
            text.push_str(&Box::pin(self.value(part)).await?);
        }
        Ok(text)
    }

    async fn value(&mut self, part: &Part) -> Result<String, Stop> {
        Ok(match part {
            Part::Text { text, .. } => text.clone(),
            Part::Parameter { name, form, .. } => {
                let value = self.parameter(name);
                match form {
                    Form::Plain => value.unwrap_or_default(),
                    Form::Length => value.unwrap_or_default().chars().count().to_string(),
                    Form::Without { word, end } => {
                        let (value, cut) = (value.unwrap_or_default(), self.text(word).await?);
                        let rest = if *end {
                            value.strip_suffix(&*cut)
                        } else {
                            value.strip_prefix(&*cut)
                        };
                        rest.map_or_else(|| value.clone(), str::to_owned)
                    }
                    Form::Default { word, also_empty } => match value {
                        Some(value) if !(*also_empty && value.is_empty()) => value,
                        _ => self.text(word).await?,
                    },
                }
            }
            Part::Output { list, .. } => self.output(list).await?,
            Part::Number { expression, .. } => {
                let text = self.text(expression).await?;
                let Some(value) = arithmetic::evaluate(&text, &self.variables) else {
                    self.complain(&format!("arithmetic syntax error: {text}")).await?;
                    return Err(Stop::Exit(2));
                };
                value.to_string()
            }
        })
    }

    fn parameter(&self, name: &str) -> Option<String> {
        match name {
            "?" => Some(self.status.to_string()),
            "#" => Some(self.positional.len().to_string()),
            "@" | "*" => Some(self.positional.join(" ")),
            "$" => Some("1".to_owned()),
            "0" => Some(self.name.clone()),
            name => match name.parse::<usize>() {
                Ok(number) => self.positional.get(number - 1).cloned(),
                Err(_) => self.variables.get(name).cloned(),
            },
        }
    }

    /// Returns the output of commands without trailing newlines.
    async fn output(&mut self, list: &List) -> Result<String, Stop> {
        let memory = Output::memory();
        let mut inner = self.clone();
        inner.program.io.stdout = memory.clone();
        self.status = inner.subshell(list).await?;
        let bytes = memory.taken().await;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }
}
