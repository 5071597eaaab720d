//! One connection as people want to read it: its messages, each request with what became of it.

use std::{collections::HashMap, time::Duration};

use spandrel::{GiopVersion, Ior};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Limits};
use spandrel_giop::{
    AddressingDisposition, CONTEXT_CODE_SETS, CancelRequest, GiopError, IiopProfile, LocateReplyHeader,
    LocateRequestHeader, LocateStatus, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader,
    ServiceContexts, Target, TransmissionCodeSets,
};

use super::{
    framer::{Framed, Framer},
    told::Told,
    typed::{Meant, Types},
    words,
};

/// Requests that wait for their replies, in each direction; further ones are shown, and their replies without them.
const MAX_PENDING: usize = 4096;
/// Of an operation's name so much is remembered for its reply, in octets.
const MAX_NAME: usize = 256;

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Bodies are also shown as octets.
    pub(super) has_hex: bool,
}

/// Which way something goes: from the one who has opened the connection, or to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Out,
    Back,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    ways: [OneWay; 2],
    /// How text is coded, once the client has said it.
    code_sets: Option<TransmissionCodeSets>,
}

#[derive(Debug, Default)]
struct OneWay {
    framer: Framer,
    /// Requests that went this way, by their ids.
    pending: HashMap<u32, Asked>,
}

/// A request whose reply is awaited.
#[derive(Debug)]
struct Asked {
    time: Duration,
    operation: String,
    meant: Option<Meant>,
}

/// A message on its way to being told of.
struct Reading<'r> {
    told: Told,
    body: Option<Decoder<'r>>,
}

impl Conversation {
    /// Octets that wait.
    pub(super) fn held(&self) -> usize {
        self.ways.iter().map(|way| way.framer.held()).sum()
    }

    /// The next octets of one direction; what they tell.
    pub(super) fn take(
        &mut self,
        way: Way,
        time: Duration,
        octets: &[u8],
        types: &mut Types,
        style: Style,
    ) -> Vec<Told> {
        let mut framed = Vec::new();
        self.ways[way as usize].framer.take(octets, &mut |one| framed.push(one));
        framed.into_iter().map(|one| self.tell(way, time, one, types, style)).collect()
    }

    /// So many octets of one direction were not seen.
    pub(super) fn gap(&mut self, way: Way, time: Duration, octets: usize) -> Vec<Told> {
        let mut framed = Vec::new();
        self.ways[way as usize].framer.gap(octets, &mut |one| framed.push(one));
        framed.iter().filter_map(|one| skipped(way, time, one)).collect()
    }

    /// Nothing more comes from there.
    pub(super) fn end(&mut self, way: Way, time: Duration) -> Vec<Told> {
        let mut framed = Vec::new();
        self.ways[way as usize].framer.end(&mut |one| framed.push(one));
        framed.iter().filter_map(|one| skipped(way, time, one)).collect()
    }

    fn tell(&mut self, way: Way, time: Duration, framed: Framed, types: &mut Types, style: Style) -> Told {
        match framed {
            Framed::Message(message) => self.message(way, time, &message, types, style),
            Framed::Refused(header, error) => {
                let kind = header.message_type.to_string();
                let notes = vec![explained(&error)];
                Told { kind, notes, version: Some(version(&header)), octets: header.total_len(), ..begun(way, time) }
            }
            Framed::Skipped(count) => not_understood(way, time, count),
        }
    }

    fn message(&mut self, way: Way, time: Duration, message: &Message, types: &mut Types, style: Style) -> Told {
        let header = &message.header;
        let told = Told {
            kind: header.message_type.to_string(),
            version: Some(version(header)),
            octets: header.total_len(),
            ..begun(way, time)
        };
        let mut reading = Reading { told, body: None };
        let input = message.decoder(Limits::default());
        let read = match header.message_type {
            MessageType::Request => self.request(way, input, types, &mut reading),
            MessageType::Reply => self.reply(way, input, types, &mut reading),
            MessageType::LocateRequest => self.locate_request(way, input, types, &mut reading),
            MessageType::LocateReply => self.locate_reply(way, input, &mut reading),
            MessageType::CancelRequest => self.cancel_request(way, input, &mut reading),
            _ => Ok(()),
        };
        let Reading { mut told, body } = reading;
        if let Err(error) = read {
            told.notes.push(explained(&error));
            told.hex = words::hexdump(&message.octets()[..message.octets().len().min(256)]);
        }
        if let (Some(body), true) = (body, style.has_hex) {
            told.hex = words::hexdump(body.rest());
        }
        told
    }

