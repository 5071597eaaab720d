//! `cargo xtask package`: the packages of the publishable crates, as a registry would get them.
//!
//! A crate is publishable unless its manifest has `publish = false`. Every such crate has the metadata that a
//! registry shows, depends on others of this repository by version and path, and includes no file from outside
//! of its folder. With `--verify`, the packages are compiled, compared with the last release, and used by a
//! new program outside of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::book::block_after;
use crate::metadata::{self, Package};
use crate::workspace;

/// The version of `cargo-deny` that the checks use.
const DENY_VERSION: &str = "0.20.2";
/// The version of `cargo-semver-checks` that the checks use.
const SEMVER_VERSION: &str = "0.51.0";
/// The size that a debug build of the README's program may have, in octets (`docs/performance.md` has the reasons).
const MAX_HELLO: u64 = 40_000_000;

/// Packages the publishable crates without compiling them.
pub(crate) fn run() -> Result<()> {
    let packages = publishable()?;
    let mut faults = Vec::new();
    for package in &packages {
        faults.extend(package.missing_fields.iter().map(|field| format!("{} has no {field}", package.name)));
        for file in outside_includes(&package.path)? {
            faults.push(format!("{} includes a file from outside of its package: {file}", package.name));
        }
    }
    if !faults.is_empty() {
        bail!("the packages are incomplete:\n  {}", faults.join("\n  "));
    }
    let mut command = Command::new(workspace::cargo_program());
    command.args(["package", "--no-verify", "--locked", "--allow-dirty", "--quiet"]).current_dir(workspace::root());
    command.args(packages.iter().flat_map(|package| ["--package", &package.name]));
    workspace::run(&mut command)?;
    println!("{} crates packaged", packages.len());
    Ok(())
}

/// Packages the crates, compiles the packages, and checks licenses and compatibility.
pub(crate) fn verify() -> Result<()> {
    run()?;
    let mut publish = Command::new(workspace::cargo_program());
    publish.args(["publish", "--workspace", "--dry-run", "--locked", "--allow-dirty"]).current_dir(workspace::root());
    workspace::run(&mut publish)?;
    let deny = workspace::cargo_tool("cargo-deny", DENY_VERSION, &[])?;
    let mut command = Command::new(deny);
    command.args(["check", "bans", "licenses", "sources"]).current_dir(workspace::root());
    workspace::run(&mut command)?;
    check_compatibility()?;
    use_outside()
}

/// Compares the public items with those of the last release, if there was one.
fn check_compatibility() -> Result<()> {
    let output = Command::new("git")
        .args(["describe", "--tags", "--abbrev=0", "--match", "v*"])
        .stderr(Stdio::null())
        .current_dir(workspace::root())
        .output()
        .context("cannot start git")?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || tag.is_empty() {
        println!("compatibility: absent, since no release has a tag (v*)");
        return Ok(());
    }
    let mut command = Command::new(workspace::cargo_tool("cargo-semver-checks", SEMVER_VERSION, &[])?);
    command.args(["semver-checks", "--workspace", "--baseline-rev", &tag]).current_dir(workspace::root());
    workspace::run(&mut command)
}

/// Makes a program outside of the repository from the README's quick start, with the packages and vendored
/// dependencies as its only source, and builds it.
fn use_outside() -> Result<()> {
    let packages = publishable()?;
    let sources = workspace::target().join("package/sources");
    if sources.exists() {
        fs::remove_dir_all(&sources).with_context(|| sources.display().to_string())?;
    }
    let mut vendor = Command::new(workspace::cargo_program());
    vendor.args(["vendor", "--locked", "--versioned-dirs", "--quiet"]).arg(&sources).stdout(Stdio::null());
    workspace::run(vendor.current_dir(workspace::root()))?;
    for package in &packages {
        let name = format!("{}-{}", package.name, package.version);
        let archive = workspace::target().join("package").join(format!("{name}.crate"));
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&sources);
        workspace::run(&mut unpack)?;
        fs::write(sources.join(&name).join(".cargo-checksum.json"), r#"{"files":{},"package":null}"#)?;
    }
    let readme = fs::read_to_string(workspace::root().join("README.md"))?;
    let folder = tempfile::tempdir().context("a temporary folder")?;
    fs::create_dir(folder.path().join(".cargo"))?;
    fs::write(
        folder.path().join(".cargo/config.toml"),
        format!(
            "[source.crates-io]\nreplace-with = \"packages\"\n[source.packages]\ndirectory = {:?}\n",
            sources.display().to_string()
        ),
    )?;
    let cargo = |arguments: &[&str], folder: &Path| {
        let mut command = Command::new(workspace::cargo_program());
        command.args(arguments).arg("--offline").current_dir(folder);
        command.env("CARGO_TARGET_DIR", workspace::target().join("package/outside"));
        workspace::run(&mut command)
    };
    let mut new = Command::new(workspace::cargo_program());
    workspace::run(new.args(["new", "hello", "--quiet"]).current_dir(folder.path()))?;
    let hello = folder.path().join("hello");
    cargo(&["add", "spandrel", "--quiet"], &hello)?;
    cargo(&["add", "spandrel-build", "--build", "--quiet"], &hello)?;
    for file in ["build.rs", "idl/hello.idl", "src/main.rs"] {
        let path = hello.join(file);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(&path, listing(&readme, file)?)?;
    }
    let manifest = hello.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)? + &profile(&readme)?;
    fs::write(&manifest, text)?;
    cargo(&["build", "--quiet"], &hello)?;
    let executable = workspace::target().join("package/outside/debug/hello");
    let octets = fs::metadata(&executable).with_context(|| executable.display().to_string())?.len();
    if octets > MAX_HELLO {
        bail!("a debug build of the README's program has {octets} octets, where {MAX_HELLO} are allowed");
    }
    println!("the README's program builds outside of the repository, from the packages alone");
    Ok(())
}

