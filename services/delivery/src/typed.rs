//! Interfaces of typed events: their descriptions, the objects that peers call, and the calls of peers.
//!
//! The operations of an interface `I` are events: their parameters are `in` alone, and they return nothing. Consumers that
//! pull call `Pull<I>` (Event Service 1.2): for each operation `o` of `I` it has `void o` with the same parameters as
//! `out`, which waits for an event, and `boolean try_o`. The name of `Pull<I>` is that of `I` after `Pull`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spandrel::dynamic::{
    ArgMode, DescribedCall, DescribedServant, DynAny, DynamicObject, InterfaceDescription, NvList,
    OperationDescription, RequestError,
};
use spandrel::net::sync::Arc;
use spandrel::server::{DeferredOperations, DeferringSkeleton, Servant};
use spandrel::services::cos_typed_event_comm::{TypedPullSupplier, TypedPushConsumer};
use spandrel::services::repository::{default_repository, interface_by_id};
use spandrel::types::{Any, TcKind, TypeCode};
use spandrel::{CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind};
use spandrel_cdr::{CdrError, Encode, Encoder};

use crate::worker::{PeerFailure, PullSupplierPeer};

/// The prefix of the name of a pull interface.
const PULL: &str = "Pull";
/// The prefix of the operations that do not wait for an event.
const TRY: &str = "try_";

/// An interface whose operations are events.
#[derive(Clone, Debug)]
pub struct TypedInterface {
    /// The interface `I`, whose operations are the events.
    pub events: Arc<InterfaceDescription>,
    /// `Pull<I>`, for peers by pull.
    pub pull: Option<Arc<InterfaceDescription>>,
}

/// The arguments of a call, as the reply to a pull returns them.
#[derive(Clone, Debug)]
pub struct CallArguments(pub Vec<Any>);

impl Encode for CallArguments {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.0.iter().try_for_each(|argument| argument.write_value(out))
    }
}

impl TypedInterface {
    /// The interface with the repository id `id`, for peers by push; `None` if its operations cannot be events, or the
    /// repository does not have it.
    ///
    /// # Errors
    /// INTF_REPOS if there is no repository; the exceptions of its calls, each of which has this time limit.
    pub fn of_push(orb: &Orb, id: &str, timeout: Duration) -> Result<Option<Self>, SystemException> {
        let interface = described(orb, id, timeout)?.filter(is_event_interface);
        Ok(interface.map(|events| Self { events: Arc::new(events), pull: None }))
    }

    /// The interface whose pull interface has the repository id `id`, for peers by pull; `None` if the pull interface does not
    /// correspond to it, or the repository has not both.
    ///
    /// # Errors
    /// As for [`of_push`](Self::of_push).
    pub fn of_pull(orb: &Orb, id: &str, timeout: Duration) -> Result<Option<Self>, SystemException> {
        let Some(events) = id_of_events(id) else { return Ok(None) };
        let Some(interface) = Self::of_push(orb, &events, timeout)? else { return Ok(None) };
        let pull = described(orb, id, timeout)?.filter(|pull| is_pull_of(pull, &interface.events));
        Ok(pull.map(|pull| Self { pull: Some(Arc::new(pull)), ..interface }))
    }

    /// The interface of the object that the peer calls, or that the channel calls.
    #[must_use]
    pub fn of_object(&self) -> &Arc<InterfaceDescription> {
        self.pull.as_ref().unwrap_or(&self.events)
    }

    /// The object that a typed consumer returns for calls, if it has this interface.
    ///
    /// # Errors
    /// The exceptions of the calls, each of which has this time limit. A consumer that is not typed raises BAD_OPERATION.
    pub fn object_of_consumer(
        &self,
        consumer: &ObjectRef,
        timeout: Duration,
    ) -> Result<Option<DynamicObject>, SystemException> {
        let consumer: TypedPushConsumer = consumer.with_timeout(Some(timeout)).unchecked_narrow();
        self.with_interface(consumer.get_typed_consumer()?, timeout)
    }

