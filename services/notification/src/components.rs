//! The components of events, as constraints name them (Notification Service 1.1, 2.4).

use std::cell::{Cell, OnceCell};
use std::time::SystemTime;

use spandrel::policy::UtcT;
use spandrel::services::cos_notification::{Property, StructuredEvent};
use spandrel::types::{Any, TcKind, TypeCode};
use spandrel_constraint::{ComponentPart, Properties, UnionLabel, Value, component_parts};

use crate::content::Content;

/// The value to which component names refer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Filterable<'e> {
    Any(&'e Any),
    Structured(&'e StructuredEvent),
    /// The members of a typed event, by their names.
    Members(&'e [Property]),
}

impl<'e> From<&'e Content> for Filterable<'e> {
    fn from(content: &'e Content) -> Self {
        match content {
            Content::Any(value) => Self::Any(value),
            Content::Structured(event) => Self::Structured(event),
        }
    }
}

/// The components of an event, with a bound of the octets that are read for them.
#[derive(Debug)]
pub(crate) struct Components<'e> {
    event: Filterable<'e>,
    reads: Cell<usize>,
    /// The structured event as a value of its IDL type, for names that need one.
    whole: OnceCell<Option<Any>>,
}

impl<'e> Components<'e> {
    pub(crate) fn new(event: Filterable<'e>, reads: usize) -> Self {
        Self { event, reads: Cell::new(reads), whole: OnceCell::new() }
    }

    fn charge(&self, octets: usize) -> Option<()> {
        let rest = self.reads.get().checked_sub(octets);
        // Beyond the bound, no further component is read.
        self.reads.set(rest.unwrap_or_default());
        rest.map(drop)
    }

    /// The component, with all its parts.
    fn component(&self, name: &str) -> Option<Component<'e>> {
        let parts: Vec<ComponentPart<'_>> = component_parts(name).collect();
        if let [ComponentPart::Variable("curtime"), rest @ ..] = &*parts {
            return match rest {
                [] | [ComponentPart::Member("time")] => {
                    let now = UtcT::from_system_time(SystemTime::now())?;
                    Some(Component::Value(Value::Integer(now.time.into())))
                }
                _ => None,
            };
        }
        match self.event {
            Filterable::Any(value) => match &*parts {
                // A member of the value, or a named value in it.
                [ComponentPart::Variable(name), rest @ ..] => self
                    .walk(value.clone(), &[ComponentPart::Member(name)])
                    .or_else(|| self.walk(value.clone(), &[ComponentPart::Named(name)]))
                    .and_then(|member| self.walk(member, rest)),
                parts => self.walk(value.clone(), parts),
            }
            .map(Component::Any),
            Filterable::Members(members) => match &*parts {
                [
                    ComponentPart::Variable(name) | ComponentPart::Member(name) | ComponentPart::Named(name),
                    rest @ ..,
                ] => self.named(members, name, rest),
                _ => None,
            },
            Filterable::Structured(event) => self.of_structured(event, &parts),
        }
    }

    fn of_structured(&self, event: &'e StructuredEvent, parts: &[ComponentPart<'_>]) -> Option<Component<'e>> {
        use ComponentPart::{Length, Member, Variable};
        let header = &event.header;
        let event_type = &header.fixed_header.event_type;
        let text = |text: &'e str, rest: &[ComponentPart<'_>]| rest.is_empty().then(|| Component::Value(text.into()));
        match parts {
            [Variable("domain_name"), rest @ ..] => text(&event_type.domain_name, rest),
            [Variable("type_name"), rest @ ..] => text(&event_type.type_name, rest),
            [Variable("event_name"), rest @ ..] => text(&header.fixed_header.event_name, rest),
            [Variable(name), rest @ ..] => self
                .named(&header.variable_header, name, rest)
                .or_else(|| self.named(&event.filterable_data, name, rest)),
            [Member("header"), Member("fixed_header"), Member("event_name"), rest @ ..] => {
                text(&header.fixed_header.event_name, rest)
            }
            [Member("header"), Member("fixed_header"), Member("event_type"), Member("domain_name"), rest @ ..] => {
                text(&event_type.domain_name, rest)
            }
            [Member("header"), Member("fixed_header"), Member("event_type"), Member("type_name"), rest @ ..] => {
                text(&event_type.type_name, rest)
            }
            [Member("header"), Member("variable_header"), ComponentPart::Named(name), rest @ ..] => {
                self.named(&header.variable_header, name, rest)
            }
            [Member("filterable_data"), ComponentPart::Named(name), rest @ ..] => {
                self.named(&event.filterable_data, name, rest)
            }
            [Member("header"), Member("variable_header"), Length] => length(header.variable_header.len()),
            [Member("filterable_data"), Length] => length(event.filterable_data.len()),
            [Member("remainder_of_body"), rest @ ..] => {
                self.walk(event.remainder_of_body.clone(), rest).map(Component::Any)
            }
            // Positions, indices and types: the event as a value of its IDL type.
            parts => {
                let whole = self.whole.get_or_init(|| Any::new(event).ok()).clone()?;
                self.walk(whole, parts).map(Component::Any)
            }
        }
    }

    fn named(&self, properties: &'e [Property], name: &str, rest: &[ComponentPart<'_>]) -> Option<Component<'e>> {
        let property = properties.iter().find(|property| property.name == name)?;
        self.walk(property.value.clone(), rest).map(Component::Any)
    }

    /// The component of a value; each step is charged with the octets of the value.
    fn walk(&self, value: Any, parts: &[ComponentPart<'_>]) -> Option<Any> {
        let mut value = self.unwrapped(value)?;
        for part in parts {
            // Elements are read one by one, each into memory of its own.
            let cost = if matches!(part, ComponentPart::Element(_) | ComponentPart::Named(_)) { 4 } else { 1 };
            self.charge(value.value().remaining().max(1).saturating_mul(cost))?;
            value = self.unwrapped(step(&value, part)?)?;
        }
        Some(value)
    }

    /// The value in nested `any`s; each level is charged with its octets.
    fn unwrapped(&self, mut value: Any) -> Option<Any> {
        while value.type_code().without_aliases().kind() == TcKind::Any {
            self.charge(value.value().remaining())?;
            value = value.extract::<Any>().ok()?;
        }
        Some(value)
    }
}

