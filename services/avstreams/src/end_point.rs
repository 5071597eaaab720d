//! Stream end points: one party's flows of a stream, and the dialogue by which two parties connect them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::services::av_streams::{
    FlowSpec, FlowState, Negotiator, StreamCtrl, StreamEndPoint, StreamEndPointAServant, StreamEndPointASkeleton,
    StreamEndPointB, StreamEndPointBServant, StreamEndPointBSkeleton, StreamEndPointServant, StreamEvent, StreamQoS,
    stream_end_point, stream_end_point_a, stream_end_point_b,
};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException};
use spandrel_property::{LocalPropertySet, delegate_property_set};

use crate::core::{Activation, Core, set_property};
use crate::flow::FlowEnd;
use crate::flow_end_point::{FlowEndPointState, FlowOwner};
use crate::flow_rules::{caller_ip, fields_of, publish, require_consent};
use crate::flow_spec::{
    Carrier, Direction, FlowAddress, FlowEntry, FlowProtocol, parse_flow_spec, parse_reverse_flow_spec,
};
use crate::media::FlowDefinition;
use crate::peer_watch::{WatchGuard, Watcher};
use crate::qos::{apply, negotiate};
use crate::refusal::Refusal;

/// The property with the negotiator of an end point.
const NEGOTIATOR: &str = "Negotiator";

/// The part of a party in a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    A,
    B,
}

/// One party's end of a stream.
pub(crate) struct EndPoint {
    own: Weak<Self>,
    core: Arc<Core>,
    side: Side,
    /// The control that asked for this end point; it learns of flows that end.
    control: Option<StreamCtrl>,
    flows: Mutex<BTreeMap<String, Slot>>,
    /// The carriers that `set_protocol_restriction` has left.
    restriction: Mutex<Option<Vec<Carrier>>>,
    negotiator: Mutex<Option<Negotiator>>,
    properties: LocalPropertySet,
    pub(crate) activation: Activation,
    groups: Vec<FlowAddress>,
    created: Instant,
    /// Watches the control until the end.
    watch: Mutex<Option<WatchGuard>>,
}

/// A flow of an end point.
struct Slot {
    flow: Arc<FlowEnd>,
    /// The object of the flow, once it was asked for.
    object: Option<Arc<FlowEndPointState>>,
    /// The addresses of further receivers, by the object of the receiver.
    leaves: Vec<(StreamEndPoint, FlowAddress)>,
}

delegate_property_set!(EndPoint, properties);

/// A flow that is to be connected, with the carriers that have not failed yet.
struct Plan {
    entry: FlowEntry,
    protocol: FlowProtocol,
    carriers: Vec<Carrier>,
    next: usize,
}

