//! The parts that all objects of a service share.

use std::any::Any;
use std::net::IpAddr;
use std::sync::OnceLock;

use spandrel::net::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::poa::ObjectId;
use spandrel::server::Servant;
use spandrel::services::cos_property_service::PropertySetServant;
use spandrel::ssliop::Ssliop;
use spandrel::types;
use spandrel::{ObjectRef, Poa, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_property::{Limits, LocalPropertySet, PropertyIterators};

use crate::flow::FlowEnd;
use crate::flow_spec::Carrier;
use crate::limits::AvLimits;
use crate::media::FlowDefinition;
use crate::options::{AvError, AvOptions};
use crate::pacer::Pacer;
use crate::peer_watch::PeerWatch;

/// The properties of one object at most.
const MAX_PROPERTIES: usize = 256;
/// The octets of the properties of one object at most.
const MAX_PROPERTY_OCTETS: usize = 64 << 10;

/// The adapter, the limits and the counts of a service.
pub(crate) struct Core {
    pub(crate) adapter: Poa,
    iterators: Arc<PropertyIterators>,
    pub(crate) limits: AvLimits,
    /// The address at which flows listen.
    pub(crate) host: IpAddr,
    tls: Option<Ssliop>,
    pub(crate) active_flows: Arc<AtomicUsize>,
    pacer: Arc<Pacer>,
    pub(crate) peers: Arc<PeerWatch>,
    objects: AtomicUsize,
    locals: Mutex<Vec<LocalObject>>,
}

/// An object of this service, by its reference.
type LocalObject = (ObjectRef, Weak<dyn Any + Send + Sync>);

impl Core {
    pub(crate) fn new(adapter: Poa, iterators: Arc<PropertyIterators>, options: AvOptions) -> Arc<Self> {
        let AvOptions { host, limits, tls } = options;
        let (active_flows, pacer, objects) = (Arc::default(), Arc::default(), AtomicUsize::new(0));
        let peers = PeerWatch::new(limits.absence);
        let locals = Mutex::default();
        Arc::new(Self { adapter, iterators, limits, host, tls, active_flows, pacer, peers, objects, locals })
    }

    pub(crate) fn properties(&self) -> LocalPropertySet {
        let limits = Limits { properties: MAX_PROPERTIES, octets: MAX_PROPERTY_OCTETS, ..Limits::default() };
        LocalPropertySet::new(&self.iterators, limits)
    }

    /// The definition without TLS, if flows cannot go by it here.
    ///
    /// # Errors
    /// A flow that goes by TLS alone.
    pub(crate) fn usable(&self, mut definition: FlowDefinition) -> Result<FlowDefinition, AvError> {
        let reason = match &self.tls {
            None => Some("there is none (AvOptions::tls)".to_owned()),
            // Only receivers need a certificate.
            Some(ssliop) if !definition.medium.is_source() => {
                ssliop.server_family().err().map(|error| spandrel::net::error::report_in_line(&error))
            }
            Some(_) => None,
        };
        let Some(reason) = reason else { return Ok(definition) };
        let had_carriers = !definition.carriers.is_empty();
        definition.carriers.retain(|carrier| *carrier != Carrier::Tls);
        if had_carriers && definition.carriers.is_empty() {
            return Err(AvError::Tls { flow: definition.name, reason });
        }
        Ok(definition)
    }

    pub(crate) fn flow(&self, definition: &FlowDefinition) -> Arc<FlowEnd> {
        let (tls, active) = (self.tls.clone(), &self.active_flows);
        Arc::new(FlowEnd::new(definition.clone(), self.limits, tls, active, &self.pacer))
    }

    /// Makes the state of an object known by its reference.
    pub(crate) fn add_local(&self, object: &ObjectRef, state: Weak<dyn Any + Send + Sync>) {
        let mut locals = self.locals.lock();
        locals.retain(|(_, state)| state.strong_count() > 0);
        locals.push((object.clone(), state));
    }

    /// The state of an object of this service.
    pub(crate) fn local<T: Send + Sync + 'static>(&self, object: &ObjectRef) -> Option<Arc<T>> {
        let locals = self.locals.lock();
        let (_, state) = locals.iter().find(|(own, _)| own.is_equivalent(object))?;
        state.upgrade()?.downcast().ok()
    }

    /// The object of another party, whose calls have a time limit.
    pub(crate) fn timed<I: types::Interface>(&self, object: &I) -> I {
        object.as_object().with_timeout(Some(self.limits.call)).unchecked_narrow()
    }

    /// As [`timed`](Self::timed), for an object whose interface is not verified yet.
    pub(crate) fn timed_object(&self, object: &ObjectRef) -> ObjectRef {
        object.with_timeout(Some(self.limits.call))
    }

    /// Whether so many further objects are beyond the limit.
    pub(crate) fn is_full(&self, further: usize) -> bool {
        self.objects() + further > self.limits.objects
    }

    /// The number of end points, controls and flow end points.
    pub(crate) fn objects(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }

    /// Serves an object within the limit. Its identity is put into `activation`.
    pub(crate) fn activate(
        self: &Arc<Self>,
        servant: Arc<dyn Servant>,
        activation: &Activation,
    ) -> Result<ObjectRef, SystemException> {
        let count = self.objects.fetch_add(1, Ordering::Relaxed) + 1;
        let activated = require_at_most(count, self.limits.objects, "objects of streams")
            .and_then(|()| Ok(self.adapter.activate_object(servant)?));
        let id = activated.inspect_err(|_| _ = self.objects.fetch_sub(1, Ordering::Relaxed))?;
        let object = self.adapter.id_to_reference(&id)?;
        _ = activation.identity.set((Arc::clone(self), id, object.clone()));
        Ok(object)
    }
}

/// The identity of an object that is served.
#[derive(Default)]
pub(crate) struct Activation {
    identity: OnceLock<(Arc<Core>, ObjectId, ObjectRef)>,
    is_ended: AtomicBool,
}

impl Activation {
    /// The reference to the object; OBJECT_NOT_EXIST before it is served.
    pub(crate) fn reference(&self) -> Result<ObjectRef, SystemException> {
        let not_served = || SystemException::object_not_exist(0, spandrel::CompletionStatus::No);
        self.identity.get().map(|(_, _, object)| object.clone()).ok_or_else(not_served)
    }

    /// The service of the object; OBJECT_NOT_EXIST before it is served.
    pub(crate) fn core(&self) -> Result<&Arc<Core>, SystemException> {
        let not_served = || SystemException::object_not_exist(0, spandrel::CompletionStatus::No);
        self.identity.get().map(|(core, ..)| core).ok_or_else(not_served)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Serves the object no longer. Its running requests end first.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Some((core, id, _)) = self.identity.get()
            && core.adapter.deactivate_object(id).is_ok()
        {
            core.objects.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sets a property, of whatever type it was.
pub(crate) fn set_property(properties: &LocalPropertySet, name: &str, value: &types::Any) {
    if properties.define_property(name, value).is_err() {
        _ = properties.delete_property(name);
        _ = properties.define_property(name, value);
    }
}
