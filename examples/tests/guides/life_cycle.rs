use std::{sync::Arc, thread};

use spandrel::{
    Orb, Poa, SystemExceptionKind,
    poa::{EtherealizeObjects, PoaError, State, WaitForCompletion},
};

use super::{Fixture, Market, MarketSkeleton, Shop};

#[test]
fn an_object_lives_until_it_is_deactivated() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    // ANCHOR: object
    let root = Poa::root(&orb)?;
    let market: Market = root.serve(Shop::default())?;
    root.deactivate(&market)?; // requests that run are finished; then the servant is dropped
    // ANCHOR_END: object
    assert!(market.non_existent()?);
    orb.shutdown()?;
    Ok(())
}

#[test]
fn a_manager_opens_and_closes_adapters() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    // ANCHOR: manager
    let poa = Poa::root(&orb)?.child("markets").holding().create()?;
    let market: Market = poa.serve(Shop::default())?;
    let manager = poa.the_poa_manager();
    assert_eq!(manager.state(), State::Holding); // requests wait
    manager.activate()?; // they are served
    manager.discard_requests(WaitForCompletion::Yes)?; // they end in TRANSIENT
    // ANCHOR_END: manager
    let client = Orb::builder().build()?;
    let error = client.string_to_object(&market.to_string())?.non_existent().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Transient);
    // ANCHOR: destroy
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes)?; // waits for running requests
    // ANCHOR_END: destroy
    assert!(matches!(poa.create_reference("IDL:x:1.0"), Err(PoaError::System(_)) | Err(_)));
    client.shutdown()?;
    orb.shutdown()?;
    Ok(())
}

#[test]
fn an_orb_is_shut_down_by_another_thread() -> Result<(), Box<dyn std::error::Error>> {
    let fixture = Fixture::new();
    let orb = fixture.server.clone();
    // ANCHOR: shutdown
    let stopper = orb.clone();
    let thread = thread::spawn(move || stopper.begin_shutdown()); // begins it, and does not wait
    orb.run(); // returns when it is done
    // ANCHOR_END: shutdown
    thread.join().unwrap()?;
    assert!(fixture.market.good().is_err());
    Ok(())
}

#[test]
fn a_servant_is_dropped_with_its_orb() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    let shop = Arc::new(MarketSkeleton::new(Shop::default()));
    Poa::root(&orb)?.activate_shared(shop.clone())?;
    assert_eq!(Arc::strong_count(&shop), 2);
    orb.shutdown()?;
    assert_eq!(Arc::strong_count(&shop), 1);
    Ok(())
}
