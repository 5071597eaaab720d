//! Clients that change sets on disk at the same time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redb::StorageBackend;
use spandrel::services::cos_property_service::{PropertySet, PropertySetFactory};
use spandrel::{ObjectRef, Orb};
use spandrel_property::{Limits, PropertyOptions, ServiceLimits};
use spandrel_store::Storage;
use spandrel_test_support::disk::Disk;
use spandrel_test_support::wait_until;

use crate::support::{Served, long, names, property};

/// A disk that counts its synchronizations.
#[derive(Clone, Debug, Default)]
struct CountingDisk {
    disk: Disk,
    synchronizations: Arc<AtomicUsize>,
}

impl CountingDisk {
    fn serve(&self, limits: Limits) -> Served {
        let disk = self.clone();
        let limits = ServiceLimits { set: limits, ..ServiceLimits::default() };
        let storage = Some(Storage::backend(move || disk.clone()));
        Served::with(PropertyOptions { storage, limits, ..PropertyOptions::default() })
    }

    /// The number of synchronizations during this.
    fn during(&self, work: impl FnOnce()) -> usize {
        let before = self.synchronizations.load(Ordering::SeqCst);
        work();
        self.synchronizations.load(Ordering::SeqCst) - before
    }
}

impl StorageBackend for CountingDisk {
    fn len(&self) -> io::Result<u64> {
        StorageBackend::len(&self.disk)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.disk.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.synchronizations.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now(); // others submit their changes meanwhile
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

/// Runs `work` in threads with these numbers, each with a client of its own.
fn at_the_same_time<T: Send>(
    threads: usize,
    object: &ObjectRef,
    work: impl Fn(usize, ObjectRef) -> T + Sync,
) -> Vec<T> {
    let text = object.to_string();
    std::thread::scope(|scope| {
        let (text, work) = (&text, &work);
        let run = |thread| {
            scope.spawn(move || {
                let client = Orb::builder().build().unwrap();
                let outcome = work(thread, client.string_to_object(text).unwrap());
                client.shutdown().unwrap();
                outcome
            })
        };
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

const THREADS: usize = 8;

#[test]
fn changes_at_the_same_time_share_synchronizations() {
    let disk = CountingDisk::default();
    let served = disk.serve(Limits::default());
    let set = served.set();
    let each = disk.during(|| set.define_property("a", &long(0)).unwrap());
    assert!(each > 0);
    let define = |thread: usize, object: ObjectRef| {
        let set: PropertySet = object.narrow().unwrap();
        (0..20).for_each(|nth| set.define_property(&format!("p{thread}-{nth}"), &long(nth)).unwrap());
    };
    wait_until("changes of one set that share a synchronization", || {
        let count = disk.during(|| _ = at_the_same_time(THREADS, set.as_object(), define));
        set.get_number_of_properties().unwrap() == 161 && count < THREADS * 20 * each
    });
    let create = |_: usize, object: ObjectRef| {
        let factory: PropertySetFactory = object.narrow().unwrap();
        (0..20).for_each(|_| _ = factory.create_propertyset().unwrap().unwrap());
    };
    wait_until("new sets that share a synchronization", || {
        disk.during(|| _ = at_the_same_time(THREADS, served.factory.as_object(), create)) < THREADS * 20 * each
    });
}

#[test]
fn changes_of_one_set_at_the_same_time_are_as_if_made_one_by_one() {
    let disk = CountingDisk::default();
    let served = disk.serve(Limits { properties: 10, ..Limits::default() });
    let set = served.set();
    for round in 0..20 {
        // One of the threads deletes it.
        set.define_property("one", &long(0)).unwrap();
        let deleted = at_the_same_time(THREADS, set.as_object(), |_, object| {
            object.narrow::<PropertySet>().unwrap().delete_property("one").is_ok()
        });
        assert_eq!(deleted.into_iter().filter(|deleted| *deleted).count(), 1, "round {round}");
        // Ten of 24 fit into the set, whatever their order.
        let defined = at_the_same_time(THREADS, set.as_object(), |thread, object| {
            let set: PropertySet = object.narrow().unwrap();
            (0..3).filter(|nth| set.define_property(&format!("p{thread}-{nth}"), &long(*nth)).is_ok()).count()
        });
        assert_eq!(defined.into_iter().sum::<usize>(), 10, "round {round}");
        assert_eq!(set.get_number_of_properties().unwrap(), 10);
        // Those that were deleted and defined again count once.
        at_the_same_time(THREADS, set.as_object(), |thread, object| {
            let set: PropertySet = object.narrow().unwrap();
            if thread % 2 == 0 {
                set.delete_all_properties().unwrap();
            } else {
                _ = set.define_properties(&[property("x", long(1)), property("y", long(2))]);
            }
        });
        set.delete_all_properties().unwrap();
        assert_eq!(set.get_number_of_properties().unwrap(), 0);
        assert_eq!(served.service.as_ref().unwrap().octets(), 0, "round {round}");
    }
    set.define_property("last", &long(1)).unwrap();
    let text = set.to_string();
    let name = |served: &Served| {
        let set: PropertySet = served.client.string_to_object(&text).unwrap().narrow().unwrap();
        set.get_all_property_names(10).unwrap().0
    };
    assert_eq!(name(&served), names(&["last"]));
}

#[test]
fn sets_created_at_the_same_time_are_there_after_a_restart() {
    let disk = CountingDisk::default();
    for round in 1..=20 {
        let served = disk.serve(Limits::default());
        at_the_same_time(THREADS, served.factory.as_object(), |_, object| {
            _ = object.narrow::<PropertySetFactory>().unwrap().create_propertyset().unwrap().unwrap();
        });
        assert_eq!(served.service.as_ref().unwrap().sets(), round * THREADS);
    }
}
