//! The type codes of Rust types.

use crate::{
    AbstractRef, BoundedString, BoundedVec, BoundedWString, Char, Fixed, Ior, LongDouble, Reference, TypeCode,
    TypeCodeError, ValueBase, ValueRef, WString, Wide,
};

/// The Rust form of an IDL type, with its type code.
///
/// Several IDL types may have the same Rust form: a typedef is a type alias in Rust, and its type code has a
/// function of its own in generated code.
pub trait Typed {
    /// Returns the type code of the IDL type that generated code uses this Rust type for.
    fn type_code() -> TypeCode;
}

macro_rules! simple {
    ($($type:ty => $constant:ident;)*) => {
        $(impl Typed for $type {
            #[inline]
            fn type_code() -> TypeCode {
                TypeCode::$constant
            }
        })*
    };
}

simple! {
    i16 => SHORT;
    u16 => USHORT;
    i32 => LONG;
    u32 => ULONG;
    i64 => LONGLONG;
    u64 => ULONGLONG;
    f32 => FLOAT;
    f64 => DOUBLE;
    LongDouble => LONGDOUBLE;
    bool => BOOLEAN;
    u8 => OCTET;
    Char => CHAR;
    str => STRING;
    String => STRING;
    char => WCHAR;
    WString => WSTRING;
    Wide<'_> => WSTRING;
    TypeCode => TYPE_CODE;
}

/// The plain reference of any object.
impl Typed for Ior {
    fn type_code() -> TypeCode {
        TypeCode::object()
    }
}

/// References have the type code of their interface; nil included.
impl<R: Reference + Typed> Typed for Option<R> {
    fn type_code() -> TypeCode {
        R::type_code()
    }
}

impl<T: Typed + ?Sized> Typed for Option<ValueRef<T>> {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

impl Typed for dyn ValueBase {
    fn type_code() -> TypeCode {
        TypeCode::value_base()
    }
}

impl<R: Reference + Typed, V: ?Sized> Typed for Option<AbstractRef<R, V>> {
    fn type_code() -> TypeCode {
        R::type_code()
    }
}

impl<T: Typed + ?Sized> Typed for &T {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

impl<const N: usize> Typed for BoundedString<N> {
    fn type_code() -> TypeCode {
        TypeCode::string(bound(N))
    }
}

impl<const N: usize> Typed for BoundedWString<N> {
    fn type_code() -> TypeCode {
        TypeCode::wstring(bound(N))
    }
}

impl<const D: u16, const S: u16> Typed for Fixed<D, S> {
    fn type_code() -> TypeCode {
        let scale = i16::try_from(S).expect("no more than the digits");
        TypeCode::fixed(D, scale).expect("digits and scale that the Rust type allows")
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn type_code() -> TypeCode {
        valid(TypeCode::sequence(&T::type_code(), 0))
    }
}

impl<T: Typed> Typed for [T] {
    fn type_code() -> TypeCode {
        Vec::<T>::type_code()
    }
}

impl<T: Typed, const N: usize> Typed for BoundedVec<T, N> {
    fn type_code() -> TypeCode {
        valid(TypeCode::sequence(&T::type_code(), bound(N)))
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn type_code() -> TypeCode {
        valid(TypeCode::array(&T::type_code(), bound(N)))
    }
}

fn bound(bound: usize) -> u32 {
    u32::try_from(bound).expect("bounds and dimensions of IDL are `unsigned long`")
}

fn valid(valid: Result<TypeCode, TypeCodeError>) -> TypeCode {
    valid.expect("elements of a type that values can be of, and at least one in an array")
}
