//! Writes and builds the crates whose object files are analysed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spandrel_idl::rust::{Options, Sides, generate};

use super::fixtures::{self, Fixture};
use super::results::{Footprint, Service};
use super::settings::{Engine, Optimisation, Settings, Side};
use super::sizes::Sizes;
use crate::LabError;
use crate::progress::Progress;

/// Engines that services are built with: a combination of both adds no information.
const SERVICE_ENGINES: [Engine; 2] = [Engine::Compiled, Engine::Interpretive];

/// Builds everything and reads its sizes: of each operation, and of each service.
pub(super) fn sizes(_settings: &Settings, tree: &Path, out: &Path) -> Result<(Vec<Footprint>, Vec<Service>), LabError> {
    let (operations, services) = (fixtures::operations(), fixtures::services());
    let mut progress = Progress::begin(Optimisation::ALL.len() as u64);
    let (mut footprints, mut sums) = (Vec::new(), Vec::new());
    for optimisation in Optimisation::ALL {
        progress.at(&format!("stubs and skeletons for {}", optimisation.name()));
        let workspace = Workspace::new(tree, &out.join(optimisation.name()), optimisation);
        let operation_crates = product(&operations, &Engine::ALL);
        let service_crates = product(&services, &SERVICE_ENGINES);
        let sources = operation_crates.iter().chain(&service_crates);
        let sources = sources.map(|(fixture, engine, side)| {
            Ok((crate_name(fixture, *engine, *side), library(fixture, *engine, *side)?))
        });
        let sources: Vec<(String, String)> = sources.collect::<Result<_, LabError>>()?;
        workspace.write(sources.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
        workspace.build()?;
        for (fixture, engine, side) in operation_crates {
            let sizes = workspace.sizes(fixture, engine, side)?;
            footprints.push(Footprint { operation: fixture.name.to_owned(), engine, side, optimisation, sizes });
        }
        for (fixture, engine, side) in service_crates {
            let sizes = workspace.sizes(fixture, engine, side)?;
            sums.push(Service { service: fixture.name.to_owned(), engine, side, optimisation, sizes });
        }
        progress.step(&format!("stubs and skeletons for {}", optimisation.name()), "built");
    }
    progress.finish();
    Ok((footprints, sums))
}

type Build<'f> = (&'f Fixture, Engine, Side);

fn product<'f>(fixtures: &'f [Fixture], engines: &[Engine]) -> Vec<Build<'f>> {
    let sides = |fixture, engine| Side::ALL.map(|side| (fixture, engine, side));
    fixtures.iter().flat_map(|it| engines.iter().flat_map(move |&engine| sides(it, engine))).collect()
}

/// Crates that are built together, for speed or for size.
pub(super) struct Workspace<'t> {
    tree: &'t Path,
    folder: PathBuf,
    optimisation: Optimisation,
}

impl<'t> Workspace<'t> {
    pub(super) fn new(tree: &'t Path, folder: &Path, optimisation: Optimisation) -> Self {
        Self { tree, folder: folder.to_owned(), optimisation }
    }

    /// Writes these crates, each with its name and source.
    pub(super) fn write<'f>(&self, sources: impl Iterator<Item = (&'f str, &'f str)>) -> Result<(), LabError> {
        let mut members = String::new();
        for (name, text) in sources {
            _ = write!(members, "\"{name}\", ");
            let manifest = format!(
                "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\nspandrel = {{ path = {:?} }}\n",
                self.tree.join("spandrel")
            );
            write(&self.folder.join(name).join("Cargo.toml"), &manifest)?;
            write(&self.folder.join(name).join("src/lib.rs"), text)?;
        }
        let level = self.optimisation.level();
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[profile.release]\nopt-level = {level}\ncodegen-units = 1\ndebug = false\n"
        );
        write(&self.folder.join("Cargo.toml"), &manifest)?;
        // The same versions as in the source tree.
        let lock = fs::read_to_string(self.tree.join("Cargo.lock")).unwrap_or_default();
        write(&self.folder.join("Cargo.lock"), &lock)
    }

    pub(super) fn build(&self) -> Result<(), LabError> {
        // Symbol names that identify instantiations of generics.
        cargo(&self.folder, &["build", "--release", "--quiet"], &["-Csymbol-mangling-version=v0".to_owned()])
    }

    fn sizes(&self, fixture: &Fixture, engine: Engine, side: Side) -> Result<Sizes, LabError> {
        object_sizes(&self.archive(&crate_name(fixture, engine, side)), side)
    }

    /// The compiled form of the crate with this name.
    pub(super) fn archive(&self, name: &str) -> PathBuf {
        self.folder.join("target/release").join(format!("lib{name}.rlib"))
    }
}

