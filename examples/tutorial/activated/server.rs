//! A server whose references and state outlive the process, and which an activator starts.

use std::{fs, path::PathBuf, sync::Mutex};

use spandrel::{
    CompletionStatus, Orb, Poa, SystemException,
    services::activation::{self, WithActivation},
};

spandrel::include_idl!("exchange");
use exchange::{MarketServant, Rejected, Trade, market::BuyError};

// ANCHOR: state
struct Market {
    file: PathBuf,
    last: Mutex<Trade>,
}

impl Market {
    /// Reads the last trade from a file; a new market has none.
    fn open(good: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let file = PathBuf::from(format!("{good}.last"));
        let mut last = Trade { good: good.to_owned(), ..Trade::default() };
        if let Ok(text) = fs::read_to_string(&file) {
            let (quantity, cents) = text.trim().split_once(' ').ok_or("malformed file")?;
            (last.quantity, last.cents) = (quantity.parse()?, cents.parse()?);
        }
        Ok(Self { file, last: Mutex::new(last) })
    }
}
// ANCHOR_END: state

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
        let mut last = self.last.lock().unwrap();
        fs::write(&self.file, format!("{quantity} {cents}\n"))
            .map_err(|error| SystemException::persist_store(0, CompletionStatus::No).with_detail(error.to_string()))?;
        (last.quantity, last.cents) = (quantity, cents);
        Ok(())
    }
    // ANCHOR_END: buy
}

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let orb = Orb::builder().activation()?.take_args(&mut args)?.build()?;
    let markets = Poa::root(&orb)?.child("markets").persistent().user_ids().holding().create()?;
    for good in ["gold", "silver"] {
        let reference: exchange::Market = markets.serve_with_id(good, Market::open(good)?)?;
        orb.set_object_key_alias(good, &reference)?;
        fs::write(format!("{good}.ior"), reference.to_string())?;
    }
    markets.the_poa_manager().activate()?; // until now requests wait
    activation::impl_is_ready(&orb)?;
    println!("ready");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
