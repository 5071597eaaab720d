//! A definition for the time of a request.

use spandrel::SystemException;
use spandrel::types::{Interface, TypeCode};

use crate::core::{Core, Naming};
use crate::describe::Describer;
use crate::errors::not_exist;
use crate::generated::corba::IdlType;
use crate::model::{Model, Number};
use crate::records::records::{
    AttributeBody, Body, ConstantBody, Definition, ElementsBody, FixedBody, InterfaceBody, Member, OperationBody,
    UnionBody, ValueBody, ValueMemberBody,
};

pub(super) type Outcome<T> = Result<T, SystemException>;

/// The servant of one definition. Attributes are those at the time of the request.
///
/// It implements the servant traits of all kinds, so that the code that kinds have in common exists once. The skeleton
/// around it is that of its own kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'r> {
    pub(super) core: &'r Core,
    pub(super) number: Number,
    pub(super) definition: &'r Definition,
}

impl<'r> Object<'r> {
    /// The part of the definition that distinguishes it from others of its kind.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the definition is of another kind, for which the skeletons do not ask.
    pub(super) fn content<C: Content>(&self) -> Outcome<&'r C> {
        C::of(&self.definition.content).ok_or_else(not_exist)
    }

    /// Changes the content. The change is durable when this returns, or nothing was changed. Types without a name that
    /// the content no longer uses are removed.
    pub(super) fn edit<C: Content>(&self, change: impl FnOnce(&mut C, &Model) -> Outcome<()>) -> Outcome<()> {
        self.core.change(|edit| {
            let mut changed = edit.model().get(self.number).ok_or_else(not_exist)?.content.clone();
            change(C::of_mut(&mut changed).ok_or_else(not_exist)?, edit.model())?;
            self.core.replace(edit, self.number, changed)
        })
    }

    /// Assigns a value to a part of the content, as [`edit`](Self::edit) does.
    pub(super) fn assign<C: Content, T>(&self, part: impl FnOnce(&mut C) -> &mut T, value: T) -> Outcome<()> {
        self.edit(|content, _| {
            *part(content) = value;
            Ok(())
        })
    }

    /// Assigns a type to a part of the content, as [`edit`](Self::edit) does.
    pub(super) fn assign_type<C: Content>(
        &self,
        part: impl FnOnce(&mut C) -> &mut Number,
        idl_type: Option<&IdlType>,
    ) -> Outcome<()> {
        self.edit(|content, model| {
            *part(content) = self.core.type_number(model, idl_type)?;
            Ok(())
        })
    }

    /// Adds a definition to this container, and returns a reference to it.
    pub(super) fn create<T: Interface>(
        &self,
        naming: Naming,
        content: impl FnOnce(&Model) -> Outcome<Body>,
    ) -> Outcome<Option<T>> {
        let created = self.core.change(|edit| {
            let content = content(edit.model())?;
            let number = self.core.create(edit, self.number, naming, content)?;
            self.core.reference(edit.model(), number)
        })?;
        Ok(Some(T::from_object(created)))
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Model) -> Outcome<T>) -> Outcome<T> {
        read(&self.core.model.read())
    }

    pub(super) fn type_code(&self, number: Number) -> Outcome<TypeCode> {
        self.describe(|describer| describer.type_code(number))
    }

    pub(super) fn describe<T>(&self, describe: impl FnOnce(&mut Describer<'_>) -> Outcome<T>) -> Outcome<T> {
        self.read(|model| describe(&mut Describer::new(self.core, model)))
    }

    /// The reference to another definition; nil for none.
    pub(super) fn reference<T: Interface>(&self, number: Number) -> Outcome<Option<T>> {
        self.read(|model| self.core.typed(model, number))
    }

    /// The references to other definitions.
    pub(super) fn references<T: Interface>(&self, numbers: &[Number]) -> Outcome<Vec<Option<T>>> {
        self.read(|model| numbers.iter().map(|number| self.core.typed(model, *number)).collect())
    }
}

/// The type of the content of one or several kinds.
pub(super) trait Content: Sized {
    fn of(body: &Body) -> Option<&Self>;
    fn of_mut(body: &mut Body) -> Option<&mut Self>;
}

macro_rules! contents {
    ($($content:ty: $($kind:ident)|+;)*) => {$(
        impl Content for $content {
            fn of(body: &Body) -> Option<&Self> {
                match body {
                    $(Body::$kind(content))|+ => Some(content),
                    _ => None,
                }
            }

            fn of_mut(body: &mut Body) -> Option<&mut Self> {
                match body {
                    $(Body::$kind(content))|+ => Some(content),
                    _ => None,
                }
            }
        }
    )*};
}

contents! {
    ConstantBody: Constant;
    Vec<Member>: Structure | AnException;
    UnionBody: AUnion;
    Vec<String>: Enumeration;
    Number: Alias | ValueBox;
    u32: Primitive | Text | WideText;
    FixedBody: Decimal;
    ElementsBody: ASequence | AnArray;
    AttributeBody: AnAttribute;
    OperationBody: Operation;
    InterfaceBody: AnInterface;
    ValueBody: Value;
    ValueMemberBody: ValueMember;
}
