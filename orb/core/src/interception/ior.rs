//! IOR interceptors: services that add to the references that an adapter makes (16.5).

use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, SystemException, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, minor};
use spandrel_sync::Arc;

use super::{Interceptor, flow, not_available, registry::ior_interceptors};
use crate::{AdapterDescription, AdapterState, ObjectRef, Orb, Policy, PolicyType};

/// An interceptor that is called when an adapter is made (`IORInterceptor` and `IORInterceptor_3_0`, 16.5.4).
///
/// The default of each point does nothing.
pub trait IorInterceptor: Interceptor {
    /// Called while an adapter is made: components may be added to all its references.
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        let _ = info;
    }

    /// Called after all components have been added: the factory of references may be replaced.
    ///
    /// # Errors
    /// An exception that prevents the creation of the adapter: its creator gets OBJ_ADAPTER.
    fn components_established(&self, info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called when an adapter manager has changed its state, and with it all its adapters.
    fn adapter_manager_state_changed(&self, manager_id: &str, state: AdapterState) {
        let _ = (manager_id, state);
    }

    /// Called when adapters have changed their state otherwise: they were destroyed.
    fn adapter_state_changed(&self, templates: &[ObjectReferenceTemplate], state: AdapterState) {
        let _ = (templates, state);
    }
}

/// The identity of an adapter (`ObjectReferenceTemplate`, 16.5.6).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ObjectReferenceTemplate {
    /// The server's name (`-ORBServerId`).
    pub server_id: String,
    /// The ORB's name (`-ORBId`).
    pub orb_id: String,
    /// The names of the adapters from the root to this one.
    pub adapter_name: Vec<String>,
}

/// Makes the references of an adapter in its place (`ObjectReferenceFactory`, 16.5.6).
pub trait ObjectReferenceFactory: Send + Sync {
    /// Returns the reference of an object. `made` is the adapter's own one, with all components.
    ///
    /// # Errors
    /// An exception that prevents the creation of the reference.
    fn make_object(
        &self,
        template: &ObjectReferenceTemplate,
        object_id: &[u8],
        made: ObjectRef,
    ) -> Result<ObjectRef, SystemException>;
}

/// An adapter that is being made (16.5.5).
pub struct IorInfo<'a> {
    adapter: &'a dyn AdapterDescription,
    template: ObjectReferenceTemplate,
    components: Vec<TaggedComponent>,
    factory: Option<Arc<dyn ObjectReferenceFactory>>,
    /// Whether all components have been added.
    is_established: bool,
}

impl IorInfo<'_> {
    /// The adapter's policy of this type, if it has one.
    #[must_use]
    pub fn effective_policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter.policy(policy_type)
    }

    /// Adds a component to all profiles.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `establish_components`.
    pub fn add_ior_component(&mut self, component: TaggedComponent) -> Result<(), SystemException> {
        if self.is_established {
            return Err(not_available());
        }
        self.components.push(component);
        Ok(())
    }

    /// Adds a component to the profiles with this tag.
    ///
    /// # Errors
    /// BAD_PARAM if references have no such profile: all have `TAG_INTERNET_IOP`, and no other. BAD_INV_ORDER
    /// except in `establish_components`.
    pub fn add_ior_component_to_profile(
        &mut self,
        component: TaggedComponent,
        profile_id: u32,
    ) -> Result<(), SystemException> {
        match profile_id {
            // Components without a protocol are part of IIOP profiles, too (CORBA 3.3 Part 2, 9.7.3).
            TAG_INTERNET_IOP | TAG_MULTIPLE_COMPONENTS => self.add_ior_component(component),
            other => Err(SystemException::bad_param(minor::NO_SUCH_PROFILE, CompletionStatus::No)
                .with_detail(|| format!("references have no profile with the tag {other:#x}"))),
        }
    }

    /// The id of the adapter's manager.
    #[must_use]
    pub fn manager_id(&self) -> &str {
        self.adapter.manager_id()
    }

    /// The adapter's state.
    #[must_use]
    pub fn state(&self) -> AdapterState {
        self.adapter.state()
    }

    /// The identity of the adapter.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `components_established`.
    pub fn adapter_template(&self) -> Result<&ObjectReferenceTemplate, SystemException> {
        if self.is_established { Ok(&self.template) } else { Err(not_available()) }
    }

    /// The factory of the adapter's references; `None` if the adapter makes them.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `components_established`.
    pub fn current_factory(&self) -> Result<Option<Arc<dyn ObjectReferenceFactory>>, SystemException> {
        if self.is_established { Ok(self.factory.clone()) } else { Err(not_available()) }
    }

    /// Replaces the factory of the adapter's references.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `components_established`.
    pub fn set_current_factory(&mut self, factory: Arc<dyn ObjectReferenceFactory>) -> Result<(), SystemException> {
        if !self.is_established {
            return Err(not_available());
        }
        self.factory = Some(factory);
        Ok(())
    }
}

