//! Dynamic properties: values that an object of the exporter computes at the time of a query (Trading Object Service 1.0, 2.7).
//!
//! A query evaluates each dynamic property of an offer at most once, and later queries use the value again if the options and
//! their policies permit it ([`DynamicOptions::lifetime`]). The properties of several offers are evaluated at the same
//! time. Each evaluation has a time limit, and each query a number of evaluations. An evaluator that does not answer in time is
//! not called again by the query, so that one that hangs costs one time limit. A property without a value in time, with
//! DPEvalFailure or with a value of another type does not exist for the query.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex};
use spandrel::services::cos_trading_dynamic::{DynamicProp, DynamicPropEval, dynamic_prop_eval::EvalDpError};
use spandrel::types::{Any, Interface as _, Ior};

pub use crate::dynamic_cache::DynamicCache;
use crate::offer::PropertyValues;
use crate::wait;

/// The name in `limits_applied` for [`DynamicOptions::limit`], which bounds the evaluations of a query.
pub const DYNAMIC_EVALUATIONS: &str = "spandrel_dynamic_evaluations";

/// The policy of a query for the greatest age of the values of dynamic properties, in milliseconds (`unsigned long`).
pub const DYNAMIC_AGE: &str = "spandrel_dynamic_age";

/// The bounds on calls of exporters' evaluators for dynamic properties.
#[derive(Clone, Copy, Debug)]
pub struct DynamicOptions {
    /// The time limit of the call on an evaluator (default 1 second).
    pub time_limit: Duration,
    /// The most evaluators that a query calls at the same time (default 64).
    pub parallel: usize,
    /// The evaluations of a query (default 1,000). Dynamic properties beyond it do not exist.
    pub limit: usize,
    /// The time for which later queries use a value again (default none: each query evaluates its properties). The policy
    /// [`DYNAMIC_AGE`] of a query shortens it.
    pub lifetime: Duration,
}

impl Default for DynamicOptions {
    fn default() -> Self {
        Self { time_limit: Duration::from_secs(1), parallel: 64, limit: 1_000, lifetime: Duration::ZERO }
    }
}

/// The dynamic properties that expressions need, for their evaluation at the same time. None has a value.
#[derive(Debug, Default)]
pub(crate) struct NeededValues(Mutex<Vec<Evaluation>>);

impl NeededValues {
    pub(crate) fn take(self) -> Vec<Evaluation> {
        self.0.into_inner()
    }
}

impl PropertyValues for NeededValues {
    fn value(&self, offer: u64, name: &str, property: &DynamicProp, _deadline: Instant) -> Option<Any> {
        self.0.lock().push(Evaluation { offer, name: name.to_owned(), property: property.clone() });
        None
    }
}

impl PropertyValues for DynamicValues {
    fn value(&self, offer: u64, name: &str, property: &DynamicProp, _deadline: Instant) -> Option<Any> {
        self.evaluated(&Evaluation { offer, name: name.to_owned(), property: property.clone() })
    }
}

/// A dynamic property of one offer, whose value an evaluator of the exporter returns.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The number of the offer in the query.
    pub offer: u64,
    /// The property's name in the offer.
    pub name: String,
    /// The evaluator with its arguments, and the type of the value.
    pub property: DynamicProp,
}

/// The values of dynamic properties that one query has evaluated, or uses again from earlier queries.
#[derive(Debug)]
pub struct DynamicValues {
    options: DynamicOptions,
    /// The end of the query's time.
    deadline: Instant,
    /// The values of other queries.
    cache: Option<Arc<DynamicCache>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By offers and names. `None` for properties without a value.
    values: HashMap<(u64, String), Option<Any>>,
    /// The evaluators that did not answer in time.
    unresponsive: HashSet<Ior>,
    evaluations: usize,
    is_limited: bool,
}

impl DynamicValues {
    /// A cache without values, for a query that ends at `deadline`.
    #[must_use]
    pub fn new(options: DynamicOptions, deadline: Instant) -> Self {
        Self { options, deadline, cache: None, state: Mutex::default() }
    }

