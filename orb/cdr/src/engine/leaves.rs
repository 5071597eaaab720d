//! Leaves of one value, one after the other: for values whose layout differs between message and memory,
//! because of byte order or of the start position. Space is reserved once, and the position kept in a
//! register.

use super::{
    bulk,
    program::{Leaf, Op},
};
use crate::{CdrError, Decoder, Encoder};

/// The maximum gap before a leaf, written at once.
const GAP: usize = 8;

/// Copies one number; expanded only where both sides have room for it.
macro_rules! copy_one {
    ($number:ty, $swap:expr, $from:expr, $to:expr) => {{
        let value = $from.cast::<$number>().read_unaligned();
        $to.cast::<$number>().write_unaligned(if $swap { value.swap_bytes() } else { value });
    }};
}

/// Encodes the leaves of a run, which has `octets` octets when aligned.
///
/// # Safety
/// The leaves exist; `octets` is at least the sum of their octets.
pub(super) unsafe fn write(leaves: &[Op], octets: usize, base: *const u8, out: &mut Encoder<'_>) {
    let swap = out.wire().order.is_swapped();
    let phase = out.gap(GAP).wrapping_neg();
    let window = out.window(octets + GAP * (leaves.len() + 1)).as_mut_ptr();
    let mut end = 0usize;
    for op in leaves {
        // SAFETY: the window has room for each leaf, the gap before it, and one gap more.
        unsafe {
            window.add(end).cast::<u64>().write_unaligned(0);
            macro_rules! one {
                ($number:ty, $at:expr) => {{
                    end += phase.wrapping_add(end).wrapping_neg() & (size_of::<$number>() - 1);
                    copy_one!($number, swap, base.add($at as usize), window.add(end));
                    end += size_of::<$number>();
                }};
            }
            match *op {
                Op::Plain { width: 8, at, count: 1 } => one!(u64, at),
                Op::Plain { width: 4, at, count: 1 } | Op::Enum { at, .. } => one!(u32, at),
                Op::Plain { width: 2, at, count: 1 } => one!(u16, at),
                Op::Plain { at, count: 1, .. } | Op::Bool { at, count: 1 } | Op::Char { at, count: 1 } => one!(u8, at),
                _ => {
                    let Some(leaf) = op.leaf() else { continue };
                    end += phase.wrapping_add(end).wrapping_neg() & (leaf.width - 1);
                    copy_many(leaf, swap, base.add(leaf.at), window.add(end));
                    end += leaf.octets;
                }
            }
        }
    }
    out.advance(end);
}

/// Decodes the leaves of a run, as many as fit before the end or the next joint; returns their number.
///
/// # Errors
/// [`CdrError::BadBoolean`], [`CdrError::BadEnum`].
///
/// # Safety
/// The destination has room for them.
pub(super) unsafe fn read(leaves: &[Op], base: *mut u8, input: &mut Decoder<'_>) -> Result<usize, CdrError> {
    let swap = input.wire().order.is_swapped();
    let phase = input.gap(GAP).wrapping_neg();
    let octets = input.segment();
    let (mut end, mut count) = (0usize, 0);
    for op in leaves {
        macro_rules! one {
            ($number:ty, $at:expr) => {{
                let from = end + (phase.wrapping_add(end).wrapping_neg() & (size_of::<$number>() - 1));
                let Some(octets) = octets.get(from..from + size_of::<$number>()) else { break };
                // SAFETY: the destination has room for the leaf, for which any octets are valid.
                unsafe { copy_one!($number, swap, octets.as_ptr(), base.add($at as usize)) };
                end = from + size_of::<$number>();
            }};
        }
        match *op {
            Op::Plain { width: 8, at, count: 1 } => one!(u64, at),
            Op::Plain { width: 4, at, count: 1 } => one!(u32, at),
            Op::Plain { width: 2, at, count: 1 } => one!(u16, at),
            Op::Plain { at, count: 1, .. } | Op::Char { at, count: 1 } => one!(u8, at),
            _ => {
                let Some(leaf) = op.leaf() else { break };
                let from = end + (phase.wrapping_add(end).wrapping_neg() & (leaf.width - 1));
                let Some(octets) = octets.get(from..from + leaf.octets) else { break };
                if op.is_checked() {
                    bulk::check_leaf(op, swap, octets)?;
                }
                // SAFETY: the destination has room for the leaf, whose octets were validated.
                unsafe { copy_many(leaf, swap, octets.as_ptr(), base.add(leaf.at)) };
                end = from + leaf.octets;
            }
        }
        count += 1;
    }
    input.take(end)?;
    Ok(count)
}

/// Copies the numbers of a leaf.
///
/// # Safety
/// The source holds the octets, and the destination has room for them.
unsafe fn copy_many(leaf: Leaf, swap: bool, from: *const u8, to: *mut u8) {
    // SAFETY: by the caller.
    unsafe {
        if swap {
            bulk::swap(leaf.width, from, to, leaf.octets / leaf.width);
        } else {
            bulk::copy(from, to, leaf.octets);
        }
    }
}
