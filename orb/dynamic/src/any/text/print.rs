//! Printing of values, as text for people and as JSON.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use spandrel_cdr::{Any, TcKind, TypeCode};

use super::{
    super::{
        DynAny, DynAnyError,
        discriminator::label_of,
        dyn_any::{State, Value, ValueId},
        leaf::Leaf,
        members::{has_names, members_of},
    },
    base64,
    number::{FloatText, float_text, long_double_text},
    quote::{json_integer, quoted},
    type_form,
};

/// The maximum length of a JSON form in octets: a type code of a few octets may describe a type of any size.
const MAX_JSON: usize = 128 << 20;

/// The text that [`DynAny::from_text`] parses.
impl fmt::Display for DynAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self, Form::Text, false, f)
    }
}

impl DynAny {
    /// The value as JSON. [`DynAny::from_text`] parses it; `docs/json.md` has the form of each type.
    ///
    /// # Errors
    /// [`DynAnyError::TooLarge`] for a form of more than 128 MiB.
    pub fn to_json(&self) -> Result<String, DynAnyError> {
        let mut json = LimitedText(String::new());
        match print(self, Form::Json, false, &mut json) {
            Ok(()) => Ok(json.0),
            Err(fmt::Error) => Err(DynAnyError::TooLarge { limit: MAX_JSON }),
        }
    }

    /// A type as JSON, in the form that values of `CORBA::TypeCode` have.
    ///
    /// # Errors
    /// As [`DynAny::to_json`].
    pub fn type_to_json(type_code: &TypeCode) -> Result<String, DynAnyError> {
        let mut json = LimitedText(String::new());
        match type_form::write(type_code, &mut json) {
            Ok(()) => Ok(json.0),
            Err(fmt::Error) => Err(DynAnyError::TooLarge { limit: MAX_JSON }),
        }
    }
}

/// A text of limited length.
struct LimitedText(String);

impl fmt::Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > MAX_JSON - self.0.len() {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Text,
    Json,
}

/// Prints a value; values of derived types in an `any` with their whole types.
fn print(value: &DynAny, form: Form, is_in_any: bool, out: &mut dyn fmt::Write) -> fmt::Result {
    let linked: HashSet<ValueId> = value.links().into_iter().collect();
    let numbered = value.states_in_order().into_iter().filter(|id| linked.contains(id));
    Printer { form, is_in_any, numbers: numbered.zip(1..).collect(), out }.value(value)
}

struct Printer<'o> {
    form: Form,
    is_in_any: bool,
    /// The numbers of values that occur several times.
    numbers: HashMap<ValueId, usize>,
    out: &'o mut dyn fmt::Write,
}

