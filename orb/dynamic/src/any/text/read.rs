//! Parsing of values: the tree of the text, interpreted by the type.

use std::{collections::HashMap, mem};

use spandrel_cdr::{Any, Char, Ior, Label, TcKind, TypeCode, ValueModifier};

use super::{
    super::{
        DynAny,
        discriminator::{discriminator_with, label_of, value_without_member},
        dyn_any::{Link, State, Value, ValueId},
        leaf::Leaf,
        limits::Meter,
        members::{has_names, members_of},
    },
    base64,
    context::TextContext,
    number::{self, float},
    scan::{Scanner, TextError},
    strict,
    tree::{self, Form, Member, Members, Node},
    type_form,
};
use crate::ValueTypes;

impl DynAny {
    /// Parses a value of this type from its text form or its JSON form, which is a part of the former. A
    /// string or a reference that is the whole value needs no quotes.
    ///
    /// ```
    /// use spandrel_cdr::TypeCode;
    /// use spandrel_dynamic::DynAny;
    ///
    /// let members = [("x", TypeCode::LONG), ("names", TypeCode::sequence(&TypeCode::STRING, 0)?)];
    /// let of = TypeCode::structure("IDL:Point:1.0", "Point", &members)?;
    /// let value = DynAny::from_text(&of, r#"{names: ["a", "b"], x: -3}"#)?;
    /// assert_eq!(value.to_string(), r#"{x: -3, names: ["a", "b"]}"#);
    /// assert_eq!(value.to_json()?, r#"{"x":-3,"names":["a","b"]}"#);
    /// assert_eq!(DynAny::from_text(&of, &value.to_json()?)?, value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Text that is not a value of the type; references other than `null` and `IOR:`, values of derived types,
    /// and named types of `any`s, for which [`from_text_with`](Self::from_text_with) is needed.
    pub fn from_text(type_code: &TypeCode, text: &str) -> Result<Self, TextError> {
        Self::from_text_with(type_code, text, &TextContext::new())
    }

    /// As [`DynAny::from_text`], with the names that the text may use.
    ///
    /// ```
    /// use spandrel_cdr::{TypeCode, ValueModifier, Visibility};
    /// use spandrel_dynamic::{DynAny, TextContext, ValueTypes};
    ///
    /// let link = TypeCode::recursive("IDL:Node:1.0")?;
    /// let members = [("name", TypeCode::STRING, Visibility::Public), ("next", link, Visibility::Public)];
    /// let node = TypeCode::value("IDL:Node:1.0", "Node", ValueModifier::None, None, &members)?;
    /// let types = ValueTypes::from_iter([&node]);
    ///
    /// let text = r#"{_id: 1, _type: "IDL:Node:1.0", name: "turn", next: {_ref: 1}}"#;
    /// let context = TextContext::new().value_types(&types);
    /// let value = DynAny::from_text_with(&TypeCode::value_base(), text, &context)?;
    /// assert_eq!(value.to_string(), text);
    /// assert_eq!(DynAny::new(&value.to_any()?)?, value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Text that is not a value of the type; the errors of the context's function for references.
    pub fn from_text_with(type_code: &TypeCode, text: &str, context: &TextContext<'_>) -> Result<Self, TextError> {
        let mut reader = Reader {
            context,
            meter: Meter::new(Self::COMPONENTS),
            numbered: HashMap::new(),
            local_types: ValueTypes::new(),
            is_in_any: false,
        };
        let resolved = type_code.without_aliases();
        let is_bare = Scanner::new(text).peek().is_none_or(|first| first != '"');
        match resolved.kind() {
            TcKind::String | TcKind::WString if is_bare => {
                reader.texts(&resolved, text, 0).map(|value| Self::made_of(type_code, value))
            }
            // A URL may contain commas.
            TcKind::ObjRef if is_bare => reader
                .reference_at(text.trim(), 0)
                .map(|object| Self::made_of(type_code, Value::Leaf(Leaf::Reference(object)))),
            _ => reader.value(type_code, tree::parse(text)?),
        }
    }
}

