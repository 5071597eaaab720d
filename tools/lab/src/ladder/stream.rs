//! A CDR stream as the engine of the paper had it: every primitive aligns, checks for room and copies.

/// How the functions of primitives reach their callers.
pub(super) mod inlining {
    /// By a call in each case.
    pub(in super::super) const CALLED: u8 = 0;
    /// Declared with `#[inline]`: the compiler decides.
    pub(in super::super) const HINTED: u8 = 1;
    /// In line in each case, with the byte swapping apart.
    pub(in super::super) const FORCED: u8 = 2;
}

/// The octets that an encoder has written.
pub(super) struct Stream {
    octets: Vec<u8>,
}

impl Stream {
    /// Starts again in the same memory.
    pub(super) fn writing(mut octets: Vec<u8>) -> Self {
        octets.clear();
        Self { octets }
    }

    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    #[inline(always)]
    fn put_here(&mut self, value: &[u8]) {
        let at = self.octets.len().next_multiple_of(value.len());
        self.octets.resize(at, 0);
        self.octets.extend_from_slice(value);
    }

    #[inline(never)]
    fn put_there(&mut self, value: &[u8]) {
        self.put_here(value);
    }

    #[inline]
    fn put_hinted(&mut self, value: &[u8]) {
        self.put_here(value);
    }

    /// Writes a primitive, which is as long as it is aligned, by one kind of [`inlining`].
    #[inline(always)]
    pub(super) fn put<const INLINE: u8, const N: usize>(&mut self, memory: &[u8]) {
        let value: [u8; N] = memory[..N].try_into().expect("a primitive of this size");
        match INLINE {
            inlining::CALLED => self.put_there(&value),
            inlining::HINTED => self.put_hinted(&value),
            _ => self.put_here(&value),
        }
    }
}

/// The octets that a decoder reads, and its position.
pub(super) struct Source<'m> {
    octets: &'m [u8],
    at: usize,
    /// Whether their byte order differs from this machine's.
    is_swapped: bool,
}

impl<'m> Source<'m> {
    pub(super) fn reading(octets: &'m [u8]) -> Self {
        Self { octets, at: 0, is_swapped: std::hint::black_box(false) }
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let at = self.at.next_multiple_of(N);
        let value = *self.octets.get(at..)?.first_chunk::<N>()?;
        self.at = at + N;
        Some(value)
    }

    #[inline(never)]
    fn get_there<const N: usize>(&mut self, memory: &mut [u8]) -> Option<()> {
        self.get_whole::<N>(memory)
    }

    #[inline]
    fn get_hinted<const N: usize>(&mut self, memory: &mut [u8]) -> Option<()> {
        self.get_whole::<N>(memory)
    }

    /// With the byte swapping in its body, as before section 5.3.3.
    #[inline(always)]
    fn get_whole<const N: usize>(&mut self, memory: &mut [u8]) -> Option<()> {
        let mut value = self.take::<N>()?;
        if self.is_swapped {
            value.reverse();
        }
        memory[..N].copy_from_slice(&value);
        Some(())
    }

    #[inline(always)]
    fn get_here<const N: usize>(&mut self, memory: &mut [u8]) -> Option<()> {
        let value = self.take::<N>()?;
        memory[..N].copy_from_slice(&if self.is_swapped { swapped(value) } else { value });
        Some(())
    }

    /// Reads a primitive by one kind of [`inlining`].
    #[inline(always)]
    pub(super) fn get<const INLINE: u8, const N: usize>(&mut self, memory: &mut [u8]) -> Option<()> {
        match INLINE {
            inlining::CALLED => self.get_there::<N>(memory),
            inlining::HINTED => self.get_hinted::<N>(memory),
            _ => self.get_here::<N>(memory),
        }
    }

    /// Reads a length of elements that take at least this many octets, which must be available.
    pub(super) fn len(&mut self, least: usize) -> Option<usize> {
        let len = u32::from_ne_bytes(self.take::<4>()?) as usize;
        (len <= (self.octets.len() - self.at) / least).then_some(len)
    }
}

/// The helper that section 5.3.3 moves out of line, so that the rest is small enough to be inlined.
#[cold]
#[inline(never)]
fn swapped<const N: usize>(mut value: [u8; N]) -> [u8; N] {
    value.reverse();
    value
}
