//! Copying and comparison of dynamic values (16.2.3), in which values of value types may be shared.
//!
//! A repetition is a `Link` of `dyn_any`, which also finds its original; `value` makes repetitions.

use std::collections::HashMap;

use spandrel_cdr::TypeCode;

use super::{
    DynAny, DynAnyError,
    dyn_any::{Link, State, Value, ValueId, is_value_kind},
};

impl Clone for DynAny {
    fn clone(&self) -> Self {
        Copier::of([self]).copy(self)
    }
}

impl DynAny {
    /// Assigns the value of another (16.2.3.2); the current position is reset. Its type must be equivalent.
    /// Beyond the standard, it may derive from this one, or be permitted in this abstract interface.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if its type is another.
    pub fn assign(&mut self, other: &Self) -> Result<(), DynAnyError> {
        let mut copier = Copier::of([other]);
        if let (Value::State(mine), Value::State(its)) = (&self.value, &other.value) {
            // Repetitions of this value stay its repetitions.
            copier.rename(its.id, mine.id);
        }
        *self = copier.copy_as(other, &self.type_code)?;
        Ok(())
    }

    /// A copy with this type.
    pub(crate) fn retyped(&self, type_code: &TypeCode) -> Result<Self, DynAnyError> {
        Copier::of([self]).copy_as(self, type_code)
    }

    /// All values with their states in this tree, itself included.
    pub(crate) fn states(&self) -> HashMap<ValueId, &Self> {
        let (mut values, mut todo) = (HashMap::new(), vec![self]);
        while let Some(value) = todo.pop() {
            if let Value::State(state) = &value.value {
                values.insert(state.id, value);
            }
            todo.extend(value.components());
        }
        values
    }

    /// The values with their states in this tree, in reading order.
    pub(crate) fn states_in_order(&self) -> Vec<ValueId> {
        let (mut ids, mut todo) = (Vec::new(), vec![self]);
        while let Some(value) = todo.pop() {
            if let Value::State(state) = &value.value {
                ids.push(state.id);
            }
            todo.extend(value.components().iter().rev());
        }
        ids
    }

    /// The targets of links in this tree.
    pub(crate) fn links(&self) -> Vec<ValueId> {
        let (mut ids, mut todo) = (Vec::new(), vec![self]);
        while let Some(value) = todo.pop() {
            if let Value::Link(link) = &value.value {
                ids.push(link.id);
            }
            todo.extend(value.components());
        }
        ids
    }

    /// Whether this value is permitted where the type is declared: a value of the same or a derived type, or
    /// any value or reference for an abstract interface.
    pub(crate) fn fits(&self, type_code: &TypeCode) -> bool {
        if self.type_code().equivalent(type_code) {
            return true;
        }
        let type_code = type_code.without_aliases();
        match &self.value {
            Value::State(State { type_code: own, .. }) | Value::Link(Link { type_code: own, .. }) => {
                own.derives_from(&type_code)
            }
            // Null is a value of every value type.
            Value::Nothing => is_value_kind(self.kind()) && self.resolved().derives_from(&type_code),
            Value::Leaf(_) => type_code.kind() == spandrel_cdr::TcKind::AbstractInterface && self.reference().is_ok(),
            Value::Parts(_) => false,
        }
    }
}

/// Copies several components together: values shared between them are shared between the copies, with new
/// identities.
pub(crate) struct Copier(HashMap<ValueId, ValueId>);

impl Copier {
    pub(crate) fn of<'d>(originals: impl IntoIterator<Item = &'d DynAny>) -> Self {
        let ids = originals.into_iter().flat_map(|original| original.states().into_keys());
        Self(ids.map(|id| (id, ValueId::new())).collect())
    }

    /// Records the copy of a value.
    pub(crate) fn rename(&mut self, original: ValueId, copy: ValueId) {
        self.0.insert(original, copy);
    }

    pub(crate) fn copy(&self, original: &DynAny) -> DynAny {
        DynAny { type_code: original.type_code.clone(), value: self.value(&original.value), at: original.at }
    }

    /// A copy with this declared type.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if it is not a value of the type.
    pub(crate) fn copy_as(&self, original: &DynAny, type_code: &TypeCode) -> Result<DynAny, DynAnyError> {
        if !original.fits(type_code) {
            return Err(original.mismatch(format!("a value of type `{type_code}`")));
        }
        Ok(DynAny::made_of(type_code, self.value(&original.value)))
    }

    fn value(&self, original: &Value) -> Value {
        let id = |id: &ValueId| *self.0.get(id).unwrap_or(id);
        let copies = |parts: &[DynAny]| parts.iter().map(|part| self.copy(part)).collect();
        match original {
            Value::Nothing => Value::Nothing,
            Value::Leaf(leaf) => Value::Leaf(leaf.clone()),
            Value::Parts(parts) => Value::Parts(copies(parts)),
            Value::State(State { id: own, type_code, parts }) => {
                Value::State(State { id: id(own), type_code: type_code.clone(), parts: copies(parts) })
            }
            Value::Link(link) => Value::Link(Link { id: id(&link.id), type_code: link.type_code.clone() }),
        }
    }
}

/// A mapping of the values of one tree to those of another.
#[derive(Default)]
pub(crate) struct Pairs(HashMap<ValueId, ValueId>);

impl Pairs {
    pub(crate) fn are_equal(&mut self, a: &DynAny, b: &DynAny) -> bool {
        a.type_code().equivalent(b.type_code()) && self.are_equal_values(&a.value, &b.value)
    }

    fn are_equal_values(&mut self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Nothing, Value::Nothing) => true,
            (Value::Leaf(a), Value::Leaf(b)) => a == b,
            (Value::Parts(a), Value::Parts(b)) => self.are_all_equal(a, b),
            (Value::State(a), Value::State(b)) => {
                self.0.insert(a.id, b.id);
                a.type_code.equivalent(&b.type_code) && self.are_all_equal(&a.parts, &b.parts)
            }
            (Value::Link(a), Value::Link(b)) => self.0.get(&a.id).unwrap_or(&a.id) == &b.id,
            _ => false,
        }
    }

    fn are_all_equal(&mut self, a: &[DynAny], b: &[DynAny]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.are_equal(a, b))
    }
}

impl PartialEq for DynAny {
    fn eq(&self, other: &Self) -> bool {
        Pairs::default().are_equal(self, other)
    }
}
