//! Doubly linked rings of timers through a slab, used by the wheels and the ordered list.

use super::clock::Time;
use super::slab::{NIL, Slab, SlabEntry};

/// A timer's time, and its neighbours in the ring.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) at: Time,
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl Links {
    /// The links of a timer that is in no ring yet.
    #[inline]
    pub(super) fn new(at: Time) -> Self {
        Self { at, prev: NIL, next: NIL }
    }
}

// The speed of the wheels with a million timers depends on this size.
const _: () = assert!(size_of::<SlabEntry<Links, u64>>() == 32);

/// A number of rings, each represented by its first timer.
pub(super) struct Lists {
    firsts: Box<[u32]>,
}

impl Lists {
    /// `count` empty lists, at most 2^16.
    pub(super) fn new(count: usize) -> Self {
        Self { firsts: vec![NIL; count].into_boxed_slice() }
    }

    #[inline]
    pub(super) fn first(&self, list: u16) -> Option<u32> {
        Some(self.firsts[usize::from(list)]).filter(|&first| first != NIL)
    }

    #[inline]
    pub(super) fn push_back<P>(&mut self, slab: &mut Slab<Links, P>, list: u16, index: u32) {
        match self.first(list) {
            Some(first) => self.insert(slab, list, index, first),
            None => {
                self.firsts[usize::from(list)] = index;
                let node = slab.node_mut(index);
                (node.links.prev, node.links.next, node.list) = (index, index, list);
            }
        }
    }

    pub(super) fn push_front<P>(&mut self, slab: &mut Slab<Links, P>, list: u16, index: u32) {
        self.push_back(slab, list, index);
        self.firsts[usize::from(list)] = index;
    }

    /// Puts a timer between `next`, which is in `list`, and the one before it in the ring.
    #[inline]
    pub(super) fn insert<P>(&mut self, slab: &mut Slab<Links, P>, list: u16, index: u32, next: u32) {
        let prev = std::mem::replace(&mut slab.node_mut(next).links.prev, index);
        slab.node_mut(prev).links.next = index;
        let node = slab.node_mut(index);
        (node.links.prev, node.links.next, node.list) = (prev, next, list);
    }

    /// Removes a timer from its list; returns the list, and whether it is empty now.
    #[inline]
    pub(super) fn remove<P>(&mut self, slab: &mut Slab<Links, P>, index: u32) -> (u16, bool) {
        let node = slab.node(index);
        let (Links { prev, next, .. }, list) = (node.links, node.list);
        let first = &mut self.firsts[usize::from(list)];
        if next == index {
            *first = NIL;
            return (list, true);
        }
        if *first == index {
            *first = next;
        }
        slab.node_mut(prev).links.next = next;
        slab.node_mut(next).links.prev = prev;
        (list, false)
    }

    /// Empties a list, whose timers stay linked in a ring that starts with the returned one.
    pub(super) fn detach(&mut self, list: u16) -> Option<u32> {
        let first = self.first(list);
        self.firsts[usize::from(list)] = NIL;
        first
    }

    pub(super) fn clear(&mut self) {
        self.firsts.fill(NIL);
    }
}
