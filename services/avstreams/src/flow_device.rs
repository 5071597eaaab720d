//! Flow devices and flow connections: single flows without a stream.

use spandrel::net::sync::{Arc, Mutex};
use spandrel::services::av_streams::{
    FDev, FDevServant, FDevSkeleton, FlowConnection, FlowConnectionServant, FlowConnectionSkeleton, FlowConsumer,
    FlowEndPoint, FlowProducer, QoS, StreamEvent, f_dev, flow_connection,
};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_property::{LocalPropertySet, delegate_property_set};

use crate::core::{Activation, Core, set_property};
use crate::flow_end_point::{FLOW_NAME, FORMATS, FlowEndPointState};
use crate::flow_rules::require_short;
use crate::flow_spec::FlowProtocol;
use crate::media::FlowDefinition;
use crate::qos::negotiate_flow;
use crate::refusal::Refusal;

/// The property with the last event of a connection.
const LAST_EVENT: &str = "LastEvent";

/// The servant of a flow device.
pub(crate) struct FlowDevice {
    core: Arc<Core>,
    definition: FlowDefinition,
    properties: LocalPropertySet,
    /// The flow end points that it has created, with their names.
    ends: Mutex<Vec<(String, Arc<FlowEndPointState>)>>,
    activation: Activation,
}

delegate_property_set!(FlowDevice, properties);

impl FlowDevice {
    /// Serves a flow device.
    pub(crate) fn serve(core: &Arc<Core>, definition: FlowDefinition) -> Result<ObjectRef, SystemException> {
        let properties = core.properties();
        set_property(&properties, FLOW_NAME, &Any::new(&definition.name)?);
        set_property(&properties, FORMATS, &Any::new(&definition.formats)?);
        let (ends, activation) = (Mutex::default(), Activation::default());
        let device = Arc::new(Self { core: Arc::clone(core), definition, properties, ends, activation });
        core.activate(Arc::new(FDevSkeleton::new(Arc::clone(&device))), &device.activation)
    }

    fn create(&self, is_source: bool, qos: &mut QoS, name: &mut String) -> Result<(ObjectRef, bool), Refusal> {
        if self.definition.medium.is_source() != is_source {
            return Err(Refusal::NotSupported);
        }
        require_short(name)?;
        let is_met = negotiate_flow(qos, &self.definition)?;
        let mut ends = self.ends.lock();
        // Those that were destroyed by their own operation, or with their connection.
        ends.retain(|(_, end)| !end.activation.is_ended());
        if self.core.is_full(1) {
            ends.retain(|(_, end)| {
                let is_abandoned = end.is_abandoned();
                if is_abandoned {
                    end.activation.end();
                }
                !is_abandoned
            });
        }
        if name.is_empty() {
            let is_free = |name: &String| ends.iter().all(|(other, _)| other != name);
            *name = (1..).map(|number| format!("{}{number}", self.definition.name)).find(is_free).unwrap_or_default();
        } else if ends.iter().any(|(other, _)| other == name) {
            return Err(Refusal::Denied(format!("a flow end point has the name `{}`", crate::flow_spec::shown(name))));
        }
        let end = FlowEndPointState::standalone(&self.core, self.definition.clone());
        let object = end.serve()?;
        ends.push((name.clone(), end));
        Ok((object, is_met))
    }

    fn connect_to(&self, peer: Option<&FDev>, qos: &mut QoS) -> Result<(FlowConnection, bool), Refusal> {
        let own = self.activation.reference()?.unchecked_narrow();
        let connection: FlowConnection = Connection::serve(&self.core)?.unchecked_narrow();
        match connection.connect_devs(Some(&own), peer, qos) {
            Ok(is_met) => Ok((connection, is_met)),
            Err(error) => {
                _ = connection.destroy();
                Err(match error {
                    flow_connection::ConnectDevsError::QoSRequestFailed(failed) => Refusal::Qos(failed.reason),
                    flow_connection::ConnectDevsError::StreamOpFailed(failed) => Refusal::Failed(failed.reason),
                    flow_connection::ConnectDevsError::StreamOpDenied(denied) => Refusal::Failed(denied.reason),
                    flow_connection::ConnectDevsError::System(exception) => Refusal::System(exception),
                })
            }
        }
    }
}

