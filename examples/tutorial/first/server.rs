//! A server with one object: a market for gold.

use std::sync::Mutex;

use spandrel::{Orb, Poa, SystemException};

spandrel::include_idl!("exchange");
use exchange::{MarketServant, Rejected, Trade, market::BuyError};

// ANCHOR: servant
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

    fn buy(&self, quantity: u32, cents: i64) -> Result<(), BuyError> {
        if quantity == 0 {
            return Err(Rejected { reason: "the quantity is zero".to_owned() }.into());
        }
        let mut last = self.last.lock().unwrap();
        (last.quantity, last.cents) = (quantity, cents);
        Ok(())
    }
}
// ANCHOR_END: servant

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let orb = Orb::init(std::env::args())?;
    let gold = Trade { good: "gold".to_owned(), ..Trade::default() };
    let market: exchange::Market = Poa::root(&orb)?.serve(Market { last: Mutex::new(gold) })?;
    orb.set_object_key_alias("gold", &market)?;
    println!("{market}");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
