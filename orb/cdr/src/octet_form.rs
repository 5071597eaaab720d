//! Values as octets outside of messages: files, shared memory, and other protocols such as ZeroMQ.
//!
//! The messages of a call belong to `spandrel-giop`, and `IOP::Codec`, whose values are `Any`s, to `spandrel-orb`.

use std::fmt;

use crate::{
    Binder, ByteOrder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, GiopVersion, Limits, WcharSet, Wire,
};

/// Encodes a value, such as one of a generated type.
///
/// The first octet is the origin of alignment, as in an encapsulation (CORBA 3.3 Part 2, 9.3.3). The form is
/// [bare](OctetForm::bare) or an [encapsulation](OctetForm::encapsulation).
///
/// ```
/// use spandrel_cdr::{ByteOrder, OctetForm, to_octets};
///
/// let readings = vec![1.5_f64];
/// let octets = to_octets(&readings, &OctetForm::bare(ByteOrder::Big))?;
/// // The length, padding to a multiple of 8, and the double.
/// assert_eq!(octets, [0, 0, 0, 1, 0, 0, 0, 0, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), spandrel_cdr::CdrError>(())
/// ```
///
/// # Errors
/// A value without an encoding in this form, such as a string with NUL inside, or wide text in GIOP 1.0.
pub fn to_octets<T: Encode + ?Sized>(value: &T, form: &OctetForm<'_>) -> Result<Vec<u8>, CdrError> {
    form.encode_with(|out| value.encode(out))
}

/// Decodes a value, such as one of a generated type. The octets may come from an untrusted peer.
///
/// ```
/// use spandrel_cdr::{ByteOrder, CdrError, OctetForm, TrailingOctets, from_octets};
///
/// let octets = [0, 0, 0, 3, b'h', b'i', 0, 0xff];
/// let form = OctetForm::bare(ByteOrder::Big);
/// assert_eq!(from_octets::<String>(&octets[..7], &form)?, "hi");
/// assert_eq!(from_octets::<String>(&octets, &form), Err(CdrError::TrailingOctets { remaining: 1 }));
///
/// let form = form.trailing_octets(TrailingOctets::Ignore);
/// assert_eq!(from_octets::<String>(&octets, &form)?, "hi");
/// # Ok::<(), CdrError>(())
/// ```
///
/// # Errors
/// - Octets that are not a value of this type, or nest deeper than the [limits](OctetForm::limits).
/// - [`CdrError::TrailingOctets`] for octets after the value, unless the form [ignores](TrailingOctets::Ignore)
///   them.
/// - [`CdrError::Unbound`] for an object reference, if the form has no [binder](OctetForm::binder).
pub fn from_octets<T: Decode>(octets: &[u8], form: &OctetForm<'_>) -> Result<T, CdrError> {
    form.decode_with(octets, T::decode)
}

/// The treatment of octets after a decoded value.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TrailingOctets {
    /// They are an error.
    #[default]
    Reject,
    /// They are not read. For padding after a value, and for types that are extended at their end.
    Ignore,
}

/// The form of octets outside of messages: byte order, GIOP version, code sets, limits, and whether they are bare or
/// an encapsulation.
///
/// The defaults are those of encapsulations: GIOP 1.2, ISO 8859-1 for narrow text, UTF-16 for wide text.
///
/// ```
/// use spandrel_cdr::{ByteOrder, GiopVersion, OctetForm, from_octets, to_octets};
///
/// let form = OctetForm::encapsulation(ByteOrder::Little).version(GiopVersion::V1_1);
/// let octets = to_octets("hi", &form)?;
/// assert_eq!(octets, [1, 0, 0, 0, 3, 0, 0, 0, b'h', b'i', 0]); // the byte order first
/// // An encapsulation is decoded by its own byte order.
/// assert_eq!(from_octets::<String>(&octets, &OctetForm::encapsulation(ByteOrder::Big))?, "hi");
/// # Ok::<(), spandrel_cdr::CdrError>(())
/// ```
#[derive(Clone, Copy)]
pub struct OctetForm<'b> {
    wire: Wire,
    is_encapsulation: bool,
    trailing: TrailingOctets,
    binder: Option<&'b dyn Binder>,
}

impl<'b> OctetForm<'b> {
    /// The value alone. Both sides have to agree on the byte order.
    #[must_use]
    pub fn bare(order: ByteOrder) -> Self {
        Self {
            wire: Wire::new(order, GiopVersion::V1_2),
            is_encapsulation: false,
            trailing: TrailingOctets::Reject,
            binder: None,
        }
    }

    /// An octet with the byte order, then the value (9.3.3). Decoding uses the order of that octet.
    #[must_use]
    pub fn encapsulation(order: ByteOrder) -> Self {
        Self { is_encapsulation: true, ..Self::bare(order) }
    }

    /// The GIOP version by whose rules the value is encoded (default 1.2). It concerns wide text, which 1.0 lacks.
    #[must_use]
    pub fn version(mut self, version: GiopVersion) -> Self {
        self.wire.version = version;
        self
    }

    /// The code sets of narrow and wide text (default: ISO 8859-1 and UTF-16).
    #[must_use]
    pub fn code_sets(mut self, char_set: CharSet, wchar_set: WcharSet) -> Self {
        (self.wire.char_set, self.wire.wchar_set) = (char_set, wchar_set);
        self
    }

    /// The limits of decoded values (default: [`Limits::default`]). The length of the octets limits the memory.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.wire.limits = limits;
        self
    }

    /// The treatment of octets after a decoded value (default: [`TrailingOctets::Reject`]).
    #[must_use]
    pub fn trailing_octets(mut self, treatment: TrailingOctets) -> Self {
        self.trailing = treatment;
        self
    }

    /// The ORB to which decoded object references belong, and which has the factories of valuetypes.
    #[must_use]
    pub fn binder<'c>(self, binder: &'c dyn Binder) -> OctetForm<'c>
    where
        'b: 'c,
    {
        OctetForm { binder: Some(binder), ..self }
    }

    /// Encodes with a function that writes the value.
    ///
    /// # Errors
    /// Those of the function.
    pub fn encode_with<'a>(
        &self,
        write: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Vec<u8>, CdrError> {
        let mut out = Encoder::new(self.wire);
        if self.is_encapsulation {
            out.u8(self.wire.order.flag());
        }
        write(&mut out)?;
        let (mut octets, len) = out.into_whole();
        octets.truncate(len);
        Ok(octets)
    }

    /// Decodes with a function that reads the value.
    ///
    /// # Errors
    /// Those of the function; [`CdrError::Truncated`] for an encapsulation without octets;
    /// [`CdrError::TrailingOctets`].
    pub fn decode_with<T>(
        &self,
        octets: &[u8],
        read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let mut input = if self.is_encapsulation {
            Decoder::of_encapsulation(octets, self.wire)?
        } else {
            Decoder::new(octets, self.wire)
        };
        if let Some(binder) = self.binder {
            input = input.with_binder(binder);
        }
        let value = read(&mut input)?;
        match (input.remaining(), self.trailing) {
            (0, _) | (_, TrailingOctets::Ignore) => Ok(value),
            (remaining, TrailingOctets::Reject) => Err(CdrError::TrailingOctets { remaining }),
        }
    }
}

impl fmt::Debug for OctetForm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wire, is_encapsulation, trailing, binder } = self;
        f.debug_struct("OctetForm")
            .field("wire", wire)
            .field("is_encapsulation", is_encapsulation)
            .field("trailing", trailing)
            .field("has_binder", &binder.is_some())
            .finish()
    }
}
