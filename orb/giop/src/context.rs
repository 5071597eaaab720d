//! Service contexts: data that ORB services add to requests and replies (CORBA 3.3 Part 2, 7.7).
//!
//! A received list is validated once and then read in place. The meaning of a context belongs to its service.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encoder};

use crate::{CompletionStatus, SystemException, ids};

/// A context that is sent with a request or reply, for a service such as code set negotiation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServiceContext {
    /// The number that names the service.
    pub id: u32,
    /// Its content, most often an encapsulation.
    pub data: Vec<u8>,
}

/// A service context inside a received message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceContextRef<'m> {
    /// The number that names the service.
    pub id: u32,
    /// Its content, most often an encapsulation.
    pub data: &'m [u8],
}

/// The bounds on service contexts of one received message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContextLimits {
    /// Maximum number of contexts.
    pub count: usize,
    /// Maximum octets of all contexts together.
    pub octets: usize,
}

impl Default for ContextLimits {
    /// 256 contexts of one MiB.
    fn default() -> Self {
        Self { count: 256, octets: 1 << 20 }
    }
}

/// The service contexts of a request or reply: values to be sent, or octets of a received message.
#[derive(Clone)]
pub struct ServiceContexts<'m>(Source<'m>);

#[derive(Clone)]
enum Source<'m> {
    /// Validated octets, after the length.
    Received { input: Decoder<'m>, count: usize },
    /// Values to be encoded.
    Given(&'m [ServiceContext]),
}

impl<'m> ServiceContexts<'m> {
    /// A list without service contexts.
    pub const NONE: Self = Self(Source::Given(&[]));

    /// Decodes a list and checks that it is complete.
    // Inlined by hand: otherwise space for absent contexts is copied with each message.
    #[inline(always)]
    pub(crate) fn decode(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        match input.sequence_len(8)? {
            0 => Ok(Self::NONE),
            count => Self::decode_some(input, count),
        }
    }

    #[inline(never)]
    fn decode_some(input: &mut Decoder<'m>, count: usize) -> Result<Self, CdrError> {
        let start = input.clone();
        Self::skip_some(input, count)?;
        Ok(Self(Source::Received { input: start, count }))
    }

    /// Checks that a list is complete and skips it; returns the number of contexts.
    // As `decode`.
    #[inline(always)]
    pub(crate) fn skip(input: &mut Decoder<'m>) -> Result<usize, CdrError> {
        let count = input.sequence_len(8)?;
        if count != 0 {
            Self::skip_some(input, count)?;
        }
        Ok(count)
    }

    #[inline(never)]
    fn skip_some(input: &mut Decoder<'m>, count: usize) -> Result<(), CdrError> {
        (0..count).try_for_each(|_| read(input).map(drop))
    }

    #[inline]
    pub(crate) fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.is_empty() {
            out.u32(0);
            return Ok(());
        }
        out.len(self.len())?;
        self.iter().try_for_each(|context| write(context, out))
    }

    /// The number of contexts in the list.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Source::Received { count, .. } => *count,
            Source::Given(contexts) => contexts.len(),
        }
    }

    /// Whether there are no contexts.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rejects more contexts, or longer ones, than `limits` allow.
    ///
    /// # Errors
    /// IMP_LIMIT, COMPLETED_NO.
    pub fn check(&self, limits: ContextLimits) -> Result<(), SystemException> {
        let (count, octets) = (self.len(), self.iter().map(|context| context.data.len()).sum::<usize>());
        let (what, is, limit, setting) = if count > limits.count {
            ("", count, limits.count, "-ORBMaxServiceContexts")
        } else if octets > limits.octets {
            ("octets of ", octets, limits.octets, "-ORBMaxServiceContextOctets")
        } else {
            return Ok(());
        };
        Err(SystemException::imp_limit(ids::IMP_LIMIT_CONTEXTS, CompletionStatus::No)
            .with_detail(|| format!("{is} {what}service contexts are more than the limit of {limit} (`{setting}`)")))
    }

    /// The contexts in their order on the wire.
    #[must_use]
    pub fn iter(&self) -> ServiceContextsIter<'m> {
        ServiceContextsIter(self.0.clone())
    }

    /// The content of the first context with this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&'m [u8]> {
        self.iter().find(|context| context.id == id).map(|context| context.data)
    }
}

fn read<'m>(input: &mut Decoder<'m>) -> Result<ServiceContextRef<'m>, CdrError> {
    Ok(ServiceContextRef { id: input.u32()?, data: input.octet_sequence()? })
}

fn write(context: ServiceContextRef<'_>, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    out.u32(context.id);
    out.octet_sequence(context.data)
}

/// Encodes a list of contexts.
#[inline]
pub(crate) fn encode_contexts(contexts: &[ServiceContext], out: &mut Encoder<'_>) -> Result<(), CdrError> {
    ServiceContexts::from(contexts).encode(out)
}

impl<'m> From<&'m [ServiceContext]> for ServiceContexts<'m> {
    fn from(contexts: &'m [ServiceContext]) -> Self {
        Self(Source::Given(contexts))
    }
}

impl Default for ServiceContexts<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for ServiceContexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ServiceContexts<'_> {}

impl fmt::Debug for ServiceContexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for ServiceContexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, context) in self.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{context}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for ServiceContextRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match context_name(self.id) {
            Some(name) => write!(f, "{name}: {} octets", self.data.len()),
            None => write!(f, "{:#x}: {} octets", self.id, self.data.len()),
        }
    }
}

/// The standard name of a service context's id (CORBA 3.3 Part 2, 7.7.1), or ours.
#[must_use]
pub fn context_name(id: u32) -> Option<&'static str> {
    Some(match id {
        0 => "TransactionService",
        1 => "CodeSets",
        2 => "ChainBypassCheck",
        3 => "ChainBypassInfo",
        4 => "LogicalThreadId",
        5 => "BI_DIR_IIOP",
        6 => "SendingContextRunTime",
        7 => "INVOCATION_POLICIES",
        8 => "FORWARDED_IDENTITY",
        9 => "UnknownExceptionInfo",
        10 => "RTCorbaPriority",
        11 => "RTCorbaPriorityRange",
        12 => "FT_GROUP_VERSION",
        13 => "FT_REQUEST",
        14 => "ExceptionDetailMessage",
        15 => "SecurityAttributeService",
        16 => "ActivityService",
        ids::CONTEXT_OPERATION_INDEX => "OperationIndex",
        ids::CONTEXT_REMAINING_TIME => "RemainingTime",
        ids::CONTEXT_SHIM => "Shim",
        ids::CONTEXT_TRACE => "TraceContext",
        _ => return None,
    })
}

impl<'m> IntoIterator for &ServiceContexts<'m> {
    type Item = ServiceContextRef<'m>;
    type IntoIter = ServiceContextsIter<'m>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the contexts of a request or reply.
#[derive(Clone)]
pub struct ServiceContextsIter<'m>(Source<'m>);

impl fmt::Debug for ServiceContextsIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'m> Iterator for ServiceContextsIter<'m> {
    type Item = ServiceContextRef<'m>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Received { input, count } => {
                *count = count.checked_sub(1)?;
                // The list was validated when it was read.
                read(input).ok()
            }
            Source::Given(contexts) => {
                let (first, others) = contexts.split_first()?;
                *contexts = others;
                Some(ServiceContextRef { id: first.id, data: &first.data })
            }
        }
    }
}
