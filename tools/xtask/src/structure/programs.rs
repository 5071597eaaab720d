//! Test programs: few, since each is linked with everything that it tests, and no file of their folder
//! without a program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::metadata::Package;

/// The greatest number of programs that `cargo test --workspace` may build.
pub(crate) const MAX: usize = 73;

/// Returns the number of programs that `cargo test --workspace` builds.
pub(crate) fn count(packages: &[Package]) -> usize {
    packages.iter().map(|package| package.test_programs).sum()
}

/// Returns a complaint for too many programs, and for each file in `tests` that no program has as a module.
pub(crate) fn complaints(packages: &[Package]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let count = count(packages);
    if count > MAX {
        complaints.push(format!("{count} test programs, where {MAX} are allowed: add a module to one that exists"));
    }
    for package in packages {
        for orphan in orphans(&package.path.join("tests"), &package.test_roots)? {
            complaints.push(format!("{} is a module of no test program", orphan.display()));
        }
    }
    Ok(complaints)
}

/// Rust files directly in the folder that are neither roots nor named by `mod` in one of these.
fn orphans(folder: &Path, roots: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let sources = roots.iter().map(read).collect::<Result<Vec<_>>>()?;
    let mut orphans = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let declaration = format!("mod {stem};");
        let is_module = sources.iter().any(|source| source.lines().any(|line| line.trim() == declaration));
        if is_rust && !is_module && !roots.contains(&path) {
            orphans.push(path);
        }
    }
    orphans.sort();
    Ok(orphans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_of_every_test_program_is_found() {
        let folder = std::env::temp_dir().join(format!("spandrel-orphans-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let root = folder.join("main.rs");
        fs::write(&root, "//! mod comment;\nmod named;\n").unwrap();
        for name in ["named.rs", "comment.rs", "notes.txt"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let unused_files = orphans(&folder, &[root]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(unused_files, [folder.join("comment.rs")]);
    }
}