    /// A body as it is to be read: text is coded as the client has said.
    fn body<'b>(&self, input: Decoder<'b>) -> Decoder<'b> {
        match self.code_sets {
            Some(sets) => input.with_code_sets(sets.char_set, sets.wchar_set),
            None => input,
        }
    }

    fn note_code_sets(&mut self, contexts: &ServiceContexts<'_>) {
        let said = contexts.find(CONTEXT_CODE_SETS).and_then(|data| TransmissionCodeSets::from_context(data).ok());
        self.code_sets = said.or(self.code_sets);
    }

    fn request<'m>(
        &mut self,
        way: Way,
        mut input: Decoder<'m>,
        types: &mut Types,
        reading: &mut Reading<'m>,
    ) -> Result<(), GiopError> {
        let header = RequestHeader::decode(&mut input)?;
        self.note_code_sets(&header.service_contexts);
        let told = &mut reading.told;
        told.request_id = Some(header.request_id);
        told.operation = Some(header.operation.clone().into_owned());
        told.status = (!header.response.is_expected()).then(|| "oneway".to_owned());
        told.contexts = words::contexts(&header.service_contexts);
        told.target = Some(words::target(&header.target));
        learn(&header.target, types);
        let body = self.body(input);
        let key = header.target.object_key();
        let meant = types.arguments(&header.operation, key.as_deref(), &body);
        let understood = match meant {
            Some((meant, Ok(values))) => {
                told.interface = Some(types.interface(meant).to_owned());
                told.values = values;
                Some(meant)
            }
            Some((meant, Err(error))) => {
                let interface = types.interface(meant);
                told.notes.push(format!("these are no arguments of `{}` of {interface}: {error}", header.operation));
                told.values = untyped(&body);
                None
            }
            None => {
                told.values = untyped(&body);
                None
            }
        };
        reading.body = Some(body);
        let pending = &mut self.ways[way as usize].pending;
        if header.response.is_expected() && pending.len() < MAX_PENDING {
            let name = &header.operation[..header.operation.floor_char_boundary(MAX_NAME)];
            let (time, operation) = (reading.told.time, name.to_owned());
            if pending.insert(header.request_id, Asked { time, operation, meant: understood }).is_some() {
                reading.told.notes.push("another request with this id has not been answered".to_owned());
            }
        }
        Ok(())
    }

    /// The request that an answer belongs to, which came the other way.
    fn asked(&mut self, way: Way, id: u32, told: &mut Told) -> Option<Asked> {
        told.request_id = Some(id);
        let asked = self.ways[1 - way as usize].pending.remove(&id);
        match &asked {
            Some(asked) => {
                told.operation = Some(asked.operation.clone());
                told.took = told.time.checked_sub(asked.time);
            }
            None => told.notes.push("its request was not seen".to_owned()),
        }
        asked
    }

    fn reply<'m>(
        &mut self,
        way: Way,
        mut input: Decoder<'m>,
        types: &mut Types,
        reading: &mut Reading<'m>,
    ) -> Result<(), GiopError> {
        let header = ReplyHeader::decode(&mut input)?;
        let asked = self.asked(way, header.request_id, &mut reading.told);
        let told = &mut reading.told;
        told.status = Some(header.status.to_string());
        told.contexts = words::contexts(&header.service_contexts);
        let body = self.body(input);
        let meant = asked.and_then(|asked| asked.meant);
        if let Err(error) = answer(header.status, &mut body.clone(), meant, types, told) {
            told.notes.push(format!("its body cannot be read: {error}"));
            told.values = untyped(&body);
        }
        reading.body = Some(body);
        Ok(())
    }

    fn locate_request<'m>(
        &mut self,
        way: Way,
        mut input: Decoder<'m>,
        types: &mut Types,
        reading: &mut Reading<'m>,
    ) -> Result<(), GiopError> {
        let header = LocateRequestHeader::decode(&mut input)?;
        reading.told.request_id = Some(header.request_id);
        reading.told.target = Some(words::target(&header.target));
        learn(&header.target, types);
        let asked = Asked { time: reading.told.time, operation: String::new(), meant: None };
        let pending = &mut self.ways[way as usize].pending;
        if pending.len() < MAX_PENDING {
            pending.insert(header.request_id, asked);
        }
        Ok(())
    }

    fn locate_reply<'m>(
        &mut self,
        way: Way,
        mut input: Decoder<'m>,
        reading: &mut Reading<'m>,
    ) -> Result<(), GiopError> {
        let header = LocateReplyHeader::decode(&mut input)?;
        let told = &mut reading.told;
        self.asked(way, header.request_id, told);
        told.operation = None;
        told.status = Some(header.status.to_string());
        let mut body = input.clone();
        let read = match header.status {
            LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                words::reference(&mut body).map(|text| told.values.push(("forward".to_owned(), text)))
            }
            LocateStatus::LocSystemException => {
                words::system_exception(&mut body).map(|exception| told.values.push(named(exception)))
            }
            _ => Ok(()),
        };
        if let Err(error) = read {
            told.notes.push(format!("its body cannot be read: {error}"));
        }
        reading.body = Some(input);
        Ok(())
    }

    fn cancel_request<'m>(
        &mut self,
        way: Way,
        mut input: Decoder<'m>,
        reading: &mut Reading<'m>,
    ) -> Result<(), GiopError> {
        let id = CancelRequest::decode(&mut input)?.request_id;
        reading.told.request_id = Some(id);
        let asked = self.ways[way as usize].pending.get(&id);
        reading.told.operation = asked.map(|asked| asked.operation.clone());
        Ok(())
    }
}