    /// The object that a typed supplier returns for calls, if it has this pull interface.
    ///
    /// # Errors
    /// As for [`object_of_consumer`](Self::object_of_consumer).
    pub fn object_of_supplier(
        &self,
        supplier: &ObjectRef,
        timeout: Duration,
    ) -> Result<Option<DynamicObject>, SystemException> {
        let supplier: TypedPullSupplier = supplier.with_timeout(Some(timeout)).unchecked_narrow();
        self.with_interface(supplier.get_typed_supplier()?, timeout)
    }

    fn with_interface(
        &self,
        object: Option<ObjectRef>,
        timeout: Duration,
    ) -> Result<Option<DynamicObject>, SystemException> {
        let Some(object) = object else { return Ok(None) };
        let (object, interface) = (object.with_timeout(Some(timeout)), self.of_object());
        Ok(object.is_a(interface.id())?.then(|| DynamicObject::new(object, Arc::clone(interface))))
    }

    /// The object that a supplier calls: each call is passed to `receive` with the name of the operation.
    pub fn consumer_servant(
        &self,
        receive: impl Fn(&str, Vec<Any>) -> Result<(), SystemException> + Send + Sync + 'static,
    ) -> Arc<dyn Servant> {
        let run = move |call: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
            let arguments = arguments.iter().filter_map(|item| item.value.clone()).collect();
            receive(&call.operation.name, arguments)?;
            Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap_or_default())
        };
        Arc::new(DescribedServant::described(Arc::clone(&self.events), run))
    }

    /// The object that a consumer calls: `try_pull` returns the arguments of the next call of an operation, and `waiting`
    /// takes the calls that wait.
    pub fn supplier_servant(
        &self,
        try_pull: impl Fn(&str) -> Result<Option<Vec<Any>>, SystemException> + Send + Sync + 'static,
        waiting: impl DeferredOperations,
    ) -> Arc<dyn Servant> {
        let run = move |call: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
            let name = call.operation.name.as_str();
            let (operation, is_try) = match name.strip_prefix(TRY) {
                Some(operation) if call.operation.result.kind() == TcKind::Boolean => (operation, true),
                _ => (name, false),
            };
            let arguments = try_pull(operation)?;
            let has_event = arguments.is_some();
            if !has_event && !is_try {
                return Err(no_event().into());
            }
            let mut arguments = arguments.into_iter().flatten();
            for item in list.iter_mut() {
                // Without an event the parameters have the default values of their types.
                item.value = match arguments.next() {
                    Some(argument) => Some(argument),
                    None => Some(default_value(&item.type_code)?),
                };
            }
            let result = if is_try { Any::new(has_event) } else { Any::write(TypeCode::VOID, |_| Ok(())) };
            Ok(result.unwrap_or_default())
        };
        let skeleton = DescribedServant::described(Arc::clone(self.of_object()), run);
        Arc::new(DeferringSkeleton::new(skeleton, waiting))
    }
}

/// TRANSIENT for a call that cannot wait for an event.
#[must_use]
pub fn no_event() -> SystemException {
    let detail = "there is no event, and a call in the same process cannot wait for one";
    SystemException::transient(0, CompletionStatus::No).with_detail(detail)
}

fn default_value(type_code: &TypeCode) -> Result<Any, SystemException> {
    let value = DynAny::of_type(type_code).and_then(|value| value.to_any());
    value.map_err(|error| SystemException::internal(0, CompletionStatus::No).with_detail(error.to_string()))
}