impl FDevServant for FlowDevice {
    fn create_producer(
        &self,
        _requester: Option<&FlowConnection>,
        qos: &mut QoS,
        name: &mut String,
    ) -> Result<(Option<FlowProducer>, bool), f_dev::CreateProducerError> {
        let (object, is_met) = self.create(true, qos, name)?;
        Ok((Some(object.unchecked_narrow()), is_met))
    }

    fn create_consumer(
        &self,
        _requester: Option<&FlowConnection>,
        qos: &mut QoS,
        name: &mut String,
    ) -> Result<(Option<FlowConsumer>, bool), f_dev::CreateConsumerError> {
        let (object, is_met) = self.create(false, qos, name)?;
        Ok((Some(object.unchecked_narrow()), is_met))
    }

    fn bind(&self, peer: Option<&FDev>, qos: &mut QoS) -> Result<(Option<FlowConnection>, bool), f_dev::BindError> {
        let (connection, is_met) = self.connect_to(peer, qos)?;
        Ok((Some(connection), is_met))
    }

    fn bind_mcast(
        &self,
        peer: Option<&FDev>,
        qos: &mut QoS,
    ) -> Result<(Option<FlowConnection>, bool), f_dev::BindMcastError> {
        // Further receivers are added to the connection.
        let (connection, is_met) = self.connect_to(peer, qos)?;
        Ok((Some(connection), is_met))
    }

    fn destroy(&self, end: Option<&FlowEndPoint>, name: &str) -> Result<(), f_dev::DestroyError> {
        let mut ends = self.ends.lock();
        let is_it = |(other, state): &(String, Arc<FlowEndPointState>)| {
            let own = state.activation.reference();
            other == name && end.is_none_or(|end| own.is_ok_and(|own| own.is_equivalent(end)))
        };
        let index = ends.iter().position(is_it).ok_or(Refusal::NotSupported)?;
        let (_, state) = ends.remove(index);
        drop(ends);
        spandrel::services::av_streams::FlowEndPointServant::destroy(&*state)?;
        Ok(())
    }
}

/// The servant of a flow connection.
pub(crate) struct Connection {
    parties: Mutex<Parties>,
    properties: LocalPropertySet,
    activation: Activation,
}

/// The flow end points of a connection.
#[derive(Default)]
struct Parties {
    producer: Option<FlowProducer>,
    consumers: Vec<FlowConsumer>,
    protocol: FlowProtocol,
}

delegate_property_set!(Connection, properties);

impl Connection {
    /// Serves a flow connection without end points.
    pub(crate) fn serve(core: &Arc<Core>) -> Result<ObjectRef, SystemException> {
        let connection = Arc::new(Self {
            parties: Mutex::default(),
            properties: core.properties(),
            activation: Activation::default(),
        });
        core.activate(Arc::new(FlowConnectionSkeleton::new(Arc::clone(&connection))), &connection.activation)
    }

    /// The end points, the consumers first: they are started first and stopped last.
    fn ends(&self) -> Vec<FlowEndPoint> {
        let parties = self.parties.lock();
        let consumers = parties.consumers.iter().map(|consumer| FlowEndPoint::clone(consumer));
        let producer = parties.producer.iter().map(|producer| FlowEndPoint::clone(producer));
        consumers.chain(producer).collect()
    }

    fn own(&self) -> Result<FlowConnection, SystemException> {
        Ok(self.activation.reference()?.unchecked_narrow())
    }

