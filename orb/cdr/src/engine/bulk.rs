//! Many values of fixed layout at once: whole blocks if memory and CDR agree, and otherwise one tight loop
//! for each member.

use super::program::{EnumTable, Fixed, Op, Program};
use crate::{CdrError, Encoder};

/// Elements that are coded member by member before the next ones: few enough for the nearest cache.
const AT_ONCE: usize = 64;

/// Fewer elements than this are coded one by one: shorter columns cost more than they save.
pub(super) const FEW: usize = 6;

/// Copies a few octets, for which a call of `memcpy` would cost more.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, octets: usize) {
    // SAFETY: by the caller.
    unsafe { from.copy_to_nonoverlapping(to, octets) }
}

/// Zeros a few octets.
///
/// # Safety
/// The destination has room for them.
#[inline]
pub(super) unsafe fn zero(to: *mut u8, octets: usize) {
    // SAFETY: by the caller; the pairs of stores overlap where there are fewer octets than two hold.
    unsafe {
        match octets {
            1 => to.write(0),
            2..4 => {
                to.cast::<u16>().write_unaligned(0);
                to.add(octets - 2).cast::<u16>().write_unaligned(0);
            }
            4..8 => {
                to.cast::<u32>().write_unaligned(0);
                to.add(octets - 4).cast::<u32>().write_unaligned(0);
            }
            _ => to.write_bytes(0, octets),
        }
    }
}

/// Copies `count` numbers of this width, with swapped octets.
///
/// # Safety
/// The source holds them, and the destination has room for them.
pub(super) unsafe fn swap(width: usize, from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: by the caller.
    unsafe { column(width, true, (from, width), (to, width), count) }
}

/// Copies `count` numbers between positions that are `step` octets apart.
///
/// # Safety
/// The source holds them, and the destination has room for them.
#[inline]
unsafe fn column(width: usize, swap: bool, from: (*const u8, usize), to: (*mut u8, usize), count: usize) {
    macro_rules! each {
        ($number:ty) => {
            // SAFETY: by the caller.
            unsafe {
                if swap {
                    each::<$number>(<$number>::swap_bytes, from, to, count);
                } else {
                    each::<$number>(|value| value, from, to, count);
                }
            }
        };
    }
    match width {
        1 => each!(u8),
        2 => each!(u16),
        4 => each!(u32),
        _ => each!(u64),
    }
}

/// Four at a time, so that the loop overhead is small.
///
/// # Safety
/// As [`column`].
#[inline]
unsafe fn each<N: Copy>(change: impl Fn(N) -> N, from: (*const u8, usize), to: (*mut u8, usize), count: usize) {
    let ((mut source, from_step), (mut target, to_step)) = (from, to);
    // SAFETY: by the caller.
    unsafe {
        for _ in 0..count / 4 {
            let values: [N; 4] = std::array::from_fn(|nth| source.add(nth * from_step).cast::<N>().read_unaligned());
            for (nth, value) in values.into_iter().enumerate() {
                target.add(nth * to_step).cast::<N>().write_unaligned(change(value));
            }
            source = source.add(4 * from_step);
            target = target.add(4 * to_step);
        }
        for nth in 0..count % 4 {
            let value = source.add(nth * from_step).cast::<N>().read_unaligned();
            target.add(nth * to_step).cast::<N>().write_unaligned(change(value));
        }
    }
}

/// Encodes elements that start at the alignment of the layout, without a length.
///
/// # Safety
/// At least one value of this type, and `len` of them, exist for `'a`; `fixed` and `ops` are those of
/// `program`.
pub(super) unsafe fn write<'a>(
    program: &'static Program,
    fixed: Fixed,
    ops: &'static [Op],
    elements: *const u8,
    len: usize,
    out: &mut Encoder<'a>,
) {
    let step = program.memory as usize;
    out.align(fixed.first.into());
    let swapped = out.wire().order.is_swapped();
    // SAFETY: the elements exist; if a block has no gaps, all its octets are initialised.
    unsafe {
        if program.is_dense() && !swapped {
            out.lend(std::slice::from_raw_parts(elements, len * step));
            return;
        }
        let octets = (len - 1) * fixed.stride() + fixed.octets as usize;
        let room = out.room(octets).as_mut_ptr();
        if fixed.block && !swapped {
            write_block(fixed, ops, elements, room, octets);
        } else {
            write_members(fixed, ops, step, swapped, elements, room, len);
        }
    }
}

/// Copies all, then zeros the gaps: for few enough elements that they are still in the cache.
///
/// # Safety
/// As [`write`]; the destination has room for `octets`.
unsafe fn write_block(fixed: Fixed, ops: &'static [Op], mut from: *const u8, mut room: *mut u8, mut octets: usize) {
    let (stride, tail) = (fixed.stride(), fixed.octets as usize);
    while octets > 0 {
        let part = octets.min(AT_ONCE * stride);
        let count = part.div_ceil(stride);
        // SAFETY: gaps are between the leaves of elements, or after an element before the last.
        unsafe {
            from.copy_to_nonoverlapping(room, part);
            for gap in ops {
                if let Op::Zero { at, octets } = *gap {
                    zeros(room.add(at as usize), octets as usize, stride, count);
                }
            }
            if stride > tail {
                zeros(room.add(tail), stride - tail, stride, count - 1);
                if part == AT_ONCE * stride {
                    zero(room.add(part - (stride - tail)), stride - tail);
                }
            }
            from = from.add(part);
            room = room.add(part);
        }
        octets -= part;
    }
}

