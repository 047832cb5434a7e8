//! The packages for crates.io: their metadata, their files and the versions of their dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::Value;

use crate::crates::metadata;
use crate::files::rust_files;
use crate::root;

/// The crates that users do not need.
const UNPUBLISHED: [&str; 1] = ["kubeproof-generator"];

/// The categories of crates.io that the crates use. crates.io drops unknown ones.
const CATEGORIES: [&str; 9] = [
    "command-line-utilities",
    "data-structures",
    "database-implementations",
    "development-tools::testing",
    "encoding",
    "network-programming",
    "parser-implementations",
    "web-programming::http-server",
    "web-programming::websocket",
];

/// Maximum size of a package before compression, in bytes.
const PACKAGE_BYTES: u64 = 3 << 20;

/// The headings of a README.
const HEADINGS: [&str; 3] = ["\n## Example\n", "\n## Related crates\n", "\n## Stability\n"];

#[test]
fn only_the_generator_is_not_published() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let unpublished = packages.filter(|package| !is_published(package)).map(name);
    assert_eq!(unpublished.collect::<Vec<_>>(), UNPUBLISHED);
}

#[test]
fn published_crates_have_complete_metadata() {
    let wrong = published().into_iter().flat_map(|package| {
        let name = name(&package);
        let mut wrong = mistakes(&package);
        if package["documentation"] != format!("https://docs.rs/{name}") {
            wrong.push("expected the documentation on docs.rs".to_owned());
        }
        let readme = fs::read_to_string(directory(&package).join("README.md")).unwrap_or_default();
        let start = format!("# {name}\n");
        let parts = std::iter::once(start.as_str()).chain(HEADINGS);
        let missing = parts.filter(|part| !readme.contains(part));
        wrong.extend(missing.map(|part| format!("README.md lacks {:?}", part.trim())));
        wrong.into_iter().map(|mistake| format!("{name}: {mistake}")).collect::<Vec<_>>()
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

/// crates.io needs a version for each dependency of a package. Crates of one release belong
/// together. A dependency without a version is left out of the package, if only tests use it.
#[test]
fn crates_depend_on_the_exact_version_of_each_other() {
    let packages = published();
    let versions: Vec<(&str, String)> = packages
        .iter()
        .map(|package| (name(package), format!("={}", text(package, "version"))))
        .collect();
    for package in &packages {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let is_left_out = dependency["kind"] == "dev" && dependency["req"] == "*";
            if dependency["path"].is_null() || is_left_out {
                continue;
            }
            let used = (name(dependency), text(dependency, "req").to_owned());
            assert!(versions.contains(&used), "{} depends on {used:?}", name(package));
        }
    }
}

/// The checks use the toolchain of this file, so each of them tests the oldest supported version.
#[test]
fn the_oldest_supported_rust_is_the_toolchain_of_the_checks() {
    let toolchain = fs::read_to_string(root().join("rust-toolchain.toml")).expect("a file");
    for package in published() {
        let channel = format!("channel = \"{}.0\"", text(&package, "rust_version"));
        assert!(toolchain.contains(&channel), "{}: expected {channel} in\n{toolchain}", {
            name(&package)
        });
    }
}

#[test]
fn packages_contain_the_files_that_their_code_includes_and_no_tests() {
    for package in published() {
        let (name, directory) = (name(&package), directory(&package));
        let files = files_of(name);
        for required in ["README.md", "LICENSE", "src/lib.rs"] {
            assert!(files.contains(required), "{name} lacks {required}");
        }
        let tests = files.iter().find(|file| {
            ["tests/", "benches/", "fuzz/"].iter().any(|prefix| file.starts_with(prefix))
        });
        assert_eq!(tests, None, "{name}");
        for file in rust_files(&directory.join("src")) {
            let code = fs::read_to_string(&file).expect("a source file");
            for included in included_files(&code) {
                let path = file.parent().expect("a directory").join(&included);
                let path = path.canonicalize().unwrap_or_else(|error| panic!("{path:?}: {error}"));
                let inside = path.strip_prefix(&directory).ok().and_then(Path::to_str);
                let inside = inside.unwrap_or_else(|| panic!("{path:?} is not in {name}"));
                assert!(files.contains(inside), "{name} lacks {inside}");
            }
        }
        // Macros compute the names of these files.
        for folder in ["data", "templates"] {
            let count = crate::files::files(&directory, &["yaml", "txt", "types", "json", "html"])
                .iter()
                .filter(|file| file.starts_with(directory.join(folder)))
                .filter(|file| !files.contains(relative(file, &directory)))
                .count();
            assert_eq!(count, 0, "{name} lacks files of {folder}");
        }
        let sizes = files.iter().filter_map(|file| fs::metadata(directory.join(file)).ok());
        let size: u64 = sizes.map(|file| file.len()).sum();
        assert!(size <= PACKAGE_BYTES, "{name} has {size} bytes");
    }
}

#[rstest]
#[case(r#"include_str!("../README.md")"#, &["../README.md"])]
#[case("include_str!(concat!(\"a\", $b))", &[])]
#[case(r#"a(include_bytes!("x"), include_str!("y"))"#, &["x", "y"])]
fn included_files_are_found(#[case] code: &str, #[case] expected: &[&str]) {
    assert_eq!(included_files(code), expected);
}

/// Returns the names of the files that the code includes, if they are literals.
fn included_files(code: &str) -> Vec<String> {
    let calls = code.split("include_").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix("str!(").or_else(|| rest.strip_prefix("bytes!("))?;
        Some(rest.trim_start().strip_prefix('"')?.split('"').next()?.to_owned())
    });
    calls.collect()
}

/// Returns what is missing in the metadata of a package.
fn mistakes(package: &Value) -> Vec<String> {
    let mut mistakes = Vec::new();
    for field in ["description", "license", "repository", "homepage", "readme", "rust_version"] {
        if package[field].as_str().is_none_or(str::is_empty) {
            mistakes.push(format!("{field} is missing"));
        }
    }
    let keywords = package["keywords"].as_array().expect("keywords");
    if !(1..=5).contains(&keywords.len()) {
        mistakes.push(format!("expected 1 to 5 keywords, got {}", keywords.len()));
    }
    let categories = package["categories"].as_array().expect("categories");
    if categories.is_empty() || categories.len() > 5 {
        mistakes.push(format!("expected 1 to 5 categories, got {}", categories.len()));
    }
    let unknown = categories.iter().filter_map(Value::as_str);
    let unknown = unknown.filter(|category| !CATEGORIES.contains(category));
    mistakes.extend(unknown.map(|category| format!("{category} is not a category")));
    mistakes
}

/// Returns the metadata of the crates that are published.
fn published() -> Vec<Value> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages.filter(|package| is_published(package)).cloned().collect()
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// Returns the files of a package, relative to its directory.
fn files_of(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--list", "--offline", "--allow-dirty", "--package", package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn name(value: &Value) -> &str {
    text(value, "name")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("expected the field {field} in {value}"))
}

fn directory(package: &Value) -> std::path::PathBuf {
    let manifest = Path::new(text(package, "manifest_path"));
    manifest.parent().expect("a directory").canonicalize().expect("a directory")
}

fn relative<'a>(file: &'a Path, directory: &Path) -> &'a str {
    file.strip_prefix(directory).ok().and_then(Path::to_str).expect("a file of the crate")
}