impl Printer<'_> {
    fn value(&mut self, value: &DynAny) -> fmt::Result {
        let resolved = value.resolved();
        match (&value.value, resolved.kind()) {
            (Value::Nothing, TcKind::Void) if self.form == Form::Text => self.out.write_str("void"),
            (Value::Nothing, _) => self.out.write_str("null"),
            (Value::Leaf(leaf), _) => self.leaf(value, leaf),
            (Value::Parts(parts), TcKind::Sequence | TcKind::Array) => self.elements(&resolved, parts),
            (Value::Parts(parts), TcKind::Union) => self.union(&resolved, parts),
            (Value::Parts(parts), _) => self.members(&resolved, parts),
            (Value::State(state), _) => self.state(state, &resolved),
            (Value::Link(link), _) => {
                let number = self.numbers.get(&link.id).copied().unwrap_or(0);
                self.out.write_str("{")?;
                self.key("_ref")?;
                write!(self.out, "{number}}}")
            }
        }
    }

    fn comma(&mut self) -> fmt::Result {
        self.out.write_str(if self.form == Form::Json { "," } else { ", " })
    }

    fn key(&mut self, name: &str) -> fmt::Result {
        match self.form {
            Form::Text => write!(self.out, "{name}: "),
            Form::Json => {
                quoted(name, self.out)?;
                self.out.write_str(":")
            }
        }
    }

    fn elements(&mut self, type_code: &TypeCode, parts: &[DynAny]) -> fmt::Result {
        let is_octets =
            type_code.content_type().is_ok_and(|type_code| type_code.without_aliases().kind() == TcKind::Octet);
        if is_octets && self.form == Form::Json {
            let octets = parts.iter().map(|part| match part.value {
                Value::Leaf(Leaf::Octet(octet)) => octet,
                _ => 0,
            });
            return quoted(&base64::encode(octets), self.out);
        }
        self.list(parts)
    }

    fn list(&mut self, parts: &[DynAny]) -> fmt::Result {
        self.out.write_str("[")?;
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.comma()?;
            }
            self.value(part)?;
        }
        self.out.write_str("]")
    }

    fn union(&mut self, type_code: &TypeCode, parts: &[DynAny]) -> fmt::Result {
        let label = label_of(&parts[0]).ok();
        let member = label.and_then(|label| type_code.selected_member(label).ok().flatten());
        let name = member.and_then(|member| type_code.member_name(member).ok());
        self.out.write_str("{")?;
        self.key("_d")?;
        self.value(&parts[0])?;
        if let Some((name, part)) = name.zip(parts.get(1)) {
            self.comma()?;
            self.key(if name.is_empty() { "_value" } else { name })?;
            self.value(part)?;
        }
        self.out.write_str("}")
    }

    /// The members of a struct or exception: by their names, or in order where the type code has no names.
    fn members(&mut self, type_code: &TypeCode, parts: &[DynAny]) -> fmt::Result {
        let members = members_of(type_code).unwrap_or_default();
        if !has_names(&members) {
            return self.list(parts);
        }
        self.out.write_str("{")?;
        self.named(&members, parts, true)?;
        self.out.write_str("}")
    }

    fn named(&mut self, members: &[(String, TypeCode)], parts: &[DynAny], mut is_first: bool) -> fmt::Result {
        for ((name, _), part) in members.iter().zip(parts) {
            if !is_first {
                self.comma()?;
            }
            is_first = false;
            self.key(name)?;
            self.value(part)?;
        }
        Ok(())
    }

    fn state(&mut self, state: &State, declared: &TypeCode) -> fmt::Result {
        let State { id, type_code, parts } = state;
        let number = self.numbers.get(id).copied();
        let of_own_type = Some(type_code).filter(|type_code| type_code.id() != declared.id());
        if let (TcKind::ValueBox, None, None, [content]) = (type_code.kind(), number, of_own_type, &parts[..])
            && !is_like_a_box(content)
        {
            return self.value(content);
        }
        let mut is_first = true;
        self.out.write_str("{")?;
        if let Some(number) = number {
            self.key("_id")?;
            write!(self.out, "{number}")?;
            is_first = false;
        }
        if let Some(type_code) = of_own_type {
            if !is_first {
                self.comma()?;
            }
            self.key("_type")?;
            match self.form {
                Form::Json if self.is_in_any => type_form::write(type_code, self.out)?,
                _ => quoted(type_code.id().unwrap_or_default(), self.out)?,
            }
            is_first = false;
        }
        let members =
            if type_code.kind() == TcKind::ValueBox { Vec::new() } else { members_of(type_code).unwrap_or_default() };
        if type_code.kind() == TcKind::ValueBox || !has_names(&members) {
            if !is_first {
                self.comma()?;
            }
            self.key("_value")?;
            match (type_code.kind(), &parts[..]) {
                (TcKind::ValueBox, [content]) => self.value(content)?,
                _ => self.list(parts)?,
            }
        } else {
            self.named(&members, parts, is_first)?;
        }
        self.out.write_str("}")
    }

    fn leaf(&mut self, value: &DynAny, leaf: &Leaf) -> fmt::Result {
        let is_json = self.form == Form::Json;
        match leaf {
            Leaf::Boolean(value) => write!(self.out, "{value}"),
            Leaf::Octet(value) => write!(self.out, "{value}"),
            Leaf::Char(value) => quoted(char::from(value.0).encode_utf8(&mut [0; 4]), self.out),
            Leaf::WChar(value) => quoted(value.encode_utf8(&mut [0; 4]), self.out),
            Leaf::Short(value) => write!(self.out, "{value}"),
            Leaf::UShort(value) => write!(self.out, "{value}"),
            Leaf::Long(value) => write!(self.out, "{value}"),
            Leaf::ULong(value) => write!(self.out, "{value}"),
            Leaf::LongLong(value) if is_json => json_integer((*value).into(), self.out),
            Leaf::ULongLong(value) if is_json => json_integer((*value).into(), self.out),
            Leaf::LongLong(value) => write!(self.out, "{value}"),
            Leaf::ULongLong(value) => write!(self.out, "{value}"),
            Leaf::Float(value) => self.float(&float_text(*value)),
            Leaf::Double(value) => self.float(&float_text(*value)),
            Leaf::LongDouble(value) => self.float(&long_double_text(*value)),
            Leaf::String(value) => quoted(value, self.out),
            Leaf::WString(value) => quoted(value, self.out),
            Leaf::Any(value) => self.any(value),
            Leaf::TypeCode(value) if is_json => type_form::write(value, self.out),
            Leaf::TypeCode(value) => quoted(&type_form::spec(value), self.out),
            Leaf::Reference(value) if value.profiles.is_empty() => self.out.write_str("null"),
            Leaf::Reference(value) => self.word(&spandrel_giop::ior_to_string(value)),
            Leaf::Enum(position) => match value.resolved().member_name(*position as usize) {
                Ok(name) if !name.is_empty() => self.word(name),
                _ => write!(self.out, "{position}"),
            },
            Leaf::Fixed(value) => self.word(&value.to_string()),
        }
    }

    /// A word, which JSON has in quotes.
    fn word(&mut self, word: &str) -> fmt::Result {
        match self.form {
            Form::Text => self.out.write_str(word),
            Form::Json => quoted(word, self.out),
        }
    }

    fn float(&mut self, text: &FloatText) -> fmt::Result {
        match text {
            FloatText::Digits(digits) => self.out.write_str(digits),
            FloatText::Name(name) => self.word(name),
        }
    }

    fn any(&mut self, any: &Any) -> fmt::Result {
        let type_code = any.type_code();
        if type_code.kind() == TcKind::Null {
            return self.out.write_str("null");
        }
        let content = DynAny::new(any);
        match self.form {
            Form::Text => match content {
                Ok(content) => {
                    if !is_implied(&content) {
                        write!(self.out, "{} ", type_form::spec(type_code))?;
                    }
                    print(&content, self.form, true, self.out)
                }
                Err(_) => write!(self.out, "a value of type `{type_code}`"),
            },
            Form::Json => {
                self.out.write_str("{\"_type\":")?;
                type_form::write(type_code, self.out)?;
                match content {
                    Ok(content) => {
                        self.out.write_str(",\"_value\":")?;
                        print(&content, self.form, true, self.out)?;
                    }
                    Err(error) => {
                        self.out.write_str(",\"_error\":")?;
                        quoted(&error.to_string(), self.out)?;
                    }
                }
                self.out.write_str("}")
            }
        }
    }
}

/// Whether the content of a box looks like an empty box, or like one with a head.
fn is_like_a_box(content: &DynAny) -> bool {
    match &content.value {
        Value::Nothing | Value::Leaf(Leaf::Any(_) | Leaf::TypeCode(_)) => true,
        Value::Leaf(Leaf::Reference(object)) => object.profiles.is_empty(),
        Value::State(_) | Value::Link(_) => true,
        // A member without a name is `_value`.
        Value::Parts(_) => content.kind() == TcKind::Union,
        Value::Leaf(_) => false,
    }
}

/// Whether the text of a value implies its type, as it has to for an `any` without a type.
fn is_implied(value: &DynAny) -> bool {
    match (&value.value, value.type_code().kind()) {
        (Value::Leaf(Leaf::Boolean(_) | Leaf::Long(_) | Leaf::Double(_)), kind) => kind != TcKind::Alias,
        (Value::Leaf(Leaf::LongLong(value)), kind) => kind != TcKind::Alias && i32::try_from(*value).is_err(),
        (Value::Leaf(Leaf::String(_)), _) => value.type_code().equal(&TypeCode::STRING),
        _ => false,
    }
}
