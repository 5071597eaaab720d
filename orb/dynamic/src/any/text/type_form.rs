//! The form of types: the `_type` of an `any`, and the values of `CORBA::TypeCode`.
//!
//! | type | form |
//! | --- | --- |
//! | basic types, `string<8>`, `fixed<5, 2>`, sequences of these | the text of the IDL, such as `"unsigned long"` |
//! | other types | `{"kind": …, "id": …, "name": …, …}` with all parts, see `docs/json.md` |
//!
//! Read are also names and repository ids that the context knows, and in texts `sequence<…>` and arrays of them.

use std::fmt;

use spandrel_cdr::{Label, TcKind, TypeCode, TypeCodeError, ValueModifier, Visibility};

use super::{
    quote::{json_integer, quoted},
    scan::TextError,
    tree::{Form, Member, Members, Node},
};

/// The maximum nesting of `sequence<…>` in a text.
const MAX_SPEC_DEPTH: u16 = 64;

const BASIC: [(&str, TypeCode); 19] = [
    ("null", TypeCode::NULL),
    ("void", TypeCode::VOID),
    ("short", TypeCode::SHORT),
    ("long", TypeCode::LONG),
    ("unsigned short", TypeCode::USHORT),
    ("unsigned long", TypeCode::ULONG),
    ("float", TypeCode::FLOAT),
    ("double", TypeCode::DOUBLE),
    ("boolean", TypeCode::BOOLEAN),
    ("char", TypeCode::CHAR),
    ("octet", TypeCode::OCTET),
    ("any", TypeCode::ANY),
    ("CORBA::TypeCode", TypeCode::TYPE_CODE),
    ("CORBA::Principal", TypeCode::PRINCIPAL),
    ("long long", TypeCode::LONGLONG),
    ("unsigned long long", TypeCode::ULONGLONG),
    ("long double", TypeCode::LONGDOUBLE),
    ("wchar", TypeCode::WCHAR),
    ("TypeCode", TypeCode::TYPE_CODE),
];

const MODIFIERS: [(&str, ValueModifier); 4] = [
    ("none", ValueModifier::None),
    ("custom", ValueModifier::Custom),
    ("abstract", ValueModifier::Abstract),
    ("truncatable", ValueModifier::Truncatable),
];

/// A type as the text of a value names it: by its scoped name, which its repository id contains, or by its
/// structure.
pub(super) fn spec(type_code: &TypeCode) -> String {
    match type_code.kind() {
        TcKind::Sequence | TcKind::Array => {
            let content = type_code.content_type().map(|type_code| spec(&type_code)).unwrap_or_default();
            match (type_code.kind(), type_code.length().unwrap_or(0)) {
                (TcKind::Sequence, 0) => format!("sequence<{content}>"),
                (TcKind::Sequence, bound) => format!("sequence<{content}, {bound}>"),
                // The dimensions go from the outermost to the innermost.
                (_, length) => match content.find('[').filter(|_| content.ends_with(']')) {
                    Some(bracket) => format!("{}[{length}]{}", &content[..bracket], &content[bracket..]),
                    None => format!("{content}[{length}]"),
                },
            }
        }
        _ => match type_code.id() {
            Ok(id) if !id.is_empty() => scoped_name(id).unwrap_or_else(|| id.to_owned()),
            _ => type_code.type_spec().to_string(),
        },
    }
}

/// The scoped name in a repository id without a prefix.
fn scoped_name(id: &str) -> Option<String> {
    let (path, _version) = id.strip_prefix("IDL:")?.rsplit_once(':')?;
    let is_identifier = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    path.split('/').all(is_identifier).then(|| path.replace('/', "::"))
}

/// The form of a type without a name of its own, or of parts with one.
fn plain(type_code: &TypeCode) -> Option<String> {
    match type_code.kind() {
        TcKind::Sequence => {
            let content = plain(&type_code.content_type().ok()?)?;
            Some(match type_code.length().ok()? {
                0 => format!("sequence<{content}>"),
                bound => format!("sequence<{content}, {bound}>"),
            })
        }
        TcKind::String | TcKind::WString | TcKind::Fixed => Some(type_code.type_spec().to_string()),
        kind => BASIC.iter().find(|(_, candidate)| candidate.kind() == kind).map(|(text, _)| (*text).to_owned()),
    }
}

