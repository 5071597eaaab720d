//! A client that uses tokio and is called back: prints the trades of the tutorial's market.

use spandrel::{CompletionStatus, Endpoint, Orb, Poa, SystemException};
use tokio::sync::mpsc;

spandrel::include_idl!("exchange");
use exchange::{Feed, Listener, ListenerServant, Trade};

/// The most trades that wait for the task.
const MAX_WAITING: usize = 1024;

/// Passes trades from the ORB's threads to a task.
struct Trades(mpsc::Sender<Trade>);

impl ListenerServant for Trades {
    fn traded(&self, what: &Trade) -> Result<(), SystemException> {
        let full = |_| SystemException::no_resources(0, CompletionStatus::No);
        self.0.try_send(what.clone()).map_err(full)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::builder().bidirectional(true).listen(Endpoint::nowhere()).take_args(&mut args)?.build()?;
    let reference = args.get(1).ok_or("usage: watcher REFERENCE")?;
    let (sender, mut trades) = mpsc::channel(MAX_WAITING);
    let listener: Listener = Poa::root(&orb)?.serve(Trades(sender))?;

    let feed = orb.string_to_object_async(reference).await?.narrow_async::<Feed>().await?;
    feed.subscribe_async(Some(&listener)).await?;
    println!("subscribed");
    if let Some(trade) = trades.recv().await {
        println!("{} of {} at {} cents", trade.quantity, trade.good, trade.cents);
    }
    Ok(orb.shutdown_async().await?)
}
