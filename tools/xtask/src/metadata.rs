//! Packages of the workspace, as `cargo metadata` lists them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::workspace;

/// A package of the workspace, as `cargo metadata` describes it.
#[derive(Debug, Default)]
pub struct Package {
    /// The name in its manifest.
    pub name: String,
    /// Below the repository's root, such as `orb/core`.
    pub(crate) folder: String,
    /// The same folder on this machine.
    pub path: PathBuf,
    pub(crate) version: String,
    /// Whether every registry may get it.
    pub(crate) is_publishable: bool,
    /// The fields of the manifest, among those that a registry shows, which it lacks.
    pub(crate) missing_fields: Vec<&'static str>,
    pub(crate) targets: Vec<Target>,
    pub(crate) dependencies: Vec<Dependency>,
    /// The root files of test programs in `tests`.
    pub(crate) test_roots: Vec<PathBuf>,
    /// Programs that `cargo test` builds: those in `tests`, and libraries and binaries with tests inside.
    pub(crate) test_programs: usize,
}

/// The library or a binary of a package: a crate in the compiler's sense.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name in paths, such as `spandrel_orb`.
    pub(crate) name: String,
    pub(crate) is_library: bool,
    pub(crate) root: PathBuf,
}

/// A dependency on another package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) package: String,
    /// The name in paths where the manifest renames the dependency.
    pub(crate) rename: Option<String>,
    pub(crate) is_for_tests: bool,
}

/// Returns the members of the workspace with this root in the order of their folders.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root);
    let output = command.output().context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    parse(&output.stdout, root)
}

/// Returns the members in a folder of this repository, such as `net`.
pub fn wing(name: &str) -> Result<Vec<Package>> {
    let mut packages = packages(&workspace::root())?;
    packages.retain(|package| package.folder.split('/').next() == Some(name));
    Ok(packages)
}

#[derive(Deserialize)]
struct RawMetadata {
    packages: Vec<RawPackage>,
}

#[derive(Deserialize)]
struct RawPackage {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<RawTarget>,
    dependencies: Vec<RawDependency>,
    #[serde(default)]
    version: String,
    /// The registries that may get it; `None` is all of them.
    publish: Option<Vec<String>>,
    /// All fields without a place above, those of a registry among them.
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

/// The fields that a registry shows.
const SHOWN: [&str; 6] = ["description", "license", "repository", "readme", "keywords", "categories"];

#[derive(Deserialize)]
struct RawTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
    #[serde(default)]
    test: bool,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
    path: Option<PathBuf>,
}

fn parse(json: &[u8], root: &Path) -> Result<Vec<Package>> {
    let metadata: RawMetadata = serde_json::from_slice(json).context("cannot read the output of cargo metadata")?;
    let mut packages: Vec<Package> =
        metadata.packages.into_iter().map(|raw| package(raw, root)).collect::<Result<_>>()?;
    packages.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(packages)
}

fn package(raw: RawPackage, root: &Path) -> Result<Package> {
    let path = raw.manifest_path.parent().context("a manifest lies in a folder")?;
    let folder = path.strip_prefix(root).with_context(|| format!("{} is outside the repository", path.display()))?;
    let is_test = |raw: &RawTarget| raw.kind.iter().any(|kind| kind == "test");
    let test_roots = raw.targets.iter().filter(|raw| is_test(raw)).map(|raw| raw.src_path.clone()).collect();
    let test_programs = raw.targets.iter().filter(|raw| raw.test).count();
    let targets = raw.targets.into_iter().filter_map(target).collect();
    let dependencies = raw.dependencies.into_iter().filter(|raw| raw.path.is_some()).map(|raw| Dependency {
        package: raw.name,
        rename: raw.rename,
        is_for_tests: raw.kind.as_deref() == Some("dev"),
    });
    let dependencies = dependencies.collect();
    let folder = folder.to_str().context("folders have names in UTF-8")?.replace('\\', "/");
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let missing_fields = SHOWN.into_iter().filter(|field| raw.others.get(*field).is_none_or(is_empty)).collect();
    Ok(Package {
        name: raw.name,
        folder,
        path: path.to_owned(),
        version: raw.version,
        is_publishable: raw.publish.is_none(),
        missing_fields,
        targets,
        dependencies,
        test_roots,
        test_programs,
    })
}

/// Libraries and binaries; tests, examples and build scripts are left out.
fn target(raw: RawTarget) -> Option<Target> {
    let is_library = raw.kind.iter().any(|kind| kind == "lib" || kind == "proc-macro");
    let is_binary = raw.kind.iter().any(|kind| kind == "bin");
    (is_library || is_binary).then(|| Target { name: raw.name.replace('-', "_"), is_library, root: raw.src_path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_the_binaries_and_the_dependencies_of_the_workspace_are_kept() {
        let json = br#"{"packages": [{
            "name": "a-b", "manifest_path": "/w/net/ab/Cargo.toml", "description": "x", "keywords": ["y"], "categories": [],
            "targets": [
                {"name": "a_b", "kind": ["lib"], "src_path": "/w/net/ab/src/lib.rs"},
                {"name": "run-it", "kind": ["bin"], "src_path": "/w/net/ab/src/main.rs"},
                {"name": "suite", "kind": ["test"], "src_path": "/w/net/ab/tests/suite.rs"}],
            "dependencies": [
                {"name": "serde", "rename": null, "kind": null, "path": null},
                {"name": "c", "rename": "d", "kind": null, "path": "/w/net/c"},
                {"name": "e", "rename": null, "kind": "dev", "path": "/w/net/e"}]}]}"#;
        let packages = parse(json, Path::new("/w")).unwrap();
        assert_eq!(packages[0].folder, "net/ab");
        assert!(packages[0].is_publishable);
        assert_eq!(packages[0].missing_fields, ["license", "repository", "readme", "categories"]);
        let names: Vec<&str> = packages[0].targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["a_b", "run_it"]);
        let expected = [
            Dependency { package: "c".into(), rename: Some("d".into()), is_for_tests: false },
            Dependency { package: "e".into(), rename: None, is_for_tests: true },
        ];
        assert_eq!(packages[0].dependencies, expected);
    }

    #[test]
    fn a_member_has_the_name_in_its_manifest() {
        let orb = wing("orb").unwrap();
        let core = orb.iter().find(|member| member.path.ends_with("core")).unwrap();
        assert_eq!(core.name, "spandrel-orb");
    }
}