/// Writes the form of a type.
pub(super) fn write(type_code: &TypeCode, out: &mut dyn fmt::Write) -> fmt::Result {
    Writer { out, enclosing: Vec::new() }.write(type_code)
}

struct Writer<'o> {
    out: &'o mut dyn fmt::Write,
    /// The ids of the types around the next one: inside themselves they are written by their id alone.
    enclosing: Vec<String>,
}

impl Writer<'_> {
    fn write(&mut self, type_code: &TypeCode) -> fmt::Result {
        if let Some(text) = plain(type_code) {
            return quoted(&text, self.out);
        }
        let id = type_code.id().ok().filter(|id| !id.is_empty());
        let is_inside = id.is_some_and(|id| self.enclosing.iter().any(|around| around == id));
        if type_code.kind() == TcKind::Recursive || is_inside {
            self.out.write_str("{\"kind\":\"recursive\",\"id\":")?;
            quoted(id.unwrap_or_default(), self.out)?;
            return self.out.write_str("}");
        }
        write!(self.out, "{{\"kind\":\"{}\"", kind_name(type_code.kind()))?;
        if let (Ok(id), Ok(name)) = (type_code.id(), type_code.name()) {
            self.out.write_str(",\"id\":")?;
            quoted(id, self.out)?;
            self.out.write_str(",\"name\":")?;
            quoted(name, self.out)?;
        }
        self.enclosing.push(id.unwrap_or_default().to_owned());
        self.parts(type_code).map_err(|_| fmt::Error)?;
        self.enclosing.pop();
        self.out.write_str("}")
    }

    fn parts(&mut self, type_code: &TypeCode) -> Result<(), WriteError> {
        match type_code.kind() {
            TcKind::Sequence => match type_code.length()? {
                0 => {}
                bound => write!(self.out, ",\"bound\":{bound}")?,
            },
            TcKind::Array => write!(self.out, ",\"length\":{}", type_code.length()?)?,
            TcKind::Union => {
                self.out.write_str(",\"discriminator\":")?;
                self.write(&type_code.discriminator_type()?)?;
            }
            TcKind::Value | TcKind::Event => {
                let modifier = type_code.type_modifier()?;
                let name =
                    MODIFIERS.iter().find(|(_, candidate)| *candidate == modifier).map_or("none", |(name, _)| name);
                write!(self.out, ",\"modifier\":\"{name}\"")?;
                if let Some(base) = type_code.concrete_base_type()? {
                    self.out.write_str(",\"base\":")?;
                    self.write(&base)?;
                }
            }
            _ => {}
        }
        match type_code.kind() {
            TcKind::Sequence | TcKind::Array | TcKind::Alias | TcKind::ValueBox => {
                self.out.write_str(",\"type\":")?;
                self.write(&type_code.content_type()?)?;
            }
            TcKind::Struct | TcKind::Except | TcKind::Union | TcKind::Enum | TcKind::Value | TcKind::Event => {
                self.out.write_str(",\"members\":[")?;
                for index in 0..type_code.member_count()? {
                    self.out.write_str(if index == 0 { "" } else { "," })?;
                    self.member(type_code, index)?;
                }
                self.out.write_str("]")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn member(&mut self, type_code: &TypeCode, index: usize) -> Result<(), WriteError> {
        if type_code.kind() == TcKind::Enum {
            return Ok(quoted(type_code.member_name(index)?, self.out)?);
        }
        self.out.write_str("{")?;
        if type_code.kind() == TcKind::Union {
            match type_code.member_label(index)? {
                Label::Default => self.out.write_str("\"label\":null,")?,
                Label::Value(value) => {
                    self.out.write_str("\"label\":")?;
                    json_integer(value, self.out)?;
                    self.out.write_str(",")?;
                }
            }
        }
        self.out.write_str("\"name\":")?;
        quoted(type_code.member_name(index)?, self.out)?;
        self.out.write_str(",\"type\":")?;
        self.write(&type_code.member_type(index)?)?;
        if let Ok(visibility) = type_code.member_visibility(index) {
            let name = if visibility == Visibility::Private { "private" } else { "public" };
            write!(self.out, ",\"visibility\":\"{name}\"")?;
        }
        self.out.write_str("}")?;
        Ok(())
    }
}

/// The output's limit, or a type code without a property of its kind.
struct WriteError;

impl From<fmt::Error> for WriteError {
    fn from(_: fmt::Error) -> Self {
        Self
    }
}

impl From<TypeCodeError> for WriteError {
    fn from(_: TypeCodeError) -> Self {
        Self
    }
}

fn kind_name(kind: TcKind) -> String {
    match kind {
        TcKind::ValueBox => "valuebox".to_owned(),
        kind => kind.to_string(),
    }
}

/// The types that a text may name.
pub(super) type Lookup<'l> = &'l dyn Fn(&str) -> Option<TypeCode>;

/// Parses an IDL type, by its keywords or a declared name.
pub(super) fn read(node: Node<'_>, lookup: Lookup<'_>) -> Result<TypeCode, TextError> {
    let at = node.at;
    let failed = |message: String| TextError { message, at };
    match node.form {
        Form::Word(text) => read_spec(text, lookup, 0).map_err(failed),
        Form::Text(text) => read_spec(&text, lookup, 0).map_err(failed),
        // Several words, such as `unsigned long`.
        Form::TypedValue(text, last) => match last.form {
            Form::Word(word) => read_spec(&format!("{text} {word}"), lookup, 0).map_err(failed),
            _ => Err(failed(format!("`{text}` is not a type"))),
        },
        Form::Members(members) => read_parts(members, at, lookup),
        Form::List(_) => Err(failed("expected a type".to_owned())),
    }
}

/// Parses the text of a type.
pub(super) fn read_spec(text: &str, lookup: Lookup<'_>, depth: u16) -> Result<TypeCode, String> {
    if depth > MAX_SPEC_DEPTH {
        return Err("the type nests too deep".to_owned());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    if let Some((_, basic)) = BASIC.iter().find(|(name, _)| *name == text) {
        return Ok(basic.clone());
    }
    let unknown = || format!("unknown type `{text}`");
    let checked = |built: Result<TypeCode, TypeCodeError>| built.map_err(|error| format!("`{text}`: {error}"));
    if let Some((content, length)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        // The first dimension is the outermost.
        let type_code = read_spec(content, lookup, depth + 1)?;
        return length.split("][").collect::<Vec<_>>().iter().rev().try_fold(type_code, |type_code, length| {
            let length = length.trim().parse().map_err(|_| unknown())?;
            checked(TypeCode::array(&type_code, length))
        });
    }
    if let Some((kind, parameters)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        let (first, last) = match parameters.rsplit_once(',') {
            Some((first, last)) if !last.contains('>') => (first, Some(last.trim())),
            _ => (parameters, None),
        };
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| unknown());
        return match (kind.trim(), last) {
            ("sequence", None) => checked(TypeCode::sequence(&read_spec(first, lookup, depth + 1)?, 0)),
            ("sequence", Some(bound)) => {
                checked(TypeCode::sequence(&read_spec(first, lookup, depth + 1)?, number(bound)?))
            }
            ("string", None) => Ok(TypeCode::string(number(first)?)),
            ("wstring", None) => Ok(TypeCode::wstring(number(first)?)),
            ("fixed", Some(scale)) => {
                let (digits, scale) = (number(first)?.try_into(), number(scale)?.try_into());
                let (Ok(digits), Ok(scale)) = (digits, scale) else { return Err(unknown()) };
                checked(TypeCode::fixed(digits, scale))
            }
            _ => Err(unknown()),
        };
    }
    match &*text {
        "string" => Ok(TypeCode::STRING),
        "wstring" => Ok(TypeCode::WSTRING),
        _ => lookup(text.strip_prefix("::").unwrap_or(&text)).or_else(|| of_every_orb(&text)).ok_or_else(unknown),
    }
}

/// The types that need no declaration.
fn of_every_orb(name: &str) -> Option<TypeCode> {
    let named = |type_code: TypeCode, names: [&str; 2]| {
        (names.contains(&name) || type_code.id() == Ok(name)).then_some(type_code)
    };
    named(TypeCode::object(), ["Object", "CORBA::Object"])
        .or_else(|| named(TypeCode::value_base(), ["ValueBase", "CORBA::ValueBase"]))
        .or_else(|| named(TypeCode::abstract_base(), ["AbstractBase", "CORBA::AbstractBase"]))
}

/// Parses a type from its parts.
fn read_parts(mut parts: Members<'_>, at: usize, lookup: Lookup<'_>) -> Result<TypeCode, TextError> {
    let failed = |message: String| TextError { message, at };
    let missing = |key: &str| TextError { message: format!("the type has no `{key}`"), at };
    let kind = text_of(parts.take("kind")?.ok_or_else(|| missing("kind"))?)?;
    if let Some(Member { at, name, .. }) = parts.members.iter().find(|part| !parts_of(&kind).contains(&&*part.name)) {
        return Err(TextError { message: format!("unexpected `{name}` of a type of kind `{kind}`"), at: *at });
    }
    let id = parts.take("id")?.map(text_of).transpose()?.unwrap_or_default();
    let name = parts.take("name")?.map(text_of).transpose()?.unwrap_or_default();
    let content = parts.take("type")?.map(|node| read(node, lookup)).transpose()?;
    let content = || content.as_ref().ok_or_else(|| missing("type"));
    let number = |node: Option<Node<'_>>| node.map(|node| integer_of::<u32>(&node)).transpose();
    let (bound, length) = (number(parts.take("bound")?)?, number(parts.take("length")?)?);
    let discriminator = parts.take("discriminator")?.map(|node| read(node, lookup)).transpose()?;
    let base = parts.take("base")?.map(|node| read(node, lookup)).transpose()?;
    let modifier = parts.take("modifier")?.map(text_of).transpose()?;
    let members = match parts.take("members")? {
        None => Vec::new(),
        Some(Node { form: Form::List(nodes), .. }) if kind == "enum" => {
            let names = nodes.into_iter().map(|node| {
                text_of(node).map(|name| TypeMember { name, type_code: TypeCode::NULL, label: None, is_private: false })
            });
            names.collect::<Result<_, _>>()?
        }
        Some(Node { form: Form::List(nodes), .. }) => {
            nodes.into_iter().map(|node| TypeMember::read(node, &kind, lookup)).collect::<Result<_, _>>()?
        }
        Some(Node { at, .. }) => return Err(TextError { message: "expected `[`, the members".to_owned(), at }),
    };
    parts.end()?;
    let plain = || members.iter().map(|member| (member.name.clone(), member.type_code.clone())).collect::<Vec<_>>();
    let result = match &*kind {
        "sequence" => TypeCode::sequence(content()?, bound.unwrap_or(0)),
        "array" => TypeCode::array(content()?, length.ok_or_else(|| missing("length"))?),
        "typedef" => TypeCode::alias(id, name, content()?),
        "valuebox" => TypeCode::value_box(id, name, content()?),
        "struct" => TypeCode::structure(id, name, &plain()),
        "exception" => TypeCode::exception(id, name, &plain()),
        "enum" => {
            let names: Vec<String> = members.into_iter().map(|member| member.name).collect();
            TypeCode::enumeration(id, name, &names)
        }
        "union" => {
            let discriminator = discriminator.ok_or_else(|| missing("discriminator"))?;
            let labelled = members.iter().map(|member| {
                (member.label.map_or(Label::Default, Label::Value), member.name.clone(), member.type_code.clone())
            });
            TypeCode::union(id, name, &discriminator, &labelled.collect::<Vec<_>>())
        }
        "valuetype" => {
            let modifier = modifier.as_deref().unwrap_or("none");
            let modifier_entry = MODIFIERS.iter().find(|(name, _)| *name == modifier);
            let (_, modifier) = modifier_entry.ok_or_else(|| failed(format!("unknown modifier `{modifier}`")))?;
            let visible = members.iter().map(|member| {
                let visibility = if member.is_private { Visibility::Private } else { Visibility::Public };
                (member.name.clone(), member.type_code.clone(), visibility)
            });
            TypeCode::value(id, name, *modifier, base.as_ref(), &visible.collect::<Vec<_>>())
        }
        "interface" => TypeCode::object_reference(id, name),
        "abstract interface" => TypeCode::abstract_interface(id, name),
        "local interface" => TypeCode::local_interface(id, name),
        "component" => TypeCode::component(id, name),
        "home" => TypeCode::home(id, name),
        "native" => TypeCode::native(id, name),
        "recursive" => TypeCode::recursive(id),
        other => return Err(failed(format!("unknown kind of type `{other}`"))),
    };
    result.map_err(|error| failed(error.to_string()))
}

/// The parts of a type of this kind besides the kind.
fn parts_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "sequence" => &["type", "bound"],
        "array" => &["type", "length"],
        "typedef" | "valuebox" => &["id", "name", "type"],
        "struct" | "exception" | "enum" => &["id", "name", "members"],
        "union" => &["id", "name", "discriminator", "members"],
        "valuetype" => &["id", "name", "modifier", "base", "members"],
        "recursive" => &["id"],
        _ => &["id", "name"],
    }
}

