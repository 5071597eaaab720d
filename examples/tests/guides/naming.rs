use spandrel::{Orb, Poa, SystemExceptionKind};

use super::{Fixture, Market, MarketSkeleton, Shop};

#[test]
fn a_plain_key_names_an_object() -> Result<(), Box<dyn std::error::Error>> {
    let fixture = Fixture::new();
    let (server, market) = (&fixture.server, fixture.market.as_object());
    let (host, port) = server.listen()?[0].clone();
    // ANCHOR: alias
    server.set_object_key_alias("gold", market)?;
    // ANCHOR_END: alias

    let client = Orb::builder().build()?;
    // ANCHOR: corbaloc
    let url = format!("corbaloc::{host}:{port}/gold");
    let gold: Market = client.string_to_object(&url)?.narrow()?;
    // ANCHOR_END: corbaloc
    gold.buy(1, 26_400)?;

    // ANCHOR: none
    let copper = client.string_to_object(&format!("corbaloc::{host}:{port}/copper"))?;
    assert!(copper.non_existent()?);
    // ANCHOR_END: none
    let error = copper.narrow::<Market>().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist);

    // ANCHOR: remove
    server.remove_object_key_alias("gold");
    // ANCHOR_END: remove
    assert!(client.string_to_object(&url)?.non_existent()?);
    client.shutdown()?;
    Ok(())
}

#[test]
fn an_adapter_serves_all_other_names() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().build()?;
    // ANCHOR: all
    let servant = MarketSkeleton::new(Shop::default()); // `Current` has the id
    let markets = Poa::root(&orb)?.child("markets").persistent().user_ids().default_servant(servant).create()?;
    markets.serve_plain_keys()?;
    // ANCHOR_END: all
    let (host, port) = orb.listen()?[0].clone();
    let client = Orb::builder().build()?;
    for name in ["gold", "copper"] {
        let market: Market = client.string_to_object(&format!("corbaloc::{host}:{port}/{name}"))?.narrow()?;
        market.buy(1, 26_400)?;
    }
    client.shutdown()?;
    orb.shutdown()?;
    Ok(())
}

#[test]
fn an_initial_reference_is_configured_or_registered() -> Result<(), Box<dyn std::error::Error>> {
    let fixture = Fixture::new();
    let (server, market) = (&fixture.server, fixture.market.as_object());
    let (host, port) = server.listen()?[0].clone();
    server.set_object_key_alias("gold", market)?;

    let mut args =
        ["program", "-ORBInitRef", &format!("Gold=corbaloc::{host}:{port}/gold"), "other"].map(str::to_owned).to_vec();
    // ANCHOR: resolve
    let orb = Orb::builder().take_args(&mut args)?.build()?;
    let gold: Market = orb.resolve_initial_references("Gold")?.narrow()?;
    // ANCHOR_END: resolve
    gold.buy(1, 26_400)?;
    assert_eq!(args, ["program", "other"]);

    // ANCHOR: register
    orb.register_initial_reference("Silver", market)?;
    assert_eq!(orb.list_initial_services(), ["Gold", "Silver"]);
    let silver: Market = orb.string_to_object("corbaloc:rir:/Silver")?.narrow()?;
    // ANCHOR_END: register
    silver.buy(2, 310)?;

    let error = orb.resolve_initial_references("Copper").unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::BadParam);
    assert!(error.to_string().contains("no initial reference `Copper` is configured"), "{error}");
    let error = orb.resolve_initial_references("RootPOA").unwrap_err();
    assert!(error.to_string().contains("see `Poa::root`"), "{error}");
    orb.shutdown()?;
    Ok(())
}

#[test]
fn a_default_serves_all_other_names() -> Result<(), Box<dyn std::error::Error>> {
    let fixture = Fixture::new();
    let (host, port) = fixture.server.listen()?[0].clone();
    fixture.server.set_object_key_alias("gold", fixture.market.as_object())?;
    let url = format!("corbaloc::{host}:{port}");
    // ANCHOR: default
    let orb = Orb::builder().default_init_ref(url).build()?;
    let gold: Market = orb.resolve_initial_references("gold")?.narrow()?; // corbaloc::HOST:PORT/gold
    // ANCHOR_END: default
    gold.buy(1, 26_400)?;
    orb.shutdown()?;
    Ok(())
}
