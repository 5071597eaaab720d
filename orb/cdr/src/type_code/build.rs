//! Creation of type codes: the operations `create_…_tc` of IDL `CORBA::ORB` (CORBA 3.3 Part 1, 8.11.3), with
//! their checks.

use super::{
    Label, Leaf, Repr, TcKind, TypeCode, TypeCodeError, ValueModifier, Visibility,
    composer::Composer,
    node::{Mark, Member, Node, Text},
    validity::{check_member_type, compose_members, label_range, named},
};

/// Maximum depth of nested types, without recursion: recursive functions walk them.
const MAX_HEIGHT: u16 = 256;

/// Type codes without parameters.
impl TypeCode {
    /// `null`, the type of an empty `any`.
    pub const NULL: Self = Self::simple(TcKind::Null);
    /// The type code of `void`, the result type of operations without a result (`tk_void`).
    pub const VOID: Self = Self::simple(TcKind::Void);
    /// The type code of `short` (`tk_short`).
    pub const SHORT: Self = Self::simple(TcKind::Short);
    /// The type code of `long` (`tk_long`).
    pub const LONG: Self = Self::simple(TcKind::Long);
    /// The type code of `unsigned short` (`tk_ushort`).
    pub const USHORT: Self = Self::simple(TcKind::UShort);
    /// The type code of `unsigned long` (`tk_ulong`).
    pub const ULONG: Self = Self::simple(TcKind::ULong);
    /// The type code of `float` (`tk_float`).
    pub const FLOAT: Self = Self::simple(TcKind::Float);
    /// The type code of `double` (`tk_double`).
    pub const DOUBLE: Self = Self::simple(TcKind::Double);
    /// The type code of `boolean` (`tk_boolean`).
    pub const BOOLEAN: Self = Self::simple(TcKind::Boolean);
    /// The type code of `char` (`tk_char`).
    pub const CHAR: Self = Self::simple(TcKind::Char);
    /// The type code of `octet` (`tk_octet`).
    pub const OCTET: Self = Self::simple(TcKind::Octet);
    /// The type code of `any` (`tk_any`).
    pub const ANY: Self = Self::simple(TcKind::Any);
    /// The type code of `CORBA::TypeCode` itself (`tk_TypeCode`).
    pub const TYPE_CODE: Self = Self::simple(TcKind::TypeCode);
    /// The type code of the deprecated `CORBA::Principal` (`tk_Principal`).
    pub const PRINCIPAL: Self = Self::simple(TcKind::Principal);
    /// The type code of `long long` (`tk_longlong`).
    pub const LONGLONG: Self = Self::simple(TcKind::LongLong);
    /// The type code of `unsigned long long` (`tk_ulonglong`).
    pub const ULONGLONG: Self = Self::simple(TcKind::ULongLong);
    /// The type code of `long double` (`tk_longdouble`).
    pub const LONGDOUBLE: Self = Self::simple(TcKind::LongDouble);
    /// The type code of `wchar` (`tk_wchar`).
    pub const WCHAR: Self = Self::simple(TcKind::WChar);
    /// The type code of `string` without a bound.
    pub const STRING: Self = Self::string(0);
    /// The type code of `wstring` without a bound.
    pub const WSTRING: Self = Self::wstring(0);

    pub(super) const fn simple(kind: TcKind) -> Self {
        Self(Repr::Leaf(Leaf::Simple(kind)))
    }

    /// The type code of `string<bound>`; 0 is no bound.
    #[must_use]
    pub const fn string(bound: u32) -> Self {
        Self(Repr::Leaf(Leaf::String(bound)))
    }

    /// The type code of `wstring<bound>`; 0 is no bound.
    #[must_use]
    pub const fn wstring(bound: u32) -> Self {
        Self(Repr::Leaf(Leaf::WString(bound)))
    }

    /// The type code of `fixed<digits, scale>`.
    ///
    /// # Errors
    /// Not 1 to 31 digits, or not 0 to `digits` of them after the point.
    pub fn fixed(digits: u16, scale: i16) -> Result<Self, TypeCodeError> {
        let sound = (1..=31).contains(&digits) && u16::try_from(scale).is_ok_and(|scale| scale <= digits);
        if !sound {
            return Err(TypeCodeError::BadParam("a fixed has 1 to 31 digits, at most all of them after the point"));
        }
        Ok(Self(Repr::Leaf(Leaf::Fixed { digits, scale })))
    }
}

