//! The attributes of types, exceptions and constants (CORBA 3.3 Part 1, 14.5.7 to 14.5.22).

use spandrel::types::{Any, TcKind, TypeCode};

use super::object::{Object, Outcome};
use super::parts::check_distinct;
use crate::errors::bad_param;
use crate::generated::corba::{
    AliasDefServant, ArrayDefServant, ConstantDefServant, EnumDefServant, ExceptionDefServant, FixedDefServant,
    IdlType, IdlTypeServant, PrimitiveDefServant, PrimitiveKind, SequenceDefServant, StringDefServant,
    StructDefServant, StructMember, UnionDefServant, UnionMember, ValueBoxDefServant, WstringDefServant,
};
use crate::model::{Model, Number};
use crate::records::records::{ConstantBody, ElementsBody, FixedBody, Member, UnionBody};
use crate::types::TypeCodes;

impl IdlTypeServant for Object<'_> {
    fn r#type(&self) -> Outcome<TypeCode> {
        self.type_code(self.number)
    }
}

impl StructDefServant for Object<'_> {
    fn members(&self) -> Outcome<Vec<StructMember>> {
        self.described_members()
    }

    fn set_members(&self, value: &[StructMember]) -> Outcome<()> {
        self.replace_members(value)
    }
}

impl ExceptionDefServant for Object<'_> {
    fn r#type(&self) -> Outcome<TypeCode> {
        self.type_code(self.number)
    }

    fn members(&self) -> Outcome<Vec<StructMember>> {
        self.described_members()
    }

    fn set_members(&self, value: &[StructMember]) -> Outcome<()> {
        self.replace_members(value)
    }
}

impl UnionDefServant for Object<'_> {
    fn discriminator_type(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<UnionBody>()?.discriminator)
    }

    fn discriminator_type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<UnionBody>()?.discriminator)
    }

    fn set_discriminator_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.edit(|body: &mut UnionBody, model| {
            body.discriminator = self.core.type_number(model, value)?;
            // Labels of another type would have no meaning: new members follow.
            body.branches.clear();
            Ok(())
        })
    }

    fn members(&self) -> Outcome<Vec<UnionMember>> {
        let body = self.content()?;
        self.describe(|describer| describer.branches(body))
    }

    fn set_members(&self, value: &[UnionMember]) -> Outcome<()> {
        self.edit(|body: &mut UnionBody, model| {
            body.branches = self.core.branches(model, value)?;
            Ok(())
        })
    }
}

impl EnumDefServant for Object<'_> {
    fn members(&self) -> Outcome<Vec<String>> {
        self.content().cloned()
    }

    fn set_members(&self, value: &[String]) -> Outcome<()> {
        check_distinct(value)?;
        self.assign(|names: &mut Vec<String>| names, value.to_vec())
    }
}

impl AliasDefServant for Object<'_> {
    fn original_type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(*self.content()?)
    }

    fn set_original_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|original: &mut Number| original, value)
    }
}

impl ValueBoxDefServant for Object<'_> {
    fn original_type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(*self.content()?)
    }

    fn set_original_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|original: &mut Number| original, value)
    }
}

impl PrimitiveDefServant for Object<'_> {
    fn kind(&self) -> Outcome<PrimitiveKind> {
        Ok(PrimitiveKind::try_from(*self.content::<u32>()?)?)
    }
}

impl StringDefServant for Object<'_> {
    fn bound(&self) -> Outcome<u32> {
        self.content().copied()
    }

    fn set_bound(&self, value: u32) -> Outcome<()> {
        self.assign(|bound: &mut u32| bound, value)
    }
}

impl WstringDefServant for Object<'_> {
    fn bound(&self) -> Outcome<u32> {
        self.content().copied()
    }

    fn set_bound(&self, value: u32) -> Outcome<()> {
        self.assign(|bound: &mut u32| bound, value)
    }
}

