//! Builds of our programs in Cargo's two profiles, for other targets too, and folders for builds of others.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::workspace::{self, build_as_for_tests};

/// A profile of Cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// That of the tests, which have built most of the programs.
    Dev,
    /// With optimisation, for measurements.
    Release,
}

impl Profile {
    /// The arguments of Cargo that select it.
    pub(crate) fn cargo_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &[],
            Self::Release => &["--release"],
        }
    }

    /// The name of its folder in the target folder.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }

    /// The path of a program that was built.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        workspace::target().join(self.folder()).join(name)
    }

    /// Builds programs: pairs of a package and a program.
    pub(crate) fn build(self, programs: &[(&str, &str)]) -> Result<()> {
        let names = programs.iter().map(|(_, program)| *program);
        if self == Self::Dev {
            return workspace::run(&mut build_as_for_tests(&names.collect::<Vec<_>>()));
        }
        let mut command = Command::new(workspace::cargo_program());
        command.args(["build", "--quiet", "--release"]).current_dir(workspace::root());
        command.args(programs.iter().flat_map(|(package, _)| ["--package", package]));
        workspace::run(command.args(names.flat_map(|program| ["--bin", program])))
    }
}

/// The build folder of the omniORB peers.
pub(crate) fn omniorb() -> PathBuf {
    workspace::target().join("interop/omniorb")
}

/// The build folder of the JacORB peers.
pub(crate) fn jacorb() -> PathBuf {
    workspace::target().join("interop/jacorb")
}

/// Checks that the toolchain in use has the standard library for this target.
pub(crate) fn require_target(target: &str) -> Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(workspace::root())
        .output()
        .context("cannot start rustc")?;
    if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() {
        return Ok(());
    }
    workspace::run(Command::new("rustup").args(["target", "add", target]).current_dir(workspace::root()))
}
