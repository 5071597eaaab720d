//! Decoding of chunked state (9.3.4.6): nested values are outside chunks, everything else is inside, and
//! unknown parts can be skipped.
//!
//! A decoder's input ends with the chunk, as it does before a joint of fragments: the next chunk is looked up
//! only when the octets run out, so that decoding inside chunks costs no more than elsewhere.

use super::{INDIRECTION, LAST_VALUE_TAG, VALUE_TAG};
use crate::decoder::values::{Chunks, VALUE_MEMORY};
use crate::{CdrError, Decoder};

/// How many times over the octets of a message may be skipped.
const TIMES: usize = 16;

impl<'m> Decoder<'m> {
    fn chunks(&mut self) -> &mut Chunks {
        &mut self.read_values().chunks
    }

    /// Continues in the next chunk, after `padding` octets.
    pub(crate) fn find_chunk(&mut self, padding: usize) -> Result<(), CdrError> {
        if self.segment_len() > padding {
            return Err(CdrError::Malformed("a primitive, string or array is split between two chunks"));
        }
        self.leave_chunk()?;
        match self.u32()? {
            size @ 1..VALUE_TAG => self.enter_chunk(size),
            _ => Err(CdrError::Malformed("a value ends before its state is complete")),
        }
    }

    /// Skips the rest of a chunk.
    fn leave_chunk(&mut self) -> Result<(), CdrError> {
        if self.chunks().ended.is_some() {
            return Err(CdrError::Malformed("a value ends before its state is complete"));
        }
        if self.is_confined() {
            self.skip_segment();
            self.remove_limit();
            self.chunks().is_limited = false;
        }
        Ok(())
    }

    fn enter_chunk(&mut self, size: u32) -> Result<(), CdrError> {
        let (len, remaining) = (size as usize, self.remaining());
        if len > remaining {
            return Err(CdrError::LengthBeyondInput { len, remaining });
        }
        self.limit_to(len);
        self.chunks().is_limited = true;
        Ok(())
    }

    /// Reads a value tag, nil or the mark of an indirection. After a value tag the decoder is outside chunks,
    /// so that it can read the header.
    pub(super) fn value_tag(&mut self) -> Result<u32, CdrError> {
        if !self.is_confined() {
            return self.u32();
        }
        if self.segment_len() <= self.gap(4) {
            self.leave_chunk()?;
            match self.u32()? {
                size @ 1..VALUE_TAG => self.enter_chunk(size)?,
                tag @ VALUE_TAG..=LAST_VALUE_TAG => return Ok(tag),
                _ => return Err(CdrError::Malformed("a value ends before its state is complete")),
            }
        }
        match self.u32()? {
            tag @ (0 | INDIRECTION) => Ok(tag),
            _ => Err(CdrError::Malformed("a value begins inside a chunk")),
        }
    }

    /// Begins the state of a value after its header.
    pub(super) fn begin_state(&mut self, is_chunked: bool) -> Result<(), CdrError> {
        if !is_chunked {
            return match self.chunks().level {
                0 => Ok(()),
                _ => Err(CdrError::Malformed("a value inside a chunked one is not chunked")),
            };
        }
        if self.has_joints() {
            return Err(CdrError::Malformed("chunked values in fragments of GIOP 1.1 are not supported"));
        }
        self.chunks().level += 1;
        self.between_chunks();
        Ok(())
    }

    /// Limits the input to nothing, so that the next read looks for a chunk.
    fn between_chunks(&mut self) {
        self.limit_to(0);
        self.chunks().is_limited = true;
    }

    /// Ends the state of a chunked value: its unread rest, which a derived type has added or a custom reader
    /// has left, is skipped.
    pub(super) fn end_state(&mut self) -> Result<(), CdrError> {
        let level = self.chunks().level;
        if self.chunks().ended.is_none() {
            let start = self.position();
            let ended = self.skip_to_end(level)?;
            self.count_skipped_octets(self.position() - start)?;
            self.chunks().ended = Some(ended);
        }
        let chunks = self.chunks();
        chunks.ended = chunks.ended.filter(|&ended| ended < level);
        chunks.level = level - 1;
        if level == 1 {
            chunks.is_limited = false;
            self.remove_limit();
            self.end_limit();
        } else {
            self.between_chunks();
        }
        Ok(())
    }

    /// Counts octets that were skipped in chunks or read twice; their number is limited per message.
    pub(crate) fn count_skipped_octets(&mut self, octets: usize) -> Result<(), CdrError> {
        let limit = self.all_len().saturating_mul(TIMES);
        let values = self.read_values();
        values.skipped_octets = values.skipped_octets.saturating_add(octets);
        if values.skipped_octets > limit {
            return Err(CdrError::Malformed("skipped values are read again too often"));
        }
        Ok(())
    }

    /// Skips chunks and values up to the end tag of this level or of an enclosing one, which it returns.
    fn skip_to_end(&mut self, level: u32) -> Result<u32, CdrError> {
        self.leave_chunk()?;
        let mut current = level;
        loop {
            match self.u32()? {
                0 => return Err(CdrError::Malformed("a chunk has no size")),
                size @ 1..VALUE_TAG => {
                    self.take(size as usize)?;
                }
                tag @ VALUE_TAG..=LAST_VALUE_TAG => {
                    let at = self.position() - 4;
                    if !self.value_header(tag)?.is_chunked {
                        return Err(CdrError::Malformed("a value inside a chunked one is not chunked"));
                    }
                    let limits = self.wire().limits;
                    self.count_memory(VALUE_MEMORY)?;
                    self.read_values().note(at, current, limits)?;
                    current += 1;
                }
                tag => {
                    let ended = tag.wrapping_neg();
                    if ended > current {
                        return Err(CdrError::Malformed("an end tag for a value that is not open"));
                    }
                    if ended <= level {
                        return Ok(ended);
                    }
                    current = ended - 1;
                }
            }
        }
    }

    /// Calls `read` for the value whose tag is at `at`, and restores the position.
    ///
    /// The octets read are counted before `read` goes to another value: values may overlap if they were
    /// skipped with other type codes than those with which they are read.
    pub(crate) fn return_to<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        self.count_read()?;
        let around = self.read_values().uncounted_from.replace(at);
        let view = self.view();
        let level = self.read_values().by_position.get(&at).map_or(0, |value| value.level);
        let here = std::mem::replace(self.chunks(), Chunks { level, ..Chunks::default() });
        self.go_to(at);
        let value = read(self);
        let counted = self.count_read();
        self.restore(view);
        *self.chunks() = here;
        self.read_values().uncounted_from = around.map(|_| self.position());
        value.and_then(|value| counted.map(|()| value))
    }

    fn count_read(&mut self) -> Result<(), CdrError> {
        match self.read_values().uncounted_from {
            Some(from) => self.count_skipped_octets(self.position().saturating_sub(from)),
            None => Ok(()),
        }
    }
}
