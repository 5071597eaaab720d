//! Code-set negotiation: which code sets text travels in on one connection (CORBA 3.3 Part 2, 7.10.2).
//!
//! A server's references say what it knows (`TAG_CODE_SETS`); the client chooses, and says so in the first request of a
//! connection (the `CodeSets` service context); both keep to it. How text is coded belongs to `spandrel-cdr`.

use spandrel_cdr::{ByteOrder, CdrError, CharSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

use crate::{
    CompletionStatus, ServiceContext, SystemException,
    component::{CodeSets, Component},
    minor,
};

/// The id of the service context that says what the client chose.
pub const CONTEXT_CODE_SETS: u32 = 1;

// Numbers of the OSF registry.
const LATIN1: u32 = 0x0001_0001;
const ASCII: u32 = 0x0001_0020;
const UTF8: u32 = 0x0501_0001;
const UTF16: u32 = 0x0001_0109;

/// The code sets of one connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransmissionCodeSets {
    /// For `char` and `string` (TCS-C).
    pub char_set: CharSet,
    /// For `wchar` and `wstring` (TCS-W).
    pub wchar_set: WcharSet,
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

    /// What to choose for requests to a server that says this of itself; `own` is the client's native code set.
    ///
    /// Where both are of our kind (`is_ours`), neither has to convert UTF-8, which says everything. With others the
    /// standard's order holds (7.10.2.6): the server's native code set, if the client knows it; the client's, if the
    /// server knows it; one that both know; at last what everybody has to fall back upon.
    ///
    /// # Errors
    /// None for narrow text, for which there is UTF-8 to fall back upon. Wide text is [`WcharSet::Unknown`] if the server
    /// names no native code set for it.
    #[must_use]
    pub fn choose(own: CharSet, char_data: &CodeSets, wchar_data: &CodeSets, is_ours: bool) -> Self {
        let knows =
            |set: CharSet| char_data.conversion.iter().chain([&char_data.native]).any(|known| *known == id(set));
        let char_set = match char_data.native {
            _ if is_ours && knows(CharSet::Utf8) => CharSet::Utf8,
            LATIN1 | ASCII => CharSet::Latin1,
            UTF8 => CharSet::Utf8,
            _ if knows(own) => own,
            _ if knows(CharSet::Latin1) => CharSet::Latin1,
            _ => CharSet::Utf8,
        };
        let wchar_set = if wchar_data.native == 0 { WcharSet::Unknown } else { WcharSet::Utf16 };
        Self { char_set, wchar_set }
    }

    /// The service context that says so.
    #[must_use]
    pub fn to_context(self) -> ServiceContext {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        out.u32(id(self.char_set));
        out.u32(wide_id(self.wchar_set));
        ServiceContext { id: CONTEXT_CODE_SETS, data: out.to_vec() }
    }

    /// What a client says in this context.
    ///
    /// # Errors
    /// MARSHAL if it cannot be read; CODESET_INCOMPATIBLE if it names a code set that is not known here.
    pub fn from_context(data: &[u8]) -> Result<Self, SystemException> {
        let (chars, wide) = read(data)?;
        let char_set = match chars {
            // Zero stands for a client that sends no such text.
            0 | LATIN1 | ASCII => CharSet::Latin1,
            UTF8 => CharSet::Utf8,
            other => return Err(unknown("char", other)),
        };
        let wchar_set = match wide {
            0 => WcharSet::Unknown,
            UTF16 => WcharSet::Utf16,
            other => return Err(unknown("wchar", other)),
        };
        Ok(Self { char_set, wchar_set })
    }
}

fn read(data: &[u8]) -> Result<(u32, u32), CdrError> {
    let mut input = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))?;
    Ok((input.u32()?, input.u32()?))
}

fn unknown(what: &str, code_set: u32) -> SystemException {
    SystemException::codeset_incompatible(minor::UNSUPPORTED_CODE_SET, CompletionStatus::No)
        .with_detail(|| format!("the client chose the code set {code_set:#010x} for {what}"))
}

fn id(set: CharSet) -> u32 {
    match set {
        CharSet::Utf8 => UTF8,
        _ => LATIN1,
    }
}

fn wide_id(set: WcharSet) -> u32 {
    match set {
        WcharSet::Utf16 => UTF16,
        _ => 0,
    }
}

/// What references to a server of ours say; `native` is its native code set for narrow text.
#[must_use]
pub fn code_sets_component(native: CharSet) -> Component {
    let other = if native == CharSet::Utf8 { LATIN1 } else { UTF8 };
    Component::CodeSets {
        char_data: CodeSets { native: id(native), conversion: vec![other] },
        wchar_data: CodeSets { native: UTF16, conversion: Vec::new() },
    }
}
