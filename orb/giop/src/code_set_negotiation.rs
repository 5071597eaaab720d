//! Code set negotiation: the choice of the code sets for text on one connection (CORBA 3.3 Part 2, 7.10.2).
//!
//! A server's references list its code sets (`TAG_CODE_SETS`). The client chooses, and names its choice in
//! the first request of a connection (the `CodeSets` service context). Both sides then use that choice. The
//! coding of text belongs to `spandrel-cdr`. The table of known code sets is the same in every program and
//! does not depend on linking or on the order of events.

use spandrel_cdr::{ByteOrder, CdrError, CharSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

use crate::{
    CompletionStatus, ServiceContext, SystemException,
    component::{CodeSetName, CodeSets, Component},
    minor,
};

mod known;

pub use known::{ALL_CODE_SETS, BASIC_CODE_SETS, KnownCodeSets};

/// The id of the service context that names the client's choice.
pub const CONTEXT_CODE_SETS: u32 = 1;

/// Octet at the end of the context by which Spandrel clients state that a `char` is an octet of ISO 8859-1
/// although strings are UTF-8.
const CHARS_ARE_OCTETS: u8 = 1;

/// The code sets in force on one connection, after negotiation (TCS-C and TCS-W).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransmissionCodeSets {
    /// The code set of `char` and `string` (TCS-C).
    pub char_set: CharSet,
    /// The code set of `wchar` and `wstring` (TCS-W).
    pub wchar_set: WcharSet,
}

/// The code sets of one side: native ones, and those that it converts to and from.
///
/// Spandrel programs hold text as `str` in any case; the native code set is a preference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnCodeSets {
    /// The code sets that a client may choose.
    pub known: &'static KnownCodeSets,
    /// The native code set for `char` and `string` (NCS-C).
    pub char_set: CharSet,
    /// The native code set for `wchar` and `wstring` (NCS-W); [`WcharSet::Unknown`] for none.
    pub wchar_set: WcharSet,
    /// The conversion code sets for `char` and `string` (CCS-C), best first. If `None`, clients convert to
    /// all known code sets, and references offer UTF-8 and ISO 8859-1.
    pub char_conversion: Option<Vec<CharSet>>,
    /// The conversion code sets for `wchar` and `wstring` (CCS-W). If `None`, clients convert to all known
    /// code sets, and references offer UTF-16.
    pub wchar_conversion: Option<Vec<WcharSet>>,
    /// The code sets assumed for a server with a reference that names none; the standard grants no more than
    /// [`TransmissionCodeSets::UNNEGOTIATED`].
    pub assumed: Option<TransmissionCodeSets>,
}

/// The error of a negotiation without a common code set for narrow text.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error(
    "the server's native code set for char is {}, ours {}; neither side converts to the code set of the other, and the two have \
     no characters in common (-ORBNativeCharCodeSet and -ORBConversionCodeSets say what is offered)",
    CodeSetName(*server), own.name()
)]
pub struct NoCommonCodeSet {
    /// The server's native code set, as its reference names it.
    pub server: u32,
    /// The client's native code set.
    pub own: CharSet,
}
spandrel_error::debug_as_report!(NoCommonCodeSet);

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
    /// ISO 8859-1 and UTF-16 as native code sets, for a program that knows these code sets.
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

    /// The component with these code sets for references to a server.
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
    /// The code sets in force before negotiation: ISO 8859-1, and no wide characters.
    pub const UNNEGOTIATED: Self = Self { char_set: CharSet::Latin1, wchar_set: WcharSet::Unknown };

    /// `wire` with these code sets in place of its own.
    #[inline]
    #[must_use]
    pub fn on(self, wire: Wire) -> Wire {
        Wire { char_set: self.char_set, wchar_set: self.wchar_set, ..wire }
    }

    /// Chooses the code sets for requests of this version to a server with these code sets.
    ///
    /// If both sides are Spandrel (`is_ours`), UTF-8 is used without conversion, since it covers all
    /// characters. With other ORBs the standard's order applies (7.10.2.6), and code sets have their
    /// standard meaning ([`CharSet::standard`]).
    ///
    /// Wide text is [`WcharSet::Unknown`] if one side has none or no agreement was reached. Only a request
    /// with such text is then rejected.
    ///
    /// # Errors
    /// [`NoCommonCodeSet`] if narrow text has no common code set.
    pub fn choose(
        own: &OwnCodeSets,
        char_data: &CodeSets,
        wchar_data: &CodeSets,
        is_ours: bool,
        version: GiopVersion,
    ) -> Result<Self, NoCommonCodeSet> {
        let char_set = choose_narrow(own, char_data, is_ours)
            .ok_or(NoCommonCodeSet { server: char_data.native, own: own.char_set })?;
        Ok(Self { char_set, wchar_set: choose_wide(own, wchar_data, version) })
    }

    /// The service context that names these code sets.
    #[must_use]
    pub fn to_context(self) -> ServiceContext {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        out.u32(self.char_set.number());
        out.u32(self.wchar_set.number());
        if self.char_set == CharSet::Utf8 {
            // After the octets that other ORBs read.
            out.u8(CHARS_ARE_OCTETS);
        }
        ServiceContext { id: CONTEXT_CODE_SETS, data: out.to_vec() }
    }

    /// Decodes the client's choice. Every code set that is known here is accepted, whether the reference
    /// offers it or not.
    ///
    /// # Errors
    /// MARSHAL if the context cannot be decoded; CODESET_INCOMPATIBLE if it names an unknown code set.
    pub fn from_context(data: &[u8]) -> Result<Self, SystemException> {
        let (chars, wide, is_ours) = read(data)?;
        let char_set = match chars {
            // Zero is sent by a client that sends no such text.
            0 => CharSet::Latin1,
            set => CharSet::from_number(set).ok_or_else(|| unknown("char", set))?,
        };
        let char_set = if is_ours { char_set } else { char_set.standard() };
        let wchar_set = WcharSet::from_number(wide).ok_or_else(|| unknown("wchar", wide))?;
        Ok(Self { char_set, wchar_set })
    }
}

