//! The places of Harness and WorkTeam in the naming service.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use spandrel::services::cos_naming::naming_context::{BindNewContextError, NotFoundReason, ResolveError};
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
use spandrel::services::name;
use spandrel::{ObjectRef, Orb};

/// The naming service of this machine.
pub const DEFAULT_NAMING: &str = "corbaloc::127.0.0.1:2809/NameService";
/// The time limit of a call to the naming service.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// The name of a machine's Harness: `orchestrator/servers/HOST/Harness`.
#[must_use]
pub fn harness(host: &str) -> Vec<NameComponent> {
    path(["orchestrator", "servers", host, "Harness"])
}

/// The name of a machine's WorkTeam: `orchestrator/clients/HOST/WorkTeam`.
#[must_use]
pub fn work_team(host: &str) -> Vec<NameComponent> {
    path(["orchestrator", "clients", host, "WorkTeam"])
}

fn path<'p>(ids: impl IntoIterator<Item = &'p str>) -> Vec<NameComponent> {
    ids.into_iter().map(|id| NameComponent { id: id.to_owned(), kind: String::new() }).collect()
}

/// A naming service as the agents use it.
#[derive(Clone, Debug)]
pub struct Names(NamingContextExt);

impl Names {
    /// The service at this URL.
    ///
    /// # Errors
    /// A text that is no URL of an object.
    pub fn at(orb: &Orb, url: &str) -> anyhow::Result<Self> {
        let object = orb.string_to_object(url).with_context(|| format!("invalid value `{url}` for --naming"))?;
        Ok(Self(NamingContextExt::unchecked_narrow(&object)))
    }

    /// Binds an object to a name, or replaces the one that is bound, and creates the contexts above it.
    ///
    /// # Errors
    /// A naming service that cannot be reached, or refuses.
    pub fn register(&self, name: &[NameComponent], object: &ObjectRef) -> anyhow::Result<()> {
        let shown = name::to_string(name);
        for length in 1..name.len() {
            match self.0.bind_new_context(&name[..length]) {
                Ok(_) | Err(BindNewContextError::AlreadyBound(_)) => {}
                Err(error) => return Err(anyhow!(error).context(format!("cannot create the contexts of /{shown}"))),
            }
        }
        self.0.rebind(name, Some(object)).with_context(|| format!("cannot register /{shown} in the naming service"))
    }

    /// Unbinds a name in the naming service.
    ///
    /// # Errors
    /// A naming service that cannot be reached, or refuses.
    pub fn remove(&self, name: &[NameComponent]) -> anyhow::Result<()> {
        self.0.unbind(name).with_context(|| format!("cannot remove /{} from the naming service", name::to_string(name)))
    }

    /// The object that the naming service has under a name.
    ///
    /// # Errors
    /// No object has this name; a naming service that cannot be reached.
    pub fn resolve(&self, name: &[NameComponent]) -> anyhow::Result<ObjectRef> {
        let shown = name::to_string(name);
        match self.0.resolve(name) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => bail!("/{shown} is bound to nil in the naming service"),
            Err(ResolveError::NotFound(cause)) if cause.why == NotFoundReason::MissingNode => {
                bail!("/{shown} is not in the naming service: no agent has registered it")
            }
            Err(error) => Err(anyhow!(error).context(format!("cannot find /{shown} in the naming service (--naming)"))),
        }
    }
}
