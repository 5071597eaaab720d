//! Multimedia devices, and the virtual device that each of their streams has.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::services::av_streams::{
    FDev, MCastConfigIf, MediaControl, MmDevice, MmDeviceServant, MmDeviceSkeleton, StreamCtrl, StreamEndPoint,
    StreamEndPointA, StreamEndPointB, StreamQoS, VDev, VDevServant, VDevSkeleton, mm_device, v_dev,
};
use spandrel::services::cos_property_service::{Property, PropertySetServant};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_property::{LocalPropertySet, delegate_property_set};

use crate::control::Control;
use crate::core::{Activation, Core, set_property};
use crate::end_point::{EndPoint, Side};
use crate::flow_end_point::FLOW_NAME;
use crate::flow_rules::require_short;
use crate::flow_spec::{FlowAddress, parse_flow_spec};
use crate::media::FlowDefinition;
use crate::qos::negotiate;
use crate::refusal::Refusal;

/// The property of a virtual device with the control of its position.
const MEDIA_CONTROL: &str = "Related_MediaCtrl";
/// The most flow devices of a device.
const MAX_FLOW_DEVICES: usize = 64;

/// The flows of a multimedia device, with the parts that are given to its streams.
#[derive(Clone, Debug, Default)]
pub struct DeviceDefinition {
    /// The flows that each new stream of the device gets.
    pub flows: Vec<FlowDefinition>,
    /// The groups of a multicast stream, one for each flow that the device sends; see [`FlowAddress`].
    pub groups: Vec<FlowAddress>,
    /// The control of the position of the device's medium: the property `Related_MediaCtrl` of its virtual devices, as in TAO.
    pub media_control: Option<MediaControl>,
}

/// The servant of a multimedia device.
pub(crate) struct Device {
    core: Arc<Core>,
    definition: DeviceDefinition,
    /// The streams by the names of their virtual devices.
    streams: Mutex<BTreeMap<String, Stream>>,
    flow_devices: Mutex<BTreeMap<String, ObjectRef>>,
    properties: LocalPropertySet,
    activation: Activation,
}

struct Stream {
    end_point: Arc<EndPoint>,
    virtual_device: Arc<VirtualDevice>,
}

delegate_property_set!(Device, properties);

impl Device {
    /// Serves a device with these flows.
    pub(crate) fn serve(
        core: &Arc<Core>,
        definition: DeviceDefinition,
    ) -> Result<(Arc<Self>, ObjectRef), SystemException> {
        let properties = core.properties();
        let names: Vec<String> = definition.flows.iter().map(|flow| flow.name.clone()).collect();
        set_property(&properties, "Flows", &Any::new(&names)?);
        for flow in &definition.flows {
            let way = if flow.medium.is_source() { "out" } else { "in" };
            set_property(&properties, &format!("{}_dir", flow.name), &Any::new(way)?);
            set_property(&properties, &format!("{}_availableFormats", flow.name), &Any::new(&flow.formats)?);
            let carriers: Vec<String> = flow.carriers.iter().map(ToString::to_string).collect();
            set_property(&properties, &format!("{}_availableProtocols", flow.name), &Any::new(&carriers)?);
        }
        let device = Arc::new(Self {
            core: Arc::clone(core),
            definition,
            streams: Mutex::default(),
            flow_devices: Mutex::default(),
            properties,
            activation: Activation::default(),
        });
        let object = core.activate(Arc::new(MmDeviceSkeleton::new(Arc::clone(&device))), &device.activation)?;
        Ok((device, object))
    }

    fn definitions(&self, spec: &[String]) -> Result<Vec<FlowDefinition>, Refusal> {
        let entries = parse_flow_spec(spec)?;
        if entries.is_empty() {
            return Ok(self.definition.flows.clone());
        }
        let by_name = |name: &str| self.definition.flows.iter().find(|flow| flow.name == name).cloned();
        entries.iter().map(|entry| by_name(&entry.name).ok_or(Refusal::NoSuchFlow)).collect()
    }

