//! Types whose values have the same number of octets at the same alignment, whatever the values are: many of
//! them in a row are skipped by arithmetic.

use crate::{TcKind, type_code::View};

/// A primitive that is moved as octets.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) size: usize,
    pub(super) alignment: usize,
    pub(super) boolean: bool,
    pub(super) character: bool,
}

impl Unit {
    pub(super) const BOOLEAN: Self = Self { size: 1, alignment: 1, boolean: true, character: false };

    pub(super) fn of(kind: TcKind) -> Option<Self> {
        let size = match kind {
            TcKind::Boolean => return Some(Self::BOOLEAN),
            TcKind::LongDouble => return Some(Self { size: 16, alignment: 8, boolean: false, character: false }),
            TcKind::Octet | TcKind::Char => 1,
            TcKind::Short | TcKind::UShort => 2,
            TcKind::Long | TcKind::ULong | TcKind::Float => 4,
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => 8,
            _ => return None,
        };
        Some(Self { size, alignment: size, boolean: false, character: kind == TcKind::Char })
    }

    pub(super) fn of_view(view: View<'_>) -> Option<Self> {
        match view {
            View::Leaf(leaf) => Self::of(leaf.kind()),
            View::Node(..) => None,
        }
    }
}

/// Parts of a type that are examined before it counts as not plain: a type may have very many.
const MAX_PARTS: usize = 256;

/// A plain type. Nothing of its values is validated.
pub(super) struct Plain {
    /// The ends of values that begin at each offset within eight octets.
    ends: [usize; 8],
    /// The steps of a walk over a value.
    pub(super) steps: usize,
    /// The octets of a value's numbers, without those between them.
    pub(super) octets: usize,
}

/// The counts while the end of a value is sought.
struct Count {
    /// The parts that may still be examined.
    left: usize,
    octets: usize,
}

impl Plain {
    /// `None` if the type is not plain, or if its values have no octets.
    pub(super) fn of(content: View<'_>) -> Option<Self> {
        let mut ends = [0; 8];
        let (mut count, mut first) = (Count { left: MAX_PARTS, octets: 0 }, None);
        for (start, end) in ends.iter_mut().enumerate() {
            *end = end_of(content, start, &mut count)?;
            if *end == start {
                return None;
            }
            first = first.or(Some((MAX_PARTS - count.left, count.octets)));
        }
        first.map(|(steps, octets)| Self { ends, steps, octets })
    }

    /// The octets of `len` values that begin at this offset; `None` on overflow.
    pub(super) fn extent(&self, start: usize, len: usize) -> Option<usize> {
        let step = |at: usize| self.ends[at % 8] - at % 8;
        // After eight values at most, offsets repeat.
        let (mut at, mut left) = (start % 8, len);
        let mut offsets = [None; 8];
        while left > 0 {
            if let Some((before, then)) = offsets[at % 8] {
                let (octets, values): (usize, usize) = (at - before, then - left);
                let turns = left / values;
                at = at.checked_add(octets.checked_mul(turns)?)?;
                left -= turns * values;
                offsets = [None; 8];
                if left == 0 {
                    break;
                }
            }
            offsets[at % 8] = Some((at, left));
            at = at.checked_add(step(at))?;
            left -= 1;
        }
        Some(at - start % 8)
    }
}

/// The end of a value that begins at `at`.
fn end_of(view: View<'_>, at: usize, count: &mut Count) -> Option<usize> {
    count.left = count.left.checked_sub(1)?;
    let view = view.resolved();
    if let Some(unit) = Unit::of_view(view) {
        return row(unit, 1, at, count);
    }
    match view.kind() {
        TcKind::Struct => {
            let mut at = at;
            for (_, member) in view.members() {
                at = end_of(member, at, count)?;
            }
            Some(at)
        }
        TcKind::Array => {
            // All dimensions are one step, as in a walk.
            let (mut len, mut content) = (view.number() as usize, view.content()?.resolved());
            while content.kind() == TcKind::Array {
                len = len.checked_mul(content.number() as usize)?;
                content = content.content()?.resolved();
            }
            if let Some(unit) = Unit::of_view(content) {
                return row(unit, len, at, count);
            }
            (0..len).try_fold(at, |at, _| end_of(content, at, count))
        }
        _ => None,
    }
}

/// The end of `len` primitives that begin at `at`.
fn row(unit: Unit, len: usize, at: usize, count: &mut Count) -> Option<usize> {
    if unit.boolean {
        return None;
    }
    let octets = unit.size.checked_mul(len)?;
    count.octets = count.octets.checked_add(octets)?;
    at.next_multiple_of(unit.alignment).checked_add(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LongDouble, TypeCode, Typed};

    fn structure(members: &[TypeCode]) -> TypeCode {
        let named = |(index, member): (usize, &TypeCode)| (format!("m{index}"), member.clone());
        let members: Vec<_> = members.iter().enumerate().map(named).collect();
        TypeCode::structure("IDL:S:1.0", "S", &members).unwrap()
    }

    #[test]
    fn octets_of_many_values_equal_those_of_single_ones() {
        let types = [
            structure(&[i16::type_code(), u8::type_code(), i32::type_code(), u8::type_code(), f64::type_code()]),
            structure(&[u8::type_code(), i16::type_code()]),
            structure(&[u8::type_code(), u8::type_code(), u8::type_code()]),
            structure(&[LongDouble::type_code(), u8::type_code()]),
            TypeCode::array(&structure(&[u8::type_code(), i32::type_code()]), 3).unwrap(),
            TypeCode::array(&i16::type_code(), 1_001).unwrap(),
        ];
        for type_code in &types {
            let plain = Plain::of(type_code.view()).expect("all parts are numbers");
            for start in 0..8 {
                let mut at = start;
                for len in 0..40 {
                    assert_eq!(plain.extent(start, len), Some(at - start), "{len} of {type_code:?} at {start}");
                    at = end_of(type_code.view(), at, &mut Count { left: MAX_PARTS, octets: 0 }).unwrap();
                }
            }
        }
    }

    #[test]
    fn types_that_need_validation_are_not_plain() {
        for type_code in [
            structure(&[]),
            structure(&[bool::type_code()]),
            structure(&[i32::type_code(), TypeCode::string(0)]),
            TypeCode::array(&bool::type_code(), 3).unwrap(),
            TypeCode::array(&structure(&[u8::type_code()]), 1 << 30).unwrap(),
        ] {
            assert!(Plain::of(type_code.view()).is_none(), "{type_code:?}");
        }
    }

    #[test]
    fn counts_that_overflow_have_no_size() {
        let plain = Plain::of(structure(&[f64::type_code()]).view()).unwrap();
        assert_eq!(plain.extent(0, usize::MAX), None);
    }
}
