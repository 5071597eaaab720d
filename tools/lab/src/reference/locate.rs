//! Checks with a LocateRequest whether a server has an object (CORBA 3.3 Part 2, 9.4.5).
//!
//! Uses its own connection, without an ORB: an ORB could answer from its caches, or repeat or forward the
//! request.

use std::time::Duration;

use spandrel_cdr::{ByteOrder, Decode, Encoder, GiopVersion, Ior, Limits, Wire};
use spandrel_giop::{
    Assembler, HEADER_LEN, IiopProfile, LocateReplyHeader, LocateStatus, Message, MessageHeader, MessageType,
    locate_request,
};
use spandrel_ipc::TransferError;
use spandrel_ipc::inet::{Addr, Connector, Stream};
use spandrel_message::MessageBlock;

use crate::LabError;

const SERVER: &str = "server";
/// The maximum length of a reply: it holds at most a reference.
const MAX_REPLY_OCTETS: usize = 1 << 20;

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The locate status.
    pub status: LocateStatus,
    /// The new location of the object, if the server sent one.
    pub forward: Option<Ior>,
}

/// A connection for LocateRequests.
#[derive(Debug)]
pub struct Locator {
    stream: Stream,
    addr: Addr,
    wire: Wire,
    object_key: Vec<u8>,
    next_id: u32,
    limit: Duration,
}

impl Locator {
    /// Connects to the first address of the reference that answers.
    ///
    /// # Errors
    /// If the reference has no IIOP profile, or no address answers within `limit`.
    pub fn connect(ior: &Ior, limit: Duration) -> Result<Self, LabError> {
        let profiles: Vec<_> =
            ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten()).collect();
        let mut failure = LabError::Settings("the reference has no IIOP profile that can be read".to_owned());
        for profile in profiles {
            match Self::connect_profile(&profile, limit) {
                Ok(locator) => return Ok(locator),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn connect_profile(profile: &IiopProfile, limit: Duration) -> Result<Self, LabError> {
        let named = format!("{}:{}", profile.host, profile.port);
        let addrs =
            Addr::resolve(&profile.host, profile.port).map_err(LabError::io(format!("resolve {}", profile.host)))?;
        let mut failure = LabError::Settings(format!("{named} has no address"));
        for addr in addrs {
            let open = || {
                let stream = Connector::connect_timeout(&addr, limit)?;
                stream.set_recv_timeout(Some(limit))?;
                stream.set_send_timeout(Some(limit))?;
                Ok(stream)
            };
            match open() {
                Ok(stream) => {
                    let wire = Wire::new(ByteOrder::NATIVE, profile.version.min(GiopVersion::V1_2));
                    return Ok(Self { stream, addr, wire, object_key: profile.object_key.clone(), next_id: 1, limit });
                }
                Err(error) => failure = LabError::io(format!("connect to {addr}"))(error),
            }
        }
        Err(failure)
    }

    /// The address that answered.
    #[must_use]
    pub fn addr(&self) -> Addr {
        self.addr
    }

    /// Sends one request and waits for the answer.
    ///
    /// # Errors
    /// If the server does not answer, or not with GIOP.
    pub fn locate(&mut self) -> Result<Located, LabError> {
        let request_id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut out = Encoder::new(self.wire);
        locate_request(&mut out, request_id, &self.object_key).map_err(|error| protocol(&error))?;
        self.stream.send_n(&out.to_vec()).map_err(|error| self.broken("send the LocateRequest", error))?;
        let mut assembler = Assembler::new(MAX_REPLY_OCTETS, 1);
        loop {
            let message = self.message(&mut assembler)?;
            match message.header.message_type {
                MessageType::LocateReply => {}
                MessageType::CloseConnection => return Err(failed("it closed the connection")),
                other => return Err(failed(&format!("it answered with {other}"))),
            }
            let mut input = message.decoder(Limits::default());
            let header = LocateReplyHeader::decode(&mut input).map_err(|error| protocol(&error))?;
            if header.request_id != request_id {
                continue; // the answer to a request that has timed out
            }
            let forwards = matches!(header.status, LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm);
            let forward = forwards.then(|| Ior::decode(&mut input)).transpose().map_err(|error| protocol(&error))?;
            return Ok(Located { status: header.status, forward });
        }
    }

    /// Reads one whole message.
    fn message(&self, assembler: &mut Assembler) -> Result<Message, LabError> {
        loop {
            let mut head = [0; HEADER_LEN];
            self.recv_n(&mut head)?;
            let header = MessageHeader::parse(&head).map_err(|error| protocol(&error))?;
            header.check(MAX_REPLY_OCTETS).map_err(|error| protocol(&error))?;
            let mut octets = vec![0; header.total_len()];
            octets[..HEADER_LEN].copy_from_slice(&head);
            self.recv_n(&mut octets[HEADER_LEN..])?;
            let accepted =
                assembler.accept(header, MessageBlock::from(&octets[..])).map_err(|error| protocol(&error))?;
            if let Some(message) = accepted {
                return Ok(message);
            }
        }
    }

    fn recv_n(&self, buffer: &mut [u8]) -> Result<(), LabError> {
        self.stream.recv_n(buffer).map_err(|error| self.broken("receive the LocateReply", error))
    }

    fn broken(&self, action: &str, error: TransferError) -> LabError {
        if error.is_timeout() {
            return LabError::TimedOut { role: SERVER.to_owned(), seconds: self.limit.as_secs_f64() };
        }
        LabError::io(action)(error.into())
    }
}

fn protocol(error: &dyn std::error::Error) -> LabError {
    failed(&error.to_string())
}

fn failed(detail: &str) -> LabError {
    LabError::Peer { role: SERVER.to_owned(), detail: detail.to_owned() }
}