    /// Creates the end point and the virtual device of a stream.
    fn create(
        &self,
        side: Side,
        control: Option<&StreamCtrl>,
        qos: &mut StreamQoS,
        name: &mut String,
        spec: &[String],
    ) -> Result<(ObjectRef, VDev, bool), Refusal> {
        let definitions = self.definitions(spec)?;
        require_short(name)?;
        let is_met = negotiate(qos, definitions.iter())?;
        let mut streams = self.streams.lock();
        if name.is_empty() {
            *name = (1..).map(|n| format!("vdev{n}")).find(|name| !streams.contains_key(name)).unwrap_or_default();
        } else if streams.contains_key(name) {
            return Err(Refusal::Denied(format!(
                "a stream has the virtual device `{}`",
                crate::flow_spec::shown(name)
            )));
        }
        // The end point and its virtual device.
        if self.core.is_full(2) {
            streams.retain(|_, stream| {
                let is_abandoned = stream.end_point.is_abandoned();
                if is_abandoned {
                    stream.end_point.end();
                    stream.virtual_device.activation.end();
                }
                !is_abandoned
            });
        }
        let end_point = EndPoint::new(&self.core, side, &definitions, control.cloned(), self.definition.groups.clone());
        let object = end_point.serve()?;
        // All values are within the ranges that were negotiated.
        end_point.change_qos(qos, &[])?;
        let (virtual_device, reference) =
            match VirtualDevice::serve(&self.core, &end_point, self.definition.media_control.as_ref()) {
                Ok(served) => served,
                Err(exception) => {
                    end_point.end();
                    return Err(exception.into());
                }
            };
        end_point.watch_control();
        streams.insert(name.clone(), Stream { end_point, virtual_device });
        Ok((object, reference.unchecked_narrow(), is_met))
    }

    /// Ends the streams whose end points were destroyed by others.
    fn sweep(&self) {
        let mut streams = self.streams.lock();
        let ended: Vec<String> =
            streams.iter().filter(|(_, stream)| stream.end_point.is_ended()).map(|(name, _)| name.clone()).collect();
        for name in ended {
            if let Some(stream) = streams.remove(&name) {
                stream.virtual_device.activation.end();
            }
        }
    }

    /// Runs with the end points of the device's streams.
    pub(crate) fn end_points(&self) -> Vec<Arc<EndPoint>> {
        self.sweep();
        self.streams.lock().values().map(|stream| Arc::clone(&stream.end_point)).collect()
    }

    /// Ends all streams of the device.
    pub(crate) fn end(&self) {
        let streams = std::mem::take(&mut *self.streams.lock());
        for stream in streams.into_values() {
            stream.end_point.end();
            stream.virtual_device.activation.end();
        }
        self.activation.end();
    }

    fn bind_control(
        &self,
        peer: Option<&MmDevice>,
        qos: &mut StreamQoS,
        spec: &[String],
        is_multipoint: bool,
    ) -> Result<(StreamCtrl, bool), Refusal> {
        let peer = peer.ok_or_else(|| Refusal::Failed("the other device is nil".to_owned()))?;
        let own: MmDevice = self.activation.reference()?.unchecked_narrow();
        let control: StreamCtrl = Control::serve(&self.core)?.unchecked_narrow();
        let bound = if is_multipoint {
            let begun = control.bind_devs(Some(&own), None, qos, spec).map_err(Refusal::from);
            begun.and_then(|is_met| Ok(control.bind_devs(None, Some(peer), qos, spec)? && is_met))
        } else {
            control.bind_devs(Some(&own), Some(peer), qos, spec).map_err(Refusal::from)
        };
        match bound {
            Ok(is_met) => Ok((control, is_met)),
            Err(refusal) => {
                _ = control.destroy(&[]);
                Err(refusal)
            }
        }
    }
}

