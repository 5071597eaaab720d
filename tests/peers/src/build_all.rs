//! `cargo xtask peers`: builds the programs of others in `peers`, beside which ours are measured.
//!
//! A program that cannot be built has a line with the reason, and the others are built all the same.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::workspace;

use crate::{
    interop::{self, jacorb},
    packages::{self, ACE, ASIO, CPP, JACORB, OMNIORB, RPC},
};

/// The programs of one folder.
struct Programs {
    folder: &'static str,
    packages: &'static [&'static str],
    build: Build,
}

/// The way in which they are built.
enum Build {
    /// Into `target/peers`, by the Makefile of the folder.
    Make,
    /// As `Make`, by given sources of TAO.
    Tao,
    OmniOrb,
    JacOrb,
    /// By Cargo, in the workspace `extra`.
    Extra,
}

const PROGRAMS: [Programs; 14] = [
    Programs { folder: "peers/omniorb", packages: OMNIORB, build: Build::OmniOrb },
    Programs { folder: "peers/jacorb", packages: JACORB, build: Build::JacOrb },
    Programs { folder: "extra/calls", packages: &[], build: Build::Extra },
    Programs { folder: "peers/floods-omniorb", packages: OMNIORB, build: Build::Make },
    Programs { folder: "peers/tao", packages: CPP, build: Build::Tao },
    Programs { folder: "peers/calls-c", packages: CPP, build: Build::Make },
    Programs { folder: "peers/fanout-c", packages: CPP, build: Build::Make },
    Programs { folder: "peers/media-c", packages: CPP, build: Build::Make },
    Programs { folder: "peers/reactor-c", packages: CPP, build: Build::Make },
    Programs { folder: "peers/functions", packages: CPP, build: Build::Make },
    Programs { folder: "peers/rpc", packages: RPC, build: Build::Make },
    Programs { folder: "peers/xdr", packages: RPC, build: Build::Make },
    Programs { folder: "peers/ace", packages: ACE, build: Build::Make },
    Programs { folder: "peers/asio", packages: ASIO, build: Build::Make },
];

/// Builds them in turn, and prints a line for each.
pub(crate) fn run(tao_sources: Option<&Path>) -> Result<()> {
    let mut count = 0;
    for programs in &PROGRAMS {
        match packages::require(programs.packages).and_then(|()| programs.build(tao_sources)) {
            Ok(()) => {
                count += 1;
                println!("{}: built", programs.folder);
            }
            Err(reason) => println!("{}: not built: {reason:#}", programs.folder),
        }
    }
    println!("the programs of {count} of {} folders are built", PROGRAMS.len());
    Ok(())
}

impl Programs {
    fn build(&self, tao_sources: Option<&Path>) -> Result<()> {
        match self.build {
            Build::OmniOrb => interop::build_omniorb(),
            Build::JacOrb => jacorb::build(),
            Build::Tao if tao_sources.is_none() => bail!("no sources of TAO: give --tao DIR"),
            Build::Make | Build::Tao => {
                let mut make = Command::new("make");
                make.args(["--silent", "--directory"]).arg(workspace::root().join(self.folder));
                make.arg(format!("OUT={}", std::path::absolute(workspace::target().join("peers"))?.display()));
                if let (Build::Tao, Some(sources)) = (&self.build, tao_sources) {
                    make.arg(format!("TAO_SOURCES={}", std::path::absolute(sources)?.display()));
                }
                workspace::run(&mut make).context("make fails")
            }
            Build::Extra => {
                let mut cargo = Command::new(workspace::cargo_program());
                cargo.args([
                    "build",
                    "--quiet",
                    "--release",
                    "--locked",
                    "--package",
                    "calls-tokio",
                    "--manifest-path",
                ]);
                cargo.arg(workspace::root().join("extra/Cargo.toml")).arg("--target-dir");
                workspace::run(cargo.arg(workspace::target().join("extra")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_folder_with_a_makefile_is_built() {
        let peers = fs::read_dir(workspace::root().join("peers")).unwrap().map(|entry| entry.unwrap().path());
        for folder in peers.filter(|folder| folder.join("Makefile").is_file()) {
            let path = folder.strip_prefix(workspace::root()).unwrap();
            assert!(PROGRAMS.iter().any(|programs| path.as_os_str() == programs.folder), "{}", path.display());
        }
    }
}
