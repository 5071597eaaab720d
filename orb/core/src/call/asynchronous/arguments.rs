//! Arguments that are marshaled once and sent in each attempt.

use std::{
    ops::{Deref, Range},
    sync::OnceLock,
};

use spandrel_cdr::{CdrError, Encoder, GiopVersion, Wire};
use spandrel_connection::RequestLoss;
use spandrel_giop::{
    CompletionStatus, OwnCodeSets, ResponseFlags, ServiceContext, SystemException, TransmissionCodeSets,
    component::Component, ids,
};
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

use crate::{
    call::scratch,
    client::{CallFailure, destination::Destination},
};

/// The body of a request, in the form of the first destination. A reference that names no code sets may be forwarded
/// to one that does: text then has a second form, for a server with this ORB's own code sets.
#[derive(Debug)]
pub(super) struct Arguments {
    first: Result<EncodedArguments, CallFailure>,
    second: Option<EncodedArguments>,
}

/// The body of a request in one wire form.
#[derive(Debug)]
struct EncodedArguments {
    octets: Vec<u8>,
    /// The position of the body in the message, modulo 8, on which its padding depends.
    offset: usize,
    wire: Wire,
    /// Whether it has text whose encoding depends on the code sets.
    is_coded: bool,
    /// The ranges that may be divided into fragments before GIOP 1.2 (see [`Encoder::divisible_runs`]).
    divisible: Vec<Range<usize>>,
}

/// Arguments of several requests with the same values, marshaled by the first of them
/// ([`ObjectRef::invoke_shared_async`](crate::ObjectRef::invoke_shared_async)).
///
/// Requests to servers of another GIOP version, byte order or code sets marshal them anew.
#[derive(Debug, Default)]
pub struct SharedArguments(OnceLock<Arc<Arguments>>);

/// The arguments of one call.
#[derive(Debug)]
pub(super) enum CallArguments {
    Own(Arguments),
    Shared(Arc<Arguments>),
}

impl Deref for CallArguments {
    type Target = Arguments;

    fn deref(&self) -> &Arguments {
        match self {
            Self::Own(arguments) => arguments,
            Self::Shared(arguments) => arguments,
        }
    }
}

impl SharedArguments {
    /// Arguments that no call has marshaled yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The arguments for a request to this destination; `marshal` makes those that are not yet marshaled in its form.
    ///
    /// # Errors
    /// The failure of `marshal`.
    pub(super) fn arguments(
        &self,
        destination: &Destination,
        own: &OwnCodeSets,
        marshal: impl FnOnce() -> Result<Arguments, CallFailure>,
    ) -> Result<CallArguments, CallFailure> {
        if let Some(shared) = self.0.get().filter(|shared| shared.are_for(destination, own)) {
            return Ok(CallArguments::Shared(Arc::clone(shared)));
        }
        let marshaled = marshal()?;
        if self.0.get().is_some() || !marshaled.are_for(destination, own) {
            return Ok(CallArguments::Own(marshaled));
        }
        let marshaled = Arc::new(marshaled);
        _ = self.0.set(Arc::clone(&marshaled)); // another thread may have been first
        Ok(CallArguments::Shared(marshaled))
    }
}

/// A context that shifts the following octets by four, modulo eight.
fn shim() -> ServiceContext {
    ServiceContext { id: ids::CONTEXT_SHIM, data: vec![0; 4] }
}

impl Arguments {
    /// Marshals arguments for a request to this destination.
    ///
    /// # Errors
    /// The failure, if no other destination could change it.
    pub(super) fn marshal<'a>(
        destination: &Destination,
        own: &OwnCodeSets,
        operation: &str,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CallFailure> {
        let wire = destination.template.wire();
        let first = EncodedArguments::marshal(destination, wire, operation, &encode)
            .map_err(|error| destination.not_encodable(error));
        let second = match &first {
            Ok(first) if !first.is_coded || destination.text.is_named() => None,
            Err(failure) if failure.loss != RequestLoss::CodeSetsUnknown => return Err(failure.clone()),
            _ => own_form(own, wire)
                .and_then(|wire| EncodedArguments::marshal(destination, wire, operation, &encode).ok()),
        };
        match first {
            Err(failure) if second.is_none() => Err(failure),
            first => Ok(Self { first, second }),
        }
    }

    /// Whether marshaling for this destination would give the same forms. Before GIOP 1.2 the padding depends on the header.
    fn are_for(&self, destination: &Destination, own: &OwnCodeSets) -> bool {
        let needed = destination.template.wire();
        let Ok(form) = &self.first else { return false };
        let second = if form.is_coded && !destination.text.is_named() { own_form(own, needed) } else { None };
        form.wire.version >= GiopVersion::V1_2
            && form.offset == 0
            && (form.wire.order, form.wire.version, form.wire.limits) == (needed.order, needed.version, needed.limits)
            && (form.wire == needed || !form.is_coded)
            && self.second.as_ref().map(|form| form.wire) == second
    }

