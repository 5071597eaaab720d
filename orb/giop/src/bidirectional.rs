//! Listen points: the addresses at which a client accepts requests over the connections that it opens (CORBA
//! 3.3 Part 2, 9.8.1).
//!
//! The context's content is an encapsulation: `sequence<{ string host | ushort port }>`. Whether a listen
//! point is trusted is decided elsewhere.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, Wire};

use crate::ServiceContext;

/// The service context with a client's listen points (`IOP::BI_DIR_IIOP`).
pub const CONTEXT_BI_DIR_IIOP: u32 = 5;

/// The largest number of listen points in one context.
const MAX_POINTS: usize = 64;

/// Octets of the smallest encoding of a listen point: an empty string and a port.
const MIN_OCTETS: usize = 7;

/// An address in a client's references for which requests go over the connection that carries this context
/// (`IIOP::ListenPoint`).
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ListenPoint {
    /// The host as in the references' profiles: a name, or an address without brackets.
    pub host: String,
    /// The port, as in the profiles of the references that are called over the connection.
    pub port: u16,
}

impl ListenPoint {
    /// Encodes the service context with these listen points.
    ///
    /// # Errors
    /// A host that cannot be encoded in CDR.
    pub fn to_context(points: &[Self]) -> Result<ServiceContext, CdrError> {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        out.len(points.len())?;
        for point in points {
            out.short_str(&point.host)?;
            out.u16(point.port);
        }
        Ok(ServiceContext { id: CONTEXT_BI_DIR_IIOP, data: out.to_vec() })
    }

    /// Decodes the listen points of a context.
    ///
    /// # Errors
    /// Octets that are not a list of listen points; a list of more than 64.
    pub fn from_context(data: &[u8]) -> Result<Vec<Self>, CdrError> {
        let mut input = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))?;
        let count = input.sequence_len(MIN_OCTETS)?;
        if count > MAX_POINTS {
            return Err(CdrError::OverBound { len: count, bound: MAX_POINTS });
        }
        (0..count).map(|_| Ok(Self { host: input.str()?.into_owned(), port: input.u16()? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(host: &str, port: u16) -> ListenPoint {
        ListenPoint { host: host.to_owned(), port }
    }

    #[test]
    fn points_are_read_as_they_were_written() {
        let points = [point("host.example", 2809), point("fe80::1", 65_535)];
        let context = ListenPoint::to_context(&points).unwrap();
        assert_eq!(context.id, CONTEXT_BI_DIR_IIOP);
        assert_eq!(ListenPoint::from_context(&context.data).unwrap(), points);
    }

    #[test]
    fn points_are_read_in_either_order_of_octets() {
        let big = b"\0\0\0\0\0\0\0\x01\0\0\0\x02h\0\x01\x02";
        assert_eq!(ListenPoint::from_context(big).unwrap(), [point("h", 0x0102)]);
        let little = b"\x01\0\0\0\x01\0\0\0\x02\0\0\0h\0\x02\x01";
        assert_eq!(ListenPoint::from_context(little).unwrap(), [point("h", 0x0102)]);
    }

    #[test]
    fn a_list_with_a_false_length_is_rejected() {
        for cut in 0..16 {
            let whole = b"\0\0\0\0\0\0\0\x01\0\0\0\x02h\0\x01\x02";
            assert!(ListenPoint::from_context(&whole[..cut]).is_err(), "{cut} octets");
        }
        assert!(ListenPoint::from_context(b"\0\0\0\0\xff\xff\xff\xff").is_err());
        let many = vec![point("", 1); MAX_POINTS + 1];
        let context = ListenPoint::to_context(&many).unwrap();
        assert_eq!(
            ListenPoint::from_context(&context.data),
            Err(CdrError::OverBound { len: MAX_POINTS + 1, bound: MAX_POINTS })
        );
    }
}
