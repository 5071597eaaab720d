//! Values of dynamic properties that later queries use again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use spandrel::cdr::to_octets;
use spandrel::net::sync::Mutex;
use spandrel::services::cos_trading_dynamic::DynamicProp;
use spandrel::types::Any;

use crate::store::form;

/// The most values of one generation; there are two.
const GENERATION: usize = 32_768;

/// The longest value that is cached, in octets of the encoding with its property. All together have 64 MiB.
const MAX_VALUE: usize = 1_024;

/// The values of all queries, by offers and names. An offer that was modified has no value of its former property.
#[derive(Debug, Default)]
pub struct DynamicCache(Mutex<Generations>);

/// The older values are dropped together when the younger ones are full.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<(u64, String), CachedValue>,
    old: HashMap<(u64, String), CachedValue>,
}

#[derive(Debug)]
struct CachedValue {
    property: DynamicProp,
    value: Any,
    evaluated: Instant,
}

impl DynamicCache {
    /// The value of a property (the number of its offer, and its name), if it was evaluated within this time.
    pub(crate) fn get(&self, key: &(u64, String), property: &DynamicProp, max_age: Duration) -> Option<Any> {
        let generations = self.0.lock();
        let cached = generations.young.get(key).or_else(|| generations.old.get(key))?;
        let is_valid = cached.evaluated.elapsed() < max_age && cached.property == *property;
        is_valid.then(|| cached.value.clone())
    }

    /// Caches a value, unless it is too long.
    pub(crate) fn insert(&self, key: (u64, String), property: &DynamicProp, value: &Any) {
        let pair = (property.clone(), value.clone());
        if to_octets(&pair, &form()).map_or(true, |octets| octets.len() > MAX_VALUE) {
            return;
        }
        let (property, value) = pair;
        let cached = CachedValue { property, value, evaluated: Instant::now() };
        let mut generations = self.0.lock();
        let dropped = match generations.young.len() >= GENERATION {
            true => {
                let young = std::mem::take(&mut generations.young);
                std::mem::replace(&mut generations.old, young)
            }
            false => HashMap::new(),
        };
        generations.young.insert(key, cached);
        drop(generations);
        drop(dropped);
    }
}
