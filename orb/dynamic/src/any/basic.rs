//! Insertion and extraction of values of basic types (16.2.3.8).
//!
//! The operations act on the value itself if its type has no components, and otherwise on its current
//! component.

use spandrel_cdr::{Any, Char, Ior, LongDouble, TcKind, TypeCode};

use super::{
    DynAny, DynAnyError,
    dyn_any::{Value, has_components},
    error::{NO_CURRENT, mismatch},
    leaf::Leaf,
    sequence::check_len,
};

impl DynAny {
    /// The target of insertion and extraction.
    fn slot(&self) -> Result<&Self, DynAnyError> {
        if !self.is_constructed() {
            return Ok(self);
        }
        let at = self.at.ok_or(NO_CURRENT)?;
        let component = self.components().get(at).ok_or(NO_CURRENT)?;
        if component.is_constructed() { Err(component.mismatch("a basic type")) } else { Ok(component) }
    }

    fn leaf(&self) -> Result<&Leaf, DynAnyError> {
        let slot = self.slot()?;
        match &slot.value {
            Value::Leaf(leaf) => Ok(leaf),
            _ => Err(slot.mismatch("a basic type")),
        }
    }

    /// Stores `leaf` in the target, if `fits` accepts the present value and its type.
    pub(crate) fn put(
        &mut self,
        leaf: Leaf,
        fits: impl FnOnce(&Leaf, &TypeCode) -> Result<(), DynAnyError>,
    ) -> Result<(), DynAnyError> {
        let slot = self.slot()?;
        fits(self.leaf()?, &slot.resolved())?;
        if self.kind() == TcKind::Union && self.at == Some(0) {
            // The union's member depends on it.
            let discriminator = Self::made_of(slot.type_code(), Value::Leaf(leaf));
            let mut union = self.as_union()?;
            union.set_discriminator(&discriminator)?;
            self.at = Some(0);
            return Ok(());
        }
        match self.at.filter(|_| self.is_constructed()) {
            Some(at) => self.components_mut()[at].value = Value::Leaf(leaf),
            None => self.value = Value::Leaf(leaf),
        }
        Ok(())
    }
}

macro_rules! basic {
    ($($variant:ident: $insert:ident, $get:ident, $type:ty, $idl:literal;)*) => {
        /// Values of basic types. The error is [`DynAnyError::TypeMismatch`] for a value of another type, or
        /// for a component with components of its own. It is [`DynAnyError::InvalidValue`] if there are
        /// components, and none is the current one.
        impl DynAny {
            $(
                #[doc = concat!("Inserts a value of IDL type `", $idl, "`.")]
                ///
                /// # Errors
                /// As for all basic types; strings beyond their bound are [`DynAnyError::InvalidValue`].
                pub fn $insert(&mut self, value: $type) -> Result<(), DynAnyError> {
                    self.put(Leaf::$variant(value), |old, type_code| match old {
                        Leaf::$variant(_) => Ok(()),
                        _ => Err(mismatch(concat!("a value of type `", $idl, "`"), type_code)),
                    })
                }

                #[doc = concat!("Gets a value of IDL type `", $idl, "`.")]
                ///
                /// # Errors
                /// As for all basic types.
                pub fn $get(&self) -> Result<$type, DynAnyError> {
                    match self.leaf()? {
                        Leaf::$variant(value) => Ok(value.clone()),
                        _ => Err(self.slot()?.mismatch(concat!("a value of type `", $idl, "`"))),
                    }
                }
            )*
        }
    };
}

basic! {
    Boolean: insert_boolean, boolean, bool, "boolean";
    Octet: insert_octet, octet, u8, "octet";
    Char: insert_char, char, Char, "char";
    WChar: insert_wchar, wchar, char, "wchar";
    Short: insert_short, short, i16, "short";
    UShort: insert_ushort, ushort, u16, "unsigned short";
    Long: insert_long, long, i32, "long";
    ULong: insert_ulong, ulong, u32, "unsigned long";
    LongLong: insert_longlong, longlong, i64, "long long";
    ULongLong: insert_ulonglong, ulonglong, u64, "unsigned long long";
    Float: insert_float, float, f32, "float";
    Double: insert_double, double, f64, "double";
    LongDouble: insert_longdouble, longdouble, LongDouble, "long double";
    Any: insert_any, any, Any, "any";
    TypeCode: insert_typecode, typecode, TypeCode, "CORBA::TypeCode";
}

