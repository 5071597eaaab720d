//! Transfers of batches: with one system call where it takes many datagrams, otherwise one at a time.

use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsFd;

use socket2::Socket;

#[cfg(any(target_os = "linux", target_os = "android"))]
use super::Received;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
use super::buffers::{Data, Room};
use super::{Batch, system};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn send<A>(socket: &Socket, batch: &mut Batch<A>, at_once: bool) -> io::Result<usize> {
    let (scratch, datagrams) = batch.outgoing();
    crate::sys::dgram::send_many(socket.as_fd(), scratch, datagrams, system::send_flags(at_once))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn recv<A>(socket: &Socket, batch: &mut Batch<A>, at_once: bool) -> io::Result<usize> {
    let room = batch.datagram_room();
    let (scratch, buffers, mut records) = batch.incoming();
    crate::sys::dgram::recv_many(socket.as_fd(), scratch, buffers, system::recv_flags(at_once), |arrived| {
        records.add(Received::of(arrived.len, room), arrived.name);
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use self::{recv_each as recv, send_each as send};

/// Sends the unsent datagrams, and returns their number. An error is returned only if none was sent;
/// otherwise the next call gets it.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn send_each<A>(socket: &Socket, batch: &mut Batch<A>, at_once: bool) -> io::Result<usize> {
    let (_, datagrams) = batch.outgoing();
    let mut sent = 0;
    for (data, to) in datagrams {
        match system::send(socket, Data::One(data), to, at_once) {
            Ok(()) => sent += 1,
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// Receives the queued datagrams; waits, if at all, for the first only.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn recv_each<A>(socket: &Socket, batch: &mut Batch<A>, at_once: bool) -> io::Result<usize> {
    let (_, buffers, mut records) = batch.incoming();
    let mut count = 0;
    for buffer in buffers {
        match system::recv_from(socket, &mut Room::One(buffer), at_once || count > 0) {
            Ok((received, name)) => records.add(received, name),
            Err(error) if count == 0 => return Err(error),
            Err(_) => break,
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use proptest::prelude::*;
    use socket2::{Domain, Type};

    use super::*;

    type Send = fn(&Socket, &mut Batch, bool) -> io::Result<usize>;

    /// The results of sending `sizes` with `send` (which stops at the first that is too long) and receiving
    /// with `recv`.
    fn through(sizes: &[usize], send: Send, recv: Send) -> (Vec<usize>, Vec<(Vec<u8>, Received)>) {
        let (here, there) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
        here.set_send_buffer_size(16_384).unwrap(); // a longer datagram (or twice as long) is too long
        let mut out = Batch::new(sizes.len(), 70_000);
        for (index, size) in sizes.iter().enumerate() {
            out.push(&vec![index as u8; *size]).unwrap();
        }
        let (mut sends, mut all) = (Vec::new(), Vec::new());
        let mut into = Batch::new(7, 1_000);
        loop {
            let sent = send(&here, &mut out, true);
            match recv(&there, &mut into, true) {
                Ok(_) => all.extend(into.iter().map(|one| (one.octets().to_vec(), one.received()))),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            match sent {
                Ok(0) => break,
                Ok(sent) => {
                    out.mark_sent(sent);
                    sends.push(sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    out.mark_sent(1); // leave it out
                    sends.push(0);
                }
            }
            if out.is_empty() {
                break;
            }
        }
        while recv(&there, &mut into, true).is_ok() {
            all.extend(into.iter().map(|one| (one.octets().to_vec(), one.received())));
        }
        (sends, all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn single_sends_match_a_batch_call(
            sizes in proptest::collection::vec(prop_oneof![9 => 0..1_500_usize, 1 => Just(65_000)], 1..8)
        ) {
            let together = through(&sizes, super::send, super::recv);
            prop_assert_eq!(&through(&sizes, send_each, recv_each), &together);
            prop_assert_eq!(&through(&sizes, super::send, recv_each), &together);
            let expected = sizes.iter().filter(|size| **size < 65_000).count();
            prop_assert_eq!(together.1.len(), expected);
        }
    }
}
