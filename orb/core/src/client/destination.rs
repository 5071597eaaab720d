//! The destination of a request: a peer, and the constant part of the header; and the destinations of a
//! reference in the order of their costs.
//!
//! `invocation::forwarding` carries out the request of a server for another addressing form
//! (NEEDS_ADDRESSING_MODE).

use spandrel_cdr::{ByteOrder, CdrError, Encoder, GiopVersion, Ior, Limits, Wire};
use spandrel_giop::{
    AddressingDisposition, Body, CompletionStatus, GiopError, IiopProfile, LocateRequestHeader, OwnCodeSets,
    RequestTemplate, ResponseFlags, ServiceContext, SystemException, Target, component::Component, ids, locate_request,
    minor,
};
use spandrel_sync::Arc;
use spandrel_transport::{Address, Deadline};

use crate::{
    client::{
        CallFailure, Peer, PeerTable,
        call_kind::CallKind,
        code_set_agreement::Agreement,
        datagrams::DatagramSender,
        operation_index::{OperationContexts, ReadOperationIndex},
        request_cache::RequestCache,
        transport::ClientProtocol,
    },
    policy::{DeadlineContext, ExposedPolicies, ReadPolicies, cached_context, remaining_tail, with_deadline_contexts},
};

/// The ORB's settings for the encoding of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireSettings {
    /// The newest GIOP version that is used; a profile may name an older one.
    pub(crate) version: GiopVersion,
    pub(crate) order: ByteOrder,
    /// The form in which a request addresses its object.
    pub(crate) addressing: AddressingDisposition,
    /// The limits on the decoding of well-formed values.
    pub(crate) limits: Limits,
    /// Whether headers of requests are cached.
    pub(crate) caches_requests: bool,
    /// The form in which requests carry their deadline.
    pub(crate) deadlines: DeadlineContext,
    /// Writes requests with a deadline context. A program that never sets it does not contain the contexts.
    pub(crate) begin_timed: Option<BeginTimed>,
    /// Whether cached headers carry the operation's index in the server's table, if its reference offers
    /// that.
    pub(crate) operation_index: Option<ReadOperationIndex>,
    /// Sends one-ways by datagram, if that is enabled.
    pub(crate) send_datagram: Option<SendDatagram>,
    /// Reads the object's policies in its reference, if a part of the ORB obeys them.
    pub(crate) read_policies: Option<ReadPolicies>,
}

/// Sends a request by datagram: [`send_datagram`](crate::call::invocation::send_datagram).
pub(crate) type SendDatagram =
    fn(&Destination, &CallKind<'_, '_>, Option<&Deadline>, &dyn DatagramSender) -> Result<bool, CallFailure>;

/// Begins a request with a deadline: [`Destination::begin_timed`].
pub(crate) type BeginTimed = for<'d, 'o, 'e, 's> fn(
    &'d Destination,
    &'o mut Encoder<'e>,
    u32,
    ResponseFlags,
    &'s str,
    &'s [ServiceContext],
    &'s Deadline,
) -> Body;

/// One profile of a reference, ready to be invoked.
#[derive(Debug)]
pub struct Destination {
    /// The server, to which connections are shared.
    pub peer: Arc<Peer>,
    pub(crate) template: RequestTemplate,
    /// The headers of requests that were sent, if they are cached.
    cache: Option<RequestCache>,
    /// The headers of requests with a deadline, if the remaining time is its only form.
    timed_cache: Option<RequestCache>,
    /// The form in which requests carry their deadline.
    deadlines: DeadlineContext,
    begin_timed: Option<BeginTimed>,
    /// The hash function of the server's operations, if it is used.
    operations: Option<Box<dyn OperationContexts>>,
    /// The octets by which the server finds the object. Other profiles may have others.
    pub object_key: Vec<u8>,
    /// The form in which the object is addressed, if not by its key.
    target: Option<Box<Target<'static>>>,
    /// Whether the server is this ORB's own, and is called in this process.
    pub is_collocated: bool,
    /// Whether the server is a Spandrel server.
    pub(crate) is_ours: bool,
    /// The object's policies in this profile, if a part of the ORB obeys them.
    pub(crate) policies: Option<Box<dyn ExposedPolicies>>,
    /// The agreed code sets.
    pub(crate) text: Agreement,
    /// Sends one-ways by datagram, if that is enabled and the server reads them.
    datagrams: Option<(SendDatagram, Arc<dyn DatagramSender>)>,
}

