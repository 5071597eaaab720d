//! A server that ends in order upon Ctrl-C and SIGTERM.

use spandrel::{Orb, Poa};

spandrel::include_idl!("exchange");
use exchange::{Feed, FeedServant, Listener};

struct Silent;

impl FeedServant for Silent {
    fn subscribe(&self, _: Option<&Listener>) -> Result<(), spandrel::SystemException> {
        Ok(())
    }
}

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let orb = Orb::init(std::env::args())?;
    let feed: Feed = Poa::root(&orb)?.serve(Silent)?;
    orb.set_object_key_alias("feed", &feed)?;
    println!("ready");
    orb.run_until_signal()?; // returns when the ORB has been shut down
    println!("stopped");
    Ok(())
}
// ANCHOR_END: main
