//! Withdrawal of offers whose object does not exist any more.

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel_daemon::{PurgeOptions, PurgeStop, Purger};

use crate::state::Edit;
use crate::trader::Trader;

/// The offers that are read at once.
const PAGE: usize = 100;

/// Withdraws offers from now on.
pub(crate) fn start(trader: Arc<Trader>, options: PurgeOptions) -> Purger {
    Purger::start("offers", options.interval, move |stop| purge(&trader, &options, stop))
}

/// Visits all offers. Returns the number of withdrawn ones.
fn purge(trader: &Trader, options: &PurgeOptions, stop: &PurgeStop) -> Result<usize, SystemException> {
    let (mut withdrawn, mut last) = (0, None);
    loop {
        let page: Vec<_> = trader.shared.read(|state| state.offers.after(last).take(PAGE).cloned().collect());
        let Some(offer) = page.last() else { return Ok(withdrawn) };
        last = Some(offer.number);
        for offer in page {
            if stop.is_requested() {
                return Ok(withdrawn);
            }
            if !options.is_gone(&trader.orb.reference(offer.reference.clone())) {
                continue;
            }
            trader.shared.change::<SystemException>(|state| {
                // An offer that was modified meanwhile still has the same object.
                let current = state.offers.get(offer.number).cloned();
                let edit = |current| Edit::Offer { number: offer.number, expected: Some(current), new: None };
                Ok(current.map(edit).into_iter().collect())
            })?;
            withdrawn += 1;
        }
    }
}