fn length(length: usize) -> Option<Component<'static>> {
    i128::try_from(length).ok().map(|length| Component::Value(Value::Integer(length)))
}

enum Component<'e> {
    Value(Value<'e>),
    Any(Any),
}

impl Properties for Components<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        match self.component(name)? {
            Component::Value(value) => Some(value),
            Component::Any(value) => {
                self.charge(value.value().remaining())?;
                leaf(&value)
            }
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.component(name).is_some()
    }

    fn is_default(&self, name: &str) -> bool {
        let Some(Component::Any(value)) = self.component(name) else { return false };
        let (type_code, Some(union)) = (value.type_code().without_aliases(), union(&value)) else { return false };
        union.selected.is_some() && type_code.default_index().ok().flatten() == union.selected
    }
}

fn leaf(value: &Any) -> Option<Value<'static>> {
    let type_code = value.type_code().without_aliases();
    match type_code.kind() {
        TcKind::Enum => {
            let index = usize::try_from(value.value().u32().ok()?).ok()?;
            Some(Value::Text(type_code.member_name(index).ok()?.to_owned().into()))
        }
        TcKind::Octet => Some(Value::Integer(value.value().u8().ok()?.into())),
        TcKind::Null | TcKind::Void => None,
        _ => Value::from_any(value).ok(),
    }
}

/// The discriminator of a union, and the index of its selected member.
struct UnionView {
    discriminator: Any,
    selected: Option<usize>,
}

fn union(value: &Any) -> Option<UnionView> {
    let type_code = value.type_code().without_aliases();
    if type_code.kind() != TcKind::Union {
        return None;
    }
    let discriminator = Any::read(type_code.discriminator_type().ok()?, &mut value.value()).ok()?;
    let selected = type_code.selected_member(label_number(&discriminator)?).ok()?;
    Some(UnionView { discriminator, selected })
}