    /// As [`new`](Self::new), with the values of other queries that are no older than the lifetime of the options.
    #[must_use]
    pub fn cached(options: DynamicOptions, deadline: Instant, cache: &Arc<DynamicCache>) -> Self {
        let cache = (!options.lifetime.is_zero()).then(|| Arc::clone(cache));
        Self { cache, ..Self::new(options, deadline) }
    }

    /// Evaluates properties that are not evaluated yet, at the same time as far as the options permit.
    pub fn evaluate(&self, wanted: impl IntoIterator<Item = Evaluation>) {
        let mut wanted: Vec<Evaluation> = wanted.into_iter().collect();
        {
            let mut state = self.state.lock();
            let mut requested = HashSet::new();
            wanted.retain(|one| {
                let key = (one.offer, one.name.clone());
                if state.values.contains_key(&key) {
                    return false;
                }
                if let Some(value) =
                    self.cache.as_ref().and_then(|cache| cache.get(&key, &one.property, self.options.lifetime))
                {
                    state.values.insert(key, Some(value));
                    return false;
                }
                requested.insert(key)
            });
        }
        for batch in wanted.chunks(self.options.parallel.max(1)) {
            self.evaluate_batch(batch);
        }
    }

    /// The value of a property, which is evaluated if it was not yet.
    pub fn evaluated(&self, evaluation: &Evaluation) -> Option<Any> {
        self.evaluate([evaluation.clone()]);
        let key = (evaluation.offer, evaluation.name.clone());
        self.state.lock().values.get(&key).cloned().flatten()
    }

    /// Whether properties were not evaluated because of the limit of the query.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.state.lock().is_limited
    }

    /// The evaluations that were requested from evaluators.
    #[must_use]
    pub fn evaluations(&self) -> usize {
        self.state.lock().evaluations
    }

    fn evaluate_batch(&self, batch: &[Evaluation]) {
        let mut pending = Vec::new();
        for one in batch {
            let Some(evaluator) = self.evaluator(one) else {
                self.state.lock().values.insert((one.offer, one.name.clone()), None);
                continue;
            };
            let DynamicProp { returned_type, extra_info, .. } = &one.property;
            let reply = evaluator.eval_dp_async(&one.name, returned_type, extra_info);
            let reply: wait::Pending<'_, _> = Box::pin(async move { (one, evaluator, reply.await) });
            pending.push(reply);
        }
        for (one, evaluator, reply) in wait::all(pending) {
            let mut state = self.state.lock();
            let value = match reply {
                Ok(value) if value.type_code().equivalent(&one.property.returned_type) => {
                    if let Some(cache) = &self.cache {
                        cache.insert((one.offer, one.name.clone()), &one.property, &value);
                    }
                    Some(value)
                }
                Ok(value) => {
                    tracing::debug!(name = one.name, type_code = %value.type_code(), "a dynamic property has another type");
                    None
                }
                Err(error) => {
                    tracing::debug!(name = one.name, %error, "a dynamic property has no value");
                    if let EvalDpError::System(_) = error {
                        state.unresponsive.insert(evaluator.as_object().ior().clone());
                    }
                    None
                }
            };
            state.values.insert((one.offer, one.name.clone()), value);
        }
    }

    /// The evaluator with the time limit, unless the property cannot be evaluated any more.
    fn evaluator(&self, one: &Evaluation) -> Option<DynamicPropEval> {
        let evaluator = one.property.eval_if.as_ref()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let mut state = self.state.lock();
        if state.unresponsive.contains(evaluator.as_object().ior()) {
            return None;
        }
        if state.evaluations >= self.options.limit {
            state.is_limited = true;
            return None;
        }
        state.evaluations += 1;
        Some(evaluator.as_object().with_timeout(Some(self.options.time_limit.min(left))).unchecked_narrow())
    }
}
