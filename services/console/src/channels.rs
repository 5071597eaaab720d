//! The channels of an event service and of a notification service, their consumers, and a live tail of events.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Value, json};
use spandrel::dynamic::DynAny;
use spandrel::net::error::escape;
use spandrel::net::sync::Mutex;
use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_event_comm::PullSupplier;
use spandrel::services::cos_event_comm::pull_supplier::TryPullError;
use spandrel::services::cos_notification::{CONNECTION_RELIABILITY, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{self as notify, ClientType, ProxyPullSupplier};
use spandrel::services::event_monitoring::monitor::ConsumersError;
use spandrel::services::event_monitoring::{ChannelState, ConsumerState, Monitor, MonitoredFactory};
use spandrel::services::notification_monitoring;
use spandrel::types::{Any, Interface as _};
use spandrel::{ObjectRef, Orb, SystemException, SystemExceptionKind};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};
use crate::names::for_caller;

/// The interface and the operation of rules about what is shown of channels.
const MONITOR: &str = "IDL:spandrel/EventMonitoring/Monitor:1.0";
/// The interface of rules about live tails.
const CONSUMER_ADMIN: &str = "IDL:omg.org/CosEventChannelAdmin/ConsumerAdmin:1.0";
/// The most channels and consumers that are shown.
const MAX_ROWS: u32 = 500;
/// The most live tails at a time.
const MAX_TAILS: usize = 16;
/// The time without a request after which a tail ends: its page was left.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The most events of one answer.
const MAX_EVENTS: usize = 100;
/// The time in which the events of one answer are collected.
const COLLECT_TIME: Duration = Duration::from_secs(2);
/// The most characters of an event.
const MAX_EVENT: usize = 2_000;

/// A service with channels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChannelService {
    Event,
    Notification,
}

impl ChannelService {
    const ALL: [Self; 2] = [Self::Event, Self::Notification];

    /// The initial reference of its factory, by which requests name it too.
    fn name(self) -> &'static str {
        match self {
            Self::Event => "EventService",
            Self::Notification => "NotificationService",
        }
    }

    fn parse(name: &str) -> Result<Self, Problem> {
        let service = Self::ALL.into_iter().find(|service| service.name() == name);
        service
            .ok_or_else(|| invalid(format!("unknown service `{name}`: expected EventService or NotificationService")))
    }

    /// The monitor of its channels.
    fn monitor(self, orb: &Orb) -> Result<Monitor, Problem> {
        let factory = orb.resolve_initial_references(self.name()).map_err(|exception| failed(&exception))?;
        let factory = for_caller(&factory)?;
        let monitor = match self {
            Self::Event => factory.unchecked_narrow::<MonitoredFactory>().event_monitor(),
            Self::Notification => {
                factory.unchecked_narrow::<notification_monitoring::MonitoredFactory>().event_monitor()
            }
        };
        let without = |detail: &str| Problem::new(StatusCode::BAD_GATEWAY, "the service has no monitor").detail(detail);
        match monitor {
            Ok(Some(monitor)) => Ok(for_caller(monitor.as_object())?.unchecked_narrow()),
            Ok(None) => Err(without("it returned nil")),
            Err(exception) if exception.kind() == SystemExceptionKind::BadOperation => {
                Err(without("the console shows channels of Spandrel's services"))
            }
            Err(exception) => Err(failed(&exception)),
        }
    }
}

