//! Passing handles between processes: a handle is received with the type with which it was sent, and nothing
//! else stays open.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_getfd};
use spandrel_ipc::unix::{MAX_HANDLES, Passable, PassingError, Stream, pair};
use spandrel_ipc::{fifo, inet, spipe, unix};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, this_program};

/// An end of a pipe that shows whether the other end is open anywhere.
fn probe() -> (fifo::Reader, fifo::Writer) {
    fifo::pair().unwrap()
}

/// Whether all copies of the writer have been closed.
fn is_closed(reader: &fifo::Reader) -> bool {
    reader.recv_within(&mut [0; 1], TEST_TIMEOUT).expect("it is closed in time") == 0
}

fn failure<T: Passable + std::fmt::Debug>(stream: &Stream) -> PassingError {
    let error = stream.recv_handle::<T>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    *error.get_ref().unwrap().downcast_ref().unwrap()
}

#[test]
fn a_stream_arrives_as_a_stream() {
    let (here, there) = pair().unwrap();
    let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
    let client = inet::Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
    let (server, _) = acceptor.accept().unwrap();

    here.send_handle(&server).unwrap();
    let passed: inet::Stream = there.recv_handle().unwrap();
    drop(server);
    client.send_n(b"to the new owner").unwrap();
    let mut octets = [0; 16];
    passed.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"to the new owner");
    assert!(
        fcntl_getfd(passed.as_fd()).unwrap().contains(FdFlags::CLOEXEC),
        "programs started later do not inherit it"
    );

    here.send_handle(&acceptor).unwrap();
    let passed: inet::Acceptor = there.recv_handle_within(TEST_TIMEOUT).unwrap();
    assert_eq!(passed.local_addr().unwrap(), acceptor.local_addr().unwrap());
    drop(acceptor);
    inet::Connector::connect(&passed.local_addr().unwrap()).unwrap();
    passed.accept().unwrap();
}

#[test]
fn every_type_can_be_passed() {
    fn pass<T: Passable>(endpoint: &T) -> T {
        let (here, there) = pair().unwrap();
        here.send_handle(endpoint).unwrap();
        there.recv_handle().unwrap()
    }
    let (one, other) = pair().unwrap();
    pass(&one).send_n(b"u").unwrap();
    other.recv_n(&mut [0; 1]).unwrap();
    let (one, other) = spipe::pair().unwrap();
    pass(&one).send_n(b"s").unwrap();
    other.recv_n(&mut [0; 1]).unwrap();
    let (reader, writer) = fifo::pair().unwrap();
    pass(&writer).send_n(b"f").unwrap();
    pass(&reader).recv_n(&mut [0; 1]).unwrap();
    let receiver = inet::Dgram::open(&inet::Addr::loopback(0)).unwrap();
    assert_eq!(pass(&receiver).local_addr().unwrap(), receiver.local_addr().unwrap());
    let listening = unix::Acceptor::open(&unix::Addr::unnamed()).unwrap();
    assert_eq!(pass(&listening).local_addr().unwrap(), listening.local_addr().unwrap());
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"in a file").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut text = String::new();
    pass(&file).read_to_string(&mut text).unwrap();
    assert_eq!(text, "in a file");
}

#[test]
fn another_type_is_an_error_and_closed() {
    let (here, there) = pair().unwrap();
    let (reader, writer) = probe();
    here.send_handle(&writer).unwrap();
    drop(writer);
    let expected = PassingError::WrongType { expected: inet::Stream::TAG, received: fifo::Writer::TAG };
    assert_eq!(failure::<inet::Stream>(&there), expected);
    assert!(is_closed(&reader));
    // The stream itself goes on.
    here.send_handle(&reader).unwrap();
    there.recv_handle::<fifo::Reader>().unwrap();
}

