//! The connections of a capture: assignment of segments, and their conversations.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use super::{
    conversation::{Conversation, FlowDirection, Style},
    output::Output,
    packet::Segment,
    stream::{Piece, Stream},
    summary::MessageSummary,
    typed::Types,
};

/// The maximum number of followed connections; the one that has been silent for longest makes room.
const MAX_CONNECTIONS: usize = 1024;
/// The maximum number of buffered octets, over all connections; beyond, buffers are discarded.
const MAX_BUFFERED: usize = 256 << 20;

/// Both addresses, the lesser first, so that both directions have the same key.
type Endpoints = (SocketAddr, SocketAddr);

/// The TCP connections whose messages are followed.
#[derive(Debug)]
pub(super) struct Connections {
    open: HashMap<Endpoints, Connection>,
    /// The number of connections with messages.
    counted: usize,
    buffered: usize,
    discarded: u64,
    /// Counts segments, to find the connection that has been silent for longest.
    turn: u64,
    style: Style,
}

#[derive(Debug)]
struct Connection {
    /// The side that opened it, or, if the opening is not captured, the first sender.
    client: SocketAddr,
    streams: [Stream; 2],
    conversation: Conversation,
    /// Assigned with its first message.
    number: Option<usize>,
    ended: [bool; 2],
    turn: u64,
    /// Of its last segment.
    time: Duration,
}

impl Connections {
    pub(super) fn new(style: Style) -> Self {
        Self { open: HashMap::new(), counted: 0, buffered: 0, discarded: 0, turn: 0, style }
    }

    /// The number of connections with messages.
    pub(super) fn counted(&self) -> usize {
        self.counted
    }

    /// Takes the next segment.
    pub(super) fn take(
        &mut self,
        time: Duration,
        segment: &Segment<'_>,
        types: &mut Types,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let endpoints = (segment.from.min(segment.to), segment.from.max(segment.to));
        let begins = segment.opens && segment.acknowledged.is_none();
        if begins && let Some(before) = self.open.remove(&endpoints) {
            self.buffered -= before.buffered();
            self.discarded += before.buffered() as u64;
        }
        if !self.open.contains_key(&endpoints) {
            self.make_room();
            // The answer to the first segment comes from the server.
            let client = if segment.opens && !begins { segment.to } else { segment.from };
            self.open.insert(endpoints, Connection::new(client));
        }
        let Some(connection) = self.open.get_mut(&endpoints) else { return Ok(()) };
        self.turn += 1;
        connection.turn = self.turn;
        let before = connection.buffered();
        let summaries = connection.take(time, segment, types, self.style);
        self.buffered = self.buffered - before + connection.buffered();
        self.print(&endpoints, summaries, out)?;
        let has_ended = self.open.get(&endpoints).is_some_and(|connection| connection.ended == [true; 2]);
        if has_ended || self.buffered > MAX_BUFFERED {
            self.forget(&endpoints);
        }
        Ok(())
    }

    /// Records the end of the capture: messages whose end is missing are shown.
    pub(super) fn end(&mut self, types: &mut Types, out: &mut Output) -> anyhow::Result<()> {
        let mut open: Vec<_> = self.open.iter().map(|(endpoints, connection)| (connection.turn, *endpoints)).collect();
        open.sort_unstable_by_key(|(turn, _)| *turn);
        for (_, endpoints) in open {
            let summaries = self.open.get_mut(&endpoints).map(|connection| connection.end(types, self.style));
            self.print(&endpoints, summaries.unwrap_or_default(), out)?;
        }
        Ok(())
    }

    /// The number of octets that were buffered, and discarded to make room.
    pub(super) fn discarded(&self) -> u64 {
        self.discarded
    }

    fn print(&mut self, endpoints: &Endpoints, summaries: Vec<MessageSummary>, out: &mut Output) -> anyhow::Result<()> {
        let Some(connection) = self.open.get_mut(endpoints) else { return Ok(()) };
        for mut one in summaries {
            let number = match connection.number {
                Some(number) => number,
                None => {
                    self.counted += 1;
                    connection.number = Some(self.counted);
                    let server = if connection.client == endpoints.0 { endpoints.1 } else { endpoints.0 };
                    out.begin(self.counted, &connection.client.to_string(), &server.to_string())?;
                    self.counted
                }
            };
            one.connection = number;
            out.print(&one)?;
        }
        Ok(())
    }

    fn forget(&mut self, endpoints: &Endpoints) {
        if let Some(connection) = self.open.remove(endpoints) {
            self.buffered -= connection.buffered();
            self.discarded += connection.buffered() as u64;
        }
    }

    fn make_room(&mut self) {
        if self.open.len() < MAX_CONNECTIONS {
            return;
        }
        let quiet = self.open.iter().min_by_key(|(_, connection)| connection.turn).map(|(endpoints, _)| *endpoints);
        if let Some(endpoints) = quiet {
            self.forget(&endpoints);
        }
    }
}

impl Connection {
    fn new(client: SocketAddr) -> Self {
        Self {
            client,
            streams: Default::default(),
            conversation: Conversation::default(),
            number: None,
            ended: [false; 2],
            turn: 0,
            time: Duration::ZERO,
        }
    }

    fn buffered(&self) -> usize {
        self.streams.iter().map(Stream::buffered).sum::<usize>() + self.conversation.buffered()
    }

    fn take(&mut self, time: Duration, segment: &Segment<'_>, types: &mut Types, style: Style) -> Vec<MessageSummary> {
        self.time = time;
        let direction = if segment.from == self.client { FlowDirection::Out } else { FlowDirection::Back };
        let other = if direction == FlowDirection::Out { FlowDirection::Back } else { FlowDirection::Out };
        let (mut summary, conversation) = (Vec::new(), &mut self.conversation);
        let mut note = |direction: FlowDirection, piece: Piece<'_>| {
            summary.extend(match piece {
                Piece::Octets(octets) => conversation.take(direction, time, octets, types, style),
                Piece::Gap(octets) => conversation.gap(direction, time, octets),
            });
        };
        if let Some(sequence) = segment.acknowledged {
            self.streams[other as usize].acknowledged(sequence, &mut |piece| note(other, piece));
        }
        self.streams[direction as usize].take(segment, &mut |piece| note(direction, piece));
        if segment.closes && !self.ended[direction as usize] {
            self.ended[direction as usize] = true;
            self.streams[direction as usize].end(&mut |piece| note(direction, piece));
            summary.extend(self.conversation.end(direction, time));
        }
        summary
    }

    /// Ends both directions, unless they have ended.
    fn end(&mut self, types: &mut Types, style: Style) -> Vec<MessageSummary> {
        let (mut summary, conversation, time) = (Vec::new(), &mut self.conversation, self.time);
        for direction in [FlowDirection::Out, FlowDirection::Back] {
            if self.ended[direction as usize] {
                continue;
            }
            self.ended[direction as usize] = true;
            self.streams[direction as usize].end(&mut |piece| {
                summary.extend(match piece {
                    Piece::Octets(octets) => conversation.take(direction, time, octets, types, style),
                    Piece::Gap(octets) => conversation.gap(direction, time, octets),
                });
            });
            summary.extend(conversation.end(direction, time));
        }
        summary
    }
}
