//! The interface of an object, and its operations by name.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use spandrel::dynamic::{CallableError, Descriptions, InterfaceDescription, OperationDescription};
use spandrel::services::repository::{default_repository, interface_by_id, interface_of};
use spandrel::{ObjectRef, Orb};

use crate::common::{self, did_you_mean};

/// The options that name an interface and its source.
#[derive(Debug, clap::Args)]
pub(crate) struct InterfaceArgs {
    /// The file that declares the interface; without it, an interface repository describes it
    #[arg(long, value_name = "FILE")]
    idl: Option<PathBuf>,
    /// A folder with included files, or the file that declares the interface, as with --idl
    #[arg(short = 'I', long = "include", value_name = "PATH")]
    include: Vec<PathBuf>,
    /// The interface, as Bank::Account or by its repository id; by default that of the reference, or the one
    /// that the object supports
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

/// The interface of an object, and the IDL that declares it, unless it is of a repository.
pub(crate) struct Found {
    pub(crate) object: ObjectRef,
    pub(crate) interface: InterfaceDescription,
    pub(crate) idl: Option<Descriptions>,
}

impl InterfaceArgs {
    /// The interface of the object.
    pub(crate) fn find(&self, orb: &Orb, object: &ObjectRef) -> anyhow::Result<Found> {
        let given = self.interface.as_deref();
        let Some(file) = self.file()? else {
            let interface = from_repository(orb, given, object)?;
            return Ok(Found { object: object.clone(), interface, idl: None });
        };
        let folders: Vec<PathBuf> = self.include.iter().filter(|path| !is_idl(path)).cloned().collect();
        let idl = common::read_idl(file, &folders)?;
        let interface = find(&idl, file, given, object)?;
        Ok(Found { object: object.clone(), interface, idl: Some(idl) })
    }

    /// The file that declares the interface; `None` if that comes from a repository.
    fn file(&self) -> anyhow::Result<Option<&Path>> {
        let mut files = self.idl.iter().chain(self.include.iter().filter(|path| is_idl(path)));
        match (files.next(), files.next()) {
            (Some(one), Some(other)) => {
                let both = format!("{} and {} are given", one.display(), other.display());
                Err(common::usage(format!("{both}: one file declares the interface")))
            }
            (one, _) => Ok(one.map(PathBuf::as_path)),
        }
    }

    /// Whether the interface comes from a repository.
    pub(crate) fn is_of_repository(&self) -> bool {
        matches!(self.file(), Ok(None))
    }
}

/// Whether a path behind `-I` names an IDL file, which may be missing, rather than a folder.
fn is_idl(path: &Path) -> bool {
    path.is_file() || (!path.is_dir() && path.extension().is_some_and(|extension| extension == "idl"))
}

/// The initial reference of the interface repository.
const REPOSITORY: &str = "InterfaceRepository";

/// The interface as an interface repository describes it: the one with the given name or id, or that of the object.
fn from_repository(orb: &Orb, given: Option<&str>, object: &ObjectRef) -> anyhow::Result<InterfaceDescription> {
    // A repository that was given and cannot be read is an error of its own, also where the object names another.
    if orb.has_initial_reference(REPOSITORY) {
        let given = orb.resolve_initial_references(REPOSITORY);
        given.context("cannot use the given initial reference `InterfaceRepository`")?;
    }
    let described = match given {
        Some(name) => {
            let repository = default_repository(orb);
            let repository =
                repository.context("--interface needs --idl FILE, or -ORBInitRef InterfaceRepository=URL")?;
            interface_by_id(&repository, name)
        }
        None => interface_of(orb, object),
    };
    described
        .context("cannot find the object's interface: give --idl FILE, or --orb '-ORBInitRef InterfaceRepository=URL'")
}

/// The interface with the given name, or that of the reference, or the one of the file that the object
/// supports.
fn find(
    idl: &Descriptions,
    file: &Path,
    given: Option<&str>,
    object: &ObjectRef,
) -> anyhow::Result<InterfaceDescription> {
    let all: Vec<&str> = idl.interfaces().collect();
    if let Some(name) = given {
        return idl.interface(name).with_context(|| {
            format!("{} does not declare `{name}`{}", file.display(), did_you_mean(name, all.iter().copied()))
        });
    }
    if let Ok(interface) = idl.interface(object.type_id()) {
        return Ok(interface);
    }
    match all[..] {
        [only] if object.type_id().is_empty() => Ok(idl.interface(only)?),
        [] => bail!("{} declares no interface", file.display()),
        _ => supported(idl, &all, file, object),
    }
}

/// The interface of the file that the object supports: the one that inherits from all others of these.
fn supported(
    idl: &Descriptions,
    names: &[&str],
    file: &Path,
    object: &ObjectRef,
) -> anyhow::Result<InterfaceDescription> {
    // Local interfaces have no objects elsewhere.
    let described: Vec<_> = names.iter().filter_map(|name| idl.interface(name).ok().map(|of| (*name, of))).collect();
    let mut found: Vec<(&str, InterfaceDescription)> = Vec::new();
    for (name, interface) in described {
        // A base of one that the object supports needs no call.
        if found.iter().any(|(_, known)| known.is_a(interface.id())) {
            continue;
        }
        let is_supported = object.is_a(interface.id());
        if is_supported.with_context(|| format!("cannot ask the object whether it is a `{name}`"))? {
            found.retain(|(_, known)| !interface.is_a(known.id()));
            found.push((name, interface));
        }
    }
    let list = |names: &[&str]| names.join(", ");
    match found.len() {
        1 => Ok(found.remove(0).1),
        0 => bail!(
            "the object supports no interface of {}: --interface gives one of {} all the same",
            file.display(),
            list(names)
        ),
        _ => {
            let found: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            bail!("the object supports several interfaces: give --interface, one of {}", list(&found))
        }
    }
}

/// The operation, or the accessor of an attribute.
pub(crate) fn operation<'i>(
    interface: &'i InterfaceDescription,
    name: &str,
    arguments: usize,
) -> anyhow::Result<&'i OperationDescription> {
    interface.callable(name, arguments > 0).map_err(|error| {
        let similar = match &error {
            CallableError::Unknown { name, known, .. } => did_you_mean(name, known.iter().map(String::as_str)),
            _ => String::new(),
        };
        anyhow!("{error}{similar}")
    })
}
