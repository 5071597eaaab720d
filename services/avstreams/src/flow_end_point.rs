//! Flow end points as objects: those of a stream's flows, and those that a flow device creates.

use std::time::Instant;

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::services::av_streams::{
    FlowConnection, FlowConsumerServant, FlowConsumerSkeleton, FlowEndPoint, FlowEndPointServant, FlowProducerServant,
    FlowProducerSkeleton, FlowState, MCastConfigIf, QoS, StreamEndPoint, flow_end_point, flow_producer,
};
use spandrel::services::cos_property_service::{Property, PropertySetServant};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_property::{LocalPropertySet, delegate_property_set};

use crate::core::{Activation, Core, set_property};
use crate::flow::FlowEnd;
use crate::flow_rules::{caller_ip, fields_of, publish, require_consent};
use crate::flow_spec::{Carrier, FlowAddress, FlowProtocol};
use crate::media::FlowDefinition;
use crate::qos::{apply, negotiate_flow};
use crate::refusal::Refusal;

/// The property with the name of the flow.
pub(crate) const FLOW_NAME: &str = "FlowName";
/// The property with the formats.
pub(crate) const FORMATS: &str = "Format";

/// The end point of a stream, which has the flow of a flow end point.
pub(crate) trait FlowOwner: Send + Sync {
    /// The flow with this name.
    fn flow(&self, name: &str) -> Option<Arc<FlowEnd>>;
    /// The reference to the end point, while it is served.
    fn stream(&self) -> Option<StreamEndPoint>;
}

/// The servant of a flow end point.
pub(crate) struct FlowEndPointState {
    core: Arc<Core>,
    definition: FlowDefinition,
    owner: Mutex<Owner>,
    dialogue: Mutex<Dialogue>,
    properties: LocalPropertySet,
    created: Instant,
    pub(crate) activation: Activation,
}

/// The party that has the flow.
enum Owner {
    /// The end point of a stream, by the name of the flow.
    Stream(Weak<dyn FlowOwner>),
    /// The object has a flow of its own.
    Object(Arc<FlowEnd>),
}

/// The state of the object's connection.
#[derive(Default)]
struct Dialogue {
    is_locked: bool,
    stream: Option<StreamEndPoint>,
    connection: Option<FlowConnection>,
    peer: Option<FlowEndPoint>,
    protocol: Option<FlowProtocol>,
    allowed: Option<Vec<Carrier>>,
}

delegate_property_set!(FlowEndPointState, properties);

impl FlowEndPointState {
    /// The object of a stream's flow.
    pub(crate) fn for_stream(core: &Arc<Core>, definition: FlowDefinition, stream: Arc<dyn FlowOwner>) -> Arc<Self> {
        let state = Self::with_owner(core, definition, Owner::Stream(Arc::downgrade(&stream)));
        state.dialogue.lock().stream = stream.stream();
        state
    }

    /// An object with a flow of its own.
    pub(crate) fn standalone(core: &Arc<Core>, definition: FlowDefinition) -> Arc<Self> {
        let flow = core.flow(&definition);
        Self::with_owner(core, definition, Owner::Object(flow))
    }

    fn with_owner(core: &Arc<Core>, definition: FlowDefinition, owner: Owner) -> Arc<Self> {
        let properties = core.properties();
        if let (Ok(name), Ok(formats)) = (Any::new(&definition.name), Any::new(&definition.formats)) {
            set_property(&properties, FLOW_NAME, &name);
            set_property(&properties, FORMATS, &formats);
        }
        Arc::new(Self {
            core: Arc::clone(core),
            definition,
            owner: Mutex::new(owner),
            dialogue: Mutex::default(),
            properties,
            created: Instant::now(),
            activation: Activation::default(),
        })
    }

    /// Serves the object, as a producer or a consumer.
    pub(crate) fn serve(self: &Arc<Self>) -> Result<ObjectRef, SystemException> {
        let object = if self.definition.medium.is_source() {
            self.core.activate(Arc::new(FlowProducerSkeleton::new(Arc::clone(self))), &self.activation)
        } else {
            self.core.activate(Arc::new(FlowConsumerSkeleton::new(Arc::clone(self))), &self.activation)
        }?;
        let state: Arc<dyn std::any::Any + Send + Sync> = Arc::<Self>::clone(self);
        self.core.add_local(&object, Arc::downgrade(&state));
        Ok(object)
    }

