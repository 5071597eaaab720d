//! Code-set negotiation: which code sets text travels in on one connection (CORBA 3.3 Part 2, 7.10.2).
//!
//! A server's references say what it knows (`TAG_CODE_SETS`); the client chooses, and says so in the first request of a
//! connection (the `CodeSets` service context); both keep to it. How text is coded belongs to `spandrel-cdr`, and what is
//! known there is a table that is the same in every program: nothing here depends on what was linked or done first.

use spandrel_cdr::{ByteOrder, CdrError, CharSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

use crate::{
    CompletionStatus, ServiceContext, SystemException,
    component::{CodeSetName, CodeSets, Component},
    minor,
};

mod choice;
mod known;

pub use known::{ALL_CODE_SETS, BASIC_CODE_SETS, KnownCodeSets};

/// The id of the service context that says what the client chose.
pub const CONTEXT_CODE_SETS: u32 = 1;

/// By this octet at the end of the context clients of our kind say that a `char` is an octet of ISO 8859-1, although strings are UTF-8.
const CHARS_ARE_OCTETS: u8 = 1;

/// The code sets of one connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransmissionCodeSets {
    /// For `char` and `string` (TCS-C).
    pub char_set: CharSet,
    /// For `wchar` and `wstring` (TCS-W).
    pub wchar_set: WcharSet,
}

/// The code sets of one side: those in which its programs are taken to hold text, and those that it converts to and from.
///
/// Programs of ours hold text as `str`; the native code set is the preferred one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnCodeSets {
    /// The code sets that a client may choose.
    pub known: &'static KnownCodeSets,
    /// The native code set for `char` and `string` (NCS-C).
    pub char_set: CharSet,
    /// The native code set for `wchar` and `wstring` (NCS-W); [`WcharSet::Unknown`] for none.
    pub wchar_set: WcharSet,
    /// Those for `char` and `string` that are converted (CCS-C), the best first. Where nothing is said clients convert to all that is
    /// known, and references offer UTF-8 and ISO 8859-1.
    pub char_conversion: Option<Vec<CharSet>>,
    /// Those for `wchar` and `wstring` (CCS-W). Where nothing is said clients convert to all that is known, and references
    /// offer UTF-16.
    pub wchar_conversion: Option<Vec<WcharSet>>,
    /// What a server is taken to know whose reference names no code sets; [`TransmissionCodeSets::UNSAID`] is all that the standard grants.
    pub assumed: Option<TransmissionCodeSets>,
}

/// Narrow text cannot be sent to a server at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the server's native code set for char is {}, ours {}; neither side converts to what the other has, and the two have \
     no characters in common (-ORBNativeCharCodeSet and -ORBConversionCodeSets say what is offered)",
    CodeSetName(*server), own.name()
)]
pub struct NoCommonCodeSet {
    /// The server's native code set, as its reference names it.
    pub server: u32,
    /// The client's.
    pub own: CharSet,
}

impl From<NoCommonCodeSet> for SystemException {
    fn from(cause: NoCommonCodeSet) -> Self {
        Self::codeset_incompatible(minor::NO_COMMON_CODE_SET, CompletionStatus::No).with_detail(|| cause.to_string())
    }
}

impl Default for OwnCodeSets {
    /// [All](ALL_CODE_SETS) code sets are known; ISO 8859-1 and UTF-16 are native.
    fn default() -> Self {
        Self::knowing(&ALL_CODE_SETS)
    }
}

impl OwnCodeSets {
    /// ISO 8859-1 and UTF-16 as the native code sets of a program that knows these.
    #[must_use]
    pub fn knowing(known: &'static KnownCodeSets) -> Self {
        Self {
            known,
            char_set: CharSet::default(),
            wchar_set: WcharSet::default(),
            char_conversion: None,
            wchar_conversion: None,
            assumed: None,
        }
    }

