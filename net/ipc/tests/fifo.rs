//! FIFOs: a role for each end.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use spandrel_ipc::fifo::{ATOMIC, Addr, Reader, Writer, create, pair};
use spandrel_ipc::{Interest, is_timeout, wait_ready};
use spandrel_test_support::TEST_TIMEOUT;
use tempfile::TempDir;

const SHORT: Duration = Duration::from_millis(20);

fn fifo() -> (TempDir, Addr) {
    let folder = TempDir::new().unwrap();
    let addr = Addr::path(folder.path().join("fifo")).unwrap();
    create(&addr, 0o600).unwrap();
    (folder, addr)
}

#[test]
fn opening_waits_for_the_other_end() {
    let (_folder, addr) = fifo();
    assert_eq!(create(&addr, 0o600).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let reader = thread::spawn({
        let addr = addr.clone();
        move || Reader::open(&addr).unwrap()
    });
    let writer = Writer::open(&addr).unwrap();
    let reader = reader.join().unwrap();
    writer.send_n(b"one way").unwrap();
    let mut octets = [0; 7];
    reader.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"one way");
    drop(writer);
    assert_eq!(reader.recv(&mut octets).unwrap(), 0);
}

#[test]
fn opening_without_waiting_fails_without_a_reader() {
    let (_folder, addr) = fifo();
    assert_eq!(Writer::try_open(&addr).unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(Writer::open_within(&addr, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    let reader = Reader::try_open(&addr).unwrap();
    assert_eq!(reader.recv(&mut [0; 1]).unwrap(), 0, "no writer yet");
    let writer = Writer::open_within(&addr, TEST_TIMEOUT).unwrap();
    assert_eq!(reader.try_recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(reader);
    assert_eq!(writer.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_lasting_reader_waits_for_the_next_writer() {
    let (_folder, addr) = fifo();
    let reader = Reader::open_lasting(&addr).unwrap();
    for text in [b"first ", b"second"] {
        let writer = Writer::open(&addr).unwrap();
        writer.send_n(text).unwrap();
        drop(writer);
        let mut octets = [0; 6];
        reader.recv_n(&mut octets).unwrap();
        assert_eq!(&octets, text);
    }
    assert_eq!(reader.recv_within(&mut [0; 1], SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn every_form_of_transfer_works() {
    let (reader, writer) = pair().unwrap();
    assert_eq!(writer.send_v(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).unwrap(), 4);
    let (mut a, mut b) = ([0; 1], [0; 9]);
    assert_eq!(reader.recv_v(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)]).unwrap(), 4);
    assert_eq!((&a, &b[..3]), (b"a", &b"bcd"[..]));

    reader.set_recv_timeout(Some(SHORT)).unwrap();
    assert!(is_timeout(&reader.recv(&mut a).unwrap_err()));
    assert_eq!(reader.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    reader.set_recv_timeout(None).unwrap();
    reader.set_nonblocking(true);
    assert_eq!(reader.recv(&mut a).unwrap_err().kind(), ErrorKind::WouldBlock);
    reader.set_nonblocking(false);

    // More than it holds: time runs out, and the count is right.
    let data: Vec<u8> = (0..1 << 20).map(|i: u32| (i ^ (i >> 8)) as u8).collect();
    let error = writer.send_n_within(&data, SHORT).unwrap_err();
    assert!(error.is_timeout() && error.transferred == writer.capacity().unwrap(), "{error:?}");
    assert_eq!(writer.try_send(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
    let sender = thread::spawn({
        let data = data.clone();
        move || writer.send_n_v(&mut [IoSlice::new(&data[error.transferred..])]).unwrap()
    });
    let mut received = vec![0; data.len()];
    reader.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
    sender.join().unwrap();
    assert!(received == data);
    assert_eq!(reader.recv(&mut a).unwrap(), 0);
}

#[test]
fn messages_of_many_writers_arrive_in_one_piece() {
    let (reader, writer) = pair().unwrap();
    let threads: Vec<_> = (0..4_u8)
        .map(|i| {
            let writer = writer.try_clone().unwrap();
            thread::spawn(move || (0..100).for_each(|_| assert_eq!(writer.send(&[i; ATOMIC]).unwrap(), ATOMIC)))
        })
        .collect();
    drop(writer);
    let mut message = [0; ATOMIC];
    for _ in 0..400 {
        reader.recv_n(&mut message).unwrap();
        assert!(message.iter().all(|octet| *octet == message[0]));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(reader.recv(&mut message).unwrap(), 0);
}

#[test]
fn a_reactor_can_wait_for_either_end() {
    let (reader, writer) = pair().unwrap();
    assert!(wait_ready(&reader, Interest::INPUT, Some(Duration::ZERO)).unwrap().is_none());
    assert_eq!(wait_ready(&writer, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
    writer.send_n(b"x").unwrap();
    assert_eq!(wait_ready(&reader, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    let larger = writer.set_capacity(1 << 17).unwrap();
    assert_eq!((reader.capacity().unwrap(), larger), (1 << 17, 1 << 17));
}

#[test]
fn other_files_and_the_other_end_are_refused() {
    let (folder, _) = fifo();
    let path = folder.path().join("plain");
    fs::write(&path, "plain").unwrap();
    let addr = Addr::path(&path).unwrap();
    assert_eq!(Reader::open(&addr).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Writer::try_open(&addr).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Addr::path("").unwrap_err().kind(), ErrorKind::InvalidInput);
    let missing = Addr::path(folder.path().join("missing")).unwrap();
    assert_eq!(Reader::open(&missing).unwrap_err().kind(), ErrorKind::NotFound);

    let file = OwnedFd::from(File::open(&path).unwrap());
    assert_eq!(Reader::try_from(file).unwrap_err().kind(), ErrorKind::InvalidInput);
    let (reader, writer) = pair().unwrap();
    assert_eq!(Writer::try_from(OwnedFd::from(reader)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Reader::try_from(OwnedFd::from(writer)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let (reader, writer) = pair().unwrap();
    let writer = Writer::try_from(OwnedFd::from(writer)).unwrap();
    writer.send_n(b"x").unwrap();
    Reader::try_from(OwnedFd::from(reader)).unwrap().recv_n(&mut [0; 1]).unwrap();
}
