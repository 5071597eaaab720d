use std::{error::Error, thread, time::Duration};

use spandrel::{
    CompletionStatus, Orb, Poa, SystemException,
    SystemExceptionKind::{self, BadParam, Internal},
    poa::LifespanPolicy,
    policy::{Policy, RebindPolicy, ReferencePolicies, SyncScopePolicy},
    types::Any,
};

use super::{BuyError, Fixture, Market, MarketServant, Trade};

// ANCHOR: match
fn buy(market: &Market, quantity: u32) -> String {
    match market.buy(quantity, 26_400) {
        Ok(()) => "bought".to_owned(),
        Err(BuyError::Rejected(no)) => format!("rejected: {}", no.reason),
        Err(BuyError::System(error)) => match (error.kind(), error.completed()) {
            (SystemExceptionKind::ObjectNotExist, _) => "the market is gone for good".to_owned(),
            (_, CompletionStatus::No) => format!("not bought: {error}"),
            (_, CompletionStatus::Yes) => format!("bought, and the answer is lost: {error}"),
            (_, CompletionStatus::Maybe) => format!("perhaps bought: {error}"),
        },
    }
}
// ANCHOR_END: match

// ANCHOR: retry
/// Makes a call again, after each of these pauses, as long as the server has not executed it.
fn with_retries<T>(
    pauses: impl IntoIterator<Item = Duration>,
    mut call: impl FnMut() -> Result<T, SystemException>,
) -> Result<T, SystemException> {
    let is_temporary = |error: &SystemException| {
        error.kind() == SystemExceptionKind::Transient && error.completed() == CompletionStatus::No
    };
    for pause in pauses {
        match call() {
            Err(error) if is_temporary(&error) => thread::sleep(pause),
            other => return other,
        }
    }
    call()
}
// ANCHOR_END: retry

// ANCHOR: causes
/// The exception and what has led to it, a line for each.
fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("\n  because: {error}");
        cause = error.source();
    }
    text
}
// ANCHOR_END: causes

#[test]
fn outcomes_are_told_apart() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new();
    assert_eq!(buy(&fixture.market, 3), "bought");
    assert_eq!(buy(&fixture.market, 0), "rejected: the quantity is zero");
    fixture.server.shutdown()?;
    let outcome = buy(&fixture.market, 3);
    assert!(outcome.starts_with("not bought: CORBA::TRANSIENT"), "{outcome}");
    Ok(())
}

#[test]
fn a_call_that_was_not_executed_is_made_again() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new();
    let pauses = [Duration::ZERO; 3];
    assert_eq!(with_retries(pauses, || fixture.market.good())?, "");
    fixture.server.shutdown()?;
    let mut calls = 0;
    let outcome = with_retries(pauses, || {
        calls += 1;
        fixture.market.good()
    });
    assert_eq!(calls, 4);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert!(explain(&error).contains("\n  because: "), "{}", explain(&error));
    Ok(())
}

#[test]
fn a_limit_of_a_reference_ends_its_calls() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new();
    // ANCHOR: limit
    let hurried = fixture.market.with_timeout(Duration::from_secs(2));
    // ANCHOR_END: limit
    assert_eq!((hurried.timeout(), fixture.market.timeout()), (Some(Duration::from_secs(2)), None));
    // ANCHOR: policies
    let certain = hurried.with_sync_scope(SyncScopePolicy::WithTarget).with_rebind(RebindPolicy::NoRebind);
    // ANCHOR_END: policies
    assert_eq!(certain.timeout(), Some(Duration::from_secs(2)));
    let scope = certain.client_policy(Policy::from(SyncScopePolicy::None).policy_type()).expect("a policy");
    assert_eq!(scope.value(), Some(&SyncScopePolicy::WithTarget));
    assert!(certain.with_policy(LifespanPolicy::Persistent).is_err(), "a policy of adapters");
    hurried.buy(1, 26_400)?;
    let orb = Orb::init(["program", "-ORBRequestTimeout", "2000"].map(str::to_owned))?;
    orb.string_to_object(&fixture.market.as_object().to_string())?.narrow::<Market>()?.buy(1, 26_400)?;
    orb.shutdown()?;
    Ok(())
}

struct Careful;

impl MarketServant for Careful {
    fn good(&self) -> Result<String, SystemException> {
        Err(SystemException::raised(Internal, "the catalogue is lost"))
    }

    fn last(&self) -> Result<Trade, SystemException> {
        // ANCHOR: conversions
        let quantity: u32 = Any::new(5_u32)?.extract()?; // errors of values: MARSHAL, BAD_PARAM
        // ANCHOR_END: conversions
        Ok(Trade { quantity, ..Trade::default() })
    }

    // ANCHOR: raised
    fn buy(&self, _: u32, cents: i64) -> Result<(), BuyError> {
        if cents < 0 {
            return Err(SystemException::raised(BadParam, "the price is negative").not_executed().public().into());
        }
        // ANCHOR_END: raised
        let text = Any::new(cents)?;
        let _: String = text.extract()?;
        Ok(())
    }
}

#[test]
fn a_servant_raises_what_its_clients_can_read() -> Result<(), Box<dyn Error>> {
    let server = Orb::builder().build()?;
    let served: Market = Poa::root(&server)?.serve(Careful)?;
    let client = Orb::builder().build()?;
    let market: Market = client.string_to_object(&served.to_string())?.narrow()?;
    let system = |outcome: Result<(), BuyError>| match outcome {
        Err(BuyError::System(exception)) => exception,
        other => panic!("{other:?}"),
    };
    let negative = system(market.buy(1, -1));
    assert_eq!((negative.kind(), negative.completed()), (BadParam, CompletionStatus::No));
    assert!(negative.to_string().contains("the price is negative"), "{negative}");
    let other_type = system(market.buy(1, 1));
    assert_eq!((other_type.kind(), other_type.completed()), (BadParam, CompletionStatus::No));
    assert!(other_type.to_string().contains("the reason is in this server's log"), "{other_type}");
    let lost = market.good().unwrap_err();
    assert_eq!((lost.kind(), lost.completed()), (Internal, CompletionStatus::Maybe));
    assert!(!lost.to_string().contains("catalogue"), "{lost}");
    assert_eq!(market.last()?.quantity, 5);
    let refused = Poa::root(&server)?.child("refused").user_ids().implicit_activation().create().unwrap_err();
    assert!(
        matches!(BuyError::from(refused), BuyError::System(error) if error.kind() == SystemExceptionKind::ObjAdapter)
    );
    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