/// Names with a leading underscore: no names of members, from which IDL removes it.
const TYPE: &str = "_type";
const ID: &str = "_id";
const REF: &str = "_ref";
const VALUE: &str = "_value";
const DISCRIMINATOR: &str = "_d";

struct Reader<'c> {
    context: &'c TextContext<'c>,
    meter: Meter,
    /// Values with an `_id`.
    numbered: HashMap<u32, Link>,
    /// The value types that the text describes in the `any` around the value.
    local_types: ValueTypes,
    /// Whether the value is inside of an `any`.
    is_in_any: bool,
}

/// The beginning of a value of a value type.
enum ParsedStart<'t> {
    /// A value that has no state to read.
    Complete(Value),
    State {
        type_code: TypeCode,
        id: ValueId,
        content: Content<'t>,
    },
}

/// The state of a value of a value type.
enum Content<'t> {
    Box(Node<'t>),
    Members(Members<'t>),
    /// Members in the order of their declaration.
    Positional(Node<'t>),
}

/// The beginning of an `any`.
enum ParsedAny<'t> {
    Complete(Any),
    WithType(TypeCode, Node<'t>),
}

fn failed<T>(at: usize, message: impl Into<String>) -> Result<T, TextError> {
    Err(TextError { message: message.into(), at })
}

/// Adds a position to the error of an operation.
fn located<T>(at: usize, result: Result<T, impl ToString>) -> Result<T, TextError> {
    result.map_err(|error| TextError { message: error.to_string(), at })
}

impl Reader<'_> {
    fn value(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<DynAny, TextError> {
        located(node.at, self.meter.enter())?;
        let value = self.of_type(type_code, node);
        self.meter.leave();
        Ok(DynAny::made_of(type_code, value?))
    }

    // A recursive function with a small frame: values nest to a depth of hundreds.
    fn of_type(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        let type_code = type_code.without_aliases();
        check_untyped(&type_code, &node)?;
        if self.context.is_strict {
            strict::check(&type_code, &node, self.is_in_any)?;
        }
        match type_code.kind() {
            TcKind::Struct | TcKind::Except => self.structure(&type_code, node).map(Value::Parts),
            TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface => {
                self.value_type(&type_code, node)
            }
            TcKind::Sequence | TcKind::Array => self.elements(&type_code, node),
            TcKind::Union => self.union(&type_code, node),
            TcKind::Any => self.any(node),
            _ => self.simple(&type_code, node),
        }
    }

    /// A value without components.
    fn simple(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        match (type_code.kind(), node.form) {
            (TcKind::String | TcKind::WString, Form::Text(text)) => self.texts(type_code, &text, node.at),
            (TcKind::String | TcKind::WString, _) => failed(node.at, "expected text in quotes"),
            (TcKind::TypeCode, form) => type_form::read(Node { at: node.at, form }, self.context.types)
                .map(|type_code| Value::Leaf(Leaf::TypeCode(type_code))),
            (TcKind::Null | TcKind::Void, Form::Word("null" | "void")) => Ok(Value::Nothing),
            (TcKind::Null | TcKind::Void, _) => failed(node.at, "expected `null`"),
            (_, form) => self.leaf(type_code, Node { at: node.at, form }).map(Value::Leaf),
        }
    }

    fn texts(&self, type_code: &TypeCode, text: &str, at: usize) -> Result<Value, TextError> {
        let mut value = located(at, DynAny::of_type(type_code))?;
        let inserted = match type_code.kind() {
            TcKind::String => value.insert_string(text),
            _ => value.insert_wstring(text),
        };
        located(at, inserted)?;
        Ok(value.value)
    }

    /// A value of a value type.
    fn value_type(&mut self, declared: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        let at = node.at;
        let (type_code, id, content) = match self.begin_value(declared, node)? {
            ParsedStart::Complete(value) => return Ok(value),
            ParsedStart::State { type_code, id, content } => (type_code, id, content),
        };
        located(at, self.meter.enter_value())?;
        let parts = match content {
            Content::Box(node) => self.boxed(&type_code, node),
            Content::Positional(Node { at, form: Form::List(nodes) }) => self.positional(&type_code, nodes, at),
            Content::Positional(node) => failed(node.at, "expected `[`"),
            Content::Members(members) => self.members(&type_code, members),
        };
        self.meter.leave_value();
        Ok(Value::State(State { id, type_code, parts: parts? }))
    }

    /// Interprets a value up to its members, or the content of its box.
    fn begin_value<'t>(&mut self, declared: &TypeCode, node: Node<'t>) -> Result<ParsedStart<'t>, TextError> {
        let at = node.at;
        let is_box = declared.kind() == TcKind::ValueBox;
        let mut members = match node.form {
            Form::Word("null") => return Ok(ParsedStart::Complete(Value::Nothing)),
            Form::Members(members) if !is_box || [TYPE, ID, REF, VALUE].iter().any(|name| members.has(name)) => members,
            // Without a head, the content stands for the box.
            _ if is_box => {
                let content = Content::Box(node);
                return Ok(ParsedStart::State { type_code: declared.clone(), id: ValueId::new(), content });
            }
            Form::Word(_) | Form::Text(_) if declared.kind() == TcKind::AbstractInterface => {
                return self.reference(&node).map(|object| ParsedStart::Complete(Value::Leaf(Leaf::Reference(object))));
            }
            _ => return failed(at, "expected `{`"),
        };
        if let Some(node) = members.take(REF)? {
            members.end()?;
            return self.repeated(declared, &node).map(|link| ParsedStart::Complete(Value::Link(link)));
        }
        let type_code = match members.take(TYPE)? {
            Some(node) => {
                let type_code = self.named_type(declared, node)?;
                if is_unspecific(&type_code) {
                    return failed(at, format!("`{}` has no values of its own", id_of(&type_code)));
                }
                type_code
            }
            None if is_unspecific(declared) => {
                return failed(at, format!("`_type` is needed for the type of the `{}`", id_of(declared)));
            }
            None => declared.clone(),
        };
        let id = ValueId::new();
        if let Some(node) = members.take(ID)? {
            let number = type_form::integer_of(&node)?;
            if self.numbered.insert(number, Link { id, type_code: type_code.clone() }).is_some() {
                return failed(node.at, format!("`_id: {number}` occurs twice"));
            }
        }
        let content = match (members.take(VALUE)?, type_code.kind()) {
            (None, TcKind::ValueBox) => return failed(at, "expected `_value`, the content of the box"),
            (None, _) => Content::Members(members),
            (Some(node), kind) => {
                members.end()?;
                if kind == TcKind::ValueBox { Content::Box(node) } else { Content::Positional(node) }
            }
        };
        Ok(ParsedStart::State { type_code, id, content })
    }

    fn boxed(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Vec<DynAny>, TextError> {
        let content = located(node.at, type_code.content_type())?;
        Ok(vec![self.value(&content, node)?])
    }

    /// The type named by `_type`, which must be permitted for the declared type.
    fn named_type(&mut self, declared: &TypeCode, node: Node<'_>) -> Result<TypeCode, TextError> {
        let at = node.at;
        let type_code = if let Form::Members(_) = node.form {
            let type_code = type_form::read(node, self.context.types)?;
            self.local_types.add(&type_code);
            type_code
        } else {
            let id = type_form::text_of(node)?;
            let candidate = if declared.id() == Ok(&*id) { Some(declared) } else { self.local_types.get(&id) };
            let candidate = candidate.or_else(|| self.context.value_types?.get(&id)).cloned();
            match candidate.or_else(|| (self.context.types)(&id)) {
                Some(type_code) => type_code,
                None => return failed(at, format!("unknown value type `{id}`")),
            }
        };
        if !type_code.derives_from(declared) {
            return failed(at, format!("`{}` does not derive from `{}`", id_of(&type_code), id_of(declared)));
        }
        Ok(type_code.without_aliases())
    }

    /// The target of `_ref`.
    fn repeated(&self, declared: &TypeCode, node: &Node<'_>) -> Result<Link, TextError> {
        let number: u32 = type_form::integer_of(node)?;
        match self.numbered.get(&number) {
            None => failed(node.at, format!("no earlier value has `_id: {number}`")),
            Some(link) if !link.type_code.derives_from(declared) => {
                failed(node.at, format!("the value with `_id: {number}` is not a `{}`", id_of(declared)))
            }
            Some(link) => Ok(link.clone()),
        }
    }

    /// The members, by their names, or in order where the type code has no names.
    fn structure(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Vec<DynAny>, TextError> {
        match node.form {
            Form::Members(members) => self.members(type_code, members),
            Form::List(nodes) => self.positional(type_code, nodes, node.at),
            _ => failed(node.at, "expected `{`"),
        }
    }

    fn positional(&mut self, type_code: &TypeCode, nodes: Vec<Node<'_>>, at: usize) -> Result<Vec<DynAny>, TextError> {
        let members = located(at, members_of(type_code))?;
        if has_names(&members) {
            return failed(at, "expected `{`");
        }
        if nodes.len() != members.len() {
            return failed(at, format!("`{type_code}` has {} members, not {}", members.len(), nodes.len()));
        }
        members.iter().zip(nodes).map(|((_, type_code), node)| self.value(type_code, node)).collect()
    }

    fn members(&mut self, type_code: &TypeCode, nodes: Members<'_>) -> Result<Vec<DynAny>, TextError> {
        let members = located(nodes.end, members_of(type_code))?;
        let mut values: Vec<Option<DynAny>> = members.iter().map(|_| None).collect();
        for member in nodes.members {
            let index = place_of(&member, &members, &values)?;
            values[index] = Some(self.value(&members[index].1, member.value)?);
        }
        self.completed(&members, values, nodes.has_rest, nodes.end)
    }

    /// All members, those that were not given with their defaults, if permitted.
    fn completed(
        &mut self,
        members: &[(String, TypeCode)],
        values: Vec<Option<DynAny>>,
        has_rest: bool,
        at: usize,
    ) -> Result<Vec<DynAny>, TextError> {
        let parts = values.into_iter().zip(members).map(|(value, (name, type_code))| match value {
            Some(value) => Ok(value),
            None if has_rest => located(at, DynAny::default_of(type_code, &mut self.meter)),
            None => failed(at, format!("the member `{name}` is missing (`..` gives it its default)")),
        });
        parts.collect()
    }

    fn elements(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        let at = node.at;
        let element = located(at, type_code.content_type())?;
        let bound = located(at, type_code.length())? as usize;
        let is_octets = element.without_aliases().kind() == TcKind::Octet;
        let parts = match node.form {
            Form::List(nodes) => {
                nodes.into_iter().map(|node| self.value(&element, node)).collect::<Result<Vec<_>, _>>()?
            }
            Form::Text(text) if is_octets => {
                let Some(octets) = base64::decode(&text) else { return failed(at, "the text is not Base64") };
                let octets = octets.into_iter().map(|octet| {
                    located(at, self.meter.enter())?;
                    self.meter.leave();
                    Ok(DynAny::made_of(&element, Value::Leaf(Leaf::Octet(octet))))
                });
                octets.collect::<Result<Vec<_>, TextError>>()?
            }
            _ if is_octets => return failed(at, "expected `[`, or octets as Base64 in quotes"),
            _ => return failed(at, "expected `[`"),
        };
        let fits = match type_code.kind() {
            TcKind::Array => parts.len() == bound,
            _ => bound == 0 || parts.len() <= bound,
        };
        if fits {
            Ok(Value::Parts(parts))
        } else {
            failed(at, format!("`{type_code}` cannot have {} elements", parts.len()))
        }
    }

    fn union(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        let at = node.at;
        let Form::Members(mut nodes) = node.form else { return failed(at, "expected `{`") };
        let of_discriminator = located(at, type_code.discriminator_type())?;
        let discriminator = nodes.take(DISCRIMINATOR)?.map(|node| self.value(&of_discriminator, node)).transpose()?;
        let mut given_members = nodes.members.into_iter();
        let member = match given_members.next() {
            None => None,
            Some(Member { at, name, value }) => {
                let member_index = self.union_member(type_code, discriminator.as_ref(), &name, at)?;
                Some((member_index, at, self.value(&located(at, type_code.member_type(member_index))?, value)?))
            }
        };
        if let Some(Member { at, name, .. }) = given_members.next() {
            return failed(at, format!("a union has one member: unexpected `{name}`"));
        }
        self.selected(type_code, &of_discriminator, discriminator, member, at).map(Value::Parts)
    }

    /// The index of a union's member.
    fn union_member(
        &self,
        type_code: &TypeCode,
        discriminator: Option<&DynAny>,
        name: &str,
        at: usize,
    ) -> Result<usize, TextError> {
        // The member that the discriminator selects, where the type code has no names.
        if let (VALUE, Some(discriminator)) = (name, discriminator) {
            let selected = located(at, type_code.selected_member(located(at, label_of(discriminator))?))?;
            match selected {
                Some(member_index) if type_code.member_name(member_index).is_ok_and(str::is_empty) => {
                    return Ok(member_index);
                }
                Some(_) => {}
                None => return failed(at, "the discriminator selects no member"),
            }
        }
        let count = type_code.member_count().unwrap_or(0);
        let names = || (0..count).map(|index| type_code.member_name(index).unwrap_or_default());
        names().position(|member| member == name && !name.is_empty()).map_or_else(
            || {
                let mut member_names: Vec<&str> = names().collect();
                member_names.dedup();
                failed(at, format!("unknown member `{name}`: there are {}", listed(&member_names)))
            },
            Ok,
        )
    }

    /// The consistent pair of discriminator and member.
    fn selected(
        &self,
        type_code: &TypeCode,
        of_discriminator: &TypeCode,
        discriminator: Option<DynAny>,
        member: Option<(usize, usize, DynAny)>,
        at: usize,
    ) -> Result<Vec<DynAny>, TextError> {
        let discriminator = match (discriminator, &member) {
            (Some(discriminator), _) => discriminator,
            (None, Some((member_index, at, _))) => {
                let label = match type_code.member_label(*member_index) {
                    Ok(Label::Value(label)) => Some(label),
                    _ => located(*at, value_without_member(type_code))?,
                };
                let Some(label) = label else { return failed(*at, "no discriminator value selects this member") };
                located(*at, discriminator_with(of_discriminator, label))?
            }
            (None, None) => return failed(at, "a union needs a member, or `_d`"),
        };
        let label = located(at, label_of(&discriminator))?;
        let name = |index: usize| type_code.member_name(index).unwrap_or_default();
        match (located(at, type_code.selected_member(label))?, member) {
            (None, None) => Ok(vec![discriminator]),
            // A member of several labels is several in the type code.
            (Some(index), Some((member_index, _, value)))
                if index == member_index || (name(index) == name(member_index) && !name(index).is_empty()) =>
            {
                Ok(vec![discriminator, value])
            }
            (Some(index), _) => failed(at, format!("the discriminator selects the member `{}`", name(index))),
            (None, Some((member_index, at, _))) => {
                failed(at, format!("the discriminator does not select `{}`", name(member_index)))
            }
        }
    }

    fn leaf(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Leaf, TextError> {
        let integer = || type_form::integer_of::<i128>(&node);
        macro_rules! number {
            ($leaf:ident) => {{
                let value = integer()?;
                let Ok(value) = value.try_into() else {
                    return failed(node.at, format!("`{value}` is not an integer of this type: it is out of range"));
                };
                Leaf::$leaf(value)
            }};
        }
        Ok(match type_code.kind() {
            TcKind::Boolean => match word_of(&node)? {
                "true" | "TRUE" => Leaf::Boolean(true),
                "false" | "FALSE" => Leaf::Boolean(false),
                word => return failed(node.at, format!("expected `true` or `false`, not `{word}`")),
            },
            TcKind::Octet => number!(Octet),
            TcKind::Short => number!(Short),
            TcKind::UShort => number!(UShort),
            TcKind::Long => number!(Long),
            TcKind::ULong => number!(ULong),
            TcKind::LongLong => number!(LongLong),
            TcKind::ULongLong => number!(ULongLong),
            TcKind::Float => Leaf::Float(located(node.at, float(word_of(&node)?))?),
            TcKind::Double => Leaf::Double(located(node.at, float(word_of(&node)?))?),
            TcKind::LongDouble => Leaf::LongDouble(located(node.at, number::long_double(word_of(&node)?))?),
            TcKind::Char => match u8::try_from(u32::from(character(&node)?)) {
                Ok(code) => Leaf::Char(Char(code)),
                Err(_) => return failed(node.at, "the character is not in ISO 8859-1"),
            },
            TcKind::WChar => Leaf::WChar(character(&node)?),
            TcKind::Enum => self.enumerator(type_code, &node)?,
            TcKind::Fixed => self.fixed(type_code, &node)?,
            TcKind::ObjRef | TcKind::Component | TcKind::Home => Leaf::Reference(self.reference(&node)?),
            kind => return failed(node.at, format!("values of kind {kind} have no text form")),
        })
    }

    fn enumerator(&self, type_code: &TypeCode, node: &Node<'_>) -> Result<Leaf, TextError> {
        let name = word_of(node)?;
        let mut value = located(node.at, DynAny::of_type(type_code))?;
        let mut view = located(node.at, value.as_enum())?;
        if view.set_as_string(name).is_ok() {
            return Ok(Leaf::Enum(view.as_ulong()));
        }
        // The position, where the type code has no names.
        let is_nameless = type_code.member_name(0).is_ok_and(str::is_empty);
        match name.parse() {
            Ok(position) if is_nameless && view.set_as_ulong(position).is_ok() => Ok(Leaf::Enum(position)),
            _ => failed(node.at, format!("`{type_code}` has no enumerator `{name}`")),
        }
    }

    fn fixed(&self, type_code: &TypeCode, node: &Node<'_>) -> Result<Leaf, TextError> {
        let word = word_of(node)?;
        let mut value = located(node.at, DynAny::of_type(type_code))?;
        let set = value.as_fixed().and_then(|mut value| value.set_value(word).map(|whole| (whole, value.decimal())));
        match set {
            Ok((true, decimal)) => Ok(Leaf::Fixed(decimal)),
            Ok((false, _)) => failed(node.at, format!("`{type_code}` cannot hold all digits of `{word}`")),
            Err(_) => failed(node.at, format!("`{word}` is not a `{type_code}`")),
        }
    }

    fn reference(&self, node: &Node<'_>) -> Result<Ior, TextError> {
        self.reference_at(word_of(node)?, node.at)
    }

    fn reference_at(&self, url: &str, at: usize) -> Result<Ior, TextError> {
        match url {
            "null" => Ok(Ior::default()),
            "" => failed(at, "expected a URL of an object, or `null`"),
            _ => {
                (self.context.references)(url).or_else(|reason| failed(at, format!("cannot resolve `{url}`: {reason}")))
            }
        }
    }

    /// An `any` with a value of a named type, or of the one that its form implies.
    fn any(&mut self, node: Node<'_>) -> Result<Value, TextError> {
        match self.begin_any(node)? {
            ParsedAny::Complete(any) => Ok(Value::Leaf(Leaf::Any(any))),
            ParsedAny::WithType(type_code, node) => self.any_of(&type_code, node),
        }
    }

    fn begin_any<'t>(&self, node: Node<'t>) -> Result<ParsedAny<'t>, TextError> {
        let at = node.at;
        match node.form {
            Form::Word("null") => Ok(ParsedAny::Complete(Any::default())),
            Form::Text(text) => located(at, Any::new(&text)).map(ParsedAny::Complete),
            Form::Word(word) => implied(word, at).map(ParsedAny::Complete),
            // An `any` in an `any`, with its own type.
            Form::TypedValue(type_code, value)
                if type_code.strip_prefix("any").is_some_and(|rest| rest.starts_with(char::is_whitespace)) =>
            {
                let form = Form::TypedValue(type_code["any".len()..].trim_start(), value);
                Ok(ParsedAny::WithType(TypeCode::ANY, Node { at, form }))
            }
            Form::TypedValue(type_code, value) => {
                let type_code = located(at, type_form::read_spec(type_code, self.context.types, 0))?;
                Ok(ParsedAny::WithType(type_code, *value))
            }
            Form::Members(mut parts) if parts.has(TYPE) => {
                let type_code = parts.take(TYPE)?.map(|node| type_form::read(node, self.context.types)).transpose()?;
                let value = parts.take(VALUE)?;
                parts.end()?;
                let (Some(type_code), Some(value)) = (type_code, value) else {
                    return failed(at, "expected `_value` beside `_type`");
                };
                Ok(ParsedAny::WithType(type_code, value))
            }
            _ => failed(at, TYPE_NEEDED),
        }
    }

    /// An `any` with a value of this type. Its values are not shared with those outside.
    fn any_of(&mut self, type_code: &TypeCode, node: Node<'_>) -> Result<Value, TextError> {
        let at = node.at;
        let outer = (mem::take(&mut self.numbered), self.local_types.clone(), mem::replace(&mut self.is_in_any, true));
        self.local_types.add(type_code);
        let value = self.value(type_code, node);
        (self.numbered, self.local_types, self.is_in_any) = outer;
        located(at, value?.to_any()).map(|any| Value::Leaf(Leaf::Any(any)))
    }
}

/// Checks that only an `any` has a type before its value.
fn check_untyped(type_code: &TypeCode, node: &Node<'_>) -> Result<(), TextError> {
    match &node.form {
        Form::TypedValue(before, value) if !matches!(type_code.kind(), TcKind::Any | TcKind::TypeCode) => {
            failed(value.at, format!("unexpected text after the value `{before}`"))
        }
        _ => Ok(()),
    }
}

/// The place of a member that has not occurred yet.
fn place_of(
    member: &Member<'_>,
    members: &[(String, TypeCode)],
    values: &[Option<DynAny>],
) -> Result<usize, TextError> {
    let Member { at, name, .. } = member;
    let Some(index) = members.iter().position(|(candidate, _)| candidate == name) else {
        let member_names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        return failed(*at, format!("unknown member `{name}`: there are {}", listed(&member_names)));
    };
    if values[index].is_some() {
        return failed(*at, format!("the member `{name}` occurs twice"));
    }
    Ok(index)
}

const TYPE_NEEDED: &str = "the type of the value cannot be determined: write it before the value, as in `long 3`, \
     `sequence<long> [1, 2]` or `Bank::Entry {…}`";

/// A value of the type that a word implies.
fn implied(word: &str, at: usize) -> Result<Any, TextError> {
    let result = if let Ok(value) = word.parse::<bool>() {
        Any::new(value)
    } else if let Ok(value) = word.parse::<i32>() {
        Any::new(value)
    } else if let Ok(value) = word.parse::<i64>() {
        Any::new(value)
    } else {
        match float::<f64>(word) {
            Ok(value) => Any::new(value),
            Err(error) if number::is_number(word) => return failed(at, error),
            Err(_) => return failed(at, format!("the type of `{word}` cannot be determined: {TYPE_NEEDED}")),
        }
    };
    located(at, result)
}

/// A word, also in quotes.
fn word_of<'n>(node: &'n Node<'_>) -> Result<&'n str, TextError> {
    match &node.form {
        Form::Word(word) => Ok(word),
        Form::Text(text) => Ok(text),
        _ => failed(node.at, "expected a value without components"),
    }
}

fn character(node: &Node<'_>) -> Result<char, TextError> {
    let mut characters = word_of(node)?.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => failed(node.at, "expected one character"),
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn id_of(type_code: &TypeCode) -> &str {
    type_code.id().unwrap_or_default()
}

/// Whether the declared type has no state of its own.
fn is_unspecific(declared: &TypeCode) -> bool {
    declared.kind() == TcKind::AbstractInterface
        || declared.type_modifier() == Ok(ValueModifier::Abstract)
        || declared.id() == TypeCode::value_base().id()
}
