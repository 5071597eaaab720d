//! Two parties with an ORB each, and relays between them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use spandrel_bulk::{
    BulkClient, BulkError, BulkLimits, BulkServer, BulkServerBuilder, OfferedTo, OfferedTransfer, Outcome, Sink,
    Source,
    bulk::{Offer, StreamEnd},
};
use spandrel_ipc::inet;
use spandrel_orb::{Endpoint, Orb};
use spandrel_poa::Poa;
use spandrel_test_support::{ChildProcess, wait_until};

pub(crate) struct Parties {
    pub(crate) offering: Orb,
    pub(crate) taking: Orb,
    pub(crate) bulk: BulkServer,
}

/// Two parties; the offering one listens on the loopback interface.
pub(crate) fn parties() -> Parties {
    parties_with(|builder| builder.tcp(inet::Addr::loopback(0)))
}

pub(crate) fn parties_with(configure: impl FnOnce(BulkServerBuilder) -> BulkServerBuilder) -> Parties {
    let offering = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let taking = Orb::builder().build().unwrap();
    let bulk = configure(BulkServer::builder(&Poa::root(&offering).unwrap())).open().unwrap();
    Parties { offering, taking, bulk }
}

/// Limits with which a test can wait for time-outs.
pub(crate) fn short_limits() -> BulkLimits {
    BulkLimits { greeting: Duration::from_millis(300), idle: Duration::from_millis(300), ..BulkLimits::default() }
}

impl Parties {
    /// The offer as the other party gets it.
    fn handed_over(&self, (offer, transfer): (Offer, OfferedTransfer)) -> (Offer, OfferedTransfer) {
        let control = offer.control.as_ref().unwrap().to_string();
        let control: StreamEnd = self.taking.string_to_object(&control).unwrap().narrow().unwrap();
        (Offer { control: Some(control), ..offer }, transfer)
    }

    pub(crate) fn download(&self, source: impl Source + 'static) -> (Offer, OfferedTransfer) {
        self.handed_over(self.bulk.offer_source(source, &loopback()).unwrap())
    }

    pub(crate) fn upload(&self, sink: impl Sink + 'static) -> (Offer, OfferedTransfer) {
        self.handed_over(self.bulk.offer_sink(sink, &loopback()).unwrap())
    }
}

impl Drop for Parties {
    fn drop(&mut self) {
        _ = self.taking.shutdown();
        _ = self.offering.shutdown();
    }
}

pub(crate) fn loopback() -> OfferedTo {
    OfferedTo::Host([127, 0, 0, 1].into())
}

/// Repeats the transfer while no connection is open in time: on a loaded machine, that may exceed its time limit. Each
/// attempt needs an offer of its own, since the client cancels the transfer of one that fails.
pub(crate) fn patiently(mut transfer: impl FnMut() -> Result<Outcome, BulkError>) -> Result<Outcome, BulkError> {
    let mut result = transfer();
    wait_until("a connection", || {
        let is_late = matches!(result, Err(BulkError::Unreachable(_)));
        if is_late {
            result = transfer();
        }
        !is_late
    });
    result
}

/// The TCP address in an offer.
pub(crate) fn address_in(offer: &Offer) -> String {
    offer.at.iter().find_map(|text| text.strip_prefix("tcp://")).expect("a TCP endpoint").to_owned()
}

/// The offer by way of a relay, which cuts its first `cuts` connections after `octets` in one direction.
pub(crate) fn relayed(offer: &Offer, cuts: usize, octets: usize) -> Offer {
    let target = address_in(offer);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for number in 0.. {
            let (near, _) = listener.accept().unwrap();
            let far = TcpStream::connect(&target).unwrap();
            let limit = if number < cuts { octets } else { usize::MAX };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || copy_some(from, to, limit));
            }
        }
    });
    Offer { at: vec![at].try_into().unwrap(), ..offer.clone() }
}

fn copy_some(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 16 << 10];
    while left > 0 {
        let most = left.min(buffer.len());
        match from.read(&mut buffer[..most]) {
            Ok(count @ 1..) if to.write_all(&buffer[..count]).is_ok() => left -= count,
            _ => {
                _ = to.shutdown(Shutdown::Write);
                return;
            }
        }
    }
    _ = from.shutdown(Shutdown::Both);
    _ = to.shutdown(Shutdown::Both);
}

/// Takes the octets that a child offers, as a line of its output says: endpoint, token, stream end.
pub(crate) fn take_from(mut child: ChildProcess) -> (Vec<u8>, std::process::ExitStatus) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains(" IOR:"))).expect("an offer");
    let [at, token, control] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let orb = Orb::builder().build().unwrap();
    let mut secret = [0; 32];
    for (octet, digits) in secret.iter_mut().zip(token.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    }
    let control = Some(orb.string_to_object(control).unwrap().narrow().unwrap());
    let at = vec![at.to_owned()].try_into().unwrap();
    let offer = Offer { secret, length: spandrel_bulk::bulk::UNKNOWN_LENGTH, at, control, ..Offer::default() };
    let mut received = Vec::new();
    BulkClient::default().calls(false).receive(&offer, &mut received).unwrap();
    let rest = thread::spawn(move || lines.for_each(drop));
    let status = child.wait().unwrap();
    rest.join().unwrap();
    orb.shutdown().unwrap();
    (received, status)
}
