//! One instance of Wine for all test programs: made once, kept ready while they run, ended after them.
//!
//! It has a folder of its own, so that nothing of the user's is seen or changed, and no display. A program that does
//! nothing holds it ready: it saves each test program the seconds that Wine's services take to start, and those have
//! the holder's output, not a test program's, which would not end before they do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bounded::Bounded;
use crate::packages;

/// How long Wine may take for anything that this module asks of it.
const LIMIT: Duration = Duration::from_secs(120);

/// An instance of Wine; dropping it ends all that runs in it.
#[derive(Debug)]
pub(crate) struct Wine {
    loader: PathBuf,
    server: PathBuf,
    prefix: PathBuf,
    holder: Option<Bounded>,
    _turn: File, // locked: two users of one folder would end each other's programs
}

impl Wine {
    /// Starts an instance that lives in `folder`; the first time makes it, which takes seconds and 700 MB.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let turn = File::create(folder.join("turn"))?;
        turn.lock()?;
        let find = |names| packages::find(names).with_context(|| format!("none of {names:?} is there"));
        let (loader, server) = (find(packages::WINE_LOADERS)?, find(packages::WINE_SERVERS)?);
        let mut wine = Self { loader, server, prefix: folder.join("prefix"), holder: None, _turn: turn };
        let made = wine.prefix.join("made");
        if !made.exists() {
            println!("making an instance of Wine in {}", wine.prefix.display());
            wine.make().context("cannot make an instance of Wine")?;
            fs::write(made, "")?;
        }
        wine.holder = Some(Bounded::start("cmd", wine.command(&wine.loader).arg("cmd"))?);
        Ok(wine)
    }

    /// A command that has this instance in its environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("WINEPREFIX", &self.prefix).env(super::runner::LOADER, &self.loader).env("WINEDEBUG", "-all");
        // Neither browser nor .NET, for which it would ask to be allowed to download them, nor entries in menus.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=;winemenubuilder.exe=");
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WINEARCH").env_remove("WINESERVER");
        command
    }

    /// Runs a program and gives the lines that it wrote.
    pub(crate) fn output(&self, program: &Path) -> Result<Vec<String>> {
        let child = Bounded::start("a program in C", self.command(&self.loader).arg(program))?;
        let deadline = Instant::now() + LIMIT;
        let mut lines = Vec::new();
        while let Some(line) = child.line(deadline)? {
            lines.push(line);
        }
        Ok(lines)
    }

    fn make(&self) -> Result<()> {
        if self.prefix.exists() {
            fs::remove_dir_all(&self.prefix)?; // half of one
        }
        fs::create_dir_all(&self.prefix)?;
        self.run(&["wineboot", "--init"])?;
        // What Rust's standard library asks for at least; Wine's default may be older.
        self.run(&["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"])?;
        Ok(())
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        let status = Bounded::start(words[0], self.command(&self.loader).args(words))?.finish(LIMIT)?;
        if !status.success() {
            bail!("{} ended with {status}", words.join(" "));
        }
        Ok(())
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        drop(self.holder.take());
        // With `-k` the server of this folder, and no other, ends its programs; it fails only if there is none any more.
        if let Ok(end) = Bounded::start("wineserver", self.command(&self.server).arg("-k")) {
            _ = end.finish(LIMIT);
        }
    }
}
