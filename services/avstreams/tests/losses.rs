//! Flows over a relay that loses 2 % of the datagrams and swaps others: what is lost, recovered and received.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use spandrel::services::av_streams::{FDev, QoS};
use spandrel_avstreams::{
    Carrier, FlowAddress, FlowDefinition, FlowProtocol, FlowStatistics, MediaSink, Medium, ReceivedFrame,
};

use crate::support::{Client, PATIENCE, Party, eventually, frame, source};

/// A relay of datagrams: each 50th one is lost, and each 20th one comes after the next one.
struct Relay {
    address: SocketAddr,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(receiver: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, is_ended) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&is_ended);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            let (mut sender, mut frames, mut held) = (None, 0, None::<Vec<u8>>);
            while !end.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let datagram = &buffer[..length];
                if from == receiver {
                    socket.send_to(datagram, sender.unwrap_or(receiver)).unwrap();
                    continue;
                }
                sender = Some(from);
                // The dialogue before the first frame is not disturbed.
                if datagram.starts_with(b"SPTK") || datagram.starts_with(b"=STA") {
                    socket.send_to(datagram, receiver).unwrap();
                    continue;
                }
                frames += 1;
                match frames {
                    lost if lost % 50 == 0 => {}
                    swapped if swapped % 20 == 11 => held = Some(datagram.to_vec()),
                    _ => {
                        socket.send_to(datagram, receiver).unwrap();
                        if let Some(held) = held.take() {
                            socket.send_to(&held, receiver).unwrap();
                        }
                    }
                }
            }
        });
        Self { address, is_ended, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A sink that sends its frames, and its counts at the end.
struct Counting(std::sync::mpsc::Sender<Result<ReceivedFrame, FlowStatistics>>);

impl MediaSink for Counting {
    fn take_frame(&mut self, frame: ReceivedFrame) {
        _ = self.0.send(Ok(frame));
    }

    fn flow_ended(&mut self, _: &str, statistics: &FlowStatistics) {
        _ = self.0.send(Err(*statistics));
    }
}

/// Sends frames over the relay. Returns the numbers of those that came whole and in order, and the counts of the receiver.
fn over_the_relay(carrier: Carrier, protocol: FlowProtocol, frames: u32, length: usize) -> (Vec<u32>, FlowStatistics) {
    let (client, party) = (Client::new(), Party::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let sink = Medium::sink(move || Counting(sender.lock().unwrap().clone()));
    let definition = |medium: FlowDefinition| FlowDefinition { carriers: vec![carrier], protocol, ..medium };
    let device = |flow| -> FDev { client.at(&party.streams().add_flow_device(flow).unwrap()).narrow().unwrap() };
    let sending = device(definition(source("video", frames, length)));
    let receiving = device(definition(FlowDefinition::new("video", sink)));
    let (producer, _) = sending.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (consumer, _) = receiving.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (producer, consumer) = (producer.unwrap(), consumer.unwrap());
    let mut chosen = String::new();
    let address = consumer.go_to_listen(&mut QoS::default(), false, None, &mut chosen).unwrap();
    let address = FlowAddress::parse(&address).unwrap();
    let relay = Relay::start(address.data);
    // Reports of RTCP go directly.
    let relayed = FlowAddress { data: relay.address, ..address };
    assert!(producer.connect_to_peer(&mut QoS::default(), &relayed.to_string(), &chosen).unwrap());
    consumer.start().unwrap();
    producer.start().unwrap();
    let mut numbers = Vec::new();
    loop {
        match receiver.recv_timeout(PATIENCE).unwrap() {
            Ok(received) => {
                let number = u32::from_be_bytes(received.data[..4].try_into().unwrap());
                assert!(received.data == frame(number, length), "frame {number} of {} octets", received.data.len());
                numbers.push(number);
            }
            Err(statistics) => {
                eventually("the flow of the sender ends", || party.streams().counts().1 == 0);
                return (numbers, statistics);
            }
        }
    }
}

/// The numbers of the frames of which no packet has such a number.
fn without(frames: u32, packets: u32) -> Vec<u32> {
    (1..=frames)
        .filter(|number| (1..=packets).all(|part| !((number - 1) * packets + part).is_multiple_of(50)))
        .collect()
}

#[test]
fn a_packet_that_is_lost_is_one_frame_and_those_that_were_swapped_are_recovered() {
    for (carrier, protocol) in
        [(Carrier::RtpUdp, FlowProtocol::Rtp), (Carrier::Udp, FlowProtocol::Sfp { credit: None })]
    {
        let (numbers, counts) = over_the_relay(carrier, protocol, 185, 100);
        assert_eq!(numbers, without(185, 1), "{carrier}");
        assert_eq!((counts.frames, counts.lost, counts.reordered), (182, 3, 9), "{carrier}: {counts:?}");
        assert_eq!((counts.late, counts.duplicates, counts.incomplete), (0, 0, 0), "{carrier}: {counts:?}");
    }
}

#[test]
fn a_frame_of_which_a_packet_is_lost_is_not_received() {
    // Three packets for each frame: the second, the first and the last one of a frame are lost.
    for (carrier, protocol) in
        [(Carrier::RtpUdp, FlowProtocol::Rtp), (Carrier::Udp, FlowProtocol::Sfp { credit: None })]
    {
        let (numbers, counts) = over_the_relay(carrier, protocol, 60, 3_000);
        assert_eq!(numbers, without(60, 3), "{carrier}: {counts:?}");
        assert_eq!((counts.frames, counts.lost), (57, 3), "{carrier}: {counts:?}");
        if carrier == Carrier::RtpUdp {
            assert_eq!(counts.incomplete, 3, "{counts:?}");
        }
    }
}