/// Type codes with parameters.
///
/// All reject types that IDL cannot express. Ids have the form `format:text` ([`TypeCodeError::BadParam`],
/// minor code 16); names are identifiers, or empty (15). Members have distinct names (17) and types that
/// values can have ([`TypeCodeError::BadTypeCode`], minor code 2). Types nest at most 256 levels.
impl TypeCode {
    /// The type code of `sequence<content, bound>`; 0 is no bound.
    ///
    /// # Errors
    /// A `content` type without values.
    pub fn sequence(content: &Self, bound: u32) -> Result<Self, TypeCodeError> {
        Self::around(TcKind::Sequence, Text::default(), Text::default(), content, bound)
    }

    /// The type code of an array; one of several dimensions is an array of arrays.
    ///
    /// # Errors
    /// A `content` type without values; no elements.
    pub fn array(content: &Self, length: u32) -> Result<Self, TypeCodeError> {
        if length == 0 {
            return Err(TypeCodeError::BadParam("an array has at least one element"));
        }
        Self::around(TcKind::Array, Text::default(), Text::default(), content, length)
    }

    /// The type code of a typedef for `content`.
    ///
    /// # Errors
    /// An invalid id or name; a `content` type without values.
    pub fn alias(id: impl Into<Text>, name: impl Into<Text>, content: &Self) -> Result<Self, TypeCodeError> {
        Self::around(TcKind::Alias, id.into(), name.into(), content, 0)
    }

    /// The type code of a boxed value (`valuetype name content`).
    ///
    /// # Errors
    /// An invalid id or name; a `content` type without values.
    pub fn value_box(id: impl Into<Text>, name: impl Into<Text>, content: &Self) -> Result<Self, TypeCodeError> {
        Self::around(TcKind::ValueBox, id.into(), name.into(), content, 0)
    }

    fn around(kind: TcKind, id: Text, name: Text, content: &Self, number: u32) -> Result<Self, TypeCodeError> {
        check_member_type(content)?;
        let mut node = named(kind, id, name)?;
        let mut composer = Composer::default();
        node.content = Some(composer.child(content));
        node.number = i64::from(number);
        finish(composer, node)
    }

