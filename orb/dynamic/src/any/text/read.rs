//! Parsing of values.

use std::{collections::HashMap, str::FromStr};

use spandrel_cdr::{Any, Char, Ior, Label, LongDouble, TcKind, TypeCode, ValueModifier};

use super::{
    super::{
        DynAny, DynAnyError,
        discriminator::{discriminator_with, label_of, value_without_member},
        dyn_any::{Link, State, Value, ValueId},
        leaf::Leaf,
        limits::Meter,
        members::members_of,
    },
    scan::{Scanner, TextError},
};
use crate::ValueTypes;

/// Resolves URLs.
type Resolve<'r> = &'r dyn Fn(&str) -> Result<Ior, String>;

impl DynAny {
    /// Parses a value of this type from text: similar to JSON, with the IDL's names. A string that is the
    /// whole value needs no quotes.
    ///
    /// ```
    /// use spandrel_cdr::TypeCode;
    /// use spandrel_dynamic::DynAny;
    ///
    /// let members = [("x", TypeCode::LONG), ("names", TypeCode::sequence(&TypeCode::STRING, 0)?)];
    /// let of = TypeCode::structure("IDL:Point:1.0", "Point", &members)?;
    /// let value = DynAny::from_text(&of, r#"{names: ["a", "b"], x: -3}"#)?;
    /// assert_eq!(value.to_string(), r#"{x: -3, names: ["a", "b"]}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Text that is not a value of the type; references other than `null`, and values of derived types, for
    /// which [`from_text_with`](Self::from_text_with) is needed.
    pub fn from_text(of: &TypeCode, text: &str) -> Result<Self, TextError> {
        let unresolved = |_: &str| Err("references cannot be resolved without an ORB".to_owned());
        Self::from_text_with(of, text, &ValueTypes::new(), &unresolved)
    }

    /// As [`DynAny::from_text`]. `value_types` are the permitted types of values where a base is declared,
    /// and `resolve` converts references in text form.
    ///
    /// ```
    /// use spandrel_cdr::{TypeCode, ValueModifier, Visibility};
    /// use spandrel_dynamic::{DynAny, ValueTypes};
    ///
    /// let link = TypeCode::recursive("IDL:Node:1.0")?;
    /// let members = [("name", TypeCode::STRING, Visibility::Public), ("next", link, Visibility::Public)];
    /// let node = TypeCode::value("IDL:Node:1.0", "Node", ValueModifier::None, None, &members)?;
    /// let types = ValueTypes::from_iter([&node]);
    ///
    /// let text = r#"{_id: 1, _type: "IDL:Node:1.0", name: "turn", next: {_ref: 1}}"#;
    /// let value = DynAny::from_text_with(&TypeCode::value_base(), text, &types, &|_| Err("no references".into()))?;
    /// assert_eq!(value.to_string(), text);
    /// assert_eq!(DynAny::new(&value.to_any()?)?, value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Text that is not a value of the type; the errors of `resolve`.
    pub fn from_text_with(
        of: &TypeCode,
        text: &str,
        value_types: &ValueTypes,
        resolve: &dyn Fn(&str) -> Result<Ior, String>,
    ) -> Result<Self, TextError> {
        let meter = Meter::new(Self::COMPONENTS);
        let mut reader = Reader { scanner: Scanner::new(text), resolve, meter, value_types, numbered: HashMap::new() };
        let is_bare = matches!(of.without_aliases().kind(), TcKind::String | TcKind::WString)
            && reader.scanner.peek() != Some('"');
        let value = if is_bare { reader.texts(&of.without_aliases(), text.to_owned()) } else { reader.value(of) };
        let value = match value {
            Ok(value) if is_bare => return Ok(Self::made_of(of, value.value)),
            other => other?,
        };
        reader.scanner.end()?;
        Ok(value)
    }
}

