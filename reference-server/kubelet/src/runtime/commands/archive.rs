//! `tar` with the options of `kubectl cp`, through the standard streams.

use std::io::Read as _;

use bytes::BytesMut;
use tar::{Archive, Builder, EntryType, Header};

use super::{Outcome, usage};
use crate::runtime::files::{CAPACITY, FileError, Files, Kind, Node, resolve};
use crate::runtime::machine::Program;

#[derive(Default)]
struct Job {
    create: bool,
    extract: bool,
    directory: Option<String>,
    paths: Vec<String>,
}

impl Job {
    /// Parses `cf - PATH..` and `-xmf - -C DIR`. Returns the unsupported argument as error.
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut job = Self::default();
        let mut args = args.iter().enumerate();
        while let Some((index, arg)) = args.next() {
            match arg.as_str() {
                "-C" => job.directory = args.next().map(|(_, directory)| directory.clone()),
                // All files have one owner, and the permissions of the archive.
                "--no-same-owner" | "--no-same-permissions" | "--" => {}
                letters if index == 0 || (letters.starts_with('-') && letters.len() > 1) => {
                    for letter in letters.trim_start_matches('-').chars() {
                        match letter {
                            'c' => job.create = true,
                            'x' => job.extract = true,
                            'm' | 'o' | 'p' => {}
                            'f' if args.next().is_some_and(|(_, file)| file == "-") => {}
                            _ => return Err(arg.clone()),
                        }
                    }
                }
                path => job.paths.push(path.to_owned()),
            }
        }
        if job.create == job.extract {
            Err("either c or x is required".to_owned())
        } else {
            Ok(job)
        }
    }
}

pub(super) async fn tar(program: Program) -> Outcome {
    let job = match Job::parse(program.arguments()) {
        Ok(job) => job,
        Err(arg) => return usage(&program, &arg).await,
    };
    let from = resolve(&program.directory, job.directory.as_deref().unwrap_or("."));
    let files = &program.machine.files;
    if !files.is_directory(&from) {
        program
            .complain(&format!("can't change directory to '{from}': No such file or directory"))
            .await?;
        return Ok(1);
    }
    if job.extract {
        // A larger archive would not fit into the file system either.
        let Some(archive) = program.io.stdin.all(CAPACITY * 2).await else {
            program.complain(&FileError::Full.to_string()).await?;
            return Ok(1);
        };
        return match extract(&archive, files, &from) {
            Ok(()) => Ok(0),
            Err(error) => {
                program.complain(&error).await?;
                Ok(1)
            }
        };
    }
    for path in &job.paths {
        if files.get(&resolve(&from, path)).is_none() {
            program.complain(&format!("{path}: No such file or directory")).await?;
            return Ok(1);
        }
    }
    match create(files, &from, &job.paths) {
        Ok(archive) => {
            for block in archive.chunks(BLOCK) {
                program.io.stdout.write(block).await?;
            }
            Ok(0)
        }
        Err(error) => {
            program.complain(&error.to_string()).await?;
            Ok(1)
        }
    }
}

const BLOCK: usize = 16 * 1024;

/// Creates an archive of these paths. Names lose their leading slash, as with GNU tar.
fn create(files: &Files, from: &str, paths: &[String]) -> std::io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for path in paths {
        let root = resolve(from, path);
        for absolute in std::iter::once(root.clone()).chain(files.below(&root)) {
            let Some(node) = files.get(&absolute) else { continue };
            let name = format!("{}{}", path.trim_end_matches('/'), &absolute[root.len()..]);
            let name = name.trim_start_matches('/');
            let mut header = Header::new_gnu();
            header.set_mode(node.mode);
            header.set_mtime(u64::try_from(node.modified).unwrap_or_default());
            header.set_size(node.len() as u64);
            let directory = node.is_directory();
            header.set_entry_type(if directory {
                EntryType::Directory
            } else {
                EntryType::Regular
            });
            let content = match &node.kind {
                Kind::Directory => &[],
                Kind::File(content) => content.as_ref(),
            };
            let name = if name.is_empty() { "." } else { name };
            builder.append_data(&mut header, name, content)?;
        }
    }
    builder.into_inner()
}

/// Extracts an archive below a directory. Names cannot lead out of it.
fn extract(archive: &[u8], files: &Files, to: &str) -> Result<(), String> {
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let name = entry.path().map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        let path = resolve(to, &format!("./{}", resolve("/", &name)));
        let named = |error: FileError| format!("{name}: {error}");
        match entry.header().entry_type() {
            EntryType::Directory => files.make_directories(&path).map_err(named)?,
            EntryType::Regular | EntryType::Continuous => {
                if let Some((parent, _)) =
                    path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty())
                {
                    files.make_directories(parent).map_err(named)?;
                }
                let mut content = Vec::new();
                entry.read_to_end(&mut content).map_err(|error| error.to_string())?;
                let mut node = Node::file(BytesMut::from(content.as_slice()));
                node.mode = entry.header().mode().unwrap_or(node.mode);
                files.put(&path, node).map_err(named)?;
            }
            other => return Err(format!("{name}: entries of type {other:?} are not known here")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_survives_the_way_through_an_archive() {
        let files = Files::new();
        files.make_directories("/tmp/a/b").unwrap();
        files.put("/tmp/a/b/f", Node::file(BytesMut::from(&b"x"[..]))).unwrap();
        let archive = create(&files, "/tmp", &["a".to_owned()]).unwrap();
        extract(&archive, &files, "/home").unwrap();
        assert_eq!(files.read("/home/a/b/f").unwrap(), "x");
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o600);
        // The library rejects such a name, so the test writes the bytes.
        header.as_old_mut().name[..8].copy_from_slice(b"../../ab");
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        let files = Files::new();
        extract(&builder.into_inner().unwrap(), &files, "/tmp").unwrap();
        assert_eq!(files.read("/tmp/ab").unwrap(), "x");
    }
}
