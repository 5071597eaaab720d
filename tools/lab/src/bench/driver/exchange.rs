//! The messages that a load exchanges with a server.

use spandrel::types::IiopProfile;
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags, ior_from_string};

/// The messages exchanged over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bench) struct Exchange {
    /// The octets that the load sends.
    pub(super) message: Vec<u8>,
    /// The answer to a message.
    pub(super) answer: Answer,
}

/// The form of the answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The message itself, of which any part is answered separately.
    Echo,
    /// That many octets after a whole message.
    Octets(usize),
    /// A GIOP 1.2 reply without exception.
    Reply,
}

/// Octets of a GIOP 1.2 reply without contexts and results: header, request id, status, the number of
/// contexts.
pub(in crate::bench) const REPLY_OCTETS: usize = 12 + 4 + 4 + 4;
/// The length of an object key for messages that are as long as a call.
const USUAL_KEY_OCTETS: usize = 24;

impl Exchange {
    /// An echo of that many octets.
    pub(in crate::bench) fn echo(octets: usize) -> Self {
        Self { message: (0..octets).map(|index| (index % 251) as u8).collect(), answer: Answer::Echo }
    }

    /// Plain octets, as many as those of a call without parameters and of its reply.
    pub(in crate::bench) fn plain() -> Self {
        let octets = Self::call(&[0; USUAL_KEY_OCTETS]).message.len();
        Self { message: vec![0; octets], answer: Answer::Octets(REPLY_OCTETS) }
    }

    /// A call of `ping` on the object with this key.
    fn call(object_key: &[u8]) -> Self {
        let template = RequestTemplate::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2), object_key);
        let mut out = Encoder::new(template.wire());
        let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "ping", &[]);
        body.end(&mut out).expect("the operation's name is plain");
        Self { message: out.to_vec(), answer: Answer::Reply }
    }

    /// Parses a server's first line: the port of a server that takes `plain` messages, or the reference of an
    /// object to call.
    pub(super) fn from_line(line: &str, plain: &Self) -> Option<(u16, Self)> {
        if let Ok(port) = line.parse() {
            return Some((port, plain.clone()));
        }
        let reference = ior_from_string(line).ok()?;
        let profile = reference.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten())?;
        Some((profile.port, Self::call(&profile.object_key)))
    }

    /// The length of the request that is sent, with its GIOP header.
    pub(in crate::bench) fn message_octets(&self) -> usize {
        self.message.len()
    }
}

#[cfg(test)]
mod tests {
    use spandrel::{Endpoint, Orb, Poa};

    use super::super::orb::CallsServant;
    use super::*;
    use crate::mechanism::generated::latency::LatencySkeleton;

    #[test]
    fn a_line_with_a_reference_selects_calls_and_one_with_a_port_selects_plain_messages() {
        let plain = Exchange::echo(3);
        assert_eq!(Exchange::from_line("42", &plain), Some((42, plain.clone())));
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let object = Poa::root(&orb).unwrap().activate(LatencySkeleton::new(CallsServant::default())).unwrap();
        let (port, call) = Exchange::from_line(&orb.object_to_string(&object), &plain).unwrap();
        assert_eq!((&call.message[..4], call.answer), (&b"GIOP"[..], Answer::Reply));
        assert!(port > 0);
        for line in ["", "70000", "42 4x", "IOR:00"] {
            assert_eq!(Exchange::from_line(line, &plain), None, "{line}");
        }
        orb.shutdown().unwrap();
    }

    #[test]
    fn plain_messages_are_as_long_as_calls() {
        let plain = Exchange::plain();
        assert_eq!(plain.answer, Answer::Octets(24));
        assert_eq!(plain.message_octets(), Exchange::call(b"a key of 24 octets, say.").message_octets());
    }
}
