//! The operations of sequences and arrays (16.2.8, 16.2.9).

use spandrel_cdr::{Any, TcKind, TypeCode};

use super::{DynAny, DynAnyError, dyn_any::Value, graph::Copier, limits::Meter};

/// A sequence: IDL `DynSequence`.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::DynAny;
/// use spandrel::types::{Any, TypeCode};
///
/// let mut primes = DynAny::of_type(&TypeCode::sequence(&TypeCode::LONG, 0)?)?;
/// let elements = [2, 3, 5].map(|prime: i32| Any::new(prime)).into_iter().collect::<Result<Vec<_>, _>>()?;
/// primes.as_sequence()?.set_elements(&elements)?;
/// assert_eq!(primes.to_any()?.extract::<Vec<i32>>()?, [2, 3, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DynSequence<'d>(&'d mut DynAny);

/// One dimension of an array: IDL `DynArray`.
#[derive(Debug)]
pub struct DynArray<'d>(&'d mut DynAny);

impl DynAny {
    /// Views the value as a sequence.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_sequence(&mut self) -> Result<DynSequence<'_>, DynAnyError> {
        if self.kind() == TcKind::Sequence { Ok(DynSequence(self)) } else { Err(self.mismatch("a sequence")) }
    }

    /// Views the value as one dimension of an array.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_array(&mut self) -> Result<DynArray<'_>, DynAnyError> {
        if self.kind() == TcKind::Array { Ok(DynArray(self)) } else { Err(self.mismatch("an array")) }
    }
}

/// Rejects a number of elements that a sequence's bound or an array's length does not permit.
pub(crate) fn check_len(type_code: &TypeCode, len: usize) -> Result<(), DynAnyError> {
    let declared = type_code.length()? as usize;
    let fits = match type_code.kind() {
        TcKind::Array => len == declared,
        _ => declared == 0 || len <= declared,
    };
    if fits { Ok(()) } else { Err(DynAnyError::InvalidValue("the type does not permit this number of elements")) }
}

impl DynSequence<'_> {
    /// The number of elements (`get_length`).
    #[must_use]
    pub fn length(&self) -> u32 {
        u32::try_from(self.0.component_count()).unwrap_or(u32::MAX)
    }

    /// Truncates the sequence, or appends elements of default value. If elements were appended and none was
    /// current, the first of them becomes current; if the current one was removed, none is current.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] beyond the bound; [`DynAnyError::TooLarge`] for more than
    /// [`DynAny::COMPONENTS`].
    pub fn set_length(&mut self, len: u32) -> Result<(), DynAnyError> {
        let resolved = self.0.resolved();
        let len = len as usize;
        check_len(&resolved, len)?;
        let element = resolved.content_type()?;
        let old = self.0.component_count();
        let mut meter = Meter::new(DynAny::COMPONENTS);
        let more = (old..len).map(|_| DynAny::default_of(&element, &mut meter)).collect::<Result<Vec<_>, _>>()?;
        let mut parts = match &mut self.0.value {
            Value::Parts(parts) => std::mem::take(parts),
            _ => Vec::new(),
        };
        parts.truncate(len);
        parts.extend(more);
        let at = self.0.at.or((len > old).then_some(old));
        self.0.set_parts(parts);
        self.0.at = at.filter(|at| *at < len);
        Ok(())
    }
}

/// Operations of both, whose elements have one type.
macro_rules! elements {
    ($($view:ident)*) => {$(
        impl $view<'_> {
            /// The elements, each with its type (`get_elements`).
            ///
            /// # Errors
            /// As [`DynAny::to_any`].
            pub fn elements(&self) -> Result<Vec<Any>, DynAnyError> {
                self.0.components().iter().map(|element| element.to_any_within(self.0)).collect()
            }

            /// Replaces all elements; the first becomes the current one.
            ///
            /// # Errors
            /// [`DynAnyError::TypeMismatch`] if one is of another type; [`DynAnyError::InvalidValue`] for a
            /// number of elements that the type does not permit.
            pub fn set_elements(&mut self, elements: &[Any]) -> Result<(), DynAnyError> {
                let elements = elements.iter().map(DynAny::new).collect::<Result<Vec<_>, _>>()?;
                self.set_elements_as_dyn_any(&elements)
            }

            /// The elements as components (`get_elements_as_dyn_any`).
            #[must_use]
            pub fn elements_as_dyn_any(&self) -> &[DynAny] {
                self.0.components()
            }

            /// Replaces all elements; the first becomes the current one.
            ///
            /// # Errors
            /// As for [`Any`]s.
            pub fn set_elements_as_dyn_any(&mut self, elements: &[DynAny]) -> Result<(), DynAnyError> {
                let resolved = self.0.resolved();
                check_len(&resolved, elements.len())?;
                let type_code = resolved.content_type()?;
                let copier = Copier::of(elements);
                let parts = elements.iter().map(|element| copier.copy_as(element, &type_code));
                self.0.set_parts(parts.collect::<Result<_, _>>()?);
                Ok(())
            }
        }
    )*};
}

elements!(DynSequence DynArray);
