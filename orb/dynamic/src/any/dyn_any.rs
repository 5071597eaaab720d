//! What a value is made of, and what values of all types can do (16.2.3): comparing, copying, iterating over components.

use spandrel_cdr::{TcKind, TypeCode};

use super::{DynAnyError, leaf::Leaf};

/// A value of any IDL type, taken apart: IDL `DynamicAny::DynAny`.
///
/// Cloning it copies the value (`copy`). Two are equal (`equal`) if their types are equivalent and all their components are
/// equal, floating-point numbers by their bits; current positions do not matter.
#[derive(Clone, Debug)]
pub struct DynAny {
    type_code: TypeCode,
    pub(crate) value: Value,
    /// The current position; `None` is the standard's -1.
    pub(crate) at: Option<usize>,
}

/// What a value is made of.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Of `null` and `void`; and value types' null.
    Nothing,
    Leaf(Leaf),
    /// Members, elements; of a union the discriminator and then the member, if there is one; of a value its state.
    Parts(Vec<DynAny>),
}

impl DynAny {
    /// Components of a value, all levels together, unless another limit is given. What a peer sent may be small and yet
    /// have many: each is as large here as a hundred octets there.
    pub const COMPONENTS: usize = 1 << 20;

    pub(crate) fn made_of(type_code: &TypeCode, value: Value) -> Self {
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

    /// Takes over the value of another (16.2.3.2); the current position begins anew.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if its type is not equivalent.
    pub fn assign(&mut self, other: &Self) -> Result<(), DynAnyError> {
        self.check_type(other.type_code())?;
        self.value = other.value.clone();
        self.rewind();
        Ok(())
    }

    pub(crate) fn check_type(&self, other: &TypeCode) -> Result<(), DynAnyError> {
        if self.type_code.equivalent(other) { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
    }

    /// The components in order; none for values that have none.
    #[must_use]
    pub fn components(&self) -> &[Self] {
        match &self.value {
            Value::Parts(parts) => parts,
            _ => &[],
        }
    }

    pub(crate) fn components_mut(&mut self) -> &mut [Self] {
        match &mut self.value {
            Value::Parts(parts) => parts,
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
        if has_components(self.kind()) { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
    }

    /// A copy that says it is of this type.
    pub(crate) fn retyped(&self, of: &TypeCode) -> Result<Self, DynAnyError> {
        if !self.type_code().equivalent(of) {
            return Err(DynAnyError::TypeMismatch);
        }
        Ok(Self::made_of(of, self.value.clone()))
    }

    /// Replaces all components; the first becomes the current one.
    pub(crate) fn set_parts(&mut self, parts: Vec<Self>) {
        self.value = Value::Parts(parts);
        self.rewind();
    }
}

pub(crate) fn has_components(kind: TcKind) -> bool {
    matches!(
        kind,
        TcKind::Struct
            | TcKind::Except
            | TcKind::Union
            | TcKind::Sequence
            | TcKind::Array
            | TcKind::Value
            | TcKind::ValueBox
            | TcKind::Event
    )
}

impl PartialEq for DynAny {
    fn eq(&self, other: &Self) -> bool {
        self.type_code.equivalent(&other.type_code) && self.value == other.value
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Leaf(mine), Self::Leaf(its)) => mine == its,
            (Self::Parts(mine), Self::Parts(its)) => mine == its,
            _ => false,
        }
    }
}