/// The channels of the services that this process knows:
/// `{"services":[{"service","channels","truncated"} or {"service","problem"}]}`.
pub(crate) fn list(permissions: &Permissions, orb: &Orb) -> Result<Value, Problem> {
    permissions.check("channels", MONITOR, None)?;
    let configured: Vec<_> =
        ChannelService::ALL.into_iter().filter(|service| orb.has_initial_reference(service.name())).collect();
    if configured.is_empty() {
        let title = "this process knows no event or notification service";
        let detail =
            "start it with --orb '-ORBInitRef EventService=URL' or --orb '-ORBInitRef NotificationService=URL'";
        return Err(Problem::new(StatusCode::NOT_FOUND, title).detail(detail));
    }
    let shown = configured.into_iter().map(|service| {
        let states = service
            .monitor(orb)
            .and_then(|monitor| monitor.channels("", MAX_ROWS + 1).map_err(|exception| failed(&exception)));
        match states {
            Ok(states) => {
                let channels: Vec<_> = states.iter().take(MAX_ROWS as usize).map(channel_json).collect();
                let truncated = states.len() > channels.len();
                json!({ "service": service.name(), "channels": channels, "truncated": truncated })
            }
            Err(problem) => json!({ "service": service.name(), "problem": problem.json() }),
        }
    });
    Ok(json!({ "services": shown.collect::<Vec<_>>() }))
}

fn channel_json(state: &ChannelState) -> Value {
    json!({
        "name": state.name,
        "alias": state.alias,
        "consumers": state.consumers,
        "suppliers": state.suppliers,
        "received": state.received,
        "delivered": state.delivered,
        "dropped": state.dropped,
        "expired": state.expired,
        "longest_queue": state.longest_queue,
        "lag_ms": state.lag_ms,
    })
}

/// The consumers of a channel, those with the longest queues first: `{"consumers":[…],"truncated"}`.
pub(crate) fn consumers(permissions: &Permissions, orb: &Orb, service: &str, channel: &str) -> Result<Value, Problem> {
    permissions.check("consumers", MONITOR, Some(channel))?;
    let monitor = ChannelService::parse(service)?.monitor(orb)?;
    let mut states = monitor.consumers(channel, MAX_ROWS + 1).map_err(|error| match error {
        ConsumersError::UnknownChannel(_) => unknown_channel(channel),
        ConsumersError::System(exception) => failed(&exception),
    })?;
    let truncated = states.len() > MAX_ROWS as usize;
    states.truncate(MAX_ROWS as usize);
    Ok(json!({ "consumers": states.iter().map(consumer_json).collect::<Vec<_>>(), "truncated": truncated }))
}

fn consumer_json(state: &ConsumerState) -> Value {
    json!({
        "consumer": format!("{:x}", state.number),
        "pushed": state.is_pushed,
        "reference": state.consumer.as_ref().map(ToString::to_string),
        "queued": state.queued,
        "queued_octets": state.queued_octets,
        "lag_ms": state.lag_ms,
        "delivered": state.delivered,
        "dropped": state.dropped,
        "expired": state.expired,
        "failures": state.failures,
    })
}

fn unknown_channel(channel: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such channel").detail(format!("`{channel}` is not a channel"))
}

/// Consumers of channels whose events pages show as they come.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    by_number: Mutex<BTreeMap<u64, Tail>>,
}

/// A consumer that pulls.
#[derive(Clone, Debug)]
struct Tail {
    proxy: PullSupplier,
    /// The name of the caller's token.
    owner: String,
    last_request: Instant,
}

impl Tails {
    /// Connects a consumer to a channel: `{"tail": NUMBER}`.
    pub(crate) fn begin(
        &self,
        permissions: &Permissions,
        orb: &Orb,
        service: &str,
        channel: &str,
    ) -> Result<Value, Problem> {
        permissions.check("obtain_pull_supplier", CONSUMER_ADMIN, Some(channel))?;
        let service = ChannelService::parse(service)?;
        let proxy = connect(service, &event_channel(service, orb, channel)?)?;
        let tail = Tail { proxy, owner: permissions.token_name().to_owned(), last_request: Instant::now() };
        let mut tails = self.by_number.lock();
        if tails.len() >= MAX_TAILS {
            drop(tails);
            end(&tail);
            return Err(
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages show live events").retry_after(20)
            );
        }
        // A number that others cannot guess is not needed: a tail belongs to its token.
        let number = tails.last_key_value().map_or(1, |(last, _)| last + 1);
        tails.insert(number, tail);
        Ok(json!({ "tail": number }))
    }

