//! The Internet checksum (RFC 1071).

/// The sum of 16-bit words in ones' complement arithmetic, over octets that are added piece by piece.
///
/// ```
/// use spandrel_stacks::checksum::Sum;
///
/// // The example of RFC 1071, section 3.
/// let mut sum = Sum::default();
/// sum.add(&[0x00, 0x01, 0xf2]);
/// sum.add(&[0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.checksum(), !0xddf2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    sum: u64,
    is_odd: bool,
}

impl Sum {
    /// Adds octets behind those that were added before, whose number may be odd.
    pub fn add(&mut self, octets: &[u8]) {
        let mut octets = octets;
        if self.is_odd
            && let Some((first, rest)) = octets.split_first()
        {
            self.sum += u64::from(*first);
            self.is_odd = false;
            octets = rest;
        }
        // The sum does not depend on the order of octets within words (RFC 1071, 2 (B)), so words of 32 bits in
        // network order are as good as those of 16.
        let (words, rest) = octets.as_chunks::<4>();
        self.sum += words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum::<u64>();
        let (words, rest) = rest.as_chunks::<2>();
        self.sum += words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum::<u64>();
        if let [last] = rest {
            self.sum += u64::from(*last) << 8;
            self.is_odd = true;
        }
        self.sum = (self.sum & 0xffff_ffff) + (self.sum >> 32);
    }

    /// The checksum: the complement of the sum. It is 0 over octets that include their own valid checksum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The checksum over these octets.
#[must_use]
pub fn checksum(octets: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(octets);
    sum.checksum()
}
