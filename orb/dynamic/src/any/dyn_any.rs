//! The structure of dynamic values, and the iteration over components of values of all types (16.2.3).
//!
//! Values of value types may be shared, and may contain themselves (CORBA 3.3 Part 1, 9.2.4), but components
//! form a tree. So the state of a value is in one position of the tree, the first in reading order; a
//! [`Link`] refers to it from each other position.

use spandrel_cdr::{Ior, TcKind, TypeCode};
use spandrel_sync::atomic::{AtomicU64, Ordering};

use super::{DynAnyError, error::mismatch, leaf::Leaf};

/// A value of any IDL type as a tree of components: IDL `DynamicAny::DynAny`.
///
/// A clone copies the value (`copy`). Two are equal (`equal`) if their types are equivalent, all their
/// components are equal, floating-point numbers by their bits, and both share the same values; current
/// positions do not matter.
///
/// A value of a value type may occur several times, also inside itself. Its first occurrence has the
/// components. Other occurrences have none and are [repeated](super::DynValue::is_repeated);
/// [`DynAny::original_of`] finds the components.
#[derive(Debug)]
pub struct DynAny {
    pub(super) type_code: TypeCode,
    pub(crate) value: Value,
    /// The current position; `None` is the standard's -1.
    pub(crate) at: Option<usize>,
}

/// The content of a value.
#[derive(Debug)]
pub(crate) enum Value {
    /// The value of `null` and `void`; and null of value types.
    Nothing,
    Leaf(Leaf),
    /// Members or elements; in a union the discriminator and then the active member, if any.
    Parts(Vec<DynAny>),
    /// A value of a value type.
    State(State),
    /// A repetition of a value of a value type.
    Link(Link),
}

/// The identity of a value, unique within this process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct ValueId(u64);

impl ValueId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A value of a value type with its state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: ValueId,
    /// Its type: the declared one, or one that derives from it.
    pub(crate) type_code: TypeCode,
    /// Its members, inherited ones first; or the content of a box.
    pub(crate) parts: Vec<DynAny>,
}

/// A reference to a value of a value type whose state is elsewhere in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) id: ValueId,
    pub(crate) type_code: TypeCode,
}

impl DynAny {
    /// The default limit on components, on all levels together. A small message may contain many: each takes
    /// about a hundred times its octets in memory.
    pub const COMPONENTS: usize = 1 << 20;

    pub(crate) fn made_of(type_code: &TypeCode, value: Value) -> Self {
        let value = match value {
            // An abstract interface has one form of nil, for values and references.
            Value::Nothing if type_code.without_aliases().kind() == TcKind::AbstractInterface => {
                Value::Leaf(Leaf::Reference(Ior::default()))
            }
            value => value,
        };
        let mut new = Self { type_code: type_code.clone(), value, at: None };
        new.rewind();
        new
    }

    /// The type of the value (16.2.3.1, `type`), which never changes.
    #[must_use]
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// The type without its outer aliases.
    pub(crate) fn resolved(&self) -> TypeCode {
        self.type_code.without_aliases()
    }

    pub(crate) fn kind(&self) -> TcKind {
        self.resolved().kind()
    }

    /// The type of the actual value: values of derived types and in abstract interfaces have another than the
    /// declared one.
    pub(crate) fn actual(&self) -> TypeCode {
        match &self.value {
            Value::State(State { type_code, .. }) | Value::Link(Link { type_code, .. }) => type_code.clone(),
            _ => self.resolved(),
        }
    }

    /// The component at any depth, or this value itself, with the state of the value that `repeated` repeats.
    #[must_use]
    pub fn original_of(&self, repeated: &Self) -> Option<&Self> {
        match &repeated.value {
            Value::State(State { id, .. }) | Value::Link(Link { id, .. }) => self.states().remove(id),
            _ => None,
        }
    }

    /// The components in order; empty for values without components.
    #[must_use]
    pub fn components(&self) -> &[Self] {
        match &self.value {
            Value::Parts(parts) | Value::State(State { parts, .. }) => parts,
            _ => &[],
        }
    }

    pub(crate) fn components_mut(&mut self) -> &mut [Self] {
        match &mut self.value {
            Value::Parts(parts) | Value::State(State { parts, .. }) => parts,
            _ => &mut [],
        }
    }

    /// The number of components (16.2.3.9).
    #[must_use]
    pub fn component_count(&self) -> usize {
        self.components().len()
    }

    /// Makes the component at `index` the current one. Returns false if it does not exist; then none is
    /// current (16.2.3.9).
    pub fn seek(&mut self, index: usize) -> bool {
        self.at = Some(index).filter(|index| *index < self.component_count());
        self.at.is_some()
    }

    /// Makes the first component the current one; false if there is none.
    pub fn rewind(&mut self) -> bool {
        self.seek(0)
    }

    /// Makes the next component the current one, or the first if none was. Returns false if there is none;
    /// then none is current.
    #[expect(clippy::should_implement_trait, reason = "the standard's name; what it moves over is not its items")]
    pub fn next(&mut self) -> bool {
        match self.at {
            // At the end, and without a current component: -1 plus one is 0.
            None => self.rewind(),
            Some(at) => self.seek(at + 1),
        }
    }

    /// The current position, if any component is current.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.at
    }

    /// The component at the current position, if there is one (16.2.3.9).
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for values whose types have no components.
    pub fn current_component(&self) -> Result<Option<&Self>, DynAnyError> {
        self.check_constructed()?;
        Ok(self.at.and_then(|at| self.components().get(at)))
    }

    /// The component at the current position, for modification.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for values whose types have no components, and for the discriminator of
    /// a union: [`DynUnion::set_discriminator`](super::DynUnion::set_discriminator) changes it together with
    /// the member.
    pub fn current_component_mut(&mut self) -> Result<Option<&mut Self>, DynAnyError> {
        self.check_constructed()?;
        if self.kind() == TcKind::Union && self.at == Some(0) {
            return Err(self.mismatch("a component besides the discriminator, which `set_discriminator` changes"));
        }
        let at = self.at;
        Ok(at.and_then(|at| self.components_mut().get_mut(at)))
    }

    /// `TypeMismatch` for this value.
    pub(crate) fn mismatch(&self, expected: impl Into<String>) -> DynAnyError {
        mismatch(expected, &self.type_code)
    }

    fn check_constructed(&self) -> Result<(), DynAnyError> {
        if self.is_constructed() { Ok(()) } else { Err(self.mismatch("a type with components")) }
    }

    /// Whether it may have components.
    pub(crate) fn is_constructed(&self) -> bool {
        has_components(self.actual().kind())
    }

    /// Replaces all components; the first becomes the current one. Null becomes a value.
    pub(crate) fn set_parts(&mut self, parts: Vec<Self>) {
        let type_code = self.actual();
        self.value = match &self.value {
            Value::State(State { id, .. }) => Value::State(State { id: *id, type_code, parts }),
            _ if is_value_kind(type_code.kind()) => Value::State(State { id: ValueId::new(), type_code, parts }),
            _ => Value::Parts(parts),
        };
        self.rewind();
    }
}

pub(crate) fn is_value_kind(kind: TcKind) -> bool {
    matches!(kind, TcKind::Value | TcKind::Event | TcKind::ValueBox)
}

pub(crate) fn has_components(kind: TcKind) -> bool {
    is_value_kind(kind)
        || matches!(kind, TcKind::Struct | TcKind::Except | TcKind::Union | TcKind::Sequence | TcKind::Array)
}
