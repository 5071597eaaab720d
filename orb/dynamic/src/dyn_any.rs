//! The operations that values of all types have (16.2.3): making, comparing, copying, iterating over components.

use spandrel_cdr::{Any, Label, TcKind, TypeCode};

use crate::{DynAnyError, basic::Leaf, octets::Meter};

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

    /// Takes a value apart (16.2.2, `create_dyn_any`).
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`] for types that have no dynamic values; [`DynAnyError::TooLarge`].
    pub fn new(any: &Any) -> Result<Self, DynAnyError> {
        Self::with_limit(any, Self::COMPONENTS)
    }

    /// Takes apart a value of at most so many components.
    ///
    /// # Errors
    /// As [`DynAny::new`].
    pub fn with_limit(any: &Any, components: usize) -> Result<Self, DynAnyError> {
        Self::read(any.type_code(), &mut any.value(), &mut Meter::new(components))
    }

    /// The default value of a type (16.2.2, `create_dyn_any_from_type_code`): zero, false, empty, nil, null, the first
    /// enumerator, the first member of a union.
    ///
    /// # Errors
    /// As [`DynAny::new`].
    pub fn of_type(type_code: &TypeCode) -> Result<Self, DynAnyError> {
        Self::default_of(type_code, &mut Meter::new(Self::COMPONENTS))
    }

    pub(crate) fn made_of(type_code: &TypeCode, value: Value) -> Self {
        let mut new = Self { type_code: type_code.clone(), value, at: None };
        new.rewind();
        new
    }

    pub(crate) fn default_of(type_code: &TypeCode, meter: &mut Meter) -> Result<Self, DynAnyError> {
        meter.nested(|meter| {
            let resolved = type_code.without_aliases();
            let value = match resolved.kind() {
                TcKind::Null | TcKind::Void | TcKind::Value | TcKind::ValueBox | TcKind::Event => Value::Nothing,
                TcKind::Struct | TcKind::Except => Value::Parts(defaults_of_members(&resolved, meter)?),
                TcKind::Sequence => Value::Parts(Vec::new()),
                TcKind::Array => {
                    let element = resolved.content_type()?;
                    let elements = (0..resolved.length()?).map(|_| Self::default_of(&element, meter));
                    Value::Parts(elements.collect::<Result<_, _>>()?)
                }
                TcKind::Union => {
                    let first = match resolved.member_label(0) {
                        Ok(Label::Value(value)) => Some(value),
                        Ok(Label::Default) => crate::union::unclaimed(&resolved)?,
                        Err(_) => Some(0),
                    };
                    crate::union::parts_for(&resolved, first.ok_or(DynAnyError::TypeMismatch)?, meter)?
                }
                kind => Value::Leaf(Leaf::default_of(&resolved).ok_or(DynAnyError::InconsistentTypeCode(kind))?),
            };
            Ok(Self::made_of(type_code, value))
        })
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

    /// Takes over the value of an `Any` (16.2.3.3); the current position begins anew.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if its type is not equivalent; [`DynAnyError::TooLarge`].
    pub fn from_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.check_type(any.type_code())?;
        self.assign(&Self::new(any)?)
    }

    fn check_type(&self, other: &TypeCode) -> Result<(), DynAnyError> {
        if self.type_code.equivalent(other) { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
    }

    /// Puts the value together (16.2.3.4).
    ///
    /// # Errors
    /// A value that has no CDR form, such as a string with NUL inside.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        Ok(Any::write(self.type_code.clone(), |out| self.write(out))?)
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
    /// changed by [`DynUnion::set_discriminator`](crate::DynUnion::set_discriminator), which sees to the member.
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

pub(crate) fn defaults_of_members(of: &TypeCode, meter: &mut Meter) -> Result<Vec<DynAny>, DynAnyError> {
    (0..of.member_count()?).map(|index| DynAny::default_of(&of.member_type(index)?, meter)).collect()
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
