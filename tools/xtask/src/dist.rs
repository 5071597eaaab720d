//! `cargo xtask dist`: the archive of a release for this machine's platform.
//!
//! It has the programs, their man pages and completions, the licenses, the README and the changelog. A file
//! beside it has the SHA-256 sum.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The executables of a release.
/// The features of the command line in a release.
const FEATURES: &str = "spandrel-cli/bulk,spandrel-cli/man,spandrel-cli/object-files";
const PROGRAMS: [&str; 1] = ["spandrel"];
/// The texts at the root of the repository that an archive has.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// The shells whose completions an archive has.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds the programs and writes the archive.
pub(crate) fn run() -> Result<()> {
    workspace::cargo(&["build", "--release", "--locked", "--package", "spandrel-cli", "--features", FEATURES])?;
    let release = workspace::target().join("release");
    let name = format!("spandrel-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let dist = workspace::target().join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    for part in ["bin", "share/man/man1", "share/completions"] {
        fs::create_dir_all(folder.join(part)).with_context(|| folder.join(part).display().to_string())?;
    }
    for program in PROGRAMS {
        copy(&release.join(program), &folder.join("bin").join(program))?;
    }
    for text in TEXTS {
        copy(&workspace::root().join(text), &folder.join(text))?;
    }
    let spandrel = release.join("spandrel");
    for shell in SHELLS {
        let output = Command::new(&spandrel).args(["completions", shell]).output().context("cannot start spandrel")?;
        if !output.status.success() {
            bail!("spandrel completions {shell} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        fs::write(folder.join("share/completions").join(format!("spandrel.{shell}")), output.stdout)?;
    }
    let mut man = Command::new(&spandrel);
    man.arg("man").arg(folder.join("share/man/man1"));
    workspace::run(&mut man)?;
    let archive = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--sort=name", "--file"]).arg(&archive);
    workspace::run(tar.arg("--directory").arg(&dist).arg(&name))?;
    let mut sum = Command::new("sha256sum");
    sum.arg(archive.file_name().context("an archive has a name")?).current_dir(&dist);
    let sum = sum.output().context("cannot start sha256sum")?;
    fs::write(dist.join(format!("{name}.tar.gz.sha256")), &sum.stdout)?;
    println!("{} ({} KiB)", archive.display(), fs::metadata(&archive)?.len() >> 10);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).with_context(|| from.display().to_string())
}

/// The target triple of this machine's toolchain.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not name its host")
}
