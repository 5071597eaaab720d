//! Encoding of values with their tables.

use std::slice;

use zerocopy::IntoBytes;

use super::{
    bulk, leaves,
    program::{Fixed, Op, Program},
};
use crate::{CdrError, Char, Encode, Encoder};

/// Encodes the value at `base`.
///
/// # Safety
/// A value with these parts exists there, for as long as `'a`.
pub(super) unsafe fn value<'a>(ops: &[Op], base: *const u8, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    let mut rest = ops;
    while let Some((op, others)) = rest.split_first() {
        rest = others;
        // SAFETY: the offsets of a table's ops are those of the parts in the value, whose types are what the ops say.
        unsafe {
            match *op {
                Op::Plain { width, at, count: 1 } => plain(width, base.add(at as usize), out),
                Op::Plain { width, at, count } => plains(width, base.add(at as usize), count as usize, out),
                Op::Bool { at, count: 1 } => plain(1, base.add(at as usize), out),
                Op::Bool { at, count } => {
                    out.lend_divisible(slice::from_raw_parts(base.add(at as usize), count as usize));
                }
                Op::Char { at, count } => chars(base.add(at as usize), count as usize, out)?,
                Op::Enum { at, .. } => plain(4, base.add(at as usize), out),
                Op::Run { first, align, at, octets, leaves, zeros, .. } => {
                    let (gaps, behind) = rest.split_at(zeros.into());
                    if out.wire().char_set.converts_chars() {
                        // Leaf by leaf, as outside a run.
                        rest = behind;
                        continue;
                    }
                    let (leaves, behind) = behind.split_at(leaves.into());
                    rest = behind;
                    if !out.wire().order.is_swapped() && out.gap(align.into()) == out.gap(first.into()) {
                        run(gaps, at as usize, octets as usize, first, base, out);
                    } else {
                        leaves::write(leaves, octets as usize, base, out);
                    }
                }
                Op::Text { at, .. } => out.str(&*base.add(at as usize).cast::<String>())?,
                Op::Sequence { at, table } => {
                    let (elements, len) = (table.parts)(base.add(at as usize));
                    out.len(len)?;
                    slice((table.element)(), elements, len, out)?;
                }
                Op::Array { at, table } if table.count == 1 => {
                    value((table.element)().ops, base.add(at as usize), out)?;
                }
                Op::Array { at, table } => {
                    slice((table.element)(), base.add(at as usize), table.count as usize, out)?;
                }
                Op::Opaque { at, table } => (table.encode)(base.add(at as usize), out)?,
                Op::Zero { .. } => {}
            }
        }
    }
    Ok(())
}

/// # Safety
/// `count` characters exist there, for as long as `'a`.
unsafe fn chars<'a>(characters: *const u8, count: usize, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above; a `Char` is an octet.
    let characters: &'a [Char] = unsafe { slice::from_raw_parts(characters.cast(), count) };
    match characters {
        [one] => one.encode(out),
        all if out.wire().char_set.converts_chars() => Char::encode_slice(all, out),
        all => {
            out.lend_divisible(all.as_bytes());
            Ok(())
        }
    }
}

/// Encodes a run in one block, with zeros in its gaps.
///
/// # Safety
/// The run exists, and the encoder is at the run's alignment.
#[inline]
unsafe fn run(gaps: &[Op], at: usize, octets: usize, first: u8, base: *const u8, out: &mut Encoder<'_>) {
    out.align(first.into());
    let room = out.room(octets).as_mut_ptr();
    // SAFETY: source and destination have that many octets. Octets of gaps may be uninitialised, and are
    // overwritten before any use.
    unsafe {
        bulk::copy(base.add(at), room, octets);
        for gap in gaps {
            if let Op::Zero { at: gap, octets } = *gap {
                bulk::zero(room.add(gap as usize - at), octets as usize);
            }
        }
    }
}

/// # Safety
/// A number of this width exists there.
#[inline]
unsafe fn plain(width: u8, value: *const u8, out: &mut Encoder<'_>) {
    // SAFETY: as above.
    unsafe {
        match width {
            1 => out.u8(value.read()),
            2 => out.u16(value.cast::<u16>().read()),
            4 => out.u32(value.cast::<u32>().read()),
            _ => out.u64(value.cast::<u64>().read()),
        }
    }
}

/// # Safety
/// `count` numbers of this width exist there, for as long as `'a`.
unsafe fn plains<'a>(width: u8, numbers: *const u8, count: usize, out: &mut Encoder<'a>) {
    let width = usize::from(width);
    if count == 0 {
        return;
    }
    out.align(width);
    // SAFETY: as above; numbers have no uninitialised octets.
    unsafe {
        if width == 1 || !out.wire().order.is_swapped() {
            let octets = slice::from_raw_parts(numbers, count * width);
            if width <= 4 { out.lend_divisible(octets) } else { out.lend(octets) }
        } else {
            bulk::swap(width, numbers, out.room(count * width).as_mut_ptr(), count);
        }
    }
}

/// Encodes values one after the other, without a length.
///
/// # Safety
/// `len` values of this type exist there, for as long as `'a`.
pub(super) unsafe fn slice<'a>(
    program: &'static Program,
    elements: *const u8,
    len: usize,
    out: &mut Encoder<'a>,
) -> Result<(), CdrError> {
    let step = program.memory as usize;
    // SAFETY: each element is at its place in the slice.
    unsafe {
        match (program.fixed, program.ops) {
            (Some(_), &[Op::Plain { width, count, .. }]) if program.is_dense() => {
                plains(width, elements, len * count as usize, out);
            }
            (Some(_), &[Op::Char { count, .. }]) if program.is_dense() => chars(elements, len * count as usize, out)?,
            (Some(fixed), ops) if !program.is_converted(out.wire().char_set) => {
                fixed_layout(program, fixed, ops, elements, len, out)?
            }
            (None, [Op::Text { at: 0, .. }]) => {
                for nth in 0..len {
                    out.str(&*elements.add(nth * step).cast::<String>())?;
                }
            }
            (_, ops) => {
                for nth in 0..len {
                    value(ops, elements.add(nth * step), out)?;
                }
            }
        }
    }
    Ok(())
}

/// Encodes elements of fixed layout. The layout holds for elements at a multiple of their alignment; earlier
/// ones are coded by member.
///
/// # Safety
/// As [`slice`]; `fixed` and `ops` are those of `program`.
unsafe fn fixed_layout<'a>(
    program: &'static Program,
    fixed: Fixed,
    ops: &'static [Op],
    mut elements: *const u8,
    mut len: usize,
    out: &mut Encoder<'a>,
) -> Result<(), CdrError> {
    let (first, align) = (fixed.first.into(), fixed.align.into());
    let by_columns = out.wire().order.is_swapped() || !fixed.block;
    while len > 0 && (by_columns && len < bulk::FEW || !(fixed.is_uniform() && out.gap(align) == out.gap(first))) {
        // SAFETY: at least one more element exists.
        unsafe {
            value(ops, elements, out)?;
            elements = elements.add(program.memory as usize);
        }
        len -= 1;
    }
    if len > 0 {
        // SAFETY: the elements exist, and the first of them starts at the layout's alignment.
        unsafe { bulk::write(program, fixed, ops, elements, len, out) };
    }
    Ok(())
}
