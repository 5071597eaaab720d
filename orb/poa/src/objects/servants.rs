//! The map from servants to their objects.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use spandrel_server::Servant;
use spandrel_sync::Arc;

use crate::ObjectId;

/// The objects of a servant.
#[derive(Debug)]
pub(super) enum ServedObjects {
    /// The object in this slot, and no other.
    Slot(u32),
    /// The object with this id, and no other.
    Id(Box<ObjectId>),
    /// This number of objects.
    Many(u32),
}

/// Servants by address: each is referenced while it is in this map.
#[derive(Debug, Default)]
pub(super) struct Servants(HashMap<usize, ServedObjects, BuildHasherDefault<Addresses>>);

/// The address of a servant. Two live servants have different addresses, since each has its own reference
/// counts.
fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>().addr()
}

impl Servants {
    pub(super) fn get(&self, servant: &Arc<dyn Servant>) -> Option<&ServedObjects> {
        self.0.get(&address(servant))
    }

    /// Records the one object of a servant.
    pub(super) fn insert(&mut self, servant: &Arc<dyn Servant>, serves: ServedObjects) {
        self.0.insert(address(servant), serves);
    }

    /// Records one more object of a servant.
    pub(super) fn add(&mut self, servant: &Arc<dyn Servant>) {
        if let ServedObjects::Many(count) = self.0.entry(address(servant)).or_insert(ServedObjects::Many(0)) {
            *count += 1;
        }
    }

    /// Removes one object of a servant.
    pub(super) fn remove(&mut self, servant: &Arc<dyn Servant>) {
        let address = address(servant);
        match self.0.get_mut(&address) {
            Some(ServedObjects::Many(count)) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&address)),
        }
    }
}

/// A hasher for addresses. Peers do not choose addresses, so no key is needed.
#[derive(Default)]
struct Addresses(u64);

impl Hasher for Addresses {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.write_usize((*octet).into()));
    }

    fn write_usize(&mut self, address: usize) {
        // Fibonacci hashing; the high bits are the best ones, and the table uses both ends.
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
