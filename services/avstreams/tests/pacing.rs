//! Flows that share a thread: their number, their changes in the middle of a step, and flows that would hold up others.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spandrel::ObjectRef;
use spandrel::services::av_streams::{FDev, FlowProducer, QoS};
use spandrel_avstreams::{
    AvLimits, Carrier, FRAME_RATE, FlowDefinition, FlowStatistics, Frame, MediaSource, Medium, QosRange,
};

use crate::hostile::{quick, sending_from};
use crate::support::{Client, PATIENCE, Party, eventually, qos, sink, source};

/// A producer of frames by RTP or UDP to a port of this process.
fn producer(client: &Client, party: &Party, flow: FlowDefinition, carrier: Carrier, to: &UdpSocket) -> FlowProducer {
    let qos = vec![QosRange::new(FRAME_RATE, 1, 1_000)];
    let flow = FlowDefinition { carriers: vec![carrier], needs_token: false, qos, ..flow };
    let device = client.at(&party.streams().add_flow_device(flow).unwrap());
    let device: FDev = device.narrow().unwrap();
    let producer = device.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap().0.unwrap();
    let address = to.local_addr().unwrap();
    // Reports of RTCP come to the same port.
    let control = if carrier == Carrier::RtpUdp { format!(";{}", address.port()) } else { String::new() };
    let address = format!("{carrier}={address}{control}");
    producer.connect_to_peer(&mut QoS::default(), &address, "").unwrap();
    producer
}

