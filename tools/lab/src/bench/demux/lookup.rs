//! The loops whose time is taken.

use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel::generated::Operations;
use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::demux::{self, ObjectTable, Placed};
use spandrel::poa::{ObjectDemux, Servant};
use spandrel_demux::perfect::Tables;

use super::requests::Requests;
use super::settings::Strategy;
use crate::LabError;
use crate::counter::Instructions;
use crate::stats::Summary;

/// What one lookup takes, without the loop around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Nanoseconds.
    pub nanos: f64,
    /// Instructions in user mode, where the machine counts them.
    pub instructions: Option<f64>,
}

impl Cost {
    /// What is left without the loop; never less than nothing.
    fn without(self, base: Self) -> Self {
        let instructions = self.instructions.zip(base.instructions).map(|(all, base)| (all - base).max(0.0));
        Self { nanos: (self.nanos - base.nanos).max(0.0), instructions }
    }
}

/// What a lookup consists of, and the whole: the rows of table 6.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Finding the object (`OA::find`).
    pub object: Cost,
    /// Finding its operation (`Object::find`).
    pub operation: Cost,
    /// Both, one after the other.
    pub both: Cost,
}

/// An interface with so many operations, in the form that the IDL compiler gives it.
///
/// # Errors
/// If there is no perfect hash function for their names.
pub(super) fn interface(operations: u32) -> Result<&'static Operations, LabError> {
    let mut names: Vec<&'static str> = (0..operations).map(|nth| &*format!("operation_{nth}").leak()).collect();
    names.sort_unstable();
    let Tables { seed, displacements, places } = Tables::of(&names)
        .ok_or_else(|| LabError::Settings(format!("no perfect hash function for {operations} operations")))?;
    let places: Vec<u16> = places.into_iter().map(|index| index as u16).collect();
    // As long as the program: skeletons have static tables. There are as few of them as numbers of operations.
    Ok(Box::leak(Box::new(Operations::new(names.leak(), seed, displacements.leak(), places.leak()))))
}

thread_local! {
    /// The interface of all servants: a million of them are not made anew for each. Not in the servants' memory, which lookups do not touch.
    static INTERFACE: Cell<&'static Operations> = const { Cell::new(Operations::NONE) };
}

/// Gives all servants that this thread looks up an interface.
pub(super) fn choose(interface: &'static Operations) {
    INTERFACE.set(interface);
}

/// A servant that is only found.
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

/// What an adapter has behind an object's id; as large as there.
struct Active {
    servant: Arc<dyn Servant>,
    number: u32,
}

type Entry = Arc<Active>;

/// All objects, found by one strategy.
pub(super) struct Objects {
    map: RwLock<Map>,
    strategy: Strategy,
}

enum Map {
    Placed(Placed<Entry>),
    Table(Box<dyn ObjectTable<Entry>>),
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// An object's id as it stands in a message: some octets, and the object's number among them.
struct Id {
    octets: [u8; 12],
    len: usize,
    number_at: usize,
}

impl Id {
    fn of(strategy: ObjectDemux) -> Self {
        match strategy {
            // What the adapter made: slot and generation.
            ObjectDemux::Active => Self { octets: [0; 12], len: 8, number_at: 0 },
            _ => Self { octets: *b"servant/....", len: 12, number_at: 8 },
        }
    }

    #[inline]
    fn numbered(&mut self, number: u32) -> &[u8] {
        self.octets[self.number_at..self.number_at + 4].copy_from_slice(&number.to_be_bytes());
        &self.octets[..self.len]
    }
}

impl Objects {
    /// So many objects, each with a servant.
    pub(super) fn new(strategy: Strategy, count: u32) -> Self {
        let entry = |number| Arc::new(Active { servant: Arc::new(Idle), number });
        let map = if strategy.objects() == ObjectDemux::Active {
            let mut placed = Placed::default();
            for number in 0..count {
                let id = placed.insert(entry(number));
                assert_eq!(
                    id.as_deref(),
                    Some(Id::of(ObjectDemux::Active).numbered(number)),
                    "the ids of a table without gaps are known"
                );
            }
            Map::Placed(placed)
        } else {
            let mut table = demux::table(strategy.objects());
            let mut id = Id::of(strategy.objects());
            for number in 0..count {
                table.insert(id.numbered(number), entry(number));
            }
            table.settle();
            Map::Table(table)
        };
        Self { map: RwLock::new(map), strategy }
    }

