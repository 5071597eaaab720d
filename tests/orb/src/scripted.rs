//! Fake servers whose answers are written in the test.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use spandrel::{
    cdr::GiopVersion,
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{Decode, Encoder, Limits, Wire};
use spandrel_giop::{
    LocateRequestHeader, LocateStatus, Message, MessageType, ReplyStatus, RequestHeader, ServiceContext,
    begin_locate_reply, begin_reply,
};
use spandrel_message::MessageBlock;

use crate::support::{TEST_TIMEOUT, fake_server, read_message};

/// A Request or LocateRequest that a scripted server received.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    pub message: Message,
    pub request_id: u32,
    /// The target address in its `Display` form.
    pub target: String,
    /// The operation; empty for a LocateRequest.
    pub operation: String,
    pub contexts: Vec<(u32, Vec<u8>)>,
}

impl ReceivedRequest {
    pub fn read(octets: &[u8]) -> Self {
        let message = Message::whole(MessageBlock::from(octets)).unwrap();
        let mut input = message.decoder(Limits::default());
        if message.header.message_type == MessageType::LocateRequest {
            let LocateRequestHeader { request_id, target } = LocateRequestHeader::decode(&mut input).unwrap();
            let target = target.to_string();
            return Self { request_id, target, operation: String::new(), contexts: Vec::new(), message };
        }
        assert_eq!(message.header.message_type, MessageType::Request);
        let header = RequestHeader::decode(&mut input).unwrap();
        let contexts = header.service_contexts.iter().map(|context| (context.id, context.data.to_vec())).collect();
        let (target, operation) = (header.target.to_string(), header.operation.to_string());
        Self { request_id: header.request_id, target, operation, contexts, message: message.clone() }
    }

    fn wire(&self) -> Wire {
        Wire::new(self.message.header.order, self.message.header.version)
    }

    /// Encodes a Reply to this request.
    pub fn reply(&self, status: ReplyStatus, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        self.reply_with(status, &[], body)
    }

    /// Encodes a Reply with these service contexts.
    pub fn reply_with(
        &self,
        status: ReplyStatus,
        contexts: &[ServiceContext],
        body: impl FnOnce(&mut Encoder<'_>),
    ) -> Vec<u8> {
        let mut out = Encoder::new(self.wire());
        let begun = begin_reply(&mut out, self.request_id, status, contexts);
        body(&mut out);
        begun.end(&mut out).unwrap();
        out.to_vec()
    }

    /// Encodes a LocateReply to this request.
    pub fn located(&self, status: LocateStatus, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut out = Encoder::new(self.wire());
        let begun = begin_locate_reply(&mut out, self.request_id, status);
        body(&mut out);
        begun.end(&mut out).unwrap();
        out.to_vec()
    }

    /// Encodes a forwarding to another reference.
    pub fn forward(&self, status: ReplyStatus, to: &Ior) -> Vec<u8> {
        self.reply(status, |out| write_ior(to, out))
    }
}

/// Encodes an IOR.
pub fn write_ior(ior: &Ior, out: &mut Encoder<'_>) {
    out.short_str(&ior.type_id).unwrap();
    out.len(ior.profiles.len()).unwrap();
    for profile in &ior.profiles {
        out.u32(profile.tag);
        out.octet_sequence(&profile.data).unwrap();
    }
}

/// Decodes an IOR from the body of a message, at offset `body`.
pub fn read_ior(message: &Message, body: usize) -> Ior {
    Ior::decode(&mut message.decoder(Limits::default()).at(body)).unwrap()
}

/// The messages that a scripted server received, in order.
pub type ReceivedLog = Arc<Mutex<Vec<ReceivedRequest>>>;

/// Starts a server that answers each message with the result of `script`, and closes the connection on
/// `None`. Returns its port and the messages received.
pub fn scripted(script: impl Fn(&ReceivedRequest) -> Option<Vec<u8>> + Send + Sync + 'static) -> (u16, ReceivedLog) {
    let (received, script) = (ReceivedLog::default(), Arc::new(script));
    let log = Arc::clone(&received);
    let port = fake_server(move |_, mut stream| {
        let (log, script) = (Arc::clone(&log), Arc::clone(&script));
        std::thread::spawn(move || {
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            while let Ok(message) = read_message(&mut stream) {
                let request = ReceivedRequest::read(&message);
                let answer = script(&request);
                log.lock().unwrap().push(request);
                let Some(answer) = answer else { return };
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        });
    });
    (port, received)
}

/// An IOR of the object with this key at this port of the loopback address.
pub fn ior_at(port: u16, version: GiopVersion, object_key: &str) -> Ior {
    let profile = IiopProfile {
        version,
        host: "127.0.0.1".into(),
        port,
        object_key: object_key.as_bytes().to_vec(),
        components: Vec::new(),
    };
    Ior { type_id: "IDL:Probe/Target:1.0".into(), profiles: vec![profile.encode().unwrap()] }
}
