//! Many datagrams in one system call.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use super::{Address, Name, Received};
use crate::sys::dgram::Scratch;

/// A buffer for many datagrams, to be sent or received with few system calls: on Linux one `sendmmsg` or
/// `recvmmsg` for all of them, elsewhere one call each. It is created once and reused; nothing is allocated
/// after that.
///
/// `Batch<A>` is for unconnected endpoints of the family with addresses `A`, `Batch<()>` (or `Batch`) for
/// connected ones. A received batch can be sent as it is: each datagram then returns to its sender.
///
/// ```
/// use spandrel_ipc::dgram::Batch;
/// use spandrel_ipc::inet::{Addr, Dgram};
///
/// let (here, there) = (Dgram::open(&Addr::loopback(0))?, Dgram::open(&Addr::loopback(0))?);
/// let mut out = Batch::new(64, 1472);
/// for word in ["many", "at", "once"] {
///     out.push_to(word.as_bytes(), &there.local_addr()?)?;
/// }
/// assert_eq!(here.send_batch(&mut out)?, 3);
///
/// let mut into = Batch::new(64, 1472);
/// there.recv_batch(&mut into)?; // waits for the first, then takes all that are queued
/// let first = into.get(0).unwrap();
/// assert_eq!((first.octets(), first.addr()?), (&b"many"[..], here.local_addr()?));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Batch<A = ()> {
    octets: Box<[u8]>,
    room: usize,
    heads: Vec<Head>,
    sent: usize,
    scratch: Scratch,
    family: PhantomData<fn() -> A>,
}

/// The metadata of one datagram.
struct Head {
    received: Received,
    name: Option<Name>,
}

/// One datagram of a [`Batch`].
#[derive(Clone, Copy)]
pub struct Datagram<'a, A = ()> {
    octets: &'a [u8],
    head: &'a Head,
    family: PhantomData<fn() -> A>,
}

/// The reason why a datagram was not added to a [`Batch`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The batch is full.
    #[error("the batch is full: it has {capacity} datagrams, its capacity")]
    Full {
        /// The maximum number of datagrams.
        capacity: usize,
    },
    /// The datagram is longer than the room for each datagram of the batch.
    #[error("a datagram of {len} octets does not fit into a batch for {room} octets each")]
    TooLong {
        /// Its length in octets.
        len: usize,
        /// The room for each datagram of the batch, in octets.
        room: usize,
    },
    /// No datagram can be sent to the address.
    #[error("no datagram can be sent to `{address}`")]
    Address {
        /// The address, as text for people.
        address: String,
        /// The reason why it is no destination.
        #[source]
        cause: io::Error,
    },
}
spandrel_error::debug_as_report!(PushError);

impl From<PushError> for io::Error {
    fn from(error: PushError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

/// The maximum of one system call on the known systems (`UIO_MAXIOV`).
const MAX_DATAGRAMS: usize = 1024;

impl<A> Batch<A> {
    /// A batch with room for that many datagrams (clamped to 1 to 1,024) of at most that many octets each.
    #[must_use]
    pub fn new(datagrams: usize, octets_each: usize) -> Self {
        let (datagrams, room) = (datagrams.clamp(1, MAX_DATAGRAMS), octets_each.max(1));
        Self {
            octets: vec![0; datagrams.saturating_mul(room)].into_boxed_slice(),
            room,
            heads: Vec::with_capacity(datagrams),
            sent: 0,
            scratch: Scratch::with_capacity(datagrams),
            family: PhantomData,
        }
    }

    /// The number of datagrams in it: received, or not sent yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len() - self.sent
    }

    /// Whether no datagram was added or received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The maximum number of datagrams.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.octets.len() / self.room
    }

    /// The maximum number of octets of each datagram.
    #[must_use]
    pub fn datagram_room(&self) -> usize {
        self.room
    }

    /// Removes all datagrams, and keeps the memory.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.sent = 0;
    }

    /// A datagram by index, not counting those already sent.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Datagram<'_, A>> {
        let at = self.sent.checked_add(index)?;
        let head = self.heads.get(at)?;
        let octets = &self.octets[at * self.room..][..head.received.len()];
        Some(Datagram { octets, head, family: PhantomData })
    }

    /// The octets of a datagram, for changes in place.
    pub fn octets_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let at = self.sent.checked_add(index)?;
        let head = self.heads.get(at)?;
        Some(&mut self.octets[at * self.room..][..head.received.len()])
    }

    /// The datagrams in order, without those already sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Datagram<'_, A>> {
        let octets = self.octets.chunks_exact(self.room).skip(self.sent);
        self.heads[self.sent..].iter().zip(octets).map(|(head, octets)| Datagram {
            octets: &octets[..head.received.len()],
            head,
            family: PhantomData,
        })
    }

    /// Adds a datagram that `fill` writes into its room; `fill` returns its length.
    fn push_head(&mut self, name: Option<Name>, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), PushError> {
        let at = self.heads.len();
        if at == self.capacity() {
            return Err(PushError::Full { capacity: at });
        }
        let len = fill(&mut self.octets[at * self.room..][..self.room]);
        if len > self.room {
            return Err(PushError::TooLong { len, room: self.room });
        }
        self.heads.push(Head { received: Received::of(len, self.room), name });
        Ok(())
    }
}

