//! Parses the blocks of a Markdown page.

/// A command to run, or a file to write.
#[derive(Debug)]
pub(crate) enum Item {
    Command { line: usize, command: String, exit_code: i32, output: Vec<String> },
    File { path: String, content: String },
}

/// A fenced block.
struct Block<'a> {
    /// The line of the fence.
    line: usize,
    info: &'a str,
    /// Whether the comment `untested` precedes the block.
    is_exempt: bool,
    lines: Vec<&'a str>,
}

/// Returns the commands and files of a page in their order.
pub(crate) fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    for block in blocks(text)? {
        let file = block.info.split_whitespace().find_map(|word| word.strip_prefix("file="));
        if block.is_exempt {
            continue;
        }
        if let Some(path) = file {
            let content = block.lines.join("\n") + "\n";
            items.push(Item::File { path: path.to_owned(), content });
        } else if block.info == "console" {
            items.extend(commands(&block)?);
        } else if block.lines.iter().any(|line| is_command(line)) {
            let line = block.line;
            return Err(format!(
                "line {line}: expected a `console` block or an `untested` comment"
            ));
        }
    }
    Ok(items)
}

fn is_command(line: &str) -> bool {
    line.trim_start_matches("$ ").starts_with("kubeproof ")
}

fn blocks(text: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Block<'_>)> = None;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let fence = &line[..line.len() - line.trim_start_matches('`').len()];
        match open.take() {
            Some((opening, block)) if line == opening => blocks.push(block),
            Some((opening, mut block)) => {
                block.lines.push(line);
                open = Some((opening, block));
            }
            None if fence.len() >= 3 => {
                let is_exempt = before.starts_with("<!-- untested: ");
                let (line, info) = (index + 1, line[fence.len()..].trim());
                open = Some((fence, Block { line, info, is_exempt, lines: Vec::new() }));
            }
            None => {}
        }
        before = line;
    }
    match open {
        None => Ok(blocks),
        Some((_, block)) => Err(format!("line {}: the block has no end", block.line)),
    }
}

fn commands(block: &Block<'_>) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = Vec::new();
    let mut lines = block.lines.iter().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = block.line + 1 + index;
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while let Some(continued) = command.strip_suffix('\\') {
                let (_, next) =
                    lines.next().ok_or(format!("line {number}: expected a next line"))?;
                command = format!("{continued}{}", next.trim_start());
            }
            items.push(Item::Command { line: number, command, exit_code: 0, output: Vec::new() });
            continue;
        }
        let Some(Item::Command { exit_code, output, .. }) = items.last_mut() else {
            return Err(format!("line {number}: expected a command that starts with `$ `"));
        };
        match line.strip_prefix("? ") {
            Some(code) if output.is_empty() => {
                *exit_code =
                    code.parse().map_err(|_| format!("line {number}: expected a number"))?;
            }
            _ => output.push((*line).to_owned()),
        }
    }
    Ok(items)
}
