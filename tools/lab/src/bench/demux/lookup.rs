//! The loops whose times are measured.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel::generated::Operations;
use spandrel::net::sync::Arc;
use spandrel::poa::measured_lookup::{FoundServant, Lookup};
use spandrel::{Orb, Poa, policy::Policy};
use spandrel::{
    poa::{IdAssignmentPolicy, IdUniquenessPolicy, ObjectDemux, ObjectId, PoaError},
    server::Servant,
};
use spandrel_demux::perfect::Tables;
use spandrel_measure::stats::Summary;

use super::requests::Requests;
use super::settings::Strategy;
use crate::LabError;
use crate::counter::Instructions;

/// The cost of one lookup, without the loop around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The mean time of a lookup in nanoseconds, over many in a row.
    pub nanos: f64,
    /// Instructions in user mode, where the machine counts them.
    pub instructions: Option<f64>,
}

impl Cost {
    /// The cost without the loop; never below zero.
    fn without(self, base: Self) -> Self {
        let instructions = self.instructions.zip(base.instructions).map(|(all, base)| (all - base).max(0.0));
        Self { nanos: (self.nanos - base.nanos).max(0.0), instructions }
    }
}

/// The parts of a lookup, and the whole: the rows of table 6.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Finding the object (`OA::find`).
    pub object: Cost,
    /// Finding its operation (`Object::find`).
    pub operation: Cost,
    /// Both, one after the other.
    pub both: Cost,
}

/// An interface with that many operations, in the form that the IDL compiler generates.
///
/// # Errors
/// If there is no perfect hash function for their names.
pub(super) fn interface(operations: u32) -> Result<&'static Operations, LabError> {
    let mut names: Vec<&'static str> = (0..operations).map(|nth| &*format!("operation_{nth}").leak()).collect();
    names.sort_unstable();
    let tables = Tables::of(&names).and_then(|tables| Some((tables.seed, tables.to_octets()?)));
    let (seed, octets) =
        tables.ok_or_else(|| LabError::Settings(format!("no perfect hash function for {operations} operations")))?;
    // Leaked for the lifetime of the program: skeletons have static tables. There is one for each number of
    // operations.
    Ok(Box::leak(Box::new(Operations::new(names.leak(), seed, octets.leak()))))
}

thread_local! {
    /// The interface of all servants, so that a million of them need not be recreated for each interface. Not
    /// in the servants' memory, which lookups do not touch.
    static INTERFACE: Cell<&'static Operations> = const { Cell::new(Operations::NONE) };
}

/// Sets the interface of all servants that this thread looks up.
pub(super) fn choose(interface: &'static Operations) {
    INTERFACE.set(interface);
}

/// A servant that is only looked up.
struct Idle;

impl Servant for Idle {
    fn repository_id(&self) -> &str {
        "IDL:Idle:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn operations(&self) -> &'static Operations {
        INTERFACE.get()
    }
}

/// All objects, active in adapters with one demultiplexing strategy.
pub(super) struct Objects {
    orb: Orb,
    adapters: Vec<Poa>,
    /// The form of the keys of each adapter's objects.
    keys: Vec<Key>,
    strategy: Strategy,
}

/// An object key as in a message: the adapter, and the position of the object's number among the octets of
/// its id.
#[derive(Clone, Copy)]
struct Key {
    octets: [u8; Self::MOST],
    len: usize,
    number_at: usize,
}

impl Key {
    /// The keys of transient adapters have 16 octets before the id.
    const MOST: usize = 32;

    fn for_adapter(adapter: &Poa, strategy: ObjectDemux) -> Self {
        let prefix = adapter.id();
        let (id, number): (&[u8], usize) = match strategy {
            // The form of the adapter's own ids: slot and generation.
            ObjectDemux::Active => (&[0; 8], 0),
            _ => (b"servant/....", 8),
        };
        let mut octets = [0; Self::MOST];
        let len = prefix.len() + id.len();
        octets[..len].copy_from_slice(&[&prefix, id].concat());
        Self { octets, len, number_at: prefix.len() + number }
    }

    #[inline]
    fn set_number(&mut self, number: u32) {
        self.octets[self.number_at..self.number_at + 4].copy_from_slice(&number.to_be_bytes());
    }

