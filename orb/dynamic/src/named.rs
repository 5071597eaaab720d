//! Named values and lists of them: the arguments of requests without generated code (CORBA 3.3 Part 1, 11.5).

use std::borrow::Cow;

use spandrel_cdr::{Any, Encode, TypeCode, Typed};
use spandrel_giop::{CompletionStatus, SystemException};

use crate::fit::derived;

/// The direction of a parameter: the flags `ARG_IN`, `ARG_OUT` and `ARG_INOUT`, with their numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum ArgMode {
    /// From the caller to the object (`in`).
    In = 1,
    /// From the object back to the caller (`out`).
    Out = 2,
    /// To the object and, perhaps changed, back (`inout`).
    InOut = 3,
}

impl ArgMode {
    /// Whether a request carries its value.
    #[must_use]
    pub fn is_sent(self) -> bool {
        self != Self::Out
    }

    /// Whether a reply carries its value.
    #[must_use]
    pub fn is_returned(self) -> bool {
        self != Self::In
    }

    /// The keyword in IDL: `in`, `out` or `inout`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::InOut => "inout",
        }
    }
}

/// An argument: IDL `CORBA::NamedValue`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// The parameter's name, for people; requests do not contain it.
    pub name: Cow<'static, str>,
    /// Its type, to which its value is equivalent or from which it derives.
    pub type_code: TypeCode,
    /// Its value; `None` before it is set or received.
    pub value: Option<Any>,
    /// The direction of the argument (`arg_modes`).
    pub mode: ArgMode,
}

/// Arguments in the order of the parameters: IDL `CORBA::NVList`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NvList {
    items: Vec<NamedValue>,
}

impl NamedValue {
    /// An argument with a value; its type code is that of the value.
    pub fn new(name: impl Into<Cow<'static, str>>, mode: ArgMode, value: Any) -> Self {
        Self { name: name.into(), type_code: value.type_code().clone(), value: Some(value), mode }
    }

    /// A parameter of this type that has no value yet.
    pub fn of_type(name: impl Into<Cow<'static, str>>, mode: ArgMode, type_code: TypeCode) -> Self {
        Self { name: name.into(), type_code, value: None, mode }
    }

    /// The name in error texts: the index, and the name if it has one.
    pub(crate) fn label(&self, index: usize) -> String {
        if self.name.is_empty() { format!("argument {index}") } else { format!("argument {index} (`{}`)", self.name) }
    }
}

impl NvList {
    /// Creates a list without arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an argument (`add_value`).
    pub fn add(&mut self, item: NamedValue) -> &mut Self {
        self.items.push(item);
        self
    }

    /// Adds a sent argument, with a copy of a Rust value.
    ///
    /// # Errors
    /// A value that cannot be encoded.
    pub fn add_in<T: Encode + Typed + ?Sized>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: &T,
    ) -> Result<&mut Self, SystemException> {
        let value = Any::new(value)?;
        Ok(self.add(NamedValue::new(name, ArgMode::In, value)))
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The arguments in order.
    pub fn iter(&self) -> std::slice::Iter<'_, NamedValue> {
        self.items.iter()
    }

    /// The arguments in order, for modification.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, NamedValue> {
        self.items.iter_mut()
    }

    /// The argument at this index, if any.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&NamedValue> {
        self.items.get(index)
    }

    /// The argument with this name, if any.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&NamedValue> {
        self.items.iter().find(|item| item.name == name)
    }

    /// The value of the argument at this index as a Rust value.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown argument, or another type.
    pub fn extract<T: spandrel_cdr::Decode + Typed>(&self, index: usize) -> Result<T, SystemException> {
        let item = self.get(index).ok_or_else(|| no_argument(index, self.len()))?;
        let Some(value) = &item.value else {
            return Err(bad_param().with_detail(|| format!("{} has no value", item.label(index))));
        };
        value
            .extract()
            .map_err(|error| bad_param().with_detail(|| format!("{}: {error}", item.label(index))).with_source(error))
    }

    /// Replaces the value of the argument at this index.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown argument, or another type; a value that cannot be encoded.
    pub fn set<T: Encode + Typed + ?Sized>(&mut self, index: usize, value: &T) -> Result<(), SystemException> {
        self.set_any(index, &Any::new(value)?)
    }

    /// As [`NvList::set`], with a value in an [`Any`], which may be of a type that derives from the
    /// argument's, or one permitted in an abstract interface.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown argument, or another type.
    pub fn set_any(&mut self, index: usize, value: &Any) -> Result<(), SystemException> {
        let len = self.len();
        let item = self.items.get_mut(index).ok_or_else(|| no_argument(index, len))?;
        let derived = derived(value, &item.type_code).and_then(|value| value.retyped(item.type_code.clone()).ok());
        item.value = Some(derived.ok_or_else(|| {
            let (type_code, value_type) = (&item.type_code, value.type_code());
            bad_param().with_detail(|| format!("{} is of type `{type_code}`, not `{value_type}`", item.label(index)))
        })?);
        Ok(())
    }
}

impl FromIterator<NamedValue> for NvList {
    fn from_iter<I: IntoIterator<Item = NamedValue>>(items: I) -> Self {
        Self { items: items.into_iter().collect() }
    }
}

impl IntoIterator for NvList {
    type Item = NamedValue;
    type IntoIter = std::vec::IntoIter<NamedValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'l> IntoIterator for &'l NvList {
    type Item = &'l NamedValue;
    type IntoIter = std::slice::Iter<'l, NamedValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

pub(crate) fn bad_param() -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No)
}

pub(crate) fn no_argument(index: usize, len: usize) -> SystemException {
    bad_param().with_detail(|| format!("the request has no argument {index}, only {len} arguments"))
}
