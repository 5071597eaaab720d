//! The queues of consumers against a simple model: orders of delivery and discarding, bounds, and counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spandrel_delivery::{
    DiscardOrder, Event, EventMemory, EventQueue, Lifetime, PullEnd, QueueBounds, QueueOrder, WaitingPull,
};

/// No pull waits in these tests.
#[derive(Debug)]
struct NoPull;

impl WaitingPull for NoPull {
    type Value = u64;

    fn is_cancelled(&self) -> bool {
        true
    }

    fn send(self, _: PullEnd<u64>) {}
}

/// An event of the model. Its life ends after this many thousand seconds; zero is over.
#[derive(Clone, Copy, Debug)]
struct ModelEvent {
    number: u64,
    priority: i16,
    life: Option<u64>,
    octets: usize,
}

/// A list of events that is searched whole.
#[derive(Debug)]
struct Model {
    bounds: QueueBounds,
    events: Vec<ModelEvent>,
    delivered: u64,
    dropped: u64,
    expired: u64,
}

impl Model {
    fn octets(&self) -> usize {
        self.events.iter().map(|event| event.octets).sum()
    }

    fn discard(&mut self) -> bool {
        let key = |event: &ModelEvent| match self.bounds.discard {
            DiscardOrder::Fifo => (0, event.number),
            DiscardOrder::Lifo => (0, u64::MAX - event.number),
            DiscardOrder::Priority => (i128::from(event.priority), event.number),
            DiscardOrder::Deadline => (event.life.map_or(i128::MAX, i128::from), event.number),
        };
        let Some(index) = (0..self.events.len()).min_by_key(|index| key(&self.events[*index])) else { return false };
        self.events.remove(index);
        self.dropped += 1;
        true
    }

    fn shrink(&mut self) {
        while self.events.len() > self.bounds.events || (self.octets() > self.bounds.octets && self.events.len() > 1) {
            self.discard();
        }
    }

    fn take(&mut self, how_many: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < how_many {
            let key = |event: &ModelEvent| match self.bounds.order {
                QueueOrder::Fifo => (0, event.number),
                QueueOrder::Priority => (-i128::from(event.priority), event.number),
                QueueOrder::Deadline => (event.life.map_or(i128::MAX, i128::from), event.number),
            };
            let Some(index) = (0..self.events.len()).min_by_key(|index| key(&self.events[*index])) else { break };
            let event = self.events.remove(index);
            if event.life == Some(0) {
                self.expired += 1;
            } else {
                self.delivered += 1;
                numbers.push(event.number);
            }
        }
        numbers
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Add { priority: i16, life: Option<u64>, octets: usize },
    Take(usize),
    Shed,
    SetBounds(QueueBounds),
}

fn bounds() -> impl Strategy<Value = QueueBounds> {
    let order = prop_oneof![Just(QueueOrder::Fifo), Just(QueueOrder::Priority), Just(QueueOrder::Deadline)];
    let discard = prop_oneof![
        Just(DiscardOrder::Fifo),
        Just(DiscardOrder::Lifo),
        Just(DiscardOrder::Priority),
        Just(DiscardOrder::Deadline),
    ];
    (1..10_usize, 1..100_usize, order, discard).prop_map(|(events, octets, order, discard)| QueueBounds {
        events,
        octets,
        waiting_pulls: 0,
        order,
        discard,
        keeps_failed: false,
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let life = prop_oneof![Just(None), (0..4_u64).prop_map(Some)];
    prop_oneof![
        6 => (-2..3_i16, life, 0..40_usize)
            .prop_map(|(priority, life, octets)| Operation::Add { priority, life, octets }),
        2 => (0..4_usize).prop_map(Operation::Take),
        1 => Just(Operation::Shed),
        1 => bounds().prop_map(Operation::SetBounds),
    ]
}

proptest! {
    #[test]
    fn a_queue_delivers_discards_and_counts_as_its_model(
        first in bounds(),
        operations in prop::collection::vec(operation(), 0..80),
    ) {
        let memory = EventMemory::new(usize::MAX);
        let queue = EventQueue::<NoPull>::new(first);
        let mut model = Model { bounds: first, events: Vec::new(), delivered: 0, dropped: 0, expired: 0 };
        let start = Instant::now();
        let mut numbers = 0..;
        for operation in operations {
            match operation {
                Operation::Add { priority, life, octets } => {
                    let number = numbers.next().unwrap();
                    let expires = life.map(|life| start + Duration::from_secs(life * 1_000));
                    let event = Arc::new(Event::new(number, memory.charge(octets).unwrap()));
                    let lifetime = Lifetime { priority, expires };
                    let mut ended = Vec::new();
                    queue.add([(event, lifetime)], &mut ended);
                    prop_assert!(ended.is_empty());
                    model.events.push(ModelEvent { number, priority, life, octets });
                    model.shrink();
                }
                Operation::Take(how_many) => {
                    let events = queue.take(how_many).unwrap();
                    let events: Vec<u64> = events.iter().map(|event| event.value).collect();
                    prop_assert_eq!(events, model.take(how_many));
                }
                Operation::Shed => prop_assert_eq!(queue.shed(), model.discard()),
                Operation::SetBounds(bounds) => {
                    queue.set_bounds(bounds);
                    model.bounds = bounds;
                    model.shrink();
                }
            }
            let counts = queue.counts();
            prop_assert_eq!((counts.queued, counts.octets), (model.events.len(), model.octets()));
            let expected = (model.delivered, model.dropped, model.expired);
            prop_assert_eq!((counts.delivered, counts.dropped, counts.expired), expected);
            prop_assert_eq!(memory.used(), model.octets());
        }
        queue.close();
        prop_assert_eq!(memory.used(), 0);
        prop_assert_eq!(queue.counts().dropped, model.dropped + u64::try_from(model.events.len()).unwrap());
    }
}
