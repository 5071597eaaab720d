use std::{
    fs::File,
    io::{self, Write as _},
    iter,
    sync::mpsc,
    thread,
};

use spandrel::{
    Orb, Poa, SystemException, SystemExceptionKind,
    server::{DeferredOperations, DeferredReply, DeferringSkeleton, ServerCall, TakenRequest},
};

use super::{BuyError, Market, MarketSkeleton, Rejected, Shop};

// ANCHOR: operations
/// A purchase that is to be written.
struct Purchase {
    quantity: u32,
    cents: i64,
    reply: DeferredReply<(), BuyError>,
}

/// The operations of a market whose replies are deferred.
struct Purchases(mpsc::Sender<Purchase>);

impl DeferredOperations for Purchases {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        if call.operation() != "buy" || !call.is_response_expected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let (quantity, cents) = call.decode_arguments()?;
        let (reply, replied) = call.defer_reply()?;
        _ = self.0.send(Purchase { quantity, cents, reply }); // without a receiver it is dropped
        Ok(TakenRequest::Taken(replied))
    }
}
// ANCHOR_END: operations

// ANCHOR: writer
/// Writes the purchases that wait, all by one synchronization, and then sends their replies.
fn write(purchases: &mpsc::Receiver<Purchase>, file: &mut File) -> io::Result<()> {
    while let Ok(first) = purchases.recv() {
        let batch: Vec<Purchase> = iter::once(first).chain(purchases.try_iter()).collect();
        for purchase in batch.iter().filter(|purchase| purchase.quantity > 0) {
            writeln!(file, "{} for {}", purchase.quantity, purchase.cents)?;
        }
        file.sync_data()?;
        for purchase in batch {
            purchase.reply.send(match purchase.quantity {
                0 => Err(Rejected { reason: "the quantity is zero".to_owned() }.into()),
                _ => Ok(()),
            });
        }
    }
    Ok(())
}
// ANCHOR_END: writer

#[test]
fn replies_are_deferred_until_another_thread_has_written_their_requests() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, purchases) = mpsc::channel();
    let server = Orb::builder().build()?;
    let poa = Poa::root(&server)?;
    // ANCHOR: activate
    let servant = DeferringSkeleton::new(MarketSkeleton::new(Shop::default()), Purchases(sender));
    let object = poa.activate(servant)?;
    // ANCHOR_END: activate
    let client = Orb::builder().build()?;
    let market: Market = client.string_to_object(&object.to_string())?.narrow()?;
    thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let calls = [3, 0, 5, 7].map(|quantity| {
            let market = &market;
            scope.spawn(move || market.buy(quantity, 26_400))
        });
        let waiting: Vec<Purchase> = purchases.iter().take(calls.len()).collect();
        assert!(calls.iter().all(|call| !call.is_finished()));
        assert_eq!(market.last()?.quantity, 0, "the skeleton runs the other operations");
        let (sender, written) = mpsc::channel();
        waiting.into_iter().for_each(|purchase| sender.send(purchase).unwrap());
        drop(sender);
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("purchases");
        write(&written, &mut File::create(&path)?)?;
        let text = std::fs::read_to_string(&path)?;
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["3 for 26400", "5 for 26400", "7 for 26400"]);
        let [three, zero, five, seven] = calls.map(|call| call.join().unwrap());
        assert!(three.is_ok() && five.is_ok() && seven.is_ok());
        assert!(matches!(zero, Err(BuyError::Rejected(no)) if no.reason == "the quantity is zero"));
        Ok(())
    })?;
    // No thread writes any more.
    drop(purchases);
    let Err(BuyError::System(error)) = market.buy(1, 1) else { panic!("a purchase without a writer") };
    assert_eq!(error.kind(), SystemExceptionKind::NoResponse);
    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