impl MmDeviceServant for Device {
    fn create_a(
        &self,
        requester: Option<&StreamCtrl>,
        qos: &mut StreamQoS,
        name: &mut String,
        spec: &[String],
    ) -> Result<(Option<StreamEndPointA>, Option<VDev>, bool), mm_device::CreateAError> {
        self.sweep();
        let (object, virtual_device, is_met) = self.create(Side::A, requester, qos, name, spec)?;
        Ok((Some(object.unchecked_narrow()), Some(virtual_device), is_met))
    }

    fn create_b(
        &self,
        requester: Option<&StreamCtrl>,
        qos: &mut StreamQoS,
        name: &mut String,
        spec: &[String],
    ) -> Result<(Option<StreamEndPointB>, Option<VDev>, bool), mm_device::CreateBError> {
        self.sweep();
        let (object, virtual_device, is_met) = self.create(Side::B, requester, qos, name, spec)?;
        Ok((Some(object.unchecked_narrow()), Some(virtual_device), is_met))
    }

    fn bind(
        &self,
        peer: Option<&MmDevice>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<(Option<StreamCtrl>, bool), mm_device::BindError> {
        let (control, is_met) = self.bind_control(peer, qos, spec, false)?;
        Ok((Some(control), is_met))
    }

    fn bind_mcast(
        &self,
        peer: Option<&MmDevice>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<(Option<StreamCtrl>, bool), mm_device::BindMcastError> {
        let (control, is_met) = self.bind_control(peer, qos, spec, true)?;
        Ok((Some(control), is_met))
    }

    fn destroy(&self, end_point: Option<&StreamEndPoint>, name: &str) -> Result<(), mm_device::DestroyError> {
        let mut streams = self.streams.lock();
        let stream = streams.get(name).ok_or(Refusal::NotSupported)?;
        let own = stream.end_point.activation.reference().map_err(Refusal::from)?;
        if end_point.is_some_and(|end_point| !own.is_equivalent(end_point)) {
            return Err(Refusal::NotSupported.into());
        }
        if let Some(stream) = streams.remove(name) {
            stream.end_point.end();
            stream.virtual_device.activation.end();
        }
        Ok(())
    }

    fn add_fdev(&self, device: Option<&ObjectRef>) -> Result<String, mm_device::AddFdevError> {
        let device = device.ok_or_else(|| Refusal::Failed("the flow device is nil".to_owned()))?;
        let flow_device: FDev = self.core.timed_object(device).narrow().map_err(Refusal::from)?;
        let name = flow_device.get_property_value(FLOW_NAME).ok().and_then(|name| name.extract::<String>().ok());
        let name = name.ok_or_else(|| Refusal::Failed(format!("the flow device has no property `{FLOW_NAME}`")))?;
        require_short(&name).map_err(|refusal| Refusal::Failed(refusal.reason()))?;
        let mut devices = self.flow_devices.lock();
        if devices.contains_key(&name) {
            return Err(
                Refusal::Failed(format!("a flow device has the flow `{}`", crate::flow_spec::shown(&name))).into()
            );
        }
        if devices.len() >= MAX_FLOW_DEVICES {
            return Err(Refusal::Failed(format!("a device has at most {MAX_FLOW_DEVICES} flow devices")).into());
        }
        devices.insert(name.clone(), device.clone());
        Ok(name)
    }

    fn get_fdev(&self, name: &str) -> Result<Option<ObjectRef>, mm_device::GetFdevError> {
        let device = self.flow_devices.lock().get(name).cloned();
        Ok(Some(device.ok_or(Refusal::NoSuchFlow)?))
    }

    fn remove_fdev(&self, name: &str) -> Result<(), mm_device::RemoveFdevError> {
        let device = self.flow_devices.lock().remove(name);
        device.map(drop).ok_or_else(|| Refusal::NoSuchFlow.into())
    }
}

/// The servant of a virtual device.
pub(crate) struct VirtualDevice {
    end_point: Weak<EndPoint>,
    peer: Mutex<Option<VDev>>,
    properties: LocalPropertySet,
    pub(crate) activation: Activation,
}

delegate_property_set!(VirtualDevice, properties);

impl VirtualDevice {
    fn serve(
        core: &Arc<Core>,
        end_point: &Arc<EndPoint>,
        media_control: Option<&MediaControl>,
    ) -> Result<(Arc<Self>, ObjectRef), SystemException> {
        let properties = core.properties();
        if let Some(media_control) = media_control {
            set_property(&properties, MEDIA_CONTROL, &Any::new(Some(media_control.clone()))?);
        }
        let device = Arc::new(Self {
            end_point: Arc::downgrade(end_point),
            peer: Mutex::default(),
            properties,
            activation: Activation::default(),
        });
        let object = core.activate(Arc::new(VDevSkeleton::new(Arc::clone(&device))), &device.activation)?;
        Ok((device, object))
    }

    fn end_point(&self) -> Result<Arc<EndPoint>, Refusal> {
        let gone = || SystemException::object_not_exist(0, CompletionStatus::No);
        Ok(self.end_point.upgrade().ok_or_else(gone)?)
    }

    /// Sets parameters that the device knows.
    fn set_parameters(&self, flow: &str, parameters: &[Property]) -> Result<(), Refusal> {
        let end_point = self.end_point()?;
        let definition = end_point
            .with_flow(flow, |flow| flow.definition().clone())
            .map_err(|_| Refusal::Failed(format!("no flow has the name `{}`", crate::flow_spec::shown(flow))))?;
        let mut qos =
            spandrel::services::av_streams::QoS { qo_s_type: flow.to_owned(), qo_s_params: parameters.to_vec() };
        crate::qos::negotiate_flow(&mut qos, &definition).map_err(|_| Refusal::Property)?;
        end_point.with_flow(flow, |flow| crate::qos::apply(std::slice::from_ref(&qos), flow))?;
        for parameter in &qos.qo_s_params {
            set_property(&self.properties, &format!("{flow}_{}", parameter.property_name), &parameter.property_value);
        }
        Ok(())
    }
}

impl VDevServant for VirtualDevice {
    fn set_peer(
        &self,
        _control: Option<&StreamCtrl>,
        peer: Option<&VDev>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, v_dev::SetPeerError> {
        let is_met = self.end_point()?.change_qos(qos, spec)?;
        *self.peer.lock() = peer.cloned();
        Ok(is_met)
    }

    fn set_mcast_peer(
        &self,
        _control: Option<&StreamCtrl>,
        _configuration: Option<&MCastConfigIf>,
        qos: &mut StreamQoS,
        spec: &[String],
    ) -> Result<bool, v_dev::SetMcastPeerError> {
        Ok(self.end_point()?.change_qos(qos, spec)?)
    }

    fn configure(&self, setting: &Property) -> Result<(), v_dev::ConfigureError> {
        let defined = self.properties.define_property(&setting.property_name, &setting.property_value);
        Ok(defined.map_err(|_| Refusal::Property)?)
    }

    fn set_format(&self, flow: &str, format: &str) -> Result<(), v_dev::SetFormatError> {
        let end_point = self.end_point()?;
        let formats = end_point.with_flow(flow, |flow| flow.definition().formats.clone());
        let formats = formats.map_err(|_| Refusal::NotSupported)?;
        if !formats.is_empty() && !formats.iter().any(|own| own == format) {
            return Err(Refusal::NotSupported.into());
        }
        set_property(
            &self.properties,
            &format!("{flow}_currFormat"),
            &Any::new(format).map_err(SystemException::from)?,
        );
        Ok(())
    }

    fn set_dev_params(&self, flow: &str, parameters: &[Property]) -> Result<(), v_dev::SetDevParamsError> {
        Ok(self.set_parameters(flow, parameters)?)
    }

    fn modify_qo_s(&self, qos: &mut StreamQoS, spec: &[String]) -> Result<bool, v_dev::ModifyQoSError> {
        Ok(self.end_point()?.change_qos(qos, spec)?)
    }
}
