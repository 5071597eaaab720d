//! What an ORB with a server does besides: it has an adapter, listens, and makes references to objects of its own.

use std::io;

use spandrel_cdr::{Ior, TaggedComponent};
use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, code_sets_component, component::Component, ids};
use spandrel_sync::Arc;

use super::Orb;
use crate::{Collocation, Endpoint, ObjectAdapter, ObjectRef, destination::Destination};

impl Orb {
    /// Installs what answers requests; the one that is there already, if there is one.
    pub fn install_adapter(&self, adapter: Arc<dyn ObjectAdapter>) -> Arc<dyn ObjectAdapter> {
        Arc::clone(self.0.serving.adapter.get_or_init(|| adapter))
    }

    /// A reference to an object of this ORB's server. Begins to listen if that has not happened yet.
    ///
    /// # Errors
    /// INITIALIZE if an endpoint cannot be listened on; BAD_INV_ORDER after shutdown.
    pub fn make_reference(&self, type_id: &str, object_key: Vec<u8>) -> Result<ObjectRef, SystemException> {
        self.make_reference_with(type_id, object_key, &[])
    }

    /// The same with further components.
    pub(crate) fn make_reference_with(
        &self,
        type_id: &str,
        object_key: Vec<u8>,
        added: &[TaggedComponent],
    ) -> Result<ObjectRef, SystemException> {
        let mut profiles = Vec::new();
        let own =
            [Component::OrbType(ids::ORB_TYPE).encode()?, code_sets_component(self.0.settings.wire.char_set).encode()?];
        let components = [&own, added].concat();
        for (host, port) in self.listen()? {
            let profile = IiopProfile {
                version: self.0.settings.wire.version,
                host,
                port,
                object_key: object_key.clone(),
                components: components.clone(),
            };
            profiles.push(profile.encode()?);
        }
        Ok(ObjectRef::new(self.clone(), Ior { type_id: type_id.to_owned(), profiles }))
    }

    /// Begins to listen, once; what references are to say.
    ///
    /// # Errors
    /// As [`Orb::make_reference`].
    pub fn listen(&self) -> Result<Vec<(String, u16)>, SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        let mut published = self.0.serving.published.lock();
        if published.is_empty() {
            let default = [Endpoint::new("", 0)];
            let endpoints = match &*self.0.settings.serving.endpoints {
                [] => &default[..],
                given => given,
            };
            *published =
                self.0.serving.server.listen(self, endpoints).map_err(|error| cannot_listen(endpoints, error))?;
        }
        Ok(published.clone())
    }

    /// Tells destinations that are this ORB's own endpoints so.
    pub(super) fn note_own(&self, mut destinations: Vec<Destination>) -> Vec<Destination> {
        if self.0.settings.serving.collocation != Collocation::No {
            let published = self.0.serving.published.lock();
            for Destination { peer, is_here, .. } in &mut destinations {
                *is_here = published.iter().any(|(host, port)| peer.is_at(host, *port));
            }
        }
        destinations
    }
}

fn cannot_listen(endpoints: &[Endpoint], error: io::Error) -> SystemException {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    SystemException::initialize(0, CompletionStatus::No)
        .with_detail(|| format!("cannot listen on {}", endpoints.join(", ")))
        .with_source(error)
}
