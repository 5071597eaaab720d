//! Messages that cross the boundary of a shared library.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use spandrel_message::MessageBlock;

use super::abi::RawMessage;

/// The sender for whom a message has a meaning: the application, or a module of the same protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKind {
    /// Data of the application.
    Data,
    /// Data between modules of a protocol.
    Protocol,
}

/// A message of a stream on either side of the boundary: blocks of octets, which no side copies or changes.
pub struct ForeignMessage(NonNull<RawMessage>);

// SAFETY: a message has one owner at a time, and any thread may release it, by the contract of the header.
unsafe impl Send for ForeignMessage {}

/// A message that this crate has made: the structures, and their content.
struct Owned {
    first: RawMessage,
    further: Vec<RawMessage>,
    content: Content,
}

enum Content {
    Octets(Vec<u8>),
    Block { block: MessageBlock, carrier: Box<dyn Any + Send> },
}

fn raw(kind: ForeignKind, priority: u32) -> RawMessage {
    RawMessage {
        size: size_of::<RawMessage>() as u32,
        kind: u32::from(kind == ForeignKind::Protocol),
        priority,
        reserved: 0,
        data: ptr::null(),
        length: 0,
        next_block: ptr::null_mut(),
        owner: ptr::null_mut(),
        release: Some(RELEASE),
    }
}

/// The function by which messages of this copy of the crate are known. Each mention of `release` could be another address.
static RELEASE: unsafe extern "C" fn(*mut RawMessage) = release;

/// Releases a message that this copy of the crate has made.
unsafe extern "C" fn release(message: *mut RawMessage) {
    // SAFETY: `owner` of a message with this function is the `Owned` that contains it.
    drop(unsafe { Box::from_raw((*message).owner.cast::<Owned>()) });
}

impl ForeignMessage {
    /// A message whose octets the library has allocated.
    #[must_use]
    pub fn new(kind: ForeignKind, octets: Vec<u8>) -> Self {
        Self::of(kind, 0, Content::Octets(octets))
    }

    /// A message with the octets of a block and of those that are chained to it. `carrier` comes back with the block.
    #[must_use]
    pub fn of_block(kind: ForeignKind, priority: u32, block: MessageBlock, carrier: Box<dyn Any + Send>) -> Self {
        Self::of(kind, priority, Content::Block { block, carrier })
    }

    fn of(kind: ForeignKind, priority: u32, content: Content) -> Self {
        let mut owned = Box::new(Owned { first: raw(kind, priority), further: Vec::new(), content });
        let parts: Vec<(*const u8, usize)> = match &owned.content {
            Content::Octets(octets) => vec![(octets.as_ptr(), octets.len())],
            Content::Block { block, .. } => block.links().map(|link| (link.as_ptr(), link.len())).collect(),
        };
        (owned.first.data, owned.first.length) = parts[0];
        owned.further = parts[1..]
            .iter()
            .map(|&(data, length)| RawMessage { data, length, release: None, ..raw(kind, priority) })
            .collect();
        let mut next = ptr::null_mut();
        for part in owned.further.iter_mut().rev() {
            part.next_block = next;
            next = ptr::from_mut(part);
        }
        owned.first.next_block = next;
        let owned = Box::into_raw(owned);
        // SAFETY: `owned` was a box just now.
        let first = unsafe {
            (*owned).first.owner = owned.cast::<c_void>();
            NonNull::new_unchecked(&raw mut (*owned).first)
        };
        Self(first)
    }

    /// Takes over a message from the other side. `None` for a null pointer, or a message that cannot be released.
    ///
    /// # Safety
    /// `message` is null, or points to a message of the header's contract that the caller owns.
    pub(crate) unsafe fn from_raw(message: *mut RawMessage) -> Option<Self> {
        let message = NonNull::new(message)?;
        // SAFETY: as the function's contract says.
        unsafe { message.as_ref() }.release.map(|_| Self(message))
    }

    /// Gives it to the other side.
    pub(crate) fn into_raw(self) -> *mut RawMessage {
        ManuallyDrop::new(self).0.as_ptr()
    }

    fn raw(&self) -> &RawMessage {
        // SAFETY: this value owns the message.
        unsafe { self.0.as_ref() }
    }

    /// Whether it carries data or controls the protocol.
    #[must_use]
    pub fn kind(&self) -> ForeignKind {
        if self.raw().kind == 0 { ForeignKind::Data } else { ForeignKind::Protocol }
    }

