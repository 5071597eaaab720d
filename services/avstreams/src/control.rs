//! Controls of streams, and the configuration of multipoint streams.

use std::any::Any;
use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::services::av_streams::{
    BasicStreamCtrlServant, FlowSpec, FlowState, MCastConfigIf, MCastConfigIfServant, MCastConfigIfSkeleton, MmDevice,
    QoS, StreamCtrl, StreamCtrlServant, StreamCtrlSkeleton, StreamEndPoint, StreamEndPointA, StreamEndPointB,
    StreamEvent, StreamQoS, VDev, basic_stream_ctrl, m_cast_config_if, stream_ctrl, v_dev,
};
use spandrel::services::cos_property_service::{Property, PropertySetServant};
use spandrel::types;
use spandrel::{ObjectRef, SystemException};
use spandrel_property::{LocalPropertySet, delegate_property_set};

use crate::core::{Activation, Core, set_property};
use crate::flow_spec::{FlowEntry, MAX_FLOWS, MAX_NAME, parse_flow_spec, shown, shown_within};
use crate::peer_watch::{WatchGuard, Watcher, is_gone};
use crate::refusal::Refusal;

/// The parameters of one flow that a control remembers.
const MAX_PARAMETERS: usize = 64;
/// The characters of a reason that are kept.
const MAX_REASON: usize = 256;
/// The property with the last event.
const LAST_EVENT: &str = "LastEvent";
/// The beginning of the name of an event about a flow that has ended.
const FLOW_DEAD: &str = "flow_dead:";

/// A party of a stream.
#[derive(Clone)]
struct StreamParty {
    device: Option<MmDevice>,
    virtual_device: Option<VDev>,
    end_point: StreamEndPoint,
    /// Watches the end point while the party is in the stream.
    watch: Option<Arc<WatchGuard>>,
}

/// The state of a stream.
#[derive(Default)]
struct StreamState {
    a_party: Option<StreamParty>,
    b_parties: Vec<StreamParty>,
    flows: BTreeMap<String, FlowRecord>,
    /// The flows of a multicast stream, with the addresses of their groups.
    groups: Option<FlowSpec>,
    configuration: Option<MCastConfigIf>,
    granted: StreamQoS,
    /// Whether a request connects the parties of the stream.
    is_binding: bool,
}

/// The right of one request to connect the parties of a stream, until it is dropped.
struct BindingRight<'c>(&'c Control);

impl Drop for BindingRight<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_binding = false;
    }
}

/// The control's record of a flow.
#[derive(Clone, Default)]
struct FlowRecord {
    state: FlowState,
    /// The reason of the end, of a flow that has ended.
    end: Option<String>,
    connection: Option<ObjectRef>,
}

/// The servant of a stream's control.
pub(crate) struct Control {
    own: Weak<Self>,
    core: Arc<Core>,
    state: Mutex<StreamState>,
    properties: LocalPropertySet,
    activation: Activation,
}

delegate_property_set!(Control, properties);

