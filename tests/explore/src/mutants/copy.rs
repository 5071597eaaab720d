//! The copy of the repository in which files are changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The files of a repository that Git knows or does not ignore, relative to its root.
pub(super) fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let names = String::from_utf8(output.stdout).context("a file has a name that is not UTF-8")?;
    // A file that was removed is still known to Git.
    Ok(names.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// Makes `copy` have these files of `root`, and no others. A file that is the same is not
/// written, so that Cargo does not build it again. Changes that an interrupted run has left are undone.
pub(super) fn update(root: &Path, files: &BTreeSet<PathBuf>, copy: &Path) -> Result<()> {
    fs::create_dir_all(copy).with_context(|| copy.display().to_string())?;
    remove_others(copy, Path::new(""), files)?;
    for file in files {
        let (from, to) = (root.join(file), copy.join(file));
        let contents = fs::read(&from).with_context(|| from.display().to_string())?;
        if fs::read(&to).is_ok_and(|present| present == contents) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::copy(&from, &to).with_context(|| to.display().to_string())?; // with its permissions
    }
    Ok(())
}

/// Removes the files of a folder of the copy that are not among these.
fn remove_others(copy: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(copy.join(folder)).with_context(|| copy.join(folder).display().to_string())? {
        let entry = entry?;
        let file = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(copy, &file, files)?;
        } else if !files.contains(&file) {
            fs::remove_file(entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_follows_its_original_and_same_files_are_not_written() {
        let (root, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, copy) = (root.path(), &copy.path().join("tree"));
        let write = |folder: &Path, file: &str, text: &str| {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), text).unwrap();
        };
        for file in ["a.rs", "deep/b.rs", "deep/c.rs"] {
            write(root, file, file);
        }
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        update(root, &files(&["a.rs", "deep/b.rs", "deep/c.rs"]), copy).unwrap();
        assert_eq!(fs::read_to_string(copy.join("deep/b.rs")).unwrap(), "deep/b.rs");
        let time = || fs::metadata(copy.join("a.rs")).unwrap().modified().unwrap();
        let before = time();
        write(copy, "deep/b.rs", "mutated");
        write(copy, "deep/new.rs", "left over");
        update(root, &files(&["a.rs", "deep/b.rs"]), copy).unwrap();
        assert_eq!(fs::read_to_string(copy.join("deep/b.rs")).unwrap(), "deep/b.rs");
        assert!(!copy.join("deep/c.rs").exists() && !copy.join("deep/new.rs").exists());
        assert_eq!(time(), before);
    }

    #[test]
    fn the_files_of_this_repository_are_listed() {
        let files = files(&xtask::workspace::root()).unwrap();
        assert!(files.contains(Path::new("tests/explore/src/mutants/copy.rs")));
        assert!(!files.iter().any(|file| file.starts_with("target")));
    }
}