/// Texts, references and dynamic values in an `any`; with the errors of the other basic types.
impl DynAny {
    /// Replaces the `string` at the current position, or the value itself.
    ///
    /// # Errors
    /// As for all basic types; [`DynAnyError::InvalidValue`] beyond the type's bound.
    pub fn insert_string(&mut self, value: &str) -> Result<(), DynAnyError> {
        self.put(Leaf::String(value.to_owned()), |old, type_code| match old {
            Leaf::String(_) => check_bound(value, type_code),
            _ => Err(mismatch("a string", type_code)),
        })
    }

    /// The `string` at the current position, or the value itself.
    ///
    /// # Errors
    /// As for all basic types.
    pub fn string(&self) -> Result<&str, DynAnyError> {
        match self.leaf()? {
            Leaf::String(value) => Ok(value),
            _ => Err(self.slot()?.mismatch("a string")),
        }
    }

    /// Replaces the `wstring` at the current position, or the value itself.
    ///
    /// # Errors
    /// As for all basic types; [`DynAnyError::InvalidValue`] beyond the type's bound.
    pub fn insert_wstring(&mut self, value: &str) -> Result<(), DynAnyError> {
        self.put(Leaf::WString(value.into()), |old, type_code| match old {
            Leaf::WString(_) => check_bound(value, type_code),
            _ => Err(mismatch("a wide string", type_code)),
        })
    }

    /// The `wstring` at the current position, or the value itself.
    ///
    /// # Errors
    /// As for all basic types.
    pub fn wstring(&self) -> Result<&str, DynAnyError> {
        match self.leaf()? {
            Leaf::WString(value) => Ok(value),
            _ => Err(self.slot()?.mismatch("a wide string")),
        }
    }

    /// Inserts an object reference; the default one is nil.
    ///
    /// # Errors
    /// As for all basic types.
    pub fn insert_reference(&mut self, value: &Ior) -> Result<(), DynAnyError> {
        self.put(Leaf::Reference(value.clone()), |old, type_code| match old {
            Leaf::Reference(_) => Ok(()),
            _ => Err(mismatch("an object reference", type_code)),
        })
    }

    /// The object reference at the current position, or the value itself.
    ///
    /// # Errors
    /// As for all basic types.
    pub fn reference(&self) -> Result<&Ior, DynAnyError> {
        match self.leaf()? {
            Leaf::Reference(value) => Ok(value),
            _ => Err(self.slot()?.mismatch("an object reference")),
        }
    }

    /// Replaces the content of the `any` at the current position, or of the value itself.
    ///
    /// # Errors
    /// As for all basic types; a value that cannot be encoded.
    pub fn insert_dyn_any(&mut self, value: &Self) -> Result<(), DynAnyError> {
        self.insert_any(value.to_any()?)
    }

    /// The content of the `any` at the current position, or of the value itself, as components.
    ///
    /// # Errors
    /// As for all basic types; those of [`DynAny::new`].
    pub fn dyn_any(&self) -> Result<Self, DynAnyError> {
        Self::new(&self.any()?)
    }
}

fn check_bound(text: &str, type_code: &TypeCode) -> Result<(), DynAnyError> {
    let bound = type_code.length()? as usize;
    if bound > 0 && text.chars().count() > bound {
        return Err(DynAnyError::InvalidValue("the string exceeds the bound of its type"));
    }
    Ok(())
}

