//! A client that calls over TLS where a reference offers it.

use spandrel::{Orb, ssliop::Ssliop};

spandrel::include_idl!("exchange");
use exchange::Market;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    let tls = Ssliop::ring();
    let orb = Orb::builder().protocol(tls).take_args(&mut args)?.build()?;
    let reference = args.get(1).ok_or("usage: client REFERENCE")?;
    let market: Market = orb.string_to_object(reference)?.narrow()?;
    market.buy(3, 26_500)?;
    println!("bought 3 of {}", market.good()?);
    Ok(())
}
