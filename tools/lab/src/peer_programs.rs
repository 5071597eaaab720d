//! The programs of other projects' servers: built from the source tree if there is one, so that the measured
//! program is never older than its source.

use std::env;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};

/// The file that Cargo puts into its build folders.
const BUILD_FOLDER_MARK: &str = "CACHEDIR.TAG";

/// The program of the server in `peers/NAME`: from the given folder, or built from the source tree, or from
/// the folder of an earlier build.
///
/// # Errors
/// The reason why there is none, and how to get it, as text.
pub fn find(name: &str, given: Option<&Path>) -> Result<PathBuf, String> {
    find_program(name, name, given)
}

/// A program of the folder `peers/NAME`, as [`find`] does.
///
/// # Errors
/// The reason why there is none, as [`find`] gives it.
pub fn find_program(name: &str, program: &str, given: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(folder) = given {
        let missing = || format!("{} has no {program}", folder.display());
        let program = folder.join(program);
        return if program.is_file() { Ok(program) } else { Err(missing()) };
    }
    let tree = source_tree();
    let out = build_folder(tree.as_deref()).map(|folder| folder.join("peers"));
    if let (Some(tree), Some(out)) = (&tree, &out) {
        make(&tree.join("peers").join(name), out, None)?;
    }
    let program = out.map(|out| out.join(program)).filter(|program| program.is_file());
    program.ok_or_else(|| format!("not built: run this in the source tree, or `make -C peers/{name} OUT=DIR` there"))
}

/// Builds the programs over TAO, from a folder with its sources and their build. Later searches find them.
///
/// # Errors
/// The reason why they cannot be built, as text.
pub fn build_tao(sources: &Path) -> Result<(), String> {
    let tree = source_tree().ok_or("the programs over TAO are built in the source tree only")?;
    let out = build_folder(Some(&tree)).ok_or("no build folder")?.join("peers");
    make(&tree.join("peers/tao"), &out, Some(sources))
}

/// The source tree that contains the current folder, if any.
fn source_tree() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    here.ancestors().find(|folder| folder.join("peers/reactor-c/Makefile").is_file()).map(Path::to_owned)
}

/// The build folder of this program, or else of the tree.
fn build_folder(tree: Option<&Path>) -> Option<PathBuf> {
    let program = env::current_exe().ok();
    let around = program.as_deref().and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    around.filter(|folder| folder.join(BUILD_FOLDER_MARK).is_file()).or_else(|| Some(tree?.join("target")))
}

fn make(folder: &Path, out: &Path, tao_sources: Option<&Path>) -> Result<(), String> {
    let mut command = Command::new("make");
    command.arg("--silent").arg("-C").arg(folder).arg(format!("OUT={}", out.display()));
    if let Some(sources) = tao_sources {
        let sources = path::absolute(sources).map_err(|error| error.to_string())?;
        command.arg(format!("TAO_SOURCES={}", sources.display()));
    }
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot be built: make: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    Err(format!("cannot be built: {}", first_error(&words)))
}

/// The line with the error.
fn first_error(words: &str) -> &str {
    let line = words.lines().find(|line| line.contains("error")).or_else(|| words.lines().next());
    line.map_or("make failed", |line| line.strip_prefix("error: ").unwrap_or(line).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_named() {
        let nowhere = tempfile::tempdir().unwrap();
        let reason = find("ace", Some(nowhere.path())).unwrap_err();
        assert!(reason.ends_with("has no ace"), "{reason}");
    }

    #[test]
    fn the_first_error_of_make_is_the_reason() {
        assert_eq!(
            first_error("In file x\nerror: ACE is not installed\nmake: *** [Makefile:9] Error 1\n"),
            "ACE is not installed"
        );
        assert_eq!(first_error("make: g++: No such file\n"), "make: g++: No such file");
        assert_eq!(first_error(""), "make failed");
    }

    #[test]
    fn a_server_that_cannot_be_built_is_an_error_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Makefile"), "all:\n\t@echo 'error: no such luck' >&2; exit 1\n").unwrap();
        let reason = make(folder.path(), folder.path(), None).unwrap_err();
        assert_eq!(reason, "cannot be built: no such luck");
    }

    #[test]
    fn programs_over_tao_need_its_sources() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/tao");
        let out = tempfile::tempdir().unwrap();
        let make = |sources| make(&folder, out.path(), sources).unwrap_err();
        assert_eq!(make(None), "cannot be built: no sources of TAO: give --tao DIR");
        let reason = make(Some(out.path()));
        assert_eq!(
            reason,
            format!("cannot be built: {} has no sources of ACE and TAO with bin/tao_idl", out.path().display())
        );
    }
}
