//! Which servants stand behind which objects, looked at from the servants' side.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use spandrel_orb::Servant;
use spandrel_sync::Arc;

use crate::ObjectId;

/// What a servant stands behind.
#[derive(Debug)]
pub(super) enum Serves {
    /// The object in this slot, and no other.
    Slot(u32),
    /// The object with this id, and no other.
    Id(Box<ObjectId>),
    /// So many objects.
    Many(u32),
}

/// Servants by where they lie: there is a reference to each as long as it is known here.
#[derive(Debug, Default)]
pub(super) struct Servants(HashMap<usize, Serves, BuildHasherDefault<Addresses>>);

/// Where a servant lies. Two that live have different addresses, since each lies behind its own counts.
fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>().addr()
}

impl Servants {
    pub(super) fn get(&self, servant: &Arc<dyn Servant>) -> Option<&Serves> {
        self.0.get(&address(servant))
    }

    /// It stands behind one object, and may not stand behind more.
    pub(super) fn insert(&mut self, servant: &Arc<dyn Servant>, serves: Serves) {
        self.0.insert(address(servant), serves);
    }

    /// It stands behind one more object.
    pub(super) fn add(&mut self, servant: &Arc<dyn Servant>) {
        if let Serves::Many(count) = self.0.entry(address(servant)).or_insert(Serves::Many(0)) {
            *count += 1;
        }
    }

    /// It stands behind one object less.
    pub(super) fn remove(&mut self, servant: &Arc<dyn Servant>) {
        let address = address(servant);
        match self.0.get_mut(&address) {
            Some(Serves::Many(count)) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&address)),
        }
    }
}

/// Spreads addresses. Nobody outside chooses them, so that no key is needed.
#[derive(Default)]
struct Addresses(u64);

impl Hasher for Addresses {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.write_usize((*octet).into()));
    }

    fn write_usize(&mut self, address: usize) {
        // Fibonacci hashing; the high bits are the good ones, and the table takes both ends.
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
