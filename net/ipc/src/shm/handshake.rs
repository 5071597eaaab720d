//! The handshake: the connector's first message, with the ring sizes and the memory.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};

use super::segment::{HANDSHAKE_OCTETS, Layout};
use crate::unix::{self, Credentials};

/// The state of the handshake.
pub(super) enum Handshake {
    /// The message has not arrived.
    None,
    /// The layout of the rings, and the memory that holds them.
    Some(Layout, OwnedFd),
}

/// The handshake has exactly one descriptor; the system closes the others and reports it.
const DESCRIPTORS: usize = 1;

/// Reads the handshake if it has arrived; rings of more than `limit` octets are refused.
///
/// A connector sends it in one piece, with the one descriptor; anything else is an error.
pub(super) fn read_handshake(socket: &unix::Stream, limit: u32) -> io::Result<Handshake> {
    let mut octets = [0; HANDSHAKE_OCTETS];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut slices = [IoSliceMut::new(&mut octets)];
    let message = loop {
        match rustix::net::recvmsg(socket, &mut slices, &mut control, flags) {
            Ok(message) => break message,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Handshake::None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut files = Vec::with_capacity(DESCRIPTORS);
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = part {
            files.extend(passed); // unused ones are closed with the vector
        }
    }
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(wrong("the handshake has more than one descriptor, or this process has none left"));
    }
    let layout = Layout::from_handshake(&octets[..message.bytes], limit)?;
    match (files.pop(), files.pop()) {
        (Some(file), None) => Ok(Handshake::Some(layout, file)),
        _ => Err(wrong("the handshake does not have exactly one descriptor")),
    }
}

/// Whether memory is shared with a process of this user by default: for the same user, and for the
/// superuser, which has all rights anyway.
pub(super) fn is_trusted(peer: &Credentials) -> bool {
    peer.uid == 0 || peer.uid == Credentials::own().uid
}