struct Reader<'t, 'r> {
    scanner: Scanner<'t>,
    resolve: Resolve<'r>,
    meter: Meter,
    value_types: &'r ValueTypes,
    /// Values with an `_id`.
    numbered: HashMap<u32, Link>,
}

/// The labels that may precede the members of a value.
#[derive(Default)]
struct ValueHead {
    of: Option<TypeCode>,
    number: Option<u32>,
    repeats: Option<Link>,
}

/// The beginning of a value before its members, or the content of its box.
enum ParsedStart {
    /// A complete value.
    Complete(Value),
    /// A box without a head: the content follows alone.
    Bare {
        of: TypeCode,
        id: ValueId,
    },
    Braced {
        of: TypeCode,
        id: ValueId,
    },
}

impl Reader<'_, '_> {
    fn value(&mut self, of: &TypeCode) -> Result<DynAny, TextError> {
        let at = self.scanner.at;
        self.meter.enter().map_err(|error| TextError { message: error.to_string(), at })?;
        let value = self.of_type(of);
        self.meter.leave();
        Ok(DynAny::made_of(of, value?))
    }

    // A recursive function with a small frame: values nest to a depth of hundreds.
    fn of_type(&mut self, of: &TypeCode) -> Result<Value, TextError> {
        let of = of.without_aliases();
        match of.kind() {
            TcKind::Struct | TcKind::Except => self.members(&of),
            TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface => self.value_type(&of),
            TcKind::Sequence | TcKind::Array => self.elements(&of),
            TcKind::Union => self.union(&of),
            TcKind::String | TcKind::WString => self.quoted_text(&of),
            _ => self.leaf(&of).map(Value::Leaf),
        }
    }

    fn quoted_text(&mut self, of: &TypeCode) -> Result<Value, TextError> {
        let text = self.scanner.string()?;
        self.texts(of, text).map(|value| value.value)
    }

    fn null(&mut self) -> bool {
        let before = self.scanner.at;
        let is_null = matches!(self.scanner.word(), Ok("null"));
        if !is_null {
            self.scanner.at = before;
        }
        is_null
    }

    fn refused(&self, error: &DynAnyError) -> TextError {
        self.scanner.error_here(error.to_string())
    }

    fn texts(&self, of: &TypeCode, text: String) -> Result<DynAny, TextError> {
        let mut value = DynAny::of_type(of).map_err(|error| self.refused(&error))?;
        let inserted = match of.kind() {
            TcKind::String => value.insert_string(&text),
            _ => value.insert_wstring(&text),
        };
        inserted.map_err(|error| self.refused(&error))?;
        Ok(value)
    }

    /// A value of a value type.
    fn value_type(&mut self, declared: &TypeCode) -> Result<Value, TextError> {
        let (of, id, is_bare) = match self.begin_value(declared)? {
            ParsedStart::Complete(value) => return Ok(value),
            ParsedStart::Bare { of, id } => (of, id, true),
            ParsedStart::Braced { of, id } => (of, id, false),
        };
        self.meter.enter_value().map_err(|error| self.refused(&error))?;
        let parts = match of.kind() {
            TcKind::ValueBox => self.boxed(&of, is_bare),
            _ => self.members_until_end(&of),
        };
        self.meter.leave_value();
        Ok(Value::State(State { id, of, parts: parts? }))
    }

