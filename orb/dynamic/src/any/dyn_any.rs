//! What a value is made of, and what values of all types can do (16.2.3): comparing, copying, iterating over components.

use spandrel_cdr::{Ior, TcKind, TypeCode};

use super::{
    DynAnyError,
    graph::{Copier, Link, Pairs, State, ValueId},
    leaf::Leaf,
};

/// A value of any IDL type, taken apart: IDL `DynamicAny::DynAny`.
///
/// Cloning it copies the value (`copy`). Two are equal (`equal`) if their types are equivalent, all their components are
/// equal, floating-point numbers by their bits, and the same of them are one value; current positions do not matter.
///
/// A value of a value type may be met several times, and within itself. It has its components where it is met first. Elsewhere it has
/// none and is [repeated](super::DynValue::is_repeated); [`DynAny::original_of`] finds the components.
#[derive(Debug)]
pub struct DynAny {
    pub(super) type_code: TypeCode,
    pub(crate) value: Value,
    /// The current position; `None` is the standard's -1.
    pub(crate) at: Option<usize>,
}

/// What a value is made of.
#[derive(Debug)]
pub(crate) enum Value {
    /// Of `null` and `void`; and value types' null.
    Nothing,
    Leaf(Leaf),
    /// Members, elements; of a union the discriminator and then the member, if there is one.
    Parts(Vec<DynAny>),
    /// A value of a value type.
    State(State),
    /// One whose state stands elsewhere.
    Link(Link),
}

impl Clone for DynAny {
    fn clone(&self) -> Self {
        Copier::of([self]).copy(self)
    }
}

impl DynAny {
    /// Components of a value, all levels together, unless another limit is given. What a peer sent may be small and yet
    /// have many: each is as large here as a hundred octets there.
    pub const COMPONENTS: usize = 1 << 20;

    pub(crate) fn made_of(type_code: &TypeCode, value: Value) -> Self {
        let value = match value {
            // An abstract interface has one nil, whether it was a value or a reference.
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

    /// The type without the aliases around it.
    pub(crate) fn resolved(&self) -> TypeCode {
        self.type_code.without_aliases()
    }

    pub(crate) fn kind(&self) -> TcKind {
        self.resolved().kind()
    }

    /// The type of the value that there is: for values of derived types and in abstract interfaces another than the declared one.
    pub(crate) fn actual(&self) -> TypeCode {
        match &self.value {
            Value::State(State { of, .. }) | Value::Link(Link { of, .. }) => of.clone(),
            _ => self.resolved(),
        }
    }

    /// Takes over the value of another (16.2.3.2); the current position begins anew. Its type is equivalent or, beyond the standard,
    /// derives from this one, or may be what an abstract interface has.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if its type is another.
    pub fn assign(&mut self, other: &Self) -> Result<(), DynAnyError> {
        let mut copier = Copier::of([other]);
        if let (Value::State(mine), Value::State(its)) = (&self.value, &other.value) {
            // What repeats this value goes on doing so.
            copier.rename(its.id, mine.id);
        }
        *self = copier.copy_as(other, &self.type_code)?;
        Ok(())
    }

    /// The component at any depth, or this value itself, that is the same value as `repeated`, and has its state.
    #[must_use]
    pub fn original_of(&self, repeated: &Self) -> Option<&Self> {
        match &repeated.value {
            Value::State(State { id, .. }) | Value::Link(Link { id, .. }) => self.states().remove(id),
            _ => None,
        }
    }

    /// The components in order; none for values that have none.
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

    /// How many components there are (16.2.3.9).
    #[must_use]
    pub fn component_count(&self) -> usize {
        self.components().len()
    }

    /// Makes the component at `index` the current one; false, and none is, if there is no such (16.2.3.9).
    pub fn seek(&mut self, index: usize) -> bool {
        self.at = Some(index).filter(|index| *index < self.component_count());
        self.at.is_some()
    }

    /// Makes the first component the current one; false if there is none.
    pub fn rewind(&mut self) -> bool {
        self.seek(0)
    }

    /// Makes the next component the current one, or the first if none was; false, and none is, if there is none.
    #[expect(clippy::should_implement_trait, reason = "the standard's name; what it moves over is not its items")]
    pub fn next(&mut self) -> bool {
        match self.at {
            // At the end, and while there is nothing: -1 and one more is 0.
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

    /// The component at the current position, to be changed.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for values whose types have no components, and for the discriminator of a union: it is
    /// changed by [`DynUnion::set_discriminator`](super::DynUnion::set_discriminator), which sees to the member.
    pub fn current_component_mut(&mut self) -> Result<Option<&mut Self>, DynAnyError> {
        self.check_constructed()?;
        if self.kind() == TcKind::Union && self.at == Some(0) {
            return Err(DynAnyError::TypeMismatch);
        }
        let at = self.at;
        Ok(at.and_then(|at| self.components_mut().get_mut(at)))
    }

    fn check_constructed(&self) -> Result<(), DynAnyError> {
        if self.is_constructed() { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
    }

    /// Whether it may have components.
    pub(crate) fn is_constructed(&self) -> bool {
        has_components(self.actual().kind())
    }

    /// A copy that says it is of this type.
    pub(crate) fn retyped(&self, of: &TypeCode) -> Result<Self, DynAnyError> {
        Copier::of([self]).copy_as(self, of)
    }

    /// Replaces all components; the first becomes the current one. Null becomes a value.
    pub(crate) fn set_parts(&mut self, parts: Vec<Self>) {
        let of = self.actual();
        self.value = match &self.value {
            Value::State(State { id, .. }) => Value::State(State { id: *id, of, parts }),
            _ if is_value_kind(of.kind()) => Value::State(State { id: ValueId::new(), of, parts }),
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

impl PartialEq for DynAny {
    fn eq(&self, other: &Self) -> bool {
        Pairs::default().are_equal(self, other)
    }
}
