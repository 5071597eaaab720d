//! Construction of tables, entirely at compile time.

use super::program::{Fixed, Op, Program};

/// A field of a struct: its offset and its type's table. Created only by `struct_fields!` from the field
/// itself.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The distance from the struct's beginning in memory, in octets.
    pub at: usize,
    /// The table of its type.
    pub program: &'static Program,
}

/// The maximum number of ops in the table of a struct.
#[must_use]
pub const fn most_ops(fields: &[Field]) -> usize {
    let mut count = 0;
    let mut nth = 0;
    while nth < fields.len() {
        // Each op may begin a run, and have a gap after it.
        count += 3 * fields[nth].program.ops.len();
        nth += 1;
    }
    count
}

/// The list to which ops of a struct are appended while its table is built, at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Ops<const N: usize> {
    ops: [Op; N],
    len: usize,
}

impl<const N: usize> Ops<N> {
    const fn new() -> Self {
        Self { ops: [Op::Zero { at: 0, octets: 0 }; N], len: 0 }
    }

    const fn push(&mut self, op: Op) {
        self.ops[self.len] = op;
        self.len += 1;
    }

    /// The ops that were appended so far.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "unused")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The ops as an array of exactly their number.
    #[must_use]
    pub const fn exactly<const M: usize>(&self) -> [Op; M] {
        let mut ops = [Op::Zero { at: 0, octets: 0 }; M];
        let mut nth = 0;
        while nth < M {
            ops[nth] = self.ops[nth];
            nth += 1;
        }
        ops
    }
}

/// The parts of a struct with these fields, in their order. Leaves with the same layout in memory and in CDR
/// are combined into runs.
#[must_use]
pub const fn assemble<const N: usize>(fields: &[Field]) -> Ops<N> {
    let flat = flatten::<N>(fields);
    let mut ops = Ops::new();
    let mut nth = 0;
    while nth < flat.len {
        let end = run_end(&flat, nth);
        if end - nth > 1 {
            push_run(&mut ops, &flat, nth, end);
        }
        let end = if end == nth { nth + 1 } else { end };
        while nth < end {
            ops.push(flat.ops[nth]);
            nth += 1;
        }
    }
    ops
}

const fn flatten<const N: usize>(fields: &[Field]) -> Ops<N> {
    let mut flat = Ops::new();
    let mut field = 0;
    while field < fields.len() {
        let Field { at, program } = fields[field];
        assert!(at <= u32::MAX as usize, "a table can describe types of up to four gigabytes");
        let mut nth = 0;
        while nth < program.ops.len() {
            let op = program.ops[nth];
            if !matches!(op, Op::Run { .. } | Op::Zero { .. }) {
                flat.push(op.moved(at as u32));
            }
            nth += 1;
        }
        field += 1;
    }
    flat
}

/// The end of the longest run that starts at `start`.
const fn run_end<const N: usize>(flat: &Ops<N>, start: usize) -> usize {
    let Some(first) = (if start < flat.len { flat.ops[start].leaf() } else { None }) else { return start };
    let mut end = start;
    let mut octets = 0usize;
    while end < flat.len && end - start < u8::MAX as usize {
        let Some(leaf) = flat.ops[end].leaf() else { break };
        let offset = octets.next_multiple_of(leaf.width);
        if leaf.at < first.at || leaf.at - first.at != offset {
            break;
        }
        octets = offset + leaf.octets;
        end += 1;
    }
    end
}

const fn push_run<const N: usize>(ops: &mut Ops<N>, flat: &Ops<N>, start: usize, end: usize) {
    let header = ops.len;
    ops.push(Op::Zero { at: 0, octets: 0 });
    let (mut align, mut checked, mut zeros) = (1, false, 0);
    let (mut first, mut from, mut past) = (1, 0, 0);
    let mut nth = start;
    while nth < end {
        let op = flat.ops[nth];
        if let Some(leaf) = op.leaf() {
            if nth == start {
                (first, from) = (leaf.width, leaf.at);
            } else if leaf.at > past {
                ops.push(Op::Zero { at: past as u32, octets: (leaf.at - past) as u32 });
                zeros += 1;
            }
            past = leaf.at + leaf.octets;
            align = if leaf.width > align { leaf.width } else { align };
            checked |= op.is_checked();
        }
        nth += 1;
    }
    ops.ops[header] = Op::Run {
        first: first as u8,
        align: align as u8,
        at: from as u32,
        octets: (past - from) as u32,
        leaves: (end - start) as u8,
        zeros,
        checked,
    };
}

/// The table of the struct `S` with these fields; its ops were [assembled](assemble) from them.
#[must_use]
pub const fn structure<S>(fields: &[Field], ops: &'static [Op]) -> Program {
    let mut least = 0u32;
    let mut nth = 0;
    while nth < fields.len() {
        least = least.saturating_add(fields[nth].program.least);
        nth += 1;
    }
    program::<S>(ops, least)
}

/// The table of `S` with these parts.
pub(super) const fn program<S>(ops: &'static [Op], least: u32) -> Program {
    assert!(size_of::<S>() <= u32::MAX as usize, "a table can describe types of up to four gigabytes");
    assert!(align_of::<S>() <= u8::MAX as usize);
    Program {
        ops,
        memory: size_of::<S>() as u32,
        least,
        fixed: fixed(ops, size_of::<S>()),
        memory_align: align_of::<S>() as u8,
        is_number: false,
    }
}

/// The table of a primitive, or of an array of primitives.
pub(super) const fn number<S>(ops: &'static [Op], least: u32) -> Program {
    Program { is_number: true, ..program::<S>(ops, least) }
}

/// The layout of a type that consists of leaves.
const fn fixed(ops: &[Op], memory: usize) -> Option<Fixed> {
    let (mut first, mut align, mut octets) = (0, 1, 0usize);
    let mut block = true;
    let mut nth = 0;
    while nth < ops.len() {
        if let Some(leaf) = ops[nth].leaf() {
            octets = octets.next_multiple_of(leaf.width);
            block &= leaf.at == octets;
            octets += leaf.octets;
            first = if first == 0 { leaf.width } else { first };
            align = if leaf.width > align { leaf.width } else { align };
        } else if !matches!(ops[nth], Op::Run { .. } | Op::Zero { .. }) {
            return None;
        }
        nth += 1;
    }
    if first == 0 || octets > u32::MAX as usize {
        return None;
    }
    block &= is_one_run(ops) && octets.next_multiple_of(align) == memory;
    Some(Fixed { first: first as u8, align: align as u8, block, octets: octets as u32 })
}

/// Whether the ops are a single run.
const fn is_one_run(ops: &[Op]) -> bool {
    match ops[0] {
        Op::Run { leaves, zeros, .. } => ops.len() == 1 + leaves as usize + zeros as usize,
        _ => ops.len() == 1,
    }
}