impl fmt::Debug for IorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IorInfo")
            .field("template", &self.template)
            .field("components", &self.components)
            .finish_non_exhaustive()
    }
}

/// The components and the factory that interceptors have given an adapter.
#[derive(Clone)]
pub(crate) struct ReferenceCustomization(Arc<IorInfoState>);

struct IorInfoState {
    template: ObjectReferenceTemplate,
    components: Vec<TaggedComponent>,
    factory: Option<Arc<dyn ObjectReferenceFactory>>,
}

impl ReferenceCustomization {
    pub(crate) fn make_reference(
        &self,
        orb: &Orb,
        type_id: &str,
        object_id: &[u8],
        object_key: Vec<u8>,
        offered: Option<TaggedComponent>,
    ) -> Result<ObjectRef, SystemException> {
        let IorInfoState { template, components, factory } = &*self.0;
        let components: Vec<TaggedComponent> = offered.into_iter().chain(components.iter().cloned()).collect();
        let made = orb.make_reference_with(type_id, object_key, &components)?;
        match factory {
            Some(factory) => factory.make_object(template, object_id, made),
            None => Ok(made),
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
pub(crate) fn establish(
    orb: &Orb,
    adapter: &dyn AdapterDescription,
) -> Result<Option<ReferenceCustomization>, SystemException> {
    let interceptors = ior_interceptors(orb);
    if interceptors.is_empty() {
        return Ok(None);
    }
    let template = template(orb, adapter.adapter_name());
    let mut info = IorInfo { adapter, template, components: Vec::new(), factory: None, is_established: false };
    for interceptor in interceptors {
        notify(&**interceptor, |interceptor| interceptor.establish_components(&mut info));
    }
    info.is_established = true;
    for interceptor in interceptors {
        flow::catch_panic(|| interceptor.components_established(&mut info)).map_err(|exception| {
            SystemException::obj_adapter(minor::IOR_INTERCEPTOR_FAILED, CompletionStatus::No)
                .with_detail(|| format!("an interceptor prevents the creation of the adapter: {exception}"))
                .with_source(exception)
        })?;
    }
    let IorInfo { template, components, factory, .. } = info;
    Ok(Some(ReferenceCustomization(Arc::new(IorInfoState { template, components, factory }))))
}

/// Reports a new state of an adapter manager to the interceptors. Called with no lock held.
pub(crate) fn report_manager_state(orb: &Orb, manager_id: &str, state: AdapterState) {
    for interceptor in ior_interceptors(orb) {
        notify(&**interceptor, |interceptor| interceptor.adapter_manager_state_changed(manager_id, state));
    }
}

/// Reports a new state of single adapters to the interceptors. Called with no lock held.
pub(crate) fn report_adapter_state(orb: &Orb, adapter_names: &[Vec<String>], state: AdapterState) {
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
    let outcome = flow::catch_panic(|| -> Result<(), SystemException> {
        point(interceptor);
        Ok(())
    });
    if let Err(exception) = outcome {
        tracing::error!(name = interceptor.name(), %exception, "an IOR interceptor failed");
    }
}
