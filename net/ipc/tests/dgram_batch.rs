//! Batches: several datagrams in one system call.

use std::io::{self, ErrorKind};
use std::time::Duration;

use proptest::prelude::*;
use spandrel_ipc::dgram::{Batch, PushError, SendError};
use spandrel_ipc::inet::{Addr, Dgram};
use spandrel_test_support::TEST_TIMEOUT;

/// Two unconnected endpoints and the address of the second.
fn endpoints() -> (Dgram, Dgram, Addr) {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    (here, there, to)
}

/// Receives until `count` datagrams have arrived.
fn receive_all(there: &Dgram, count: usize, room: usize) -> Vec<(Vec<u8>, bool)> {
    let mut batch = Batch::new(64, room);
    let mut all = Vec::new();
    while all.len() < count {
        assert_eq!(there.recv_batch_within(&mut batch, TEST_TIMEOUT).unwrap(), batch.len());
        all.extend(batch.iter().map(|one| (one.octets().to_vec(), one.received().is_truncated())));
    }
    all
}

#[test]
fn a_batch_holds_its_capacity() {
    let to = Addr::loopback(9);
    let mut batch = Batch::<Addr>::new(2, 4);
    assert_eq!((batch.capacity(), batch.datagram_room(), batch.len()), (2, 4, 0));
    assert!(batch.is_empty() && batch.get(0).is_none());
    assert!(matches!(batch.push_to(b"five!", &to), Err(PushError::TooLong { len: 5, room: 4 })));
    assert!(matches!(batch.push_to_with(&to, |_| 5), Err(PushError::TooLong { .. })));
    batch.push_to(b"four", &to).unwrap();
    batch.push_to(b"", &to).unwrap();
    let full = batch.push_to(b"more", &to).unwrap_err();
    assert!(matches!(full, PushError::Full { .. }));
    assert_eq!(io::Error::from(full).kind(), ErrorKind::InvalidInput);
    assert_eq!(batch.get(0).unwrap().octets(), b"four");
    assert_eq!(batch.get(0).unwrap().addr().unwrap(), to);
    assert!(batch.get(2).is_none() && batch.get(usize::MAX).is_none());
    batch.clear();
    assert!(batch.is_empty());
    assert_eq!((Batch::<()>::new(0, 0).capacity(), Batch::<()>::new(5_000, 1).capacity()), (1, 1024));
}