    /// What references to a server that has these say.
    #[must_use]
    pub fn component(&self) -> Component {
        let (chars, wide) = (self.char_conversion(), self.wchar_conversion());
        let wchar_data = match self.wchar_set {
            WcharSet::Unknown => CodeSets::default(),
            native => offer(native.number(), wide.unwrap_or(&[WcharSet::Utf16]), WcharSet::number),
        };
        let fallback = &[CharSet::Utf8, CharSet::Latin1];
        let char_data = offer(self.char_set.number(), chars.unwrap_or(fallback), CharSet::number);
        Component::CodeSets { char_data, wchar_data }
    }

    fn char_conversion(&self) -> Option<&[CharSet]> {
        self.char_conversion.as_deref()
    }

    fn wchar_conversion(&self) -> Option<&[WcharSet]> {
        self.wchar_conversion.as_deref()
    }
}

fn offer<S: Copy>(native: u32, conversion: &[S], number: fn(S) -> u32) -> CodeSets {
    let conversion = conversion.iter().map(|set| number(*set)).filter(|set| ![0, native].contains(set));
    CodeSets { native, conversion: conversion.collect() }
}

impl TransmissionCodeSets {
    /// What is in force while nothing was said: ISO 8859-1, and no wide characters.
    pub const UNSAID: Self = Self { char_set: CharSet::Latin1, wchar_set: WcharSet::Unknown };

    /// An agreement with these code sets.
    #[inline]
    #[must_use]
    pub fn on(self, wire: Wire) -> Wire {
        Wire { char_set: self.char_set, wchar_set: self.wchar_set, ..wire }
    }

    /// What to choose for requests of this version to a server that says this of itself.
    ///
    /// Where both are of our kind (`is_ours`), neither has to convert UTF-8, which says everything. With others the
    /// standard's order holds, see `choice`, and code sets mean what they mean to all ([`CharSet::standard`]).
    ///
    /// Wide text is [`WcharSet::Unknown`] where one side has none or nothing was agreed on: only a request that carries such text is then
    /// refused.
    ///
    /// # Errors
    /// [`NoCommonCodeSet`] for narrow text.
    pub fn choose(
        own: &OwnCodeSets,
        char_data: &CodeSets,
        wchar_data: &CodeSets,
        is_ours: bool,
        version: GiopVersion,
    ) -> Result<Self, NoCommonCodeSet> {
        let char_set = choice::narrow(own, char_data, is_ours)
            .ok_or(NoCommonCodeSet { server: char_data.native, own: own.char_set })?;
        Ok(Self { char_set, wchar_set: choice::wide(own, wchar_data, version) })
    }

    /// The service context that says so.
    #[must_use]
    pub fn to_context(self) -> ServiceContext {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        out.u32(self.char_set.number());
        out.u32(self.wchar_set.number());
        if self.char_set == CharSet::Utf8 {
            // Behind what others read.
            out.u8(CHARS_ARE_OCTETS);
        }
        ServiceContext { id: CONTEXT_CODE_SETS, data: out.to_vec() }
    }

    /// What a client says in this context. All that is known here is taken, whatever references offer.
    ///
    /// # Errors
    /// MARSHAL if it cannot be read; CODESET_INCOMPATIBLE if it names a code set that is not known here.
    pub fn from_context(data: &[u8]) -> Result<Self, SystemException> {
        let (chars, wide, is_ours) = read(data)?;
        let char_set = match chars {
            // Zero stands for a client that sends no such text.
            0 => CharSet::Latin1,
            set => CharSet::from_number(set).ok_or_else(|| unknown("char", set))?,
        };
        let char_set = if is_ours { char_set } else { char_set.standard() };
        let wchar_set = WcharSet::from_number(wide).ok_or_else(|| unknown("wchar", wide))?;
        Ok(Self { char_set, wchar_set })
    }
}

/// Both code sets, and whether the client is of our kind.
fn read(data: &[u8]) -> Result<(u32, u32, bool), CdrError> {
    let mut input = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))?;
    Ok((input.u32()?, input.u32()?, input.u8() == Ok(CHARS_ARE_OCTETS)))
}

fn unknown(what: &str, code_set: u32) -> SystemException {
    SystemException::codeset_incompatible(minor::UNSUPPORTED_CODE_SET, CompletionStatus::No)
        .with_detail(|| format!("the client chose {} for {what}, which is not known here", CodeSetName(code_set)))
}
