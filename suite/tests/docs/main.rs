//! Runs the commands of README.md and `docs/*.md`, and compares their output.
//!
//! How to write a page:
//!
//! - A fenced block with the info string `console` contains commands and their output. A command
//!   starts with `$ `, and a line that ends with `\` continues on the next line. `sh` runs the
//!   command in a temporary directory, which all blocks of a page share. `kubeproof` is on the
//!   PATH.
//! - The lines below a command are its output, standard output and standard error together. `[..]`
//!   matches any text within a line. A line `...` matches any number of lines. A command without
//!   output lines may print anything.
//! - A line `? CODE` directly below a command is its exit code. The default is 0.
//! - `$ kubeproof serve --listen 127.0.0.1:8001 .. &` starts a server in the background. The test
//!   waits for its first output line, and stops the server at the end of the page. It replaces the
//!   port with a free one in all commands of the page, and shows the port of the page in the
//!   output.
//! - A command that starts with `kubectl` is skipped if kubectl is not installed. With
//!   `KUBEPROOF_REQUIRE_KUBECTL=1`, as in CI, a missing kubectl fails the test.
//! - A block with an info string such as `yaml file=cases/pods/x.yaml` writes a file.
//! - All other blocks may not contain `kubeproof` commands. The comment `<!-- untested: REASON -->`
//!   on the line before a block exempts it, for example if it needs a real cluster.
//!
//! ````markdown
//! ```console
//! $ kubeproof list --area patch --level must
//! CASE [..]
//! patch/[..]
//! ...
//! $ kubeproof run --only no/such-case
//! ? 4
//! error: [..]
//! ```
//! ````

#![cfg(unix)]

mod page;
mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use self::page::{Item, parse};
use self::session::Session;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let mut trials = self_checks();
    for path in pages()? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        trials.push(Trial::test(name, move || run_page(&fs::read_to_string(&path)?)));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Returns README.md and the pages of `docs/`.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    if let Ok(entries) = fs::read_dir(root.join("docs")) {
        for entry in entries {
            pages.push(entry?.path());
        }
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    Ok(pages)
}

fn run_page(text: &str) -> Result<(), Failed> {
    let items = parse(text)?;
    let mut session = Session::new(&items)?;
    for item in &items {
        session.run(item)?;
    }
    Ok(())
}

/// Checks the test itself with small pages.
fn self_checks() -> Vec<Trial> {
    let block = |text: &str| format!("```console\n{text}\n```\n");
    let server = "$ kubeproof serve --listen 127.0.0.1:8001 --token t &\n\
                  listening on http://127.0.0.1:8001\n\
                  $ kubeproof run --server http://127.0.0.1:8001 --token t \\\n\
                  --only put/missing-object\n\
                  ...\n[..], http://127.0.0.1:8001";
    let pages = [
        (
            "output matches with wildcards",
            block("$ echo a; echo b c; echo d\na\nb [..]\n..."),
            true,
        ),
        ("wrong output fails", block("$ echo a\nb"), false),
        ("missing output fails", block("$ echo a\na\nb"), false),
        ("an expected exit code passes", block("$ exit 3\n? 3"), true),
        ("a wrong exit code fails", block("$ exit 3"), false),
        (
            "files are written",
            format!("```yaml file=a/b.yaml\nc: 1\n```\n{}", block("$ cat a/b.yaml\nc: 1")),
            true,
        ),
        ("a background server runs", block(server), true),
        ("untested commands fail", "```sh\nkubeproof list\n```\n".to_owned(), false),
        (
            "exempt commands pass",
            "<!-- untested: why -->\n```sh\nkubeproof list\n```\n".to_owned(),
            true,
        ),
    ];
    let trials = pages.into_iter().map(|(name, page, passes)| {
        Trial::test(name, move || match (run_page(&page), passes) {
            (Ok(()), true) | (Err(_), false) => Ok(()),
            (Ok(()), false) => Err("the page passes".into()),
            (Err(error), true) => Err(error),
        })
    });
    trials.collect()
}

/// Returns the commands of a page.
fn commands(items: &[Item]) -> impl Iterator<Item = &str> {
    items.iter().filter_map(|item| match item {
        Item::Command { command, .. } => Some(command.as_str()),
        Item::File { .. } => None,
    })
}
