//! What matters about a type when its values are moved as octets.

use std::collections::HashSet;

use crate::{
    TcKind, TypeCode,
    type_code::{Leaf, View},
};

/// What values of a type may contain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Survey {
    /// The largest alignment of any primitive.
    pub(super) alignment: u8,
    /// Narrow characters.
    pub(super) narrow: bool,
    /// Wide characters.
    pub(super) wide: bool,
    /// References or values, which need somebody to make them live.
    pub(super) binds: bool,
}

const PLAIN: Survey = Survey { alignment: 1, narrow: false, wide: false, binds: false };
const EVERYTHING: Survey = Survey { alignment: 8, narrow: true, wide: true, binds: true };

impl Survey {
    /// Looks at each type within `of` once.
    pub(super) fn of(of: &TypeCode) -> Self {
        let mut found = PLAIN;
        let mut seen = HashSet::new();
        let mut todo = vec![of.view()];
        while let Some(view) = todo.pop() {
            if let View::Leaf(leaf) = view {
                found = found.and(of_leaf(leaf));
                continue;
            }
            if found == EVERYTHING {
                break;
            }
            if seen.insert(view.identity()) {
                found = found.and(of_node(view.kind()));
                todo.extend(view.children());
            }
        }
        found
    }

    fn and(self, other: Self) -> Self {
        Self {
            alignment: self.alignment.max(other.alignment),
            narrow: self.narrow || other.narrow,
            wide: self.wide || other.wide,
            binds: self.binds || other.binds,
        }
    }
}

fn of_leaf(leaf: Leaf) -> Survey {
    let aligned = |alignment| Survey { alignment, ..PLAIN };
    match leaf {
        Leaf::String(_) => Survey { narrow: true, ..aligned(4) },
        Leaf::WString(_) => Survey { wide: true, ..aligned(4) },
        Leaf::Fixed { .. } => PLAIN,
        Leaf::Simple(kind) => match kind {
            TcKind::Null | TcKind::Void | TcKind::Boolean | TcKind::Octet => PLAIN,
            TcKind::Char => Survey { narrow: true, ..PLAIN },
            TcKind::Short | TcKind::UShort => aligned(2),
            TcKind::WChar => Survey { wide: true, ..aligned(2) },
            TcKind::Long | TcKind::ULong | TcKind::Float | TcKind::Principal => aligned(4),
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double | TcKind::LongDouble => aligned(8),
            // Names in narrow characters; labels in wide ones.
            TcKind::TypeCode => Survey { narrow: true, wide: true, ..aligned(4) },
            _ => EVERYTHING,
        },
    }
}

/// What a node's values have themselves, apart from its children's.
fn of_node(kind: TcKind) -> Survey {
    match kind {
        TcKind::Struct | TcKind::Union | TcKind::Array | TcKind::Alias => PLAIN,
        TcKind::Sequence | TcKind::Enum => Survey { alignment: 4, ..PLAIN },
        TcKind::Except => Survey { alignment: 4, narrow: true, ..PLAIN },
        // Profiles are encapsulated and align themselves.
        TcKind::ObjRef | TcKind::Component | TcKind::Home => {
            Survey { alignment: 4, narrow: true, wide: false, binds: true }
        }
        _ => EVERYTHING,
    }
}