    /// The events since the last request: `{"events":[{"type","text"}],"more"}`.
    pub(crate) fn events(&self, permissions: &Permissions, number: u64) -> Result<Value, Problem> {
        let tail = {
            let mut tails = self.by_number.lock();
            let tail = tails.get_mut(&number).filter(|tail| tail.owner == permissions.token_name());
            let tail = tail.ok_or_else(ended)?;
            tail.last_request = Instant::now();
            tail.clone()
        };
        let (begin, mut events, mut more) = (Instant::now(), Vec::new(), true);
        while events.len() < MAX_EVENTS && begin.elapsed() < COLLECT_TIME {
            match tail.proxy.try_pull() {
                Ok((event, true)) => events.push(event_json(&event)),
                Ok((_, false)) => {
                    more = false;
                    break;
                }
                Err(TryPullError::System(exception)) if exception.kind() != SystemExceptionKind::ObjectNotExist => {
                    return Err(failed(&exception));
                }
                // The channel has been destroyed, or the connection was ended by its administrator.
                Err(_) => {
                    self.by_number.lock().remove(&number);
                    return Err(ended());
                }
            }
        }
        Ok(json!({ "events": events, "more": more }))
    }

    /// Ends a tail by a request of its page.
    pub(crate) fn end(&self, permissions: &Permissions, number: u64) -> Result<Value, Problem> {
        let tail = {
            let mut tails = self.by_number.lock();
            let is_own = tails.get(&number).is_some_and(|tail| tail.owner == permissions.token_name());
            is_own.then(|| tails.remove(&number)).flatten()
        };
        end(&tail.ok_or_else(ended)?);
        Ok(json!({}))
    }

    /// Ends the tails whose pages were left. The calls may block.
    pub(crate) fn end_idle(&self) {
        self.end_where(|tail| tail.last_request.elapsed() > IDLE_TIMEOUT);
    }

    /// Ends all tails. The calls may block.
    pub(crate) fn end_all(&self) {
        self.end_where(|_| true);
    }

    fn end_where(&self, is_ended: impl Fn(&Tail) -> bool) {
        let tails: Vec<Tail> =
            self.by_number.lock().extract_if(.., |_, tail| is_ended(tail)).map(|(_, tail)| tail).collect();
        tails.iter().for_each(end);
    }
}

fn ended() -> Problem {
    Problem::new(StatusCode::GONE, "the live tail has ended")
        .detail("its channel was destroyed, or no page asked for its events")
}

fn end(tail: &Tail) {
    if let Err(exception) = tail.proxy.disconnect_pull_supplier() {
        tracing::debug!(%exception, "a live tail cannot be disconnected");
    }
}

/// The channel of a service with this name or number.
fn event_channel(service: ChannelService, orb: &Orb, name: &str) -> Result<ObjectRef, Problem> {
    let of_call = |exception: SystemException| failed(&exception);
    let channel = match service {
        ChannelService::Event => {
            use spandrel::services::event::event_channel_factory::JoinChannelError;
            let factory = for_caller(&orb.resolve_initial_references(service.name()).map_err(of_call)?)?;
            let joined = factory.unchecked_narrow::<MonitoredFactory>().join_channel(name);
            joined.map_err(|error| match error {
                JoinChannelError::System(exception) => failed(&exception),
                _ => unknown_channel(name),
            })?
        }
        ChannelService::Notification => {
            use notify::event_channel_factory::GetEventChannelError;
            let number = name.parse().map_err(|_| unknown_channel(name))?;
            let factory = for_caller(&orb.resolve_initial_references(service.name()).map_err(of_call)?)?;
            let got = factory.unchecked_narrow::<notify::EventChannelFactory>().get_event_channel(number);
            let channel = got.map_err(|error| match error {
                GetEventChannelError::System(exception) => failed(&exception),
                GetEventChannelError::ChannelNotFound(_) => unknown_channel(name),
            })?;
            channel.map(|channel| channel.as_object().unchecked_narrow::<EventChannel>())
        }
    };
    object_of(channel.as_ref().map(EventChannel::as_object))
}