/// The code set for narrow text (7.10.2.6); `None` if there is no common one.
fn choose_narrow(own: &OwnCodeSets, server: &CodeSets, is_ours: bool) -> Option<CharSet> {
    let converts = |set: CharSet| own.char_conversion.as_ref().is_none_or(|sets| sets.contains(&set));
    let knows = |set: u32| server.conversion.contains(&set) || server.native == set;
    if server.native == 0 {
        // The server's reference names no code set.
        return Some(CharSet::Latin1);
    }
    if is_ours && converts(CharSet::Utf8) && knows(CharSet::Utf8.number()) {
        return Some(CharSet::Utf8);
    }
    let convertible = |set: u32| (own.known.char_set)(set).filter(|set| converts(*set));
    agree(own, (own.char_set, own.char_set.number()), server, convertible, CharSet::Utf8).map(own.known.standard)
}

/// The code set for wide text (7.10.2.6).
fn choose_wide(own: &OwnCodeSets, server: &CodeSets, version: GiopVersion) -> WcharSet {
    let fits = |set: &WcharSet| version > GiopVersion::V1_1 || set.is_of_two_octets();
    if server.native == 0 || own.wchar_set == WcharSet::Unknown {
        return WcharSet::Unknown;
    }
    let converts = |set: &WcharSet| own.wchar_conversion.as_ref().is_none_or(|sets| sets.contains(set));
    let convertible =
        |set: u32| (own.known.wchar_set)(set).filter(|set| set.number() != 0 && converts(set) && fits(set));
    // In GIOP 1.1 a native code set of another width cannot be used.
    let native = Some(own.wchar_set).filter(fits).unwrap_or_default();
    agree(own, (native, native.number()), server, convertible, WcharSet::Utf16).unwrap_or(WcharSet::Unknown)
}

/// The first that applies:
/// - the native code set that both sides have;
/// - the server's native code set, if the client converts to it;
/// - the client's native code set, if the server converts to it;
/// - the first that both convert to, in the server's order;
/// - the common fallback, if the two native code sets have characters in common.
///
/// `native` and `number` are the client's native code set and its number.
fn agree<S: Copy>(
    own: &OwnCodeSets,
    (native, number): (S, u32),
    server: &CodeSets,
    convertible: impl Fn(u32) -> Option<S>,
    fallback: S,
) -> Option<S> {
    if number == server.native {
        return Some(native);
    }
    convertible(server.native)
        .or_else(|| server.conversion.contains(&number).then_some(native))
        .or_else(|| server.conversion.iter().find_map(|set| convertible(*set)))
        .or_else(|| (own.known.are_compatible)(number, server.native).then_some(fallback))
}

/// Both code sets, and whether the client is Spandrel.
fn read(data: &[u8]) -> Result<(u32, u32, bool), CdrError> {
    let mut input = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))?;
    Ok((input.u32()?, input.u32()?, input.u8() == Ok(CHARS_ARE_OCTETS)))
}

fn unknown(what: &str, code_set: u32) -> SystemException {
    SystemException::codeset_incompatible(minor::UNSUPPORTED_CODE_SET, CompletionStatus::No)
        .with_detail(|| format!("the client chose {} for {what}, which this ORB cannot convert (-ORBConversionCodeSets, -ORBConversionWCharCodeSets)", CodeSetName(code_set)))
}