impl Control {
    /// Serves the control of a stream without parties.
    pub(crate) fn serve(core: &Arc<Core>) -> Result<ObjectRef, SystemException> {
        let control = Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            core: Arc::clone(core),
            state: Mutex::default(),
            properties: core.properties(),
            activation: Activation::default(),
        });
        core.activate(Arc::new(StreamCtrlSkeleton::new(Arc::clone(&control))), &control.activation)
    }

    fn own(&self) -> Result<StreamCtrl, SystemException> {
        Ok(self.activation.reference()?.unchecked_narrow())
    }

    /// The names of a specification, all of which the stream has. Empty for all flows.
    fn names(&self, spec: &[String]) -> Result<Vec<String>, Refusal> {
        let entries = parse_flow_spec(spec).map_err(|_| Refusal::NoSuchFlow)?;
        let state = self.state.lock();
        let is_known = |entry: &FlowEntry| state.flows.contains_key(&entry.name);
        if entries.iter().all(is_known) {
            Ok(entries.into_iter().map(|entry| entry.name).collect())
        } else {
            Err(Refusal::NoSuchFlow)
        }
    }

    /// The parties: receivers mostly are B parties, so that these are started first.
    fn parties(&self) -> Vec<StreamParty> {
        let state = self.state.lock();
        state.b_parties.iter().chain(&state.a_party).cloned().collect()
    }

    fn set_states(&self, names: &[String], to: FlowState) {
        let mut state = self.state.lock();
        for (name, flow) in &mut state.flows {
            if (names.is_empty() || names.contains(name)) && flow.state != FlowState::Dead {
                flow.state = to;
            }
        }
        drop(state);
        self.publish();
    }

    /// Sets the properties with the flows and their states.
    fn publish(&self) {
        let flows = self.state.lock().flows.clone();
        let names: Vec<String> = flows.keys().cloned().collect();
        if let Ok(names) = types::Any::new(&names) {
            set_property(&self.properties, "Flows", &names);
        }
        for (name, flow) in flows {
            if let Ok(state) = types::Any::new(flow.state) {
                set_property(&self.properties, &format!("{name}_state"), &state);
            }
            if let Some(Ok(end)) = flow.end.map(types::Any::new) {
                set_property(&self.properties, &format!("{name}_end"), &end);
            }
        }
    }

    /// Records the flows of a stream: those of the specification, or else those of the end point.
    fn record_flows(&self, spec: &[String], end_point: &StreamEndPoint) -> Result<(), Refusal> {
        let mut names: Vec<String> = parse_flow_spec(spec)?.into_iter().map(|entry| entry.name).collect();
        if names.is_empty() {
            let flows = end_point.get_property_value("Flows").ok();
            names = flows.and_then(|flows| flows.extract().ok()).unwrap_or_default();
        }
        // The names of a foreign end point.
        names.retain(|name| name.len() <= MAX_NAME);
        names.truncate(MAX_FLOWS);
        let mut state = self.state.lock();
        state.flows.clear();
        for name in names {
            state.flows.insert(name, FlowRecord { state: FlowState::Stopped, ..FlowRecord::default() });
        }
        drop(state);
        self.publish();
        Ok(())
    }

    fn create_a(
        &self,
        device: &MmDevice,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<(StreamEndPointA, StreamParty, bool), Refusal> {
        let mut name = String::new();
        let own = self.own()?;
        let (end_point, virtual_device, is_met) = device.create_a(Some(&own), qos, &mut name, spec)?;
        let end_point = end_point.ok_or_else(|| Refusal::Failed("the A party creates no end point".to_owned()))?;
        let end_point = self.core.timed(&end_point);
        let virtual_device = virtual_device.map(|device| self.core.timed(&device));
        let end = StreamEndPoint::clone(&end_point);
        let party = StreamParty { device: Some(device.clone()), virtual_device, end_point: end, watch: None };
        Ok((end_point, party, is_met))
    }

    fn create_b(
        &self,
        device: &MmDevice,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<(StreamEndPointB, StreamParty, bool), Refusal> {
        let mut name = String::new();
        let own = self.own()?;
        let (end_point, virtual_device, is_met) = device.create_b(Some(&own), qos, &mut name, spec)?;
        let end_point = end_point.ok_or_else(|| Refusal::Failed("the B party creates no end point".to_owned()))?;
        let end_point = self.core.timed(&end_point);
        let virtual_device = virtual_device.map(|device| self.core.timed(&device));
        let end = StreamEndPoint::clone(&end_point);
        let party = StreamParty { device: Some(device.clone()), virtual_device, end_point: end, watch: None };
        Ok((end_point, party, is_met))
    }

    /// Binds two devices by one stream.
    fn bind_two(
        &self,
        a_device: &MmDevice,
        b_device: &MmDevice,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, Refusal> {
        let _right = self.begin_binding()?;
        let names: Vec<String> = parse_flow_spec(spec)?.into_iter().map(|entry| entry.name).collect();
        let (a_end, a_party, a_met) = self.create_a(a_device, qos, &names)?;
        let bound = (|| {
            let (b_end, b_party, b_met) = self.create_b(b_device, qos, &names)?;
            let connected = self.connect(&a_end, &a_party, &b_end, &b_party, qos, (spec, &names));
            if connected.is_err() {
                _ = b_end.destroy(&[]);
            }
            Ok((b_party, connected? && b_met))
        })();
        match bound {
            Ok((b_party, is_met)) => {
                self.record_flows(spec, &a_party.end_point)?;
                let (a_party, b_party) = (self.watched(a_party), self.watched(b_party));
                let mut state = self.state.lock();
                state.a_party = Some(a_party);
                state.b_parties.push(b_party);
                state.granted.clone_from(qos);
                Ok(is_met && a_met)
            }
            Err(refusal) => {
                _ = a_end.destroy(&[]);
                Err(refusal)
            }
        }
    }

    fn connect(
        &self,
        a_end: &StreamEndPointA,
        a_party: &StreamParty,
        b_end: &StreamEndPointB,
        b_party: &StreamParty,
        qos: &mut StreamQoS,
        (spec, names): (&[String], &[String]),
    ) -> Result<bool, Refusal> {
        let own = self.own()?;
        let mut is_met = true;
        if let (Some(a_device), Some(b_device)) = (&a_party.virtual_device, &b_party.virtual_device) {
            is_met &= a_device.set_peer(Some(&own), Some(b_device), qos, names)?;
            is_met &= b_device.set_peer(Some(&own), Some(a_device), qos, names)?;
        }
        Ok(a_end.connect(Some(b_end), qos, spec)? && is_met)
    }

    /// Watches a party of the stream, which ends when the party is lost.
    fn watched(&self, mut party: StreamParty) -> StreamParty {
        if let Some(control) = self.own.upgrade() {
            let watcher: Arc<dyn Watcher> = control;
            party.watch = Some(Arc::new(self.core.peers.add(&party.end_point, &watcher)));
        }
        party
    }

    /// The right to connect the parties of the stream, if it has none.
    fn begin_binding(&self) -> Result<BindingRight<'_>, Refusal> {
        let mut state = self.state.lock();
        if state.a_party.is_some() || !state.b_parties.is_empty() || state.is_binding {
            return Err(Refusal::Failed("the stream has parties".to_owned()));
        }
        state.is_binding = true;
        // Those of parties that have left.
        let configuration = state.configuration.take();
        state.groups = None;
        drop(state);
        if let Some(configuration) = configuration {
            self.end_configuration(&configuration);
        }
        Ok(BindingRight(self))
    }

    fn end_configuration(&self, configuration: &MCastConfigIf) {
        _ = configuration.delete_all_properties();
        if let Some(local) = self.core.local::<MulticastConfiguration>(configuration) {
            local.activation.end();
        }
    }

    /// Begins a multipoint stream with its sender: to groups if the device has some, else to each receiver.
    fn begin_multipoint(&self, device: &MmDevice, qos: &mut StreamQoS, spec: &[String]) -> Result<bool, Refusal> {
        let _right = self.begin_binding()?;
        let names: Vec<String> = parse_flow_spec(spec)?.into_iter().map(|entry| entry.name).collect();
        let (a_end, a_party, is_met) = self.create_a(device, qos, &names)?;
        let served = MulticastConfiguration::serve(&self.core).inspect_err(|_| _ = a_end.destroy(&[]))?;
        let configuration: MCastConfigIf = served.unchecked_narrow();
        let own = self.own()?;
        let begun = (|| {
            if let Some(device) = &a_party.virtual_device {
                device.set_mcast_peer(Some(&own), Some(&configuration), qos, &names)?;
            }
            let mut groups: FlowSpec = spec.to_vec();
            match a_end.multiconnect(qos, &mut groups).map_err(Refusal::from) {
                Ok(_) => Ok(Some(groups)),
                // Without groups, receivers are sent to one by one.
                Err(Refusal::Failed(_)) => Ok(None),
                Err(refusal) => Err(refusal),
            }
        })();
        let groups = match begun {
            Ok(groups) => groups,
            Err(refusal) => {
                _ = a_end.destroy(&[]);
                self.end_configuration(&configuration);
                return Err(refusal);
            }
        };
        self.record_flows(spec, &a_party.end_point)?;
        let a_party = self.watched(a_party);
        let mut state = self.state.lock();
        (state.groups, state.configuration) = (groups, Some(configuration));
        state.a_party = Some(a_party);
        state.granted.clone_from(qos);
        Ok(is_met)
    }

    /// Adds a receiver to a multipoint stream.
    fn add_receiver(&self, device: &MmDevice, qos: &mut StreamQoS, spec: &[String]) -> Result<bool, Refusal> {
        let (a_party, groups, configuration) = {
            let state = self.state.lock();
            if state.b_parties.len() >= self.core.limits.receivers {
                return Err(Refusal::Failed(format!("a stream has at most {} receivers", self.core.limits.receivers)));
            }
            (state.a_party.clone(), state.groups.clone(), state.configuration.clone())
        };
        let no_stream = || Refusal::Failed("the stream is not multipoint: bind a sender alone first".to_owned());
        let (a_party, configuration) = (a_party.ok_or_else(no_stream)?, configuration.ok_or_else(no_stream)?);
        let names: Vec<String> =
            if spec.is_empty() { self.state.lock().flows.keys().cloned().collect() } else { self.names(spec)? };
        let (b_end, b_party, is_met) = self.create_b(device, qos, &names)?;
        let own = self.own()?;
        let added = (|| {
            if let Some(virtual_device) = &b_party.virtual_device {
                virtual_device.set_mcast_peer(Some(&own), Some(&configuration), qos, &names)?;
                configuration.set_peer(Some(virtual_device), qos, &names)?;
            }
            match groups {
                Some(groups) => {
                    let is_chosen =
                        |entry: &String| FlowEntry::parse(entry).is_ok_and(|entry| names.contains(&entry.name));
                    let mut chosen: FlowSpec = groups.into_iter().filter(is_chosen).collect();
                    Ok(b_end.multiconnect(qos, &mut chosen)?)
                }
                None => {
                    let sender: StreamEndPointA = a_party.end_point.unchecked_narrow();
                    Ok(sender.connect_leaf(Some(&b_end), qos, &names)?)
                }
            }
        })();
        match added {
            Ok(is_connected) => {
                let b_party = self.watched(b_party);
                self.state.lock().b_parties.push(b_party);
                Ok(is_connected && is_met)
            }
            Err(refusal) => {
                _ = b_end.destroy(&[]);
                Err(refusal)
            }
        }
    }

    /// Takes the parties that match out of the stream.
    fn unbind_matching(&self, spec: &[String], is_it: impl Fn(&StreamParty) -> bool) -> Result<(), Refusal> {
        let names = self.names(spec)?;
        let is_whole = names.is_empty();
        let (sender, leaving): (Option<StreamParty>, Vec<StreamParty>) = {
            let mut state = self.state.lock();
            let leaving: Vec<StreamParty> =
                state.b_parties.iter().chain(&state.a_party).filter(|party| is_it(party)).cloned().collect();
            let sender = state.a_party.clone().filter(|party| !is_it(party));
            if is_whole {
                state.b_parties.retain(|party| !is_it(party));
                if state.a_party.as_ref().is_some_and(&is_it) {
                    state.a_party = None;
                }
            }
            (sender, leaving)
        };
        if leaving.is_empty() {
            return Err(Refusal::Failed("the stream has no such party".to_owned()));
        }
        for party in leaving {
            if let Some(sender) = &sender {
                let sender: StreamEndPointA = sender.end_point.unchecked_narrow();
                let leaf: StreamEndPointB = party.end_point.unchecked_narrow();
                // A stream between two parties has no leaves.
                _ = sender.disconnect_leaf(Some(&leaf), &names);
            }
            // A party that has gone is out of the stream.
            _ = if is_whole {
                party.end_point.destroy(&[]).is_ok()
            } else {
                party.end_point.disconnect(&names).is_ok()
            };
        }
        Ok(())
    }

    fn destroy_flows(&self, spec: &[String]) -> Result<(), Refusal> {
        let names = self.names(spec)?;
        for party in self.parties() {
            if let Err(error) = party.end_point.destroy(&names) {
                tracing::debug!(%error, "a party of a stream that ends does not answer");
            }
        }
        self.set_states(&names, FlowState::Dead);
        if names.is_empty() {
            let state = std::mem::take(&mut *self.state.lock());
            if let Some(configuration) = state.configuration {
                self.end_configuration(&configuration);
            }
            self.activation.end();
        }
        Ok(())
    }
}

impl Watcher for Control {
    /// Takes a receiver out of a multipoint stream. A stream that loses its sender, or one of two parties, ends.
    fn lose_peer(&self, peer: &ObjectRef, reason: &str) {
        let is_lost = |party: &StreamParty| party.end_point.is_equivalent(peer);
        let (is_a_party, is_leaf, names) = {
            let state = self.state.lock();
            let is_a_party = state.a_party.as_ref().is_some_and(is_lost);
            let is_b_party = state.b_parties.iter().any(is_lost);
            if !is_a_party && !is_b_party {
                return; // it was unbound
            }
            let names: Vec<String> = state.flows.keys().cloned().collect();
            (is_a_party, !is_a_party && state.configuration.is_some(), names)
        };
        let reason = format!("the {} party {reason}", if is_a_party { "A" } else { "B" });
        tracing::info!(reason, "a stream has lost a party");
        if is_leaf {
            _ = self.unbind_matching(&[], is_lost);
            return;
        }
        for name in names {
            if let Ok(value) = types::Any::new(&reason) {
                let event = StreamEvent { property_name: format!("{FLOW_DEAD}{name}"), property_value: value };
                _ = self.push_event(&event);
            }
        }
        let others: Vec<StreamParty> = self.parties().into_iter().filter(|party| !is_lost(party)).collect();
        for party in others {
            if let Err(error) = party.end_point.destroy(&[]) {
                tracing::debug!(%error, "a party of a stream that ends does not answer");
            }
        }
        let mut state = self.state.lock();
        (state.a_party, state.b_parties) = (None, Vec::new());
    }
}

impl BasicStreamCtrlServant for Control {
    fn stop(&self, spec: &[String]) -> Result<(), basic_stream_ctrl::StopError> {
        let names = self.names(spec)?;
        for party in self.parties().into_iter().rev() {
            party.end_point.stop(&names)?;
        }
        self.set_states(&names, FlowState::Stopped);
        Ok(())
    }

    fn start(&self, spec: &[String]) -> Result<(), basic_stream_ctrl::StartError> {
        let names = self.names(spec)?;
        for party in self.parties() {
            party.end_point.start(&names)?;
        }
        self.set_states(&names, FlowState::Started);
        Ok(())
    }

    fn destroy(&self, spec: &[String]) -> Result<(), basic_stream_ctrl::DestroyError> {
        Ok(self.destroy_flows(spec)?)
    }

    fn modify_qo_s(&self, qos: &mut StreamQoS, spec: &[String]) -> Result<bool, basic_stream_ctrl::ModifyQoSError> {
        let names = self.names(spec)?;
        let before = self.state.lock().granted.clone();
        let mut changed: Vec<VDev> = Vec::new();
        let mut is_met = true;
        for device in self.parties().into_iter().filter_map(|party| party.virtual_device) {
            match device.modify_qo_s(qos, &names) {
                Ok(met) => is_met &= met,
                Err(error) => {
                    // The parties that have agreed go back.
                    for device in changed {
                        _ = device.modify_qo_s(&mut before.clone(), &names);
                    }
                    return Err(error);
                }
            }
            changed.push(device);
        }
        if !is_met {
            // A later party may have granted less than an earlier one.
            for device in &changed {
                device.modify_qo_s(qos, &names)?;
            }
        }
        merge(&mut self.state.lock().granted, qos);
        Ok(is_met)
    }

    fn push_event(&self, event: &StreamEvent) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        if let Some(flow) = event.property_name.strip_prefix(FLOW_DEAD).and_then(|name| state.flows.get_mut(name)) {
            flow.state = FlowState::Dead;
            let reason = event.property_value.extract::<String>().unwrap_or_default();
            flow.end.get_or_insert_with(|| shown_within(&reason, MAX_REASON));
        }
        drop(state);
        tracing::debug!(event = shown(&event.property_name), "an event of a stream");
        self.publish();
        set_property(&self.properties, LAST_EVENT, &types::Any::new(event)?);
        Ok(())
    }

    fn set_fp_status(
        &self,
        spec: &[String],
        name: &str,
        settings: &types::Any,
    ) -> Result<(), basic_stream_ctrl::SetFpStatusError> {
        let names = self.names(spec)?;
        for party in self.parties() {
            party.end_point.set_fp_status(&names, name, settings)?;
        }
        Ok(())
    }

    fn get_flow_connection(&self, flow: &str) -> Result<Option<ObjectRef>, basic_stream_ctrl::GetFlowConnectionError> {
        let connection = self.state.lock().flows.get(flow).map(|flow| flow.connection.clone());
        // A flow without a flow connection is controlled by its stream alone.
        Ok(Some(connection.ok_or(Refusal::NoSuchFlow)?.ok_or(Refusal::NotSupported)?))
    }

    fn set_flow_connection(
        &self,
        flow: &str,
        connection: Option<&ObjectRef>,
    ) -> Result<(), basic_stream_ctrl::SetFlowConnectionError> {
        let mut state = self.state.lock();
        let record = state.flows.get_mut(flow).ok_or(Refusal::NoSuchFlow)?;
        record.connection = connection.cloned();
        Ok(())
    }
}

