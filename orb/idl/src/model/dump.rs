//! The model as lines of text, for comparison with other IDL compilers and with earlier versions of this one.

use std::fmt::{self, Write};

use super::{
    Attribute, ConstValue, DefId, Definition, DefinitionKind, FixedValue, Interface, Label, Member, Model, Operation,
    Parameter, ParameterMode, Type, Union, ValueType,
};

impl Model {
    /// Writes a line for each definition in source order: `kind scoped-name repository-id`, then its content
    /// in an IDL-like form: types, members, parameters, exceptions, values.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        for definition in self.definitions() {
            text.push_str(&self.line_of(definition));
            text.push('\n');
        }
        text
    }

    /// The line of one definition, as in [`Model::dump`].
    pub(crate) fn line_of(&self, definition: &Definition) -> String {
        let mut text = String::new();
        self.line(definition, &mut text).expect("writing to a string cannot fail");
        text
    }

    fn line(&self, definition: &Definition, out: &mut String) -> fmt::Result {
        let Definition { kind, scoped_name, repository_id, .. } = definition;
        write!(out, "{} {scoped_name} {repository_id}", kind.keyword())?;
        match kind {
            DefinitionKind::Interface(body) => self.interface_line(body, out),
            DefinitionKind::Operation(body) => self.operation_line(body, out),
            DefinitionKind::Attribute(body) => self.attribute_line(body, out),
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
                out.push_str(" {");
                body.members.iter().try_for_each(|member| self.member(member, out))?;
                out.write_str(" }")
            }
            DefinitionKind::Union(body) => self.union_line(body, out),
            DefinitionKind::Enumerator(body) => write!(out, " {}", body.ordinal),
            DefinitionKind::Typedef(body) => self.named_type(&body.ty, out),
            DefinitionKind::ValueBox(body) => {
                out.push_str(" =");
                self.named_type(&body.ty, out)
            }
            DefinitionKind::Const(body) => {
                match body.ty {
                    // The value determines the digits.
                    Type::Fixed { .. } => out.push_str(" fixed"),
                    _ => self.named_type(&body.ty, out)?,
                }
                out.push_str(" = ");
                self.value(&body.value, out)
            }
            DefinitionKind::ValueType(body) => self.value_line(body, out),
            DefinitionKind::Module(_)
            | DefinitionKind::Enum(_)
            | DefinitionKind::Native
            | DefinitionKind::Unmapped(_) => Ok(()),
        }
    }

    fn interface_line(&self, body: &Interface, out: &mut String) -> fmt::Result {
        let words = [(body.is_abstract, " abstract"), (body.is_local, " local"), (body.forward_only, " forward")];
        words.iter().filter(|(is, _)| *is).for_each(|(_, word)| out.push_str(word));
        self.list(" : ", &body.bases, "", out)
    }

    fn operation_line(&self, body: &Operation, out: &mut String) -> fmt::Result {
        if body.oneway {
            out.push_str(" oneway");
        }
        match &body.result {
            Some(ty) => self.named_type(ty, out)?,
            None => out.push_str(" void"),
        }
        self.parameters(&body.parameters, out)?;
        self.list(" raises (", &body.raises, ")", out)?;
        for (index, name) in body.context.iter().enumerate() {
            out.push_str(if index == 0 { " context (" } else { ", " });
            quoted(name.chars(), '"', out)?;
        }
        if !body.context.is_empty() {
            out.push(')');
        }
        Ok(())
    }

    fn attribute_line(&self, body: &Attribute, out: &mut String) -> fmt::Result {
        if body.readonly {
            out.push_str(" readonly");
        }
        self.named_type(&body.ty, out)?;
        self.list(" getraises (", &body.get_raises, ")", out)?;
        self.list(" setraises (", &body.set_raises, ")", out)
    }

    fn union_line(&self, body: &Union, out: &mut String) -> fmt::Result {
        out.push_str(" switch");
        self.named_type(&body.discriminator, out)?;
        out.push_str(" {");
        for branch in &body.branches {
            for label in &branch.labels {
                match label {
                    Label::Value(value) => {
                        out.push_str(" case ");
                        self.value(value, out)?;
                        out.push(':');
                    }
                    Label::Default => out.push_str(" default:"),
                }
            }
            self.member(&branch.member, out)?;
        }
        out.write_str(" }")
    }

    fn value_line(&self, body: &ValueType, out: &mut String) -> fmt::Result {
        let words = [(body.is_custom, " custom"), (body.is_abstract, " abstract"), (body.forward_only, " forward")];
        words.iter().filter(|(is, _)| *is).for_each(|(_, word)| out.push_str(word));
        self.list(if body.is_truncatable { " : truncatable " } else { " : " }, &body.bases, "", out)?;
        self.list(" supports ", &body.supports, "", out)?;
        out.push_str(" {");
        for state in &body.members {
            out.push_str(if state.is_public { " public" } else { " private" });
            self.member(&state.member, out)?;
        }
        for factory in &body.factories {
            write!(out, " factory {}", factory.name)?;
            self.parameters(&factory.parameters, out)?;
            self.list(" raises (", &factory.raises, ")", out)?;
            out.push(';');
        }
        out.write_str(" }")
    }

    /// Writes ` type name;` of a member.
    fn member(&self, member: &Member, out: &mut String) -> fmt::Result {
        self.named_type(&member.ty, out)?;
        write!(out, " {};", member.name)
    }

    /// ` (mode type name, …)`
    fn parameters(&self, parameters: &[Parameter], out: &mut String) -> fmt::Result {
        out.push_str(" (");
        for (index, parameter) in parameters.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { ", " });
            out.push_str(match parameter.mode {
                ParameterMode::In => "in",
                ParameterMode::Out => "out",
                ParameterMode::InOut => "inout",
            });
            self.named_type(&parameter.ty, out)?;
            write!(out, " {}", parameter.name)?;
        }
        out.write_str(")")
    }

    /// The scoped names, if any, between `before` and `after`.
    fn list(&self, before: &str, ids: &[DefId], after: &str, out: &mut String) -> fmt::Result {
        for (index, &id) in ids.iter().enumerate() {
            write!(out, "{}{}", if index == 0 { before } else { ", " }, self[id].scoped_name)?;
        }
        out.write_str(if ids.is_empty() { "" } else { after })
    }

    /// A blank and the type.
    fn named_type(&self, ty: &Type, out: &mut String) -> fmt::Result {
        out.push(' ');
        self.ty(ty, out)
    }

    fn ty(&self, ty: &Type, out: &mut String) -> fmt::Result {
        let bounded = |word: &str, bound: &Option<u32>, out: &mut String| match bound {
            Some(bound) => write!(out, "{word}<{bound}>"),
            None => out.write_str(word),
        };
        match ty {
            Type::Primitive(primitive) => write!(out, "{primitive}"),
            Type::String { bound } => bounded("string", bound, out),
            Type::WString { bound } => bounded("wstring", bound, out),
            Type::Sequence { element, bound } => {
                out.push_str("sequence<");
                self.ty(element, out)?;
                match bound {
                    Some(bound) => write!(out, ", {bound}>"),
                    None => out.write_str(">"),
                }
            }
            Type::Array { element, dimensions } => {
                self.ty(element, out)?;
                dimensions.iter().try_for_each(|size| write!(out, "[{size}]"))
            }
            Type::Named(id) => out.write_str(&self[*id].scoped_name),
            Type::Object => out.write_str("Object"),
            Type::Fixed { digits, scale } => write!(out, "fixed<{digits}, {scale}>"),
            Type::Any => out.write_str("any"),
            Type::TypeCode => out.write_str("TypeCode"),
            Type::ValueBase => out.write_str("ValueBase"),
            Type::AbstractBase => out.write_str("AbstractBase"),
        }
    }

    fn value(&self, value: &ConstValue, out: &mut String) -> fmt::Result {
        match value {
            ConstValue::Integer(value) => write!(out, "{value}"),
            ConstValue::Float(value) => write!(out, "{value:?}"),
            ConstValue::Boolean(value) => out.write_str(if *value { "TRUE" } else { "FALSE" }),
            ConstValue::Char(value) => quoted(std::iter::once(char::from(*value)), '\'', out),
            ConstValue::WideChar(value) => {
                out.push('L');
                quoted(std::iter::once(*value), '\'', out)
            }
            ConstValue::String(value) => quoted(value.chars(), '"', out),
            ConstValue::WideString(value) => {
                out.push('L');
                quoted(value.chars(), '"', out)
            }
            ConstValue::Fixed(value) => write!(out, "{value}d"),
            ConstValue::Enumerator(id) => out.write_str(&self[*id].scoped_name),
        }
    }
}

/// The characters in quotes: printable ASCII unchanged, everything else as `\u{…}`.
fn quoted(characters: impl Iterator<Item = char>, quote: char, out: &mut String) -> fmt::Result {
    out.push(quote);
    for character in characters {
        match character {
            ' '..='~' if character != quote && character != '\\' => out.push(character),
            _ => write!(out, "\\u{{{:x}}}", u32::from(character))?,
        }
    }
    out.push(quote);
    Ok(())
}

/// All digits, with a point if there is a scale: `-0.50`.
impl fmt::Display for FixedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.unscaled.unsigned_abs(), width = scale + 1);
        match digits.split_at(digits.len() - scale) {
            (whole, "") => write!(f, "{sign}{whole}"),
            (whole, fraction) => write!(f, "{sign}{whole}.{fraction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_scale() {
        let cases =
            [(0, 0, "0"), (5, 2, "0.05"), (-50, 2, "-0.50"), (1234, 1, "123.4"), (-7, 0, "-7"), (0, 3, "0.000")];
        for (unscaled, scale, text) in cases {
            assert_eq!(FixedValue { unscaled, scale }.to_string(), text);
        }
    }
}