/// The description of an interface; `None` if the repository does not have it.
fn described(orb: &Orb, id: &str, timeout: Duration) -> Result<Option<InterfaceDescription>, SystemException> {
    let repository = default_repository(orb)?.with_timeout(Some(timeout));
    match interface_by_id(&repository, id) {
        Ok(interface) => Ok(Some(interface)),
        Err(error) if error.kind() == SystemExceptionKind::IntfRepos => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_plain(operation: &OperationDescription, result: TcKind, mode: ArgMode) -> bool {
    operation.result.kind() == result
        && operation.exceptions.is_empty()
        && operation.contexts.is_empty()
        && operation.parameters.iter().all(|parameter| parameter.mode == mode)
}

fn is_event_interface(interface: &InterfaceDescription) -> bool {
    interface.attributes().is_empty()
        && interface.undescribed().is_empty()
        && interface.operations().iter().all(|operation| is_plain(operation, TcKind::Void, ArgMode::In))
}

/// Whether the second interface's events can be pulled by the operations of the first one.
fn is_pull_of(pull: &InterfaceDescription, events: &InterfaceDescription) -> bool {
    let is_same = |name: &str, result: TcKind, event: &OperationDescription| {
        pull.find(name).is_some_and(|operation| {
            let pairs = operation.parameters.iter().zip(&event.parameters);
            is_plain(operation, result, ArgMode::Out)
                && operation.parameters.len() == event.parameters.len()
                && pairs.into_iter().all(|(one, other)| one.type_code.equivalent(&other.type_code))
        })
    };
    pull.attributes().is_empty()
        && pull.undescribed().is_empty()
        && pull.operations().len() == 2 * events.operations().len()
        && events.operations().iter().all(|event| {
            is_same(&event.name, TcKind::Void, event)
                && is_same(&format!("{TRY}{}", event.name), TcKind::Boolean, event)
        })
}

/// The repository id of the events of a pull interface: `IDL:Plant/Alarms:1.0` for `IDL:Plant/PullAlarms:1.0`.
fn id_of_events(pull: &str) -> Option<String> {
    let (path, version) = pull.rsplit_once(':')?;
    let start = path.rfind(['/', ':']).map_or(0, |index| index + 1);
    let (scope, name) = path.split_at(start);
    let name = name.strip_prefix(PULL).filter(|name| !name.is_empty())?;
    Some(format!("{scope}{name}:{version}"))
}

/// Calls an operation of the interface that a consumer has returned by `get_typed_consumer`.
///
/// # Errors
/// The failure of the call.
pub async fn call_typed(object: &DynamicObject, operation: &str, arguments: &[Any]) -> Result<(), PeerFailure> {
    let mut request = object.prepare(operation, arguments).map_err(PeerFailure::System)?;
    request.invoke_async().await.map_err(failure)
}

fn failure(error: RequestError) -> PeerFailure {
    PeerFailure::System(match error {
        RequestError::System(exception) => exception,
        // The operations of such an interface raise no exceptions.
        _ => SystemException::unknown(0, CompletionStatus::Maybe),
    })
}

/// The object of a typed supplier, whose `try_` operations are called in turn.
#[derive(Debug)]
pub struct TypedSupplier {
    object: DynamicObject,
    events: Arc<InterfaceDescription>,
    next: AtomicUsize,
}

impl TypedSupplier {
    /// The supplier with this object, which has the pull interface.
    #[must_use]
    pub fn new(object: DynamicObject, interface: &TypedInterface) -> Self {
        Self { object, events: Arc::clone(&interface.events), next: AtomicUsize::new(0) }
    }

    /// The interface whose operations are the events.
    #[must_use]
    pub fn events(&self) -> &Arc<InterfaceDescription> {
        &self.events
    }
}

impl PullSupplierPeer for TypedSupplier {
    /// The operation and its arguments.
    type Pulled = (String, Vec<Any>);

    async fn pull(&self) -> Result<Option<Self::Pulled>, PeerFailure> {
        let operations = self.events.operations();
        for _ in 0..operations.len() {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % operations.len();
            let operation = &operations[index].name;
            let request = self.object.prepare(&format!("{TRY}{operation}"), &[]);
            let mut request = request.map_err(PeerFailure::System)?;
            request.invoke_async().await.map_err(failure)?;
            let outcome = self.object.outcome(&request).map_err(failure)?;
            if outcome.result().map_err(PeerFailure::System)? {
                let arguments = outcome.outs.into_iter().filter_map(|out| out.value).collect();
                return Ok(Some((operation.clone(), arguments)));
            }
        }
        Ok(None)
    }
}
