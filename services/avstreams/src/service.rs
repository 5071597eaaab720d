//! Audio and video streams on an ORB: its adapter, devices and counts.

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use spandrel::{ObjectRef, Orb, Poa};
use spandrel_property::{IteratorOptions, PropertyIterators};

use crate::control::Control;
use crate::core::Core;
use crate::device::{Device, DeviceDefinition};
use crate::flow_device::{Connection, FlowDevice};
use crate::media::FlowDefinition;
use crate::options::{AvError, AvOptions};
use crate::statistics::FlowStatistics;

/// The name of the adapter of all objects, below the root adapter, by which policies refer to it.
pub const ADAPTER: &str = "AVStreams";

/// Multimedia devices and controls of streams on an ORB.
///
/// ```
/// use spandrel::services::av_streams::{MmDevice, StreamCtrl};
/// use spandrel::{Endpoint, Orb};
/// use spandrel_avstreams::{AvOptions, AvStreams, DeviceDefinition, FlowDefinition, Frame, Medium, ReceivedFrame};
///
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let streams = AvStreams::start(&orb, AvOptions::default())?;
///
/// // A camera that sends three frames, and a screen that receives them.
/// let mut frames = (0..3_u8).map(|n| Frame { data: vec![n; 3_000], timestamp: u32::from(n) * 3_600 });
/// let frames = std::sync::Mutex::new(frames);
/// let frames = std::sync::Arc::new(frames);
/// let camera = Medium::source(move || {
///     let frames = frames.clone();
///     move || frames.lock().unwrap().next()
/// });
/// let (sender, received) = std::sync::mpsc::channel();
/// let sender = std::sync::Mutex::new(sender);
/// let screen = Medium::sink(move || {
///     let sender = sender.lock().unwrap().clone();
///     move |frame: ReceivedFrame| sender.send(frame.data.len()).unwrap()
/// });
/// let device = |medium| DeviceDefinition { flows: vec![FlowDefinition::new("video", medium)], ..Default::default() };
/// let camera: MmDevice = streams.add_device(device(camera))?.narrow()?;
/// let screen: MmDevice = streams.add_device(device(screen))?.narrow()?;
///
/// let control: StreamCtrl = streams.new_control()?.narrow()?;
/// assert!(control.bind_devs(Some(&camera), Some(&screen), &mut vec![], &[])?);
/// control.start(&[])?;
/// assert_eq!(received.recv()?, 3_000);
/// control.destroy(&[])?;
/// streams.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AvStreams {
    core: Arc<Core>,
    devices: Mutex<Vec<(ObjectRef, Arc<Device>)>>,
}

impl AvStreams {
    /// Creates the object adapter of devices and streams, which has no device yet.
    ///
    /// # Errors
    /// An ORB that cannot listen, or has such an adapter already.
    pub fn start(orb: &Orb, options: AvOptions) -> Result<Self, AvError> {
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, [])?;
        let iterators = PropertyIterators::new(&adapter, IteratorOptions::default())?;
        adapter.the_poa_manager().activate()?;
        let core = Core::new(adapter, iterators, options);
        Ok(Self { core, devices: Mutex::default() })
    }

    /// Serves a multimedia device, an `AVStreams::MMDevice`.
    ///
    /// # Errors
    /// Too many objects; a flow that goes by TLS alone, without TLS.
    pub fn add_device(&self, mut definition: DeviceDefinition) -> Result<ObjectRef, AvError> {
        let flows = definition.flows.into_iter().map(|flow| self.core.usable(flow));
        definition.flows = flows.collect::<Result<_, _>>()?;
        let (device, object) = Device::serve(&self.core, definition)?;
        self.devices.lock().push((object.clone(), device));
        Ok(object)
    }

    /// Serves a flow device, an `AVStreams::FDev`.
    ///
    /// # Errors
    /// As [`add_device`](Self::add_device).
    pub fn add_flow_device(&self, definition: FlowDefinition) -> Result<ObjectRef, AvError> {
        Ok(FlowDevice::serve(&self.core, self.core.usable(definition)?)?)
    }

    /// Serves the control of a new stream, an `AVStreams::StreamCtrl`.
    ///
    /// # Errors
    /// Too many objects.
    pub fn new_control(&self) -> Result<ObjectRef, AvError> {
        Ok(Control::serve(&self.core)?)
    }

    /// Serves a new flow connection, an `AVStreams::FlowConnection`.
    ///
    /// # Errors
    /// Too many objects.
    pub fn new_flow_connection(&self) -> Result<ObjectRef, AvError> {
        Ok(Connection::serve(&self.core)?)
    }

    /// The counts of a flow in the streams that a device has at present, in the order of their virtual devices.
    #[must_use]
    pub fn statistics(&self, device: &ObjectRef, flow: &str) -> Vec<FlowStatistics> {
        self.flows_of(device, flow, |flow| flow.statistics())
    }

    /// The reasons why a flow of a device has ended, one for each of its streams.
    #[must_use]
    pub fn ends(&self, device: &ObjectRef, flow: &str) -> Vec<Option<String>> {
        self.flows_of(device, flow, |flow| flow.death())
    }

    fn flows_of<T>(&self, device: &ObjectRef, flow: &str, get: impl Fn(&crate::flow::FlowEnd) -> T) -> Vec<T> {
        let devices = self.devices.lock();
        let chosen = devices.iter().find(|(object, _)| object.is_equivalent(device));
        let end_points = chosen.map(|(_, device)| device.end_points()).unwrap_or_default();
        end_points.iter().filter_map(|end_point| end_point.with_flow(flow, |flow| get(flow)).ok()).collect()
    }

    /// The objects that exist (devices, end points, controls), and the flows that have a connection.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        use spandrel::net::sync::atomic::Ordering;
        (self.core.objects(), self.core.active_flows.load(Ordering::Relaxed))
    }

    /// The number of controls and parties of streams that are watched, so that streams end without them.
    #[must_use]
    pub fn watched_peers(&self) -> usize {
        self.core.peers.len()
    }

    /// Ends all streams and destroys the adapter.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), AvError> {
        self.core.peers.stop();
        for (_, device) in self.devices.lock().drain(..) {
            device.end();
        }
        Ok(self.core.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}

impl std::fmt::Debug for AvStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (objects, flows) = self.counts();
        f.debug_struct("AvStreams").field("objects", &objects).field("flows", &flows).finish_non_exhaustive()
    }
}
