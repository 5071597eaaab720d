//! Decoding of values with their tables, from untrusted octets.
//!
//! A place in memory becomes a value part by part. If a part cannot be decoded, or panics, the earlier ones
//! are dropped: the caller gets a whole value or none.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    ptr::NonNull,
};

use super::{
    bulk, leaves,
    program::{Op, Program},
};
use crate::{CdrError, Char, Decode, Decoder, bounded};

/// The parts of a value that exist already, dropped with this guard.
pub(super) struct Partial<'p> {
    prefix: &'p [Op],
    base: *mut u8,
}

impl<'p> Partial<'p> {
    /// # Safety
    /// All these parts exist, and are not used after this.
    pub(super) unsafe fn all(ops: &'p [Op], base: *mut u8) -> Self {
        Self { prefix: ops, base }
    }
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        // SAFETY: they exist, and are not used after this.
        unsafe { drop_parts(self.prefix, self.base) };
    }
}

/// # Safety
/// The parts exist, and are not used after this.
pub(super) unsafe fn drop_parts(ops: &[Op], base: *mut u8) {
    for op in ops.iter().filter(|op| op.owns()) {
        // SAFETY: as above.
        unsafe { drop_part(op, base) };
    }
}

/// # Safety
/// The part exists, and is not used after this.
unsafe fn drop_part(op: &Op, base: *mut u8) {
    // SAFETY: as above.
    unsafe {
        match *op {
            Op::Text { at, .. } => base.add(at as usize).cast::<String>().drop_in_place(),
            Op::Sequence { at, table } => (table.drop)(base.add(at as usize)),
            Op::Array { at, table } => drop_elements((table.element)(), base.add(at as usize), table.count as usize),
            Op::Opaque { at, table } => {
                if let Some(drop) = table.drop {
                    drop(base.add(at as usize));
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// `len` elements exist, and are not used after this.
unsafe fn drop_elements(program: &Program, elements: *mut u8, len: usize) {
    if program.ops.iter().any(|op| op.owns()) {
        for nth in 0..len {
            // SAFETY: as above.
            unsafe { drop_parts(program.ops, elements.add(nth * program.memory as usize)) };
        }
    }
}

/// Decodes a value to `base`. After an error no value exists there.
///
/// # Safety
/// The destination has room for a value with these parts.
pub(super) unsafe fn value(ops: &'static [Op], base: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    let mut partial = Partial { prefix: &[], base };
    let mut nth = 0;
    while let Some(op) = ops.get(nth) {
        nth += 1;
        if let Op::Run { zeros, leaves, .. } = *op {
            let (zeros, leaves) = (usize::from(zeros), usize::from(leaves));
            // SAFETY: as for the value. The leaves not decoded here follow as parts.
            nth += zeros + unsafe { run(op, &ops[nth + zeros..nth + zeros + leaves], base, input)? };
        } else {
            // SAFETY: as for the value.
            unsafe { part(op, base, input)? };
        }
        partial.prefix = &ops[..nth];
    }
    std::mem::forget(partial);
    Ok(())
}

/// Decodes a run, in one block if message and memory agree; returns the number of decoded leaves.
///
/// # Safety
/// As [`value`].
#[inline]
unsafe fn run(header: &Op, leaves: &'static [Op], base: *mut u8, input: &mut Decoder<'_>) -> Result<usize, CdrError> {
    let Op::Run { first, align, at, octets, checked, .. } = *header else { return Ok(0) };
    let gap = input.gap(first.into());
    let octets = octets as usize;
    if input.wire().char_set.converts_chars() {
        return Ok(0);
    }
    if input.wire().order.is_swapped() || input.gap(align.into()) != gap || input.segment_len() < gap + octets {
        // SAFETY: as for the value.
        return unsafe { leaves::read(leaves, base, input) };
    }
    let from = &input.take(gap + octets)?[gap..];
    if checked {
        for leaf in leaves.iter().filter(|leaf| leaf.is_checked()) {
            let range = leaf.leaf().map_or(0..0, |leaf| leaf.at - at as usize..leaf.at - at as usize + leaf.octets);
            bulk::check_leaf(leaf, false, &from[range])?;
        }
    }
    // SAFETY: the destination has room for the leaves and their gaps; all were validated just now.
    unsafe { bulk::copy(from.as_ptr(), base.add(at as usize), octets) };
    Ok(leaves.len())
}

/// Decodes one part.
///
/// # Safety
/// As [`value`].
unsafe fn part(op: &Op, base: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    // SAFETY: the offsets of a table's ops are those of the parts in the value, whose types are what the ops say.
    unsafe {
        match *op {
            Op::Plain { width, at, count: 1 } => {
                let to = base.add(at as usize);
                match width {
                    1 => to.write(input.u8()?),
                    2 => to.cast::<u16>().write(input.u16()?),
                    4 => to.cast::<u32>().write(input.u32()?),
                    _ => to.cast::<u64>().write(input.u64()?),
                }
            }
            Op::Plain { width, at, count } => plains(width.into(), count as usize, base.add(at as usize), input)?,
            Op::Bool { at, count: 1 } => base.add(at as usize).cast::<bool>().write(input.bool()?),
            Op::Bool { at, count } => {
                let octets = input.take(count as usize)?;
                bulk::booleans(octets)?;
                bulk::copy(octets.as_ptr(), base.add(at as usize), octets.len());
            }
            Op::Char { at, count } => {
                for nth in 0..count as usize {
                    base.add(at as usize + nth).write(Char::decode(input)?.0);
                }
            }
            Op::Enum { at, table } => {
                let value = input.u32()?;
                bulk::enumerator(table, value)?;
                base.add(at as usize).cast::<u32>().write(value);
            }
            Op::Text { at, bound } => base.add(at as usize).cast::<String>().write(text(bound, input)?),
            Op::Sequence { at, table } => {
                let program = (table.element)();
                let len = input.sequence_len(program.min_octets())?;
                bounded::check(len, table.bound as usize)?;
                input.nested(|input| {
                    let elements = vector(program, len, input)?;
                    (table.install)(base.add(at as usize), elements, len);
                    Ok(())
                })?;
            }
            Op::Array { at, table } if table.count == 1 => value((table.element)().ops, base.add(at as usize), input)?,
            Op::Array { at, table } => {
                elements((table.element)(), base.add(at as usize), table.count as usize, input)?;
            }
            Op::Opaque { at, table } => (table.decode)(base.add(at as usize), input)?,
            Op::Run { .. } | Op::Zero { .. } => {}
        }
    }
    Ok(())
}

fn text(bound: u32, input: &mut Decoder<'_>) -> Result<String, CdrError> {
    let text = input.str()?;
    if bound != u32::MAX {
        bounded::check(text.chars().count(), bound as usize)?;
    }
    Ok(text.into_owned())
}

/// # Safety
/// The destination has room for `count` numbers of this width.
unsafe fn plains(width: usize, count: usize, to: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    if count == 0 {
        return Ok(());
    }
    input.align(width)?;
    let octets = input.take(count.checked_mul(width).ok_or(CdrError::TooLong { len: count })?)?;
    // SAFETY: as above; as many octets were read.
    unsafe {
        if width == 1 || !input.wire().order.is_swapped() {
            octets.as_ptr().copy_to_nonoverlapping(to, octets.len());
        } else {
            bulk::swap(width, octets.as_ptr(), to, count);
        }
    }
    Ok(())
}

/// Memory from the global allocator; freed on drop unless it was moved out.
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// As for a vector: an empty layout allocates nothing.
    fn of(program: &Program, len: usize) -> Result<Self, CdrError> {
        let align = usize::from(program.memory_align);
        let size = (program.memory as usize).checked_mul(len);
        let layout = size.and_then(|size| Layout::from_size_align(size, align).ok());
        Ok(Self::new(layout.ok_or(CdrError::TooLong { len })?))
    }

    pub(super) fn new(layout: Layout) -> Self {
        let start = if layout.size() == 0 {
            NonNull::without_provenance(layout.align().try_into().expect("no alignment is zero"))
        } else {
            // SAFETY: the layout has a size.
            NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
        };
        Self { start, layout }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: it was allocated with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Decodes the elements of a vector into memory of exactly that size. The caller has checked `len` against
/// the input.
fn vector(program: &'static Program, len: usize, input: &mut Decoder<'_>) -> Result<*mut u8, CdrError> {
    let beyond = (program.memory as usize).saturating_sub(program.min_octets());
    input.count_memory(len.saturating_mul(beyond))?;
    let block = Block::of(program, len)?;
    // SAFETY: the block has room for `len` elements.
    unsafe { elements(program, block.start.as_ptr(), len, input)? };
    let start = block.start.as_ptr();
    std::mem::forget(block);
    Ok(start)
}

/// The elements that exist already, dropped with this guard.
struct Elements {
    program: &'static Program,
    start: *mut u8,
    count: usize,
}

impl Drop for Elements {
    fn drop(&mut self) {
        // SAFETY: `done` elements exist.
        unsafe { drop_elements(self.program, self.start, self.count) };
    }
}

/// Decodes values one after the other, without a length. After an error no value exists.
///
/// # Safety
/// The destination has room for `len` values of this type.
pub(super) unsafe fn elements(
    program: &'static Program,
    to: *mut u8,
    len: usize,
    input: &mut Decoder<'_>,
) -> Result<(), CdrError> {
    let mut elements = Elements { program, start: to, count: 0 };
    let step = program.memory as usize;
    // SAFETY: each element has its own place.
    unsafe {
        match (program.fixed, program.ops) {
            (Some(_), &[Op::Plain { width, count, .. }])
                if program.is_dense() && (!input.has_joints() || (program.is_number && count == 1)) =>
            {
                let count = len.checked_mul(count as usize).ok_or(CdrError::TooLong { len })?;
                plains(width.into(), count, to, input)?;
            }
            (Some(_), &[Op::Char { count, .. }])
                if program.is_dense()
                    && !input.wire().char_set.converts_chars()
                    && (!input.has_joints() || (program.is_number && count == 1)) =>
            {
                let count = len.checked_mul(count as usize).ok_or(CdrError::TooLong { len })?;
                plains(1, count, to, input)?;
            }
            (Some(_), ops) => {
                while elements.count < len {
                    let element = to.add(elements.count * step);
                    let fitting = bulk_elements(program, element, len - elements.count, input)?;
                    if fitting == 0 {
                        value(ops, element, input)?;
                    }
                    elements.count += fitting.max(1);
                }
            }
            (None, &[Op::Text { at: 0, bound }]) => {
                while elements.count < len {
                    to.add(elements.count * step).cast::<String>().write(text(bound, input)?);
                    elements.count += 1;
                }
            }
            (None, ops) => {
                while elements.count < len {
                    value(ops, to.add(elements.count * step), input)?;
                    elements.count += 1;
                }
            }
        }
    }
    std::mem::forget(elements);
    Ok(())
}

/// Decodes the elements that are laid out here as from an aligned start; none at another alignment.
///
/// # Safety
/// The destination has room for `len` values of this type, which has a fixed layout.
unsafe fn bulk_elements(
    program: &'static Program,
    to: *mut u8,
    len: usize,
    input: &mut Decoder<'_>,
) -> Result<usize, CdrError> {
    let Some(fixed) = program.fixed else { return Ok(0) };
    let gap = input.gap(fixed.first.into());
    if program.is_converted(input.wire().char_set) || !fixed.is_uniform() || gap != input.gap(fixed.align.into()) {
        return Ok(0);
    }
    let (stride, octets) = (fixed.stride(), fixed.octets as usize);
    // Across a joint of fragments the layout may change: there, elements are decoded by member.
    let fitting = ((input.segment_len().saturating_sub(gap) + stride - octets) / stride).min(len);
    if fitting == 0 {
        return Ok(0);
    }
    let swapped = input.wire().order.is_swapped();
    if (swapped || !fixed.block) && fitting < bulk::FEW {
        return Ok(0);
    }
    let octets = &input.take(gap + (fitting - 1) * stride + octets)?[gap..];
    // SAFETY: by the caller.
    unsafe { bulk::read(fixed, program.ops, program.memory as usize, swapped, octets, to, fitting)? };
    Ok(fitting)
}