#[test]
fn a_false_type_tag_is_detected() {
    /// Claims to be a TCP connection.
    struct Liar(OwnedFd);
    impl AsFd for Liar {
        fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
    impl Passable for Liar {
        const TAG: u8 = inet::Stream::TAG;
        fn from_received(handle: OwnedFd) -> std::io::Result<Self> {
            Ok(Self(handle))
        }
    }
    let (here, there) = pair().unwrap();
    let (reader, writer) = probe();
    here.send_handle(&Liar(writer.into())).unwrap();
    there.recv_handle::<inet::Stream>().unwrap_err();
    assert!(is_closed(&reader));
    let unix = Liar(OwnedFd::from(pair().unwrap().0));
    here.send_handle(&unix).unwrap();
    assert_eq!(there.recv_handle::<inet::Stream>().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn several_handles_are_passed_at_once_and_excess_ones_closed() {
    let (here, there) = pair().unwrap();
    let (reader, writer) = probe();
    let many: Vec<_> = (0..MAX_HANDLES).map(|_| writer.try_clone().unwrap()).collect();
    here.send_handles(&many).unwrap();
    let received = there.recv_handles::<fifo::Writer>(MAX_HANDLES).unwrap();
    assert_eq!(received.len(), MAX_HANDLES);
    received.last().unwrap().send_n(b"x").unwrap();
    reader.recv_n(&mut [0; 1]).unwrap();
    drop(received);

    here.send_handles(&many[..3]).unwrap();
    let error = there.recv_handles::<fifo::Writer>(2).unwrap_err();
    let expected = PassingError::TooMany { received: 3, limit: 2 };
    assert_eq!(error.get_ref().unwrap().downcast_ref(), Some(&expected));
    here.send_handles(&many[..2]).unwrap();
    assert_eq!(failure::<fifo::Writer>(&there), PassingError::TooMany { received: 2, limit: 1 });

    let none: [fifo::Writer; 0] = [];
    assert_eq!(here.send_handles(&none).unwrap_err().kind(), ErrorKind::InvalidInput);
    let too_many: Vec<_> = (0..=MAX_HANDLES).map(|_| writer.try_clone().unwrap()).collect();
    assert_eq!(here.send_handles(&too_many).unwrap_err().kind(), ErrorKind::InvalidInput);
    drop((many, too_many, writer));
    assert!(is_closed(&reader));
}

#[test]
fn too_many_handles_are_closed() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let (here, there) = pair().unwrap();
    let (reader, writer) = probe();
    // Without this library: as many handles as the system takes.
    let handles = [writer.as_fd(); 253];
    let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&handles)));
    let tag = [std::io::IoSlice::new(&[fifo::Writer::TAG])];
    sendmsg(&here, &tag, &mut beside, SendFlags::empty()).unwrap();
    drop(writer);
    assert_eq!(failure::<fifo::Writer>(&there), PassingError::Lost);
    assert!(is_closed(&reader));
}

