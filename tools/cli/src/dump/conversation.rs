//! One connection for readers: its messages, each request with its reply.

use std::{collections::HashMap, time::Duration};

use spandrel::{cdr::GiopVersion, net::error::escape, types::Ior};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Limits};
use spandrel_giop::{
    AddressingDisposition, CONTEXT_CODE_SETS, CancelRequest, GiopError, IiopProfile, LocateReplyHeader,
    LocateRequestHeader, LocateStatus, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader,
    ServiceContexts, Target, TransmissionCodeSets,
};

use super::{
    framer::{Framed, Framer},
    summary::MessageSummary,
    text,
    typed::{DisplayValue, OperationIndex, Types, Values},
};
use crate::json::JsonObject;

/// The maximum number of pending requests in each direction; replies to further ones are shown without them.
const MAX_PENDING: usize = 4096;
/// The maximum length of an operation's name remembered for its reply, in octets.
const MAX_NAME: usize = 256;

/// The form in which messages are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Bodies are also shown as octets.
    pub(super) has_hex: bool,
}

/// A direction: from the client (the side that opened the connection), or to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FlowDirection {
    Out,
    Back,
}

/// Both directions of a GIOP connection.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    flows: [Flow; 2],
    /// The negotiated code sets, once the client has sent them.
    code_sets: Option<TransmissionCodeSets>,
}

#[derive(Debug, Default)]
struct Flow {
    framer: Framer,
    /// Pending requests of this direction, by their ids.
    pending: HashMap<u32, PendingRequest>,
}

/// A request without a reply yet.
#[derive(Debug)]
struct PendingRequest {
    time: Duration,
    operation: String,
    operation_index: Option<OperationIndex>,
}

/// A message being described.
struct Decoding<'r> {
    summary: MessageSummary,
    body: Option<Decoder<'r>>,
}

impl Conversation {
    /// The number of buffered octets.
    pub(super) fn buffered(&self) -> usize {
        self.flows.iter().map(|direction| direction.framer.buffered()).sum()
    }

    /// Takes the next octets of one direction, and returns the descriptions of complete messages.
    pub(super) fn take(
        &mut self,
        direction: FlowDirection,
        time: Duration,
        octets: &[u8],
        types: &mut Types,
        style: Style,
    ) -> Vec<MessageSummary> {
        let mut framed = Vec::new();
        self.flows[direction as usize].framer.take(octets, &mut |one| framed.push(one));
        framed.into_iter().map(|one| self.describe(direction, time, one, types, style)).collect()
    }

    /// Records that octets of one direction are missing.
    pub(super) fn gap(&mut self, direction: FlowDirection, time: Duration, octets: usize) -> Vec<MessageSummary> {
        let mut framed = Vec::new();
        self.flows[direction as usize].framer.gap(octets, &mut |one| framed.push(one));
        framed.iter().filter_map(|one| skipped(direction, time, one)).collect()
    }

    /// Records the end of one direction.
    pub(super) fn end(&mut self, direction: FlowDirection, time: Duration) -> Vec<MessageSummary> {
        let mut framed = Vec::new();
        self.flows[direction as usize].framer.end(&mut |one| framed.push(one));
        framed.iter().filter_map(|one| skipped(direction, time, one)).collect()
    }

    fn describe(
        &mut self,
        direction: FlowDirection,
        time: Duration,
        framed: Framed,
        types: &mut Types,
        style: Style,
    ) -> MessageSummary {
        match framed {
            Framed::Message(message) => self.message(direction, time, &message, types, style),
            Framed::Refused(header, error) => {
                let kind = header.message_type.to_string();
                let notes = vec![explained(&error)];
                MessageSummary {
                    kind,
                    notes,
                    version: Some(version(&header)),
                    octets: header.total_len(),
                    ..empty_summary(direction, time)
                }
            }
            Framed::Compressed(header) => MessageSummary {
                kind: format!("{} (ZIOP)", header.message_type),
                notes: vec!["it is compressed (ZIOP), and not decoded".to_owned()],
                version: Some(version(&header)),
                octets: header.total_len(),
                ..empty_summary(direction, time)
            },
            Framed::Skipped(count) => undecodable(direction, time, count),
            Framed::Incomplete(count) => incomplete(direction, time, count),
        }
    }

