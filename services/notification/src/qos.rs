//! The properties of quality of service of channels, administrators, proxies and events (Notification Service 1.1, 2.5).

use std::time::Duration;

use spandrel::services::cos_notification::{
    self as names, NamedPropertyRange, Property, PropertyError, PropertyRange, QoSErrorCode, UnsupportedQoS,
};
use spandrel::types::Any;
use spandrel_delivery::{BatchBounds, DiscardOrder, QueueOrder};

/// The object whose properties are set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Level {
    Channel,
    Administrator,
    Proxy,
    /// The variable header of an event.
    Event,
}

/// The reliability that an object can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reliability {
    /// The service has no store.
    BestEffort,
    /// The connections of the channel are best effort, and so are those of its members and its events.
    OfChannel,
    Persistent,
}

/// The properties that are set at an object; the others are those of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Qos {
    event_reliability: Option<i16>,
    connection_reliability: Option<i16>,
    pub(crate) priority: Option<i16>,
    /// In 100 ns; zero is none.
    timeout: Option<u64>,
    start_time_supported: Option<bool>,
    stop_time_supported: Option<bool>,
    order: Option<i16>,
    discard: Option<i16>,
    maximum_batch_size: Option<i32>,
    /// The longest time that a batch waits, in 100 ns.
    pacing_interval: Option<u64>,
    /// Zero is the bound of the service.
    max_events_per_consumer: Option<i32>,
}

/// The most events of a batch.
const MAX_BATCH: i32 = 10_000;
/// The longest queue that can be set.
const MAX_EVENTS: i32 = 1_000_000;
/// The longest pacing interval: an hour.
const MAX_PACING: u64 = 36_000_000_000;

/// A property with its bounds; the value of a `boolean` has none.
struct Row {
    name: &'static str,
    levels: &'static [Level],
    low: fn() -> Any,
    high: fn() -> Any,
    assign: fn(&mut Qos, &Any) -> Assigned,
    read: fn(&Qos) -> Option<Any>,
    default: fn() -> Any,
}

enum Assigned {
    Done,
    OtherType,
    /// The value is beyond the range.
    OutOfRange,
}

const OBJECTS: &[Level] = &[Level::Channel, Level::Administrator, Level::Proxy];
const ALL: &[Level] = &[Level::Channel, Level::Administrator, Level::Proxy, Level::Event];

/// The value of a basic type, which always has an encoding.
fn any<T: spandrel_cdr::Encode + spandrel_cdr::Typed>(value: T) -> Any {
    Any::new(value).unwrap_or_default()
}

macro_rules! row {
    ($name:expr, $levels:expr, $field:ident: $type:ty, $low:expr, $high:expr, $default:expr) => {
        Row {
            name: $name,
            levels: $levels,
            low: || any::<$type>($low),
            high: || any::<$type>($high),
            assign: |qos, value| match value.extract::<$type>() {
                Ok(value) if ($low..=$high).contains(&value) => {
                    qos.$field = Some(value);
                    Assigned::Done
                }
                Ok(_) => Assigned::OutOfRange,
                Err(_) => Assigned::OtherType,
            },
            read: |qos| qos.$field.map(any::<$type>),
            default: || any::<$type>($default),
        }
    };
}

static ROWS: [Row; 11] = [
    row!(names::EVENT_RELIABILITY, &[Level::Channel, Level::Event], event_reliability: i16, names::BEST_EFFORT, names::PERSISTENT, names::BEST_EFFORT),
    row!(names::CONNECTION_RELIABILITY, OBJECTS, connection_reliability: i16, names::BEST_EFFORT, names::PERSISTENT, names::BEST_EFFORT),
    row!(names::PRIORITY, ALL, priority: i16, names::LOWEST_PRIORITY, names::HIGHEST_PRIORITY, 0),
    row!(names::TIMEOUT, ALL, timeout: u64, 0, u64::MAX, 0),
    row!(names::START_TIME_SUPPORTED, OBJECTS, start_time_supported: bool, false, true, true),
    row!(names::STOP_TIME_SUPPORTED, OBJECTS, stop_time_supported: bool, false, true, true),
    row!(names::ORDER_POLICY, OBJECTS, order: i16, names::ANY_ORDER, names::DEADLINE_ORDER, names::PRIORITY_ORDER),
    row!(names::DISCARD_POLICY, OBJECTS, discard: i16, names::ANY_ORDER, names::LIFO_ORDER, names::ANY_ORDER),
    row!(names::MAXIMUM_BATCH_SIZE, OBJECTS, maximum_batch_size: i32, 1, MAX_BATCH, 1),
    row!(names::PACING_INTERVAL, OBJECTS, pacing_interval: u64, 0, MAX_PACING, 0),
    row!(names::MAX_EVENTS_PER_CONSUMER, OBJECTS, max_events_per_consumer: i32, 0, MAX_EVENTS, 0),
];

