//! Properties of members and of value types.

/// The discriminator value that selects a member of a union.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Label {
    /// All values without another member.
    Default,
    /// This value: a number, a character's code, 0 and 1 for `boolean`, an enumerator's position.
    Value(i128),
}

macro_rules! label_from {
    ($($type:ty),*) => {
        $(impl From<$type> for Label {
            fn from(value: $type) -> Self {
                Self::Value(i128::from(value))
            }
        })*
    };
}

label_from!(bool, u8, i16, u16, i32, u32, i64, u64);

impl From<crate::Char> for Label {
    fn from(value: crate::Char) -> Self {
        Self::Value(i128::from(value.0))
    }
}

impl From<char> for Label {
    fn from(value: char) -> Self {
        Self::Value(i128::from(u32::from(value)))
    }
}

/// The visibility of a member of a value type: IDL `CORBA::Visibility`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum Visibility {
    /// `private`: only the implementation uses the member.
    Private = 0,
    /// `public`: callers use the member too.
    Public = 1,
}

/// The modifier in a value type's declaration: IDL `CORBA::ValueModifier`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum ValueModifier {
    /// Neither `custom`, `abstract` nor `truncatable`: an ordinary value type.
    None = 0,
    /// `custom`: the application's code encodes the state.
    Custom = 1,
    /// `abstract`: the type has no state, and no values of its own.
    Abstract = 2,
    /// `truncatable`: a receiver may take a value for one of a base type.
    Truncatable = 3,
}

impl ValueModifier {
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        [Self::None, Self::Custom, Self::Abstract, Self::Truncatable].get(usize::try_from(number).ok()?).copied()
    }
}