fn receiver() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Receives until each of so many sources has sent this many packets of RTP since the call.
fn receive_from_each(socket: &UdpSocket, sources: usize, packets: usize) {
    let mut counts = BTreeMap::<[u8; 4], usize>::new();
    let mut buffer = [0; 2_048];
    while counts.values().filter(|count| **count >= packets).count() < sources {
        let length = socket.recv(&mut buffer).unwrap();
        // Payload types from 72 to 76 with a marker are packets of RTCP (RFC 5761, 4).
        if length >= 12 && !(200..=204).contains(&buffer[1]) {
            *counts.entry(buffer[8..12].try_into().unwrap()).or_default() += 1;
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn two_hundred_flows_need_a_few_threads() {
    const FLOWS: usize = 200;
    spandrel_test_support::alone(|| {
        let limits = AvLimits { flows: FLOWS, objects: 2 * FLOWS, ..AvLimits::default() };
        let (client, party, socket) = (Client::new(), Party::with(limits), receiver());
        let flow = |name: &str| FlowDefinition { frame_rate: 25, ..source(name, u32::MAX, 160) };
        let port = |number: usize| producer(&client, &party, flow(&number.to_string()), Carrier::RtpUdp, &socket);
        let producers: Vec<FlowProducer> = (0..FLOWS).map(port).collect();
        producers.iter().for_each(|producer| producer.start().unwrap());
        receive_from_each(&socket, FLOWS, 25);
        let threads = spandrel_test_support::threads::threads_of(std::process::id());
        let of_flows = threads.iter().filter(|thread| ["spandrel-flow", "spandrel-pacer"].contains(&&*thread.name));
        // One that sends and one in reserve, and those of flows that a busy machine has held up in a step.
        let count = of_flows.count();
        assert!((2..12).contains(&count), "{count} of {}", threads.len());
        producers.iter().for_each(|producer| producer.destroy().unwrap());
        eventually("all flows end", || party.streams().counts().1 == 0);
        eventually("the threads end with the last flow", || {
            let threads = spandrel_test_support::threads::threads_of(std::process::id());
            !threads.iter().any(|thread| thread.name == "spandrel-pacer")
        });
    });
}

/// A source that waits in each frame for the test.
struct GatedSource {
    entered: Sender<()>,
    released: Receiver<()>,
    ended: Sender<String>,
}

impl MediaSource for GatedSource {
    fn next_frame(&mut self) -> Option<Frame> {
        self.entered.send(()).ok()?;
        self.released.recv().ok()?;
        Some(Frame { data: vec![1; 100], timestamp: 0 })
    }

    fn flow_ended(&mut self, reason: &str, _: &FlowStatistics) {
        _ = self.ended.send(reason.to_owned());
    }
}

/// The test's side of a [`GatedSource`].
struct Gate {
    entered: Receiver<()>,
    released: Sender<()>,
    ended: Receiver<String>,
}

fn gated(name: &str) -> (FlowDefinition, Gate) {
    let ((enter, entered), (released, release), (end, ended)) = (channel(), channel(), channel());
    let source = Mutex::new(Some(GatedSource { entered: enter, released: release, ended: end }));
    let medium = Medium::source(move || source.lock().unwrap().take().unwrap());
    (FlowDefinition { frame_rate: 100, ..FlowDefinition::new(name, medium) }, Gate { entered, released, ended })
}

/// A source without an end, and the number of its frames.
fn counted(name: &str, frame_rate: u32) -> (FlowDefinition, Arc<AtomicU32>) {
    let frames = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&frames);
    let medium = Medium::source(move || {
        let frames = Arc::clone(&counted);
        move || {
            let timestamp = frames.fetch_add(1, Ordering::Relaxed);
            Some(Frame { data: vec![2; 100], timestamp })
        }
    });
    (FlowDefinition { frame_rate, ..FlowDefinition::new(name, medium) }, frames)
}

/// Waits until a flow has sent so many further frames.
fn goes_on(claim: &str, frames: &AtomicU32, further: u32) {
    let before = frames.load(Ordering::Relaxed);
    eventually(claim, || frames.load(Ordering::Relaxed) >= before + further);
}

#[test]
fn a_source_that_waits_holds_up_its_own_flow_alone() {
    let (client, party, socket, gated_socket) = (Client::new(), Party::new(), receiver(), receiver());
    let (flow, frames) = counted("free", 200);
    let free = producer(&client, &party, flow, Carrier::Udp, &socket);
    free.start().unwrap();
    let flows = [gated("first"), gated("second")].map(|(flow, gate)| {
        let producer = producer(&client, &party, flow, Carrier::Udp, &gated_socket);
        producer.start().unwrap();
        gate.entered.recv_timeout(PATIENCE).unwrap();
        goes_on("the other flow goes on", &frames, 20);
        (producer, gate)
    });
    let mut buffer = [0; 200];
    for (producer, gate) in &flows {
        // It goes on as well, by itself.
        gate.released.send(()).unwrap();
        assert_eq!(gated_socket.recv(&mut buffer).unwrap(), 100);
        gate.entered.recv_timeout(PATIENCE).unwrap();
        // Stopped and ended within the step: the frame at hand is the last one.
        producer.stop().unwrap();
        gate.released.send(()).unwrap();
        assert_eq!(gated_socket.recv(&mut buffer).unwrap(), 100);
        producer.start().unwrap();
        gate.entered.recv_timeout(PATIENCE).unwrap();
        producer.destroy().unwrap();
        gate.released.send(()).unwrap();
        assert_eq!(gated_socket.recv(&mut buffer).unwrap(), 100);
        assert_eq!(gate.ended.recv_timeout(PATIENCE).unwrap(), "the flow was closed");
        assert!(gate.entered.recv().is_err(), "no frame is asked for after the end");
    }
    goes_on("the other flow goes on", &frames, 20);
    free.destroy().unwrap();
    eventually("all flows end", || party.streams().counts().1 == 0);
}

#[test]
fn flows_are_stopped_changed_and_ended_while_packets_are_due() {
    let (client, [sender, receiver]) = (Client::new(), [0; 2].map(|_| Party::new()));
    let device = |party: &Party, flow: FlowDefinition| -> FDev {
        let qos = vec![QosRange::new(FRAME_RATE, 1, 1_000)];
        let flow = FlowDefinition { carriers: vec![Carrier::Udp], qos, ..flow };
        client.at(&party.streams().add_flow_device(flow).unwrap()).narrow().unwrap()
    };
    let bind = |name: String| {
        let (flow, frames) = counted(&name, 1_000);
        let (producer, consumer) = (device(&sender, flow), device(&receiver, sink(&name).0));
        let connection = producer.bind(Some(&consumer), &mut QoS::default()).unwrap().0.unwrap();
        (connection, frames, name)
    };
    let flows: Vec<_> = (0..10).map(|number| bind(format!("flow{number}"))).collect();
    for round in 1..=5 {
        for (connection, frames, name) in &flows {
            let before = frames.load(Ordering::Relaxed);
            connection.start().unwrap();
            assert!(connection.modify_qo_s(&mut qos(name, FRAME_RATE, 1_000 / round)[0]).unwrap());
            eventually("the flow goes on", || frames.load(Ordering::Relaxed) > before);
        }
        for (connection, ..) in &flows {
            connection.stop().unwrap();
        }
        // A step at the time of the stop may still ask for one frame.
        let stopped: Vec<u32> = flows.iter().map(|(_, frames, _)| frames.load(Ordering::Relaxed)).collect();
        let (running, running_frames, _) = bind(format!("running{round}"));
        running.start().unwrap();
        goes_on("a flow that is not stopped", &running_frames, 50);
        running.destroy().unwrap();
        for ((_, frames, _), stopped) in flows.iter().zip(stopped) {
            let further = frames.load(Ordering::Relaxed) - stopped;
            assert!(further <= 1, "{further} frames after the stop");
        }
    }
    for (connection, ..) in &flows {
        connection.start().unwrap();
    }
    for (connection, frames, _) in &flows {
        goes_on("the flow goes on until its end", frames, 1);
        connection.destroy().unwrap();
    }
    eventually("all flows end", || [&sender, &receiver].iter().all(|party| party.streams().counts().1 == 0));
}

#[test]
fn a_source_that_panics_ends_its_own_flow_alone() {
    let (client, party, socket) = (Client::new(), Party::new(), receiver());
    let (flow, frames) = counted("free", 200);
    let free = producer(&client, &party, flow, Carrier::Udp, &socket);
    let medium = Medium::source(|| || -> Option<Frame> { panic!("a source that fails in a test") });
    let failing = producer(&client, &party, FlowDefinition::new("failing", medium), Carrier::Udp, &socket);
    free.start().unwrap();
    failing.start().unwrap();
    eventually("one flow is left", || party.streams().counts().1 == 1);
    goes_on("the other flow goes on", &frames, 20);
}

#[test]
fn a_receiver_by_tcp_that_does_not_read_holds_up_no_other_flow() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = format!(r"video\out\\\TCP={}", listener.local_addr().unwrap());
    let limits = AvLimits { idle: Duration::from_secs(5), ..quick() };
    let unpaced = |flow| FlowDefinition { frame_rate: 0, carriers: vec![Carrier::Tcp], ..flow };
    let (client, party, own, answer) = sending_from(Party::with(limits), unpaced, &spec);
    let (_receiver, _) = listener.accept().unwrap();
    answer.unwrap().start(&[]).unwrap();
    let end = |own: &ObjectRef| party.streams().ends(own, "video")[0].clone();
    let socket = receiver();
    let flows: Vec<_> = (0..10)
        .map(|number| {
            let (flow, frames) = counted(&format!("flow{number}"), 200);
            (producer(&client, &party, flow, Carrier::Udp, &socket), frames)
        })
        .collect();
    flows.iter().for_each(|(producer, _)| producer.start().unwrap());
    while end(&own).is_none() {
        let before: Vec<u32> = flows.iter().map(|(_, frames)| frames.load(Ordering::Relaxed)).collect();
        for ((_, frames), before) in flows.iter().zip(before) {
            eventually("a flow by datagrams goes on", || frames.load(Ordering::Relaxed) >= before + 20);
        }
    }
    let reason = end(&own).unwrap();
    assert!(reason.contains("the receiver has taken no octets for 5s"), "{reason}");
    // 200 frames in a second for five seconds, on a machine of half the speed at the least.
    for (_, frames) in &flows {
        let count = frames.load(Ordering::Relaxed);
        assert!(count >= 500, "{count}");
    }
}