/// Zeros a gap in each of `count` elements.
///
/// # Safety
/// The gaps are inside the buffer.
#[inline]
unsafe fn zeros(room: *mut u8, octets: usize, stride: usize, count: usize) {
    macro_rules! pairs {
        ($number:ty) => {
            for nth in 0..count {
                // SAFETY: the gap has at least as many octets as one of the numbers, and at most as many as two.
                unsafe {
                    let gap = room.add(nth * stride);
                    gap.cast::<$number>().write_unaligned(0);
                    gap.add(octets - size_of::<$number>()).cast::<$number>().write_unaligned(0);
                }
            }
        };
    }
    match octets {
        1 => pairs!(u8),
        2..=4 => pairs!(u16),
        _ => pairs!(u32),
    }
}

/// Copies member by member.
///
/// # Safety
/// As [`write`]; the destination has room for the elements.
unsafe fn write_members(
    fixed: Fixed,
    ops: &'static [Op],
    step: usize,
    swapped: bool,
    mut from: *const u8,
    mut room: *mut u8,
    mut len: usize,
) {
    let stride = fixed.stride();
    while len > 0 {
        let count = len.min(AT_ONCE);
        let octets = if count == len { (count - 1) * stride + fixed.octets as usize } else { count * stride };
        // SAFETY: each member of each element is at its op's offset, and goes to its CDR offset.
        unsafe {
            room.write_bytes(0, octets);
            each_leaf(ops, |at, offset, width| {
                column(width, swapped, (from.add(at), step), (room.add(offset), stride), count);
            });
            from = from.add(count * step);
            room = room.add(octets);
        }
        len -= count;
    }
}

/// Calls `visit` for each number with its offset in memory, that in CDR, and its width.
#[inline]
fn each_leaf(ops: &[Op], mut visit: impl FnMut(usize, usize, usize)) {
    let mut end = 0usize;
    for leaf in ops.iter().filter_map(|op| op.leaf()) {
        let offset = end.next_multiple_of(leaf.width);
        for octets in (0..leaf.octets).step_by(leaf.width) {
            visit(leaf.at + octets, offset + octets, leaf.width);
        }
        end = offset + leaf.octets;
    }
}

/// Decodes elements that start at the alignment of the layout: `octets` holds all of them without the last
/// one's tail padding.
///
/// # Safety
/// The destination has room for the elements; `ops`, `fixed` and `step` are those of their type.
pub(super) unsafe fn read(
    fixed: Fixed,
    ops: &'static [Op],
    step: usize,
    swapped: bool,
    octets: &[u8],
    to: *mut u8,
    len: usize,
) -> Result<(), CdrError> {
    let stride = fixed.stride();
    check(ops, swapped, octets, stride)?;
    if fixed.block && !swapped {
        // SAFETY: the destination has room for the elements, whose octets were validated just now.
        unsafe { octets.as_ptr().copy_to_nonoverlapping(to, octets.len()) };
        return Ok(());
    }
    for start in (0..len).step_by(AT_ONCE) {
        let count = (len - start).min(AT_ONCE);
        each_leaf(ops, |at, offset, width| {
            // SAFETY: as above, each member from its CDR offset to its op's offset.
            unsafe {
                let from = octets.as_ptr().add(start * stride + offset);
                column(width, swapped, (from, stride), (to.add(start * step + at), step), count);
            }
        });
    }
    Ok(())
}

/// Rejects octets that are no value of their type.
fn check(ops: &[Op], swapped: bool, octets: &[u8], stride: usize) -> Result<(), CdrError> {
    let mut end = 0usize;
    for op in ops {
        let Some(leaf) = op.leaf() else { continue };
        let offset = end.next_multiple_of(leaf.width);
        end = offset + leaf.octets;
        if op.is_checked() && !is_sound(op, swapped, &octets[offset..], leaf.octets, stride) {
            for element in (offset..octets.len()).step_by(stride) {
                check_leaf(op, swapped, &octets[element..element + leaf.octets])?;
            }
        }
    }
    Ok(())
}

/// Whether a column of leaves is valid: checked without early exit, because errors are rare.
fn is_sound(op: &Op, swapped: bool, octets: &[u8], leaf: usize, stride: usize) -> bool {
    match *op {
        Op::Enum { table, .. } => octets.chunks(stride).fold(true, |sound, element| {
            sound & element.first_chunk().is_some_and(|octets| number(octets, swapped) < table.count)
        }),
        _ if leaf == 1 => octets.iter().step_by(stride).fold(0, |all, octet| all | octet) < 2,
        _ => octets.chunks(stride).all(|element| booleans(&element[..leaf]).is_ok()),
    }
}

/// Checks the octets of one enumerator or of a run of booleans.
#[inline]
pub(super) fn check_leaf(op: &Op, swapped: bool, octets: &[u8]) -> Result<(), CdrError> {
    match *op {
        Op::Enum { table, .. } => enumerator(table, number(octets.first_chunk().expect("four octets"), swapped)),
        _ => booleans(octets),
    }
}

#[inline]
fn number(octets: &[u8; 4], swapped: bool) -> u32 {
    let value = u32::from_ne_bytes(*octets);
    if swapped { value.swap_bytes() } else { value }
}

/// Checks that an enum has an enumerator with this ordinal.
///
/// # Errors
/// [`CdrError::BadEnum`].
#[inline]
pub(super) fn enumerator(table: &'static EnumTable, value: u32) -> Result<(), CdrError> {
    if value < table.count { Ok(()) } else { Err(CdrError::BadEnum { name: table.name, value }) }
}

/// Checks that each octet is 0 or 1.
///
/// # Errors
/// [`CdrError::BadBoolean`].
#[inline]
pub(super) fn booleans(octets: &[u8]) -> Result<(), CdrError> {
    match octets.iter().find(|octet| **octet > 1) {
        None => Ok(()),
        Some(&other) => Err(CdrError::BadBoolean(other)),
    }
}