struct TypeMember {
    name: String,
    type_code: TypeCode,
    label: Option<i128>,
    is_private: bool,
}

impl TypeMember {
    fn read(node: Node<'_>, kind: &str, lookup: Lookup<'_>) -> Result<Self, TextError> {
        let Node { at, form: Form::Members(mut parts) } = node else {
            return Err(TextError { message: "expected `{`, a member".to_owned(), at: node.at });
        };
        let missing = |key: &str| TextError { message: format!("the member has no `{key}`"), at };
        let name = parts.take("name")?.map(text_of).transpose()?.unwrap_or_default();
        let type_code = read(parts.take("type")?.ok_or_else(|| missing("type"))?, lookup)?;
        let wrong = parts.members.iter().find(|part| match &*part.name {
            "label" => kind != "union",
            "visibility" => kind != "valuetype",
            _ => false,
        });
        if let Some(Member { at, name, .. }) = wrong {
            return Err(TextError { message: format!("unexpected `{name}` of a member of a `{kind}`"), at: *at });
        }
        let label = match parts.take("label")? {
            None | Some(Node { form: Form::Word("null"), .. }) => None,
            Some(node) => Some(integer_of(&node)?),
        };
        let is_private = match parts.take("visibility")?.map(text_of).transpose()? {
            None => false,
            Some(text) if matches!(&*text, "public" | "private") => text == "private",
            Some(text) => return Err(TextError { message: format!("unknown visibility `{text}`"), at }),
        };
        parts.end()?;
        Ok(Self { name, type_code, label, is_private })
    }
}