    /// Parses up to the members of a value, or the content of its box.
    fn begin_value(&mut self, declared: &TypeCode) -> Result<ParsedStart, TextError> {
        if self.null() {
            return Ok(ParsedStart::Complete(Value::Nothing));
        }
        if declared.kind() == TcKind::AbstractInterface && self.scanner.peek() != Some('{') {
            return self.reference().map(|object| ParsedStart::Complete(Value::Leaf(Leaf::Reference(object))));
        }
        let (before, id) = (self.scanner.at, ValueId::new());
        let head = if self.scanner.eat('{') { self.value_head(declared)? } else { None };
        let head = match head {
            Some(head) => head,
            // Without a head, the content stands for the box.
            None if declared.kind() == TcKind::ValueBox => {
                self.scanner.at = before;
                return Ok(ParsedStart::Bare { of: declared.clone(), id });
            }
            None if self.scanner.at == before => return Err(self.scanner.error_here("expected `{`")),
            None => ValueHead::default(),
        };
        if let Some(link) = head.repeats {
            self.scanner.expect('}')?;
            return Ok(ParsedStart::Complete(Value::Link(link)));
        }
        let of = match head.of {
            Some(of) => of,
            None if is_unspecific(declared) => {
                return Err(self
                    .scanner
                    .error_here(format!("`_type` is needed for the type of the `{}`", id_of(declared))));
            }
            None => declared.clone(),
        };
        if let Some(number) = head.number
            && self.numbered.insert(number, Link { id, of: of.clone() }).is_some()
        {
            return Err(self.scanner.error_here(format!("`_id: {number}` occurs twice")));
        }
        Ok(ParsedStart::Braced { of, id })
    }

    /// The names with a leading underscore that begin a value; `None` without them.
    fn value_head(&mut self, declared: &TypeCode) -> Result<Option<ValueHead>, TextError> {
        let mut head = None;
        loop {
            let before = self.scanner.at;
            let key =
                if self.scanner.peek() == Some('}') { String::new() } else { self.scanner.key().unwrap_or_default() };
            if matches!(&*key, "_type" | "_id" | "_ref" | "_value") {
                head.get_or_insert_with(ValueHead::default);
            }
            let Some(found) = &mut head else {
                self.scanner.at = before;
                return Ok(None);
            };
            match &*key {
                "_type" => found.of = Some(self.named_type(declared)?),
                "_id" => found.number = Some(self.integer()?),
                "_ref" => found.repeats = Some(self.numbered(declared)?),
                _ => {
                    self.scanner.at = before;
                    return Ok(head);
                }
            }
            self.between('}')?;
        }
    }

    /// The type named by `_type`, which must be permitted for the declared type.
    fn named_type(&mut self, declared: &TypeCode) -> Result<TypeCode, TextError> {
        let id = match self.scanner.peek() {
            Some('"') => self.scanner.string()?,
            _ => self.scanner.word()?.to_owned(),
        };
        let known = if declared.id() == Ok(&*id) { Some(declared) } else { self.value_types.get(&id) };
        let of = known.ok_or_else(|| self.scanner.error_here(format!("unknown value type `{id}`")))?;
        if !of.derives_from(declared) {
            return Err(self.scanner.error_here(format!("`{id}` does not derive from `{}`", id_of(declared))));
        }
        Ok(of.without_aliases())
    }

    /// The target of `_ref`.
    fn numbered(&mut self, declared: &TypeCode) -> Result<Link, TextError> {
        let number: u32 = self.integer()?;
        let link = self.numbered.get(&number);
        let link = link.ok_or_else(|| self.scanner.error_here(format!("no earlier value has `_id: {number}`")))?;
        if !link.of.derives_from(declared) {
            return Err(self
                .scanner
                .error_here(format!("the value with `_id: {number}` is not a `{}`", id_of(declared))));
        }
        Ok(link.clone())
    }

    /// The content of a box, with the closing brace unless it stands alone.
    fn boxed(&mut self, of: &TypeCode, is_bare: bool) -> Result<Vec<DynAny>, TextError> {
        let content = of.content_type().map_err(|error| self.scanner.error_here(error.to_string()))?;
        if is_bare {
            return Ok(vec![self.value(&content)?]);
        }
        if self.scanner.key()? != "_value" {
            return Err(self.scanner.error_here("expected `_value`, the content of the box"));
        }
        let content = self.value(&content)?;
        self.between('}')?;
        self.scanner.expect('}')?;
        Ok(vec![content])
    }