/// Replaces the parameters of a request in those that were granted.
fn merge(granted: &mut StreamQoS, request: &[QoS]) {
    for qos in request {
        let has_room = granted.len() <= MAX_FLOWS;
        match granted.iter_mut().find(|own| own.qo_s_type == qos.qo_s_type) {
            Some(own) => {
                own.qo_s_params.retain(|old| qos.qo_s_params.iter().all(|new| new.property_name != old.property_name));
                own.qo_s_params.extend(qos.qo_s_params.iter().cloned());
                own.qo_s_params.truncate(MAX_PARAMETERS);
            }
            // Foreign devices may grant parameters without end.
            None if has_room => granted.push(qos.clone()),
            None => {}
        }
    }
}

impl StreamCtrlServant for Control {
    fn bind_devs(
        &self,
        a_party: Option<&MmDevice>,
        b_party: Option<&MmDevice>,
        qos: &mut StreamQoS,
        flows: &[String],
    ) -> Result<bool, stream_ctrl::BindDevsError> {
        let timed = |party: &MmDevice| self.core.timed(party);
        Ok(match (a_party.map(timed), b_party.map(timed)) {
            (Some(a_party), Some(b_party)) => self.bind_two(&a_party, &b_party, qos, flows)?,
            (Some(a_party), None) => self.begin_multipoint(&a_party, qos, flows)?,
            (None, Some(b_party)) => self.add_receiver(&b_party, qos, flows)?,
            (None, None) => return Err(Refusal::Failed("both devices are nil".to_owned()).into()),
        })
    }