impl EndPoint {
    pub(crate) fn new(
        core: &Arc<Core>,
        side: Side,
        definitions: &[FlowDefinition],
        control: Option<StreamCtrl>,
        groups: Vec<FlowAddress>,
    ) -> Arc<Self> {
        let slot = |definition: &FlowDefinition| {
            let slot = Slot { flow: core.flow(definition), object: None, leaves: Vec::new() };
            (definition.name.clone(), slot)
        };
        let control = control.map(|control| core.timed(&control));
        let end_point = Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            core: Arc::clone(core),
            side,
            control,
            flows: Mutex::new(definitions.iter().map(slot).collect()),
            restriction: Mutex::default(),
            negotiator: Mutex::default(),
            properties: core.properties(),
            activation: Activation::default(),
            groups,
            created: Instant::now(),
            watch: Mutex::default(),
        });
        end_point.publish_all();
        end_point
    }

    /// Serves the end point.
    pub(crate) fn serve(self: &Arc<Self>) -> Result<ObjectRef, SystemException> {
        match self.side {
            Side::A => self.core.activate(Arc::new(StreamEndPointASkeleton::new(Arc::clone(self))), &self.activation),
            Side::B => self.core.activate(Arc::new(StreamEndPointBSkeleton::new(Arc::clone(self))), &self.activation),
        }
    }

    /// Watches the control, if there is one.
    pub(crate) fn watch_control(self: &Arc<Self>) {
        if let Some(control) = &self.control {
            let watcher: Arc<dyn Watcher> = Arc::<Self>::clone(self);
            *self.watch.lock() = Some(self.core.peers.add(control, &watcher));
        }
    }

    fn reference(&self) -> Result<StreamEndPoint, SystemException> {
        Ok(self.activation.reference()?.unchecked_narrow())
    }

    /// Runs with a flow.
    pub(crate) fn with_flow<T>(&self, name: &str, run: impl FnOnce(&Arc<FlowEnd>) -> T) -> Result<T, Refusal> {
        self.flows.lock().get(name).map(|slot| run(&slot.flow)).ok_or(Refusal::NoSuchFlow)
    }

    /// The flows of a specification; all of them if it is empty.
    fn chosen(&self, spec: &[String]) -> Result<Vec<Arc<FlowEnd>>, Refusal> {
        let entries = parse_flow_spec(spec).map_err(|_| Refusal::NoSuchFlow)?;
        let flows = self.flows.lock();
        if entries.is_empty() {
            return Ok(flows.values().map(|slot| Arc::clone(&slot.flow)).collect());
        }
        let flow = |entry: &FlowEntry| flows.get(&entry.name).map(|slot| Arc::clone(&slot.flow));
        entries.iter().map(|entry| flow(entry).ok_or(Refusal::NoSuchFlow)).collect()
    }

    /// Negotiates and applies a quality of service.
    pub(crate) fn change_qos(&self, qos: &mut StreamQoS, spec: &[String]) -> Result<bool, Refusal> {
        let flows = self.chosen(spec)?;
        let is_met = negotiate(qos, flows.iter().map(|flow| flow.definition()))?;
        flows.iter().for_each(|flow| apply(qos, flow));
        Ok(is_met)
    }

    /// Sets the property with the state of each flow.
    fn publish_all(&self) {
        let flows: Vec<_> = self.flows.lock().values().map(|slot| Arc::clone(&slot.flow)).collect();
        flows.iter().for_each(|flow| publish(&self.properties, flow));
        let names: Vec<String> = flows.iter().map(|flow| flow.definition().name.clone()).collect();
        if let Ok(names) = Any::new(&names) {
            set_property(&self.properties, "Flows", &names);
        }
    }

    fn set_started(&self, spec: &[String], is_started: bool) -> Result<(), Refusal> {
        for flow in self.chosen(spec)? {
            flow.set_started(is_started);
            publish(&self.properties, &flow);
        }
        Ok(())
    }

    /// The direction of a flow from this party's point of view.
    fn direction(&self, is_source: bool) -> Direction {
        if is_source == (self.side == Side::A) { Direction::In } else { Direction::Out }
    }

    /// The carriers of a flow that are allowed, the one of the entry only if it has one.
    fn carriers(&self, definition: &FlowDefinition, entry: &FlowEntry) -> Result<Vec<Carrier>, Refusal> {
        let restriction = self.restriction.lock();
        let is_allowed = |carrier: &Carrier| {
            entry.carrier.is_none_or(|only| only == *carrier)
                && restriction.as_ref().is_none_or(|allowed| allowed.contains(carrier))
                && (entry.protocol != FlowProtocol::Rtp || *carrier == Carrier::RtpUdp)
        };
        let carriers: Vec<Carrier> = definition.carriers.iter().copied().filter(is_allowed).collect();
        if carriers.is_empty() { Err(Refusal::Protocol(definition.name.clone())) } else { Ok(carriers) }
    }

    /// Compares the direction and the format of an entry with the device's.
    fn check_entry(&self, definition: &FlowDefinition, entry: &FlowEntry) -> Result<(), Refusal> {
        let own = self.direction(definition.medium.is_source());
        if entry.direction.is_some_and(|direction| direction != own) {
            return Err(Refusal::Denied(format!("the flow `{}` goes in the other direction", entry.name)));
        }
        let formats = &definition.formats;
        let has_format = formats.is_empty() || entry.format.is_empty() || formats.contains(&entry.format);
        if !has_format {
            return Err(Refusal::Denied(format!("the flow `{}` has no format `{}`", entry.name, entry.format)));
        }
        Ok(())
    }

    /// The flow, ready for a connection: a new one in place of one that has ended.
    fn fresh(self: &Arc<Self>, name: &str) -> Result<Arc<FlowEnd>, Refusal> {
        let mut flows = self.flows.lock();
        let slot = flows.get_mut(name).ok_or(Refusal::NoSuchFlow)?;
        if slot.flow.is_connected() {
            return Err(Refusal::Failed(format!("the flow `{name}` has a connection")));
        }
        if slot.flow.state() == FlowState::Dead {
            slot.flow = Arc::new(slot.flow.renewed());
        }
        let flow = Arc::clone(&slot.flow);
        drop(flows);
        let (weak, flow_name) = (Arc::downgrade(self), name.to_owned());
        flow.on_death(move |reason| {
            if let Some(end_point) = weak.upgrade() {
                end_point.report_death(&flow_name, reason);
            }
        });
        Ok(flow)
    }

    /// Tells the control that a flow has ended.
    fn report_death(&self, flow: &str, reason: &str) {
        _ = self.with_flow(flow, |flow| publish(&self.properties, flow));
        let Ok(reason) = Any::new(reason) else { return };
        let event = StreamEvent { property_name: format!("flow_dead:{flow}"), property_value: reason };
        if let Some(control) = &self.control
            && let Err(error) = control.push_event(&event)
        {
            tracing::debug!(%error, flow, "the control of a stream did not learn of the end of a flow");
        }
    }

    /// Ends these flows, so that they can be connected anew.
    fn disconnect_flows(&self, spec: &[String]) -> Result<(), Refusal> {
        for flow in self.chosen(spec)? {
            flow.close();
            let mut flows = self.flows.lock();
            if let Some(slot) = flows.get_mut(&flow.definition().name) {
                slot.flow = Arc::new(flow.renewed());
                slot.leaves.clear();
            }
        }
        self.publish_all();
        Ok(())
    }

    /// The entries of a request, with what this party has for them.
    fn plans(&self, spec: &[String]) -> Result<Vec<Plan>, Refusal> {
        let mut entries = parse_flow_spec(spec)?;
        if entries.is_empty() {
            entries = self.flows.lock().keys().map(|name| FlowEntry::named(name)).collect();
        }
        let plan = |mut entry: FlowEntry| {
            let definition = self.with_flow(&entry.name, |flow| flow.definition().clone())?;
            self.check_entry(&definition, &entry).map_err(|refusal| Refusal::Failed(refusal.reason()))?;
            let carriers = self
                .carriers(&definition, &entry)
                .map_err(|_| Refusal::Failed(format!("the flow `{}` has no such carrier", entry.name)))?;
            entry.direction = Some(self.direction(definition.medium.is_source()));
            if entry.format.is_empty() {
                entry.format = definition.formats.first().cloned().unwrap_or_default();
            }
            let protocol = if entry.protocol == FlowProtocol::None { definition.protocol } else { entry.protocol };
            Ok(Plan { entry, protocol, carriers, next: 0 })
        };
        entries.into_iter().map(plan).collect()
    }

    /// Connects flows to another end point. All of them or none are connected.
    fn connect_flows(
        self: &Arc<Self>,
        responder: &StreamEndPoint,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, Refusal> {
        let responder = &self.core.timed(responder);
        let mut plans = self.plans(spec)?;
        let names: Vec<String> = plans.iter().map(|plan| plan.entry.name.clone()).collect();
        self.negotiate(responder, qos)?;
        let is_met = self.change_qos(qos, &names)?;
        let requested = qos.clone();
        let mut begun: Vec<String> = Vec::new();
        let outcome = self.dialogue(responder, qos, &mut plans, &mut begun);
        if outcome.is_err() {
            self.disconnect_flows(&begun)?;
        }
        self.publish_all();
        Ok(outcome? && is_met && *qos == requested)
    }

    /// Lets the negotiators of both parties decide, if both have one. The other party's is its property `Negotiator`, as in
    /// TAO.
    fn negotiate(&self, responder: &StreamEndPoint, qos: &StreamQoS) -> Result<(), Refusal> {
        let Some(own) = self.negotiator.lock().clone() else { return Ok(()) };
        let property = responder.get_property_value(NEGOTIATOR).ok();
        let Some(other) = property.and_then(|any| any.extract::<Option<Negotiator>>().ok()).flatten() else {
            return Ok(());
        };
        match own.negotiate(Some(&other), qos) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::Qos("the negotiators of the parties do not agree".to_owned())),
            Err(error) => Err(Refusal::Qos(format!("the negotiator of this party failed: {error}"))),
        }
    }

    fn dialogue(
        self: &Arc<Self>,
        responder: &StreamEndPoint,
        qos: &mut StreamQoS,
        plans: &mut [Plan],
        begun: &mut Vec<String>,
    ) -> Result<bool, Refusal> {
        let mut spec: FlowSpec = loop {
            let mut spec = FlowSpec::default();
            for plan in plans.iter() {
                spec.push(self.offer(plan, begun)?);
            }
            match responder.request_connection(Some(&self.reference()?), false, qos, &mut spec) {
                Ok(true) => break spec,
                Ok(false) => return Err(Refusal::Failed("the other party does not connect".to_owned())),
                Err(error) => match Refusal::from(error) {
                    Refusal::Protocol(flow) => {
                        // The next carrier of this flow, if there is one.
                        let failed = plans.iter_mut().find(|plan| plan.entry.name == flow);
                        let plan = failed.filter(|plan| plan.next + 1 < plan.carriers.len()).ok_or_else(|| {
                            Refusal::Failed(format!("the parties have no common protocol for the flow `{flow}`"))
                        })?;
                        plan.next += 1;
                        self.disconnect_flows(begun)?;
                        begun.clear();
                    }
                    refusal => return Err(refusal),
                },
            }
        };
        spec.truncate(plans.len());
        for answer in parse_reverse_flow_spec(&spec)? {
            let Some(plan) = plans.iter().find(|plan| plan.entry.name == answer.name) else { continue };
            let flow = self.with_flow(&answer.name, Arc::clone)?;
            if flow.is_source() {
                let address = answer.address.ok_or_else(|| {
                    Refusal::Failed(format!("the other party names no address for the flow `{}`", answer.name))
                })?;
                self.start_sending(&answer.name, &address, plan.protocol, None)?;
                begun.push(answer.name);
            }
        }
        let is_missing = |plan: &&Plan| !self.with_flow(&plan.entry.name, |flow| flow.is_connected()).unwrap_or(false);
        match plans.iter().find(is_missing) {
            Some(plan) => {
                Err(Refusal::Failed(format!("the other party does not answer for the flow `{}`", plan.entry.name)))
            }
            None => Ok(true),
        }
    }

    /// The entry for a flow: with the address if this party receives.
    fn offer(self: &Arc<Self>, plan: &Plan, begun: &mut Vec<String>) -> Result<String, Refusal> {
        let carrier = plan.carriers[plan.next];
        let mut entry = FlowEntry { protocol: plan.protocol, carrier: Some(carrier), ..plan.entry.clone() };
        let flow = self.fresh(&entry.name)?;
        if !flow.is_source() {
            entry.address = Some(flow.listen(carrier, plan.protocol, self.core.host, None)?);
            begun.push(entry.name.clone());
        }
        Ok(entry.to_string())
    }

    /// Connects a source to the address of a receiver that has agreed: it shows a token, or is the party that calls.
    fn start_sending(
        self: &Arc<Self>,
        name: &str,
        address: &FlowAddress,
        protocol: FlowProtocol,
        caller: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let flow = self.fresh(name)?;
        require_consent(&flow, address, caller)?;
        Ok(flow.connect(address, protocol, false)?)
    }

    /// Answers a request for one flow.
    fn answer(self: &Arc<Self>, entry: &FlowEntry, caller: Option<IpAddr>) -> Result<FlowEntry, Refusal> {
        let definition = self.with_flow(&entry.name, |flow| flow.definition().clone())?;
        self.check_entry(&definition, entry)?;
        let carriers = self.carriers(&definition, entry)?;
        let mut answer = FlowEntry { protocol: entry.protocol, ..FlowEntry::named(&entry.name) };
        if definition.medium.is_source() {
            let address = entry.address.as_ref().ok_or_else(|| {
                Refusal::Denied(format!("the receiver of the flow `{}` names no address", entry.name))
            })?;
            let sent = self.start_sending(&entry.name, address, entry.protocol, caller);
            sent.map_err(|refusal| Refusal::Denied(refusal.reason()))?;
            answer.carrier = Some(address.carrier);
        } else {
            let flow = self.fresh(&entry.name).map_err(|refusal| Refusal::Denied(refusal.reason()))?;
            let opened = flow.listen(carriers[0], entry.protocol, self.core.host, None);
            let address = opened.map_err(|error| Refusal::Denied(error.to_string()))?;
            answer.carrier = Some(address.carrier);
            answer.address = Some(address);
        }
        Ok(answer)
    }

    /// The group of a flow by its position among those of the service.
    fn group(&self, index: usize, carrier: Carrier) -> Option<FlowAddress> {
        self.groups.get(index).map(|group| FlowAddress { carrier, ..group.clone() })
    }

    /// Whether nothing but its creator, whom nobody watches, keeps it.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.control.is_none()
            && self.created.elapsed() >= self.core.limits.absence
            && self.flows.lock().values().all(|slot| !slot.flow.is_connected())
    }

    /// Whether the end point was destroyed.
    pub(crate) fn is_ended(&self) -> bool {
        self.activation.is_ended()
    }

    pub(crate) fn end(&self) {
        for slot in self.flows.lock().values() {
            slot.flow.close();
            if let Some(object) = &slot.object {
                object.activation.end();
            }
        }
        self.activation.end();
        // It takes a lock of its own.
        drop(self.watch.lock().take());
    }
}

