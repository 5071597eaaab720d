//! Reading values as their tables say, from octets that nobody vouches for.
//!
//! A place in memory becomes a value part after part. When a part cannot be read, or panics, those before it are dropped:
//! whoever asked finds either a whole value or nothing.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    ptr::NonNull,
};

use super::{
    bulk, leaves,
    program::{Op, Program},
};
use crate::{CdrError, Char, Decode, Decoder, bounded};

/// The parts of a value that are there already. Dropped, it drops them.
pub(super) struct Partial<'p> {
    done: &'p [Op],
    base: *mut u8,
}

impl<'p> Partial<'p> {
    /// # Safety
    /// All these parts are there, and used no longer than this.
    pub(super) unsafe fn all(ops: &'p [Op], base: *mut u8) -> Self {
        Self { done: ops, base }
    }
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        // SAFETY: they are there, and nobody will use them any more.
        unsafe { drop_parts(self.done, self.base) };
    }
}

/// # Safety
/// The parts are there, and used no more.
pub(super) unsafe fn drop_parts(ops: &[Op], base: *mut u8) {
    for op in ops.iter().filter(|op| op.owns()) {
        // SAFETY: as above.
        unsafe { drop_part(op, base) };
    }
}

/// # Safety
/// The part is there, and used no more.
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
/// So many elements are there, and used no more.
unsafe fn drop_elements(program: &Program, elements: *mut u8, len: usize) {
    if program.ops.iter().any(|op| op.owns()) {
        for nth in 0..len {
            // SAFETY: as above.
            unsafe { drop_parts(program.ops, elements.add(nth * program.memory as usize)) };
        }
    }
}

/// Reads a value to `base`. After an error nothing is there.
///
/// # Safety
/// There is room for a value with these parts.
pub(super) unsafe fn value(ops: &'static [Op], base: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    let mut partial = Partial { done: &[], base };
    let mut nth = 0;
    while let Some(op) = ops.get(nth) {
        nth += 1;
        if let Op::Run { zeros, leaves, .. } = *op {
            let (zeros, leaves) = (usize::from(zeros), usize::from(leaves));
            // SAFETY: as for the value. What is not read here comes next, part by part.
            nth += zeros + unsafe { run(op, &ops[nth + zeros..nth + zeros + leaves], base, input)? };
        } else {
            // SAFETY: as for the value.
            unsafe { part(op, base, input)? };
        }
        partial.done = &ops[..nth];
    }
    std::mem::forget(partial);
    Ok(())
}

/// Reads a run, in one block if it lies in the message as in memory; says how many leaves were there.
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
    if input.wire().order.is_swapped() || input.gap(align.into()) != gap || input.unbroken_len() < gap + octets {
        // SAFETY: as for the value.
        return unsafe { leaves::read(leaves, base, input) };
    }
    let from = &input.take(gap + octets)?[gap..];
    if checked {
        for leaf in leaves.iter().filter(|leaf| leaf.is_checked()) {
            let place = leaf.leaf().map_or(0..0, |leaf| leaf.at - at as usize..leaf.at - at as usize + leaf.octets);
            bulk::check_leaf(leaf, false, &from[place])?;
        }
    }
    // SAFETY: there is room for the leaves and what lies between them; all were found to be values just now.
    unsafe { bulk::copy(from.as_ptr(), base.add(at as usize), octets) };
    Ok(leaves.len())
}

/// Reads one part.
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
/// There is room for so many numbers of this width.
unsafe fn plains(width: usize, count: usize, to: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    if count == 0 {
        return Ok(());
    }
    input.align(width)?;
    let octets = input.take(count.checked_mul(width).ok_or(CdrError::TooLong { len: count })?)?;
    // SAFETY: as above; as many octets were taken.
    unsafe {
        if width == 1 || !input.wire().order.is_swapped() {
            octets.as_ptr().copy_to_nonoverlapping(to, octets.len());
        } else {
            bulk::swap(width, octets.as_ptr(), to, count);
        }
    }
    Ok(())
}

/// Memory from the global allocator; given back unless it was taken.
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// As a vector has it: nothing is allocated for nothing.
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
            // SAFETY: it was allocated so.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Reads what a vector of so many elements owns: memory of just that size. The caller has checked `len` against the input.
fn vector(program: &'static Program, len: usize, input: &mut Decoder<'_>) -> Result<*mut u8, CdrError> {
    let block = Block::of(program, len)?;
    // SAFETY: there is room for so many.
    unsafe { elements(program, block.start.as_ptr(), len, input)? };
    let start = block.start.as_ptr();
    std::mem::forget(block);
    Ok(start)
}

/// The elements that are there already. Dropped, it drops them.
struct Elements {
    program: &'static Program,
    start: *mut u8,
    done: usize,
}

impl Drop for Elements {
    fn drop(&mut self) {
        // SAFETY: so many are there.
        unsafe { drop_elements(self.program, self.start, self.done) };
    }
}

/// Reads values one after the other, without a length. After an error nothing is there.
///
/// # Safety
/// There is room for so many values of this type.
pub(super) unsafe fn elements(
    program: &'static Program,
    to: *mut u8,
    len: usize,
    input: &mut Decoder<'_>,
) -> Result<(), CdrError> {
    let mut elements = Elements { program, start: to, done: 0 };
    let step = program.memory as usize;
    // SAFETY: each element has its place.
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
                while elements.done < len {
                    let place = to.add(elements.done * step);
                    let fitting = bulk_elements(program, place, len - elements.done, input)?;
                    if fitting == 0 {
                        value(ops, place, input)?;
                    }
                    elements.done += fitting.max(1);
                }
            }
            (None, &[Op::Text { at: 0, bound }]) => {
                while elements.done < len {
                    to.add(elements.done * step).cast::<String>().write(text(bound, input)?);
                    elements.done += 1;
                }
            }
            (None, ops) => {
                while elements.done < len {
                    value(ops, to.add(elements.done * step), input)?;
                    elements.done += 1;
                }
            }
        }
    }
    std::mem::forget(elements);
    Ok(())
}

/// Reads as many elements as stand here in the layout that they have from an aligned start; none, if this is no such place.
///
/// # Safety
/// There is room for `len` values of this type, which is one of fixed layout.
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
    // Across a joint of fragments the layout may change: there, elements are read by member.
    let fitting = ((input.unbroken_len().saturating_sub(gap) + stride - octets) / stride).min(len);
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
