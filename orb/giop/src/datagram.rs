//! One-way requests in datagrams, one request each, with a light header (paper 003's lightweight GIOP).
//!
//! A datagram has a length of its own and carries only requests of GIOP 1.2. So a header of four octets
//! replaces the twelve of a message header:
//!
//! `octet 'g' | octet version (1) | octet flags (bit 0: byte order) | octet 0`, then the request as it
//! follows a GIOP message header.
//!
//! Whole GIOP messages are accepted in datagrams too. A tagged component of Spandrel's names the address for
//! datagrams.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, TaggedComponent, Wire};
use spandrel_message::MessageBlock;

use crate::{
    GiopError, HEADER_LEN, Message, MessageType, RequestHeader, bare_message, header::MAGIC, ids::TAG_DATAGRAM_ADDRESS,
};

/// The octets of the light header, which stands in place of the 12 of GIOP.
pub const LIGHT_HEADER_LEN: usize = 4;

const LIGHT_MAGIC: u8 = b'g';
const LIGHT_VERSION: u8 = 1;

/// The largest payload of a UDP datagram over IPv4, in octets.
pub const MAX_DATAGRAM: usize = 65_507;

/// The address at which a server reads datagrams.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DatagramAddress {
    /// The host by name or address, as clients reach it.
    pub host: String,
    /// The UDP port of the server.
    pub port: u16,
    /// The longest accepted datagram, in octets.
    pub max_octets: u32,
}

impl DatagramAddress {
    /// Encodes the address for the profiles of references.
    ///
    /// # Errors
    /// A host that cannot be encoded in CDR.
    pub fn encode(&self) -> Result<TaggedComponent, CdrError> {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.octets(&[ByteOrder::NATIVE.flag(), LIGHT_VERSION]);
        out.short_str(&self.host)?;
        out.u16(self.port);
        out.u32(self.max_octets);
        Ok(TaggedComponent { tag: TAG_DATAGRAM_ADDRESS, data: out.to_vec() })
    }

    /// Decodes the component; `None` if it is another, malformed, or of an unknown header version.
    #[must_use]
    pub fn decode(component: &TaggedComponent) -> Option<Self> {
        if component.tag != TAG_DATAGRAM_ADDRESS {
            return None;
        }
        let read = || -> Result<Option<Self>, CdrError> {
            let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_0);
            let mut input = Decoder::of_encapsulation(&component.data, wire)?;
            if input.u8()? != LIGHT_VERSION {
                return Ok(None);
            }
            let (host, port, max_octets) = (input.str()?.into_owned(), input.u16()?, input.u32()?);
            Ok(Some(Self { host, port, max_octets }))
        };
        read().ok().flatten()
    }
}

/// The light header that replaces this message header; `None` if the message is not an unfragmented request
/// of GIOP 1.2.
#[must_use]
pub fn light_header(header: &[u8; HEADER_LEN]) -> Option<[u8; LIGHT_HEADER_LEN]> {
    let header = crate::MessageHeader::parse(header).ok()?;
    let is_request = header.message_type == MessageType::Request && header.version == GiopVersion::V1_2;
    (is_request && !header.more_fragments).then_some([LIGHT_MAGIC, LIGHT_VERSION, header.order.flag(), 0])
}

/// Decodes the request in a datagram.
///
/// # Errors
/// The error of the malformed part; [`GiopError::NotADatagram`] for a valid message that is not a one-way
/// request of GIOP 1.2.
pub fn read_datagram(octets: &[u8]) -> Result<Message, GiopError> {
    let message = if octets.starts_with(&MAGIC) {
        Message::whole(MessageBlock::from(octets))?
    } else {
        Message::whole(MessageBlock::from(restore_message_header(octets)?.as_slice()))?
    };
    let header = message.header;
    let is_request = header.message_type == MessageType::Request && header.version == GiopVersion::V1_2;
    if !is_request || header.more_fragments {
        return Err(GiopError::NotADatagram);
    }
    let request = RequestHeader::decode(&mut message.decoder(spandrel_cdr::Limits::default()))?;
    if request.response.is_expected() { Err(GiopError::NotADatagram) } else { Ok(message) }
}

/// The message with its whole message header in place of the light one.
fn restore_message_header(octets: &[u8]) -> Result<Vec<u8>, GiopError> {
    let (head, rest) = octets.split_first_chunk::<LIGHT_HEADER_LEN>().ok_or(GiopError::NotADatagram)?;
    let &[LIGHT_MAGIC, LIGHT_VERSION, flags @ 0..=1, 0] = head else { return Err(GiopError::NotADatagram) };
    let order = if flags == ByteOrder::Little.flag() { ByteOrder::Little } else { ByteOrder::Big };
    let mut message = Vec::with_capacity(HEADER_LEN + rest.len());
    message.extend_from_slice(&bare_message(GiopVersion::V1_2, order, MessageType::Request));
    let len = rest.len();
    let size = u32::try_from(len).map_err(|_| GiopError::TooLarge { len, limit: MAX_DATAGRAM })?;
    let size = match order {
        ByteOrder::Big => size.to_be_bytes(),
        ByteOrder::Little => size.to_le_bytes(),
    };
    message[HEADER_LEN - 4..].copy_from_slice(&size);
    message.extend_from_slice(rest);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestTemplate, ResponseFlags};

    fn request(wire: Wire, response: ResponseFlags) -> Vec<u8> {
        let mut out = Encoder::new(wire);
        let body = RequestTemplate::new(wire, b"key").begin(&mut out, 9, response, "note", &[]);
        out.u32(0x0102_0304);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    fn light(message: &[u8]) -> Vec<u8> {
        [&light_header(message.first_chunk().unwrap()).unwrap()[..], &message[HEADER_LEN..]].concat()
    }

    #[test]
    fn a_request_with_a_light_header_decodes_to_the_same_message() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let message = request(Wire::new(order, GiopVersion::V1_2), ResponseFlags::NONE);
            let datagram = light(&message);
            assert_eq!(datagram.len() + 8, message.len());
            assert_eq!(read_datagram(&datagram).unwrap().octets(), message);
            assert_eq!(read_datagram(&message).unwrap().octets(), message);
        }
    }

    #[test]
    fn a_datagram_without_a_one_way_request_is_rejected() {
        let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
        let answered = request(wire, ResponseFlags::TWO_WAY);
        assert!(read_datagram(&light(&answered)).is_err());
        assert!(read_datagram(&answered).is_err());
        let old = request(Wire::new(ByteOrder::Big, GiopVersion::V1_0), ResponseFlags::NONE);
        assert_eq!(light_header(old.first_chunk().unwrap()), None);
        assert!(read_datagram(&old).is_err());
        let message = light(&request(wire, ResponseFlags::NONE));
        for len in 0..message.len() - 4 {
            assert!(read_datagram(&message[..len]).is_err(), "{len} octets");
        }
        for at in 0..4 {
            let mut damaged = message.clone();
            damaged[at] ^= 0x40;
            assert!(read_datagram(&damaged).is_err(), "octet {at}");
        }
    }

    #[test]
    fn an_address_survives_encoding_and_decoding() {
        let address = DatagramAddress { host: "host.example".to_owned(), port: 2810, max_octets: 1472 };
        let component = address.encode().unwrap();
        assert_eq!(DatagramAddress::decode(&component), Some(address));
        for len in 0..component.data.len() {
            let cut = TaggedComponent { data: component.data[..len].to_vec(), ..component };
            assert_eq!(DatagramAddress::decode(&cut), None);
        }
    }
}
