//! A market that only clients with a certificate reach; it prints the name of each buyer.

// ANCHOR: imports
use std::sync::Mutex;

use spandrel::{
    CompletionStatus, Orb, Poa, SystemException,
    ssliop::{PeerIdentity, Ssliop},
};

spandrel::include_idl!("exchange");
use exchange::{MarketServant, Trade, market::BuyError};
// ANCHOR_END: imports

struct Market {
    last: Mutex<Trade>,
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
        let buyer = PeerIdentity::current().and_then(|peer| peer.common_name());
        let buyer = buyer.ok_or_else(|| SystemException::no_permission(0, CompletionStatus::No))?;
        println!("{buyer} buys {quantity}");
        let mut last = self.last.lock().unwrap();
        (last.quantity, last.cents) = (quantity, cents);
        Ok(())
    }
    // ANCHOR_END: buy
}

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let mut args: Vec<String> = std::env::args().collect();
    let tls = Ssliop::ring();
    let orb = Orb::builder().protocol(tls).take_args(&mut args)?.build()?;
    let gold = Trade { good: "gold".to_owned(), ..Trade::default() };
    let market: exchange::Market = Poa::root(&orb)?.serve(Market { last: Mutex::new(gold) })?;
    orb.set_object_key_alias("gold", &market)?;
    std::fs::write("gold.ior", market.to_string())?;
    println!("ready");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
