//! Assembly of received fragments (CORBA 3.3 Part 2, 9.4.9): the opposite of `fragments`.
//!
//! In GIOP 1.1 the fragments of a message follow in order, and alignment restarts in each. In 1.2 each begins
//! with the request id, so those of several messages may alternate, and alignment continues. Joined octets
//! are laid out as if the message had never been divided; for 1.1 the decoder receives the positions of the
//! joints. Reading from a socket, and rejection of a message before memory is reserved, belong to
//! `spandrel-transport`.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, GiopVersion, Joint, Wire};
use spandrel_message::{MessageBlock, SharedAccount};

use crate::{GiopError, HEADER_LEN, Message, MessageHeader, MessageType};

/// Octets of a request id, the whole fragment header in GIOP 1.2.
const ID_LEN: usize = 4;

/// Assembler of fragmented messages. A message in one piece passes through unchanged.
#[derive(Debug)]
pub struct Assembler {
    max_message: usize,
    max_unfinished: usize,
    unfinished: Vec<Unfinished>,
    /// Octets of all unfinished messages.
    held: usize,
    /// The account of joined messages.
    account: Option<SharedAccount>,
}

#[derive(Debug)]
struct Unfinished {
    /// `None` in GIOP 1.1.
    request_id: Option<u32>,
    header: MessageHeader,
    octets: Vec<u8>,
    joints: Vec<Joint>,
}

impl Assembler {
    /// An assembler with limits. It holds at most `max_message` octets in at most `max_unfinished` unfinished
    /// messages. A joined message has at most `max_message` octets, message header included.
    #[must_use]
    pub fn new(max_message: usize, max_unfinished: usize) -> Self {
        Self { max_message, max_unfinished, unfinished: Vec::new(), held: 0, account: None }
    }

    /// Charges joined messages to an account for as long as they exist. Unfinished ones are not charged.
    #[must_use]
    pub fn with_account(self, account: SharedAccount) -> Self {
        Self { account: Some(account), ..self }
    }

    /// Accepts the next message from the stream: `octets` are all of it, header included.
    ///
    /// Returns the message if it is now whole, `None` if more fragments are expected.
    ///
    /// # Errors
    /// [`GiopError::LengthMismatch`], [`GiopError::TooLarge`], [`GiopError::TooManyUnfinished`],
    /// [`GiopError::NotFragmentable`], [`GiopError::StrayFragment`], [`GiopError::Interleaved`],
    /// [`GiopError::Body`] for a fragment too short for its request id. After any error the connection is
    /// lost.
    // Readers of both sides call it once for each message; without the attribute it is inlined only if there
    // is a single caller.
    #[inline(always)]
    pub fn accept(&mut self, header: MessageHeader, octets: MessageBlock) -> Result<Option<Message>, GiopError> {
        if octets.len() != header.total_len() {
            return Err(GiopError::LengthMismatch { announced: header.total_len(), found: octets.len() });
        }
        header.check(self.max_message)?;
        if header.message_type != MessageType::Fragment && !header.more_fragments {
            return Ok(Some(Message { header, octets, joints: Box::default() }));
        }
        self.accept_part(header, &octets)
    }

    #[cold]
    fn accept_part(&mut self, header: MessageHeader, octets: &[u8]) -> Result<Option<Message>, GiopError> {
        let MessageHeader { version, message_type, .. } = header;
        if !message_type.is_fragmentable(version) {
            return Err(GiopError::NotFragmentable { version, message_type });
        }
        let request_id = request_id(&header, octets)?;
        let at = self.unfinished.iter().position(|unfinished| unfinished.request_id == request_id);
        match (message_type, at) {
            (MessageType::Fragment, Some(at)) => self.go_on(at, header, octets),
            (MessageType::Fragment, None) => Err(GiopError::StrayFragment(request_id)),
            (_, Some(_)) => Err(GiopError::Interleaved(request_id)),
            (_, None) => self.begin(request_id, header, octets).map(|()| None),
        }
    }

    fn begin(&mut self, request_id: Option<u32>, header: MessageHeader, octets: &[u8]) -> Result<(), GiopError> {
        if self.unfinished.len() >= self.max_unfinished {
            return Err(GiopError::TooManyUnfinished { limit: self.max_unfinished });
        }
        self.hold(octets.len())?;
        self.unfinished.push(Unfinished { request_id, header, octets: octets.to_vec(), joints: Vec::new() });
        Ok(())
    }

