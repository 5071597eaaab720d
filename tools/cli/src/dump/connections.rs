//! All connections of a capture: which segments belong together, and what they say.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use super::{
    Output,
    conversation::{Conversation, Style, Way},
    packet::Segment,
    stream::{Piece, Stream},
    typed::Types,
};

/// Connections that are followed at a time; the one that has been quiet for longest makes room.
const MAX_CONNECTIONS: usize = 1024;
/// Octets that wait, of all connections together; then what waits is given up.
const MAX_HELD: usize = 256 << 20;

/// Both ends, the lesser first, so that both directions have the same.
type Ends = (SocketAddr, SocketAddr);

/// What is followed.
#[derive(Debug)]
pub(super) struct Connections {
    open: HashMap<Ends, Connection>,
    /// How many have said something.
    counted: usize,
    held: usize,
    /// Counts segments, to know which connection has been quiet.
    turn: u64,
    style: Style,
}

#[derive(Debug)]
struct Connection {
    /// Who has opened it, or, if that was not seen, who spoke first.
    client: SocketAddr,
    streams: [Stream; 2],
    conversation: Conversation,
    /// Counted when it first says something.
    number: Option<usize>,
    ended: [bool; 2],
    turn: u64,
}

impl Connections {
    pub(super) fn new(style: Style) -> Self {
        Self { open: HashMap::new(), counted: 0, held: 0, turn: 0, style }
    }

    /// How many have said something.
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
        let ends = (segment.from.min(segment.to), segment.from.max(segment.to));
        let begins = segment.opens && segment.acknowledged.is_none();
        if begins && let Some(before) = self.open.remove(&ends) {
            self.held -= before.held();
        }
        if !self.open.contains_key(&ends) {
            self.make_room();
            // The answer to the first segment comes from the server.
            let client = if segment.opens && !begins { segment.to } else { segment.from };
            self.open.insert(ends, Connection::new(client));
        }
        let Some(connection) = self.open.get_mut(&ends) else { return Ok(()) };
        self.turn += 1;
        connection.turn = self.turn;
        let before = connection.held();
        let told = connection.take(time, segment, types, self.style);
        self.held = self.held - before + connection.held();
        for mut one in told {
            let number = match connection.number {
                Some(number) => number,
                None => {
                    self.counted += 1;
                    connection.number = Some(self.counted);
                    let server = if connection.client == ends.0 { ends.1 } else { ends.0 };
                    out.begin(self.counted, &connection.client.to_string(), &server.to_string())?;
                    self.counted
                }
            };
            one.connection = number;
            out.tell(&one)?;
        }
        if connection.ended == [true; 2] || self.held > MAX_HELD {
            self.forget(&ends);
        }
        Ok(())
    }

    fn forget(&mut self, ends: &Ends) {
        if let Some(connection) = self.open.remove(ends) {
            self.held -= connection.held();
        }
    }

    fn make_room(&mut self) {
        if self.open.len() < MAX_CONNECTIONS {
            return;
        }
        let quiet = self.open.iter().min_by_key(|(_, connection)| connection.turn).map(|(ends, _)| *ends);
        if let Some(ends) = quiet {
            self.forget(&ends);
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
        }
    }

    fn held(&self) -> usize {
        self.streams.iter().map(Stream::held).sum::<usize>() + self.conversation.held()
    }

    fn take(
        &mut self,
        time: Duration,
        segment: &Segment<'_>,
        types: &mut Types,
        style: Style,
    ) -> Vec<super::told::Told> {
        let way = if segment.from == self.client { Way::Out } else { Way::Back };
        let other = if way == Way::Out { Way::Back } else { Way::Out };
        let (mut told, conversation) = (Vec::new(), &mut self.conversation);
        let mut note = |way: Way, piece: Piece<'_>| {
            told.extend(match piece {
                Piece::Octets(octets) => conversation.take(way, time, octets, types, style),
                Piece::Gap(octets) => conversation.gap(way, time, octets),
            });
        };
        if let Some(sequence) = segment.acknowledged {
            self.streams[other as usize].acknowledged(sequence, &mut |piece| note(other, piece));
        }
        self.streams[way as usize].take(segment, &mut |piece| note(way, piece));
        if segment.closes && !self.ended[way as usize] {
            self.ended[way as usize] = true;
            self.streams[way as usize].end(&mut |piece| note(way, piece));
            told.extend(self.conversation.end(way, time));
        }
        told
    }
}