    /// Whether it has neither a stream nor a connection for the time after which parties count as dead.
    pub(crate) fn is_abandoned(&self) -> bool {
        let has_flow = match &*self.owner.lock() {
            Owner::Object(flow) => flow.is_connected(),
            Owner::Stream(_) => true,
        };
        !has_flow && self.created.elapsed() >= self.core.limits.absence
    }

    pub(crate) fn name(&self) -> String {
        self.definition.name.clone()
    }

    /// Makes the flow one of a stream. `None` if it is one already.
    pub(crate) fn join_stream(&self, stream: Arc<dyn FlowOwner>) -> Option<Arc<FlowEnd>> {
        let mut owner = self.owner.lock();
        let Owner::Object(flow) = &*owner else { return None };
        let flow = Arc::clone(flow);
        *owner = Owner::Stream(Arc::downgrade(&stream));
        self.dialogue.lock().stream = stream.stream();
        Some(flow)
    }

    fn flow(&self) -> Result<Arc<FlowEnd>, Refusal> {
        let gone = || Refusal::System(SystemException::object_not_exist(0, CompletionStatus::No));
        match &*self.owner.lock() {
            Owner::Object(flow) => Ok(Arc::clone(flow)),
            Owner::Stream(stream) => {
                stream.upgrade().and_then(|stream| stream.flow(&self.definition.name)).ok_or_else(gone)
            }
        }
    }

    /// The flow, ready for a connection.
    fn fresh(&self) -> Result<Arc<FlowEnd>, Refusal> {
        let flow = self.flow()?;
        if flow.is_connected() {
            return Err(Refusal::AlreadyConnected);
        }
        if flow.state() != FlowState::Dead {
            return Ok(flow);
        }
        match &mut *self.owner.lock() {
            Owner::Object(own) => {
                *own = Arc::new(own.renewed());
                Ok(Arc::clone(own))
            }
            Owner::Stream(_) => Err(Refusal::Failed("the flow of the stream has ended".to_owned())),
        }
    }

    fn negotiate(&self, qos: &mut QoS, flow: &FlowEnd) -> Result<bool, Refusal> {
        let is_met = negotiate_flow(qos, &self.definition)?;
        // The name of a flow is that of the other party's, too.
        let own = QoS { qo_s_type: String::new(), ..qos.clone() };
        apply(&[own], flow);
        Ok(is_met)
    }

    fn carrier(&self, protocol: FlowProtocol) -> Result<Carrier, Refusal> {
        let allowed = self.dialogue.lock().allowed.clone();
        let is_allowed = |carrier: &&Carrier| {
            allowed.as_ref().is_none_or(|allowed| allowed.contains(carrier))
                && match protocol {
                    FlowProtocol::Rtp => **carrier == Carrier::RtpUdp,
                    FlowProtocol::Sfp { .. } => **carrier != Carrier::RtpUdp,
                    FlowProtocol::None => true,
                }
        };
        let carrier = self.definition.carriers.iter().find(is_allowed);
        carrier.copied().ok_or_else(|| Refusal::Protocol(self.name()))
    }

    fn protocol(&self, text: &str) -> Result<FlowProtocol, Refusal> {
        let requested = FlowProtocol::parse(text).ok_or_else(|| Refusal::Protocol(self.name()))?;
        let chosen = self.dialogue.lock().protocol.unwrap_or(self.definition.protocol);
        Ok(if requested == FlowProtocol::None { chosen } else { requested })
    }