fn label_number(discriminator: &Any) -> Option<i128> {
    let type_code = discriminator.type_code().without_aliases();
    let mut input = discriminator.value();
    match type_code.kind() {
        TcKind::Enum => input.u32().ok().map(i128::from),
        TcKind::Boolean => input.bool().ok().map(i128::from),
        TcKind::Char => input.u8().ok().map(i128::from),
        _ => match Value::from_any(discriminator).ok()? {
            Value::Integer(number) => Some(number),
            _ => None,
        },
    }
}

fn member(value: &Any, index: usize) -> Option<Any> {
    let type_code = value.type_code().without_aliases();
    let mut input = value.members();
    for before in 0..index {
        Any::read(type_code.member_type(before).ok()?, &mut input).ok()?;
    }
    Any::read(type_code.member_type(index).ok()?, &mut input).ok()
}

fn union_member(value: &Any, index: usize) -> Option<Any> {
    let type_code = value.type_code().without_aliases();
    let mut input = value.value();
    Any::read(type_code.discriminator_type().ok()?, &mut input).ok()?;
    Any::read(type_code.member_type(index).ok()?, &mut input).ok()
}

fn step(value: &Any, part: &ComponentPart<'_>) -> Option<Any> {
    let type_code = value.type_code().without_aliases();
    let kind = type_code.kind();
    let is_structure = matches!(kind, TcKind::Struct | TcKind::Except);
    match *part {
        ComponentPart::TypeId => Any::new(value.type_code().name().ok()?.to_owned()).ok(),
        ComponentPart::RepositoryId => Any::new(value.type_code().id().ok()?.to_owned()).ok(),
        ComponentPart::Member(name) | ComponentPart::Variable(name) => {
            if kind == TcKind::Union {
                let selected = union(value)?.selected?;
                return (type_code.member_name(selected).ok()? == name)
                    .then(|| union_member(value, selected))
                    .flatten();
            }
            let count = if is_structure { type_code.member_count().ok()? } else { 0 };
            let index = (0..count).find(|index| type_code.member_name(*index).is_ok_and(|other| other == name))?;
            member(value, index)
        }
        ComponentPart::Position(index) => {
            (is_structure && index < type_code.member_count().ok()?).then(|| member(value, index)).flatten()
        }
        ComponentPart::Discriminator => Some(union(value)?.discriminator),
        ComponentPart::Case(label) => {
            let view = union(value)?;
            let is_selected = match label {
                UnionLabel::Default => view.selected.is_some() && type_code.default_index().ok()? == view.selected,
                UnionLabel::Number(number) => label_number(&view.discriminator) == Some(number.into()),
                UnionLabel::Text(text) => {
                    matches!(leaf(&view.discriminator), Some(Value::Text(label)) if label == text)
                }
            };
            is_selected.then(|| union_member(value, view.selected?)).flatten()
        }
        ComponentPart::Length => {
            let length = elements(value)?.0;
            Any::new(u32::try_from(length).ok()?).ok()
        }
        ComponentPart::Element(index) => {
            let (length, content, mut input) = elements(value)?;
            if index >= length {
                return None;
            }
            for _ in 0..index {
                Any::read(content.clone(), &mut input).ok()?;
            }
            Any::read(content, &mut input).ok()
        }
        ComponentPart::Named(name) => {
            let (length, content, mut input) = elements(value)?;
            let resolved = content.without_aliases();
            let index = |field: &str| {
                let count = resolved.member_count().unwrap_or(0);
                (0..count).find(|index| resolved.member_name(*index).is_ok_and(|other| other == field))
            };
            let (name_index, value_index) = (index("name")?, index("value")?);
            for _ in 0..length {
                let element = Any::read(content.clone(), &mut input).ok()?;
                if member(&element, name_index)?.extract::<String>().is_ok_and(|other| other == name) {
                    return member(&element, value_index);
                }
            }
            None
        }
    }
}

/// The length of a sequence or array, the type of its elements, and a decoder at the first one.
fn elements(value: &Any) -> Option<(usize, TypeCode, spandrel_cdr::Decoder<'_>)> {
    let type_code = value.type_code().without_aliases();
    let mut input = value.value();
    let length = match type_code.kind() {
        TcKind::Sequence => input.u32().ok()?,
        TcKind::Array => type_code.length().ok()?,
        _ => return None,
    };
    Some((usize::try_from(length).ok()?, type_code.content_type().ok()?, input))
}
