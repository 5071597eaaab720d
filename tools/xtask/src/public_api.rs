//! `cargo xtask public-api REVISION [PACKAGE…]`: the public items of the crates that programs name, compared with an older revision.
//!
//! `cargo-public-api` lists them from the JSON of rustdoc, with all features. The older sources are a worktree of Git
//! below `target/public-api`. `CHANGELOG.md` says how a program is changed where a line is removed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata;
use crate::workspace;

/// The version of `cargo-public-api`, which reads the JSON of a recent nightly toolchain.
const TOOL_VERSION: &str = "0.52.0";

/// The facade, the crates whose items it has, and those that the book adds to a package.
const CRATES: [&str; 23] = [
    "spandrel",
    "spandrel-build",
    "spandrel-orb",
    "spandrel-poa",
    "spandrel-server",
    "spandrel-giop",
    "spandrel-cdr",
    "spandrel-dynamic",
    "spandrel-ssliop",
    "spandrel-authorization",
    "spandrel-cos",
    "spandrel-rt",
    "spandrel-bulk",
    "spandrel-ipc",
    "spandrel-reactor",
    "spandrel-sync",
    "spandrel-message",
    "spandrel-stream",
    "spandrel-configurator",
    "spandrel-architectures",
    "spandrel-tls",
    "spandrel-xdr",
    "spandrel-metrics",
];

/// Methods of traits whose `impl` lines are listed.
const TRAIT_METHODS: [&str; 7] = ["clone", "cmp", "default", "eq", "fmt", "hash", "partial_cmp"];

/// Traits that say nothing to a program.
const SILENT_TRAITS: [&str; 5] = [
    "core::marker::Freeze",
    "core::marker::StructuralPartialEq",
    "core::marker::Unpin",
    "core::panic::unwind_safe::RefUnwindSafe",
    "core::panic::unwind_safe::UnwindSafe",
];

/// Prints the lines in which the listings of the sources differ from those of a revision: of these packages, or of all.
pub(crate) fn run(revision: &str, packages: &[&str]) -> Result<()> {
    if let Some(unknown) = packages.iter().find(|name| !CRATES.contains(name)) {
        bail!("`{unknown}` is none of {}", CRATES.join(", "));
    }
    let packages = if packages.is_empty() { &CRATES[..] } else { packages };
    let tool = workspace::cargo_tool("cargo-public-api", TOOL_VERSION, &[])?;
    let before = workspace::target().join("public-api/before");
    let root = workspace::root();
    let git = || {
        let mut command = Command::new("git");
        command.current_dir(&root);
        command
    };
    // The worktree of a run that was interrupted.
    let _ = git().args(["worktree", "remove", "--force"]).arg(&before).output();
    workspace::run(git().args(["worktree", "add", "--force", "--detach"]).arg(&before).arg(revision))?;
    let (older, generated) = (metadata::packages(&before)?, generated_modules(&root)?);
    let mut failed = Vec::new();
    for &name in packages {
        if !older.iter().any(|package| package.name == name) {
            println!("{name}: a crate that {revision} does not have");
            continue;
        }
        let listings = list(&tool, name, &before, "old").and_then(|old| Ok((old, list(&tool, name, &root, "new")?)));
        match listings.map(|(old, new)| difference(&concise(&old, &generated), &concise(&new, &generated))) {
            Ok(None) => println!("{name}: no difference"),
            Ok(Some(report)) => println!("{name}: {report}"),
            Err(error) => {
                println!("{error:#}");
                failed.push(name);
            }
        }
    }
    workspace::run(git().args(["worktree", "remove", "--force"]).arg(&before))?;
    if failed.is_empty() { Ok(()) } else { bail!("there is no listing of {}", failed.join(", ")) }
}