    /// Connects a producer; a further receiver is added.
    fn connect_producer(&self, qos: &mut QoS, address: &str, protocol: &str, is_group: bool) -> Result<bool, Refusal> {
        let address = FlowAddress::parse(address)?;
        let protocol = self.protocol(protocol)?;
        let flow = self.flow()?;
        if flow.is_connected() {
            require_consent(&flow, &address, None)?;
            let is_met = self.negotiate(qos, &flow)?;
            flow.add_receiver(&address)?;
            return Ok(is_met);
        }
        let flow = self.fresh()?;
        if address.is_multicast() {
            let is_allowed = is_group && !self.definition.needs_token;
            if !is_allowed {
                return Err(Refusal::Failed("the flow does not go to groups, which show no tokens".to_owned()));
            }
        } else {
            require_consent(&flow, &address, caller_ip())?;
        }
        let is_met = self.negotiate(qos, &flow)?;
        // Further receivers may be added to a flow by datagrams without credit.
        let has_credit = matches!(protocol, FlowProtocol::Sfp { credit: Some(_) });
        flow.connect(&address, protocol, address.carrier.is_datagram() && !has_credit)?;
        publish(&self.properties, &flow);
        Ok(is_met)
    }
}

impl FlowEndPointServant for FlowEndPointState {
    fn lock(&self) -> Result<bool, SystemException> {
        let mut dialogue = self.dialogue.lock();
        Ok(!std::mem::replace(&mut dialogue.is_locked, true))
    }

    fn unlock(&self) -> Result<(), SystemException> {
        self.dialogue.lock().is_locked = false;
        Ok(())
    }

    fn stop(&self) -> Result<(), SystemException> {
        let flow = self.flow().map_err(system)?;
        flow.set_started(false);
        publish(&self.properties, &flow);
        Ok(())
    }

    fn start(&self) -> Result<(), SystemException> {
        let flow = self.flow().map_err(system)?;
        flow.set_started(true);
        publish(&self.properties, &flow);
        Ok(())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        if let Ok(flow) = self.flow() {
            flow.close();
        }
        self.activation.end();
        Ok(())
    }

    fn related_sep(&self) -> Result<Option<StreamEndPoint>, SystemException> {
        Ok(self.dialogue.lock().stream.clone())
    }

    fn set_related_sep(&self, value: Option<&StreamEndPoint>) -> Result<(), SystemException> {
        self.dialogue.lock().stream = value.cloned();
        Ok(())
    }

    fn related_flow_connection(&self) -> Result<Option<FlowConnection>, SystemException> {
        Ok(self.dialogue.lock().connection.clone())
    }

    fn set_related_flow_connection(&self, value: Option<&FlowConnection>) -> Result<(), SystemException> {
        self.dialogue.lock().connection = value.cloned();
        Ok(())
    }

    fn get_connected_fep(&self) -> Result<Option<FlowEndPoint>, flow_end_point::GetConnectedFepError> {
        let peer = self.dialogue.lock().peer.clone();
        Ok(Some(peer.ok_or(Refusal::NotConnected)?))
    }

    fn use_flow_protocol(&self, name: &str, settings: &Any) -> Result<bool, flow_end_point::UseFlowProtocolError> {
        let protocol = FlowProtocol::parse(name).ok_or_else(|| Refusal::Protocol(self.name()))?;
        self.carrier(protocol)?;
        if let Some(fields) = fields_of(name, settings) {
            self.flow()?.set_fields(fields);
        }
        self.dialogue.lock().protocol = Some(protocol);
        Ok(true)
    }

    fn set_format(&self, format: &str) -> Result<(), flow_end_point::SetFormatError> {
        let is_known = self.definition.formats.is_empty() || self.definition.formats.iter().any(|own| own == format);
        if !is_known {
            return Err(Refusal::NotSupported.into());
        }
        if let Ok(format) = Any::new(vec![format.to_owned()]) {
            set_property(&self.properties, FORMATS, &format);
        }
        Ok(())
    }

    fn set_dev_params(&self, settings: &[Property]) -> Result<(), flow_end_point::SetDevParamsError> {
        for setting in settings {
            let defined = self.properties.define_property(&setting.property_name, &setting.property_value);
            defined.map_err(|_| Refusal::Property)?;
        }
        Ok(())
    }

