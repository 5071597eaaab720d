//! What a connector says first: how large the rings are, and the memory in which they lie.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};

use super::segment::{GREETING, Layout};
use crate::unix;

/// What has come.
pub(super) enum Greeting {
    /// Nothing yet.
    None,
    /// All of it.
    Some(Layout, OwnedFd),
}

/// More than one descriptor has no place here; the system closes those that do not fit and says so.
const DESCRIPTORS: usize = 1;

/// Reads the greeting if it has come; rings of more than `limit` octets are refused.
///
/// A connector sends it in one piece, with the one descriptor; anything else is an error.
pub(super) fn read_greeting(socket: &unix::Stream, limit: u32) -> io::Result<Greeting> {
    let mut octets = [0; GREETING];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut slices = [IoSliceMut::new(&mut octets)];
    let message = loop {
        match rustix::net::recvmsg(socket, &mut slices, &mut control, flags) {
            Ok(message) => break message,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Greeting::None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut files = Vec::with_capacity(DESCRIPTORS);
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = part {
            files.extend(passed); // those that are not used are closed with the vector
        }
    }
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(wrong("more descriptors came than one, or this process has no room for it"));
    }
    let layout = Layout::from_greeting(&octets[..message.bytes], limit)?;
    match (files.pop(), files.pop()) {
        (Some(file), None) => Ok(Greeting::Some(layout, file)),
        _ => Err(wrong("not one descriptor came with the greeting")),
    }
}