    fn connect_ends(&self, producer: &FlowProducer, consumer: &FlowConsumer, qos: &mut QoS) -> Result<bool, Refusal> {
        if let Err(error) = producer.is_fep_compatible(Some(consumer)) {
            return Err(match error {
                spandrel::services::av_streams::flow_end_point::IsFepCompatibleError::System(exception) => {
                    exception.into()
                }
                _ => Refusal::FormatMismatch,
            });
        }
        let own = self.own()?;
        let mut protocol = self.parties.lock().protocol.to_string();
        let address = consumer.go_to_listen(qos, false, Some(producer), &mut protocol).map_err(|error| {
            match Refusal::from(error) {
                Refusal::System(exception) => Refusal::System(exception),
                Refusal::Qos(reason) => Refusal::Qos(reason),
                _ => Refusal::EndMismatch,
            }
        })?;
        let connected = producer.connect_to_peer(qos, &address, &protocol).map_err(Refusal::from);
        let is_met = match connected {
            Ok(is_met) => is_met,
            Err(refusal) => {
                _ = consumer.stop();
                return Err(match refusal {
                    Refusal::System(exception) => Refusal::System(exception),
                    Refusal::Qos(reason) => Refusal::Qos(reason),
                    _ => Refusal::EndMismatch,
                });
            }
        };
        _ = producer.set_peer(Some(&own), Some(consumer), qos)?;
        _ = consumer.set_peer(Some(&own), Some(producer), qos)?;
        Ok(is_met)
    }
}

impl FlowConnectionServant for Connection {
    fn stop(&self) -> Result<(), SystemException> {
        self.ends().iter().rev().try_for_each(|end| end.stop())
    }

    fn start(&self) -> Result<(), SystemException> {
        self.ends().iter().try_for_each(|end| end.start())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        // A party that has gone does not keep the others.
        for end in self.ends() {
            _ = end.destroy();
        }
        self.activation.end();
        Ok(())
    }

    fn modify_qo_s(&self, qos: &mut QoS) -> Result<bool, flow_connection::ModifyQoSError> {
        let own = self.own()?;
        let (producer, consumers) = {
            let parties = self.parties.lock();
            (parties.producer.clone(), parties.consumers.clone())
        };
        let mut is_met = true;
        if let Some(producer) = producer {
            let consumer = consumers.first().map(|consumer| FlowEndPoint::clone(consumer));
            is_met &= producer.set_peer(Some(&own), consumer.as_ref(), qos).map_err(Refusal::from)?;
            for consumer in &consumers {
                is_met &= consumer.set_peer(Some(&own), Some(&producer), qos).map_err(Refusal::from)?;
            }
        }
        Ok(is_met)
    }

    fn use_flow_protocol(&self, name: &str, settings: &Any) -> Result<bool, flow_connection::UseFlowProtocolError> {
        let protocol = FlowProtocol::parse(name).ok_or_else(|| Refusal::Protocol(crate::flow_spec::shown(name)))?;
        for end in self.ends() {
            end.use_flow_protocol(name, settings)?;
        }
        self.parties.lock().protocol = protocol;
        Ok(true)
    }

    fn push_event(&self, event: &StreamEvent) -> Result<(), SystemException> {
        set_property(&self.properties, LAST_EVENT, &Any::new(event)?);
        Ok(())
    }

    fn connect_devs(
        &self,
        a_party: Option<&FDev>,
        b_party: Option<&FDev>,
        qos: &mut QoS,
    ) -> Result<bool, flow_connection::ConnectDevsError> {
        let missing = || Refusal::Failed("a flow connection needs two devices".to_owned());
        let (a_party, b_party) = (a_party.ok_or_else(missing)?, b_party.ok_or_else(missing)?);
        let (own, core) = (self.own()?, self.activation.core()?);
        let (a_party, b_party) = (&core.timed(a_party), &core.timed(b_party));
        let mut name = String::new();
        // Either device may be the producer.
        let (producer, consumer_device) = match a_party.create_producer(Some(&own), qos, &mut name) {
            Ok((producer, _)) => (producer, b_party),
            Err(f_dev::CreateProducerError::NotSupported(_)) => {
                let (producer, _) = b_party.create_producer(Some(&own), qos, &mut name).map_err(Refusal::from)?;
                (producer, a_party)
            }
            Err(error) => return Err(Refusal::from(error).into()),
        };
        let producer = producer.ok_or_else(missing)?;
        let mut name = String::new();
        let created = consumer_device.create_consumer(Some(&own), qos, &mut name).map_err(Refusal::from);
        let consumer = match created {
            Ok((consumer, _)) => consumer.ok_or_else(missing)?,
            Err(refusal) => {
                _ = producer.destroy();
                return Err(refusal.into());
            }
        };
        match self.connect(Some(&producer), Some(&consumer), qos) {
            Ok(is_met) => Ok(is_met),
            Err(error) => {
                _ = producer.destroy();
                _ = consumer.destroy();
                Err(Refusal::from(error).into())
            }
        }
    }