/// The object of an answer, for calls with a time limit.
fn object_of(object: Option<&ObjectRef>) -> Result<ObjectRef, Problem> {
    let object = object.ok_or_else(|| {
        Problem::new(StatusCode::BAD_GATEWAY, "the channel cannot be used").detail("the service returned nil")
    })?;
    Ok(for_caller(object)?.with_timeout(Some(CALL_TIMEOUT)))
}

/// Connects a consumer that pulls. It does not outlive the page: it is best effort in a persistent channel.
fn connect(service: ChannelService, channel: &ObjectRef) -> Result<PullSupplier, Problem> {
    let of_call = |exception: SystemException| failed(&exception);
    let refused = |error: &dyn std::fmt::Display| {
        Problem::new(StatusCode::CONFLICT, "the channel refuses the connection").detail(error.to_string())
    };
    match service {
        ChannelService::Event => {
            let admin = channel.unchecked_narrow::<EventChannel>().for_consumers().map_err(of_call)?;
            let admin = object_of(admin.as_ref().map(|admin| admin.as_object()))?;
            let admin: spandrel::services::cos_event_channel_admin::ConsumerAdmin = admin.unchecked_narrow();
            let proxy = admin.obtain_pull_supplier().map_err(of_call)?;
            let proxy = object_of(proxy.as_ref().map(|proxy| proxy.as_object()))?;
            let consumer: spandrel::services::cos_event_channel_admin::ProxyPullSupplier = proxy.unchecked_narrow();
            consumer.connect_pull_consumer(None).map_err(|error| refused(&error))?;
            Ok(proxy.unchecked_narrow())
        }
        ChannelService::Notification => {
            let admin = channel.unchecked_narrow::<notify::EventChannel>().default_consumer_admin().map_err(of_call)?;
            let admin = object_of(admin.as_ref().map(|admin| admin.as_object()))?;
            let admin: notify::ConsumerAdmin = admin.unchecked_narrow();
            let obtained = admin.obtain_notification_pull_supplier(ClientType::AnyEvent);
            let (proxy, _) = obtained.map_err(|error| refused(&error))?;
            let proxy = object_of(proxy.as_ref().map(|proxy| proxy.as_object()))?;
            let consumer: ProxyPullSupplier = proxy.unchecked_narrow();
            let value = Any::new(0_i16).map_err(|error| Problem::internal(error.to_string()))?;
            // A service without persistence does not know the property.
            _ = consumer.set_qos(&[Property { name: CONNECTION_RELIABILITY.to_owned(), value }]);
            consumer.connect_any_pull_consumer(None).map_err(|error| refused(&error))?;
            Ok(proxy.unchecked_narrow())
        }
    }
}

/// An event as text, with its type: that of the value, or of the structured event.
fn event_json(event: &Any) -> Value {
    let shown = |value: &Any| DynAny::new(value).map_or_else(|error| format!("({error})"), |value| value.to_string());
    let (type_text, text) = match event.extract::<StructuredEvent>() {
        Ok(event) => {
            let header = &event.header.fixed_header;
            let (domain, name) = (&header.event_type.domain_name, &header.event_type.type_name);
            let mut text = header.event_name.clone();
            for property in event.header.variable_header.iter().chain(&event.filterable_data) {
                text.push_str(&format!(" {}={}", property.name, shown(&property.value)));
            }
            if event.remainder_of_body != Any::default() {
                text.push_str(&format!(": {}", shown(&event.remainder_of_body)));
            }
            (format!("{domain}/{name}"), text)
        }
        Err(_) => (event.type_code().to_string(), shown(event)),
    };
    let bounded = |text: &str| escape(text).at_most(MAX_EVENT).to_string();
    json!({ "type": bounded(&type_text), "text": bounded(&text) })
}
