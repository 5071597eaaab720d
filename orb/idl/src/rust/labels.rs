//! The labels of unions as numbers.
//!
//! The value without a label, and the variant `Unlisted`, are determined in `unions`.

use crate::model::{ConstValue, DefinitionKind, Label, Model};

/// The number of a label among the values of the discriminator's type.
pub(super) fn number(model: &Model, label: &Label) -> Option<i128> {
    let Label::Value(value) = label else { return None };
    match value {
        ConstValue::Integer(value) => Some(*value),
        ConstValue::Boolean(value) => Some((*value).into()),
        ConstValue::Char(octet) => Some((*octet).into()),
        ConstValue::WideChar(value) => Some(u32::from(*value).into()),
        ConstValue::Enumerator(id) => match &model[*id].kind {
            DefinitionKind::Enumerator(body) => Some(body.ordinal.into()),
            _ => None,
        },
        _ => None,
    }
}
