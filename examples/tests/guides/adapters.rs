use std::sync::{Arc, Mutex};

use spandrel::{Orb, Poa, SystemExceptionKind, poa::PoaError};

use super::{Market, Shop, idl::exchange::Trade};

#[test]
fn a_servant_is_served_in_one_step() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    // ANCHOR: serve
    let root = Poa::root(&orb)?;
    let market: Market = root.serve(Shop::default())?;
    assert_eq!(market.good()?, "");
    // ANCHOR_END: serve
    assert_eq!(market.to_string(), market.as_object().to_string());

    // ANCHOR: shared
    let shop = Arc::new(Shop(Mutex::new(Trade { good: "gold".to_owned(), ..Trade::default() })));
    let market: Market = root.serve(Arc::clone(&shop))?;
    market.buy(5, 26_400)?;
    assert_eq!(shop.0.lock().unwrap().quantity, 5);
    // ANCHOR_END: shared
    root.deactivate(&market)?;
    assert!(market.non_existent()?);
    orb.shutdown()?;
    Ok(())
}

#[test]
fn references_are_made_of_ids() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    let root = Poa::root(&orb)?;
    let markets = root.child("markets").user_ids().create()?;
    // ANCHOR: reference
    let silver: Market = markets.reference("silver")?; // no servant yet
    assert!(silver.non_existent()?);
    let served: Market = markets.serve_with_id("silver", Shop::default())?;
    assert_eq!(served, silver);
    silver.buy(2, 310)?;
    // ANCHOR_END: reference
    let again = markets.serve_with_id::<Market, _>("silver".to_owned(), Shop::default());
    assert!(matches!(again, Err(PoaError::ObjectAlreadyActive { .. })), "{again:?}");
    let foreign = root.reference::<Market>("silver").unwrap_err();
    let PoaError::System(foreign) = foreign else { panic!("{foreign}") };
    assert_eq!(foreign.kind(), SystemExceptionKind::BadParam);
    orb.shutdown()?;
    Ok(())
}

#[test]
fn policies_that_contradict_each_other_are_named() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    let root = Poa::root(&orb)?;
    // ANCHOR: clash
    let error = root.child("markets").user_ids().implicit_activation().create().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create the adapter `RootPOA/markets`: the policy `ImplicitActivation` contradicts `UserId`: \
         IMPLICIT_ACTIVATION requires SYSTEM_ID"
    );
    // ANCHOR_END: clash
    orb.shutdown()?;
    Ok(())
}