/// The servant of an end point; both sides have the same operations but for multipoint streams.
impl StreamEndPointServant for EndPoint {
    fn stop(&self, spec: &[String]) -> Result<(), stream_end_point::StopError> {
        Ok(self.set_started(spec, false)?)
    }

    fn start(&self, spec: &[String]) -> Result<(), stream_end_point::StartError> {
        Ok(self.set_started(spec, true)?)
    }

    fn destroy(&self, spec: &[String]) -> Result<(), stream_end_point::DestroyError> {
        for flow in self.chosen(spec)? {
            flow.close();
            publish(&self.properties, &flow);
        }
        if spec.is_empty() {
            self.end();
        }
        Ok(())
    }

    fn connect(
        &self,
        responder: Option<&StreamEndPoint>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, stream_end_point::ConnectError> {
        let responder = responder.ok_or_else(|| Refusal::Failed("there is no end point to connect to".to_owned()))?;
        Ok(self.shared()?.connect_flows(responder, qos, spec)?)
    }

    fn request_connection(
        &self,
        _initiator: Option<&StreamEndPoint>,
        is_mcast: bool,
        qos: &mut StreamQoS,
        spec: &mut FlowSpec,
    ) -> Result<bool, stream_end_point::RequestConnectionError> {
        if is_mcast {
            return Err(Refusal::Denied("a group is joined by multiconnect".to_owned()).into());
        }
        let this = self.shared()?;
        let entries = parse_flow_spec(spec).map_err(|error| Refusal::Denied(error.to_string()))?;
        let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        // What is not granted as asked shows in the changed request.
        if !names.is_empty() {
            this.change_qos(qos, &names)?;
        }
        let caller = caller_ip();
        let mut answers = FlowSpec::default();
        for (index, entry) in entries.iter().enumerate() {
            match this.answer(entry, caller) {
                Ok(answer) => answers.push(answer.to_reverse()),
                Err(refusal) => {
                    // None of the flows of a request that fails is connected.
                    if index > 0 {
                        this.disconnect_flows(&names[..index])?;
                    }
                    return Err(refusal.into());
                }
            }
        }
        this.publish_all();
        *spec = answers;
        Ok(true)
    }

    fn modify_qo_s(&self, qos: &mut StreamQoS, flows: &[String]) -> Result<bool, stream_end_point::ModifyQoSError> {
        Ok(self.change_qos(qos, flows)?)
    }

    fn set_protocol_restriction(&self, protocols: &[String]) -> Result<bool, SystemException> {
        let named = |carrier: &Carrier| {
            protocols.iter().any(|name| {
                let name = name.as_str();
                carrier.to_string().eq_ignore_ascii_case(name)
                    || (*carrier == Carrier::RtpUdp && name.eq_ignore_ascii_case("RTP"))
            })
        };
        let allowed: Vec<Carrier> = Carrier::ALL.into_iter().filter(named).collect();
        let flows = self.flows.lock();
        let has_any = |slot: &Slot| slot.flow.definition().carriers.iter().any(|carrier| allowed.contains(carrier));
        let is_possible = flows.values().all(has_any);
        drop(flows);
        if is_possible {
            if let Ok(names) = Any::new(protocols.to_vec()) {
                set_property(&self.properties, "ProtocolRestriction", &names);
            }
            *self.restriction.lock() = Some(allowed);
        }
        Ok(is_possible)
    }

    fn disconnect(&self, spec: &[String]) -> Result<(), stream_end_point::DisconnectError> {
        Ok(self.disconnect_flows(spec)?)
    }

    fn set_fp_status(
        &self,
        spec: &[String],
        name: &str,
        settings: &Any,
    ) -> Result<(), stream_end_point::SetFpStatusError> {
        for flow in self.chosen(spec)? {
            let fields = fields_of(name, settings);
            flow.set_fields(fields.ok_or_else(|| Refusal::Protocol(flow.definition().name.clone()))?);
        }
        Ok(())
    }

    fn get_fep(&self, name: &str) -> Result<Option<ObjectRef>, stream_end_point::GetFepError> {
        let this = self.shared()?;
        let mut flows = self.flows.lock();
        let slot = flows.get_mut(name).ok_or(Refusal::NoSuchFlow)?;
        if slot.object.is_none() {
            let state = FlowEndPointState::for_stream(&self.core, slot.flow.definition().clone(), this);
            state.serve().map_err(Refusal::from)?;
            slot.object = Some(state);
        }
        let object = slot.object.as_ref().map(|object| object.activation.reference()).transpose();
        Ok(object.map_err(Refusal::from)?)
    }

    fn add_fep(&self, fep: Option<&ObjectRef>) -> Result<String, stream_end_point::AddFepError> {
        let fep = fep.ok_or_else(|| Refusal::Failed("the flow end point is nil".to_owned()))?;
        // The flow of another process's object cannot be one of this end point.
        let state = self.core.local::<FlowEndPointState>(fep).ok_or(Refusal::NotSupported)?;
        let name = state.name();
        let mut flows = self.flows.lock();
        if flows.contains_key(&name) {
            return Err(Refusal::Failed("duplicateFepName".to_owned()).into());
        }
        if flows.len() >= crate::flow_spec::MAX_FLOWS {
            return Err(Refusal::Failed("the end point has too many flows".to_owned()).into());
        }
        let flow = state.join_stream(self.shared()?).ok_or_else(|| Refusal::Failed("duplicateRef".to_owned()))?;
        flows.insert(name.clone(), Slot { flow, object: Some(state), leaves: Vec::new() });
        drop(flows);
        self.publish_all();
        Ok(name)
    }

    fn remove_fep(&self, name: &str) -> Result<(), stream_end_point::RemoveFepError> {
        let removed = self.flows.lock().remove(name);
        let slot = removed.ok_or_else(|| Refusal::Failed("no flow end point has this name".to_owned()))?;
        slot.flow.close();
        if let Some(object) = slot.object {
            object.activation.end();
        }
        self.publish_all();
        Ok(())
    }

    fn set_negotiator(&self, negotiator: Option<&Negotiator>) -> Result<(), SystemException> {
        set_property(&self.properties, NEGOTIATOR, &Any::new(negotiator.cloned())?);
        *self.negotiator.lock() = negotiator.map(|negotiator| self.core.timed(negotiator));
        Ok(())
    }

    fn set_key(&self, _flow: &str, _key: &[u8]) -> Result<(), SystemException> {
        // Flows are protected by tokens; a key in clear would protect nothing.
        Err(SystemException::no_permission(0, spandrel::CompletionStatus::No)
            .with_detail("flows take no keys: each connection is opened by a token of its own"))
    }

    fn set_source_id(&self, id: i32) -> Result<(), SystemException> {
        self.flows.lock().values().for_each(|slot| slot.flow.set_source_id(id.cast_unsigned()));
        Ok(())
    }
}

impl EndPoint {
    /// The end point with its count of owners, while it is served.
    fn shared(&self) -> Result<Arc<Self>, Refusal> {
        let gone = || SystemException::object_not_exist(0, spandrel::CompletionStatus::No);
        Ok(self.own.upgrade().ok_or_else(gone)?)
    }

