//! The server side of an ORB: it installs the adapter, listens, and creates references to its objects.

use spandrel_cdr::{GiopVersion, Ior, TaggedComponent};
use spandrel_giop::{IiopProfile, SystemException, component::Component, ids};
use spandrel_transport::PublishedAddresses;

use super::Orb;
use crate::{ObjectRef, server_side::no_server_side};

impl Orb {
    /// A reference to an object of this ORB's server. Begins to listen at first use.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on an endpoint; BAD_INV_ORDER after shutdown, or without an object adapter.
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
    pub fn published_already(&self) -> Option<PublishedAddresses> {
        self.server_side()?.published()
    }

    /// Begins to listen at first use, and returns the addresses for references.
    ///
    /// # Errors
    /// As [`Orb::make_reference`].
    pub fn published(&self) -> Result<PublishedAddresses, SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.server_side().ok_or_else(no_server_side)?.listen(self)
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