    /// What finding costs, by these requests.
    pub(super) fn cost(&self, requests: &Requests, how_long: HowLong, counter: Option<&Instructions>) -> Costs {
        let bench = &Bench::new(self);
        let timed = |pass: Pass| {
            let (mut requests, mut found) = (requests.clone(), Vec::new());
            how_long
                .time(counter, &mut found, |lookups, found| _ = black_box(pass(bench, &mut requests, lookups, found)))
        };
        let base = timed(neither);
        Costs {
            object: timed(object).without(base),
            operation: timed(operation).without(base),
            both: timed(both).without(base),
        }
    }

    /// Takes a count of the object, under the lock, as an adapter does.
    #[inline]
    fn find(&self, id: &[u8], predicted: &mut usize) -> Option<Entry> {
        let map = self.map.read();
        match &*map {
            Map::Placed(placed) => placed.find(id).cloned(),
            Map::Table(table) if self.strategy == Strategy::Adaptive => {
                let (place, entry) = table.find_near(id, *predicted)?;
                *predicted = place;
                Some(Arc::clone(entry))
            }
            Map::Table(table) => table.find(id).cloned(),
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
                let found = operations.find(name, strategy.operations())?;
                *predicted = found;
                Some(found)
            }
        }
    }
}

/// When a run is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum HowLong {
    /// After this time.
    Time(Duration),
    /// After so many lookups.
    Lookups(u64),
}

/// Lookups between two readings of the clock.
const LONGEST_CHUNK: u64 = 256;
const SHORTEST_CHUNK: u64 = 16;
/// What they should take together, roughly.
const CHUNK_MICROS: u64 = 10;
/// So many have a middle.
const FEWEST_CHUNKS: usize = 15;

/// One of the loops.
type Pass = fn(&Bench<'_>, &mut Requests, u64, &mut Vec<Entry>) -> u64;

impl HowLong {
    /// What is found is given back outside of the time: that belongs to the end of a request.
    fn time(
        self,
        counter: Option<&Instructions>,
        found: &mut Vec<Entry>,
        mut pass: impl FnMut(u64, &mut Vec<Entry>),
    ) -> Cost {
        let (least, most) = match self {
            Self::Time(least) => (least, u64::MAX),
            Self::Lookups(lookups) => (Duration::MAX, lookups),
        };
        found.reserve(LONGEST_CHUNK as usize);
        let mut longest = LONGEST_CHUNK;
        if most == u64::MAX {
            // Once to warm up, and to see how long it takes.
            let start = Instant::now();
            pass(SHORTEST_CHUNK, found);
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
            longest = (SHORTEST_CHUNK * CHUNK_MICROS / micros).clamp(SHORTEST_CHUNK, LONGEST_CHUNK);
            found.clear();
        }
        let (mut taken, mut lookups, mut instructions) = (Duration::ZERO, 0, counter.map(|_| 0));
        let mut chunks = Vec::new();
        while (taken < least || chunks.len() < FEWEST_CHUNKS) && lookups < most {
            let chunk = longest.min(most - lookups);
            let before = counter.and_then(Instructions::read);
            let start = Instant::now();
            pass(chunk, found);
            let elapsed = start.elapsed();
            taken += elapsed;
            chunks.push(elapsed.as_nanos() as f64 / chunk as f64);
            let after = counter.and_then(Instructions::read);
            instructions = instructions.zip(after.zip(before)).map(|(sum, (after, before))| sum + (after - before));
            lookups += chunk;
            found.clear();
        }
        // The middle one: others may have had the processor for a while.
        let nanos = Summary::of(chunks).map_or(0.0, |chunks| chunks.median);
        Cost { nanos, instructions: instructions.map(|count| count as f64 / lookups as f64) }
    }
}

/// What the loops need.
struct Bench<'a> {
    objects: &'a Objects,
    /// Of another server: names come from messages, not from the table.
    names: Vec<String>,
    /// What clients would say of each.
    places: Vec<usize>,
    servant: Arc<dyn Servant>,
    /// Nothing, but the compiler cannot know.
    nothing: u32,
}