    fn bind(
        &self,
        a_party: Option<&StreamEndPointA>,
        b_party: Option<&StreamEndPointB>,
        qos: &mut StreamQoS,
        flows: &[String],
    ) -> Result<bool, stream_ctrl::BindError> {
        let missing = || Refusal::Failed("an end point is nil".to_owned());
        let (a_end, b_end) = (a_party.ok_or_else(missing)?, b_party.ok_or_else(missing)?);
        let (a_end, b_end) = (&self.core.timed(a_end), &self.core.timed(b_end));
        let _right = self.begin_binding()?;
        let is_met = a_end.connect(Some(b_end), qos, flows)?;
        self.record_flows(flows, a_end)?;
        let party = |end_point: &StreamEndPoint| {
            let end_point = end_point.clone();
            self.watched(StreamParty { device: None, virtual_device: None, end_point, watch: None })
        };
        let (a_party, b_party) = (party(a_end), party(b_end));
        let mut state = self.state.lock();
        state.a_party = Some(a_party);
        state.b_parties.push(b_party);
        state.granted.clone_from(qos);
        Ok(is_met)
    }

    fn unbind_dev(&self, device: Option<&MmDevice>, spec: &[String]) -> Result<(), stream_ctrl::UnbindDevError> {
        let device = device.ok_or_else(|| Refusal::Failed("the device is nil".to_owned()))?;
        let is_it = |party: &StreamParty| party.device.as_ref().is_some_and(|own| own.is_equivalent(device));
        Ok(self.unbind_matching(spec, is_it)?)
    }

