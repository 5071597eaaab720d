//! The kinds of proxies: side, style and form of events.

use spandrel::services::cos_notify_channel_admin::{ClientType, ProxyType};

/// The side of a channel on which a peer is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Suppliers,
    Consumers,
}

/// The form of events that a peer passes or gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EventForm {
    /// By the interfaces of the event service, without those of the notification service.
    EventService,
    Any,
    Structured,
    Sequence,
    /// By calls of the operations of an interface.
    Typed,
}

impl From<ClientType> for EventForm {
    fn from(client: ClientType) -> Self {
        match client {
            ClientType::AnyEvent => Self::Any,
            ClientType::StructuredEvent => Self::Structured,
            ClientType::SequenceEvent => Self::Sequence,
        }
    }
}

/// The interface of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProxyKind {
    pub(crate) side: Side,
    /// Whether events are pushed from supplier to channel, or from channel to consumer.
    pub(crate) is_push: bool,
    pub(crate) form: EventForm,
}

impl ProxyKind {
    pub(crate) fn proxy_type(self) -> ProxyType {
        match (self.is_push, self.form) {
            (true, EventForm::EventService | EventForm::Any) => ProxyType::PushAny,
            (false, EventForm::EventService | EventForm::Any) => ProxyType::PullAny,
            (true, EventForm::Structured) => ProxyType::PushStructured,
            (false, EventForm::Structured) => ProxyType::PullStructured,
            (true, EventForm::Sequence) => ProxyType::PushSequence,
            (false, EventForm::Sequence) => ProxyType::PullSequence,
            (true, EventForm::Typed) => ProxyType::PushTyped,
            (false, EventForm::Typed) => ProxyType::PullTyped,
        }
    }

    /// Whether the peer calls the proxy to pass or get events.
    pub(crate) fn is_called(self) -> bool {
        self.is_push == (self.side == Side::Suppliers)
    }

    /// The operation by which the peer learns of a disconnection.
    pub(crate) fn disconnect_of_peer(self) -> &'static str {
        match (self.side, self.is_push, self.form) {
            (Side::Suppliers, true, EventForm::EventService | EventForm::Any | EventForm::Typed) => {
                "disconnect_push_supplier"
            }
            (Side::Suppliers, true, EventForm::Structured) => "disconnect_structured_push_supplier",
            (Side::Suppliers, true, EventForm::Sequence) => "disconnect_sequence_push_supplier",
            (Side::Suppliers, false, EventForm::EventService | EventForm::Any | EventForm::Typed) => {
                "disconnect_pull_supplier"
            }
            (Side::Suppliers, false, EventForm::Structured) => "disconnect_structured_pull_supplier",
            (Side::Suppliers, false, EventForm::Sequence) => "disconnect_sequence_pull_supplier",
            (Side::Consumers, true, EventForm::EventService | EventForm::Any | EventForm::Typed) => {
                "disconnect_push_consumer"
            }
            (Side::Consumers, true, EventForm::Structured) => "disconnect_structured_push_consumer",
            (Side::Consumers, true, EventForm::Sequence) => "disconnect_sequence_push_consumer",
            (Side::Consumers, false, EventForm::EventService | EventForm::Any | EventForm::Typed) => {
                "disconnect_pull_consumer"
            }
            (Side::Consumers, false, EventForm::Structured) => "disconnect_structured_pull_consumer",
            (Side::Consumers, false, EventForm::Sequence) => "disconnect_sequence_pull_consumer",
        }
    }
}