    /// The type code of a struct with these members, in order.
    ///
    /// # Errors
    /// An invalid id, name or member.
    pub fn structure<N: Clone + Into<Text>>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        members: &[(N, Self)],
    ) -> Result<Self, TypeCodeError> {
        let members = members.iter().map(|(name, type_code)| (name.clone().into(), type_code, Mark::Plain));
        Self::with_members(TcKind::Struct, id.into(), name.into(), &mut members.into_iter())
    }

    /// The type code of an exception with these members, in order.
    ///
    /// # Errors
    /// An invalid id, name or member.
    pub fn exception<N: Clone + Into<Text>>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        members: &[(N, Self)],
    ) -> Result<Self, TypeCodeError> {
        let members = members.iter().map(|(name, type_code)| (name.clone().into(), type_code, Mark::Plain));
        Self::with_members(TcKind::Except, id.into(), name.into(), &mut members.into_iter())
    }

    fn with_members(
        kind: TcKind,
        id: Text,
        name: Text,
        members: &mut dyn Iterator<Item = (Text, &Self, Mark)>,
    ) -> Result<Self, TypeCodeError> {
        let mut node = named(kind, id, name)?;
        let mut composer = Composer::default();
        node.members = compose_members(&mut composer, members)?;
        finish(composer, node)
    }

    /// The type code of a union. A member with several labels is listed once for each of them, consecutively.
    ///
    /// # Errors
    /// An invalid id, name or member; a discriminator that is no integer, character, boolean or enum
    /// (BAD_PARAM, minor code 20); a label outside the discriminator's range (19) or used twice (18).
    pub fn union<N: Clone + Into<Text>>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        discriminator: &Self,
        members: &[(Label, N, Self)],
    ) -> Result<Self, TypeCodeError> {
        let marked =
            members.iter().map(|(label, name, type_code)| (name.clone().into(), type_code, Mark::Label(*label)));
        let mut node = named(TcKind::Union, id.into(), name.into())?;
        let mut composer = Composer::default();
        let range = label_range(discriminator)
            .ok_or(TypeCodeError::BadParam("a union cannot have a discriminator of this type"))?;
        node.content = Some(composer.child(discriminator));
        node.members = compose_members(&mut composer, &mut marked.into_iter())?;
        let labels = || node.members.iter().map(Member::label);
        if labels().any(|label| matches!(label, Label::Value(value) if !range.contains(&value))) {
            return Err(TypeCodeError::BadParam("a union has a label that its discriminator cannot have"));
        }
        let twice = labels().filter(|label| *label == Label::Default).count() > 1;
        node.number =
            labels().position(|label| label == Label::Default).map_or(-1, |nth| i64::try_from(nth).unwrap_or(-1));
        if !node.sort_labels() || twice {
            return Err(TypeCodeError::BadParam("a union has a label twice"));
        }
        finish(composer, node)
    }

    /// The type code of an enum with these enumerators, numbered from 0.
    ///
    /// # Errors
    /// An invalid id, name or enumerator.
    pub fn enumeration<N: Clone + Into<Text>>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        enumerators: &[N],
    ) -> Result<Self, TypeCodeError> {
        static NO_TYPE: TypeCode = TypeCode::ULONG;
        let enumerators = enumerators.iter().map(|name| (name.clone().into(), &NO_TYPE, Mark::Plain));
        Self::with_members(TcKind::Enum, id.into(), name.into(), &mut enumerators.into_iter())
    }

    /// The type code of a value type; `base` is the base from which it inherits state.
    ///
    /// # Errors
    /// An invalid id, name or member; a base that is not a value type.
    pub fn value<N: Clone + Into<Text>>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        modifier: ValueModifier,
        base: Option<&Self>,
        members: &[(N, Self, Visibility)],
    ) -> Result<Self, TypeCodeError> {
        let marked =
            members.iter().map(|(name, type_code, sees)| (name.clone().into(), type_code, Mark::Visibility(*sees)));
        let mut node = named(TcKind::Value, id.into(), name.into())?;
        let mut composer = Composer::default();
        if base.is_some_and(|base| {
            !matches!(base.view().resolved().kind(), TcKind::Value | TcKind::Event | TcKind::Recursive)
        }) {
            return Err(TypeCodeError::BadTypeCode("a value type inherits state from value types only"));
        }
        node.content = base.map(|base| composer.child(base));
        node.number = i64::from(modifier as i16);
        node.members = compose_members(&mut composer, &mut marked.into_iter())?;
        finish(composer, node)
    }

    fn bare(kind: TcKind, id: Text, name: Text) -> Result<Self, TypeCodeError> {
        finish(Composer::default(), named(kind, id, name)?)
    }

    /// The type code of references to objects of an interface.
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn object_reference(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::ObjRef, id.into(), name.into())
    }

    /// The type code of references to objects of any interface: IDL `Object`.
    #[must_use]
    pub fn object() -> Self {
        static OBJECT: super::Defining = super::Defining::new();
        OBJECT.type_code(|| Self::object_reference("IDL:omg.org/CORBA/Object:1.0", "Object"))
    }

    /// The type code of values of any value type: IDL `ValueBase`.
    #[must_use]
    pub fn value_base() -> Self {
        static VALUE_BASE: super::Defining = super::Defining::new();
        let members: [(&str, Self, Visibility); 0] = [];
        VALUE_BASE.type_code(|| {
            Self::value("IDL:omg.org/CORBA/ValueBase:1.0", "ValueBase", ValueModifier::None, None, &members)
        })
    }

    /// The type code of objects of any interface or values of any type: IDL `AbstractBase`.
    #[must_use]
    pub fn abstract_base() -> Self {
        static ABSTRACT_BASE: super::Defining = super::Defining::new();
        ABSTRACT_BASE.type_code(|| Self::abstract_interface("IDL:omg.org/CORBA/AbstractBase:1.0", "AbstractBase"))
    }

    /// The type code of an abstract interface: references or values.
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn abstract_interface(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::AbstractInterface, id.into(), name.into())
    }

    /// The type code of a local interface, whose objects cannot be sent.
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn local_interface(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::LocalInterface, id.into(), name.into())
    }

    /// The type code of references to components (CCM).
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn component(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::Component, id.into(), name.into())
    }

    /// The type code of references to a component's home (CCM).
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn home(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::Home, id.into(), name.into())
    }

    /// The type code of a native type, whose values cannot be sent.
    ///
    /// # Errors
    /// An invalid id or name.
    pub fn native(id: impl Into<Text>, name: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::Native, id.into(), name.into())
    }

    /// A placeholder for the enclosing type with this id: a struct, union, exception, value type or box.
    ///
    /// The type is *open* until a type with this id is created around it. An open type can only be used to
    /// create other types.
    ///
    /// # Errors
    /// An invalid or empty id.
    pub fn recursive(id: impl Into<Text>) -> Result<Self, TypeCodeError> {
        Self::bare(TcKind::Recursive, id.into(), Text::default())
    }
}

fn finish(composer: Composer, node: Node) -> Result<TypeCode, TypeCodeError> {
    let type_code = composer.finish(node);
    if type_code.height() > MAX_HEIGHT {
        return Err(TypeCodeError::BadParam("types nest more than 256 levels"));
    }
    Ok(type_code)
}
