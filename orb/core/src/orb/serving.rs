//! The server side of an ORB: it installs the adapter, listens, and creates references to its objects.

use std::io;

use spandrel_cdr::{GiopVersion, Ior, TaggedComponent};
use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, component::Component, ids};
use spandrel_sync::Arc;
use spandrel_transport::{IIOP, PublishedAddresses};

use super::Orb;
use crate::{Collocation, Endpoint, ObjectAdapter, ObjectRef, destination::Destination};

impl Orb {
    /// Installs the object adapter and returns it; if there is one already, returns that.
    pub fn install_adapter(&self, adapter: Arc<dyn ObjectAdapter>) -> Arc<dyn ObjectAdapter> {
        Arc::clone(self.0.serving.adapter.get_or_init(|| adapter))
    }

    /// A reference to an object of this ORB's server. Begins to listen at first use.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on an endpoint; BAD_INV_ORDER after shutdown.
    pub fn make_reference(&self, type_id: &str, object_key: Vec<u8>) -> Result<ObjectRef, SystemException> {
        self.make_reference_with(type_id, object_key, &[])
    }

    /// As [`make_reference`](Self::make_reference), with further components in each profile.
    pub(crate) fn make_reference_with(
        &self,
        type_id: &str,
        object_key: Vec<u8>,
        added: &[TaggedComponent],
    ) -> Result<ObjectRef, SystemException> {
        let mut profiles = Vec::new();
        let own = [Component::OrbType(ids::ORB_TYPE).encode()?, self.0.settings.code_sets.component().encode()?];
        let PublishedAddresses { hosts, components: offered, .. } = self.published()?;
        let version = self.0.settings.wire.version;
        let components = [&own, &offered[..], added].concat();
        let alternates = if version >= GiopVersion::V1_2 { alternates(&hosts)? } else { Vec::new() };
        for (host, port) in hosts {
            let mut components = components.clone();
            if profiles.is_empty() {
                components.extend_from_slice(&alternates);
            }
            let profile = IiopProfile { version, host, port, object_key: object_key.clone(), components };
            profiles.push(profile.encode()?);
        }
        Ok(ObjectRef::new(self.clone(), Ior { type_id: type_id.to_owned(), profiles }))
    }

    /// Begins to listen at first use, and returns the hosts and ports in references.
    ///
    /// # Errors
    /// As [`Orb::make_reference`].
    pub fn listen(&self) -> Result<Vec<(String, u16)>, SystemException> {
        self.published().map(|published| published.hosts)
    }

    /// The published addresses, if the server listens.
    pub(crate) fn published_already(&self) -> Option<PublishedAddresses> {
        self.0.serving.published.lock().clone()
    }

    /// Begins to listen at first use, and returns the addresses for references.
    ///
    /// # Errors
    /// As [`Orb::make_reference`].
    pub fn published(&self) -> Result<PublishedAddresses, SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        let mut published = self.0.serving.published.lock();
        if let Some(published) = &*published {
            return Ok(published.clone());
        }
        let default = [Endpoint::new("", 0)];
        let endpoints = match &*self.0.settings.serving.endpoints {
            [] => &default[..],
            configured => configured,
        };
        let endpoints: Vec<Endpoint> = endpoints.iter().map(|endpoint| self.publishing(endpoint)).collect();
        let endpoints = &endpoints[..];
        let opened = self.0.serving.server.listen(self, endpoints).map_err(|error| cannot_listen(endpoints, error))?;
        Ok(published.insert(opened).clone())
    }

    /// The endpoint with the addresses of `-ORBPublish`, unless it has a `publish` option.
    fn publishing(&self, endpoint: &Endpoint) -> Endpoint {
        match &self.0.settings.serving.publish {
            Some(publish) if endpoint.scheme() == IIOP && endpoint.option("publish").is_none() => {
                endpoint.clone().with("publish", publish)
            }
            _ => endpoint.clone(),
        }
    }

    /// Marks the destinations that are endpoints of this ORB.
    pub(super) fn mark_own(&self, mut destinations: Vec<Destination>) -> Vec<Destination> {
        if self.0.settings.serving.collocation != Collocation::No {
            let published = self.0.serving.published.lock();
            let own = published.as_ref().map_or(&[][..], |published| &published.addresses);
            for Destination { peer, is_collocated, .. } in &mut destinations {
                *is_collocated = own.contains(peer.address());
            }
        }
        destinations
    }
}

/// The components for the first profile, which name the other addresses. Some clients read only the first
/// profile, others ignore these components.
fn alternates(hosts: &[(String, u16)]) -> Result<Vec<TaggedComponent>, SystemException> {
    let others = hosts.iter().skip(1).filter(|(_, port)| *port != 0);
    let component =
        |(host, port): &(String, u16)| Component::AlternateIiopAddress { host: host.clone(), port: *port }.encode();
    Ok(others.map(component).collect::<Result<_, _>>()?)
}

fn cannot_listen(endpoints: &[Endpoint], error: io::Error) -> SystemException {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    SystemException::initialize(0, CompletionStatus::No)
        .with_detail(|| format!("cannot listen on {}", endpoints.join(", ")))
        .with_source(error)
}
