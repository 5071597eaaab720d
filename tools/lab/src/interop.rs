//! The programs of other ORBs: built from `peers` by `cargo xtask interop`, those over TAO from its sources.

use std::env;
use std::path::{Path, PathBuf};

/// The folder with these programs of an ORB: the given one, or else that in the build folder of the source
/// tree or of this program.
///
/// # Errors
/// The missing programs and how to build them, as text.
pub(crate) fn find(orb: &str, programs: &[&str], folder: Option<&Path>) -> Result<PathBuf, String> {
    let has_all = |folder: &Path| programs.iter().all(|program| folder.join(program).is_file());
    if let Some(folder) = folder {
        let missing = || format!("{} has no {}", folder.display(), programs.join(" and "));
        return if has_all(folder) { Ok(folder.to_owned()) } else { Err(missing()) };
    }
    #[cfg(target_os = "linux")]
    if orb == "tao" {
        let find = |program| crate::peer_programs::find_program("tao", &format!("tao/{program}"), None);
        let programs = programs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let folder = programs.first().and_then(|program| program.parent());
        return folder.map(Path::to_owned).ok_or_else(|| "no program is named".to_owned());
    }
    let built = Path::new("interop").join(orb);
    let beside_program = env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.join(&built)));
    let in_tree = Some(Path::new("target").join(&built));
    let folder = [in_tree, beside_program].into_iter().flatten().find(|folder| has_all(folder));
    folder.ok_or_else(|| "its programs are not built: run `cargo xtask interop` in the source tree".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named() {
        let nowhere = tempfile::tempdir().unwrap();
        let reason = find("omniorb", &["client", "server"], Some(nowhere.path())).unwrap_err();
        assert!(reason.ends_with("has no client and server"), "{reason}");
        std::fs::write(nowhere.path().join("server"), "").unwrap();
        assert_eq!(find("omniorb", &["server"], Some(nowhere.path())).as_deref(), Ok(nowhere.path()));
    }
}
