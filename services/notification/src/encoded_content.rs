//! Events with their encoding, which all consumers share.
//!
//! An event is encoded once when it is received, which gives its size. Requests with structured events get a copy of these
//! octets, and so do records. The octets begin at a multiple of eight, or four octets behind one: a structured event begins
//! with a string. A request in another byte order, version or code set encodes the event anew.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::OnceLock;

use spandrel::SystemException;
use spandrel::cdr::{ByteOrder, CdrError, CharSet, GiopVersion, WcharSet};
use spandrel::types::{TcKind, TypeCode};
use spandrel_cdr::{Encode, Encoder, Wire};

use crate::content::Content;
use crate::encoding::{encoded_octets, no_encoding};
use crate::live::LiveEvent;

/// The octets of an encoder's memory that a thread holds for its next event.
const MAX_SCRATCH: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The contents of an event, and its encodings as a structured event.
#[derive(Debug)]
pub(crate) struct EncodedContent {
    content: Content,
    /// Whether the octets are the same at both positions: nothing is aligned to eight.
    is_position_free: bool,
    /// By the position of the first octet modulo eight: 0 and 4.
    encodings: [OnceLock<Encoding>; 2],
    /// The place of the event in the channel's `MaxQueueLength`.
    _live: Option<LiveEvent>,
}

/// The octets of a structured event, and the form of messages in which they are valid.
#[derive(Debug)]
struct Encoding {
    wire: Wire,
    depends_on_code_sets: bool,
    octets: Vec<u8>,
}

impl Encoding {
    fn new(content: &Content, wire: Wire, position: usize) -> Result<Self, CdrError> {
        let event = content.as_structured();
        let mut scratch = SCRATCH.take();
        scratch.resize(scratch.len().max(position), 0);
        let mut out = Encoder::continuing(scratch, position, wire);
        let encoded = event.encode(&mut out);
        let depends_on_code_sets = out.depends_on_code_sets();
        let (scratch, end) = out.into_whole();
        let octets = encoded.map(|()| scratch[position..end].to_vec());
        if scratch.len() <= MAX_SCRATCH {
            SCRATCH.set(scratch);
        }
        Ok(Self { wire, depends_on_code_sets, octets: octets? })
    }

    fn is_valid_in(&self, wire: Wire) -> bool {
        let code_sets = |wire: &Wire| (wire.char_set, wire.wchar_set);
        (self.wire.order, self.wire.version) == (wire.order, wire.version)
            && (!self.depends_on_code_sets || code_sets(&self.wire) == code_sets(&wire))
    }
}

/// The sequences, arrays and typedefs that are looked through.
const LEVELS: usize = 4;

/// Whether no part of a value is aligned to more than four octets, as far as its type tells at once.
fn is_of_small_parts(type_code: &TypeCode) -> bool {
    let mut element = Cow::Borrowed(type_code);
    for _ in 0..LEVELS {
        match element.kind() {
            TcKind::Sequence | TcKind::Array | TcKind::Alias => match element.content_type() {
                Ok(content) => element = Cow::Owned(content),
                Err(_) => return false,
            },
            TcKind::Null | TcKind::Void | TcKind::Boolean | TcKind::Octet | TcKind::Char | TcKind::Short => {
                return true;
            }
            TcKind::UShort | TcKind::Long | TcKind::ULong | TcKind::Float | TcKind::Enum | TcKind::String => {
                return true;
            }
            _ => return false,
        }
    }
    false
}

impl EncodedContent {
    pub(crate) fn new(content: Content) -> Self {
        let is_position_free = match &content {
            Content::Any(value) => is_of_small_parts(value.type_code()),
            Content::Structured(event) => {
                let properties = event.header.variable_header.iter().chain(&event.filterable_data);
                let mut types = properties.map(|property| property.value.type_code());
                types.all(is_of_small_parts) && is_of_small_parts(event.remainder_of_body.type_code())
            }
        };
        Self { content, is_position_free, encodings: Default::default(), _live: None }
    }

    /// The contents of an event that a channel counts until they are dropped.
    pub(crate) fn counted(self, live: LiveEvent) -> Self {
        Self { _live: Some(live), ..self }
    }

    /// The size of the event with its types.
    ///
    /// # Errors
    /// BAD_PARAM for a value that has no encoding.
    pub(crate) fn octets(&self) -> Result<usize, SystemException> {
        match &self.content {
            Content::Any(value) => encoded_octets(value),
            Content::Structured(_) => {
                let form = Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2);
                let form = Wire { char_set: CharSet::Utf8, wchar_set: WcharSet::Utf16, ..form };
                Ok(self.encoding(form, 0).map_err(no_encoding)?.octets.len())
            }
        }
    }

    /// The encoding at a position, which the first call with it makes for its form of messages.
    fn encoding(&self, wire: Wire, position: usize) -> Result<&Encoding, CdrError> {
        let position = if self.is_position_free { 0 } else { position };
        let cell = &self.encodings[position / 4];
        match cell.get() {
            Some(encoding) => Ok(encoding),
            None => {
                let encoding = Encoding::new(&self.content, wire, position)?;
                Ok(cell.get_or_init(|| encoding))
            }
        }
    }
}

impl Deref for EncodedContent {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

/// As a structured event.
impl Encode for EncodedContent {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.align(4);
        let position = usize::from(out.misalignment());
        let encoding = self.encoding(out.wire(), position)?;
        if encoding.depends_on_code_sets {
            out.record_code_sets();
        }
        if encoding.is_valid_in(out.wire()) {
            out.lend(&encoding.octets);
        } else {
            out.octets(&Encoding::new(&self.content, out.wire(), position)?.octets);
        }
        Ok(())
    }
}