#[test]
fn octets_without_a_handle_are_an_error() {
    let (here, there) = pair().unwrap();
    here.send_n(b"x").unwrap();
    assert_eq!(failure::<inet::Stream>(&there), PassingError::NoHandle { octet: b'x' });
    assert_eq!(there.try_recv_handle::<inet::Stream>().unwrap_err().kind(), ErrorKind::WouldBlock);
    let short = Duration::from_millis(10);
    assert_eq!(there.recv_handle_within::<inet::Stream>(short).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(here);
    assert_eq!(there.recv_handle::<inet::Stream>().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn an_unreceived_handle_is_closed_with_the_stream() {
    let (reader, writer) = probe();
    let (here, there) = pair().unwrap();
    here.send_handle(&writer).unwrap();
    here.send_handle(&writer).unwrap();
    drop(writer);
    assert_eq!(there.recv(&mut [0; 1]).unwrap(), 1); // a plain receive takes the octet, and the system closes the handle
    drop((here, there));
    assert!(is_closed(&reader));
}

/// The test program runs itself with so few descriptors that passing a handle to it cannot succeed.
#[test]
fn a_receiver_without_descriptors_reports_lost_handles() {
    const ROLE: &str = "SPANDREL_PASSING_ADDR";
    if let Ok(addr) = std::env::var(ROLE) {
        return receive_without_descriptors(&addr.parse().unwrap());
    }
    let acceptor = unix::Acceptor::open(&unix::Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap().to_string();
    let name = "passing::a_receiver_without_descriptors_reports_lost_handles";
    let mut child = ChildProcess::start(this_program().args(["--exact", name]).env(ROLE, addr));
    let (stream, _) = acceptor.accept().unwrap();
    let (reader, writer) = probe();
    stream.recv_n_within(&mut [0; 1], TEST_TIMEOUT).expect("the child has no descriptors left");
    stream.send_handle(&writer).unwrap();
    stream.recv_n_within(&mut [0; 1], TEST_TIMEOUT).expect("the child has lost the handle");
    stream.send_handle(&writer).unwrap();
    drop(writer);
    assert!(child.wait().unwrap().success());
    assert!(is_closed(&reader));
}

fn receive_without_descriptors(addr: &unix::Addr) {
    let stream = unix::Connector::connect(addr).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let limit = rustix::process::Rlimit { current: Some(open + 8), maximum: Some(open + 8) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut kept = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        kept.push(file);
    }
    stream.send_n(b"1").unwrap();
    assert_eq!(failure::<fifo::Writer>(&stream), PassingError::Lost);
    kept.clear();
    stream.send_n(b"2").unwrap();
    stream.recv_handle::<fifo::Writer>().unwrap();
}

#[test]
fn handles_are_passed_in_datagrams_of_connected_endpoints() {
    let (here, there) = unix::ConnectedDgram::pair().unwrap();
    let (reader, writer) = probe();
    let short = Duration::from_millis(10);
    assert_eq!(there.try_recv_handle::<fifo::Writer>().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(there.recv_handle_within::<fifo::Writer>(short).unwrap_err().kind(), ErrorKind::TimedOut);
    here.send_handles(&[writer.try_clone().unwrap(), writer]).unwrap();
    let received = there.recv_handles::<fifo::Writer>(2).unwrap();
    received[1].send_n(b"x").unwrap();
    reader.recv_n(&mut [0; 1]).unwrap();
    drop(received);
    assert!(is_closed(&reader));
    // The other way, another type, and the end of the peer, which receives do not tell.
    let (one, other) = pair().unwrap();
    there.send_handle(&one).unwrap();
    drop(one);
    here.recv_handle_within::<Stream>(TEST_TIMEOUT).unwrap().send_n(b"u").unwrap();
    other.recv_n(&mut [0; 1]).unwrap();
    drop(there);
    assert_eq!(here.send_handle(&other).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn handles_are_passed_in_datagrams_with_the_sender() {
    let receiver = unix::Dgram::open(&unix::Addr::unnamed()).unwrap(); // with a free abstract name
    let sender = unix::Dgram::open(&unix::Addr::unnamed()).unwrap();
    let (to, from) = (receiver.local_addr().unwrap(), sender.local_addr().unwrap());
    let (reader, writer) = probe();
    assert_eq!(receiver.try_recv_handle_from::<File>().unwrap_err().kind(), ErrorKind::WouldBlock);
    sender.send_handle_to(&writer, &to).unwrap();
    let (received, seen) = receiver.recv_handle_from::<fifo::Writer>().unwrap();
    assert_eq!(seen, from);
    received.send_n(b"x").unwrap();
    reader.recv_n(&mut [0; 1]).unwrap();
    drop(received);
    // From nobody that could be answered.
    unix::Dgram::unnamed().unwrap().send_handle_to(&writer, &to).unwrap();
    let (received, seen) = receiver.recv_handle_from_within::<fifo::Writer>(TEST_TIMEOUT).unwrap();
    assert!(seen.is_unnamed());
    drop((received, writer));
    assert!(is_closed(&reader));
    let nobody = unix::Addr::abstract_name("spandrel, nobody is here").unwrap();
    assert_eq!(sender.send_handle_to(&receiver, &nobody).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(sender.send_handle_to(&receiver, &unix::Addr::unnamed()).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn other_datagrams_are_errors_and_their_handles_closed() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let (here, there) = unix::ConnectedDgram::pair().unwrap();
    let failure = || {
        let error = there.recv_handle::<fifo::Writer>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        *error.get_ref().unwrap().downcast_ref::<PassingError>().unwrap()
    };
    here.send(b"").unwrap(); // no end
    assert_eq!(failure(), PassingError::NoHandle { octet: 0 });
    here.send(b"octets").unwrap();
    assert_eq!(failure(), PassingError::NoHandle { octet: b'o' });
    let (reader, writer) = probe();
    here.send_handle(&writer).unwrap();
    assert!(there.recv_handle::<fifo::Reader>().is_err());
    let tag = fifo::Writer::TAG;
    for octets in [&[][..], &[tag, tag]] {
        let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let handles = [writer.as_fd()];
        assert!(beside.push(SendAncillaryMessage::ScmRights(&handles)));
        sendmsg(&here, &[std::io::IoSlice::new(octets)], &mut beside, SendFlags::empty()).unwrap();
        assert_eq!(failure(), PassingError::NotATag, "{octets:?}");
    }
    drop(writer);
    assert!(is_closed(&reader));
}