    #[inline]
    fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl Objects {
    /// Creates that many objects, each with a servant, spread over that many adapters.
    ///
    /// # Errors
    /// If an adapter refuses one.
    pub(super) fn new(strategy: Strategy, count: u32, adapters: u32) -> Result<Self, LabError> {
        let failed = |cause| LabError::Call { action: "activate the objects that are to be found".to_owned(), cause };
        let orb = Orb::builder().build().map_err(failed)?;
        let root = Poa::root(&orb).map_err(failed)?;
        let refused = |error: PoaError| failed(error.into());
        // Access from a servant to its object is not needed, and takes memory.
        let mut policies: Vec<Policy> = vec![IdUniquenessPolicy::MultipleId.into()];
        if strategy.objects() != ObjectDemux::Active {
            policies.extend([IdAssignmentPolicy::UserId.into(), strategy.objects().into()]);
        }
        let adapter = |nth: u32| root.create_poa(&format!("adapter {nth}"), None, policies.clone());
        let adapters = (0..adapters).map(adapter).collect::<Result<Vec<Poa>, _>>().map_err(refused)?;
        let keys = adapters.iter().map(|adapter| Key::for_adapter(adapter, strategy.objects())).collect();
        let objects = Self { orb, adapters, keys, strategy };
        for object in 0..count {
            let (adapter, id) = objects.id(object);
            objects.activate(adapter, &id).map_err(refused)?;
        }
        // Only now, so that perfect hash functions are computed for all of them.
        for adapter in &objects.adapters {
            adapter.the_poa_manager().activate().map_err(refused)?;
        }
        Ok(objects)
    }

    fn activate(&self, adapter: &Poa, id: &ObjectId) -> Result<(), PoaError> {
        let servant = Arc::new(Idle);
        if self.strategy.objects() != ObjectDemux::Active {
            return adapter.activate_object_with_id(id, servant);
        }
        let made = adapter.activate_object(servant)?;
        assert_eq!(made, *id, "the ids of a table without gaps are known");
        Ok(())
    }

    /// The key of an object.
    #[inline]
    fn key(&self, object: u32) -> Key {
        let adapters = self.keys.len() as u32;
        let mut key = self.keys[(object % adapters) as usize];
        key.set_number(object / adapters);
        key
    }

    fn id(&self, object: u32) -> (&Poa, ObjectId) {
        let adapter = &self.adapters[object as usize % self.adapters.len()];
        (adapter, ObjectId::from(&self.key(object).octets()[adapter.id().len()..]))
    }

    /// The cost of lookups for these requests.
    pub(super) fn cost(&self, requests: &Requests, run_limit: RunLimit, counter: Option<&Instructions>) -> Costs {
        let bench = &Bench::new(self);
        let timed = |pass: Pass| {
            let (mut requests, mut servants) = (requests.clone(), FoundServants::for_lookup(&bench.lookup));
            run_limit.time(counter, &mut servants, |lookups, servants| {
                _ = black_box(pass(bench, &mut requests, lookups, servants))
            })
        };
        let base = timed(neither);
        Costs {
            object: timed(object).without(base),
            operation: timed(operation).without(base),
            both: timed(both).without(base),
        }
    }

    #[inline]
    fn find_operation(
        &self,
        operations: &Operations,
        name: &str,
        place: usize,
        predicted: &mut usize,
    ) -> Option<usize> {
        match self.strategy {
            Strategy::Active => operations.at_place(place, name),
            Strategy::Adaptive if operations.is_named(*predicted, name) => Some(*predicted),
            strategy => {
                let operation_index = operations.find(name, strategy.operations())?;
                *predicted = operation_index;
                Some(operation_index)
            }
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // No request is running, so there is nothing to wait for.
        _ = self.orb.begin_shutdown();
    }
}

/// The servants found, in use until they are released outside of the timed part: that belongs to the end of a
/// request.
struct FoundServants<'l> {
    lookup: &'l Lookup,
    keys: Vec<Key>,
    found: Vec<FoundServant>,
}

impl<'l> FoundServants<'l> {
    fn for_lookup(lookup: &'l Lookup) -> Self {
        let most = LONGEST_CHUNK as usize;
        Self { lookup, keys: Vec::with_capacity(most), found: Vec::with_capacity(most) }
    }

