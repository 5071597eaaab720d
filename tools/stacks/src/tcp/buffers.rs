//! The octets of a connection: those to send, and those that were received. Nothing is copied.

use std::collections::{BTreeMap, VecDeque};

use spandrel_message::MessageBlock;

/// Octets to send, from the first that was not acknowledged.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    blocks: VecDeque<MessageBlock>,
    /// The octets of all blocks.
    octets: usize,
}

impl SendBuffer {
    pub(super) fn len(&self) -> usize {
        self.octets
    }

    pub(super) fn push(&mut self, block: MessageBlock) {
        let mut rest = Some(block);
        while let Some(mut block) = rest {
            rest = block.take_next();
            self.octets += block.len();
            if !block.is_empty() {
                self.blocks.push_back(block);
            }
        }
    }

    /// Drops the first octets.
    pub(super) fn advance(&mut self, mut octets: usize) {
        octets = octets.min(self.octets);
        self.octets -= octets;
        while let Some(first) = self.blocks.front_mut().filter(|_| octets > 0) {
            if first.len() > octets {
                first.advance(octets);
                return;
            }
            octets -= first.len();
            self.blocks.pop_front();
        }
    }

    /// A part of the octets as a chain that shares their memory. It may be shorter, if the buffer is.
    pub(super) fn slice(&self, mut from: usize, mut octets: usize) -> MessageBlock {
        let mut chain: Option<MessageBlock> = None;
        for block in &self.blocks {
            if octets == 0 {
                break;
            }
            if from >= block.len() {
                from -= block.len();
                continue;
            }
            let part = block.slice(from..block.len().min(from + octets));
            octets -= part.len();
            from = 0;
            match &mut chain {
                Some(chain) => chain.append(part),
                None => chain = Some(part),
            }
        }
        chain.unwrap_or_default()
    }
}

/// Received octets: those in order that were not taken yet, and those behind a gap.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    in_order: VecDeque<MessageBlock>,
    octets: usize,
    /// Parts behind a gap by the position of their first octet. They do not overlap.
    early: BTreeMap<u64, MessageBlock>,
}

impl ReceiveBuffer {
    /// The octets in order that were not taken yet.
    pub(super) fn len(&self) -> usize {
        self.octets
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    pub(super) fn take(&mut self) -> Option<MessageBlock> {
        let block = self.in_order.pop_front()?;
        self.octets -= block.len();
        Some(block)
    }

    /// Appends octets that follow those in order.
    #[inline]
    pub(super) fn append(&mut self, block: MessageBlock) {
        self.octets += block.len();
        self.in_order.push_back(block);
    }

    /// Adds octets from `position` on, of which the first expected one is `next`; returns the new first expected one.
    /// Octets that were received before are dropped.
    pub(super) fn insert(&mut self, mut position: u64, mut block: MessageBlock, next: u64) -> u64 {
        if position < next {
            let known = (next - position).min(block.len() as u64);
            block.advance(known as usize);
            position += known;
        }
        if block.is_empty() {
            return next;
        }
        if position > next {
            self.insert_early(position, block);
            return next;
        }
        let mut next = position + block.len() as u64;
        self.append(block);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= next) {
            let (position, mut block) = entry.remove_entry();
            let known = (next - position).min(block.len() as u64);
            block.advance(known as usize);
            if !block.is_empty() {
                next += block.len() as u64;
                self.append(block);
            }
        }
        next
    }

    /// Adds the parts of `block` that are not known yet.
    fn insert_early(&mut self, mut position: u64, mut block: MessageBlock) {
        if let Some((before, known)) = self.early.range(..=position).next_back() {
            let end = before + known.len() as u64;
            if end > position {
                let octets = (end - position).min(block.len() as u64);
                block.advance(octets as usize);
                position = end;
            }
        }
        while !block.is_empty() {
            let following = self.early.range(position..).next().map(|(at, known)| (*at, known.len()));
            let Some((at, known)) = following.filter(|(at, _)| *at < position + block.len() as u64) else {
                self.early.insert(position, block);
                return;
            };
            let part = block.split_to((at - position) as usize);
            if !part.is_empty() {
                self.early.insert(position, part);
            }
            block.advance(known.min(block.len()));
            position = at + known as u64;
        }
    }
}
