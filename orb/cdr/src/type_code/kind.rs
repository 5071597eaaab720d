//! The kinds of type codes and their numbers (CORBA 3.3 Part 1, 8.11.1; on the wire: Part 2, table 9.2).

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// The kind of a [`TypeCode`](crate::TypeCode): IDL `CORBA::TCKind`.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u32)]
        pub enum TcKind {
            $($(#[$doc])* $name = $number,)*
        }

        impl TcKind {
            /// The kind with this number on the wire.
            pub(crate) fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The IDL keyword of the kind.
            pub(super) fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// No value, the type of an empty `Any`.
    Null = 0, "null";
    /// `void`.
    Void = 1, "void";
    /// `short`.
    Short = 2, "short";
    /// `long`.
    Long = 3, "long";
    /// `unsigned short`.
    UShort = 4, "unsigned short";
    /// `unsigned long`.
    ULong = 5, "unsigned long";
    /// `float`.
    Float = 6, "float";
    /// `double`.
    Double = 7, "double";
    /// `boolean`.
    Boolean = 8, "boolean";
    /// `char`.
    Char = 9, "char";
    /// `octet`.
    Octet = 10, "octet";
    /// `any`.
    Any = 11, "any";
    /// `CORBA::TypeCode`.
    TypeCode = 12, "CORBA::TypeCode";
    /// `CORBA::Principal`, withdrawn by CORBA 2.3.
    Principal = 13, "CORBA::Principal";
    /// An interface.
    ObjRef = 14, "interface";
    /// `struct`.
    Struct = 15, "struct";
    /// `union`.
    Union = 16, "union";
    /// `enum`.
    Enum = 17, "enum";
    /// `string`, bounded or not.
    String = 18, "string";
    /// `sequence`, bounded or not.
    Sequence = 19, "sequence";
    /// One dimension of an array.
    Array = 20, "array";
    /// A `typedef`.
    Alias = 21, "typedef";
    /// `exception`.
    Except = 22, "exception";
    /// `long long`.
    LongLong = 23, "long long";
    /// `unsigned long long`.
    ULongLong = 24, "unsigned long long";
    /// `long double`.
    LongDouble = 25, "long double";
    /// `wchar`.
    WChar = 26, "wchar";
    /// `wstring`, bounded or not.
    WString = 27, "wstring";
    /// `fixed`.
    Fixed = 28, "fixed";
    /// A value type.
    Value = 29, "valuetype";
    /// A boxed value.
    ValueBox = 30, "valuetype";
    /// `native`.
    Native = 31, "native";
    /// An abstract interface.
    AbstractInterface = 32, "abstract interface";
    /// A local interface.
    LocalInterface = 33, "local interface";
    /// A component.
    Component = 34, "component";
    /// A component's home.
    Home = 35, "home";
    /// An event type, which is a value type.
    Event = 36, "eventtype";
    /// A placeholder with a repository id only; see [`TypeCode::recursive`](crate::TypeCode::recursive).
    Recursive = 0xffff_ffff, "recursive";
}

impl TcKind {
    /// Whether type codes of this kind have no parameters.
    pub(crate) fn is_simple(self) -> bool {
        use TcKind::{
            Any, Boolean, Char, Double, Float, Long, LongDouble, LongLong, Null, Octet, Principal, Short, TypeCode,
            ULong, ULongLong, UShort, Void, WChar,
        };
        matches!(
            self,
            Null | Void
                | Short
                | Long
                | UShort
                | ULong
                | Float
                | Double
                | Boolean
                | Char
                | Octet
                | Any
                | TypeCode
                | Principal
                | LongLong
                | ULongLong
                | LongDouble
                | WChar
        )
    }

    /// Whether it is an interface of any sort or a native type: an id and a name only.
    pub(crate) fn is_bare(self) -> bool {
        matches!(
            self,
            Self::ObjRef | Self::AbstractInterface | Self::LocalInterface | Self::Component | Self::Home | Self::Native
        )
    }

    /// Whether it is a value type or an event type.
    pub(crate) fn is_value(self) -> bool {
        matches!(self, Self::Value | Self::Event)
    }

    /// Whether a type of this kind may contain itself, and so be the target of a recursive reference.
    pub(crate) fn can_recur(self) -> bool {
        self.is_value() || matches!(self, Self::Struct | Self::Union | Self::Except | Self::ValueBox)
    }

    /// Whether type codes of this kind carry a repository id and a name.
    pub(crate) fn is_named(self) -> bool {
        self.is_bare() || self.can_recur() || matches!(self, Self::Enum | Self::Alias)
    }
}

impl fmt::Display for TcKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