#[test]
fn an_empty_batch_sends_nothing() {
    let (here, there, _) = endpoints();
    assert_eq!(here.send_batch(&mut Batch::new(4, 4)).unwrap(), 0);
    let mut batch = Batch::new(4, 4);
    assert_eq!(there.try_recv_batch(&mut batch).unwrap_err().kind(), ErrorKind::WouldBlock);
    let error = there.recv_batch_within(&mut batch, Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_receive_replaces_the_contents_of_a_batch() {
    let (here, there, to) = endpoints();
    let mut batch = Batch::new(4, 8);
    batch.push_to(b"stale", &to).unwrap();
    here.send_to(b"fresh", &to).unwrap();
    assert_eq!(there.recv_batch(&mut batch).unwrap(), 1);
    assert_eq!(batch.iter().map(|one| one.octets().to_vec()).collect::<Vec<_>>(), [b"fresh"]);
    assert_eq!(there.try_recv_batch(&mut batch).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(batch.is_empty());
}

#[test]
fn each_truncated_datagram_is_reported() {
    let (here, there, to) = endpoints();
    for data in [&b"fits"[..], b"does not fit", b"", b"fits too"] {
        here.send_to(data, &to).unwrap();
    }
    let came = receive_all(&there, 4, 8);
    let expected: [(&[u8], bool); 4] = [(b"fits", false), (b"does not", true), (b"", false), (b"fits too", false)];
    assert!(came.iter().map(|(octets, cut)| (&octets[..], *cut)).eq(expected), "{came:?}");
}

/// The datagrams before it are sent, it stays, and the next call returns the reason.
#[test]
fn an_unsendable_datagram_stops_a_batch() {
    let (here, there, to) = endpoints();
    let mut batch = Batch::new(8, 66_000);
    batch.push_to(b"goes", &to).unwrap();
    batch.push_to(b"goes too", &to).unwrap();
    batch.push_to_with(&to, |_| 65_508).unwrap();
    batch.push_to(b"waits", &to).unwrap();
    assert_eq!(here.send_batch(&mut batch).unwrap(), 2);
    assert_eq!(batch.len(), 2);
    for _ in 0..2 {
        let error = here.send_batch(&mut batch).unwrap_err();
        assert!(matches!(error, SendError::TooLong { len: 65_508, .. }), "{error:?}");
        assert_eq!((batch.len(), batch.get(0).unwrap().octets().len()), (2, 65_508));
    }
    assert_eq!(receive_all(&there, 2, 16).len(), 2);
    assert_eq!(there.try_recv_from(&mut [0; 4]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn different_receivers_get_their_own() {
    let here = Dgram::open(&Addr::loopback(0)).unwrap();
    let receivers: Vec<_> = (0..10).map(|_| Dgram::open(&Addr::loopback(0)).unwrap()).collect();
    let mut batch = Batch::new(10, 8);
    for (index, receiver) in receivers.iter().enumerate() {
        batch.push_to(&[index as u8], &receiver.local_addr().unwrap()).unwrap();
    }
    assert_eq!(here.send_batch(&mut batch).unwrap(), 10);
    for (index, receiver) in receivers.iter().enumerate() {
        let mut octets = [0; 8];
        assert_eq!(receiver.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap().0.len(), 1);
        assert_eq!(octets[0], index as u8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Over UDP, at most as many as a receive queue holds for certain.
    #[test]
    fn sizes_and_order_are_preserved(sizes in proptest::collection::vec(0..1_200_usize, 1..64)) {
        let (here, there, to) = endpoints();
        let mut batch = Batch::new(64, 1_200);
        for (index, size) in sizes.iter().enumerate() {
            batch.push_to(&vec![index as u8; *size], &to).unwrap();
        }
        prop_assert_eq!(here.send_batch(&mut batch).unwrap(), sizes.len());
        prop_assert!(batch.is_empty());
        for (index, (octets, cut)) in receive_all(&there, sizes.len(), 1_200).into_iter().enumerate() {
            prop_assert!(!cut);
            prop_assert_eq!(octets, vec![index as u8; sizes[index]]);
        }
    }
}

/// UNIX-domain sockets lose nothing, so that any number can be sent in one call.
#[cfg(unix)]
mod unix {
    use std::thread;

    use spandrel_ipc::unix::ConnectedDgram;
    use spandrel_ipc::{Interest, wait_ready};

    use super::*;

    /// Sends `sizes` in one batch to a receiver with room for `room` datagrams at once, and returns the
    /// received ones.
    fn through(sizes: &[usize], room: usize) -> Vec<Vec<u8>> {
        let (here, there) = ConnectedDgram::pair().unwrap();
        let count = sizes.len();
        let receiver = thread::spawn(move || {
            let mut batch = Batch::new(room, 300);
            let mut all = Vec::new();
            while all.len() < count {
                there.recv_batch_within(&mut batch, TEST_TIMEOUT).unwrap();
                assert!((1..=room).contains(&batch.len()));
                all.extend(batch.iter().map(|one| one.octets().to_vec()));
            }
            all
        });
        let mut batch = Batch::new(count, 300);
        for (index, size) in sizes.iter().enumerate() {
            batch.push(&vec![index as u8; *size]).unwrap();
        }
        here.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
        while !batch.is_empty() {
            here.send_batch(&mut batch).unwrap();
        }
        receiver.join().unwrap()
    }

    fn check(sizes: &[usize], room: usize) {
        let came = through(sizes, room);
        let sent = sizes.iter().enumerate().map(|(index, size)| vec![index as u8; *size]);
        assert!(came.into_iter().eq(sent));
    }

    #[test]
    fn a_batch_of_any_size_goes_through() {
        for count in [1, 2, 3, 31, 64, 255, 1_023, 1_024] {
            let sizes: Vec<_> = (0..count).map(|index| index * 7 % 300).collect();
            for room in [1, 10, 1_024] {
                check(&sizes, room);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn no_datagram_is_lost_whatever_the_sizes(
            sizes in proptest::collection::vec(0..300_usize, 1..200), room in 1..100_usize
        ) {
            check(&sizes, room);
        }
    }

    #[test]
    fn a_batch_larger_than_the_queue_is_sent_in_parts() {
        let (here, there) = ConnectedDgram::pair().unwrap();
        let mut batch = Batch::new(1_024, 8);
        (0..1_024_u16).for_each(|number| batch.push(&number.to_ne_bytes()).unwrap());
        let mut expected = 0..1_024_u16;
        let mut parts = 0;
        while !batch.is_empty() {
            match here.try_send_batch(&mut batch) {
                Ok(sent) => {
                    assert!(sent > 0);
                    parts += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    let error = here.send_batch_within(&mut batch, Duration::from_millis(5)).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                    // Linux calls a sender ready again only when most of what it has sent was received.
                    let mut room = Batch::new(1_024, 8);
                    there.recv_batch(&mut room).unwrap();
                    for one in room.iter() {
                        assert_eq!(one.octets(), expected.next().unwrap().to_ne_bytes());
                    }
                    assert_eq!(wait_ready(&here, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
                }
            }
        }
        assert!(parts > 1);
    }
}