impl Destination {
    fn new(
        profile: &IiopProfile,
        target: Option<Target<'static>>,
        (address, protocol): (Address, &Arc<ClientProtocol>),
        text: Agreement,
        settings: WireSettings,
        peers: &PeerTable,
    ) -> Result<Self, GiopError> {
        let version = profile.version.min(settings.version);
        let wire = text.on(Wire { limits: settings.limits, ..Wire::new(settings.order, version) });
        let is_ours = is_ours(profile)?;
        let caches_timed = settings.begin_timed.is_some()
            && settings.caches_requests
            && is_ours
            && version >= GiopVersion::V1_2
            && settings.deadlines == DeadlineContext::Remaining;
        let peer = peers.peer(address, protocol, text.chosen());
        if version < GiopVersion::V1_2 {
            peer.mark_old_server();
        }
        Ok(Self {
            peer,
            template: match &target {
                None => RequestTemplate::new(wire, &profile.object_key),
                Some(target) => RequestTemplate::for_target(wire, target)
                    .map_err(|cause| GiopError::Profile { what: "profile to be sent", cause })?,
            },
            target: target.map(Box::new),
            cache: settings.caches_requests.then(RequestCache::default),
            timed_cache: caches_timed.then(RequestCache::default),
            deadlines: settings.deadlines,
            begin_timed: settings.begin_timed,
            operations: settings
                .operation_index
                .filter(|_| version >= GiopVersion::V1_2)
                .and_then(|read| read(&profile.components)),
            is_collocated: false,
            is_ours,
            policies: settings.read_policies.and_then(|read| read(&profile.components)),
            object_key: profile.object_key.clone(),
            text,
            datagrams: settings
                .send_datagram
                .filter(|_| version >= GiopVersion::V1_2)
                .and_then(|send| Some((send, peers.datagrams(profile)?))),
        })
    }

    /// The encoding of requests.
    pub fn wire(&self) -> Wire {
        self.template.wire()
    }

    /// Has one-ways sent over a connection also if the server reads datagrams.
    pub(crate) fn forbid_datagrams(&mut self) {
        self.datagrams = None;
    }

    /// Sends a request without a response by datagram. `None` if datagrams are not enabled, or if the server
    /// does not read them; false if the request must be sent over a connection.
    #[inline]
    pub(crate) fn send_datagram(
        &self,
        call_kind: &CallKind<'_, '_>,
        deadline: Option<&Deadline>,
    ) -> Option<Result<bool, CallFailure>> {
        let (send, sender) = self.datagrams.as_ref()?;
        Some(send(self, call_kind, deadline, &**sender))
    }

    /// Writes a request up to its body. A name that CDR cannot encode is reported by [`Body::end`].
    #[inline]
    pub(crate) fn begin(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
        deadline: Option<&Deadline>,
    ) -> Body {
        if let (Some(deadline), Some(begin_timed)) = (deadline, self.begin_timed) {
            return begin_timed(self, out, request_id, response, operation, contexts, deadline);
        }
        self.begin_untimed(out, request_id, response, operation, contexts)
    }

    #[inline]
    fn begin_untimed(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
    ) -> Body {
        let cache = self.cache.as_ref().filter(|_| contexts.is_empty());
        match cache.and_then(|cache| {
            cache.header(&self.template, operation, || self.operation_context(operation).into_iter().collect())
        }) {
            Some(header) => header.begin(out, request_id, response),
            None => self.template.begin(out, request_id, response, operation, contexts),
        }
    }

    /// Writes a LocateRequest for the object.
    pub(crate) fn locate(&self, out: &mut Encoder<'_>, request_id: u32) -> Result<(), CdrError> {
        match &self.target {
            None => locate_request(out, request_id, &self.object_key),
            Some(target) => LocateRequestHeader { request_id, target: (**target).clone() }.encode(out),
        }
    }

    /// Begins a request with its deadline in a context.
    #[inline(never)]
    pub(crate) fn begin_timed(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
        deadline: &Deadline,
    ) -> Body {
        // No client waits for the servant of a one-way.
        let expects_reply = response == ResponseFlags::TWO_WAY;
        let sends_remaining = self.is_ours && self.deadlines.sends_remaining() && deadline.limits_server(expects_reply);
        let sends_absolute = self.deadlines.sends_absolute() && deadline.limits_server(expects_reply);
        if !sends_remaining && !sends_absolute {
            return self.begin_untimed(out, request_id, response, operation, contexts);
        }
        let cache = self.timed_cache.as_ref().filter(|_| contexts.is_empty());
        let always = || self.operation_context(operation).into_iter().chain([cached_context()]).collect();
        if let Some(header) = cache.and_then(|cache| cache.header(&self.template, operation, always)) {
            return header.begin_with_tail(out, request_id, response, &remaining_tail(deadline, expects_reply));
        }
        let all = with_deadline_contexts(contexts, deadline, expects_reply, sends_remaining, sends_absolute);
        self.template.begin(out, request_id, response, operation, &all)
    }