    fn set_protocol_restriction(
        &self,
        protocols: &[String],
    ) -> Result<(), flow_end_point::SetProtocolRestrictionError> {
        let is_named = |carrier: &Carrier| protocols.iter().any(|name| carrier.to_string().eq_ignore_ascii_case(name));
        let allowed: Vec<Carrier> = self.definition.carriers.iter().copied().filter(is_named).collect();
        if allowed.is_empty() {
            return Err(Refusal::NotSupported.into());
        }
        self.dialogue.lock().allowed = Some(allowed);
        Ok(())
    }

    fn is_fep_compatible(&self, fep: Option<&FlowEndPoint>) -> Result<bool, flow_end_point::IsFepCompatibleError> {
        let Some(fep) = fep else { return Ok(false) };
        let formats =
            self.core.timed(fep).get_property_value(FORMATS).ok().and_then(|value| value.extract::<Vec<String>>().ok());
        let (own, other) = (&self.definition.formats, formats.unwrap_or_default());
        let is_common = own.is_empty() || other.is_empty() || own.iter().any(|format| other.contains(format));
        if is_common { Ok(true) } else { Err(Refusal::FormatMismatch.into()) }
    }

    fn set_peer(
        &self,
        connection: Option<&FlowConnection>,
        peer: Option<&FlowEndPoint>,
        qos: &mut QoS,
    ) -> Result<bool, flow_end_point::SetPeerError> {
        let is_met = self.negotiate(qos, &*self.flow()?)?;
        let mut dialogue = self.dialogue.lock();
        (dialogue.connection, dialogue.peer) = (connection.cloned(), peer.cloned());
        Ok(is_met)
    }

    fn set_mcast_peer(
        &self,
        connection: Option<&FlowConnection>,
        _configuration: Option<&MCastConfigIf>,
        qos: &mut QoS,
    ) -> Result<bool, flow_end_point::SetMcastPeerError> {
        let is_met = self.negotiate(qos, &*self.flow()?)?;
        self.dialogue.lock().connection = connection.cloned();
        Ok(is_met)
    }

    fn connect_to_peer(
        &self,
        qos: &mut QoS,
        address: &str,
        protocol: &str,
    ) -> Result<bool, flow_end_point::ConnectToPeerError> {
        Ok(self.connect_producer(qos, address, protocol, false)?)
    }

    fn go_to_listen(
        &self,
        qos: &mut QoS,
        is_mcast: bool,
        peer: Option<&FlowEndPoint>,
        protocol: &mut String,
    ) -> Result<String, flow_end_point::GoToListenError> {
        if is_mcast {
            return Err(Refusal::Failed("a flow end point joins no groups: bind a stream".to_owned()).into());
        }
        let chosen = self.protocol(protocol)?;
        let carrier = self.carrier(chosen)?;
        let flow = self.fresh()?;
        self.negotiate(qos, &flow)?;
        let address = flow.listen(carrier, chosen, self.core.host, None).map_err(Refusal::from)?;
        self.dialogue.lock().peer = peer.cloned();
        publish(&self.properties, &flow);
        *protocol = chosen.to_string();
        Ok(address.to_string())
    }
}

impl FlowProducerServant for FlowEndPointState {
    fn connect_mcast(
        &self,
        qos: &mut QoS,
        address: &str,
        protocol: &str,
    ) -> Result<(String, bool), flow_producer::ConnectMcastError> {
        let is_met = self.connect_producer(qos, address, protocol, true)?;
        Ok((address.to_owned(), is_met))
    }

    fn get_rev_channel(&self, _protocol: &str) -> Result<String, SystemException> {
        // Credit comes back by the connection of the frames.
        Ok(String::new())
    }

    fn set_key(&self, _key: &[u8]) -> Result<(), SystemException> {
        Err(SystemException::no_permission(0, CompletionStatus::No)
            .with_detail("flows take no keys: each connection is opened by a token of its own"))
    }

    fn set_source_id(&self, id: i32) -> Result<(), SystemException> {
        self.flow().map_err(system)?.set_source_id(id.cast_unsigned());
        Ok(())
    }
}

impl FlowConsumerServant for FlowEndPointState {}

fn system(refusal: Refusal) -> SystemException {
    match refusal {
        Refusal::System(exception) => exception,
        other => SystemException::unknown(0, CompletionStatus::No).with_detail(move || other.clone().reason()),
    }
}
