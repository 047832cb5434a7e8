//! Users with static bearer tokens, and the file of `--token-auth-file` that lists them.

/// A user with a static bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenUser {
    /// The bearer token.
    pub token: String,
    /// The name of the user.
    pub name: String,
    /// The UID of the user.
    pub uid: String,
    /// The groups besides `system:authenticated`.
    pub groups: Vec<String>,
}

/// The reason why a token file is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// A line lacks a column.
    #[error(
        "line {line}: expected token, user name and user UID, found {found} column{}",
        if *found == 1 { "" } else { "s" }
    )]
    Columns {
        /// The line, from 1.
        line: usize,
        /// The number of columns.
        found: usize,
    },
    /// A quote has no end.
    #[error("line {line}: expected a closing quote")]
    Quote {
        /// The line, from 1.
        line: usize,
    },
}

impl TokenUser {
    /// Parses a token file: lines of token, user name, user UID, and optionally the groups in
    /// quotes. Lines without a token are ignored.
    pub fn parse_file(text: &str) -> Result<Vec<Self>, TokenFileError> {
        let mut users = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            if line.trim().is_empty() {
                continue;
            }
            let columns = columns(line).ok_or(TokenFileError::Quote { line: line_number })?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::Columns { line: line_number, found: columns.len() });
            };
            if token.is_empty() {
                continue;
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
            users.push(Self {
                token: token.clone(),
                name: name.clone(),
                uid: uid.clone(),
                groups: groups.map(str::to_owned).collect(),
            });
        }
        Ok(users)
    }
}

/// Splits a line of CSV. Returns none if a quote has no end.
fn columns(line: &str) -> Option<Vec<String>> {
    let mut columns = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let column = columns.last_mut()?;
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                column.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => columns.push(String::new()),
            other => column.push(other),
        }
    }
    (!is_quoted).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(token: &str, name: &str, uid: &str, groups: &[&str]) -> TokenUser {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        TokenUser { token: token.into(), name: name.into(), uid: uid.into(), groups }
    }

    #[test]
    fn a_file_lists_users_with_and_without_groups() {
        let text = "t1,admin,1,\"system:masters, b\"\n\nt2,\"o\"\"neil\",2\nt3,c,3,d\n,nobody,4\n";
        let expected = [
            user("t1", "admin", "1", &["system:masters", "b"]),
            user("t2", "o\"neil", "2", &[]),
            user("t3", "c", "3", &["d"]),
        ];
        assert_eq!(TokenUser::parse_file(text), Ok(expected.to_vec()));
    }

    #[test]
    fn errors_name_the_line() {
        let missing = TokenFileError::Columns { line: 2, found: 2 };
        assert_eq!(TokenUser::parse_file("a,b,c\na,b\n"), Err(missing));
        let one = TokenUser::parse_file("a").unwrap_err().to_string();
        assert!(one.ends_with("found 1 column"), "{one}");
        assert_eq!(TokenUser::parse_file("a,b,\"c"), Err(TokenFileError::Quote { line: 1 }));
    }
}