    fn operation_context(&self, operation: &str) -> Option<ServiceContext> {
        self.operations.as_ref()?.context(operation)
    }

    /// The code set contexts of requests until the connection has sent them.
    pub(crate) fn code_sets(&self) -> &[ServiceContext] {
        self.text.context()
    }

    /// The failure of a request whose arguments cannot be written.
    pub(crate) fn not_encodable(&self, error: CdrError) -> CallFailure {
        self.text.not_encodable(error)
    }

    /// Returns the destinations of a reference: by cost, and within that in the reference's order. Clients that obey
    /// policies in references keep the order of the profiles, which is that of the server's preference (ptc/99-05-03, 4.15),
    /// unless a rule of their own decides.
    ///
    /// # Errors
    /// INV_OBJREF if none of its profiles is IIOP, or one is malformed. TRANSIENT if the rules allow none of
    /// its addresses. CODESET_INCOMPATIBLE if no allowed profile has a code set in common with this ORB.
    pub(crate) fn all_of(
        ior: &Ior,
        settings: WireSettings,
        own: &OwnCodeSets,
        peers: &PeerTable,
    ) -> Result<Vec<Self>, SystemException> {
        let mut refused = None;
        let mut ranked: Vec<((usize, u64), Self)> = Vec::new();
        let mut is_forbidden = false;
        for (index, tagged) in ior.profiles.iter().enumerate() {
            let unusable = |error: GiopError| describe_unusable(ior).with_source(error);
            let Some(profile) = IiopProfile::decode(tagged).map_err(unusable)? else { continue };
            let text = match Agreement::of(&profile, own, profile.version.min(settings.version)).map_err(unusable)? {
                Ok(text) => text,
                Err(none) => {
                    refused = Some(none);
                    continue;
                }
            };
            // The target is only computed if it is not the key.
            let addressing = settings.addressing;
            let target = || Target::by(addressing, ior, index);
            for (address, protocol) in peers.protocols().addresses(&profile) {
                let Some(rank) = peers.protocols().rank(&address, protocol.cost(&address)) else {
                    is_forbidden = true;
                    continue;
                };
                let destination = Self::new(&profile, target(), (address, protocol), text.clone(), settings, peers)
                    .map_err(unusable)?;
                // Several profiles may name one address, such as a socket of this host.
                let by_profile =
                    if settings.read_policies.is_some() && !peers.protocols().has_preferences() { index } else { 0 };
                let rank = (by_profile, rank);
                if !ranked.iter().any(|(_, other)| other.is_same(&destination)) {
                    ranked.insert(ranked.partition_point(|(other_rank, _)| *other_rank <= rank), (rank, destination));
                }
            }
        }
        if ranked.is_empty() {
            return Err(match refused {
                Some(refused) => refused.into(),
                None if is_forbidden => describe_forbidden(ior, peers),
                None => describe_unusable(ior),
            });
        }
        Ok(ranked.into_iter().map(|(_, destination)| destination).collect())
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.peer, &other.peer) && self.object_key == other.object_key
    }
}

/// Whether the profile's ORB type is Spandrel's.
fn is_ours(profile: &IiopProfile) -> Result<bool, GiopError> {
    for component in &profile.components {
        if let Some(orb) = Component::read_orb_type(component)? {
            return Ok(orb == ids::ORB_TYPE);
        }
    }
    Ok(false)
}

/// TRANSIENT for a reference all of whose addresses are forbidden, as in omniORB.
fn describe_forbidden(ior: &Ior, peers: &PeerTable) -> SystemException {
    SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No).with_detail(|| {
        let profiles = ior.profiles.iter().filter_map(|tagged| IiopProfile::decode(tagged).ok().flatten());
        let addresses = profiles.flat_map(|profile| peers.protocols().addresses(&profile));
        let addresses: Vec<String> = addresses.map(|(address, _)| address.to_string()).collect();
        format!(
            "`-ORBTransports` and `-ORBClientTransportRule` allow none of the addresses of `{}`: {}",
            ior.type_id,
            addresses.join(", ")
        )
    })
}

/// INV_OBJREF for a reference without a usable profile.
fn describe_unusable(ior: &Ior) -> SystemException {
    SystemException::inv_objref(0, CompletionStatus::No).with_detail(|| {
        let tags: Vec<u32> = ior.profiles.iter().map(|profile| profile.tag).collect();
        format!("the reference to `{}` has no usable IIOP profile (profile tags {tags:?})", ior.type_id)
    })
}
