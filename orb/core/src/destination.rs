//! Where a request goes: a peer, and the part of its header that is the same every time.

use spandrel_cdr::{ByteOrder, CdrError, CharSet, Encoder, GiopVersion, Ior, Limits, Wire};
use spandrel_giop::{
    Body, CompletionStatus, GiopError, IiopProfile, RequestTemplate, ResponseFlags, ServiceContext, SystemException,
    TransmissionCodeSets, component::Component, ids, minor,
};
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use crate::operation_index::OperationIndex;
use crate::{
    client::{Peer, PeerTable},
    request_cache::RequestCache,
};

/// What the ORB writes when it may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireSettings {
    /// The newest version that is spoken; a profile may name an older one.
    pub(crate) version: GiopVersion,
    pub(crate) order: ByteOrder,
    /// The native code set of narrow text.
    pub(crate) char_set: CharSet,
    /// What is refused although it is well formed.
    pub(crate) limits: Limits,
    /// Headers of requests are kept, to be sent again.
    pub(crate) caches_requests: bool,
    /// Kept headers say where the operation is in the server's table, if its reference offers that.
    #[cfg(feature = "server")]
    pub(crate) sends_operation_index: bool,
}

/// One profile of a reference, ready to be invoked.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) peer: Arc<Peer>,
    pub(crate) template: RequestTemplate,
    /// Headers of requests that were sent, if they are to be kept.
    cache: Option<RequestCache>,
    /// How the server's operations are hashed, if that is to be made use of.
    #[cfg(feature = "server")]
    operations: Option<OperationIndex>,
    pub(crate) object_key: Vec<u8>,
    /// The server is this ORB's own, and is called in this process.
    #[cfg(feature = "server")]
    pub(crate) is_here: bool,
    /// The server is one of ours.
    #[cfg(feature = "asynchronous")]
    pub(crate) is_ours: bool,
    /// What the first request of a connection says, if the reference names code sets.
    code_sets: Option<ServiceContext>,
}

impl Destination {
    fn new(profile: IiopProfile, settings: WireSettings, peers: &PeerTable) -> Result<Self, GiopError> {
        let version = profile.version.min(settings.version);
        // GIOP 1.0 knows of no code sets.
        let chosen = if version < GiopVersion::V1_1 { None } else { choose(&profile, settings.char_set)? };
        let wire = chosen.unwrap_or(TransmissionCodeSets::UNSAID);
        let wire = wire.on(Wire { limits: settings.limits, ..Wire::new(settings.order, version) });
        Ok(Self {
            peer: peers.peer(&profile.host, profile.port, chosen),
            template: RequestTemplate::new(wire, &profile.object_key),
            cache: settings.caches_requests.then(RequestCache::default),
            #[cfg(feature = "server")]
            operations: if settings.sends_operation_index && version >= GiopVersion::V1_2 {
                OperationIndex::of(&profile.components)
            } else {
                None
            },
            #[cfg(feature = "server")]
            is_here: false,
            #[cfg(feature = "asynchronous")]
            is_ours: is_ours(&profile)?,
            object_key: profile.object_key,
            code_sets: chosen.map(TransmissionCodeSets::to_context),
        })
    }

    /// Writes a request up to its body. An operation's name that CDR cannot say is reported by [`Body::end`].
    #[inline]
    pub(crate) fn begin(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
    ) -> Body {
        let cache = self.cache.as_ref().filter(|_| contexts.is_empty());
        match cache.and_then(|cache| cache.header(&self.template, operation, || self.operation_context(operation))) {
            Some(header) => header.begin(out, request_id, response),
            None => self.template.begin(out, request_id, response, operation, contexts),
        }
    }

    #[cfg(feature = "server")]
    fn operation_context(&self, operation: &str) -> Option<ServiceContext> {
        self.operations.as_ref()?.context(operation)
    }

    /// What is only understood by servers of ours is sent only by programs that have that code.
    #[cfg(not(feature = "server"))]
    fn operation_context(&self, _operation: &str) -> Option<ServiceContext> {
        None
    }

    /// The contexts of a request on a connection that has said, or has not, which code sets are in force.
    #[inline]
    pub(crate) fn contexts(&self, has_said: bool) -> &[ServiceContext] {
        if has_said { &[] } else { self.code_sets.as_slice() }
    }

    /// The exception for arguments that cannot be written.
    pub(crate) fn unsayable(&self, error: CdrError) -> SystemException {
        if error != CdrError::NoWcharSet {
            return error.into();
        }
        // Without a component, or with one that names none for wide characters (7.10.2.6).
        let minor = if self.code_sets.is_some() { minor::WCHAR_NOT_SUPPORTED } else { minor::CODE_SETS_REQUIRED };
        SystemException::inv_objref(minor, CompletionStatus::No)
            .with_detail("the reference names no code set for wide characters")
            .with_source(error)
    }

    /// The destinations of a reference, in its order of preference.
    ///
    /// # Errors
    /// INV_OBJREF if none of its profiles is IIOP, or one is malformed.
    pub(crate) fn all_of(ior: &Ior, settings: WireSettings, peers: &PeerTable) -> Result<Vec<Self>, SystemException> {
        let mut destinations = Vec::new();
        for profile in &ior.profiles {
            match IiopProfile::decode(profile) {
                Ok(Some(profile)) => Self::new(profile, settings, peers).map(|new| destinations.push(new)),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            }
            .map_err(|error| describe_unusable(ior).with_source(error))?;
        }
        if destinations.is_empty() { Err(describe_unusable(ior)) } else { Ok(destinations) }
    }
}

/// Whether the profile says that its server is one of ours.
#[cfg(feature = "asynchronous")]
fn is_ours(profile: &IiopProfile) -> Result<bool, GiopError> {
    for component in &profile.components {
        if let Some(Component::OrbType(orb)) = Component::decode(component)? {
            return Ok(orb == ids::ORB_TYPE);
        }
    }
    Ok(false)
}

/// The code sets for requests to this profile's server, if it names any.
fn choose(profile: &IiopProfile, own: CharSet) -> Result<Option<TransmissionCodeSets>, GiopError> {
    let (mut named, mut is_ours) = (None, false);
    for component in &profile.components {
        match Component::decode(component)? {
            Some(Component::CodeSets { char_data, wchar_data }) => named = Some((char_data, wchar_data)),
            Some(Component::OrbType(orb)) => is_ours = orb == ids::ORB_TYPE,
            _ => {}
        }
    }
    Ok(named.map(|(chars, wide)| TransmissionCodeSets::choose(own, &chars, &wide, is_ours)))
}

/// INV_OBJREF for a reference without a usable profile.
fn describe_unusable(ior: &Ior) -> SystemException {
    SystemException::inv_objref(0, CompletionStatus::No).with_detail(|| {
        let tags: Vec<u32> = ior.profiles.iter().map(|profile| profile.tag).collect();
        format!("the reference to `{}` has no usable IIOP profile (profile tags {tags:?})", ior.type_id)
    })
}
