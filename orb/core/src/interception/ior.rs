//! IOR interceptors: services that add to the references that an adapter makes (16.5).
//!
//! `adapter_references` calls these interceptors, and makes the references with their additions.

use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, SystemException, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, minor};
use spandrel_sync::Arc;

use super::{Interceptor, not_available};
use crate::{AdapterDescription, AdapterState, ObjectRef, Policy, PolicyType};

/// An interceptor that is called when an adapter is made (`IORInterceptor` and `IORInterceptor_3_0`, 16.5.4).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::Orb;
/// use spandrel::interception::{Interceptor, IorInfo, IorInterceptor, TaggedComponent};
///
/// /// Adds the name of the data centre to all references, in a component by which clients choose a server.
/// struct DataCentre(&'static str);
///
/// impl Interceptor for DataCentre {
///     fn name(&self) -> &str {
///         "data centre"
///     }
/// }
///
/// impl IorInterceptor for DataCentre {
///     fn establish_components(&self, info: &mut IorInfo<'_>) {
///         let component = TaggedComponent { tag: 0x4d59_0001, data: self.0.as_bytes().to_vec() };
///         info.add_ior_component(component).expect("components are added in `establish_components`");
///     }
/// }
///
/// let orb = Orb::builder().ior_interceptor(DataCentre("oslo"))?.build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
        reference: ObjectRef,
    ) -> Result<ObjectRef, SystemException>;
}

/// An adapter that is being made (16.5.5).
pub struct IorInfo<'a> {
    adapter: &'a dyn AdapterDescription,
    pub(crate) template: ObjectReferenceTemplate,
    pub(crate) components: Vec<TaggedComponent>,
    pub(crate) factory: Option<Arc<dyn ObjectReferenceFactory>>,
    /// Whether all components have been added.
    pub(crate) is_established: bool,
}

impl<'a> IorInfo<'a> {
    /// The information on an adapter without components of interceptors yet.
    pub(crate) fn new(adapter: &'a dyn AdapterDescription, template: ObjectReferenceTemplate) -> Self {
        Self { adapter, template, components: Vec::new(), factory: None, is_established: false }
    }
}

impl IorInfo<'_> {
    /// The value of a policy in force in the adapter (16.5.5.1); `None` if it has no policy of this type.
    #[must_use]
    pub fn effective_policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter.policy(policy_type)
    }

    /// Adds a component to every profile of the adapter's references.
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

    /// The id of the adapter's manager, unique within its ORB.
    #[must_use]
    pub fn manager_id(&self) -> &str {
        self.adapter.manager_id()
    }

    /// The treatment of requests by the adapter at this moment.
    #[must_use]
    pub fn state(&self) -> AdapterState {
        self.adapter.state()
    }

    /// The identity of the adapter, as its references will have it.
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

    /// Replaces the factory that makes the adapter's references from now on.
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