/// The target of the operations for sequences of a basic type: the sequence or array itself, or the current
/// component.
impl DynAny {
    fn many(&self) -> Result<&Self, DynAnyError> {
        let is_many = |it: &&Self| matches!(it.kind(), TcKind::Sequence | TcKind::Array);
        if let Some(own) = Some(self).filter(is_many)
            && own.resolved().content_type().is_ok_and(|type_code| !has_components(type_code.without_aliases().kind()))
        {
            return Ok(own);
        }
        if !self.is_constructed() {
            return Err(self.mismatch("a sequence or an array"));
        }
        let at = self.at.ok_or(NO_CURRENT)?;
        let component = self.components().get(at).ok_or(NO_CURRENT)?;
        if is_many(&component) { Ok(component) } else { Err(component.mismatch("a sequence or an array")) }
    }

    fn put_many(&mut self, leaves: Vec<Leaf>, kind: TcKind) -> Result<(), DynAnyError> {
        let many = self.many()?;
        let is_own = std::ptr::eq(many, self);
        let resolved = many.resolved();
        let element = resolved.content_type()?;
        if element.without_aliases().kind() != kind {
            return Err(mismatch(format!("elements of the kind {kind}"), &resolved));
        }
        check_len(&resolved, leaves.len())?;
        let parts = leaves.into_iter().map(|leaf| Self::made_of(&element, Value::Leaf(leaf))).collect();
        let at = self.at;
        match at.filter(|_| !is_own) {
            Some(at) => self.components_mut()[at].set_parts(parts),
            None => self.set_parts(parts),
        }
        Ok(())
    }
}

macro_rules! many {
    ($($variant:ident: $insert:ident, $get:ident, $type:ty, $idl:literal;)*) => {
        /// Whole sequences and arrays of basic types. The error is [`DynAnyError::TypeMismatch`] if neither
        /// the value nor its current component has this type, and [`DynAnyError::InvalidValue`] for a number
        /// of elements that the type does not permit.
        impl DynAny {
            $(
                #[doc = concat!("Inserts all elements of a sequence or array of `", $idl, "`.")]
                ///
                /// # Errors
                /// As for all sequences of basic types.
                pub fn $insert(&mut self, values: &[$type]) -> Result<(), DynAnyError> {
                    self.put_many(values.iter().copied().map(Leaf::$variant).collect(), TcKind::$variant)
                }

                #[doc = concat!("Gets all elements of a sequence or array of `", $idl, "`.")]
                ///
                /// # Errors
                /// As for all sequences of basic types.
                pub fn $get(&self) -> Result<Vec<$type>, DynAnyError> {
                    let many = self.many()?;
                    if many.resolved().content_type()?.without_aliases().kind() != TcKind::$variant {
                        return Err(many.mismatch(concat!("elements of type `", $idl, "`")));
                    }
                    let element = |part: &DynAny| match part.value {
                        Value::Leaf(Leaf::$variant(value)) => Ok(value),
                        _ => Err(part.mismatch(concat!("a value of type `", $idl, "`"))),
                    };
                    many.components().iter().map(element).collect()
                }
            )*
        }
    };
}

many! {
    Boolean: insert_boolean_seq, boolean_seq, bool, "boolean";
    Octet: insert_octet_seq, octet_seq, u8, "octet";
    Char: insert_char_seq, char_seq, Char, "char";
    WChar: insert_wchar_seq, wchar_seq, char, "wchar";
    Short: insert_short_seq, short_seq, i16, "short";
    UShort: insert_ushort_seq, ushort_seq, u16, "unsigned short";
    Long: insert_long_seq, long_seq, i32, "long";
    ULong: insert_ulong_seq, ulong_seq, u32, "unsigned long";
    LongLong: insert_longlong_seq, longlong_seq, i64, "long long";
    ULongLong: insert_ulonglong_seq, ulonglong_seq, u64, "unsigned long long";
    Float: insert_float_seq, float_seq, f32, "float";
    Double: insert_double_seq, double_seq, f64, "double";
    LongDouble: insert_longdouble_seq, longdouble_seq, LongDouble, "long double";
}