fn error(code: QoSErrorCode, name: &str, range: PropertyRange) -> PropertyError {
    PropertyError { code, name: name.to_owned(), available_range: range }
}

impl Row {
    fn is_reliability(&self) -> bool {
        self.name == names::EVENT_RELIABILITY || self.name == names::CONNECTION_RELIABILITY
    }

    fn range(&self, reliability: Reliability) -> PropertyRange {
        let is_lowest = self.is_reliability() && reliability != Reliability::Persistent;
        PropertyRange { low_val: (self.low)(), high_val: if is_lowest { (self.low)() } else { (self.high)() } }
    }
}

impl Qos {
    /// These properties with others in place of them; all or none.
    ///
    /// # Errors
    /// Each property that the level does not have, or whose value has another type or is out of range, with the range.
    /// Persistent events need persistent connections.
    pub(crate) fn with(
        mut self,
        properties: &[Property],
        level: Level,
        reliability: Reliability,
    ) -> Result<Self, UnsupportedQoS> {
        let mut errors = Vec::new();
        for Property { name, value } in properties {
            // These two are of events alone, and are read from them.
            let is_time = name == names::START_TIME || name == names::STOP_TIME;
            let Some(row) = ROWS.iter().find(|row| row.name == name) else {
                match (is_time, level) {
                    (true, Level::Event) if value.extract::<spandrel::policy::UtcT>().is_ok() => {}
                    (true, Level::Event) => errors.push(error(QoSErrorCode::BadType, name, PropertyRange::default())),
                    (true, _) => {
                        errors.push(error(QoSErrorCode::UnsupportedProperty, name, PropertyRange::default()));
                    }
                    (false, _) => errors.push(error(QoSErrorCode::BadProperty, name, PropertyRange::default())),
                }
                continue;
            };
            if !row.levels.contains(&level) {
                errors.push(error(QoSErrorCode::UnsupportedProperty, name, PropertyRange::default()));
                continue;
            }
            let range = || row.range(reliability);
            let is_persistent =
                row.is_reliability() && value.extract::<i16>().is_ok_and(|value| value == names::PERSISTENT);
            match ((row.assign)(&mut self, value), reliability) {
                (Assigned::Done, Reliability::BestEffort) if is_persistent => {
                    errors.push(error(QoSErrorCode::UnsupportedValue, name, range()));
                }
                (Assigned::Done, Reliability::OfChannel) if is_persistent => {
                    errors.push(error(QoSErrorCode::UnavailableValue, name, range()));
                }
                (Assigned::Done, _) => {}
                (Assigned::OtherType, _) => errors.push(error(QoSErrorCode::BadType, name, range())),
                (Assigned::OutOfRange, _) => errors.push(error(QoSErrorCode::UnsupportedValue, name, range())),
            }
        }
        if level == Level::Channel && errors.is_empty() && self.has_persistent_events() && !self.is_persistent() {
            let range = PropertyRange { low_val: any(names::BEST_EFFORT), high_val: any(names::BEST_EFFORT) };
            errors.push(error(QoSErrorCode::UnavailableValue, names::EVENT_RELIABILITY, range));
        }
        if errors.is_empty() { Ok(self) } else { Err(UnsupportedQoS { qos_err: errors }) }
    }

    /// The ranges of the properties of a level that a list does not have.
    pub(crate) fn further_ranges(
        properties: &[Property],
        level: Level,
        reliability: Reliability,
    ) -> Vec<NamedPropertyRange> {
        let is_listed = |row: &Row| properties.iter().any(|property| property.name == row.name);
        let further = ROWS.iter().filter(|row| row.levels.contains(&level) && !is_listed(row));
        further.map(|row| NamedPropertyRange { name: row.name.to_owned(), range: row.range(reliability) }).collect()
    }