    fn message(
        &mut self,
        direction: FlowDirection,
        time: Duration,
        message: &Message,
        types: &mut Types,
        style: Style,
    ) -> MessageSummary {
        let header = &message.header;
        let summary = MessageSummary {
            kind: header.message_type.to_string(),
            version: Some(version(header)),
            octets: header.total_len(),
            ..empty_summary(direction, time)
        };
        let mut decoding = Decoding { summary, body: None };
        let input = message.decoder(Limits::default());
        let read = match header.message_type {
            MessageType::Request => self.request(direction, input, types, &mut decoding),
            MessageType::Reply => self.reply(direction, input, types, &mut decoding),
            MessageType::LocateRequest => self.locate_request(direction, input, types, &mut decoding),
            MessageType::LocateReply => self.locate_reply(direction, input, &mut decoding),
            MessageType::CancelRequest => self.cancel_request(direction, input, &mut decoding),
            _ => Ok(()),
        };
        let Decoding { mut summary, body } = decoding;
        if let Err(error) = read {
            summary.notes.push(explained(&error));
            summary.hex = text::hexdump(&message.octets()[..message.octets().len().min(256)]);
        }
        if let (Some(body), true) = (body, style.has_hex) {
            summary.hex = text::hexdump(body.rest());
        }
        summary
    }