/// What a reply's body says.
fn answer(
    status: ReplyStatus,
    body: &mut Decoder<'_>,
    meant: Option<Meant>,
    types: &mut Types,
    told: &mut Told,
) -> Result<(), CdrError> {
    match (status, meant) {
        (ReplyStatus::NoException, Some(meant)) => told.values = types.results(meant, body)?,
        (ReplyStatus::NoException, None) => told.values = untyped(body),
        (ReplyStatus::UserException, _) => {
            let start = body.clone();
            let id = body.str()?.into_owned();
            let members = meant.and_then(|meant| types.exception(meant, &id, &start));
            let members = match members {
                Some(members) => members?,
                None if body.remaining() == 0 => String::new(),
                None => words::octets(body.rest()),
            };
            told.values.push(("raised".to_owned(), format!("{} {members}", id.escape_debug()).trim_end().to_owned()));
        }
        (ReplyStatus::SystemException, _) => told.values.push(named(words::system_exception(body)?)),
        (ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm, _) => {
            let ior = Ior::decode(&mut body.clone())?;
            learn(&Target::Reference { ior, selected: 0 }, types);
            told.values.push(("forward".to_owned(), words::reference(body)?));
        }
        (ReplyStatus::NeedsAddressingMode, _) => {
            let wanted = AddressingDisposition::decode(body)?;
            told.values.push(("wanted".to_owned(), wanted.to_string()));
        }
    }
    Ok(())
}

/// A reference that says the type of its object is remembered for other requests to that.
fn learn(target: &Target<'_>, types: &mut Types) {
    if let Target::Reference { ior, .. } = target {
        for profile in ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten()) {
            types.learn(ior, &profile.object_key);
        }
    }
}

fn named(exception: spandrel::SystemException) -> (String, String) {
    ("raised".to_owned(), exception.to_string())
}

/// A body whose types nobody knows.
fn untyped(body: &Decoder<'_>) -> Vec<(String, String)> {
    match body.rest() {
        [] => Vec::new(),
        rest => vec![("body".to_owned(), words::octets(rest))],
    }
}

fn begun(way: Way, time: Duration) -> Told {
    Told { time, is_from_client: way == Way::Out, ..Told::default() }
}

fn not_understood(way: Way, time: Duration, octets: usize) -> Told {
    let kind = format!("… {octets} octets of no message, or not seen");
    Told { kind, octets, ..begun(way, time) }
}

fn skipped(way: Way, time: Duration, framed: &Framed) -> Option<Told> {
    match framed {
        Framed::Skipped(octets) => Some(not_understood(way, time, *octets)),
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
