//! Runs the code of the guides: adapters, authorization, deferred replies, naming, errors, life cycle.

mod adapters;
mod authorization;
mod deferred;
mod errors;
mod life_cycle;
mod naming;
mod troubleshooting;

use std::sync::Mutex;

use spandrel::{Orb, Poa, SystemException};

mod idl {
    spandrel::include_idl!("exchange");
}

use idl::exchange::{Market, MarketServant, MarketSkeleton, Rejected, Trade, market::BuyError};

#[derive(Default)]
struct Shop(Mutex<Trade>);

impl MarketServant for Shop {
    fn good(&self) -> Result<String, SystemException> {
        Ok(self.0.lock().unwrap().good.clone())
    }

    fn last(&self) -> Result<Trade, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn buy(&self, quantity: u32, cents: i64) -> Result<(), BuyError> {
        if quantity == 0 {
            return Err(Rejected { reason: "the quantity is zero".to_owned() }.into());
        }
        let mut last = self.0.lock().unwrap();
        (last.quantity, last.cents) = (quantity, cents);
        Ok(())
    }
}

/// A server with one market, and a client's reference to it.
struct Fixture {
    server: Orb,
    client: Orb,
    market: Market,
}

impl Fixture {
    fn new() -> Self {
        let server = Orb::builder().build().unwrap();
        let object = Poa::root(&server).unwrap().activate(MarketSkeleton::new(Shop::default())).unwrap();
        let client = Orb::builder().build().unwrap();
        let market = client.string_to_object(&object.to_string()).unwrap().narrow().unwrap();
        Self { server, client, market }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.client.shutdown();
        let _ = self.server.shutdown();
    }
}
