//! Programs of omniORB, which tests build and run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a program of `peers/omniorb` into a folder below `target`. `None` without omniORB's libraries, unless the
/// environment (`SPANDREL_EXPECTS_PROGRAMS`) demands them.
///
/// # Panics
/// If the program cannot be built.
#[must_use]
pub fn omniorb_peer(program: &str, target: &Path) -> Option<PathBuf> {
    let has_omniorb =
        Command::new("pkg-config").args(["--exists", "omniDynamic4"]).status().is_ok_and(|it| it.success());
    if !has_omniorb {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniORB's libraries are not installed");
        eprintln!("absent: omniORB's libraries");
        return None;
    }
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/omniorb");
    let out = target.join("omniorb");
    let program = out.join(program);
    let built = Command::new("make")
        .arg("-C")
        .arg(peers)
        .arg(format!("OUT={}", out.display()))
        .arg(&program)
        .output()
        .expect("make can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}