    fn go_on(&mut self, at: usize, header: MessageHeader, octets: &[u8]) -> Result<Option<Message>, GiopError> {
        let unfinished = &self.unfinished[at];
        let request_id = unfinished.request_id;
        if (unfinished.header.version, unfinished.header.order) != (header.version, header.order) {
            return Err(GiopError::StrayFragment(request_id));
        }
        let skipped = HEADER_LEN + request_id.map_or(0, |_| ID_LEN);
        let more = &octets[skipped..];
        self.hold(more.len() + if request_id.is_none() { size_of::<Joint>() } else { 0 })?;
        self.unfinished[at].add(more);
        if header.more_fragments {
            return Ok(None);
        }
        let unfinished = self.remove(at);
        unfinished.finish(self.account.as_ref()).map(Some)
    }

    /// Charges `more` octets against the limit, before they are held.
    fn hold(&mut self, more: usize) -> Result<(), GiopError> {
        let len = self.held + more;
        if len > self.max_message {
            return Err(GiopError::TooLarge { len, limit: self.max_message });
        }
        self.held = len;
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Unfinished {
        let unfinished = self.unfinished.remove(at);
        self.held -= unfinished.octets.len() + unfinished.joints.len() * size_of::<Joint>();
        unfinished
    }

    /// Drops the unfinished Request or LocateRequest with this id, if any: the client cancelled it and will
    /// not send the rest.
    pub fn cancel(&mut self, request_id: u32) {
        let cancelled = |unfinished: &Unfinished| {
            matches!(unfinished.header.message_type, MessageType::Request | MessageType::LocateRequest)
                && unfinished.has_request_id(request_id)
        };
        if let Some(at) = self.unfinished.iter().position(cancelled) {
            self.remove(at);
        }
    }

    /// The octets of fragments whose messages are not complete.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// The messages whose last fragment has not come.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }
}

/// The id that joins the fragments of a message; `None` in GIOP 1.1.
fn request_id(header: &MessageHeader, octets: &[u8]) -> Result<Option<u32>, GiopError> {
    if header.version < GiopVersion::V1_2 {
        return Ok(None);
    }
    let id = octets.get(HEADER_LEN..).and_then(|rest| rest.first_chunk::<ID_LEN>()).ok_or_else(|| GiopError::Body {
        message: header.message_type,
        cause: CdrError::Truncated { needed: ID_LEN, remaining: octets.len() - HEADER_LEN },
    })?;
    Ok(Some(match header.order {
        ByteOrder::Big => u32::from_be_bytes(*id),
        ByteOrder::Little => u32::from_le_bytes(*id),
    }))
}

impl Unfinished {
    /// Whether this is the request with this id. In GIOP 1.1 the id is decoded from the octets, after the
    /// contexts.
    fn has_request_id(&self, request_id: u32) -> bool {
        if let Some(own) = self.request_id {
            return own == request_id;
        }
        let wire = Wire::new(self.header.order, self.header.version);
        let read = || {
            let mut input = Decoder::new(&self.octets, wire).with_joints(&self.joints).at(HEADER_LEN);
            crate::ServiceContexts::decode(&mut input)?;
            input.u32()
        };
        read() == Ok(request_id)
    }

    /// Appends the content of a fragment, without the fragment's headers.
    fn add(&mut self, more: &[u8]) {
        if self.request_id.is_none() {
            self.joints.push(Joint { at: self.octets.len(), alignment_position: HEADER_LEN });
        }
        self.octets.extend_from_slice(more);
    }

    fn finish(self, account: Option<&SharedAccount>) -> Result<Message, GiopError> {
        let Self { mut header, mut octets, joints, .. } = self;
        let len = octets.len();
        header.more_fragments = false;
        header.size =
            u32::try_from(len - HEADER_LEN).map_err(|_| GiopError::TooLarge { len, limit: u32::MAX as usize })?;
        octets[..HEADER_LEN].copy_from_slice(&header.to_octets());
        let octets = match account {
            Some(account) => MessageBlock::charged_copy(&octets, account),
            None => MessageBlock::from(octets.as_slice()),
        };
        Ok(Message { header, octets, joints: joints.into() })
    }
}
