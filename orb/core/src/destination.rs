//! Where a request goes: a peer, and the part of its header that is the same every time.

use spandrel_cdr::{ByteOrder, GiopVersion, Ior, Wire};
use spandrel_giop::{CompletionStatus, IiopProfile, RequestTemplate, SystemException};
use spandrel_sync::Arc;

use crate::client::{Peer, PeerTable};

/// What the ORB writes when it may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireSettings {
    /// The newest version that is spoken; a profile may name an older one.
    pub(crate) version: GiopVersion,
    pub(crate) order: ByteOrder,
}

/// One profile of a reference, ready to be invoked.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) peer: Arc<Peer>,
    pub(crate) template: RequestTemplate,
    pub(crate) object_key: Vec<u8>,
}

impl Destination {
    fn new(profile: IiopProfile, settings: WireSettings, peers: &PeerTable) -> Self {
        let wire = Wire::new(settings.order, profile.version.min(settings.version));
        Self {
            peer: peers.peer(&profile.host, profile.port),
            template: RequestTemplate::new(wire, &profile.object_key),
            object_key: profile.object_key,
        }
    }

    /// The destinations of a reference, in its order of preference.
    ///
    /// # Errors
    /// INV_OBJREF if none of its profiles is IIOP, or one is malformed.
    pub(crate) fn all_of(ior: &Ior, settings: WireSettings, peers: &PeerTable) -> Result<Vec<Self>, SystemException> {
        let mut destinations = Vec::new();
        for profile in &ior.profiles {
            match IiopProfile::decode(profile) {
                Ok(Some(profile)) => destinations.push(Self::new(profile, settings, peers)),
                Ok(None) => {}
                Err(error) => return Err(describe_unusable(ior).with_source(error)),
            }
        }
        if destinations.is_empty() { Err(describe_unusable(ior)) } else { Ok(destinations) }
    }
}

/// INV_OBJREF for a reference without a usable profile.
fn describe_unusable(ior: &Ior) -> SystemException {
    let tags: Vec<u32> = ior.profiles.iter().map(|profile| profile.tag).collect();
    SystemException::inv_objref(0, CompletionStatus::No)
        .with_detail(format!("the reference to `{}` has no usable IIOP profile (profile tags {tags:?})", ior.type_id))
}