/// The output of the tool for a crate of the sources in a folder. `build` names the folder of their build: Cargo takes a crate
/// of another workspace with the same relative path for the same crate.
fn list(tool: &Path, name: &str, folder: &Path, build: &str) -> Result<String> {
    let mut command = Command::new(tool);
    // The toolchain of the JSON; otherwise the present one's programs would run.
    command.env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command
        .env("CARGO_TARGET_DIR", workspace::target().join("public-api").join(build))
        .env("CARGO_TERM_COLOR", "never");
    command.args(["public-api", "--omit", "blanket-impls", "--all-features", "--package", name]);
    let output = command.current_dir(folder).output().context("cannot start cargo-public-api")?;
    if !output.status.success() {
        bail!("cargo-public-api failed for {name}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("the listing of {name} is not UTF-8"))
}

/// The paths of the modules that the IDL compiler has written. Their interface is the IDL of the standards and the mapping.
fn generated_modules(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("orb/cos/src");
    let mut modules = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        if !text.starts_with("// @generated") {
            continue;
        }
        for name in text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(" {")) {
            modules.extend(["spandrel_cos", "spandrel_cos::repository"].map(|parent| format!("{parent}::{name}")));
        }
    }
    Ok(modules)
}

/// The lines without generated modules, methods of common traits, and traits that say nothing to a program.
fn concise(listing: &str, generated: &[String]) -> String {
    let is_listed = |line: &&str| {
        let is_generated = generated.iter().any(|module| {
            let follows = |(at, _)| line[at + module.len()..].chars().next().is_none_or(|next| next == ':');
            line.match_indices(module.as_str()).any(follows)
        });
        let subject = line.split_once('(').map_or(*line, |(path, _)| path);
        let method = subject.rsplit("::").next().unwrap_or_default();
        let is_common = line.starts_with("pub fn ") && TRAIT_METHODS.contains(&method);
        let is_silent = line.starts_with("impl") && SILENT_TRAITS.iter().any(|name| line.contains(name));
        !is_generated && !is_common && !is_silent
    };
    listing.lines().filter(is_listed).flat_map(|line| [line, "\n"]).collect()
}

/// The lines that one of the listings lacks, if they differ. The order of the lines is that of the tool.
fn difference(old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let [old, new] = [old, new].map(|listing| listing.lines().collect::<BTreeSet<_>>());
    let (removed, added): (Vec<_>, Vec<_>) = (old.difference(&new).collect(), new.difference(&old).collect());
    let mut report = format!("{} lines removed, {} added", removed.len(), added.len());
    let signed = removed.iter().map(|line| ('-', line)).chain(added.iter().map(|line| ('+', line)));
    for (sign, line) in signed {
        let _ = write!(report, "\n  {sign} {line}");
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_leaves_out_generated_code_and_common_traits() {
        let listing = "pub mod spandrel_cos\n\
            pub mod spandrel_cos::cos_naming\n\
            pub fn spandrel_cos::cos_naming::Binding::clone(&self) -> Self\n\
            impl core::clone::Clone for spandrel_cos::NamingClient\n\
            impl core::marker::Send for spandrel_cos::NamingClient\n\
            impl core::marker::Freeze for spandrel_cos::NamingClient\n\
            pub fn spandrel_cos::NamingClient::clone(&self) -> spandrel_cos::NamingClient\n\
            pub fn spandrel_cos::NamingClient::new(&spandrel_orb::orb::Orb) -> Self\n\
            pub struct spandrel_cos::cos_notify_filter::ConstraintExp\n\
            pub fn spandrel_cos::repository::corba::Container::lookup(&self)\n\
            pub fn spandrel_cos::cos_naming_errors(u8)\n";
        let expected = "pub mod spandrel_cos\n\
            impl core::clone::Clone for spandrel_cos::NamingClient\n\
            impl core::marker::Send for spandrel_cos::NamingClient\n\
            pub fn spandrel_cos::NamingClient::new(&spandrel_orb::orb::Orb) -> Self\n\
            pub fn spandrel_cos::cos_naming_errors(u8)\n";
        let generated = generated_modules(&workspace::root()).unwrap();
        assert_eq!(concise(listing, &generated), expected);
    }

    #[test]
    fn a_change_is_reported_by_its_lines() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let report = difference("pub fn a()\npub fn b()\n", "pub fn a(u8)\npub fn b()\n").unwrap();
        assert_eq!(report, "1 lines removed, 1 added\n  - pub fn a()\n  + pub fn a(u8)");
    }

    #[test]
    fn each_listed_crate_exists() {
        let members: Vec<_> = ["orb", "net"].iter().flat_map(|wing| metadata::wing(wing).unwrap()).collect();
        for name in CRATES {
            assert!(name == "spandrel" || members.iter().any(|member| member.name == name), "{name}");
        }
    }
}
