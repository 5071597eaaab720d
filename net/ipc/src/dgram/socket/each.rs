//! Batches one datagram after the other, where no system call takes many.

use std::io;

use socket2::Socket;

use super::{Batch, Data, Room, system};

/// Sends what was not sent yet, and says how many went. An error is told only if none went; else the next call meets it.
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

/// Receives what is there; waits, if at all, for the first only.
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