    /// A body for decoding, with the client's code sets.
    fn body<'b>(&self, input: Decoder<'b>) -> Decoder<'b> {
        match self.code_sets {
            Some(sets) => input.with_code_sets(sets.char_set, sets.wchar_set),
            None => input,
        }
    }

    fn record_code_sets(&mut self, contexts: &ServiceContexts<'_>) {
        let received = contexts.find(CONTEXT_CODE_SETS).and_then(|data| TransmissionCodeSets::from_context(data).ok());
        self.code_sets = received.or(self.code_sets);
    }

    fn request<'m>(
        &mut self,
        direction: FlowDirection,
        mut input: Decoder<'m>,
        types: &mut Types,
        decoding: &mut Decoding<'m>,
    ) -> Result<(), GiopError> {
        let header = RequestHeader::decode(&mut input)?;
        self.record_code_sets(&header.service_contexts);
        let summary = &mut decoding.summary;
        summary.request_id = Some(header.request_id);
        summary.operation = Some(header.operation.clone().into_owned());
        summary.status = (!header.response.is_expected()).then(|| "oneway".to_owned());
        summary.contexts = text::contexts(&header.service_contexts);
        summary.target = Some(text::target(&header.target));
        learn_type(&header.target, types);
        let body = self.body(input);
        let key = header.target.object_key();
        let operation_index = types.arguments(&header.operation, key.as_deref(), &body);
        let understood = match operation_index {
            Some((operation_index, Ok(values))) => {
                summary.interface = Some(types.interface(operation_index).to_owned());
                summary.values = values;
                Some(operation_index)
            }
            Some((operation_index, Err(error))) => {
                let interface = types.interface(operation_index);
                summary.notes.push(format!(
                    "the body does not hold the arguments of `{}` of {interface}: {error}",
                    header.operation
                ));
                summary.values = untyped(&body);
                None
            }
            None => {
                summary.values = untyped(&body);
                None
            }
        };
        decoding.body = Some(body);
        let pending = &mut self.flows[direction as usize].pending;
        if header.response.is_expected() && pending.len() < MAX_PENDING {
            let name = &header.operation[..header.operation.floor_char_boundary(MAX_NAME)];
            let (time, operation) = (decoding.summary.time, name.to_owned());
            if pending
                .insert(header.request_id, PendingRequest { time, operation, operation_index: understood })
                .is_some()
            {
                decoding.summary.notes.push("another request with this id has not been answered".to_owned());
            }
        }
        Ok(())
    }

    /// The request that an answer belongs to, from the other direction.
    fn pending_request(
        &mut self,
        direction: FlowDirection,
        id: u32,
        summary: &mut MessageSummary,
    ) -> Option<PendingRequest> {
        summary.request_id = Some(id);
        let pending_request = self.flows[1 - direction as usize].pending.remove(&id);
        match &pending_request {
            Some(pending_request) => {
                summary.operation = Some(pending_request.operation.clone());
                summary.took = summary.time.checked_sub(pending_request.time);
            }
            None => summary.notes.push("its request is not in the capture".to_owned()),
        }
        pending_request
    }

    fn reply<'m>(
        &mut self,
        direction: FlowDirection,
        mut input: Decoder<'m>,
        types: &mut Types,
        decoding: &mut Decoding<'m>,
    ) -> Result<(), GiopError> {
        let header = ReplyHeader::decode(&mut input)?;
        let pending_request = self.pending_request(direction, header.request_id, &mut decoding.summary);
        let summary = &mut decoding.summary;
        summary.status = Some(header.status.to_string());
        summary.contexts = text::contexts(&header.service_contexts);
        let body = self.body(input);
        let operation_index = pending_request.and_then(|pending_request| pending_request.operation_index);
        if let Err(error) = reply_values(header.status, &mut body.clone(), operation_index, types, summary) {
            summary.notes.push(format!("its body cannot be read: {error}"));
            summary.values = untyped(&body);
        }
        decoding.body = Some(body);
        Ok(())
    }

    fn locate_request<'m>(
        &mut self,
        direction: FlowDirection,
        mut input: Decoder<'m>,
        types: &mut Types,
        decoding: &mut Decoding<'m>,
    ) -> Result<(), GiopError> {
        let header = LocateRequestHeader::decode(&mut input)?;
        decoding.summary.request_id = Some(header.request_id);
        decoding.summary.target = Some(text::target(&header.target));
        learn_type(&header.target, types);
        let pending_request =
            PendingRequest { time: decoding.summary.time, operation: String::new(), operation_index: None };
        let pending = &mut self.flows[direction as usize].pending;
        if pending.len() < MAX_PENDING {
            pending.insert(header.request_id, pending_request);
        }
        Ok(())
    }

    fn locate_reply<'m>(
        &mut self,
        direction: FlowDirection,
        mut input: Decoder<'m>,
        decoding: &mut Decoding<'m>,
    ) -> Result<(), GiopError> {
        let header = LocateReplyHeader::decode(&mut input)?;
        let summary = &mut decoding.summary;
        self.pending_request(direction, header.request_id, summary);
        summary.operation = None;
        summary.status = Some(header.status.to_string());
        let mut body = input.clone();
        let read = match header.status {
            LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                text::reference(&mut body).map(|text| summary.values.push(("forward".to_owned(), text.into())))
            }
            LocateStatus::LocSystemException => {
                text::system_exception(&mut body).map(|exception| summary.values.push(exception_name(exception)))
            }
            _ => Ok(()),
        };
        if let Err(error) = read {
            summary.notes.push(format!("its body cannot be read: {error}"));
        }
        decoding.body = Some(input);
        Ok(())
    }

    fn cancel_request<'m>(
        &mut self,
        direction: FlowDirection,
        mut input: Decoder<'m>,
        decoding: &mut Decoding<'m>,
    ) -> Result<(), GiopError> {
        let id = CancelRequest::decode(&mut input)?.request_id;
        decoding.summary.request_id = Some(id);
        let pending_request = self.flows[direction as usize].pending.get(&id);
        decoding.summary.operation = pending_request.map(|pending_request| pending_request.operation.clone());
        Ok(())
    }
}

