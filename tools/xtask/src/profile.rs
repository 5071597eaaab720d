//! Builds of our programs, in Cargo's two profiles.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::workspace;

/// A profile of Cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// That of the tests, which have built most of the programs.
    Dev,
    /// With optimisation, for measurements.
    Release,
}

impl Profile {
    /// The arguments of Cargo that select it.
    pub fn cargo_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &[],
            Self::Release => &["--release"],
        }
    }

    /// The name of its folder in the target folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }

    /// The path of a program that was built.
    pub fn program(self, name: &str) -> PathBuf {
        workspace::target().join(self.folder()).join(name)
    }

    /// Builds programs: pairs of a package and a program.
    pub fn build(self, programs: &[(&str, &str)]) -> Result<()> {
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

/// A command that builds programs, and the example `bank-server`, as `cargo test --workspace` does.
///
/// Cargo compiles a package once for each set of features. Those of this build are of the whole workspace with the
/// dependencies of tests, which Cargo includes because of the example. If fewer packages were selected, it would compile
/// most dependencies once more.
pub fn build_as_for_tests(programs: &[&str]) -> Command {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["build", "--quiet", "--workspace", "--example", "bank-server"]).current_dir(workspace::root());
    command.args(programs.iter().flat_map(|program| ["--bin", program]));
    command
}
