//! `IOP::Codec`: values as octets, for service contexts and components (CORBA 3.3 Part 2, 7.8).
//!
//! The only encoding is the CDR encapsulation: an octet for the byte order, and then the value, or its type
//! code and the value. Text is encoded as in encapsulations: narrow in ISO 8859-1, wide in UTF-16.

use spandrel_cdr::{Any, ByteOrder, CdrError, GiopVersion, Limits, OctetForm, TypeCode, from_octets, to_octets};

use crate::{Orb, orb::WeakOrb};

/// The form in which a codec writes values, and its version (`IOP::Encoding`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Encoding {
    /// The form; [`Encoding::CDR_ENCAPS`] is the only one.
    pub format: i16,
    /// The version of GIOP whose rules the values follow.
    pub major_version: u8,
    /// The minor number of the GIOP version whose rules of encoding apply.
    pub minor_version: u8,
}

impl Encoding {
    /// `ENCODING_CDR_ENCAPS`, the format of CDR encapsulations; the only one that the standard has.
    pub const CDR_ENCAPS: i16 = 0;

    /// CDR encapsulations by the rules of this version of GIOP.
    #[must_use]
    pub const fn cdr_encaps(version: GiopVersion) -> Self {
        Self { format: Self::CDR_ENCAPS, major_version: version.major, minor_version: version.minor }
    }
}

/// The error for an encoding without a codec (`UnknownEncoding`).
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("there is no encoding {} of version {}.{}", .0.format, .0.major_version, .0.minor_version)]
pub struct UnknownEncoding(pub Encoding);
spandrel_error::debug_as_report!(UnknownEncoding);

