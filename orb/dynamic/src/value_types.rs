//! Type codes of value types: needed to decode values of derived types.
//!
//! A value names its type by repository ids, and its position declares that type or a base of it (CORBA 3.3
//! Part 2, 9.3.4). Generated code has a factory for each id; decoding without generated code needs the type
//! code.

use std::{any::Any as StdAny, collections::HashMap, fmt};

use spandrel_cdr::{Binder, CdrError, Ior, TypeCode, ValueFactory};
use spandrel_sync::Arc;

/// Type codes of value types by their repository ids.
///
/// They serve to decode values where a base, `ValueBase`, an abstract value type or an abstract interface is
/// declared. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueTypes(Option<Arc<HashMap<String, TypeCode>>>);

impl ValueTypes {
    /// Creates a registry to which types are added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the value types and boxes inside a type, itself included. A type with a known id is not replaced.
    pub fn add(&mut self, type_code: &TypeCode) -> &mut Self {
        for type_code in type_code.value_types() {
            self.insert(type_code);
        }
        self
    }

    /// Adds all types of another registry.
    pub fn add_all(&mut self, others: &Self) -> &mut Self {
        if self.0.is_none() {
            self.0.clone_from(&others.0);
        } else if !matches!((&self.0, &others.0), (Some(mine), Some(its)) if Arc::ptr_eq(mine, its)) {
            others.iter().for_each(|type_code| self.insert(type_code.clone()));
        }
        self
    }

    fn insert(&mut self, type_code: TypeCode) {
        if let Some(id) = type_code.id().ok().filter(|id| !id.is_empty() && self.get(id).is_none()) {
            let id = id.to_owned();
            Arc::make_mut(self.0.get_or_insert_default()).insert(id, type_code);
        }
    }

    /// The value type with this repository id, if it is registered.
    #[must_use]
    pub fn get(&self, repository_id: &str) -> Option<&TypeCode> {
        self.0.as_ref()?.get(repository_id)
    }

    /// All types, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &TypeCode> {
        self.0.iter().flat_map(|types| types.values())
    }

    /// Whether there are no types.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<'t> FromIterator<&'t TypeCode> for ValueTypes {
    fn from_iter<I: IntoIterator<Item = &'t TypeCode>>(types: I) -> Self {
        let mut all = Self::new();
        for type_code in types {
            all.add(type_code);
        }
        all
    }
}

/// For decoders without an ORB: references cannot be bound.
impl Binder for ValueTypes {
    fn bind(&self, _: Ior) -> Result<Arc<dyn StdAny + Send + Sync>, CdrError> {
        Err(CdrError::Unbound)
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.get(repository_id).cloned()
    }
}

/// A binder with additional value types.
#[derive(Clone)]
pub(crate) struct TypedBinder {
    types: ValueTypes,
    /// Consulted for types after `types`.
    more: Option<Arc<dyn Binder>>,
    /// Consulted for types last, and for everything else.
    binder: Option<Arc<dyn Binder>>,
}

impl TypedBinder {
    pub(crate) fn new(types: &ValueTypes, binder: Option<&dyn Binder>) -> Self {
        Self { types: types.clone(), more: None, binder: binder.map(Binder::share) }
    }

    /// A binder with the types of `types`, and otherwise that of `binder`.
    pub(crate) fn both(types: &Arc<dyn Binder>, binder: &dyn Binder) -> Self {
        Self { types: ValueTypes::new(), more: Some(Arc::clone(types)), binder: Some(binder.share()) }
    }
}

impl fmt::Debug for TypedBinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedBinder").field("types", &self.types).finish_non_exhaustive()
    }
}

impl Binder for TypedBinder {
    fn bind(&self, ior: Ior) -> Result<Arc<dyn StdAny + Send + Sync>, CdrError> {
        self.binder.as_ref().ok_or(CdrError::Unbound)?.bind(ior)
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }

    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.binder.as_ref()?.value_factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let type_code = self.types.get(repository_id).cloned();
        let more = self.more.iter().chain(&self.binder);
        type_code.or_else(|| more.into_iter().find_map(|binder| binder.value_type(repository_id)))
    }
}
