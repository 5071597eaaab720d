//! Messages joined from GIOP 1.1 fragments: alignment counts anew in each (CORBA 3.3 Part 2, 9.4.9).
//!
//! No primitive is broken across two fragments, and one that follows a joint is aligned by its place in the fragment. A
//! block of octets, or of primitives of one type, goes on across a joint as if there were none: so do omniORB's.
//!
//! A decoder sees only what comes before the next joint, so that the usual message without any pays nothing: running out
//! of octets is the rare case in which it is looked for.

use super::Decoder;
use crate::CdrError;

/// A place in joined octets from which on alignment counts from another origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Joint {
    /// Where it is.
    pub at: usize,
    /// The position that the octet there counts as.
    pub counts_as: usize,
}

/// What a decoder of joined octets knows beyond the segment that it is in.
#[derive(Clone, Copy)]
pub(super) struct Joined<'m> {
    whole: &'m [u8],
    /// In ascending order.
    joints: &'m [Joint],
}

/// A place in the input to come back to.
#[derive(Clone, Copy)]
pub(crate) struct View<'m> {
    at: usize,
    input: &'m [u8],
    joined: Option<Joined<'m>>,
    base: usize,
}

impl<'m> Decoder<'m> {
    /// The same decoder, for octets with joints in ascending order.
    #[inline]
    #[must_use]
    pub fn with_joints(mut self, joints: &'m [Joint]) -> Self {
        self.joined = Some(Joined { whole: self.all(), joints });
        self.find_segment(self.at);
        self
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn has_joints(&self) -> bool {
        self.joined.is_some_and(|joined| !joined.joints.is_empty())
    }

    /// Sees nothing beyond the next `len` octets, which are there. In octets without joints only.
    pub(crate) fn see_only(&mut self, len: usize) {
        let whole = self.all();
        self.joined = Some(Joined { whole, joints: &[] });
        self.input = &whole[..self.at + len];
    }

    /// How many octets there are, beyond what is seen too.
    pub(crate) fn all_len(&self) -> usize {
        self.all().len()
    }

    /// Sees everything again.
    pub(crate) fn see_all(&mut self) {
        self.input = self.all();
    }

    /// Ends what [`Decoder::see_only`] began.
    pub(crate) fn forget_whole(&mut self) {
        self.joined = None;
    }

    /// Passes over all that is seen.
    pub(crate) fn pass_unbroken(&mut self) {
        self.at = self.input.len();
    }

    /// Where the decoder is and what it sees, to come back to.
    pub(crate) fn view(&self) -> View<'m> {
        View { at: self.at, input: self.input, joined: self.joined, base: self.base }
    }

    /// Comes back to where it was.
    pub(crate) fn restore(&mut self, view: View<'m>) {
        View { at: self.at, input: self.input, joined: self.joined, base: self.base } = view;
    }

    /// Goes on at another position, outside of chunks.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.see_all();
        self.at = at;
        self.find_segment(at);
    }

    /// All octets, before and beyond joints.
    #[inline]
    pub(super) fn all(&self) -> &'m [u8] {
        match self.joined {
            None => self.input,
            Some(joined) => joined.whole,
        }
    }

    /// Octets that can be read before the next joint.
    #[inline]
    pub(crate) fn unbroken_len(&self) -> usize {
        self.input.len() - self.at
    }

    /// Sees the segment after the last joint before `position`. A joint just there is not passed yet: padding before it
    /// still belongs to the earlier segment.
    #[inline]
    pub(super) fn find_segment(&mut self, position: usize) {
        if let Some(Joined { whole, joints }) = self.joined {
            self.see_from(position, whole, joints);
        }
    }

    #[cold]
    fn see_from(&mut self, position: usize, whole: &'m [u8], joints: &[Joint]) {
        let passed = joints.partition_point(|joint| joint.at < position);
        self.see(whole, joints, passed);
    }

    fn see(&mut self, whole: &'m [u8], joints: &[Joint], passed: usize) {
        let end = joints.get(passed).map_or(whole.len(), |joint| joint.at.min(whole.len()));
        self.input = &whole[..end];
        // Without joints there is one origin, which is not always the first octet.
        let without = if joints.is_empty() { self.base } else { 0 };
        self.base = passed.checked_sub(1).map_or(without, |last| joints[last].counts_as.wrapping_sub(joints[last].at));
    }

    /// Before aligning at the end of a segment: what is aligned stands in the next chunk of a value, if in a value we are.
    #[cold]
    pub(super) fn look_beyond(&mut self) -> Result<(), CdrError> {
        if self.is_confined() { self.next_chunk(0) } else { Ok(()) }
    }

    /// [`Decoder::take`] where the segment has fewer octets.
    #[cold]
    pub(super) fn take_joined(&mut self, len: usize) -> Result<&'m [u8], CdrError> {
        if self.is_confined() {
            self.next_chunk(0)?;
            return match self.unbroken().get(..len) {
                Some(taken) => {
                    self.at += len;
                    Ok(taken)
                }
                None => Err(CdrError::Malformed("a primitive, string or array is split between two chunks")),
            };
        }
        let rest = self.rest();
        let taken = rest.get(..len).ok_or(CdrError::Truncated { needed: len, remaining: rest.len() })?;
        self.at += len;
        self.find_segment(self.at);
        Ok(taken)
    }

    /// Reads a primitive that the segment does not hold any more.
    #[cold]
    pub(super) fn array_joined<const N: usize>(&mut self) -> Result<[u8; N], CdrError> {
        let octets = self.primitive_joined(N)?;
        octets.first_chunk().copied().ok_or(CdrError::Truncated { needed: N, remaining: octets.len() })
    }

    /// The octets of a primitive that is the first thing after the joint. One for all sizes.
    #[cold]
    #[inline(never)]
    fn primitive_joined(&mut self, len: usize) -> Result<&'m [u8], CdrError> {
        if self.is_confined() {
            self.next_chunk(self.gap(len))?;
            return self
                .aligned_unbroken(len)
                .ok_or(CdrError::Malformed("a primitive, string or array is split between two chunks"));
        }
        let gap = self.gap(len);
        let truncated = CdrError::Truncated { needed: gap + len, remaining: self.remaining() };
        let Some(Joined { whole, joints }) = self.joined else { return Err(truncated) };
        let end = self.input.len();
        if end == whole.len() {
            return Err(truncated);
        }
        if self.unbroken_len() > gap {
            return Err(CdrError::Malformed("a primitive is broken across two fragments"));
        }
        self.at = end;
        self.see(whole, joints, joints.partition_point(|joint| joint.at <= end));
        self.aligned_unbroken(len).ok_or(truncated)
    }

    fn aligned_unbroken(&mut self, len: usize) -> Option<&'m [u8]> {
        let gap = self.gap(len);
        let octets = self.unbroken().get(gap..)?.get(..len)?;
        self.at += gap + len;
        Some(octets)
    }
}