    fn connect(
        &self,
        producer: Option<&FlowProducer>,
        consumer: Option<&FlowConsumer>,
        qos: &mut QoS,
    ) -> Result<bool, flow_connection::ConnectError> {
        let (Some(producer), Some(consumer)) = (producer, consumer) else { return Err(Refusal::EndMismatch.into()) };
        let core = self.activation.core()?;
        let (producer, consumer) = (&core.timed(producer), &core.timed(consumer));
        {
            let parties = self.parties.lock();
            if parties.producer.is_some() || parties.consumers.iter().any(|own| own.is_equivalent(consumer)) {
                return Err(Refusal::AlreadyConnected.into());
            }
            // Consumers stay when their producer is dropped.
            require_at_most(parties.consumers.len() + 1, core.limits.receivers, "consumers of a flow")?;
        }
        let is_met = self.connect_ends(producer, consumer, qos).map_err(|refusal| match refusal {
            // The operation has no exception for the quality of service.
            Refusal::Qos(_) => Refusal::EndMismatch,
            other => other,
        })?;
        let mut parties = self.parties.lock();
        parties.producer = Some(producer.clone());
        parties.consumers.push(consumer.clone());
        Ok(is_met)
    }

    fn disconnect(&self) -> Result<bool, SystemException> {
        let ends = self.ends();
        let was_connected = !ends.is_empty();
        for end in ends {
            _ = end.destroy();
        }
        *self.parties.lock() = Parties::default();
        Ok(was_connected)
    }

    fn add_producer(
        &self,
        producer: Option<&FlowProducer>,
        _qos: &mut QoS,
    ) -> Result<bool, flow_connection::AddProducerError> {
        let mut parties = self.parties.lock();
        match (producer, &parties.producer) {
            (Some(producer), None) => {
                parties.producer = Some(self.activation.core()?.timed(producer));
                Ok(true)
            }
            (Some(producer), Some(own)) if own.is_equivalent(producer) => Err(Refusal::AlreadyConnected.into()),
            // A flow has one producer.
            _ => Err(Refusal::NotSupported.into()),
        }
    }

    fn add_consumer(
        &self,
        consumer: Option<&FlowConsumer>,
        qos: &mut QoS,
    ) -> Result<bool, flow_connection::AddConsumerError> {
        let Some(consumer) = consumer else { return Ok(false) };
        let core = self.activation.core()?;
        let consumer = &core.timed(consumer);
        let producer = {
            let parties = self.parties.lock();
            require_at_most(parties.consumers.len() + 1, core.limits.receivers, "consumers of a flow")?;
            if parties.consumers.iter().any(|own| own.is_equivalent(consumer)) {
                return Err(Refusal::AlreadyConnected.into());
            }
            parties.producer.clone()
        };
        let Some(producer) = producer else { return Ok(false) };
        let is_met = match self.connect_ends(&producer, consumer, qos) {
            // The operation has no exception for a consumer that does not match the producer.
            Err(Refusal::FormatMismatch | Refusal::EndMismatch | Refusal::Qos(_)) => return Ok(false),
            connected => connected?,
        };
        self.parties.lock().consumers.push(consumer.clone());
        Ok(is_met)
    }

    fn drop(&self, target: Option<&FlowEndPoint>) -> Result<bool, flow_connection::DropError> {
        let target = target.ok_or(Refusal::NotConnected)?;
        let mut parties = self.parties.lock();
        let before = parties.consumers.len();
        parties.consumers.retain(|consumer| !consumer.is_equivalent(target));
        let is_producer = parties.producer.as_ref().is_some_and(|producer| producer.is_equivalent(target));
        if is_producer {
            parties.producer = None;
        }
        let is_any = is_producer || parties.consumers.len() < before;
        drop(parties);
        if !is_any {
            return Err(Refusal::NotConnected.into());
        }
        _ = self.activation.core()?.timed(target).destroy();
        Ok(true)
    }
}
