//! A client that is called back: prints each trade.

use spandrel::{Endpoint, Orb, Poa, SystemException};

spandrel::include_idl!("exchange");
use exchange::{Feed, Listener, ListenerServant, Trade};

struct Printer;

impl ListenerServant for Printer {
    fn traded(&self, what: &Trade) -> Result<(), SystemException> {
        println!("{} of {} at {} cents", what.quantity, what.good, what.cents);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    // It has no port of its own: the server calls back over the connection of `subscribe`.
    let orb = Orb::builder().bidirectional(true).listen(Endpoint::nowhere()).take_args(&mut args)?.build()?;
    let reference = args.get(1).ok_or("usage: watcher REFERENCE")?;
    let printer: Listener = Poa::root(&orb)?.serve(Printer)?;
    let feed: Feed = orb.string_to_object(reference)?.narrow()?;
    feed.subscribe(Some(&printer))?;
    println!("subscribed");
    Ok(orb.run_until_signal()?)
}
