//! Our TCP against that of `smoltcp`, over a link with faults, on a virtual clock.

use std::collections::VecDeque;
use std::time::Duration;

use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp as smol;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use spandrel_message::MessageBlock;

use crate::device::{RECEIVER, SENDER};
use crate::ip::Ipv4Header;
use crate::tcp::{Config, Segment, State, Tcb, TcpHeader};

/// The packets of both directions.
#[derive(Default)]
struct Packets {
    to_smoltcp: VecDeque<Vec<u8>>,
    to_us: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Transmitted<'p>(&'p mut VecDeque<Vec<u8>>);

impl phy::TxToken for Transmitted<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl phy::Device for Packets {
    type RxToken<'a> = Received;
    type TxToken<'a> = Transmitted<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Transmitted<'_>)> {
        Some((Received(self.to_smoltcp.pop_front()?), Transmitted(&mut self.to_us)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Transmitted<'_>> {
        Some(Transmitted(&mut self.to_us))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

/// Sends data in both directions; one side opens the connection.
fn exchange(we_open: bool, loss: u8, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let data: [Vec<u8>; 2] = [0, 1].map(|_| (0..80_000).map(|_| random.u8(..)).collect());
    let config = Config { initial_sequence: random.u32(..), ..Config::default() };
    let mut tcb = if we_open { Tcb::connect(1000, 2000, config) } else { Tcb::listen(1000, config) };
    let mut packets = Packets::default();
    let mut interface_config = InterfaceConfig::new(HardwareAddress::Ip);
    interface_config.random_seed = seed;
    let mut interface = Interface::new(interface_config, &mut packets, Instant::ZERO);
    interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(IpAddress::Ipv4(SENDER), 24)).unwrap());
    let buffer = || smol::SocketBuffer::new(vec![0; 20_000]);
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(smol::Socket::new(buffer(), buffer()));
    let socket = sockets.get_mut::<smol::Socket<'_>>(handle);
    if we_open {
        socket.listen(2000).unwrap();
    } else {
        socket.connect(interface.context(), (RECEIVER, 1000), 2000).unwrap();
    }
    let (mut now, mut handed, mut received) = (Duration::ZERO, [0; 2], [Vec::new(), Vec::new()]);
    for _ in 0..500_000 {
        now += Duration::from_micros(500);
        // smoltcp's side.
        interface.poll(Instant::from_micros(now.as_micros() as i64), &mut packets, &mut sockets);
        let socket = sockets.get_mut::<smol::Socket<'_>>(handle);
        while socket.can_recv() {
            socket.recv(|octets| (octets.len(), received[1].extend_from_slice(octets))).unwrap();
        }
        if socket.can_send() && handed[1] < data[1].len() {
            handed[1] += socket.send_slice(&data[1][handed[1]..]).unwrap();
        }
        if handed[1] == data[1].len() && socket.may_send() {
            socket.close();
        }
        // Ours.
        while let Some(packet) = packets.to_us.pop_front() {
            if random.u8(0..100) < loss {
                continue;
            }
            let (ip, length) = Ipv4Header::decode(&packet).unwrap();
            let (header, offset) = TcpHeader::decode(&ip, &packet[length..]).unwrap();
            let octets = MessageBlock::from(&packet[length + offset..]);
            tcb.on_segment(Segment { header, data: octets }, now);
        }
        if tcb.next_timer().is_some_and(|at| at <= now) {
            tcb.on_timer(now);
        }
        while handed[0] < data[0].len() {
            let end = data[0].len().min(handed[0] + 3000);
            if tcb.send(data[0][handed[0]..end].into()).is_err() {
                break;
            }
            handed[0] = end;
        }
        if handed[0] == data[0].len() {
            tcb.close();
        }
        while let Some(block) = tcb.receive() {
            received[0].extend_from_slice(&block);
        }
        while let Some(segment) = tcb.transmit(now) {
            if random.u8(0..100) >= loss {
                packets.to_smoltcp.push_back(segment.packet(RECEIVER, SENDER).unwrap());
            }
        }
        let theirs = sockets.get::<smol::Socket<'_>>(handle).state();
        let have_closed = matches!(tcb.state(), State::TimeWait | State::Closed)
            && matches!(theirs, smol::State::TimeWait | smol::State::Closed);
        if have_closed {
            break;
        }
    }
    assert_eq!(tcb.end_reason(), None, "{tcb:?}");
    assert_eq!([received[0].len(), received[1].len()], [80_000; 2], "we open: {we_open}, loss: {loss}, {tcb:?}");
    assert!(received[0] == data[1] && received[1] == data[0]);
    assert!(matches!(tcb.state(), State::TimeWait | State::Closed), "{:?}", tcb.state());
}

#[test]
fn our_tcp_and_that_of_smoltcp_exchange_data_and_close() {
    for we_open in [true, false] {
        for loss in [0, 3, 10] {
            for seed in 0..4 {
                exchange(we_open, loss, seed);
            }
        }
    }
}
