//! Properties of a type that decide whether its values can be copied as octets.
//!
//! Construction of an `Any`, and extraction of its value, are in the parent module.

use std::collections::HashSet;

use crate::{
    TcKind, TypeCode,
    type_code::{Leaf, View},
};

/// The possible content of a type's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ValueContent {
    /// The largest alignment of any primitive.
    pub(super) alignment: u8,
    /// Whether values may hold narrow characters or strings.
    pub(super) narrow: bool,
    /// Whether values may hold wide characters or strings.
    pub(super) wide: bool,
    /// References or values, which a binder has to convert.
    pub(super) binds: bool,
}

const PLAIN: ValueContent = ValueContent { alignment: 1, narrow: false, wide: false, binds: false };
const EVERYTHING: ValueContent = ValueContent { alignment: 8, narrow: true, wide: true, binds: true };

/// The sequences, arrays and typedefs around a type that are looked through first.
const LEVELS: usize = 8;

impl ValueContent {
    /// Visits each type within `of` once.
    pub(super) fn of(type_code: &TypeCode) -> Self {
        let (mut content, mut view) = (PLAIN, type_code.view());
        // Usual types need no set of those that were visited.
        for _ in 0..LEVELS {
            let kind = view.kind();
            let element = view.children().next();
            let Some(element) = element.filter(|_| matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias))
            else {
                break;
            };
            (content, view) = (content.and(of_node(kind)), element);
        }
        if let View::Leaf(leaf) = view {
            return content.and(of_leaf(leaf));
        }
        let mut visited = HashSet::new();
        let mut todo = vec![view];
        while let Some(view) = todo.pop() {
            if let View::Leaf(leaf) = view {
                content = content.and(of_leaf(leaf));
                continue;
            }
            if content == EVERYTHING {
                break;
            }
            if visited.insert(view.identity()) {
                content = content.and(of_node(view.kind()));
                todo.extend(view.children());
            }
        }
        content
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

fn of_leaf(leaf: Leaf) -> ValueContent {
    let aligned = |alignment| ValueContent { alignment, ..PLAIN };
    match leaf {
        Leaf::String(_) => ValueContent { narrow: true, ..aligned(4) },
        Leaf::WString(_) => ValueContent { wide: true, ..aligned(4) },
        Leaf::Fixed { .. } => PLAIN,
        Leaf::Simple(kind) => match kind {
            TcKind::Null | TcKind::Void | TcKind::Boolean | TcKind::Octet => PLAIN,
            TcKind::Char => ValueContent { narrow: true, ..PLAIN },
            TcKind::Short | TcKind::UShort => aligned(2),
            TcKind::WChar => ValueContent { wide: true, ..aligned(2) },
            TcKind::Long | TcKind::ULong | TcKind::Float | TcKind::Principal => aligned(4),
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double | TcKind::LongDouble => aligned(8),
            // Names are narrow characters; labels may be wide.
            TcKind::TypeCode => ValueContent { narrow: true, wide: true, ..aligned(4) },
            _ => EVERYTHING,
        },
    }
}

/// The content of a node's own values, without its children's.
fn of_node(kind: TcKind) -> ValueContent {
    match kind {
        TcKind::Struct | TcKind::Union | TcKind::Array | TcKind::Alias => PLAIN,
        TcKind::Sequence | TcKind::Enum => ValueContent { alignment: 4, ..PLAIN },
        TcKind::Except => ValueContent { alignment: 4, narrow: true, ..PLAIN },
        // Profiles are encapsulations with alignment of their own.
        TcKind::ObjRef | TcKind::Component | TcKind::Home => {
            ValueContent { alignment: 4, narrow: true, wide: false, binds: true }
        }
        _ => EVERYTHING,
    }
}