    /// Adds a receiver: the first one by a connection, further ones to it.
    fn add_leaf(
        self: &Arc<Self>,
        leaf: &StreamEndPoint,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, Refusal> {
        let mut plans = self.plans(spec)?;
        let mut request = FlowSpec::default();
        for plan in &mut plans {
            let name = &plan.entry.name;
            plan.carriers.retain(|carrier| carrier.is_datagram());
            let is_source = self.with_flow(name, |flow| flow.is_source())?;
            let &carrier = plan.carriers.first().filter(|_| is_source).ok_or(Refusal::NotSupported)?;
            request
                .push(FlowEntry { protocol: plan.protocol, carrier: Some(carrier), ..plan.entry.clone() }.to_string());
        }
        let is_met = self.change_qos(qos, spec)?;
        let is_connected = leaf.request_connection(Some(&self.reference()?), false, qos, &mut request)?;
        if !is_connected {
            return Err(Refusal::Failed("the receiver does not connect".to_owned()));
        }
        for answer in parse_reverse_flow_spec(&request)? {
            let Some(plan) = plans.iter().find(|plan| plan.entry.name == answer.name) else { continue };
            let address = answer.address.ok_or_else(|| {
                Refusal::Failed(format!("the receiver names no address for the flow `{}`", answer.name))
            })?;
            let flow = self.with_flow(&answer.name, Arc::clone)?;
            if flow.is_connected() {
                require_consent(&flow, &address, None)?;
                flow.add_receiver(&address)?;
            } else {
                let flow = self.fresh(&answer.name)?;
                require_consent(&flow, &address, None)?;
                flow.connect(&address, plan.protocol, true)?;
            }
            if let Some(slot) = self.flows.lock().get_mut(&answer.name) {
                slot.leaves.push((leaf.clone(), address));
            }
        }
        self.publish_all();
        Ok(is_met)
    }

    fn remove_leaf(&self, leaf: &StreamEndPoint, spec: &[String]) -> Result<(), Refusal> {
        let chosen: Vec<String> = self.chosen(spec)?.iter().map(|flow| flow.definition().name.clone()).collect();
        let mut is_any = false;
        for (name, slot) in self.flows.lock().iter_mut().filter(|(name, _)| chosen.contains(name)) {
            let flow = Arc::clone(&slot.flow);
            slot.leaves.retain(|(other, address)| {
                let is_leaf = other.is_equivalent(leaf);
                if is_leaf {
                    is_any = true;
                    tracing::debug!(flow = name, "a receiver leaves a flow");
                    flow.remove_target(address.data);
                }
                !is_leaf
            });
        }
        if is_any { Ok(()) } else { Err(Refusal::Failed("the end point receives none of these flows".to_owned())) }
    }

    /// Sends flows to the groups of the service, or joins the groups of a specification.
    fn join_groups(self: &Arc<Self>, qos: &mut StreamQoS, spec: &mut FlowSpec) -> Result<bool, Refusal> {
        let plans = self.plans(spec)?;
        let is_met = self.change_qos(qos, spec)?;
        let mut answer = FlowSpec::default();
        for (index, plan) in plans.iter().enumerate() {
            let name = &plan.entry.name;
            let carrier = plan.carriers.iter().copied().find(|carrier| carrier.is_datagram());
            let carrier = carrier.ok_or_else(|| Refusal::Failed(format!("the flow `{name}` goes by no datagrams")))?;
            let flow = self.fresh(name)?;
            let address = if flow.is_source() {
                let group = self.group(index, carrier);
                let group = group.ok_or_else(|| Refusal::Failed("the device has no multicast group".to_owned()))?;
                flow.connect(&group, plan.protocol, true)?;
                group
            } else {
                let group = plan.entry.address.as_ref().filter(|address| address.is_multicast());
                let group = group
                    .ok_or_else(|| Refusal::Failed(format!("the flow `{name}` has no address of a multicast group")))?;
                flow.listen(group.carrier, plan.protocol, self.core.host, Some(group))?
            };
            let entry = FlowEntry {
                carrier: Some(address.carrier),
                address: Some(address),
                protocol: plan.protocol,
                ..plan.entry.clone()
            };
            answer.push(entry.to_string());
        }
        self.publish_all();
        *spec = answer;
        Ok(is_met)
    }
}

impl Watcher for EndPoint {
    fn lose_peer(&self, _: &ObjectRef, reason: &str) {
        let reason = format!("the control of the stream {reason}");
        for slot in self.flows.lock().values() {
            slot.flow.end_without_control(&reason);
        }
        tracing::info!(reason, "a stream has ended");
        self.end();
    }
}

impl FlowOwner for EndPoint {
    fn flow(&self, name: &str) -> Option<Arc<FlowEnd>> {
        self.with_flow(name, Arc::clone).ok()
    }