    fn give_back(&mut self) {
        for (key, found) in self.keys.drain(..).zip(self.found.drain(..)) {
            self.lookup.release(key.octets(), found);
        }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunLimit {
    /// Ends the run after this time.
    Time(Duration),
    /// After that many lookups.
    Lookups(u64),
}

/// Lookups between two readings of the clock.
const LONGEST_CHUNK: u64 = 256;
const SHORTEST_CHUNK: u64 = 16;
/// The approximate duration of a chunk.
const CHUNK_MICROS: u64 = 10;
/// The minimum number of chunks for a median.
const MIN_CHUNKS: usize = 15;

/// One of the loops.
type Pass = fn(&Bench<'_>, &mut Requests, u64, &mut FoundServants<'_>) -> u64;

impl RunLimit {
    fn time<'l>(
        self,
        counter: Option<&Instructions>,
        servants: &mut FoundServants<'l>,
        mut pass: impl FnMut(u64, &mut FoundServants<'l>),
    ) -> Cost {
        let (least, most) = match self {
            Self::Time(least) => (least, u64::MAX),
            Self::Lookups(lookups) => (Duration::MAX, lookups),
        };
        let mut longest = LONGEST_CHUNK;
        if most == u64::MAX {
            // Once as a warm-up, and to measure its duration.
            let start = Instant::now();
            pass(SHORTEST_CHUNK, servants);
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
            longest = (SHORTEST_CHUNK * CHUNK_MICROS / micros).clamp(SHORTEST_CHUNK, LONGEST_CHUNK);
            servants.give_back();
        }
        let (mut taken, mut lookups, mut instructions) = (Duration::ZERO, 0, counter.map(|_| 0));
        let mut chunks = Vec::new();
        while (taken < least || chunks.len() < MIN_CHUNKS) && lookups < most {
            let chunk = longest.min(most - lookups);
            let before = counter.and_then(Instructions::read);
            let start = Instant::now();
            pass(chunk, servants);
            let elapsed = start.elapsed();
            taken += elapsed;
            chunks.push(elapsed.as_nanos() as f64 / chunk as f64);
            let after = counter.and_then(Instructions::read);
            instructions = instructions.zip(after.zip(before)).map(|(sum, (after, before))| sum + (after - before));
            lookups += chunk;
            servants.give_back();
        }
        // The median: other processes may have had the processor for a while.
        let nanos = Summary::from_values(chunks).map_or(0.0, |chunks| chunks.median);
        Cost { nanos, instructions: instructions.map(|count| count as f64 / lookups as f64) }
    }
}

/// The inputs of the loops.
struct Bench<'a> {
    objects: &'a Objects,
    /// The adapters' own lookup from a key to a servant.
    lookup: Lookup,
    /// Copies, as in another server: names come from messages, not from the table.
    names: Vec<String>,
    /// The indexes that clients would send for each.
    places: Vec<usize>,
    servant: Arc<dyn Servant>,
    /// Zero, unknown to the compiler.
    nothing: u32,
}

impl<'a> Bench<'a> {
    fn new(objects: &'a Objects) -> Self {
        let interface = INTERFACE.get();
        let names: Vec<String> = interface.names().iter().map(|name| (*name).to_owned()).collect();
        let place = |name: &String| (0..).find(|place| interface.at_place(*place, name).is_some()).unwrap_or_default();
        let places = names.iter().map(place).collect();
        let lookup = Lookup::new(&objects.adapters[0], objects.strategy == Strategy::Adaptive);
        Self { objects, lookup, names, places, servant: Arc::new(Idle), nothing: black_box(0) }
    }