    fn members(&mut self, of: &TypeCode) -> Result<Value, TextError> {
        self.scanner.expect('{')?;
        self.members_until_end(of).map(Value::Parts)
    }

    fn members_until_end(&mut self, of: &TypeCode) -> Result<Vec<DynAny>, TextError> {
        let members = members_of(of).map_err(|error| self.refused(&error))?;
        let mut found: Vec<Option<DynAny>> = members.iter().map(|_| None).collect();
        while !self.scanner.eat('}') {
            let place = self.member(&members, &found)?;
            found[place] = Some(self.value(&members[place].1)?);
            self.between('}')?;
        }
        let parts = found.into_iter().zip(&members).map(|(value, (name, _))| {
            value.ok_or_else(|| self.scanner.error_here(format!("the member `{name}` is missing")))
        });
        parts.collect()
    }

    /// Parses the name of a member that has not occurred yet.
    fn member(&mut self, members: &[(String, TypeCode)], found: &[Option<DynAny>]) -> Result<usize, TextError> {
        let key = self.scanner.key()?;
        let place = members.iter().position(|(name, _)| *name == key);
        match place {
            None => Err(self.scanner.error_here(format!("unknown member `{key}`"))),
            Some(place) if found[place].is_some() => {
                Err(self.scanner.error_here(format!("the member `{key}` occurs twice")))
            }
            Some(place) => Ok(place),
        }
    }

    /// Parses a comma, unless the end comes next.
    fn between(&mut self, end: char) -> Result<(), TextError> {
        if self.scanner.eat(',') || self.scanner.peek() == Some(end) {
            return Ok(());
        }
        Err(self.scanner.error_here(format!("expected `,` or `{end}`")))
    }

    fn elements(&mut self, of: &TypeCode) -> Result<Value, TextError> {
        let error_here =
            |error: spandrel_cdr::TypeCodeError, scanner: &Scanner<'_>| scanner.error_here(error.to_string());
        let element = of.content_type().map_err(|error| error_here(error, &self.scanner))?;
        let bound = of.length().map_err(|error| error_here(error, &self.scanner))? as usize;
        let mut parts = Vec::new();
        self.scanner.expect('[')?;
        while !self.scanner.eat(']') {
            parts.push(self.value(&element)?);
            self.between(']')?;
        }
        let fits = match of.kind() {
            TcKind::Array => parts.len() == bound,
            _ => bound == 0 || parts.len() <= bound,
        };
        if fits {
            Ok(Value::Parts(parts))
        } else {
            Err(self.scanner.error_here(format!("`{of}` cannot have {} elements", parts.len())))
        }
    }

    fn union(&mut self, of: &TypeCode) -> Result<Value, TextError> {
        let of_discriminator = of.discriminator_type().map_err(|error| self.scanner.error_here(error.to_string()))?;
        self.scanner.expect('{')?;
        let (mut discriminator, mut member) = (None, None);
        while !self.scanner.eat('}') {
            let key = self.scanner.key()?;
            if key == "_d" {
                discriminator = Some(self.value(&of_discriminator)?);
            } else {
                let named = |index: &usize| of.member_name(*index).is_ok_and(|name| name == key);
                let place = (0..of.member_count().unwrap_or(0)).find(named).filter(|_| member.is_none());
                let place = place.ok_or_else(|| self.scanner.error_here(format!("unknown member `{key}`")))?;
                let of_member = of.member_type(place).map_err(|error| self.scanner.error_here(error.to_string()))?;
                member = Some((key, place, self.value(&of_member)?));
            }
            self.between('}')?;
        }
        self.selected(of, &of_discriminator, discriminator, member).map(Value::Parts)
    }

