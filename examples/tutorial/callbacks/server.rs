//! A market that reports each trade to its subscribers.

// ANCHOR: imports
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use spandrel::{CompletionStatus, Orb, Poa, SystemException, policy::ReferencePolicies};

spandrel::include_idl!("exchange");
use exchange::{FeedServant, Listener, MarketServant, Rejected, Trade, market::BuyError};
// ANCHOR_END: imports

// ANCHOR: feed
/// The subscribers, which are objects of clients.
#[derive(Clone, Default)]
struct Feed(Arc<Mutex<Vec<Listener>>>);

impl FeedServant for Feed {
    fn subscribe(&self, subscriber: Option<&Listener>) -> Result<(), SystemException> {
        let nil = || SystemException::bad_param(0, CompletionStatus::No).with_detail("the subscriber is nil");
        let subscriber = subscriber.ok_or_else(nil)?;
        // A client that takes nothing may delay a trade by this time, and not for ever.
        let patient = subscriber.with_timeout(Duration::from_secs(1));
        self.0.lock().unwrap().push(patient);
        Ok(())
    }
}

impl Feed {
    /// Calls all subscribers, and forgets those that cannot be reached.
    fn report(&self, trade: &Trade) {
        let subscribers = self.0.lock().unwrap().clone(); // no lock is held during calls
        let lost: Vec<_> = subscribers.into_iter().filter(|each| each.traded(trade).is_err()).collect();
        self.0.lock().unwrap().retain(|each| !lost.contains(each));
    }
}
// ANCHOR_END: feed

struct Market {
    last: Mutex<Trade>,
    feed: Feed,
}

impl MarketServant for Market {
    fn good(&self) -> Result<String, SystemException> {
        Ok(self.last.lock().unwrap().good.clone())
    }

    fn last(&self) -> Result<Trade, SystemException> {
        Ok(self.last.lock().unwrap().clone())
    }

    // ANCHOR: buy
    fn buy(&self, quantity: u32, cents: i64) -> Result<(), BuyError> {
        if quantity == 0 {
            return Err(Rejected { reason: "the quantity is zero".to_owned() }.into());
        }
        let trade = Trade { good: "gold".to_owned(), quantity, cents };
        self.last.lock().unwrap().clone_from(&trade);
        self.feed.report(&trade);
        Ok(())
    }
    // ANCHOR_END: buy
}

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::builder().bidirectional(true).take_args(&mut args)?.build()?;
    let root = Poa::root(&orb)?;
    let feed = Feed::default();
    let last = Mutex::new(Trade { good: "gold".to_owned(), ..Trade::default() });
    let served: exchange::Feed = root.serve(feed.clone())?;
    orb.set_object_key_alias("feed", &served)?;
    let market: exchange::Market = root.serve(Market { last, feed })?;
    orb.set_object_key_alias("gold", &market)?;
    println!("ready");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