    /// Generates requests, and looks up their targets. Each lookup depends on the one before it.
    #[inline(always)]
    fn pass<const OBJECT: bool, const OPERATION: bool>(
        &self,
        requests: &mut Requests,
        count: u64,
        found_servants: &mut FoundServants<'_>,
    ) -> u64 {
        let (mut predicted_operation, mut sum, mut last) = (0, 0, 0);
        for _ in 0..count {
            let (object, operation) = requests.next();
            found_servants.keys.push(self.objects.key(object + (last & self.nothing)));
            let key = black_box(found_servants.keys.last().map_or(&[][..], Key::octets));
            let operation = (operation + (last & self.nothing)) as usize;
            let name = black_box(self.names[operation].as_str());
            let place = self.places[operation];
            let found = if OBJECT { self.lookup.find(key) } else { None };
            let servant =
                found.as_ref().map_or(Some(&self.servant), FoundServant::servant).expect("objects have servants");
            if OBJECT {
                assert!(found.is_some(), "the object is there");
                // An address that the request would need next.
                last = Arc::as_ptr(servant).cast::<()>().addr() as u32;
            }
            if OPERATION {
                let found = self.objects.find_operation(servant.operations(), name, place, &mut predicted_operation);
                last = found.expect("the operation is there") as u32;
            }
            found_servants.found.extend(found);
            sum += u64::from(last);
        }
        sum
    }
}

// Separate functions, so that profilers can tell the parts apart by name.

#[inline(never)]
fn neither(bench: &Bench<'_>, requests: &mut Requests, count: u64, servants: &mut FoundServants<'_>) -> u64 {
    bench.pass::<false, false>(requests, count, servants)
}

#[inline(never)]
fn object(bench: &Bench<'_>, requests: &mut Requests, count: u64, servants: &mut FoundServants<'_>) -> u64 {
    bench.pass::<true, false>(requests, count, servants)
}

#[inline(never)]
fn operation(bench: &Bench<'_>, requests: &mut Requests, count: u64, servants: &mut FoundServants<'_>) -> u64 {
    bench.pass::<false, true>(requests, count, servants)
}

#[inline(never)]
fn both(bench: &Bench<'_>, requests: &mut Requests, count: u64, servants: &mut FoundServants<'_>) -> u64 {
    bench.pass::<true, true>(requests, count, servants)
}

#[cfg(test)]
mod tests {
    use super::super::requests::Algorithm;
    use super::*;
    use spandrel::poa::WaitForCompletion;

    /// The bench times the lookup that requests use: a deactivated object is not found any more, and the
    /// servant found is the one that the adapter has.
    #[test]
    fn every_strategy_finds_the_servants_of_every_algorithm() {
        choose(interface(20).unwrap());
        for (strategy, adapters) in Strategy::ALL.into_iter().flat_map(|strategy| [(strategy, 1), (strategy, 3)]) {
            let objects = Objects::new(strategy, 50, adapters).unwrap();
            let bench = Bench::new(&objects);
            let servant = |number: u32| {
                let (adapter, id) = objects.id(number);
                adapter.id_to_servant(&id).unwrap()
            };
            for number in (0..50).chain([7, 7, 49]) {
                let key = objects.key(number);
                let found = bench.lookup.find(key.octets()).unwrap();
                assert!(Arc::ptr_eq(found.servant().unwrap(), &servant(number)), "{strategy} {number}");
                bench.lookup.release(key.octets(), found);
            }
            assert!(bench.lookup.find(objects.key(50 + adapters).octets()).is_none(), "{strategy}");
            for algorithm in Algorithm::ALL {
                let requests = Requests::new(algorithm, 50, 20, 7);
                let mut expected = requests.clone();
                let expected: u64 = (0..1000).map(|_| u64::from(expected.next().1)).sum();
                let mut found_servants = FoundServants::for_lookup(&bench.lookup);
                assert_eq!(
                    both(&bench, &mut requests.clone(), 1000, &mut found_servants),
                    expected,
                    "{strategy} {algorithm}"
                );
                let mut numbers = requests.clone();
                let is_expected =
                    |found: &FoundServant| Arc::ptr_eq(found.servant().unwrap(), &servant(numbers.next().0));
                assert!(found_servants.found.iter().all(is_expected), "{strategy} {algorithm}");
                found_servants.give_back();
                assert_eq!(operation(&bench, &mut requests.clone(), 1000, &mut found_servants), expected, "{strategy}");
            }
            let (adapter, id) = objects.id(7);
            adapter.deactivate_object(&id).unwrap();
            assert!(bench.lookup.find(objects.key(7).octets()).is_none(), "{strategy}: it was deactivated");
            adapter.the_poa_manager().discard_requests(WaitForCompletion::No).unwrap();
            assert!(
                bench.lookup.find(objects.key(7 + adapters).octets()).is_none(),
                "{strategy}: requests are refused"
            );
        }
    }

    #[test]
    fn finding_costs_something() {
        choose(interface(10).unwrap());
        let objects = Objects::new(Strategy::Linear, 500, 1).unwrap();
        let requests = Requests::new(Algorithm::WorstCase, 500, 10, 1);
        // A cost is the difference of two times, and zero where the second run was interrupted for longer.
        let costs: Vec<_> = (0..20).map(|_| objects.cost(&requests, RunLimit::Lookups(5000), None)).collect();
        let is_plausible = |costs: &Costs| costs.object.nanos > costs.operation.nanos && costs.operation.nanos > 0.0;
        assert!(costs.iter().any(is_plausible), "{costs:?}");
    }
}