    fn unbind_party(
        &self,
        end_point: Option<&StreamEndPoint>,
        spec: &[String],
    ) -> Result<(), stream_ctrl::UnbindPartyError> {
        let end_point = end_point.ok_or_else(|| Refusal::Failed("the end point is nil".to_owned()))?;
        Ok(self.unbind_matching(spec, |party| party.end_point.is_equivalent(end_point))?)
    }

    fn unbind(&self) -> Result<(), stream_ctrl::UnbindError> {
        Ok(self.destroy_flows(&[])?)
    }

    fn get_related_vdev(
        &self,
        device: Option<&MmDevice>,
    ) -> Result<(Option<VDev>, Option<StreamEndPoint>), stream_ctrl::GetRelatedVdevError> {
        let device = device.ok_or_else(|| Refusal::Failed("the device is nil".to_owned()))?;
        let is_it = |party: &StreamParty| party.device.as_ref().is_some_and(|own| own.is_equivalent(device));
        let party = self.parties().into_iter().find(is_it);
        let party = party.ok_or_else(|| Refusal::Failed("the device is no party of the stream".to_owned()))?;
        Ok((party.virtual_device, Some(party.end_point)))
    }
}

/// The servant of a multipoint stream's configuration.
pub(crate) struct MulticastConfiguration {
    core: Arc<Core>,
    peers: Mutex<Vec<VDev>>,
    initial: Mutex<Vec<Property>>,
    properties: LocalPropertySet,
    activation: Activation,
}

