//! Dynamic properties: parallel evaluation, time limits, failures and bounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

use spandrel::services::cos_trading_dynamic::{
    DpEvalFailure, DynamicProp, DynamicPropEvalServant, DynamicPropEvalSkeleton, dynamic_prop_eval::EvalDpError,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{Endpoint, Orb, Poa};
use spandrel_test_support::TEST_TIMEOUT;

use spandrel_trading::TradingOptions;
use spandrel_trading::dynamic::{DYNAMIC_AGE, DynamicCache, DynamicOptions, DynamicValues, Evaluation};

use crate::support::{Served, names, policy, property, text};

/// An evaluator whose answer depends on the name of the property.
#[derive(Debug)]
struct Evaluator {
    calls: AtomicUsize,
    /// The calls for `together` that run at once.
    together: Barrier,
    /// Whether evaluations that hang end.
    ends: Mutex<bool>,
    ended: Condvar,
}

impl DynamicPropEvalServant for Evaluator {
    fn eval_dp(&self, name: &str, returned_type: &TypeCode, extra_info: &Any) -> Result<Any, EvalDpError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match name {
            "together" => {
                self.together.wait();
            }
            "hangs" => drop(self.ended.wait_while(self.ends.lock().unwrap(), |ends| !*ends).unwrap()),
            "fails" => {
                let raised = DpEvalFailure {
                    name: name.to_owned(),
                    returned_type: returned_type.clone(),
                    extra_info: extra_info.clone(),
                };
                return Err(EvalDpError::DpEvalFailure(raised));
            }
            "other" => return Ok(Any::new("text").unwrap()),
            _ => {}
        }
        Ok(Any::new(7_i32).unwrap())
    }
}

struct Fixture {
    orb: Orb,
    servant: Arc<Evaluator>,
    property: DynamicProp,
}

impl Fixture {
    fn new() -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let servant = Arc::new(Evaluator {
            calls: AtomicUsize::new(0),
            together: Barrier::new(3),
            ends: Mutex::new(false),
            ended: Condvar::new(),
        });
        let skeleton = DynamicPropEvalSkeleton::new(Arc::clone(&servant));
        let id = poa.activate_object(spandrel::net::sync::Arc::new(skeleton)).unwrap();
        let object = poa.id_to_reference(&id).unwrap();
        let property = DynamicProp {
            eval_if: Some(object.unchecked_narrow()),
            returned_type: TypeCode::LONG,
            extra_info: Any::new("x").unwrap(),
        };
        Self { orb, servant, property }
    }

    fn evaluation(&self, offer: u64, name: &str) -> Evaluation {
        Evaluation { offer, name: name.to_owned(), property: self.property.clone() }
    }

    fn calls(&self) -> usize {
        self.servant.calls.load(Ordering::Relaxed)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        *self.servant.ends.lock().unwrap() = true;
        self.servant.ended.notify_all();
        _ = self.orb.shutdown();
    }
}

/// No evaluation ends by its time limit, on a loaded machine neither.
fn patient() -> DynamicOptions {
    DynamicOptions { time_limit: TEST_TIMEOUT, ..DynamicOptions::default() }
}

fn long(value: Option<Any>) -> Option<i32> {
    value.map(|value| value.extract().unwrap())
}

#[test]
fn a_value_is_evaluated_once_for_each_offer() {
    let fixture = Fixture::new();
    let values = DynamicValues::new(patient(), Instant::now() + TEST_TIMEOUT);
    for _ in 0..3 {
        assert_eq!(long(values.evaluated(&fixture.evaluation(1, "queue"))), Some(7));
    }
    assert_eq!(fixture.calls(), 1);
    assert_eq!(long(values.evaluated(&fixture.evaluation(2, "queue"))), Some(7));
    values.evaluate([fixture.evaluation(3, "queue"), fixture.evaluation(3, "queue")]);
    assert_eq!((fixture.calls(), values.evaluations()), (3, 3));
}

// Each evaluation waits for the others, so that one after the other would exceed the time limit.
#[test]
fn values_of_several_offers_are_evaluated_at_the_same_time() {
    let fixture = Fixture::new();
    let values = DynamicValues::new(patient(), Instant::now() + TEST_TIMEOUT);
    values.evaluate((0..3).map(|offer| fixture.evaluation(offer, "together")));
    for offer in 0..3 {
        assert_eq!(long(values.evaluated(&fixture.evaluation(offer, "together"))), Some(7));
    }
    assert_eq!(fixture.calls(), 3);
}

#[test]
fn a_property_that_fails_or_has_another_type_does_not_exist() {
    let fixture = Fixture::new();
    let values = DynamicValues::new(patient(), Instant::now() + TEST_TIMEOUT);
    assert_eq!(values.evaluated(&fixture.evaluation(1, "fails")), None);
    assert_eq!(values.evaluated(&fixture.evaluation(1, "other")), None);
    assert_eq!(long(values.evaluated(&fixture.evaluation(1, "queue"))), Some(7), "the evaluator is called again");
    let nil = DynamicProp { eval_if: None, ..fixture.property.clone() };
    assert_eq!(values.evaluated(&Evaluation { property: nil, ..fixture.evaluation(1, "nil") }), None);
}