/// The values of a reply's body.
fn reply_values(
    status: ReplyStatus,
    body: &mut Decoder<'_>,
    operation_index: Option<OperationIndex>,
    types: &mut Types,
    summary: &mut MessageSummary,
) -> Result<(), CdrError> {
    match (status, operation_index) {
        (ReplyStatus::NoException, Some(operation_index)) => summary.values = types.results(operation_index, body)?,
        (ReplyStatus::NoException, None) => summary.values = untyped(body),
        (ReplyStatus::UserException, _) => {
            let start = body.clone();
            let id = body.str()?.into_owned();
            let members = operation_index.and_then(|operation_index| types.exception(operation_index, &id, &start));
            let members = match members {
                Some(members) => members?,
                None if body.remaining() == 0 => String::new().into(),
                None => text::octets(body.rest()).into(),
            };
            let raised = match members {
                DisplayValue::Json(members) => {
                    DisplayValue::Json(JsonObject::new().value("id", id).json("members", &members).finish())
                }
                DisplayValue::Text(members) => {
                    DisplayValue::Text(format!("{} {members}", escape(&id)).trim_end().to_owned())
                }
            };
            summary.values.push(("raised".to_owned(), raised));
        }
        (ReplyStatus::SystemException, _) => summary.values.push(exception_name(text::system_exception(body)?)),
        (ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm, _) => {
            let ior = Ior::decode(&mut body.clone())?;
            learn_type(&Target::Reference { ior, selected: 0 }, types);
            summary.values.push(("forward".to_owned(), text::reference(body)?.into()));
        }
        (ReplyStatus::NeedsAddressingMode, _) => {
            let disposition = AddressingDisposition::decode(body)?;
            summary.values.push(("wanted".to_owned(), disposition.to_string().into()));
        }
    }
    Ok(())
}

/// Remembers the type of a reference, for requests to its object.
fn learn_type(target: &Target<'_>, types: &mut Types) {
    if let Target::Reference { ior, .. } = target {
        for profile in ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten()) {
            types.learn_type(ior, &profile.object_key);
        }
    }
}

fn exception_name(exception: spandrel::SystemException) -> (String, DisplayValue) {
    ("raised".to_owned(), exception.to_string().into())
}

/// A body of unknown types.
fn untyped(body: &Decoder<'_>) -> Values {
    match body.rest() {
        [] => Vec::new(),
        rest => vec![("body".to_owned(), text::octets(rest).into())],
    }
}

fn empty_summary(direction: FlowDirection, time: Duration) -> MessageSummary {
    MessageSummary { time, is_from_client: direction == FlowDirection::Out, ..MessageSummary::default() }
}

fn undecodable(direction: FlowDirection, time: Duration, octets: usize) -> MessageSummary {
    let kind = format!("… {octets} octets outside of messages, or missing");
    MessageSummary { kind, octets, ..empty_summary(direction, time) }
}

fn incomplete(direction: FlowDirection, time: Duration, octets: usize) -> MessageSummary {
    let kind = format!("… {octets} octets of a message whose end is missing");
    MessageSummary { kind, octets, ..empty_summary(direction, time) }
}

fn skipped(direction: FlowDirection, time: Duration, framed: &Framed) -> Option<MessageSummary> {
    match framed {
        Framed::Skipped(octets) => Some(undecodable(direction, time, *octets)),
        Framed::Incomplete(octets) => Some(incomplete(direction, time, *octets)),
        _ => None,
    }
}

fn version(header: &MessageHeader) -> String {
    let GiopVersion { major, minor } = header.version;
    let order = if header.order == ByteOrder::Big { "big-endian" } else { "little-endian" };
    format!("GIOP {major}.{minor}, {order}")
}

fn explained(error: &GiopError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