delegate_property_set!(MulticastConfiguration, properties);

impl MulticastConfiguration {
    fn serve(core: &Arc<Core>) -> Result<ObjectRef, SystemException> {
        let configuration = Arc::new(Self {
            core: Arc::clone(core),
            peers: Mutex::default(),
            initial: Mutex::default(),
            properties: core.properties(),
            activation: Activation::default(),
        });
        let skeleton = Arc::new(MCastConfigIfSkeleton::new(Arc::clone(&configuration)));
        let object = core.activate(skeleton, &configuration.activation)?;
        let configuration: Arc<dyn Any + Send + Sync> = configuration;
        core.add_local(&object, Arc::downgrade(&configuration));
        Ok(object)
    }

    fn peers(&self) -> Vec<VDev> {
        self.peers.lock().clone()
    }
}

impl MCastConfigIfServant for MulticastConfiguration {
    fn set_peer(
        &self,
        peer: Option<&ObjectRef>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, m_cast_config_if::SetPeerError> {
        let peer = peer.ok_or_else(|| Refusal::Failed("the peer is nil".to_owned()))?;
        let most = self.core.limits.receivers;
        if self.peers.lock().len() >= most {
            return Err(Refusal::Failed(format!("a configuration has at most {most} peers")).into());
        }
        let peer: VDev = self.core.timed_object(peer).narrow().map_err(Refusal::from)?;
        let is_met = peer.modify_qo_s(qos, spec).map_err(Refusal::from)?;
        let initial = self.initial.lock().clone();
        for setting in &initial {
            peer.configure(setting).map_err(Refusal::from)?;
        }
        self.peers.lock().push(peer);
        Ok(is_met)
    }

    fn configure(&self, setting: &Property) -> Result<(), SystemException> {
        set_property(&self.properties, &setting.property_name, &setting.property_value);
        for peer in self.peers() {
            // A peer that does not know the setting, or is gone, does not keep the others from it.
            if let Err(error) = peer.configure(setting) {
                tracing::debug!(%error, setting = shown(&setting.property_name), "a peer was not configured");
                if matches!(&error, v_dev::ConfigureError::System(exception) if is_gone(exception)) {
                    self.peers.lock().retain(|other| !other.is_equivalent(&peer));
                }
            }
        }
        Ok(())
    }

    fn set_initial_configuration(&self, initial: &[Property]) -> Result<(), SystemException> {
        self.properties.define_properties(initial).map_err(|error| {
            SystemException::bad_param(0, spandrel::CompletionStatus::No).with_detail(move || error.to_string())
        })?;
        *self.initial.lock() = initial.to_vec();
        Ok(())
    }

    fn set_format(&self, flow: &str, format: &str) -> Result<(), m_cast_config_if::SetFormatError> {
        self.peers().iter().try_for_each(|peer| peer.set_format(flow, format))
    }

    fn set_dev_params(&self, flow: &str, parameters: &[Property]) -> Result<(), m_cast_config_if::SetDevParamsError> {
        self.peers().iter().try_for_each(|peer| peer.set_dev_params(flow, parameters))
    }
}