#[test]
fn an_evaluator_that_hangs_costs_one_time_limit() {
    let fixture = Fixture::new();
    let time_limit = Duration::from_millis(100);
    let values =
        DynamicValues::new(DynamicOptions { time_limit, ..DynamicOptions::default() }, Instant::now() + TEST_TIMEOUT);
    assert_eq!(values.evaluated(&fixture.evaluation(1, "hangs")), None);
    for offer in 2..1_000 {
        assert_eq!(values.evaluated(&fixture.evaluation(offer, "queue")), None);
    }
    assert_eq!(values.evaluations(), 1);
    assert!(!values.is_limited());
}

#[test]
fn a_query_has_a_number_of_evaluations() {
    let fixture = Fixture::new();
    let values = DynamicValues::new(DynamicOptions { limit: 2, ..patient() }, Instant::now() + TEST_TIMEOUT);
    values.evaluate((0..5).map(|offer| fixture.evaluation(offer, "queue")));
    assert_eq!((fixture.calls(), values.is_limited()), (2, true));
    assert_eq!(long(values.evaluated(&fixture.evaluation(0, "queue"))), Some(7));
    assert_eq!(long(values.evaluated(&fixture.evaluation(4, "queue"))), None);
}

#[test]
fn no_value_is_evaluated_after_the_end_of_the_query() {
    let fixture = Fixture::new();
    let values = DynamicValues::new(patient(), Instant::now());
    assert_eq!(values.evaluated(&fixture.evaluation(1, "queue")), None);
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn a_value_is_used_again_within_its_lifetime_and_for_the_same_property() {
    let fixture = Fixture::new();
    let cache = spandrel::net::sync::Arc::new(DynamicCache::default());
    let query = |lifetime| {
        let options = DynamicOptions { lifetime, ..DynamicOptions::default() };
        DynamicValues::cached(options, Instant::now() + TEST_TIMEOUT, &cache)
    };
    let evaluated = |lifetime, evaluation: &Evaluation| long(query(lifetime).evaluated(evaluation));
    let queue = fixture.evaluation(1, "queue");
    for _ in 0..3 {
        assert_eq!(evaluated(TEST_TIMEOUT, &queue), Some(7));
    }
    assert_eq!(fixture.calls(), 1);
    // Another offer, another name, another argument of the evaluator, and a query that wants the value of now.
    let changed = DynamicProp { extra_info: Any::new("y").unwrap(), ..fixture.property.clone() };
    let changed = Evaluation { property: changed, ..queue.clone() };
    for other in [fixture.evaluation(2, "queue"), fixture.evaluation(1, "other_name"), changed] {
        assert_eq!(evaluated(TEST_TIMEOUT, &other), Some(7));
    }
    assert_eq!(evaluated(Duration::ZERO, &queue), Some(7));
    assert_eq!(fixture.calls(), 5);
    // What has no value is asked for again.
    for _ in 0..2 {
        assert_eq!(evaluated(TEST_TIMEOUT, &fixture.evaluation(3, "fails")), None);
    }
    assert_eq!(fixture.calls(), 7);
    // The value becomes too old.
    assert_eq!(evaluated(TEST_TIMEOUT, &queue), Some(7));
    let calls = fixture.calls();
    spandrel_test_support::wait_until("another evaluation", || {
        assert_eq!(evaluated(Duration::from_millis(1), &queue), Some(7));
        fixture.calls() > calls
    });
}

#[test]
fn queries_share_values_as_the_trader_and_their_policies_permit() {
    let fixture = Fixture::new();
    let options = DynamicOptions { lifetime: TEST_TIMEOUT, ..DynamicOptions::default() };
    let served = Served::with(TradingOptions { dynamic: options, ..TradingOptions::default() });
    served.add_printer_type();
    let dynamic = |extra: &str| {
        let evaluated = DynamicProp { extra_info: text(extra), ..fixture.property.clone() };
        property("ppm", Any::new(evaluated).unwrap())
    };
    let id = served.export("Printer", &[property("name", text("laser")), dynamic("a")]);
    let finds = |policies: &[_]| served.query("Printer", "ppm == 7", "", policies).0.len() == 1;
    assert!(finds(&[]) && finds(&[]));
    assert_eq!(fixture.calls(), 1);
    assert!(finds(&[policy(DYNAMIC_AGE, Any::new(0_u32).unwrap())]));
    assert_eq!(fixture.calls(), 2);
    // A policy shortens the time only.
    assert!(finds(&[policy(DYNAMIC_AGE, Any::new(u32::MAX).unwrap())]));
    assert_eq!(fixture.calls(), 2);
    assert!(
        served.lookup.query("Printer", "", "", &[policy(DYNAMIC_AGE, text("0"))], &crate::support::none(), 1).is_err()
    );
    served.register.modify(&id, &names(&[]), &[dynamic("b")]).unwrap();
    assert!(finds(&[]));
    assert_eq!(fixture.calls(), 3);
    // Offers are withdrawn by values of now.
    served.register.withdraw_using_constraint("Printer", "ppm == 7").unwrap();
    assert_eq!(fixture.calls(), 4);
}
