//! The account to which long messages are charged.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use spandrel_sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// An account of memory, for example of one peer. A [`ReceiveBuffer`](crate::ReceiveBuffer) charges each
/// block that is larger than its normal ones. The charge lasts as long as the block: while a message arrives,
/// and while a part of it is held.
pub trait MemoryAccount: fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Charges `octets`. False if a limit would be exceeded; nothing is charged then.
    #[must_use]
    fn try_charge(&self, octets: usize) -> bool;

    /// Charges `octets`, beyond a limit if need be.
    fn charge(&self, octets: usize);

    /// Gives back `octets` that were charged.
    fn release(&self, octets: usize);
}

/// An account with several holders.
pub type SharedAccount = Arc<dyn MemoryAccount>;

/// The charge for one block.
#[derive(Debug)]
pub(crate) struct BlockCharge {
    account: SharedAccount,
    octets: AtomicUsize,
}

impl BlockCharge {
    /// Charges `octets`; `None` if a limit would be exceeded.
    pub(crate) fn within_limit(account: &SharedAccount, octets: usize) -> Option<Self> {
        account.try_charge(octets).then(|| Self::of(account, octets))
    }

    /// Charges `octets`, beyond a limit if need be.
    pub(crate) fn beyond_limit(account: &SharedAccount, octets: usize) -> Self {
        account.charge(octets);
        Self::of(account, octets)
    }

    fn of(account: &SharedAccount, octets: usize) -> Self {
        Self { account: Arc::clone(account), octets: AtomicUsize::new(octets) }
    }

    /// Whether it has not ended.
    pub(crate) fn is_charged(&self) -> bool {
        self.octets.load(Ordering::Relaxed) != 0
    }

    /// Ends the charge, and returns its octets.
    pub(crate) fn end(&self) -> usize {
        let octets = self.octets.swap(0, Ordering::Relaxed);
        self.account.release(octets);
        octets
    }
}

impl Drop for BlockCharge {
    fn drop(&mut self) {
        if self.is_charged() {
            self.end();
        }
    }
}