    /// All properties of a level, with their defaults where they are not set.
    pub(crate) fn properties(&self, level: Level) -> Vec<Property> {
        let rows = ROWS.iter().filter(|row| row.levels.contains(&level));
        let value = |row: &Row| (row.read)(self).unwrap_or_else(row.default);
        rows.map(|row| Property { name: row.name.to_owned(), value: value(row) }).collect()
    }

    /// The properties that are set, as a record has them.
    pub(crate) fn recorded(&self) -> Vec<Property> {
        let property = |row: &Row| (row.read)(self).map(|value| Property { name: row.name.to_owned(), value });
        ROWS.iter().filter_map(property).collect()
    }

    /// Persistent connections and events.
    pub(crate) fn persistent() -> Self {
        let persistent = Some(names::PERSISTENT);
        Self { event_reliability: persistent, connection_reliability: persistent, ..Self::default() }
    }

    /// Whether connections outlive the process.
    pub(crate) fn is_persistent(&self) -> bool {
        self.connection_reliability == Some(names::PERSISTENT)
    }

    /// Whether events outlive the process, if their own header does not say otherwise.
    pub(crate) fn has_persistent_events(&self) -> bool {
        self.event_reliability == Some(names::PERSISTENT)
    }

    /// These properties, and those of the parent where they are not set.
    pub(crate) fn or(&self, parent: &Self) -> Self {
        Self {
            event_reliability: self.event_reliability.or(parent.event_reliability),
            connection_reliability: self.connection_reliability.or(parent.connection_reliability),
            priority: self.priority.or(parent.priority),
            timeout: self.timeout.or(parent.timeout),
            start_time_supported: self.start_time_supported.or(parent.start_time_supported),
            stop_time_supported: self.stop_time_supported.or(parent.stop_time_supported),
            order: self.order.or(parent.order),
            discard: self.discard.or(parent.discard),
            maximum_batch_size: self.maximum_batch_size.or(parent.maximum_batch_size),
            pacing_interval: self.pacing_interval.or(parent.pacing_interval),
            max_events_per_consumer: self.max_events_per_consumer.or(parent.max_events_per_consumer),
        }
    }

    /// Whether start and stop times of events count, alone.
    pub(crate) fn times(&self) -> Self {
        let (start_time_supported, stop_time_supported) = (self.start_time_supported, self.stop_time_supported);
        Self { start_time_supported, stop_time_supported, ..Self::default() }
    }

    /// The time for which an event lives; `None` if it is not set, zero without an end.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.timeout.map(span)
    }

    pub(crate) fn has_start_times(&self) -> bool {
        self.start_time_supported != Some(false)
    }

    pub(crate) fn has_stop_times(&self) -> bool {
        self.stop_time_supported != Some(false)
    }

    pub(crate) fn queue_order(&self) -> QueueOrder {
        match self.order {
            Some(names::ANY_ORDER | names::FIFO_ORDER) => QueueOrder::Fifo,
            Some(names::DEADLINE_ORDER) => QueueOrder::Deadline,
            _ => QueueOrder::Priority,
        }
    }

    pub(crate) fn discard_order(&self) -> DiscardOrder {
        match self.discard {
            Some(names::LIFO_ORDER) => DiscardOrder::Lifo,
            Some(names::PRIORITY_ORDER) => DiscardOrder::Priority,
            Some(names::DEADLINE_ORDER) => DiscardOrder::Deadline,
            _ => DiscardOrder::Fifo,
        }
    }

    pub(crate) fn batch(&self) -> BatchBounds {
        let events = self.maximum_batch_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(1);
        BatchBounds { events, pacing: span(self.pacing_interval.unwrap_or(0)) }
    }

    /// The events of a consumer's queue; `None` for the bound of the service.
    pub(crate) fn max_events(&self) -> Option<usize> {
        self.max_events_per_consumer.filter(|events| *events > 0).and_then(|events| usize::try_from(events).ok())
    }
}

/// A number of 100 ns as a time.
pub(crate) fn span(ticks: u64) -> Duration {
    Duration::from_micros(ticks / 10) + Duration::from_nanos(ticks % 10 * 100)
}