    /// Encodes a whole request to this destination, with the contexts of its connection.
    ///
    /// # Errors
    /// NO_IMPLEMENT if no form of the arguments is that of the destination. `CodeSetsUnknown` if the object has to be
    /// located before.
    pub(super) fn request<'o>(
        &'o self,
        out: &mut Encoder<'o>,
        destination: &Destination,
        contexts: (&[ServiceContext], Option<&Deadline>),
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
    ) -> Result<(), CallFailure> {
        let needed = destination.template.wire();
        let fitting = self.first.iter().chain(&self.second).find(|form| form.fits(needed));
        let form = match (fitting, &self.first) {
            (Some(form), _) | (None, Ok(form)) => form,
            (None, Err(failure)) if !destination.text.is_named() => return Err(failure.clone()),
            (None, Err(failure)) => self.second.as_ref().ok_or_else(|| failure.clone())?,
        };
        form.request(out, destination, contexts, request_id, response, operation)
    }
}

/// The wire form of requests to a server of GIOP 1.2 that has this ORB's code sets; `None` if such a server would have
/// none in common.
fn own_form(own: &OwnCodeSets, wire: Wire) -> Option<Wire> {
    let Component::CodeSets { char_data, wchar_data } = own.component() else { return None };
    let wire = Wire { version: GiopVersion::V1_2, ..wire };
    let chosen = TransmissionCodeSets::choose(own, &char_data, &wchar_data, true, wire.version);
    chosen.ok().map(|chosen| chosen.on(wire))
}

impl EncodedArguments {
    /// Marshals arguments in this wire form, at the position that they have in a request to the destination.
    fn marshal<'a>(
        destination: &Destination,
        wire: Wire,
        operation: &str,
        encode: &impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let mut out = Encoder::reusing(scratch::take(), wire);
        // GIOP 1.2 aligns every body to 8. A name that cannot be encoded is reported with the header.
        let is_aligned = wire.version >= GiopVersion::V1_2 && !operation.contains('\0');
        let body = (!is_aligned).then(|| {
            let body = destination.template.begin(&mut out, 0, ResponseFlags::TWO_WAY, operation, &[]);
            if out.position().is_multiple_of(8) {
                return body;
            }
            // The object may be forwarded to a server of that version, as services that are known by a URL are.
            out.truncate(0);
            destination.template.begin(&mut out, 0, ResponseFlags::TWO_WAY, operation, &[shim()])
        });
        let start = out.position();
        let written = encode(&mut out);
        let octets = written.is_ok().then(|| copy_from(&out, start));
        let is_coded = out.depends_on_code_sets();
        let divisible = match wire.version {
            GiopVersion::V1_1 => out.divisible_runs().map(|run| run.start - start..run.end - start).collect(),
            _ => Vec::new(),
        };
        let ended = written.and_then(|()| body.map_or(Ok(()), |body| body.end(&mut out)));
        scratch::give(out);
        ended?;
        Ok(Self { octets: octets.unwrap_or_default(), offset: start % 8, wire, is_coded, divisible })
    }

    /// Whether the octets have the same meaning in this wire form.
    fn fits(&self, needed: Wire) -> bool {
        !self.is_coded || self.wire == needed
    }

    /// Encodes a whole request to this destination, with the contexts of its connection.
    fn request<'o>(
        &'o self,
        out: &mut Encoder<'o>,
        destination: &Destination,
        (contexts, deadline): (&[ServiceContext], Option<&Deadline>),
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
    ) -> Result<(), CallFailure> {
        let template = &destination.template;
        let needed = template.wire();
        if !self.fits(needed) {
            return Err(CallFailure::new(self.wire_mismatch(needed)));
        }
        let mut body = destination.begin(out, request_id, response, operation, contexts, deadline);
        if out.position() % 8 != self.offset && !self.octets.is_empty() {
            // This helps only before GIOP 1.2, where the body follows the header without padding. The lengths
            // of the object key and the contexts differ between destinations.
            out.truncate(0);
            let mut contexts = contexts.to_vec();
            contexts.push(shim());
            body = template.begin(out, request_id, response, operation, &contexts);
            if out.position() % 8 != self.offset {
                return Err(CallFailure::new(self.wire_mismatch(needed)));
            }
        }
        let mut offset = 0;
        for run in &self.divisible {
            out.lend(&self.octets[offset..run.start]);
            out.lend_divisible(&self.octets[run.clone()]);
            offset = run.end;
        }
        out.lend(&self.octets[offset..]);
        body.end(out).map_err(|error| CallFailure::new(error.into()))
    }

    fn wire_mismatch(&self, needed: Wire) -> SystemException {
        SystemException::no_implement(0, CompletionStatus::No).with_detail(|| format!(
            "the arguments were marshaled for GIOP {} and {:?}, and the object was forwarded to a server of GIOP {} and {:?}",
            self.wire.version, self.wire.char_set, needed.version, needed.char_set
        ))
    }
}

/// Copies the octets from this position on.
fn copy_from(out: &Encoder<'_>, mut from: usize) -> Vec<u8> {
    if out.position() == from {
        return Vec::new();
    }
    let mut octets = Vec::with_capacity(out.position() - from);
    for part in out.slices() {
        let skipped = from.min(part.len());
        octets.extend_from_slice(&part[skipped..]);
        from -= skipped;
    }
    octets
}