    /// The consistent pair of discriminator and member.
    fn selected(
        &self,
        of: &TypeCode,
        of_discriminator: &TypeCode,
        discriminator: Option<DynAny>,
        member: Option<(String, usize, DynAny)>,
    ) -> Result<Vec<DynAny>, TextError> {
        let refused = |error: DynAnyError| self.refused(&error);
        let discriminator = match (discriminator, &member) {
            (Some(discriminator), _) => discriminator,
            (None, Some((_, place, _))) => {
                let label = match of.member_label(*place) {
                    Ok(Label::Value(label)) => Some(label),
                    _ => value_without_member(of).map_err(refused)?,
                };
                let label =
                    label.ok_or_else(|| self.scanner.error_here("no discriminator value selects this member"))?;
                discriminator_with(of_discriminator, label).map_err(refused)?
            }
            (None, None) => return Err(self.scanner.error_here("a union needs a member, or `_d`")),
        };
        let label = label_of(&discriminator).map_err(refused)?;
        let name = |index: usize| of.member_name(index).unwrap_or_default();
        let selected = of.selected_member(label).map_err(|error| self.scanner.error_here(error.to_string()))?;
        match (selected, member) {
            (None, None) => Ok(vec![discriminator]),
            (Some(index), Some((key, _, value))) if name(index) == key => Ok(vec![discriminator, value]),
            (Some(index), _) => {
                Err(self.scanner.error_here(format!("the discriminator selects the member `{}`", name(index))))
            }
            (None, Some((key, ..))) => {
                Err(self.scanner.error_here(format!("the discriminator does not select `{key}`")))
            }
        }
    }

    fn leaf(&mut self, of: &TypeCode) -> Result<Leaf, TextError> {
        Ok(match of.kind() {
            TcKind::Boolean => Leaf::Boolean(self.parsed("`true` or `false`")?),
            TcKind::Octet => Leaf::Octet(self.integer()?),
            TcKind::Short => Leaf::Short(self.integer()?),
            TcKind::UShort => Leaf::UShort(self.integer()?),
            TcKind::Long => Leaf::Long(self.integer()?),
            TcKind::ULong => Leaf::ULong(self.integer()?),
            TcKind::LongLong => Leaf::LongLong(self.integer()?),
            TcKind::ULongLong => Leaf::ULongLong(self.integer()?),
            TcKind::Float => Leaf::Float(self.float("float")?),
            TcKind::Double => Leaf::Double(self.float("double")?),
            // Parsed as `double`.
            TcKind::LongDouble => Leaf::LongDouble(LongDouble::from(self.float::<f64>("double")?)),
            TcKind::Char => {
                let code = u32::from(self.character()?);
                let code =
                    u8::try_from(code).map_err(|_| self.scanner.error_here("the character is not in ISO 8859-1"))?;
                Leaf::Char(Char(code))
            }
            TcKind::WChar => Leaf::WChar(self.character()?),
            TcKind::Enum => self.enumerator(of)?,
            TcKind::Fixed => return self.fixed(of),
            TcKind::Any => Leaf::Any(self.any()?),
            TcKind::ObjRef | TcKind::Component | TcKind::Home => Leaf::Reference(self.reference()?),
            kind => return Err(self.scanner.error_here(format!("values of kind {kind} have no text form"))),
        })
    }

    fn parsed<T: FromStr>(&mut self, what: &str) -> Result<T, TextError> {
        self.scanner.peek();
        let at = self.scanner.at;
        let word = self.scanner.word()?;
        word.parse().map_err(|_| TextError { message: format!("expected {what}, not `{word}`"), at })
    }

    /// A floating-point number; infinite only if written so.
    fn float<T: FromStr + Copy + Into<f64>>(&mut self, name: &str) -> Result<T, TextError> {
        self.scanner.peek();
        let at = self.scanner.at;
        let word = self.scanner.word()?;
        let message = match word.parse::<T>() {
            Ok(value) if overflows(word, value.into()) => format!("`{word}` is out of range for `{name}`"),
            Ok(value) => return Ok(value),
            Err(_) => format!("expected a number, not `{word}`"),
        };
        Err(TextError { message, at })
    }

