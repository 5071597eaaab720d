//! Messages joined from GIOP 1.1 fragments, each with an alignment of its own (CORBA 3.3 Part 2, 9.4.9).
//!
//! No primitive is divided between two fragments, and one that follows a joint is aligned by its offset in
//! the fragment. A block of octets, or of primitives of one type, continues across a joint without
//! realignment, as in omniORB.
//!
//! A decoder's input ends at the next joint, so that messages without joints have no extra cost: joints are
//! looked up only when the octets run out.

use super::{Decoder, Joined, Joint};
use crate::CdrError;

/// A saved position of the decoder.
#[derive(Clone, Copy)]
pub(crate) struct View<'m> {
    at: usize,
    input: &'m [u8],
    joined: Option<Joined<'m>>,
    base: usize,
}

impl<'m> Decoder<'m> {
    /// Decodes octets that were joined from parts, at positions in ascending order.
    #[inline]
    #[must_use]
    pub fn with_joints(mut self, joints: &'m [Joint]) -> Self {
        self.joined = Some(Joined { whole: self.all(), joints });
        self.find_segment(self.at);
        self
    }

    /// Whether the input has joints.
    #[inline]
    pub(crate) fn has_joints(&self) -> bool {
        self.joined.is_some_and(|joined| !joined.joints.is_empty())
    }

    /// Limits the input to the next `len` octets, which must exist. Only for input without joints.
    pub(crate) fn limit_to(&mut self, len: usize) {
        let whole = self.all();
        self.joined = Some(Joined { whole, joints: &[] });
        self.input = &whole[..self.at + len];
    }

    /// Number of all octets, including those beyond the current limit.
    pub(crate) fn all_len(&self) -> usize {
        self.all().len()
    }

    /// Removes the limit of the input.
    pub(crate) fn remove_limit(&mut self) {
        self.input = self.all();
    }

    /// Ends the limit set by [`Decoder::limit_to`] for good.
    pub(crate) fn end_limit(&mut self) {
        self.joined = None;
    }

    /// Skips the rest of the segment.
    pub(crate) fn skip_segment(&mut self) {
        self.at = self.input.len();
    }

    /// Saves the decoder's position and input.
    pub(crate) fn view(&self) -> View<'m> {
        View { at: self.at, input: self.input, joined: self.joined, base: self.base }
    }

    /// Restores a saved position.
    pub(crate) fn restore(&mut self, view: View<'m>) {
        View { at: self.at, input: self.input, joined: self.joined, base: self.base } = view;
    }

    /// Continues at another position, outside chunks.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.remove_limit();
        self.at = at;
        self.find_segment(at);
    }

    /// All octets, before and after joints.
    #[inline]
    pub(super) fn all(&self) -> &'m [u8] {
        match self.joined {
            None => self.input,
            Some(joined) => joined.whole,
        }
    }

    /// Octets left before the next joint.
    #[inline]
    pub(crate) fn segment_len(&self) -> usize {
        self.input.len() - self.at
    }

    /// Enters the segment after the last joint before `position`. A joint exactly there is not passed yet:
    /// padding before it belongs to the earlier segment.
    #[inline]
    pub(super) fn find_segment(&mut self, position: usize) {
        if let Some(Joined { whole, joints }) = self.joined {
            self.enter_segment_from(position, whole, joints);
        }
    }

    #[cold]
    fn enter_segment_from(&mut self, position: usize, whole: &'m [u8], joints: &[Joint]) {
        let passed = joints.partition_point(|joint| joint.at < position);
        self.enter_segment(whole, joints, passed);
    }

    fn enter_segment(&mut self, whole: &'m [u8], joints: &[Joint], passed: usize) {
        let end = joints.get(passed).map_or(whole.len(), |joint| joint.at.min(whole.len()));
        self.input = &whole[..end];
        // Without joints there is one origin, which need not be the first octet.
        let without = if joints.is_empty() { self.base } else { 0 };
        self.base =
            passed.checked_sub(1).map_or(without, |last| joints[last].alignment_position.wrapping_sub(joints[last].at));
    }

    /// Before alignment at the end of a segment: inside a chunked value, an aligned item stands in the next
    /// chunk.
    #[cold]
    pub(super) fn continue_in_next_chunk(&mut self) -> Result<(), CdrError> {
        if self.is_confined() { self.next_chunk(0) } else { Ok(()) }
    }

    /// [`Decoder::take`] if the segment has fewer octets.
    #[cold]
    pub(super) fn take_joined(&mut self, len: usize) -> Result<&'m [u8], CdrError> {
        if self.is_confined() {
            self.next_chunk(0)?;
            return match self.segment().get(..len) {
                Some(octets) => {
                    self.at += len;
                    Ok(octets)
                }
                None => Err(CdrError::Malformed("a primitive, string or array is split between two chunks")),
            };
        }
        let rest = self.rest();
        let octets = rest.get(..len).ok_or(CdrError::Truncated { needed: len, remaining: rest.len() })?;
        self.at += len;
        self.find_segment(self.at);
        Ok(octets)
    }

    /// Reads a primitive beyond the end of the segment.
    #[cold]
    pub(super) fn array_joined<const N: usize>(&mut self) -> Result<[u8; N], CdrError> {
        let octets = self.primitive_joined(N, N)?;
        octets.first_chunk().copied().ok_or(CdrError::Truncated { needed: N, remaining: octets.len() })
    }

    /// The octets of a `long double`, whose alignment is half its size.
    pub(crate) fn long_double(&mut self) -> Result<[u8; 16], CdrError> {
        let octets = match self.aligned_in_segment(16, 8) {
            Some(octets) => octets,
            None => self.primitive_joined(16, 8)?,
        };
        Ok(octets.try_into().expect("the slice has sixteen octets"))
    }

    /// The octets of a primitive that follows the joint directly. One function for all sizes.
    #[cold]
    #[inline(never)]
    fn primitive_joined(&mut self, len: usize, alignment: usize) -> Result<&'m [u8], CdrError> {
        if self.is_confined() {
            self.next_chunk(self.gap(alignment))?;
            return self
                .aligned_in_segment(len, alignment)
                .ok_or(CdrError::Malformed("a primitive, string or array is split between two chunks"));
        }
        let gap = self.gap(alignment);
        let truncated = CdrError::Truncated { needed: gap + len, remaining: self.remaining() };
        let Some(Joined { whole, joints }) = self.joined else { return Err(truncated) };
        let end = self.input.len();
        if end == whole.len() {
            return Err(truncated);
        }
        if self.segment_len() > gap {
            return Err(CdrError::Malformed("a primitive is divided between two fragments"));
        }
        self.at = end;
        self.enter_segment(whole, joints, joints.partition_point(|joint| joint.at <= end));
        self.aligned_in_segment(len, alignment).ok_or(truncated)
    }

    fn aligned_in_segment(&mut self, len: usize, alignment: usize) -> Option<&'m [u8]> {
        let gap = self.gap(alignment);
        let octets = self.segment().get(gap..)?.get(..len)?;
        self.at += gap + len;
        Some(octets)
    }
}
