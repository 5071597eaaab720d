//! The services that are measured, by their names.

/// The services that are measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub(super) enum Contender {
    /// A fan-out in plain C whose consumers acknowledge each event
    C,
    /// The event service: values of 64 octets, in memory
    Event,
    /// The notification service with values, in memory
    NotificationAny,
    /// The notification service with structured events, in memory
    NotificationStructured,
    /// The notification service with sequences of 100 structured events, in memory
    NotificationSequence,
    /// Debian's omniEvents, with a cycle of 1 ms
    #[value(name = "omnievents")]
    OmniEvents,
    /// One channel of JacORB's event service
    JacorbEvent,
    /// JacORB's notification service by the interfaces of the event service
    JacorbAny,
    /// JacORB's notification service with structured events
    JacorbStructured,
    /// Debian's nats-server, without JetStream
    Nats,
    /// Debian's mosquitto, MQTT 3.1.1 with quality of service 0
    #[value(name = "mosquitto-0")]
    Mosquitto0,
    /// The same with quality of service 1
    #[value(name = "mosquitto-1")]
    Mosquitto1,
    /// One fdatasync for each event, without a service
    Fdatasync,
    /// The notification service with persistent events of one supplier
    #[value(name = "persistent-1")]
    Persistent1,
    /// The same with 64 suppliers
    #[value(name = "persistent-64")]
    Persistent64,
}

impl Contender {
    pub(super) const ALL: [Self; 15] = [
        Self::C,
        Self::Event,
        Self::NotificationAny,
        Self::NotificationStructured,
        Self::NotificationSequence,
        Self::OmniEvents,
        Self::JacorbEvent,
        Self::JacorbAny,
        Self::JacorbStructured,
        Self::Nats,
        Self::Mosquitto0,
        Self::Mosquitto1,
        Self::Fdatasync,
        Self::Persistent1,
        Self::Persistent64,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Event => "event",
            Self::NotificationAny => "notification-any",
            Self::NotificationStructured => "notification-structured",
            Self::NotificationSequence => "notification-sequence",
            Self::OmniEvents => "omnievents",
            Self::JacorbEvent => "jacorb-event",
            Self::JacorbAny => "jacorb-any",
            Self::JacorbStructured => "jacorb-structured",
            Self::Nats => "nats",
            Self::Mosquitto0 => "mosquitto-0",
            Self::Mosquitto1 => "mosquitto-1",
            Self::Fdatasync => "fdatasync",
            Self::Persistent1 => "persistent-1",
            Self::Persistent64 => "persistent-64",
        }
    }

    /// The suppliers of a contender whose events are on a disk.
    pub(super) fn suppliers(self) -> Option<usize> {
        match self {
            Self::Fdatasync | Self::Persistent1 => Some(1),
            Self::Persistent64 => Some(64),
            _ => None,
        }
    }

    pub(super) fn is_java(self) -> bool {
        matches!(self, Self::JacorbEvent | Self::JacorbAny | Self::JacorbStructured)
    }

    /// Whether events of one supplier may overtake one another: JacORB's notification service passes them by several
    /// threads.
    pub(super) fn may_disorder(self) -> bool {
        matches!(self, Self::JacorbAny | Self::JacorbStructured)
    }
}
