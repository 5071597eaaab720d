//! Insertion and extraction of values of value types and of abstract interfaces (16.2.3.8: `insert_val`, `get_val`,
//! `insert_abstract`, `get_abstract`).

use spandrel_cdr::TcKind;

use super::{DynAny, DynAnyError, dyn_any::is_value_kind};

/// The operations act on the current component if that is of such a type, and otherwise on the value itself.
impl DynAny {
    /// Inserts a value of a value type (`insert_val`). Its type may derive from the declared one. It is a copy: values
    /// that it shares stay shared within it.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if neither the current component nor the value itself is of a value type, or if the
    /// type of `value` does not derive from the declared one.
    pub fn insert_val(&mut self, value: &Self) -> Result<(), DynAnyError> {
        self.target(is_value_kind, "a value of a value type")?;
        self.insert_at(is_value_kind, value)
    }

    /// A copy of a value of a value type (`get_val`), with all values that it refers to, also if the position repeats
    /// another value.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] as for [`insert_val`](Self::insert_val).
    pub fn val(&self) -> Result<Self, DynAnyError> {
        let target = self.target(is_value_kind, "a value of a value type")?;
        Self::new(&target.to_any_within(self)?)
    }

    /// Inserts a reference or a value into a position of an abstract interface (`insert_abstract`).
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if neither the current component nor the value itself is of an abstract interface,
    /// or if `value` is neither a reference nor a value of a value type.
    pub fn insert_abstract(&mut self, value: &Self) -> Result<(), DynAnyError> {
        self.target(is_abstract, "a value of an abstract interface")?;
        self.insert_at(is_abstract, value)
    }

    /// A copy of the content of a position of an abstract interface (`get_abstract`): a reference, a value, or nil.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] as for [`insert_abstract`](Self::insert_abstract).
    pub fn abstract_val(&self) -> Result<Self, DynAnyError> {
        let target = self.target(is_abstract, "a value of an abstract interface")?;
        Self::new(&target.to_any_within(self)?)
    }

    fn target(&self, is_wanted: fn(TcKind) -> bool, expected: &str) -> Result<&Self, DynAnyError> {
        let component = self.at.and_then(|at| self.components().get(at));
        let value = component.filter(|it| is_wanted(it.kind())).or(Some(self).filter(|it| is_wanted(it.kind())));
        value.ok_or_else(|| self.mismatch(expected))
    }

    fn insert_at(&mut self, is_wanted: fn(TcKind) -> bool, value: &Self) -> Result<(), DynAnyError> {
        let at = self.at.filter(|at| self.components().get(*at).is_some_and(|it| is_wanted(it.kind())));
        match at {
            Some(at) => self.components_mut()[at].assign(value),
            None => self.assign(value),
        }
    }
}

fn is_abstract(kind: TcKind) -> bool {
    kind == TcKind::AbstractInterface
}
