//! The making of an adapter's references, in which IOR interceptors take part (CORBA 3.3 Part 1, 16.5).
//!
//! Adapters call these functions with and without interceptors.
//!
//! `Orb::make_reference_with` (`references`) writes the profiles and their addresses.

use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;
use spandrel_transport::PublishedAddresses;

use crate::{
    AdapterDescription, AdapterState, ObjectRef, Operations, Orb,
    client::operation_index,
    interception::{
        IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate, catch_panic, ior_interceptors,
    },
};

/// The additions of interceptors to all references of an adapter. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// `None` in most cases.
    custom: Option<ReferenceCustomization>,
    /// The operation table that is offered to Spandrel clients.
    operations: Option<&'static Operations>,
    /// Those of one object, from the executor of its adapter.
    components: Vec<TaggedComponent>,
    /// The addresses of one object, if they are not those of the ORB, in their order.
    addresses: Vec<PublishedAddresses>,
}

impl References {
    /// Gives the references these addresses of the ORB's server, in place of the published ones. The profiles of each entry
    /// come before those of the next one.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Vec<PublishedAddresses>) -> Self {
        self.addresses = addresses;
        self
    }

    /// Adds these components to those of the references.
    #[must_use]
    pub fn with_components(mut self, components: Vec<TaggedComponent>) -> Self {
        self.components.extend(components);
        self
    }

    /// Offers an operation table to clients, which may name operations by their index in it
    /// ([`OperationDemux::Active`](crate::OperationDemux)).
    #[must_use]
    pub fn offering(mut self, operations: &'static Operations) -> Self {
        self.operations = Some(operations);
        self
    }

    /// Calls the IOR interceptors for an adapter that is being made. Called once for each, with no lock held.
    ///
    /// # Errors
    /// OBJ_ADAPTER if an interceptor prevents its creation (16.5.4.2).
    pub fn establish_components(orb: &Orb, adapter: &dyn AdapterDescription) -> Result<Self, SystemException> {
        Ok(Self { custom: establish(orb, adapter)?, ..Self::default() })
    }

    /// Makes a reference to an object of the adapter, with the additions of interceptors. The ORB begins to
    /// listen with its first reference.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on an endpoint; BAD_INV_ORDER after shutdown; those of a factory of
    /// interceptors.
    pub fn make(
        &self,
        orb: &Orb,
        type_id: &str,
        object_id: &[u8],
        object_key: Vec<u8>,
    ) -> Result<ObjectRef, SystemException> {
        let offered = self.operations.and_then(operation_index::component);
        let components: Vec<_> = offered.into_iter().chain(self.components.iter().cloned()).collect();
        match &self.custom {
            Some(custom) => custom.make_reference(orb, type_id, object_id, object_key, &self.addresses, components),
            None => orb.make_reference_with(type_id, object_key, &self.addresses, &components),
        }
    }
}

/// The components and the factory that interceptors have given an adapter.
#[derive(Clone)]
struct ReferenceCustomization(Arc<IorInfoState>);

struct IorInfoState {
    template: ObjectReferenceTemplate,
    components: Vec<TaggedComponent>,
    factory: Option<Arc<dyn ObjectReferenceFactory>>,
}

impl ReferenceCustomization {
    fn make_reference(
        &self,
        orb: &Orb,
        type_id: &str,
        object_id: &[u8],
        object_key: Vec<u8>,
        at: &[PublishedAddresses],
        mut all: Vec<TaggedComponent>,
    ) -> Result<ObjectRef, SystemException> {
        let IorInfoState { template, components, factory } = &*self.0;
        all.extend_from_slice(components);
        let reference = orb.make_reference_with(type_id, object_key, at, &all)?;
        match factory {
            Some(factory) => factory.make_object(template, object_id, reference),
            None => Ok(reference),
        }
    }
}

impl fmt::Debug for ReferenceCustomization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceCustomization").field("components", &self.0.components).finish_non_exhaustive()
    }
}

/// Calls the interceptors for an adapter that is being made; `None` without interceptors. Called once for
/// each adapter, with no lock held.
///
/// # Errors
/// OBJ_ADAPTER if an interceptor prevents its creation (16.5.4.2).
fn establish(orb: &Orb, adapter: &dyn AdapterDescription) -> Result<Option<ReferenceCustomization>, SystemException> {
    let interceptors = ior_interceptors(orb);
    if interceptors.is_empty() {
        return Ok(None);
    }
    let template = template(orb, adapter.adapter_name());
    let mut info = IorInfo::new(adapter, template);
    for interceptor in interceptors {
        notify(&**interceptor, |interceptor| interceptor.establish_components(&mut info));
    }
    info.is_established = true;
    for interceptor in interceptors {
        catch_panic(|| interceptor.components_established(&mut info)).map_err(|exception| {
            SystemException::obj_adapter(minor::IOR_INTERCEPTOR_FAILED, CompletionStatus::No)
                .with_detail(|| format!("an interceptor prevents the creation of the adapter: {exception}"))
                .with_source(exception)
        })?;
    }
    let IorInfo { template, components, factory, .. } = info;
    Ok(Some(ReferenceCustomization(Arc::new(IorInfoState { template, components, factory }))))
}

/// Reports a new state of an adapter manager to IOR interceptors. Called with no lock held.
pub fn adapter_manager_state_changed(orb: &Orb, manager_id: &str, state: AdapterState) {
    for interceptor in ior_interceptors(orb) {
        notify(&**interceptor, |interceptor| interceptor.adapter_manager_state_changed(manager_id, state));
    }
}

/// Reports a new state of single adapters to IOR interceptors: they were destroyed. Called with no lock held.
pub fn adapter_state_changed(orb: &Orb, adapter_names: &[Vec<String>], state: AdapterState) {
    let interceptors = ior_interceptors(orb);
    if interceptors.is_empty() {
        return;
    }
    let templates: Vec<_> = adapter_names.iter().map(|name| template(orb, name.clone())).collect();
    for interceptor in interceptors {
        notify(&**interceptor, |interceptor| interceptor.adapter_state_changed(&templates, state));
    }
}

fn template(orb: &Orb, adapter_name: Vec<String>) -> ObjectReferenceTemplate {
    let (server_id, orb_id) = (orb.server_id().to_owned(), orb.id().to_owned());
    ObjectReferenceTemplate { server_id, orb_id, adapter_name }
}

/// Calls a point that raises nothing; a panic is ignored (16.5.4.1).
fn notify(interceptor: &dyn IorInterceptor, point: impl FnOnce(&dyn IorInterceptor)) {
    let outcome = catch_panic(|| -> Result<(), SystemException> {
        point(interceptor);
        Ok(())
    });
    if let Err(exception) = outcome {
        tracing::error!(name = interceptor.name(), %exception, "an IOR interceptor failed");
    }
}
