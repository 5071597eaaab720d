//! One instance of Wine for all test programs: created once, kept running while they run, ended after them.
//!
//! It has a folder of its own and no display, so that the user's settings are neither read nor changed. An
//! idle program keeps it running, which saves each test program the seconds that Wine's services take to
//! start. Those services have the idle program's output. With a test program's output, the output would not
//! end before the services do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bounded::Bounded;
use crate::packages;

/// The deadline of any operation of Wine in this module.
const LIMIT: Duration = Duration::from_secs(120);

/// An instance of Wine; dropping it ends all its programs.
#[derive(Debug)]
pub(crate) struct Wine {
    loader: PathBuf,
    server: PathBuf,
    prefix: PathBuf,
    idle_program: Option<Bounded>,
    _lock: File, // locked: two runs with one folder would end each other's programs
}

impl Wine {
    /// Starts an instance in `folder`; the first start creates it, which takes seconds and 700 MB.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let turn = File::create(folder.join("turn"))?;
        turn.lock()?;
        let find = |names| packages::find(names).with_context(|| format!("none of {names:?} is installed"));
        let (loader, server) = (find(packages::WINE_LOADERS)?, find(packages::WINE_SERVERS)?);
        let mut wine = Self { loader, server, prefix: folder.join("prefix"), idle_program: None, _lock: turn };
        let marker = wine.prefix.join("made");
        if !marker.exists() {
            println!("creating an instance of Wine in {}", wine.prefix.display());
            wine.make().context("cannot create an instance of Wine")?;
            fs::write(marker, "")?;
        }
        wine.idle_program = Some(Bounded::start("cmd", wine.command(&wine.loader).arg("cmd"))?);
        Ok(wine)
    }

    /// A command with this instance in its environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("WINEPREFIX", &self.prefix).env(super::runner::LOADER, &self.loader).env("WINEDEBUG", "-all");
        // Neither browser nor .NET, for which Wine would offer downloads, nor menu entries.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=;winemenubuilder.exe=");
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WINEARCH").env_remove("WINESERVER");
        command
    }

    /// A command that runs a program for Windows.
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = self.command(&self.loader);
        command.arg(program);
        command
    }

    /// Runs a program and returns the lines of its output.
    pub(crate) fn output(&self, program: &Path) -> Result<Vec<String>> {
        let child = Bounded::start("a program in C", &mut self.program(program))?;
        let deadline = Instant::now() + LIMIT;
        let mut lines = Vec::new();
        while let Some(line) = child.line(deadline)? {
            lines.push(line);
        }
        Ok(lines)
    }

    fn make(&self) -> Result<()> {
        if self.prefix.exists() {
            fs::remove_dir_all(&self.prefix)?; // an incomplete one
        }
        fs::create_dir_all(&self.prefix)?;
        self.run(&["wineboot", "--init"])?;
        // The oldest version that Rust's standard library supports; Wine's default may be older.
        self.run(&["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"])?;
        Ok(())
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        let mut child = Bounded::start(words[0], self.command(&self.loader).args(words))?;
        let status = child.finish(LIMIT)?;
        if !status.success() {
            // Exit status 53 is `STATUS_DLL_NOT_FOUND`: the file system had no space for the instance's libraries.
            let stderr = child.stderr();
            let prefix = self.prefix.display();
            bail!("{} exited with {status}; has the file system of {prefix} no space?\n{stderr}", words.join(" "));
        }
        Ok(())
    }
}

/// Copies the ended instance in `folder`. The copy shares its programs and libraries by hard links; the files of the
/// registry, which Wine replaces rather than changes, too.
pub(crate) fn copy(folder: &Path, to: &Path) -> Result<()> {
    let from = folder.join("prefix");
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    fs::create_dir_all(to.parent().context("an instance is within a folder")?)?;
    let mut cp = Command::new("cp");
    let mut child = Bounded::start("cp", cp.args(["--archive", "--link"]).arg(&from).arg(to))?;
    if !child.finish(LIMIT)?.success() {
        bail!("cannot copy {} to {}\n{}", from.display(), to.display(), child.stderr());
    }
    Ok(())
}

impl Drop for Wine {
    fn drop(&mut self) {
        drop(self.idle_program.take());
        // With `-k` the server of this folder, and no other, ends its programs. It fails only if there is
        // none any more.
        if let Ok(mut end) = Bounded::start("wineserver", self.command(&self.server).arg("-k")) {
            _ = end.finish(LIMIT);
        }
    }
}
