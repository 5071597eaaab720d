//! `cargo xtask idl --compile`: Rust generated from all IDL files with several settings, checked by the
//! compiler and by clippy.
//!
//! Each setting has one scratch crate, with a module for each file. It depends on the runtime as programs do,
//! forbids `unsafe`, and must compile without warnings.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::workspace;

use crate::compiler::{self, SHIPPED};

/// The settings: a name, and the arguments of `spandrel idl`.
const SETTINGS: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("interpretive", &["--marshal", "interpretive", "--async-server", "--ami", "--ties"]),
    ("adaptive", &["--marshal", "adaptive", "--async-server", "--ami", "--servant-defaults", "--pad", "all"]),
    ("direct", &["--collocation", "direct", "--async-server", "--ties"]),
    ("client", &["--client-only", "--no-async-client"]),
    ("server", &["--server-only", "--prefix", "around::everything"]),
];

/// Compiles the Rust generated from these files; an error if anything is wrong with it.
pub(crate) fn run(files: &[PathBuf]) -> Result<()> {
    let folder = workspace::target().join("idl-compile");
    let files = grouped(files, &folder)?;
    for (setting, arguments) in SETTINGS {
        let modules = generate(setting, arguments, &files, &folder)?;
        println!("IDL: {setting}: Rust of {modules} files");
        check(&folder)?;
    }
    Ok(())
}

/// The files, with the folder of services as one: its files include each other, and would be generated many
/// times over.
fn grouped(files: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>> {
    let services = Path::new(SHIPPED).join("COS");
    let (services, mut rest): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|file| file.starts_with(&services));
    let all = services.iter().map(|file| format!("#include \"{}\"\n", file.display()));
    fs::create_dir_all(folder.join("src"))?;
    let main = folder.join("services.idl");
    fs::write(&main, all.collect::<String>())?;
    rest.push(main);
    Ok(rest)
}

/// Writes the crate of a setting and returns the number of its modules.
fn generate(setting: &str, arguments: &[&str], files: &[PathBuf], folder: &Path) -> Result<usize> {
    let source = folder.join("src");
    fs::remove_dir_all(&source)?;
    fs::create_dir_all(&source)?;
    fs::write(folder.join("Cargo.toml"), manifest())?;
    fs::copy(workspace::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut modules = format!("//! The Rust generated with the setting {setting}.\n#![forbid(unsafe_code)]\n");
    for (nth, file) in files.iter().enumerate() {
        let stem = file.file_stem().and_then(OsStr::to_str).context("a file name in UTF-8")?;
        let name = format!("f{nth}_{}", stem.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "_"));
        let mut command = compiler::compiler();
        command.arg("--stdout").args(arguments).arg(file);
        let is_ours = file.starts_with(workspace::root()) && !file.starts_with(folder);
        if !is_ours {
            command.args(compiler::shipped());
        }
        let out = command.output().context("cannot start spandrel")?;
        if !out.status.success() {
            bail!("{}: {}", file.display(), String::from_utf8_lossy(&out.stderr));
        }
        fs::write(source.join(format!("{name}.rs")), out.stdout)?;
        modules.push_str(&format!("pub mod {name};\n"));
    }
    fs::write(source.join("lib.rs"), modules)?;
    Ok(files.len())
}

fn manifest() -> String {
    let runtime = workspace::root().join("spandrel");
    format!(
        "[package]\nname = \"idl-compile\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nspandrel = {{ path = {:?} }}\n",
        runtime.display().to_string()
    )
}

fn check(folder: &Path) -> Result<()> {
    let mut clippy = Command::new(workspace::cargo_program());
    clippy.args(["clippy", "--quiet", "--target-dir"]).arg(workspace::target()).args(["--", "-D", "warnings"]);
    workspace::run(clippy.current_dir(folder))
}
