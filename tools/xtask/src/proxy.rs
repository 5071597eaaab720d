//! The HTTP proxy against programs of others that read its OpenAPI document.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// The programs, as packages of the Python package index.
const PACKAGES: [&str; 3] = ["openapi-spec-validator==0.9.0", "openapi-python-client==0.29.1", "schemathesis==4.32.5"];

/// Installs the programs into the target folder, and runs the tests that use them, with this many requests for each
/// operation and phase of schemathesis.
pub(crate) fn run(examples: u32) -> Result<()> {
    let folder = workspace::target().join("proxy-tools");
    if !folder.join("bin/schemathesis").exists() {
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            .context("python3 and its module venv are needed (packages python3, python3-venv)")?;
        let mut pip = Command::new(folder.join("bin/pip"));
        workspace::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))?;
    }
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--package", "spandrel-proxy", "--test", "proxy", "tools::", "--", "--ignored"]);
    command.env("SPANDREL_PYTHON_PROGRAMS", folder.join("bin")).env("SPANDREL_EXAMPLES", examples.to_string());
    workspace::run(command.current_dir(workspace::root()))
}
