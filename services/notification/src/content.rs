//! The contents of events, in their two forms.

use std::borrow::Cow;
use std::time::SystemTime;

use spandrel::policy::UtcT;
use spandrel::services::cos_notification::{
    self as names, EventHeader, EventType, FixedEventHeader, Property, StructuredEvent,
};
use spandrel::types::Any;

use crate::event_types::{ANY, TYPED};

/// The name of the first property of a call.
const OPERATION: &str = "operation";

/// The contents of an event.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Any(Any),
    Structured(Box<StructuredEvent>),
}

impl Content {
    /// An `any` that a supplier passes: one with a structured event is that event.
    pub(crate) fn from_any(value: &Any) -> Self {
        match value.extract::<StructuredEvent>() {
            Ok(event) => Self::Structured(Box::new(event)),
            Err(_) => Self::Any(value.clone()),
        }
    }

    /// The event of a call, with the absolute name of the operation and its arguments by their names.
    pub(crate) fn from_call(operation: &str, arguments: impl Iterator<Item = Property>) -> Self {
        let operation = Property { name: OPERATION.to_owned(), value: Any::new(operation).unwrap_or_default() };
        let event_type = EventType { domain_name: String::new(), type_name: TYPED.to_owned() };
        let fixed_header = FixedEventHeader { event_type, event_name: String::new() };
        Self::Structured(Box::new(StructuredEvent {
            header: EventHeader { fixed_header, variable_header: Vec::new() },
            filterable_data: std::iter::once(operation).chain(arguments).collect(),
            remainder_of_body: Any::default(),
        }))
    }

    /// The absolute name of the operation and the arguments, if the event is a call: its first property is `operation`.
    pub(crate) fn to_call(&self) -> Option<(String, Cow<'_, [Property]>)> {
        let properties = match self {
            Self::Structured(event) => Cow::Borrowed(&*event.filterable_data),
            Self::Any(value) => Cow::Owned(value.extract::<Vec<Property>>().ok()?),
        };
        let first = properties.first().filter(|first| first.name == OPERATION)?;
        Some((first.value.extract().ok()?, properties))
    }

    /// The event for a consumer of `any`. The encoding cannot fail: the event was encoded when it was received.
    pub(crate) fn as_any(&self) -> Cow<'_, Any> {
        match self {
            Self::Any(value) => Cow::Borrowed(value),
            Self::Structured(event) if event.header.fixed_header.event_type.type_name == TYPED => {
                Cow::Owned(Any::new(&event.filterable_data).unwrap_or_default())
            }
            Self::Structured(event) => Cow::Owned(Any::new(&**event).unwrap_or_default()),
        }
    }

    /// The event for a consumer of structured events: an `any` is the remainder of the body, and the type is `%ANY`.
    pub(crate) fn as_structured(&self) -> Cow<'_, StructuredEvent> {
        match self {
            Self::Structured(event) => Cow::Borrowed(event),
            Self::Any(value) => Cow::Owned(StructuredEvent {
                header: EventHeader {
                    fixed_header: FixedEventHeader {
                        event_type: EventType { domain_name: String::new(), type_name: ANY.to_owned() },
                        event_name: String::new(),
                    },
                    variable_header: Vec::new(),
                },
                filterable_data: Vec::new(),
                remainder_of_body: value.clone(),
            }),
        }
    }

    /// Domain and name of the event's type.
    pub(crate) fn event_type(&self) -> (&str, &str) {
        match self {
            Self::Any(_) => ("", ANY),
            Self::Structured(event) => {
                let event_type = &event.header.fixed_header.event_type;
                (&event_type.domain_name, &event_type.type_name)
            }
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&Any> {
        let Self::Structured(event) = self else { return None };
        let mut fields: std::slice::Iter<'_, Property> = event.header.variable_header.iter();
        fields.find(|property| property.name == name).map(|property| &property.value)
    }

    /// Whether the event is persistent by its own header.
    pub(crate) fn reliability(&self) -> Option<bool> {
        let reliability: i16 = self.header(names::EVENT_RELIABILITY)?.extract().ok()?;
        Some(reliability == names::PERSISTENT)
    }

    pub(crate) fn time(&self, name: &str) -> Option<SystemTime> {
        self.header(name)?.extract::<UtcT>().ok()?.to_system_time()
    }
}
