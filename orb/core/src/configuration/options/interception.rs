//! Options of interceptors and ORB initialisers.

use spandrel_sync::Arc;

use crate::interception::{IorInterceptor, ServerRequestInterceptor};
use crate::{
    BindingPolicies, OrbBuilder,
    interception::{
        BindingInitializer, ClientRequestInterceptor, DuplicateName, Initializers, OrbInitializer,
        RegisteredInterceptors, SlotId,
    },
    orb::parts,
};

impl OrbBuilder {
    /// The interceptors, one of which is added.
    fn interceptors_mut(&mut self) -> &mut RegisteredInterceptors {
        parts::record_use();
        &mut self.interceptors
    }

    /// The initialisers, one of which is added.
    pub(super) fn initializers_mut(&mut self) -> &mut Initializers {
        parts::record_use();
        &mut self.initializers
    }

    /// Registers an interceptor for every request that is sent. It is called after those registered before
    /// (16.7.2.8).
    ///
    /// # Errors
    /// Another interceptor has its name.
    pub fn client_request_interceptor(
        mut self,
        interceptor: impl ClientRequestInterceptor + 'static,
    ) -> Result<Self, DuplicateName> {
        self.interceptors_mut().add_client(Arc::new(interceptor))?;
        Ok(self)
    }

    /// Registers an interceptor for every request to a servant. It is called after those registered before
    /// (16.7.2.9).
    ///
    /// # Errors
    /// Another interceptor has its name.
    pub fn server_request_interceptor(
        mut self,
        interceptor: impl ServerRequestInterceptor + 'static,
    ) -> Result<Self, DuplicateName> {
        self.interceptors_mut().add_server(Arc::new(interceptor))?;
        Ok(self)
    }

    /// Registers an interceptor for every adapter that is created. It is called after those registered before
    /// (16.7.2.10).
    ///
    /// # Errors
    /// Another interceptor has its name.
    pub fn ior_interceptor(mut self, interceptor: impl IorInterceptor + 'static) -> Result<Self, DuplicateName> {
        self.interceptors_mut().add_ior(Arc::new(interceptor))?;
        Ok(self)
    }

    /// Adds a part that obeys policies of the scope [`Binding`](crate::PolicyScope::Binding) and those in references. An
    /// ORB has the first one that is added. Such a part, `spandrel-rt`, has a method of its own for programs.
    #[must_use]
    pub fn binding_policies<B: BindingPolicies>(mut self, policies: B) -> Self {
        self.settings.wire.read_policies = Some(B::read_policies);
        self.initializer(BindingInitializer(Arc::new(policies)))
    }

    /// Allocates a slot of [`Orb::pi_current`](crate::Orb::pi_current) (16.7.2.11).
    #[must_use]
    pub fn allocate_slot(mut self) -> (Self, SlotId) {
        let id = self.interceptors_mut().allocate_slot();
        (self, id)
    }

    /// Registers an ORB initialiser. It is called while the ORB is created, after those registered before
    /// (`register_orb_initializer`, 16.7.3).
    #[must_use]
    pub fn initializer(mut self, initializer: impl OrbInitializer + 'static) -> Self {
        self.initializers_mut().0.push(Arc::new(initializer));
        self
    }
}
