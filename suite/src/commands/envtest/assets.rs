//! `kubeproof envtest-assets`: writes the directory of `KUBEBUILDER_ASSETS`.
//!
//! The programs are shell scripts with the absolute path of this binary. Users can read them, and
//! add flags to them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::args::high::EnvtestAssets;
use crate::error::Error;
use crate::exit_code::Exit;

/// The second line of the scripts. Other files are not replaced.
const MARK: &str = "# Written by `kubeproof envtest-assets`.";

pub(in crate::commands) fn assets(
    options: &EnvtestAssets,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    let binary = std::env::current_exe().map_err(Error::Runtime)?;
    fs::create_dir_all(&options.dir).map_err(failed(&options.dir))?;
    let dir = options.dir.canonicalize().map_err(failed(&options.dir))?;
    let version = options.version.map(|version| format!("--kubernetes-version={version}"));
    for (program, flag) in [("kube-apiserver", version), ("etcd", None)] {
        let path = dir.join(program);
        if !is_replaceable(&path) {
            return Err(Error::ForeignFile(path));
        }
        write_program(&path, &script(&binary, program, flag.as_deref())).map_err(failed(&path))?;
    }
    let link = dir.join("kubectl");
    match options.kubectl.clone().or_else(|| find_in_path("kubectl")) {
        Some(kubectl) => {
            let kubectl =
                kubectl.canonicalize().map_err(|source| Error::Read { path: kubectl, source })?;
            link_program(&kubectl, &link).map_err(failed(&link))?;
        }
        None => {
            // Most suites do not call kubectl.
            let _ = writeln!(io::stderr(), "note: PATH has no kubectl; --kubectl FILE links one");
        }
    }
    writeln!(out, "export KUBEBUILDER_ASSETS={}", quoted(&dir))?;
    Ok(Exit::CONFORMANT)
}

fn script(binary: &Path, program: &str, flag: Option<&str>) -> String {
    let words = [quoted(binary), program.to_owned()].into_iter().chain(flag.map(str::to_owned));
    let command = words.collect::<Vec<_>>().join(" ");
    format!("#!/bin/sh\n{MARK}\nexec {command} \"$@\"\n")
}

/// Returns a path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// Returns whether the path is free, or a script of an earlier call.
fn is_replaceable(path: &Path) -> bool {
    match fs::read(path) {
        Ok(content) => String::from_utf8_lossy(&content).lines().nth(1) == Some(MARK),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Writes an executable file atomically.
fn write_program(path: &Path, script: &str) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755));
    let mut file = builder.tempfile_in(parent)?;
    file.write_all(script.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Links a program, and replaces an older link. A file stays.
fn link_program(program: &Path, link: &Path) -> io::Result<()> {
    match fs::symlink_metadata(link) {
        Ok(found) if found.is_symlink() => fs::remove_file(link)?,
        Ok(_) => return Ok(()),
        Err(_) => {}
    }
    #[cfg(unix)]
    let linked = std::os::unix::fs::symlink(program, link);
    #[cfg(not(unix))]
    let linked = fs::hard_link(program, link);
    linked
}

fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}
