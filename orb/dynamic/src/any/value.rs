//! The operations of values of value types (16.2.10 to 16.2.12), which may be null.

use spandrel_cdr::{Any, TcKind, TypeCode};

use super::{
    DynAny, DynAnyError, DynNamePair, NameValuePair,
    dyn_any::{Link, State, Value},
    limits::Meter,
    members::members_of,
    structure::{any_pairs, current, from_any_pairs, pairs, set_pairs},
};

/// A value of a value type: IDL `DynValue`. Its components are its state, inherited members first.
#[derive(Debug)]
pub struct DynValue<'d>(&'d mut DynAny);

/// A boxed value: IDL `DynValueBox`. Its component is the content of the box.
#[derive(Debug)]
pub struct DynValueBox<'d>(&'d mut DynAny);

impl DynAny {
    /// Views the value as a value type's.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_value(&mut self) -> Result<DynValue<'_>, DynAnyError> {
        match self.actual().kind() {
            TcKind::Value | TcKind::Event => Ok(DynValue(self)),
            _ => Err(self.mismatch("a value type")),
        }
    }

    /// Views the value as that of a boxed type, to reach the value inside.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_value_box(&mut self) -> Result<DynValueBox<'_>, DynAnyError> {
        if self.actual().kind() == TcKind::ValueBox { Ok(DynValueBox(self)) } else { Err(self.mismatch("a value box")) }
    }
}

/// Operations of both, which may be null (16.2.10, `DynValueCommon`).
macro_rules! common {
    ($($view:ident)*) => {$(
        impl $view<'_> {
            /// Whether there is no value: null is a state of its own, in which the value has no components.
            #[must_use]
            pub fn is_null(&self) -> bool {
                matches!(self.0.value, Value::Nothing)
            }

            /// Drops the components: the value becomes null.
            pub fn set_to_null(&mut self) {
                *self.0 = DynAny::made_of(self.0.type_code(), Value::Nothing);
            }

            /// The type of the value: the declared one, or a derived one.
            #[must_use]
            pub fn value_type(&self) -> TypeCode {
                self.0.actual()
            }

            /// Whether it repeats a value that has its components elsewhere; [`DynAny::original_of`] finds
            /// them.
            #[must_use]
            pub fn is_repeated(&self) -> bool {
                matches!(self.0.value, Value::Link(_))
            }

            /// A repetition of this value, for another position in the same tree, or inside the value itself.
            ///
            /// # Errors
            /// [`DynAnyError::InvalidValue`] for null.
            pub fn repeat(&self) -> Result<DynAny, DynAnyError> {
                match &self.0.value {
                    Value::State(State { id, type_code, .. }) | Value::Link(Link { id, type_code }) => {
                        let link = Link { id: *id, type_code: type_code.clone() };
                        Ok(DynAny::made_of(self.0.type_code(), Value::Link(link)))
                    }
                    _ => Err(DynAnyError::InvalidValue("the value is null")),
                }
            }

            fn check_not_null(&self) -> Result<(), DynAnyError> {
                if self.is_null() { Err(DynAnyError::InvalidValue("the value is null")) } else { self.check_not_repeated() }
            }

            fn check_not_repeated(&self) -> Result<(), DynAnyError> {
                if self.is_repeated() { Err(DynAnyError::InvalidValue("the value is a repetition without its own state")) } else { Ok(()) }
            }
        }
    )*};
}

common!(DynValue DynValueBox);

impl DynValue<'_> {
    /// Gives a null value a state of default values; another one is unchanged.
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`] for members without defaults; [`DynAnyError::TooLarge`].
    pub fn set_to_value(&mut self) -> Result<(), DynAnyError> {
        if self.is_null() {
            let mut meter = Meter::new(DynAny::COMPONENTS);
            let members = members_of(&self.0.actual())?;
            let state = members.iter().map(|(_, type_code)| DynAny::default_of(type_code, &mut meter));
            let state = state.collect::<Result<_, _>>()?;
            self.0.set_parts(state);
        }
        Ok(())
    }

    /// The name of the member at the current position.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for a type without members; [`DynAnyError::InvalidValue`] if none is
    /// current.
    pub fn current_member_name(&self) -> Result<String, DynAnyError> {
        current(self.0).map(|(name, _)| name)
    }

    /// The kind of the member at the current position.
    ///
    /// # Errors
    /// As [`DynValue::current_member_name`].
    pub fn current_member_kind(&self) -> Result<TcKind, DynAnyError> {
        current(self.0).map(|(_, type_code)| type_code.kind())
    }

    /// All state members in order, each with its name and type (`get_members`).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for null; those of [`DynAny::to_any`].
    pub fn members(&self) -> Result<Vec<NameValuePair>, DynAnyError> {
        self.check_not_null()?;
        any_pairs(self.0)
    }

    /// Replaces all members; null becomes a value. The first member becomes the current one. Names may be
    /// omitted.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another name or type; [`DynAnyError::InvalidValue`] for another
    /// number of members.
    pub fn set_members(&mut self, members: &[NameValuePair]) -> Result<(), DynAnyError> {
        self.check_not_repeated()?;
        set_pairs(self.0, &from_any_pairs(members)?)
    }

    /// All members, as components (`get_members_as_dyn_any`).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for null.
    pub fn members_as_dyn_any(&self) -> Result<Vec<DynNamePair>, DynAnyError> {
        self.check_not_null()?;
        pairs(self.0)
    }

    /// Replaces all members; as [`DynValue::set_members`].
    ///
    /// # Errors
    /// As [`DynValue::set_members`].
    pub fn set_members_as_dyn_any(&mut self, members: &[DynNamePair]) -> Result<(), DynAnyError> {
        self.check_not_repeated()?;
        set_pairs(self.0, members)
    }
}

impl DynValueBox<'_> {
    /// Puts a default value into an empty box; a full one is unchanged.
    ///
    /// # Errors
    /// As [`DynValue::set_to_value`].
    pub fn set_to_value(&mut self) -> Result<(), DynAnyError> {
        if self.is_null() {
            let content = DynAny::of_type(&self.0.actual().content_type()?)?;
            self.0.set_parts(vec![content]);
        }
        Ok(())
    }

    /// The content of the box (`get_boxed_value`).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for null; those of [`DynAny::to_any`].
    pub fn boxed_value(&self) -> Result<Any, DynAnyError> {
        self.boxed_value_as_dyn_any()?.to_any_within(self.0)
    }

    /// Replaces the content of the box; null becomes a value.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn set_boxed_value(&mut self, value: &Any) -> Result<(), DynAnyError> {
        self.set_boxed_value_as_dyn_any(&DynAny::new(value)?)
    }

    /// The content of the box as a component (`get_boxed_value_as_dyn_any`).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for null.
    pub fn boxed_value_as_dyn_any(&self) -> Result<&DynAny, DynAnyError> {
        self.check_not_null()?;
        self.0.components().first().ok_or_else(|| self.0.mismatch("a boxed value"))
    }

    /// Replaces the content of the box; null becomes a value.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn set_boxed_value_as_dyn_any(&mut self, value: &DynAny) -> Result<(), DynAnyError> {
        self.check_not_repeated()?;
        let content = value.retyped(&self.0.actual().content_type()?)?;
        self.0.set_parts(vec![content]);
        Ok(())
    }
}
