//! The records of a store, and the fields of which they are made.

use spandrel::services::cos_notification::{EventType, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::InterFilterGroupOperator;
use spandrel::services::cos_notify_filter::ConstraintExp;
use spandrel::types::{Any, Ior};

use crate::admin_properties::AdminSettings;
use crate::kind::{EventForm, ProxyKind, Side};
use crate::qos::{Level, Qos, Reliability};

/// The properties of quality, the administrative properties, the name on the command line, the last administrator, and the
/// id up to which proxies may be in use.
pub(crate) type ChannelFields = (Vec<Property>, Vec<Property>, String, i32, i32);

/// A channel in the store.
#[derive(Debug, Default)]
pub(crate) struct ChannelRecord {
    pub(crate) qos: Qos,
    pub(crate) settings: AdminSettings,
    pub(crate) name: String,
    pub(crate) last_admin: i32,
    pub(crate) last_proxy: i32,
}

impl ChannelRecord {
    pub(crate) fn from_fields((qos, settings, name, last_admin, last_proxy): ChannelFields) -> Option<Self> {
        let qos = Qos::default().with(&qos, Level::Channel, Reliability::Persistent).ok()?;
        let settings = AdminSettings::default().with(&settings).ok()?;
        Some(Self { qos, settings, name, last_admin, last_proxy })
    }

    pub(crate) fn into_fields(self) -> ChannelFields {
        (self.qos.recorded(), self.settings.properties(), self.name, self.last_admin, self.last_proxy)
    }
}

/// The properties, the filters by their ids, the last id of a filter, the numbers of the mapping filters of priority and
/// lifetime (zero is none), the event types, and two flags of proxies: suspended, and without changes of event types.
pub(crate) type MemberFields = (Vec<Property>, Vec<(i32, u64)>, i32, (u64, u64), Vec<EventType>, (bool, bool));

/// An administrator or a proxy in the store, as far as they agree.
#[derive(Debug)]
pub(crate) struct MemberRecord {
    pub(crate) qos: Qos,
    pub(crate) filters: Vec<(i32, u64)>,
    pub(crate) last_filter: i32,
    pub(crate) priority: u64,
    pub(crate) lifetime: u64,
    pub(crate) types: Vec<EventType>,
    pub(crate) is_suspended: bool,
    pub(crate) gets_no_types: bool,
}

impl MemberRecord {
    fn from_fields(fields: MemberFields, level: Level) -> Option<Self> {
        let (qos, filters, last_filter, (priority, lifetime), types, (is_suspended, gets_no_types)) = fields;
        let qos = Qos::default().with(&qos, level, Reliability::Persistent).ok()?;
        Some(Self { qos, filters, last_filter, priority, lifetime, types, is_suspended, gets_no_types })
    }
}

/// Whether the operator is `OR_OP`, and the fields of a member.
pub(crate) type AdminFields = (bool, MemberFields);

/// An administrator in the store.
#[derive(Debug)]
pub(crate) struct AdminRecord {
    pub(crate) operator: InterFilterGroupOperator,
    pub(crate) member: MemberRecord,
}

impl AdminRecord {
    pub(crate) fn from_fields((is_or, member): AdminFields) -> Option<Self> {
        let operator = if is_or { InterFilterGroupOperator::OrOp } else { InterFilterGroupOperator::AndOp };
        Some(Self { operator, member: MemberRecord::from_fields(member, Level::Administrator)? })
    }
}

/// Its kind (consumer, push, form), the id of its administrator, the fields of a member, and the reference of its peer.
pub(crate) type ProxyFields = ((bool, bool, u32), i32, MemberFields, Ior);

/// A connected proxy in the store.
#[derive(Debug)]
pub(crate) struct ProxyRecord {
    pub(crate) kind: ProxyKind,
    pub(crate) admin: i32,
    pub(crate) member: MemberRecord,
    /// Nil for a peer without a reference.
    pub(crate) peer: Ior,
}

/// The forms of events by their numbers in records.
/// The forms of proxies in the store. Typed ones are not in it.
const FORMS: [EventForm; 4] = [EventForm::EventService, EventForm::Any, EventForm::Structured, EventForm::Sequence];

pub(crate) fn kind_fields(kind: ProxyKind) -> (bool, bool, u32) {
    let form = FORMS.iter().position(|form| *form == kind.form).unwrap_or_default();
    (kind.side == Side::Consumers, kind.is_push, u32::try_from(form).unwrap_or_default())
}

impl ProxyRecord {
    pub(crate) fn from_fields(((is_consumer, is_push, form), admin, member, peer): ProxyFields) -> Option<Self> {
        let side = if is_consumer { Side::Consumers } else { Side::Suppliers };
        let form = *FORMS.get(usize::try_from(form).ok()?)?;
        let member = MemberRecord::from_fields(member, Level::Proxy)?;
        Some(Self { kind: ProxyKind { side, is_push, form }, admin, member, peer })
    }
}

/// The default value of a mapping filter (none for a filter), the constraints by their ids with their results, the last id of
/// a constraint, and whether the filter was destroyed while objects use it.
pub(crate) type FilterRecord = (Vec<Any>, Vec<(i32, ConstraintExp, Any)>, i32, bool);

/// The contents as one of two forms, the channel, the priority and the end of life if they are known, the time of receipt and
/// that of the start; times are microseconds since 1970, zero is none.
pub(crate) type EventRecord = ((Vec<Any>, Vec<StructuredEvent>), i32, Vec<i16>, Vec<u64>, u64, u64);