impl<'a> Bench<'a> {
    fn new(objects: &'a Objects) -> Self {
        let interface = INTERFACE.get();
        let names: Vec<String> = interface.names().iter().map(|name| (*name).to_owned()).collect();
        let place = |name: &String| (0..).find(|place| interface.at_place(*place, name).is_some()).unwrap_or_default();
        let places = names.iter().map(place).collect();
        Self { objects, names, places, servant: Arc::new(Idle), nothing: black_box(0) }
    }

    /// Makes requests, and finds what they are for. Each waits for what was found before it.
    #[inline(always)]
    fn pass<const OBJECT: bool, const OPERATION: bool>(
        &self,
        requests: &mut Requests,
        count: u64,
        kept: &mut Vec<Entry>,
    ) -> u64 {
        let mut id = Id::of(self.objects.strategy.objects());
        let (mut predicted_object, mut predicted_operation, mut sum, mut last) = (0, 0, 0, 0);
        for _ in 0..count {
            let (object, operation) = requests.next();
            let id = black_box(id.numbered(object + (last & self.nothing)));
            let operation = (operation + (last & self.nothing)) as usize;
            let name = black_box(self.names[operation].as_str());
            let place = self.places[operation];
            let entry = if OBJECT { self.objects.find(id, &mut predicted_object) } else { None };
            if OBJECT {
                // A number that has been touched already.
                last = Arc::strong_count(entry.as_ref().expect("the object is there")) as u32;
            }
            if OPERATION {
                let servant = entry.as_ref().map_or(&self.servant, |entry| &entry.servant);
                let found = self.objects.find_operation(servant.operations(), name, place, &mut predicted_operation);
                last = found.expect("the operation is there") as u32;
            }
            kept.extend(entry);
            sum += u64::from(last);
        }
        sum
    }
}

// By these names, which profilers can be given, the parts can be told apart.

#[inline(never)]
fn neither(bench: &Bench<'_>, requests: &mut Requests, count: u64, found: &mut Vec<Entry>) -> u64 {
    bench.pass::<false, false>(requests, count, found)
}

#[inline(never)]
fn object(bench: &Bench<'_>, requests: &mut Requests, count: u64, found: &mut Vec<Entry>) -> u64 {
    bench.pass::<true, false>(requests, count, found)
}

#[inline(never)]
fn operation(bench: &Bench<'_>, requests: &mut Requests, count: u64, found: &mut Vec<Entry>) -> u64 {
    bench.pass::<false, true>(requests, count, found)
}

#[inline(never)]
fn both(bench: &Bench<'_>, requests: &mut Requests, count: u64, found: &mut Vec<Entry>) -> u64 {
    bench.pass::<true, true>(requests, count, found)
}

#[cfg(test)]
mod tests {
    use super::super::requests::Algorithm;
    use super::*;

    #[test]
    fn every_strategy_finds_what_every_algorithm_asks_for() {
        choose(interface(20).unwrap());
        for strategy in Strategy::ALL {
            let objects = Objects::new(strategy, 50);
            let (mut id, mut predicted) = (Id::of(strategy.objects()), 0);
            for number in (0..50).chain([7, 7, 49]) {
                let found = objects.find(id.numbered(number), &mut predicted);
                assert_eq!(found.map(|entry| entry.number), Some(number), "{strategy}");
            }
            assert!(objects.find(id.numbered(50), &mut predicted).is_none(), "{strategy}");
            for algorithm in Algorithm::ALL {
                let requests = Requests::new(algorithm, 50, 20, 7);
                let mut expected = requests.clone();
                let expected: u64 = (0..1000).map(|_| u64::from(expected.next().1)).sum();
                let bench = Bench::new(&objects);
                let mut found = Vec::new();
                assert_eq!(both(&bench, &mut requests.clone(), 1000, &mut found), expected, "{strategy} {algorithm}");
                let mut numbers = requests.clone();
                assert!(found.iter().all(|entry| entry.number == numbers.next().0), "{strategy} {algorithm}");
                assert_eq!(operation(&bench, &mut requests.clone(), 1000, &mut Vec::new()), expected, "{strategy}");
            }
        }
    }

    #[test]
    fn finding_costs_something() {
        choose(interface(10).unwrap());
        let objects = Objects::new(Strategy::Linear, 500);
        let requests = Requests::new(Algorithm::WorstCase, 500, 10, 1);
        let costs = objects.cost(&requests, HowLong::Lookups(5000), None);
        assert!(costs.object.nanos > costs.operation.nanos && costs.operation.nanos > 0.0, "{costs:?}");
    }
}