pub(super) fn crate_name(fixture: &Fixture, engine: Engine, side: Side) -> String {
    format!("{}_{}_{}", fixture.name.to_lowercase(), engine.name(), side.name())
}

/// The generated code of one side by one engine, and code that makes the compiler keep it.
pub(super) fn library(fixture: &Fixture, engine: Engine, side: Side) -> Result<String, LabError> {
    let sides = match side {
        Side::Stub => Sides::Client,
        Side::Skeleton => Sides::Server,
    };
    let rust = generated(fixture, engine, sides)?;
    let scaffold = skeletons(&rust);
    Ok(format!("#![allow(warnings)]\n{rust}\n{scaffold}"))
}

/// The generated code of these sides by one engine.
pub(super) fn generated(fixture: &Fixture, engine: Engine, sides: Sides) -> Result<String, LabError> {
    let options = Options::new().marshal(engine.name()).map_err(|error| LabError::Settings(error.to_string()))?;
    // Asynchronous calls would be kept here although unused; a program has only those that it calls.
    Ok(generate(&fixture.model()?, &options.sides(sides).asynchronous_client(false)))
}

/// A function for each skeleton that creates it for an unknown servant.
fn skeletons(rust: &str) -> String {
    let (mut path, mut functions) = (Vec::new(), String::new());
    for line in rust.lines() {
        let depth = (line.len() - line.trim_start().len()) / 4;
        let line = line.trim();
        if let Some(module) = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(" {")) {
            path.truncate(depth);
            path.push(module.to_owned());
        }
        let Some(rest) = line.strip_prefix("pub type ") else { continue };
        let Some(interface) = rest.split('<').next().and_then(|name| name.strip_suffix("Skeleton")) else { continue };
        path.truncate(depth);
        let around: String = path.iter().map(|module| format!("{module}::")).collect();
        let nth = functions.lines().count();
        _ = writeln!(
            functions,
            "    pub fn s{nth}(servant: Arc<dyn crate::{around}{interface}Servant>) -> Arc<dyn Servant> {{ Arc::new(crate::{around}{interface}Skeleton::new(servant)) }}"
        );
    }
    if functions.is_empty() {
        return functions;
    }
    format!("pub mod scaffold {{\n    use std::sync::Arc;\n    use ::spandrel::server::Servant;\n{functions}}}\n")
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), LabError> {
    // Unchanged files need not be built again.
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|cause| LabError::Write { path: path.to_owned(), cause })
}

/// Runs Cargo in its own folder with these compiler flags, whatever is set for the calling program.
pub(super) fn cargo(folder: &Path, arguments: &[&str], flags: &[String]) -> Result<(), LabError> {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("CARGO_TARGET_DIR", folder.join("target")).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let done = command.output().map_err(|cause| LabError::Io { action: "start Cargo".to_owned(), cause })?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    let from = words.find("error").unwrap_or(0);
    let detail: String = words[from..].lines().take(8).collect::<Vec<&str>>().join("\n");
    Err(LabError::Peer { role: format!("build in {}", folder.display()), detail })
}

#[cfg(feature = "object-files")]
fn object_sizes(archive: &Path, side: Side) -> Result<Sizes, LabError> {
    super::object::sizes(archive, super::object::Roots::Side(side))
}

/// Fails: the settings have been checked, so this is not called.
#[cfg(not(feature = "object-files"))]
fn object_sizes(_: &Path, _: Side) -> Result<Sizes, LabError> {
    Err(super::settings::without_object_files())
}
