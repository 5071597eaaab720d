//! A client: buys at the market with the given reference.

use spandrel::Orb;

spandrel::include_idl!("exchange");
use exchange::{Market, market::BuyError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: client REFERENCE QUANTITY CENTS";
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::builder().take_args(&mut args)?.build()?;
    let [_, reference, quantity, cents] = &args[..] else { return Err(usage.into()) };

    let market: Market = orb.string_to_object(reference)?.narrow()?;
    let last = market.last()?;
    println!("last trade: {} of {} at {} cents", last.quantity, market.good()?, last.cents);
    match market.buy(quantity.parse()?, cents.parse()?) {
        Ok(()) => println!("bought {quantity}"),
        Err(BuyError::Rejected(no)) => println!("rejected: {}", no.reason),
        Err(BuyError::System(error)) => return Err(error.into()),
    }
    Ok(())
}
