//! The ORB in place of an echo server: the message is a request without parameters, the answer its reply.

use std::io::{self, Write};

use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException, types::IiopProfile};
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};

use crate::LabError;
use crate::mechanism::generated::latency::LatencySkeleton;
use crate::mechanism::orb::AnsweringServant;

/// The messages exchanged over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bench) struct Exchange {
    /// The octets sent and expected back.
    pub(in crate::bench) message: Vec<u8>,
    /// The number of octets of the answer.
    pub(in crate::bench) reply_octets: usize,
    /// Whether any part of a message is answered separately, as by an echo.
    pub(in crate::bench) is_echo: bool,
}

/// Octets of a GIOP 1.2 reply without contexts and results: header, request id, status, the number of
/// contexts.
const REPLY_OCTETS: usize = 12 + 4 + 4 + 4;

impl Exchange {
    /// An echo of that many octets.
    pub(in crate::bench) fn echo(octets: usize) -> Self {
        Self { message: (0..octets).map(|index| (index % 251) as u8).collect(), reply_octets: octets, is_echo: true }
    }

    /// A call without parameters on the object with this key.
    fn call(object_key: &[u8]) -> Self {
        let template = RequestTemplate::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2), object_key);
        let mut out = Encoder::new(template.wire());
        let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "ping", &[]);
        body.end(&mut out).expect("the operation's name is plain");
        Self { message: out.to_vec(), reply_octets: REPLY_OCTETS, is_echo: false }
    }

    /// Parses the rest of a server's line after its port: empty, or the key of the object to call, in
    /// hexadecimal digits.
    pub(in crate::bench) fn read(rest: &str, octets: usize) -> Option<Self> {
        if rest.is_empty() {
            return Some(Self::echo(octets));
        }
        let digits = rest.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        digits.collect::<Option<Vec<u8>>>().map(|key| Self::call(&key))
    }
}

/// Prints the object's port and key, and serves until the process ends.
pub(in crate::bench) fn serve() -> Result<(), LabError> {
    let orb = Orb::builder()
        .concurrency(spandrel::options::Concurrency::LeaderFollowers { threads: None })
        .max_connections(30_000)
        .listen(Endpoint::new("127.0.0.1", 0))
        .build()
        .map_err(LabError::call("make the ORB"))?;
    let reference = activate(&orb).map_err(LabError::call("activate the servant"))?;
    print_line(&reference).map_err(LabError::io("speak to the parent"))?;
    orb.run();
    Ok(())
}

fn activate(orb: &Orb) -> Result<ObjectRef, SystemException> {
    Poa::root(orb)?.activate(LatencySkeleton::new(AnsweringServant))
}

fn print_line(reference: &ObjectRef) -> io::Result<()> {
    let profile = reference.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let profile = profile.ok_or(io::ErrorKind::InvalidData)?;
    let key: String = profile.object_key.iter().map(|octet| format!("{octet:02x}")).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "{} {key}", profile.port)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_key_selects_calls_and_one_without_selects_echoes() {
        assert_eq!(Exchange::read("", 3), Some(Exchange { message: vec![0, 1, 2], reply_octets: 3, is_echo: true }));
        let call = Exchange::read("41ff", 3).unwrap();
        assert_eq!((&call.message[..4], call.reply_octets), (&b"GIOP"[..], 24));
        assert!(call.message.windows(2).any(|pair| pair == [0x41, 0xff]));
        assert_eq!(Exchange::read("4x", 3), None);
    }
}