/// The reason why octets or a value are not what a [`Codec`] takes.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The value's type does not exist in the encoding's version, or the value cannot be encoded in it.
    #[error("cannot encode a value of type `{0}` in this version of CDR")]
    InvalidTypeForEncoding(TypeCode, #[source] CdrError),
    /// The octets are no encoded value.
    #[error("cannot decode the octets: they are no CDR encapsulation of a value")]
    FormatMismatch(#[source] CdrError),
    /// The octets are no value of this type.
    #[error("cannot decode the octets: they are no value of the type `{0}`")]
    TypeMismatch(TypeCode, #[source] CdrError),
}
spandrel_error::debug_as_report!(CodecError);

fn invalid_type(data: &Any, cause: CdrError) -> CodecError {
    CodecError::InvalidTypeForEncoding(data.type_code().clone(), cause)
}

/// Creates [`Codec`]s (`IOP::CodecFactory`).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::{BidirectionalPolicy, policy::*}; } pub mod cdr { pub use spandrel_cdr::GiopVersion; } pub mod types { pub use spandrel_cdr::Any; } }
/// use spandrel::Orb;
/// use spandrel::cdr::GiopVersion;
/// use spandrel::interception::{CodecError, Encoding};
/// use spandrel::types::Any;
///
/// let orb = Orb::builder().build()?;
/// let codec = orb.codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2))?;
/// let octets = codec.encode(&Any::new("ada")?)?; // the data of a service context, for instance
/// assert_eq!(codec.decode(&octets)?.extract::<String>()?, "ada");
/// assert!(matches!(codec.decode(&octets[..5]), Err(CodecError::FormatMismatch(_))));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CodecFactory {
    orb: WeakOrb,
    limits: Limits,
}

impl CodecFactory {
    pub(crate) fn of(orb: &Orb) -> Self {
        Self { orb: WeakOrb::of(orb), limits: orb.settings().wire.limits }
    }

    /// Returns a codec for this encoding.
    ///
    /// # Errors
    /// [`UnknownEncoding`] if there is none: versions 1.0 to 1.2 of CDR encapsulations are known.
    pub fn create_codec(&self, encoding: Encoding) -> Result<Codec, UnknownEncoding> {
        let version = GiopVersion { major: encoding.major_version, minor: encoding.minor_version };
        let versions = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
        if encoding.format != Encoding::CDR_ENCAPS || !versions.contains(&version) {
            return Err(UnknownEncoding(encoding));
        }
        let form = OctetForm::encapsulation(ByteOrder::NATIVE).version(version).limits(self.limits);
        Ok(Codec { orb: self.orb.clone(), form })
    }
}

/// Encodes values and decodes them (`IOP::Codec`). Decoded references belong to its ORB. It does not keep the
/// ORB alive, so that interceptors may have one.
#[derive(Clone, Debug)]
pub struct Codec {
    orb: WeakOrb,
    form: OctetForm<'static>,
}

impl Codec {
    /// Encodes the value with its type.
    ///
    /// # Errors
    /// `InvalidTypeForEncoding`.
    pub fn encode(&self, data: &Any) -> Result<Vec<u8>, CodecError> {
        to_octets(data, &self.form).map_err(|cause| invalid_type(data, cause))
    }

    /// Decodes a value with its type, as [`encode`](Self::encode) makes it.
    ///
    /// # Errors
    /// `FormatMismatch`.
    pub fn decode(&self, data: &[u8]) -> Result<Any, CodecError> {
        let orb = self.orb.upgrade();
        from_octets(data, &self.bound(orb.as_ref())).map_err(CodecError::FormatMismatch)
    }

    /// Encodes the value without its type code. The receiver must know the type.
    ///
    /// # Errors
    /// `InvalidTypeForEncoding`.
    pub fn encode_value(&self, data: &Any) -> Result<Vec<u8>, CodecError> {
        self.form.encode_with(|out| data.write_value(out)).map_err(|cause| invalid_type(data, cause))
    }

    /// Decodes a value of this type, as [`encode_value`](Self::encode_value) makes it.
    ///
    /// # Errors
    /// `FormatMismatch` if the octets are no encapsulation, `TypeMismatch` if they hold no value of the type.
    pub fn decode_value(&self, data: &[u8], type_code: &TypeCode) -> Result<Any, CodecError> {
        if data.is_empty() {
            return Err(CodecError::FormatMismatch(CdrError::Truncated { needed: 1, remaining: 0 }));
        }
        let orb = self.orb.upgrade();
        self.bound(orb.as_ref())
            .decode_with(data, |input| Any::read(type_code.clone(), input))
            .map_err(|cause| CodecError::TypeMismatch(type_code.clone(), cause))
    }

    /// The form with the ORB to which decoded references belong.
    fn bound<'o>(&self, orb: Option<&'o Orb>) -> OctetForm<'o> {
        match orb {
            Some(orb) => self.form.binder(orb),
            None => self.form,
        }
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::WString;

    use super::*;

    fn codec(version: GiopVersion) -> Codec {
        Orb::builder()
            .build()
            .unwrap()
            .codec_factory()
            .create_codec(Encoding::cdr_encaps(version))
            .expect("a known version")
    }

    fn any(value: i32) -> Any {
        Any::new(value).expect("a long has a CDR form")
    }

    #[test]
    fn encoded_values_are_decoded() {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let codec = codec(version);
            for value in [any(-7), Any::new("caf\u{e9}").unwrap(), Any::new(any(8)).unwrap(), Any::default()] {
                assert_eq!(codec.decode(&codec.encode(&value).unwrap()), Ok(value.clone()));
                let alone = codec.encode_value(&value).unwrap();
                assert_eq!(codec.decode_value(&alone, value.type_code()), Ok(value));
            }
        }
    }

    #[test]
    fn an_encapsulation_begins_with_its_byte_order() {
        let codec = codec(GiopVersion::V1_2);
        let order = ByteOrder::NATIVE.flag();
        let value = if ByteOrder::NATIVE == ByteOrder::Big { [0, 0, 1, 2] } else { [2, 1, 0, 0] };
        assert_eq!(codec.encode_value(&any(0x102)).unwrap(), [&[order, 0, 0, 0][..], &value].concat());
        assert_eq!(codec.decode_value(&[0, 9, 9, 9, 0, 0, 1, 2], &TypeCode::LONG), Ok(any(0x102)), "of either order");
        assert_eq!(codec.decode_value(&[1, 9, 9, 9, 2, 1, 0, 0], &TypeCode::LONG), Ok(any(0x102)));
    }

    #[test]
    fn wide_text_does_not_exist_in_version_1_0() {
        let wide = Any::new(WString::from("w")).unwrap();
        assert!(matches!(codec(GiopVersion::V1_0).encode(&wide), Err(CodecError::InvalidTypeForEncoding(..))));
        assert!(matches!(codec(GiopVersion::V1_0).encode_value(&wide), Err(CodecError::InvalidTypeForEncoding(..))));
        let codec = codec(GiopVersion::V1_2);
        assert_eq!(codec.decode(&codec.encode(&wide).unwrap()), Ok(wide));
    }

    #[test]
    fn malformed_values_are_refused() {
        let codec = codec(GiopVersion::V1_2);
        let whole = codec.encode(&any(1)).unwrap();
        for len in 0..whole.len() {
            assert!(matches!(codec.decode(&whole[..len]), Err(CodecError::FormatMismatch(_))), "{len} octets");
        }
        let more = [&whole[..], &[0]].concat();
        assert!(matches!(codec.decode(&more), Err(CodecError::FormatMismatch(_))));
        let alone = codec.encode_value(&any(1)).unwrap();
        assert!(matches!(codec.decode_value(&alone, &TypeCode::DOUBLE), Err(CodecError::TypeMismatch(_, _))));
        assert!(matches!(codec.decode_value(&[], &TypeCode::LONG), Err(CodecError::FormatMismatch(_))));
    }

    #[test]
    fn unknown_encodings_are_refused() {
        let factory = Orb::builder().build().unwrap().codec_factory();
        let valid = Encoding::cdr_encaps(GiopVersion::V1_2);
        for unknown in [
            Encoding { format: 1, ..valid },
            Encoding { major_version: 2, ..valid },
            Encoding { minor_version: 9, ..valid },
        ] {
            assert_eq!(factory.create_codec(unknown).unwrap_err(), UnknownEncoding(unknown));
        }
    }
}