/// The text of a word or a quoted text.
pub(super) fn text_of(node: Node<'_>) -> Result<String, TextError> {
    match node.form {
        Form::Text(text) => Ok(text),
        Form::Word(text) => Ok(text.to_owned()),
        _ => Err(TextError { message: "expected a text".to_owned(), at: node.at }),
    }
}

/// An integer, as digits or as these in quotes.
pub(super) fn integer_of<T: TryFrom<i128>>(node: &Node<'_>) -> Result<T, TextError> {
    let failed = |message: String| TextError { message, at: node.at };
    let word = match &node.form {
        Form::Word(word) => {
            if let Some(number) = whole_number(word) {
                return T::try_from(number).map_err(|_| failed(format!("`{word}` is not an integer of this type")));
            }
            word
        }
        Form::Text(text) => text.as_str(),
        _ => return Err(failed("expected an integer".to_owned())),
    };
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let number = number.ok().filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()));
    let number = number.and_then(|number| T::try_from(sign * number).ok());
    number.ok_or_else(|| failed(format!("`{word}` is not an integer of this type")))
}

/// The value of a number with a point or an exponent that is an integer all the same: `1.0`, `2e3`.
fn whole_number(word: &str) -> Option<i128> {
    let (sign, unsigned) = word.strip_prefix('-').map_or((1, word), |unsigned| (-1, unsigned));
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let zeros = exponent.checked_add(dropped)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    // A fraction is left, or no type is so large.
    let factor = 10_i128.checked_pow(u32::try_from(zeros).ok()?)?;
    significant.parse::<i128>().ok()?.checked_mul(factor)?.checked_mul(sign)
}
