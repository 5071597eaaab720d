//! Counters as octets: the V2 format of HdrHistogram, without compression.
//!
//! A header of 40 octets is followed by zigzag numbers in variable-length octets (LEB128, nine octets at most). A number
//! that is not negative is the next counter, a negative one a run of counters that are zero.

const COOKIE: u32 = 0x1c84_9313;
/// The significant decimal digits of 2,048 counters for each power of two.
const DIGITS: u32 = 3;
/// The lowest value with a counter of its own.
const LOWEST: u64 = 1;
/// The factor between counted and recorded values.
const RATIO: f64 = 1.0;
const HEADER: usize = 40;
/// The octets of the longest number.
const LONGEST: u32 = 9;

/// The reason why octets are not a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first octets are not those of the V2 format without compression.
    #[error("not a histogram in the V2 format of HdrHistogram")]
    Format,
    /// The range of values or the number of digits differs from the expected one.
    #[error("a histogram with other bounds, or with another precision")]
    Bounds,
    /// There are fewer or more octets than the header says, or the last number is incomplete.
    #[error("a histogram of another length than it says")]
    Truncated,
    /// There are more counters than values, or the sum of the counters exceeds 64 bits.
    #[error("a histogram with too many counters, or too many values")]
    Counters,
}

/// Encodes counters for values up to `highest`, without the zeros at their end.
pub(super) fn encode(counts: &[u64], highest: u64) -> Vec<u8> {
    let used = counts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
    let mut payload = Vec::new();
    for run in counts[..used].chunk_by(|one, other| *one == 0 && *other == 0) {
        let number = match run {
            [count] => i64::try_from(*count).unwrap_or(i64::MAX),
            zeros => -(zeros.len() as i64),
        };
        write_number(((number << 1) ^ (number >> 63)) as u64, &mut payload);
    }
    let mut octets = header(payload.len() as u32, highest);
    octets.extend(payload);
    octets
}

fn header(payload: u32, highest: u64) -> Vec<u8> {
    let mut octets = Vec::with_capacity(HEADER);
    octets.extend(COOKIE.to_be_bytes());
    octets.extend(payload.to_be_bytes());
    octets.extend(0u32.to_be_bytes()); // no offset of the counters
    octets.extend(DIGITS.to_be_bytes());
    octets.extend(LOWEST.to_be_bytes());
    octets.extend(highest.to_be_bytes());
    octets.extend(RATIO.to_be_bytes());
    octets
}

/// Decodes so many counters of a histogram for values up to `highest`.
pub(super) fn decode(octets: &[u8], counters: usize, highest: u64) -> Result<Vec<u64>, DecodeError> {
    let (given, mut payload) = octets.split_at_checked(HEADER).ok_or(DecodeError::Truncated)?;
    let expected = header(u32::try_from(payload.len()).map_err(|_| DecodeError::Truncated)?, highest);
    if given[..4] != expected[..4] {
        return Err(DecodeError::Format);
    }
    if given[4..8] != expected[4..8] {
        return Err(DecodeError::Truncated);
    }
    if given[8..] != expected[8..] {
        return Err(DecodeError::Bounds);
    }
    let (mut counts, mut next) = (vec![0; counters], 0_usize);
    while !payload.is_empty() {
        let number = read_number(&mut payload)?;
        let number = (number >> 1) as i64 ^ -((number & 1) as i64);
        if number < 0 {
            let after = usize::try_from(number.unsigned_abs()).ok().and_then(|zeros| next.checked_add(zeros));
            next = after.filter(|after| *after <= counters).ok_or(DecodeError::Counters)?;
        } else {
            *counts.get_mut(next).ok_or(DecodeError::Counters)? = number.unsigned_abs();
            next += 1;
        }
    }
    Ok(counts)
}

fn write_number(mut number: u64, octets: &mut Vec<u8>) {
    for _ in 1..LONGEST {
        if number < 0x80 {
            break;
        }
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8); // all eight bits of the ninth octet count
}

fn read_number(octets: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0;
    for position in 0..LONGEST {
        let octet = *octets.split_off_first().ok_or(DecodeError::Truncated)?;
        let is_last = position + 1 == LONGEST || octet < 0x80;
        number |= u64::from(if is_last { octet } else { octet & 0x7f }) << (7 * position);
        if is_last {
            break;
        }
    }
    Ok(number)
}
