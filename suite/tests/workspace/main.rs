//! The structure of the workspace: dependencies between crates, imports between modules, public
//! modules, the place of faults, the length of lines, and the packages for crates.io.

mod crates;
mod files;
mod imports;
mod lines;
mod packages;

use std::fs;
use std::path::{Path, PathBuf};

use rstest::rstest;

use self::crates::{Crate, workspace};
use self::files::rust_files;
use self::imports::{circle, module_graph, without_comments};

/// Maximum public modules of a crate.
const PUBLIC_MODULES: usize = 8;

/// Maximum top-level modules of a crate of the reference server.
const MODULES: usize = 16;

/// The crates that each crate may depend on, by directory. Tests may use any crate.
const DEPENDENCIES: [(&str, &[&str]); 14] = [
    ("cases", &[]),
    ("harness", &["cases"]),
    ("reports", &["cases", "harness"]),
    ("suite", &["cases", "harness", "reports", "reference-server", "reference-server/faults"]),
    ("reference-server/apimachinery", &[]),
    ("reference-server/api", &["reference-server/apimachinery"]),
    ("reference-server/generator", &["reference-server/apimachinery"]),
    ("reference-server/storage", &[]),
    ("reference-server/streaming", &[]),
    (
        "reference-server/apiserver",
        &[
            "reference-server/api",
            "reference-server/apimachinery",
            "reference-server/storage",
            "reference-server/streaming",
        ],
    ),
    (
        "reference-server/controllers",
        &["reference-server/apimachinery", "reference-server/apiserver"],
    ),
    ("reference-server/kubelet", &["reference-server/apimachinery", "reference-server/streaming"]),
    ("reference-server/faults", &["reference-server/apimachinery", "reference-server/streaming"]),
    (
        "reference-server",
        &[
            "reference-server/api",
            "reference-server/apimachinery",
            "reference-server/apiserver",
            "reference-server/controllers",
            "reference-server/faults",
            "reference-server/kubelet",
            "reference-server/streaming",
        ],
    ),
];

#[test]
fn crates_depend_only_on_the_crates_of_the_table() {
    let mut wrong = Vec::new();
    for Crate { directory, dependencies } in workspace() {
        let row = DEPENDENCIES.iter().find(|(name, _)| *name == directory);
        let Some((_, allowed)) = row else {
            wrong.push(format!("{directory} is not in the table"));
            continue;
        };
        let others =
            dependencies.iter().filter(|dependency| !allowed.contains(&dependency.as_str()));
        wrong.extend(others.map(|dependency| format!("{directory} depends on {dependency}")));
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    let crates = workspace().into_iter().map(|one| one.directory);
    let circles = crates.filter_map(|directory| {
        let circle = circle(&module_graph(&root().join(&directory).join("src")))?;
        Some(format!("{directory}: {}", circle.join(" -> ")))
    });
    assert_eq!(circles.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn crates_of_the_reference_server_have_few_modules() {
    let crates = workspace().into_iter().map(|one| one.directory);
    let crates = crates.filter(|directory| directory.starts_with("reference-server"));
    let many = crates.filter_map(|directory| {
        let count = module_graph(&root().join(&directory).join("src")).len();
        (count > MODULES).then(|| format!("{directory} has {count} modules, expected {MODULES}"))
    });
    assert_eq!(many.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn crates_have_few_public_modules() {
    let crates = workspace().into_iter().map(|one| one.directory);
    let many = crates.filter_map(|directory| {
        let library = read(&root().join(&directory).join("src/lib.rs"));
        let count = public_modules(&library);
        (count > PUBLIC_MODULES)
            .then(|| format!("{directory} has {count} public modules, expected {PUBLIC_MODULES}"))
    });
    assert_eq!(many.collect::<Vec<_>>(), [""; 0]);
}

/// The crate `faults` defines the faults. One file of the crate `reference-server` sets the policy
/// values of the server from them.
#[test]
fn faults_are_used_in_one_place_outside_of_their_crate() {
    let server = root().join("reference-server");
    let crates = workspace().into_iter().map(|one| one.directory);
    let others = crates.filter(|directory| {
        directory.starts_with("reference-server") && directory != "reference-server/faults"
    });
    let files = others.flat_map(|directory| rust_files(&root().join(directory).join("src")));
    let users: Vec<PathBuf> = files.filter(|file| uses_faults(&read(file))).collect();
    let is_allowed = |file: &PathBuf| file.starts_with(server.join("src"));
    assert!(users.len() <= 1 && users.iter().all(is_allowed), "`Fault::` is in {users:#?}");
}

#[rstest]
#[case("if faults.on(Fault::PutCreates) {}", true)]
#[case("// Fault::PutCreates would be wrong here", false)]
#[case("DefaultFault::Other", false)]
fn uses_of_faults_are_found(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(uses_faults(text), expected);
}

#[test]
fn public_modules_are_counted_without_those_for_fuzzing() {
    let library = "mod a;\npub mod b;\n#[cfg(any(test, fuzzing))]\npub mod c;\npub mod d;";
    assert_eq!(public_modules(library), 2);
}

fn public_modules(library: &str) -> usize {
    let lines: Vec<&str> = library.lines().collect();
    let is_public = |(at, line): (usize, &&str)| {
        let is_for_fuzzing = at > 0 && lines[at - 1].contains("fuzzing");
        line.starts_with("pub mod ") && !is_for_fuzzing
    };
    lines.iter().enumerate().filter(|one| is_public(*one)).count()
}

fn uses_faults(text: &str) -> bool {
    let text = without_comments(text);
    text.match_indices("Fault::").any(|(at, _)| {
        !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_')
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
