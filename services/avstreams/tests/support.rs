//! Two processes' worth of ORBs: devices at both, and a client that controls them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use spandrel::services::av_streams::{MmDevice, QoS, StreamCtrl};
use spandrel::services::cos_property_service::Property;
use spandrel::ssliop::{Ssliop, pem};
use spandrel::types::Any;
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_avstreams::{
    AvLimits, AvOptions, AvStreams, DeviceDefinition, FlowDefinition, Frame, Medium, ReceivedFrame,
};
use spandrel_test_support::certificates::{Authority, Identity};

/// The longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One party with its ORB.
pub(crate) struct Party {
    pub(crate) streams: Option<AvStreams>,
    pub(crate) orb: Orb,
}

impl Party {
    pub(crate) fn new() -> Self {
        Self::with(AvLimits::default())
    }

    pub(crate) fn with(limits: AvLimits) -> Self {
        Self::with_options(AvOptions { limits, ..AvOptions::default() })
    }

    /// A party with a certificate of the authority for its host.
    pub(crate) fn secure(authority: &Authority) -> Self {
        Self::with_tls(AvLimits::default(), tls(authority, "127.0.0.1"))
    }

    pub(crate) fn with_tls(limits: AvLimits, tls: Ssliop) -> Self {
        Self::with_options(AvOptions { limits, tls: Some(tls), ..AvOptions::default() })
    }

    fn with_options(options: AvOptions) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let streams = AvStreams::start(&orb, options).unwrap();
        Self { streams: Some(streams), orb }
    }

    pub(crate) fn streams(&self) -> &AvStreams {
        self.streams.as_ref().unwrap()
    }

    /// A device, as another ORB has it.
    pub(crate) fn device(&self, client: &Client, flows: &[FlowDefinition]) -> (ObjectRef, MmDevice) {
        let definition = DeviceDefinition { flows: flows.to_vec(), ..DeviceDefinition::default() };
        let own = self.streams().add_device(definition).unwrap();
        let remote = client.at(&own).narrow().unwrap();
        (own, remote)
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if let Some(streams) = self.streams.take() {
            streams.stop().unwrap();
        }
        self.orb.shutdown().unwrap();
    }
}

/// TLS with a certificate of the authority for this host, which trusts the authority.
pub(crate) fn tls(authority: &Authority, host: &str) -> Ssliop {
    let Identity { chain, key } = authority.issue(host);
    Ssliop::ring()
        .identity(pem::certificates(chain.as_bytes()).unwrap(), pem::private_key(key.as_bytes()).unwrap())
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap())
}

/// The ORB of the party that controls.
pub(crate) struct Client(pub(crate) Orb);

impl Client {
    pub(crate) fn new() -> Self {
        Self(Orb::builder().build().unwrap())
    }

    pub(crate) fn at(&self, object: &ObjectRef) -> ObjectRef {
        self.0.string_to_object(&object.to_string()).unwrap()
    }

    pub(crate) fn control(&self, party: &Party) -> StreamCtrl {
        self.at(&party.streams().new_control().unwrap()).narrow().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.shutdown().unwrap();
    }
}

/// The frames of a test: their number in the first octets, then octets that follow from it.
pub(crate) fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut octets = number.to_be_bytes().to_vec();
    octets.extend((4..length).map(|index| (index as u32).wrapping_mul(number + 7) as u8));
    octets.truncate(length.max(4));
    octets
}

/// A source of numbered frames, which ends after `count` of them.
pub(crate) fn source(name: &str, count: u32, length: usize) -> FlowDefinition {
    let medium = Medium::source(move || {
        let mut number = 0;
        move || {
            number += 1;
            (number <= count).then(|| Frame { data: frame(number, length), timestamp: number * 900 })
        }
    });
    FlowDefinition { frame_rate: 200, ..FlowDefinition::new(name, medium) }
}

/// A sink, and the frames that it receives.
pub(crate) fn sink(name: &str) -> (FlowDefinition, Receiver<ReceivedFrame>) {
    let (sender, receiver) = channel();
    (FlowDefinition::new(name, sink_to(sender)), receiver)
}

fn sink_to(sender: Sender<ReceivedFrame>) -> Medium {
    let sender = Arc::new(Mutex::new(sender));
    Medium::sink(move || {
        let sender = sender.lock().unwrap().clone();
        move |frame: ReceivedFrame| drop(sender.send(frame))
    })
}

/// Waits until a condition holds.
pub(crate) fn eventually(claim: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{claim}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A request of one parameter of a flow.
pub(crate) fn qos(flow: &str, name: &str, value: u32) -> Vec<QoS> {
    let parameter = Property { property_name: name.to_owned(), property_value: Any::new(value).unwrap() };
    vec![QoS { qo_s_type: flow.to_owned(), qo_s_params: vec![parameter] }]
}

/// The value of the first parameter of a request.
pub(crate) fn granted(qos: &[QoS]) -> u32 {
    qos[0].qo_s_params[0].property_value.extract().unwrap()
}
