//! The administration as a CORBA object (`idl/ServiceConfigurator.idl`): the remote query for a service's `info` of paper
//! 002, 2.5.1, and the rest.

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    ::spandrel::include_idl!("ServiceConfigurator");
}

use spandrel::{ObjectRef, Orb, Poa, SystemException};

pub use generated::spandrel::ServiceConfigurator;
use generated::spandrel::service_configurator::{
    InfoError, ProcessError, ReconfigureError, RemoveError, ResumeError, SuspendError,
};
pub use generated::spandrel::service_configurator::{Refused, Service};
use generated::spandrel::{ServiceConfiguratorServant, ServiceConfiguratorSkeleton};
use spandrel_configurator::{ConfigureError, ServiceStatus};

use crate::administered::Administered;
use crate::arguments::ArgumentError;

/// The plain key of the object.
pub const KEY: &str = "ServiceConfigurator";

struct Servant {
    administered: Administered,
    /// The service of the ORB, which cannot end itself.
    orb: String,
}

/// The administration object while it is active.
pub(crate) struct ActiveObject {
    orb: Orb,
    adapter: Poa,
    reference: ObjectRef,
}

/// Activates the object in the root adapter of an ORB.
pub(crate) fn activate(orb: &Orb, administered: Administered, name: &str) -> Result<ActiveObject, ArgumentError> {
    let adapter = Poa::root(orb)?;
    let servant = Servant { administered, orb: name.to_owned() };
    let reference = adapter.activate(ServiceConfiguratorSkeleton::new(servant))?;
    orb.set_object_key_alias(KEY, &reference)?;
    Ok(ActiveObject { orb: orb.clone(), adapter, reference })
}

impl ActiveObject {
    pub(crate) fn deactivate(self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.orb.remove_object_key_alias(KEY);
        Ok(self.adapter.deactivate(&self.reference)?)
    }
}

fn refused(reason: impl Into<String>) -> Refused {
    Refused { reason: reason.into() }
}

fn service(status: ServiceStatus) -> Service {
    Service {
        name: status.name,
        kind: status.kind.keyword().to_owned(),
        source: status.source,
        parameters: status.parameters,
        is_suspended: status.is_suspended,
        modules: status.modules,
    }
}

impl Servant {
    fn change<T>(
        &self,
        change: impl FnOnce(&spandrel_configurator::Configurator) -> Result<T, ConfigureError>,
    ) -> Result<T, Refused> {
        change(self.administered.get().map_err(refused)?).map_err(|error| {
            let reason = error.in_line();
            tracing::warn!("administration: {reason}");
            refused(reason)
        })
    }

    fn not_itself(&self, name: &str) -> Result<(), Refused> {
        if name == self.orb { Err(refused("the ORB of this object cannot end or suspend itself")) } else { Ok(()) }
    }
}

impl ServiceConfiguratorServant for Servant {
    fn list(&self) -> Result<Vec<Service>, SystemException> {
        let services = self.administered.get().map(|configurator| configurator.repository().iter());
        Ok(services.into_iter().flatten().map(service).collect())
    }

    fn info(&self, name: &str) -> Result<String, InfoError> {
        let configurator = self.administered.get().map_err(refused)?;
        Ok(configurator.repository().info(name).ok_or_else(|| refused(format!("there is no service `{name}`")))?)
    }

    fn process(&self, directives: &str) -> Result<String, ProcessError> {
        Ok(self.change(|configurator| configurator.process_text(directives))?.to_string())
    }

    fn suspend(&self, name: &str) -> Result<(), SuspendError> {
        self.not_itself(name)?;
        self.change(|configurator| configurator.suspend(name))?;
        Ok(())
    }

    fn resume(&self, name: &str) -> Result<(), ResumeError> {
        self.change(|configurator| configurator.resume(name))?;
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), RemoveError> {
        self.not_itself(name)?;
        self.change(|configurator| configurator.remove(name))?;
        Ok(())
    }

    fn reconfigure(&self) -> Result<String, ReconfigureError> {
        Ok(self.change(spandrel_configurator::Configurator::reconfigure)?.to_string())
    }
}