    fn stream(&self) -> Option<StreamEndPoint> {
        self.reference().ok()
    }
}

impl StreamEndPointAServant for EndPoint {
    fn multiconnect(
        &self,
        qos: &mut StreamQoS,
        spec: &mut FlowSpec,
    ) -> Result<bool, stream_end_point_a::MulticonnectError> {
        Ok(self.shared()?.join_groups(qos, spec)?)
    }

    fn connect_leaf(
        &self,
        leaf: Option<&StreamEndPointB>,
        qos: &mut StreamQoS,
        flows: &[String],
    ) -> Result<bool, stream_end_point_a::ConnectLeafError> {
        let leaf = leaf.ok_or_else(|| Refusal::Failed("there is no receiver".to_owned()))?;
        Ok(self.shared()?.add_leaf(&self.core.timed(leaf), qos, flows)?)
    }

    fn disconnect_leaf(
        &self,
        leaf: Option<&StreamEndPointB>,
        spec: &[String],
    ) -> Result<(), stream_end_point_a::DisconnectLeafError> {
        let leaf = leaf.ok_or_else(|| Refusal::Failed("there is no receiver".to_owned()))?;
        Ok(self.remove_leaf(leaf, spec)?)
    }
}

impl StreamEndPointBServant for EndPoint {
    fn multiconnect(
        &self,
        qos: &mut StreamQoS,
        spec: &mut FlowSpec,
    ) -> Result<bool, stream_end_point_b::MulticonnectError> {
        Ok(self.shared()?.join_groups(qos, spec)?)
    }
}