    fn integer<T: TryFrom<i128>>(&mut self) -> Result<T, TextError> {
        self.scanner.peek();
        let at = self.scanner.at;
        let word = self.scanner.word()?;
        let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
        let number = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let number = number.ok().and_then(|number| T::try_from(sign * number).ok());
        number.ok_or_else(|| TextError { message: format!("`{word}` is not an integer of this type"), at })
    }

    fn character(&mut self) -> Result<char, TextError> {
        let text = self.scanner.string()?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.scanner.error_here("expected one character")),
        }
    }

    fn enumerator(&mut self, of: &TypeCode) -> Result<Leaf, TextError> {
        let name = match self.scanner.peek() {
            Some('"') => self.scanner.string()?,
            _ => self.scanner.word()?.to_owned(),
        };
        let mut value = DynAny::of_type(of).map_err(|error| self.refused(&error))?;
        let found = value.as_enum().and_then(|mut value| value.set_as_string(&name).map(|()| value.as_ulong()));
        found.map(Leaf::Enum).map_err(|_| self.scanner.error_here(format!("`{of}` has no enumerator `{name}`")))
    }

    fn fixed(&mut self, of: &TypeCode) -> Result<Leaf, TextError> {
        let word = self.scanner.word()?;
        let mut value = DynAny::of_type(of).map_err(|error| self.refused(&error))?;
        let set = value.as_fixed().and_then(|mut value| value.set_value(word).map(|whole| (whole, value.decimal())));
        match set {
            Ok((true, decimal)) => Ok(Leaf::Fixed(decimal)),
            Ok((false, _)) => Err(self.scanner.error_here(format!("`{of}` cannot hold all digits of `{word}`"))),
            Err(_) => Err(self.scanner.error_here(format!("`{word}` is not a `{of}`"))),
        }
    }

    fn reference(&mut self) -> Result<Ior, TextError> {
        if self.null() {
            return Ok(Ior::default());
        }
        let url = match self.scanner.peek() {
            Some('"') => self.scanner.string()?,
            // A URL with commas, for a list of addresses, needs quotes.
            _ => self.scanner.word()?.to_owned(),
        };
        (self.resolve)(&url).map_err(|why| self.scanner.error_here(format!("cannot resolve `{url}`: {why}")))
    }

    /// A value of the type that its form implies.
    fn any(&mut self) -> Result<Any, TextError> {
        if self.null() {
            return Ok(Any::default());
        }
        let made = if self.scanner.peek() == Some('"') {
            Any::new(&self.scanner.string()?)
        } else {
            let word = self.scanner.word()?;
            if let Ok(value) = word.parse::<bool>() {
                Any::new(&value)
            } else if let Ok(value) = word.parse::<i32>() {
                Any::new(&value)
            } else if let Ok(value) = word.parse::<i64>() {
                Any::new(&value)
            } else if let Ok(value) = word.parse::<f64>() {
                if overflows(word, value) {
                    return Err(self.scanner.error_here(format!("`{word}` is out of range for `double`")));
                }
                Any::new(&value)
            } else {
                return Err(self.scanner.error_here(format!("the type of `{word}` cannot be determined")));
            }
        };
        made.map_err(|error| self.scanner.error_here(error.to_string()))
    }
}

/// Whether digits were parsed as an infinite number.
fn overflows(word: &str, value: f64) -> bool {
    value.is_infinite() && word.contains(|letter: char| letter.is_ascii_digit())
}

fn id_of(of: &TypeCode) -> &str {
    of.id().unwrap_or_default()
}

/// Whether the declared type has no state of its own.
fn is_unspecific(declared: &TypeCode) -> bool {
    declared.kind() == TcKind::AbstractInterface
        || declared.type_modifier() == Ok(ValueModifier::Abstract)
        || declared.id() == TypeCode::value_base().id()
}