impl FixedDefServant for Object<'_> {
    fn digits(&self) -> Outcome<u16> {
        Ok(self.content::<FixedBody>()?.digits)
    }

    fn set_digits(&self, value: u16) -> Outcome<()> {
        self.assign(|body: &mut FixedBody| &mut body.digits, value)
    }

    fn scale(&self) -> Outcome<i16> {
        Ok(self.content::<FixedBody>()?.scale)
    }

    fn set_scale(&self, value: i16) -> Outcome<()> {
        self.assign(|body: &mut FixedBody| &mut body.scale, value)
    }
}

impl SequenceDefServant for Object<'_> {
    fn bound(&self) -> Outcome<u32> {
        Ok(self.content::<ElementsBody>()?.count)
    }

    fn set_bound(&self, value: u32) -> Outcome<()> {
        self.assign(|body: &mut ElementsBody| &mut body.count, value)
    }

    fn element_type(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<ElementsBody>()?.r#type)
    }

    fn element_type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<ElementsBody>()?.r#type)
    }

    fn set_element_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|body: &mut ElementsBody| &mut body.r#type, value)
    }
}

impl ArrayDefServant for Object<'_> {
    fn length(&self) -> Outcome<u32> {
        Ok(self.content::<ElementsBody>()?.count)
    }

    fn set_length(&self, value: u32) -> Outcome<()> {
        self.assign(|body: &mut ElementsBody| &mut body.count, value)
    }

    fn element_type(&self) -> Outcome<TypeCode> {
        SequenceDefServant::element_type(self)
    }

    fn element_type_def(&self) -> Outcome<Option<IdlType>> {
        SequenceDefServant::element_type_def(self)
    }

    fn set_element_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        SequenceDefServant::set_element_type_def(self, value)
    }
}

impl ConstantDefServant for Object<'_> {
    fn r#type(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<ConstantBody>()?.r#type)
    }

    fn type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<ConstantBody>()?.r#type)
    }

    fn set_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|body: &mut ConstantBody| &mut body.r#type, value)
    }

    fn value(&self) -> Outcome<Any> {
        Ok(self.content::<ConstantBody>()?.value.clone())
    }

    fn set_value(&self, value: &Any) -> Outcome<()> {
        self.edit(|body: &mut ConstantBody, model| {
            check_constant(model, body.r#type, value)?;
            body.value = value.clone();
            Ok(())
        })
    }
}

impl Object<'_> {
    fn described_members(&self) -> Outcome<Vec<StructMember>> {
        let members = self.content::<Vec<Member>>()?;
        self.describe(|describer| describer.members(members))
    }

    fn replace_members(&self, members: &[StructMember]) -> Outcome<()> {
        self.edit(|content: &mut Vec<Member>, model| {
            *content = self.core.members(model, members)?;
            Ok(())
        })
    }
}

/// Checks that a constant has a value of its type, a simple one (14.5.8).
pub(super) fn check_constant(model: &Model, number: Number, value: &Any) -> Outcome<()> {
    let type_code = TypeCodes::new(model).type_code(number)?;
    let is_simple = matches!(
        type_code.without_aliases().kind(),
        TcKind::Short
            | TcKind::Long
            | TcKind::UShort
            | TcKind::ULong
            | TcKind::LongLong
            | TcKind::ULongLong
            | TcKind::Float
            | TcKind::Double
            | TcKind::LongDouble
            | TcKind::Boolean
            | TcKind::Char
            | TcKind::WChar
            | TcKind::Octet
            | TcKind::String
            | TcKind::WString
            | TcKind::Fixed
            | TcKind::Enum
    );
    // The digits of a fixed-point constant are those of its value.
    let is_fixed = |type_code: &TypeCode| type_code.without_aliases().kind() == TcKind::Fixed;
    let is_same = type_code.equivalent(value.type_code()) || is_fixed(&type_code) && is_fixed(value.type_code());
    match is_simple && is_same {
        true => Ok(()),
        false => {
            Err(bad_param(0, format!("a constant of type `{type_code}` with a value of type `{}`", value.type_code())))
        }
    }
}