/// The lines that the README's quick start appends to the manifest, by `printf`.
fn profile(page: &str) -> Result<String> {
    let text = || page.split_once("printf '\\n[profile.")?.1.split_once('\'');
    let (rest, _) = text().context("README.md appends no profile")?;
    Ok(format!("\n[profile.{}", rest.replace("\\n", "\n")))
}

/// The listing after the line "`FILE`:" of a page.
fn listing(page: &str, file: &str) -> Result<String> {
    block_after(page, &format!("`{file}`:\n")).with_context(|| format!("README.md has no listing `{file}`"))
}

fn publishable() -> Result<Vec<Package>> {
    let packages = metadata::packages(&workspace::root())?;
    Ok(packages.into_iter().filter(|package| package.is_publishable).collect())
}

/// Files outside of the folder that its sources include at compile time.
fn outside_includes(folder: &Path) -> Result<BTreeSet<String>> {
    let mut outside_files = BTreeSet::new();
    for path in workspace::files(folder)?.into_iter().filter(|path| workspace::is_rust(path)) {
        let source = fs::read_to_string(&path)?;
        let beside = path.parent().expect("a file lies in a folder");
        outside_files.extend(included(&source).filter(|file| is_outside(beside, file, folder)).map(str::to_owned));
    }
    Ok(outside_files)
}

/// The literal paths of `include!`, `include_str!` and `include_bytes!`.
fn included(source: &str) -> impl Iterator<Item = &str> {
    source.split("include").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix("_str").or_else(|| rest.strip_prefix("_bytes")).unwrap_or(rest);
        rest.strip_prefix("!(\"")?.split('"').next()
    })
}

/// Whether a path, relative to `beside`, leaves `folder`.
fn is_outside(beside: &Path, file: &str, folder: &Path) -> bool {
    let depth = beside.strip_prefix(folder).map_or(0, |inside| inside.components().count());
    file.split('/').filter(|part| *part == "..").count() > depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_that_leave_the_package_are_found() {
        let source = r#"const A: &str = include_str!("../../docs/a.md"); include!("b.rs"); include_bytes!("../c");"#;
        let folder = Path::new("/crate");
        let outside = |beside: &str| {
            let beside = folder.join(beside);
            included(source).filter(|file| is_outside(&beside, file, folder)).collect::<Vec<_>>()
        };
        assert_eq!(outside("src"), ["../../docs/a.md"]);
        assert_eq!(outside("src/deep"), [""; 0]);
        assert_eq!(outside(""), ["../../docs/a.md", "../c"]);
    }

    #[test]
    fn a_listing_follows_the_name_of_its_file() {
        let page = "`a.rs`:\n\n```rust\nfn a() {}\n```\n\n`b.rs`:\n\n```rust\nfn b() {}\n```\n";
        assert_eq!(listing(page, "b.rs").unwrap(), "fn b() {}\n");
        listing(page, "c.rs").unwrap_err();
    }

    #[test]
    fn the_readme_appends_a_profile_for_dependencies() {
        let readme = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        assert_eq!(profile(&readme).unwrap(), "\n[profile.dev.package.\"*\"]\ndebug = \"line-tables-only\"\n");
        profile("printf 'x'").unwrap_err();
    }
}
