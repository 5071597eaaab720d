//! IDL into an interface repository, and out of it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use spandrel::dynamic::Descriptions;
use spandrel::services::repository::{self, Changes};
use spandrel::{ObjectRef, Orb};
use spandrel_idl::Model;

use crate::client_args::CallArgs;
use crate::common;
use crate::naming;

/// The initial reference, or else the repository beside the naming service.
pub(crate) const DEFAULT: &str = "corbaloc:rir:/InterfaceRepository";

/// The repository of a URL.
fn resolve(orb: &Orb, url: &str) -> anyhow::Result<ObjectRef> {
    if url == DEFAULT {
        return repository::default_repository(orb).context("cannot find the interface repository");
    }
    naming::object(orb, url)
}

/// A repository to be filled.
#[derive(Debug)]
pub(crate) struct Filler {
    repository: ObjectRef,
    url: String,
    /// The reference needs its ORB.
    _orb: Orb,
}

impl Filler {
    pub(crate) fn new(call: &CallArgs, url: &str) -> anyhow::Result<Self> {
        let orb_of_command = call.orb()?;
        let repository = resolve(&orb_of_command, url)?;
        Ok(Self { repository, url: url.to_owned(), _orb: orb_of_command })
    }

    /// Enters the definitions of a file, and prints the changes.
    pub(crate) fn fill(&self, file: &Path, model: Model) -> anyhow::Result<()> {
        let changes = repository::fill(&self.repository, &Descriptions::from(model))
            .with_context(|| format!("cannot enter {} into the repository {}", file.display(), self.url))?;
        let Changes { created, replaced, removed, unchanged } = changes;
        let mut text = String::new();
        for (sign, names) in [("+", &created), ("~", &replaced), ("-", &removed)] {
            names.iter().for_each(|name| text.push_str(&format!("{sign} {name}\n")));
        }
        let (created, replaced, removed) = (created.len(), replaced.len(), removed.len());
        let file = file.display();
        common::print(&format!(
            "{text}{file}: {created} created, {replaced} replaced, {removed} removed, {unchanged} unchanged\n"
        ))
    }
}

/// Prints the definitions of a repository as IDL, or those of one scope.
pub(crate) fn print(call: &CallArgs, url: &str, scopes: &[PathBuf]) -> anyhow::Result<()> {
    let scope = match scopes {
        [] => None,
        [scope] => Some(scope.to_string_lossy()),
        _ => return Err(common::usage("--from-repository takes one scope")),
    };
    let text = idl(call, url, scope.as_deref())?;
    common::print(&text)
}

/// Describes all definitions of a repository.
pub(crate) fn describe(call: &CallArgs, url: &str) -> anyhow::Result<Descriptions> {
    let text = idl(call, url, None)?;
    spandrel::dynamic::describe(&text)
        .with_context(|| format!("the repository {url} has definitions that are not valid IDL"))
}

fn idl(call: &CallArgs, url: &str, scope: Option<&str>) -> anyhow::Result<String> {
    let orb_of_command = call.orb()?;
    let repository = resolve(&orb_of_command, url)?;
    repository::print(&repository, scope).with_context(|| format!("cannot print the repository {url}"))
}