    /// Its priority; higher numbers come first.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.raw().priority
    }

    /// The blocks of the message, in order, each as a slice.
    pub fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = self.0.as_ptr().cast_const();
        std::iter::from_fn(move || {
            // SAFETY: the blocks of an owned message are valid, and do not change, as long as it is.
            let block = unsafe { at.as_ref() }?;
            at = block.next_block;
            Some(if block.data.is_null() {
                &[][..]
            } else {
                // SAFETY: the same.
                unsafe { std::slice::from_raw_parts(block.data, block.length) }
            })
        })
    }

    /// Copies the octets of all blocks.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.blocks().flatten().copied().collect()
    }

    /// The block and the carrier of [`of_block`](Self::of_block), without a copy, or the octets of a message that the other
    /// side has made, copied into a block.
    #[must_use]
    pub fn into_block(self) -> (MessageBlock, Option<Box<dyn Any + Send>>) {
        let is_own = self.raw().release.is_some_and(|release| ptr::fn_addr_eq(release, RELEASE));
        if !is_own {
            return (MessageBlock::from(&self.to_vec()[..]), None);
        }
        let message = self.into_raw();
        // SAFETY: as in `release`.
        let owned = unsafe { Box::from_raw((*message).owner.cast::<Owned>()) };
        match owned.content {
            Content::Octets(octets) => (MessageBlock::from(&octets[..]), None),
            Content::Block { block, carrier } => (block, Some(carrier)),
        }
    }
}

impl Drop for ForeignMessage {
    fn drop(&mut self) {
        if let Some(release) = self.raw().release {
            // SAFETY: this value owns the message.
            unsafe { release(self.0.as_ptr()) };
        }
    }
}

impl fmt::Debug for ForeignMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignMessage")
            .field("kind", &self.kind())
            .field("octets", &self.blocks().map(<[u8]>::len).sum::<usize>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_and_its_carrier_come_back_without_a_copy() {
        let mut block = MessageBlock::from(b"one");
        block.append(b"two".into());
        block.append(b"".into());
        let address = block.as_ptr();
        let message = ForeignMessage::of_block(ForeignKind::Protocol, 7, block, Box::new("carrier"));
        assert_eq!(message.blocks().collect::<Vec<_>>(), [&b"one"[..], b"two", b""]);
        assert_eq!((message.kind(), message.priority()), (ForeignKind::Protocol, 7));
        // Over the boundary and back.
        // SAFETY: the message was given away just now.
        let message = unsafe { ForeignMessage::from_raw(message.into_raw()) }.unwrap();
        let (block, carrier) = message.into_block();
        assert_eq!(block.as_ptr(), address);
        assert_eq!(*carrier.unwrap().downcast::<&str>().unwrap(), "carrier");
    }

    #[test]
    fn octets_become_a_message_and_a_block() {
        let message = ForeignMessage::new(ForeignKind::Data, b"octets".to_vec());
        assert_eq!(message.to_vec(), b"octets");
        let (block, carrier) = message.into_block();
        assert!(&*block == b"octets" && carrier.is_none());
        drop(ForeignMessage::new(ForeignKind::Data, Vec::new()));
    }

    #[test]
    fn a_message_of_the_other_side_is_copied_and_released_by_it() {
        static RELEASED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

        unsafe extern "C" fn release_other(message: *mut RawMessage) {
            RELEASED.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            // SAFETY: each message of this test is a box.
            drop(unsafe { Box::from_raw(message) });
        }

        static OCTETS: [u8; 3] = *b"abc";
        let other = || {
            let (data, length, release) = (OCTETS.as_ptr(), OCTETS.len(), Some(release_other as _));
            let message = Box::new(RawMessage { data, length, release, ..raw(ForeignKind::Data, 0) });
            // SAFETY: it is a valid message, and this side's from now on.
            unsafe { ForeignMessage::from_raw(Box::into_raw(message)) }.unwrap()
        };
        let (block, carrier) = other().into_block();
        assert!(&*block == b"abc" && carrier.is_none());
        drop(other());
        assert_eq!(RELEASED.load(std::sync::atomic::Ordering::SeqCst), 2);
        // SAFETY: neither is a message that can be used.
        unsafe { assert!(ForeignMessage::from_raw(ptr::null_mut()).is_none()) };
        let mut unowned = raw(ForeignKind::Data, 0);
        unowned.release = None;
        // SAFETY: the same.
        unsafe { assert!(ForeignMessage::from_raw(&raw mut unowned).is_none()) };
    }
}