/// Batches of endpoints that are connected.
impl Batch<()> {
    /// Appends a copy of `data` as one datagram.
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::TooLong`].
    pub fn push(&mut self, data: &[u8]) -> Result<(), PushError> {
        self.push_head(None, copy(data))
    }

    /// Adds a datagram that `fill` writes into the given room; `fill` returns its length.
    ///
    /// # Errors
    /// As [`push`](Self::push); a length beyond the room is too long.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), PushError> {
        self.push_head(None, fill)
    }
}

/// Batches of endpoints that are not connected.
impl<A: Address> Batch<A> {
    /// Appends a copy of `data` as one datagram to `to`.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_to(&mut self, data: &[u8], to: &A) -> Result<(), PushError> {
        self.push_to_with(to, copy(data))
    }

    /// Adds a datagram to `to` that `fill` writes into the given room; `fill` returns its length.
    ///
    /// # Errors
    /// As [`push_to`](Self::push_to); a length beyond the room is too long.
    pub fn push_to_with(&mut self, to: &A, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), PushError> {
        let name = to.encode().map_err(|cause| PushError::Address { address: to.to_string(), cause })?;
        self.push_head(Some(name), fill)
    }
}

/// Copies the part that fits, and returns the full length.
fn copy(data: &[u8]) -> impl FnOnce(&mut [u8]) -> usize {
    |room| {
        if let Some(room) = room.get_mut(..data.len()) {
            room.copy_from_slice(data);
        }
        data.len()
    }
}

/// The datagrams that no system call has sent yet, and room for those that one receives.
impl<A> Batch<A> {
    pub(super) fn first_unsent(&self) -> Option<Datagram<'_, A>> {
        self.get(0)
    }

    pub(super) fn first_unsent_name(&self) -> Option<&Name> {
        self.heads.get(self.sent)?.name.as_ref()
    }

    pub(super) fn mark_sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.heads.len());
        if self.sent == self.heads.len() {
            self.clear();
        }
    }

    /// The datagrams to send, and the scratch space for their headers.
    pub(super) fn outgoing(&mut self) -> (&mut Scratch, impl Iterator<Item = (&[u8], Option<&Name>)>) {
        let octets = self.octets.chunks_exact(self.room).skip(self.sent);
        let datagrams = self.heads[self.sent..].iter().zip(octets);
        let datagrams = datagrams.map(|(head, octets)| (&octets[..head.received.len()], head.name.as_ref()));
        (&mut self.scratch, datagrams)
    }

    /// The buffers to receive into, the scratch space for their headers, and the records of received
    /// datagrams.
    pub(super) fn incoming(&mut self) -> (&mut Scratch, impl Iterator<Item = &mut [u8]>, Records<'_>) {
        self.heads.clear();
        self.sent = 0;
        let buffers = self.octets.chunks_exact_mut(self.room);
        let records = Records(&mut self.heads);
        (&mut self.scratch, buffers, records)
    }
}

/// Records the received datagrams, in order.
pub(super) struct Records<'a>(&'a mut Vec<Head>);

impl Records<'_> {
    pub(super) fn add(&mut self, received: Received, name: Option<Name>) {
        self.0.push(Head { received, name });
    }
}

impl<'a, A> Datagram<'a, A> {
    /// Its octets, without a truncated rest.
    #[must_use]
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// The number of its octets, and whether the room was too small for all that was received.
    pub fn received(&self) -> Received {
        self.head.received
    }
}

impl<A: Address> Datagram<'_, A> {
    /// Its sender, or its destination.
    ///
    /// # Errors
    /// When the system returned an address of another family.
    pub fn addr(&self) -> io::Result<A> {
        A::decode(self.head.name.as_ref())
    }
}

impl<A> fmt::Debug for Batch<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut batch = f.debug_struct("Batch");
        batch.field("len", &self.len()).field("capacity", &self.capacity()).field("datagram_room", &self.room).finish()
    }
}

impl<A> fmt::Debug for Datagram<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram").field("received", &self.head.received).finish_non_exhaustive()
    }
}
