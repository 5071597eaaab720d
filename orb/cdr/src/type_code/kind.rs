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
    /// `tk_void`: the result type of operations without a result.
    Void = 1, "void";
    /// `tk_short`: a signed integer of 16 bits.
    Short = 2, "short";
    /// `tk_long`: a signed integer of 32 bits.
    Long = 3, "long";
    /// `tk_ushort`: an unsigned integer of 16 bits.
    UShort = 4, "unsigned short";
    /// `tk_ulong`: an unsigned integer of 32 bits.
    ULong = 5, "unsigned long";
    /// `tk_float`: an IEEE 754 number of 32 bits.
    Float = 6, "float";
    /// `tk_double`: an IEEE 754 number of 64 bits.
    Double = 7, "double";
    /// `tk_boolean`: TRUE or FALSE, one octet.
    Boolean = 8, "boolean";
    /// `tk_char`: a character of one octet in the transmission code set.
    Char = 9, "char";
    /// `tk_octet`: eight bits that no code set converts.
    Octet = 10, "octet";
    /// `tk_any`: a type code and a value of its type.
    Any = 11, "any";
    /// `tk_TypeCode`: a type code as a value.
    TypeCode = 12, "CORBA::TypeCode";
    /// `CORBA::Principal`, withdrawn by CORBA 2.3.
    Principal = 13, "CORBA::Principal";
    /// `tk_objref`: a reference to an object with an interface.
    ObjRef = 14, "interface";
    /// `tk_struct`: members in the order of their declaration.
    Struct = 15, "struct";
    /// `tk_union`: a discriminator, and the member that it selects.
    Union = 16, "union";
    /// `tk_enum`: an enumerator, encoded as `unsigned long`.
    Enum = 17, "enum";
    /// `string`, bounded or not.
    String = 18, "string";
    /// `sequence`, bounded or not.
    Sequence = 19, "sequence";
    /// One dimension of an array.
    Array = 20, "array";
    /// `tk_alias`: another name of a type, from `typedef`.
    Alias = 21, "typedef";
    /// `tk_except`: the members of a user exception.
    Except = 22, "exception";
    /// `tk_longlong`: a signed integer of 64 bits.
    LongLong = 23, "long long";
    /// `tk_ulonglong`: an unsigned integer of 64 bits.
    ULongLong = 24, "unsigned long long";
    /// `tk_longdouble`: an IEEE 754 number of 128 bits.
    LongDouble = 25, "long double";
    /// `tk_wchar`: a wide character in the transmission code set.
    WChar = 26, "wchar";
    /// `wstring`, bounded or not.
    WString = 27, "wstring";
    /// `tk_fixed`: a decimal number of at most 31 digits.
    Fixed = 28, "fixed";
    /// `tk_value`: an object passed by value.
    Value = 29, "valuetype";
    /// `tk_value_box`: a value of any type that may be nil and shared.
    ValueBox = 30, "valuetype";
    /// `tk_native`: a type of the programming language; it cannot be sent.
    Native = 31, "native";
    /// `tk_abstract_interface`: either a reference or a value.
    AbstractInterface = 32, "abstract interface";
    /// `tk_local_interface`: an object of this process; it cannot be sent.
    LocalInterface = 33, "local interface";
    /// `tk_component`: a reference to a CORBA component.
    Component = 34, "component";
    /// `tk_home`: a reference to the home of components.
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
